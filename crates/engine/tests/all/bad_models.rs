//! Models and providers that misbehave: the run goes on, or ends with a clear error.

use std::time::Duration;

use asyncagents_core::task::{Outcome, State, Status};
use asyncagents_models::Wire;
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::{
    delegating::launch,
    harness::{Harness, Plan},
};

#[rstest]
#[tokio::test]
async fn a_stream_that_breaks_is_asked_for_again(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
    #[values(Fault::Cut, Fault::Malformed, Fault::ErrorEvent, Fault::Drop)] fault: Fault,
) {
    let script = Script::new()
        .rule(When::turn(0).times(1), Reply::fault(fault))
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "once"})),
        )
        .rule(When::turn(1).times(1), Reply::fault(fault))
        .rule(When::turn(1), Reply::text("Done."));
    let plan = Plan {
        wire,
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    assert_eq!(harness.run("Write it").await.said(), "Done.");
    assert_eq!(harness.read("a.txt"), "once");
    assert_eq!(harness.model.requests().len(), 4);
    harness.close().await;
}

#[rstest]
#[case::status(Reply::status(500).message("on fire"), "on fire")]
#[case::cut(Reply::fault(Fault::Cut), "broken off")]
#[tokio::test]
async fn a_provider_that_stays_broken_is_a_clear_error(#[case] reply: Reply, #[case] why: &str) {
    let plan = Plan {
        attempts: 2,
        ..Plan::default()
    };
    let harness = Harness::with(Script::new().rule(When::always(), reply), plan).await;
    let ended = harness.run("Anything").await;
    assert!(
        ended.error().contains("test"),
        "names the provider: {}",
        ended.error()
    );
    assert!(ended.error().contains(why), "{}", ended.error());
    assert_eq!(harness.model.requests().len(), 2);
    harness.close().await;
}

#[rstest]
#[case::unknown_tool(
    Reply::call("teleport", json!({})),
    "there is no tool `teleport` here; there are read, write, edit, glob, grep, bash, todo, asyncagents_task"
)]
#[case::missing_argument(Reply::call("read", json!({})), "path")]
#[case::wrong_type(Reply::call("read", json!({"path": 7})), "path")]
#[case::broken_json(Reply::text("").raw_call("read", "{\"path\": \"a.t"), "JSON")]
#[case::task_without_prompt(
    Reply::call("asyncagents_task", json!({"agent": "general"})),
    "prompt"
)]
#[case::unknown_agent(
    Reply::call("asyncagents_task", json!({"prompt": "p", "agent": "wizard"})),
    "there are explore, general and plan"
)]
#[case::fork_and_resume(
    Reply::call("asyncagents_task", json!({"prompt": "p", "agent": "general", "fork": true, "resume": "task_1"})),
    "fork"
)]
#[tokio::test]
async fn a_wrong_call_is_explained_to_the_model(#[case] call: Reply, #[case] why: &str) {
    let script = Script::new()
        .rule(When::turn(0), call)
        .rule(When::turn(1), Reply::text("I see."));
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat] {
        let plan = Plan {
            wire,
            ..Plan::default()
        };
        let harness = Harness::with(script.clone(), plan).await;
        assert_eq!(harness.run("Try").await.said(), "I see.");
        let told = harness.model.requests().pop().expect("a request").last();
        assert!(told.contains(why), "{wire:?}: {told}");
        harness.close().await;
    }
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again() {
    let script = Script::new()
        .rule(When::always().times(1), Reply::fault(Fault::Empty))
        .rule(
            When::always().last("Your answer was empty"),
            Reply::text("Sorry. Done."),
        );
    let harness = Harness::new(script).await;
    assert_eq!(harness.run("Anything").await.said(), "Sorry. Done.");
    harness.close().await;
    let harness =
        Harness::new(Script::new().rule(When::always(), Reply::fault(Fault::Empty))).await;
    let ended = harness.run("Anything").await;
    assert_eq!(
        ended.error(),
        "the model answered nothing, three times in a row"
    );
    harness.close().await;
}

#[tokio::test]
async fn two_calls_of_one_name_run_once_each() {
    let script = Script::parse(
        r#"
[[rule]]
turn = 0
calls = [
  { name = "write", args = { path = "a.txt", content = "a" }, id = "same" },
  { name = "write", args = { path = "b.txt", content = "b" }, id = "same" },
]
[[rule]]
turn = 1
text = "Both."
"#,
    );
    let script = script.expect("a script");
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat] {
        let plan = Plan {
            wire,
            ..Plan::default()
        };
        let harness = Harness::with(script.clone(), plan).await;
        assert_eq!(harness.run("Write both").await.said(), "Both.");
        let written = (harness.read("a.txt"), harness.read("b.txt"));
        assert_eq!(written, ("a".to_owned(), "b".to_owned()), "{wire}");
        assert_eq!(harness.model.requests().len(), 2);
        harness.close().await;
    }
}

#[tokio::test]
async fn a_call_that_was_cut_is_told_so() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("")
                .raw_call("write", "{\"path\": \"a.txt\", \"content\": \"aaa")
                .stop("max_tokens"),
        )
        .rule(
            When::always().last("Do it in smaller pieces"),
            Reply::text("In pieces, then."),
        );
    let harness = Harness::new(script).await;
    assert_eq!(harness.run("Write much").await.said(), "In pieces, then.");
    assert_eq!(harness.read("a.txt"), "");
    harness.close().await;
}

#[tokio::test]
async fn a_cut_answer_is_handed_on_whole() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("first half, ").stop("max_tokens"),
        )
        .rule(When::turn(1), Reply::text("second half"));
    let harness = Harness::new(script).await;
    assert_eq!(harness.run("Tell").await.said(), "first half, second half");
    harness.close().await;
}

#[tokio::test]
async fn twenty_children_come_through_a_storm_of_429s() {
    let mut script = Script::new()
        .rule(
            When::always().first("Child:\n").times(30),
            Reply::status(429).retry_after("0").message("slow down"),
        )
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("read", json!({"path": "a.txt"})),
        )
        .rule(
            When::turn(1).first("Child:\n"),
            Reply::text("child done").usage(100, 0, 10),
        );
    let mut many = Reply::call("asyncagents_task", launch("task 0", "Child:\n0", false));
    for n in 1..20 {
        let prompt = format!("Child:\n{n}");
        many = many.and_call(
            "asyncagents_task",
            launch(&format!("task {n}"), &prompt, false),
        );
    }
    script = script
        .rule(When::turn(0), many)
        .rule(When::always(), Reply::text("ok"));
    let mut plan = Plan {
        attempts: 20,
        ..Plan::default()
    };
    plan.runtime.limits.concurrency = 20;
    let harness = Harness::with(script, plan).await;
    harness.write("a.txt", "a\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Twenty").await;
    harness.ended(&session, &prompt).await.said();
    let tasks = harness.tasks(&session).await;
    assert_eq!(tasks.len(), 20);
    for task in &tasks {
        let State::Ended { outcome, .. } = &task.state else {
            panic!("{task:?}");
        };
        assert_eq!(*outcome, Outcome::Completed);
        assert_eq!(
            task.progress.spent.turns, 2,
            "a refused request is no answer"
        );
    }
    let refused = harness
        .model
        .requests()
        .iter()
        .filter(|request| request.status == 429)
        .count();
    assert_eq!(refused, 30);
    harness.close().await;
}

/// As many as run at once where nobody says otherwise.
#[tokio::test]
async fn two_hundred_children_fit_a_provider_that_takes_twenty_at_once() {
    const CHILDREN: usize = 200;
    let mut many = Reply::call("asyncagents_task", launch("task 0", "Child:\n0", false));
    for n in 1..CHILDREN {
        let (title, prompt) = (format!("task {n}"), format!("Child:\n{n}"));
        many = many.and_call("asyncagents_task", launch(&title, &prompt, false));
    }
    let script = Script::new()
        .rule(
            When::always().first("Child:\n").more_in_flight_than(20),
            Reply::status(429).message("slow down"),
        )
        .rule(
            When::always().first("Child:\n"),
            Reply::text("child done").delay(Duration::from_millis(300)),
        )
        .rule(When::turn(0), many)
        .rule(When::always(), Reply::text("ok"));
    let usual = asyncagents_models::Settings::default();
    let plan = Plan {
        attempts: usual.attempts,
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Two hundred").await;
    harness.ended(&session, &prompt).await.said();
    let tasks = harness.tasks(&session).await;
    assert_eq!(tasks.len(), CHILDREN);
    for task in &tasks {
        assert_eq!(task.status(), Status::Completed, "{task:?}");
    }
    let requests = harness.model.requests();
    let refused = requests.iter().filter(|request| request.status == 429);
    assert!(refused.count() > 0, "the provider was never asked too much");
    harness.close().await;
}

#[tokio::test]
async fn a_huge_file_is_shown_in_part() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"path": "huge.txt"})),
        )
        .rule(When::turn(1), Reply::text("Large."));
    let harness = Harness::new(script).await;
    harness.write("huge.txt", &"0123456789 lorem ipsum\n".repeat(500_000));
    assert_eq!(harness.run("Read it").await.said(), "Large.");
    let body = harness.model.requests().pop().expect("a request").body;
    assert!(body.len() < 100_000, "{} bytes", body.len());
    assert!(body.contains("offset="), "it says how to read on");
    harness.close().await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_named() {
    let harness = Harness::new(Script::new()).await;
    let begin = asyncagents_engine::Begin {
        title: String::new(),
        agent: "general".into(),
        model: Some("nowhere/x".to_owned()),
    };
    let error = harness
        .engine
        .begin(begin)
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("`nowhere/x` is not a known model") && error.contains("one of test"),
        "{error}"
    );
    let begin = asyncagents_engine::Begin {
        title: String::new(),
        agent: "wizard".into(),
        model: None,
    };
    let error = harness
        .engine
        .begin(begin)
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        error.ends_with("there is no agent wizard; there are explore, general, plan"),
        "{error}"
    );
    harness.close().await;
}
