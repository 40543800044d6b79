//! Which model is asked: what a call names, what the user allows, and what comes next when one is
//! unavailable.

use std::time::Duration;

use asyncagents_core::{
    answer,
    host_ref::HostRef,
    id::{ModelName, SessionId},
    model_choice::{AllowedModels, ModelPolicy},
    request::{Caller, OutputRequest, TaskArgs},
    trace::StepKind,
};
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Harness, Plan};

fn out_of_quota() -> Reply {
    Reply::status(429)
        .code("insufficient_quota")
        .message("the credit is used up")
}

/// A user who has said which models come next, and which may be named.
fn plan(fallbacks: &[&str], allowed: &[&str]) -> Plan {
    let policy = ModelPolicy {
        allowed: AllowedModels::new(allowed.iter().map(|&pattern| pattern.to_owned()).collect()),
        fallbacks: fallbacks.iter().map(|&model| model.into()).collect(),
    };
    let mut plan = Plan {
        attempts: 2,
        ..Plan::default()
    };
    plan.runtime.models = policy.clone();
    plan.runtime.lease = Duration::from_millis(300);
    plan.settings = Box::new(move |settings| {
        settings.model = Some("test/first".to_owned());
        settings.model_policy = policy.clone();
    });
    plan
}

fn caller(session: &SessionId) -> Caller {
    Caller::Session {
        session: session.clone(),
        host: HostRef::engine("test").into(),
        outside: None,
        message: None,
    }
}

fn asks(prompt: &str) -> TaskArgs {
    TaskArgs {
        prompt: prompt.to_owned(),
        agent: "general".to_owned(),
        ..TaskArgs::default()
    }
}

/// What `output` says of a task that has ended.
async fn output(harness: &Harness, caller: &Caller, task: &str) -> String {
    let request = OutputRequest::new(task, true, Some(60)).expect("a request");
    let report = harness.manager.output(caller, request).await;
    answer::output(
        &report.expect("there"),
        harness.manager.now(),
        answer::Reader::Person,
    )
}

fn asked(harness: &Harness) -> Vec<String> {
    let requests = harness.model.requests();
    requests.iter().map(|request| request.model()).collect()
}

#[tokio::test]
async fn a_model_out_of_quota_is_replaced_in_the_same_run_and_that_is_told() {
    let script = Script::new()
        .rule(
            When::turn(0).model("first"),
            Reply::call("write", json!({"path": "a.txt", "content": "once"})),
        )
        .rule(When::always().model("first"), out_of_quota())
        .rule(When::always().contains("And now"), Reply::text("Again."))
        .rule(When::always().model("second"), Reply::text("Done."));
    let harness = Harness::with(script, plan(&["test/second"], &["*"])).await;
    let session = harness.begin("general").await;
    let caller = caller(&session);
    let task = harness.manager.task(&caller, asks("Write it")).await;
    let task = task.expect("launched").shown.task.id;
    let told = output(&harness, &caller, task.as_str()).await;
    assert!(told.contains("Done."), "{told}");
    assert!(
        told.contains(
            "Model: test/first was unavailable (test refuses (429): the credit is used up"
        ),
        "{told}"
    );
    assert!(told.contains("test/second goes on instead."), "{told}");
    assert_eq!(harness.read("a.txt"), "once");
    assert_eq!(asked(&harness), ["first", "first", "second"]);
    let trace = harness.manager.trace(task.as_str()).await.expect("a trace");
    let fell_back = |kind: &StepKind| matches!(kind, StepKind::FellBack(_));
    let steps = trace.steps.iter();
    assert_eq!(steps.filter(|step| fell_back(&step.what)).count(), 1);
    // A follow-up does not begin with the model that is out of quota.
    let again = TaskArgs {
        resume: Some(task.to_string()),
        ..asks("And now")
    };
    harness.manager.task(&caller, again).await.expect("resumed");
    let told = output(&harness, &caller, task.as_str()).await;
    assert!(told.contains("Again."), "{told}");
    assert!(
        told.contains("Model: test/second, which took over in an earlier run."),
        "{told}"
    );
    assert_eq!(asked(&harness), ["first", "first", "second", "second"]);
    harness.close().await;
}

#[rstest]
#[case::quota(out_of_quota())]
#[case::no_credit(Reply::status(400).message("Your credit balance is too low"))]
#[case::no_such_model(Reply::status(404).message("no such model"))]
#[case::key(Reply::status(401).message("invalid key"))]
#[case::overloaded(Reply::status(529))]
#[case::broken(Reply::fault(Fault::Cut))]
#[tokio::test]
async fn a_person_s_run_goes_on_with_the_next_model_too(#[case] reply: Reply) {
    let script = Script::new()
        .rule(When::always().model("first"), reply)
        .rule(When::always().model("second"), Reply::text("Done."));
    let harness = Harness::with(script, plan(&["test/second"], &["*"])).await;
    assert_eq!(harness.run("Go").await.said(), "Done.");
    harness.close().await;
}

#[tokio::test]
async fn when_all_are_out_the_error_names_all() {
    let script = Script::new()
        .rule(When::always().model("first"), out_of_quota())
        .rule(
            When::always().model("second"),
            Reply::status(402).message("pay first"),
        );
    let fallbacks = ["test/second", "anthropic/claude-opus-5-5", "nowhere/model"];
    let harness = Harness::with(script, plan(&fallbacks, &["*"])).await;
    let ended = harness.run("Go").await;
    let why = ended.error();
    for said in [
        "no model is left to ask",
        "test/first: test refuses (429): the credit is used up",
        "test/second: test refuses (402): pay first",
        "anthropic/claude-opus-5-5:",
        "nowhere/model: `nowhere/model` is not a known model",
    ] {
        assert!(why.contains(said), "{said}: {why}");
    }
    assert_eq!(asked(&harness), ["first", "second"]);
    harness.close().await;
}

#[rstest]
#[case::bad_request(Reply::status(400).message("unknown field"), "unknown field")]
#[case::too_long(Reply::status(400).message("prompt is too long"), "too long")]
#[tokio::test]
async fn a_request_that_is_refused_is_not_sent_to_another_model(
    #[case] reply: Reply,
    #[case] why: &str,
) {
    let script = Script::new().rule(When::always(), reply);
    let harness = Harness::with(script, plan(&["test/second"], &["*"])).await;
    let ended = harness.run("Go").await;
    assert!(ended.error().contains(why), "{}", ended.error());
    assert!(!asked(&harness).contains(&"second".to_owned()));
    harness.close().await;
}

#[tokio::test]
async fn the_next_driver_goes_on_with_the_model_that_took_over() {
    let script = Script::new()
        .rule(When::always().model("first"), out_of_quota())
        .rule(
            When::always().model("second").times(1),
            Reply::fault(Fault::Hang),
        )
        .rule(When::always().model("second"), Reply::text("Done."));
    let harness = Harness::with(script, plan(&["test/second"], &["*"])).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Go").await;
    harness.model.wait_for(|requests| requests.len() == 2).await;
    let harness = harness.killed().await;
    harness.until_free(&session).await;
    harness.engine.go_on(&session).await.expect("there");
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Done.");
    assert_eq!(asked(&harness), ["first", "second", "second"]);
    harness.close().await;
}

#[tokio::test]
async fn a_model_outside_the_allowed_ones_never_takes_over() {
    let script = Script::new()
        .rule(When::always().model("first"), out_of_quota())
        .rule(When::always().model("third"), Reply::text("Done."));
    let plan = plan(&["test/second", "test/third"], &["test/t*"]);
    let harness = Harness::with(script, plan).await;
    assert_eq!(harness.run("Go").await.said(), "Done.");
    assert_eq!(asked(&harness), ["first", "third"]);
    harness.close().await;
}

#[tokio::test]
async fn the_model_and_the_effort_of_a_call_are_those_of_its_task() {
    let task = json!({"description": "d", "prompt": "Child:\nlook", "agent": "general",
        "model": "test/small", "effort": "high"});
    let script = Script::new()
        .rule(When::always().first("Child:\n"), Reply::text("Looked."))
        .rule(When::turn(0), Reply::call("asyncagents_task", task))
        .rule(When::always(), Reply::text("Seen."));
    let harness = Harness::with(script, plan(&[], &["test/*"])).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    harness.ended(&session, &prompt).await.said();
    let child = harness.tasks(&session).await.remove(0);
    let again = TaskArgs {
        resume: Some(child.id.to_string()),
        effort: Some("low".to_owned()),
        ..asks("Once more")
    };
    let caller = caller(&session);
    let resumed = harness.manager.task(&caller, again).await.expect("resumed");
    assert_eq!(resumed.ignored, ["agent", "effort"]);
    output(&harness, &caller, child.id.as_str()).await;
    let requests = harness.model.requests().into_iter();
    let of_child: Vec<_> = requests.filter(|one| one.model() == "small").collect();
    assert_eq!(of_child.len(), 2, "the launch and the follow-up");
    for request in of_child {
        let thinking = &request.json()["thinking"];
        assert_eq!(thinking["type"], "enabled", "{thinking}");
        assert_eq!(thinking["budget_tokens"], 6_144, "as much as high can be");
    }
    harness.close().await;
}

#[rstest]
#[case::unknown_provider(
    asking("nowhere/model", None),
    "there is no model `nowhere/model` here"
)]
#[case::no_key(
    asking("openai/gpt-5.4-mini", None),
    "there is no model `openai/gpt-5.4-mini` here"
)]
#[case::not_allowed(
    asking("test/other", None),
    "the model `test/other` is not among those that the setting `models.allowed` allows: test/s*"
)]
#[case::no_effort(
    asking("test/simple", Some("high")),
    "the model `test/simple` has no effort `high`"
)]
#[case::unknown_effort(asking("test/small", Some("extreme")), "`effort`: extreme is refused")]
#[tokio::test]
async fn what_is_not_to_be_had_is_refused_before_there_is_a_task(
    #[case] args: TaskArgs,
    #[case] why: &str,
) {
    let mut plan = plan(&[], &["test/s*"]);
    // A model of the table that does not think.
    plan.prices = Some(r#"{"test/simple": {"max_output": 1000}}"#.to_owned());
    let harness = Harness::with(Script::new(), plan).await;
    let session = harness.begin("general").await;
    let refused = harness.manager.task(&caller(&session), args).await;
    let refused = refused.expect_err("refused").to_string();
    assert!(refused.contains(why), "{refused}");
    assert!(harness.tasks(&session).await.is_empty());
    harness.close().await;
}

fn asking(model: &str, effort: Option<&str>) -> TaskArgs {
    TaskArgs {
        model: Some(model.to_owned()),
        effort: effort.map(str::to_owned),
        ..asks("Go")
    }
}

/// Its author may have other models, so it works with the usual one.
#[tokio::test]
async fn an_agent_of_a_project_gets_no_model_that_is_not_allowed() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let harness = Harness::with(script, plan(&[], &["test/s*"])).await;
    let agents = harness.path(".asyncagents/agents");
    std::fs::create_dir_all(&agents).expect("a folder");
    for (name, model) in [("greedy", "test/huge"), ("modest", "test/small")] {
        let text = format!("---\ndescription: d\nmodel: {model}\n---\nWork.\n");
        std::fs::write(agents.join(format!("{name}.md")), text).expect("written");
    }
    let mut models = Vec::new();
    for agent in ["greedy", "modest"] {
        let session = harness.begin(agent).await;
        models.push(harness.engine.session(&session).await.expect("there").model);
    }
    assert_eq!(models, ["test/first", "test/small"].map(ModelName::from));
    harness.close().await;
}

#[tokio::test]
async fn a_skill_gets_no_model_that_is_not_allowed() {
    let script = Script::new()
        .rule(
            When::always().system("executing the"),
            Reply::text("Looked."),
        )
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "look", "background": false})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::with(script, plan(&[], &["test/s*"])).await;
    harness.skill(
        "look",
        "context: fork\nmodel: test/huge\ndescription: d",
        "Look.",
    );
    assert_eq!(harness.run("Go").await.said(), "Done.");
    assert_eq!(asked(&harness), ["first", "first", "first"]);
    harness.close().await;
}
