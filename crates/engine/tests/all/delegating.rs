//! Background tasks of the built-in agent: what they inherit, and how their parent is told.

use asyncagents_core::task::{Outcome, State, Task};
use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};

use crate::harness::{Harness, Plan};

pub(crate) fn launch(description: &str, prompt: &str, fork: bool) -> Value {
    json!({"description": description, "prompt": prompt, "agent": "general", "fork": fork})
}

fn outcome(task: &Task) -> Outcome {
    match &task.state {
        State::Ended { outcome, .. } => outcome.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_forked_child_knows_what_its_parent_has_read_and_a_fresh_one_does_not() {
    let script = Script::new()
        .rule(
            When::always().first("Forked:\nuse it"),
            Reply::text("The number is 4711."),
        )
        .rule(
            When::always().first("Fresh:\nguess it"),
            Reply::text("I know of no number."),
        )
        .rule(
            When::turn(0),
            Reply::call("read", json!({"path": "secret.txt"})),
        )
        .rule(
            When::turn(1),
            Reply::call("asyncagents_task", launch("knows", "Forked:\nuse it", true)).and_call(
                "asyncagents_task",
                launch("guesses", "Fresh:\nguess it", false),
            ),
        )
        .rule(When::always(), Reply::text("Seen."));
    let harness = Harness::new(script).await;
    harness.write("secret.txt", "the number is 4711\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Find the number").await;
    harness.ended(&session, &prompt).await.said();
    let own = |body: &&String, prompt: &str| {
        let body: Value = serde_json::from_str(body).expect("JSON");
        body["messages"][0]
            .to_string()
            .contains(&json!(prompt).to_string()[1..prompt.len()])
    };
    let bodies = harness.bodies("");
    let forked = bodies
        .iter()
        .find(|body| own(body, "Forked:\nuse it"))
        .expect("a request");
    let fresh = bodies
        .iter()
        .find(|body| own(body, "Fresh:\nguess it"))
        .expect("a request");
    assert!(forked.contains("the number is 4711"), "{forked}");
    assert!(forked.contains("<inherited_context>"));
    assert!(!fresh.contains("4711"), "{fresh}");
    harness.close().await;
}

#[tokio::test]
async fn a_run_waits_for_its_tasks_and_is_told_of_each_once() {
    let script = Script::new()
        .rule(
            When::always().first("Child:\n"),
            Reply::text("Child is done."),
        )
        .rule(
            When::turn(0).first("Five"),
            (1..5).fold(
                Reply::call("asyncagents_task", launch("task 0", "Child:\n0", false)),
                |reply, n| {
                    let prompt = format!("Child:\n{n}");
                    reply.and_call(
                        "asyncagents_task",
                        launch(&format!("task {n}"), &prompt, false),
                    )
                },
            ),
        )
        .rule(
            When::always().contains("All 5 tasks finished"),
            Reply::text("All five."),
        )
        .rule(When::always(), Reply::text("waiting"));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Five children, please").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "All five.");
    let tasks = harness.tasks(&session).await;
    assert_eq!(tasks.len(), 5);
    let last = harness
        .model
        .requests()
        .into_iter()
        .max_by_key(|request| request.body.len());
    let text = last.expect("a request").text();
    for n in 0..5 {
        let told = format!("Agent \"task {n}\" finished");
        assert_eq!(text.matches(&told).count(), 1, "{text}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_child_that_delegates_waits_for_its_own_children() {
    let script = Script::new()
        .rule(When::always().first("Leaf:\n"), Reply::text("leaf 42"))
        .rule(
            When::turn(0).first("Middle:\n"),
            Reply::call("asyncagents_task", launch("leaf", "Leaf:\nx", false)),
        )
        .rule(
            When::always()
                .first("Middle:\n")
                .contains("Agent \"leaf\" finished"),
            Reply::text("middle has heard of the leaf"),
        )
        .rule(When::always().first("Middle:\n"), Reply::text("waiting"))
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("middle", "Middle:\nx", false)),
        )
        .rule(When::always(), Reply::text("done"));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Top").await;
    harness.ended(&session, &prompt).await.said();
    let middle = harness.tasks(&session).await.pop().expect("a task");
    assert_eq!(outcome(&middle), Outcome::Completed);
    let below = middle.session.expect("a session");
    let leaf = harness.tasks(&below).await.pop().expect("a task");
    assert_eq!(outcome(&leaf), Outcome::Completed);
    // At the depth limit nobody is offered to launch more.
    let leafs = harness.model.requests();
    let leafs = leafs
        .iter()
        .find(|request| request.text().contains("Leaf:\nx") && request.turn() == 0);
    let names = leafs.expect("a request").tool_names();
    assert!(
        !names.iter().any(|name| name.starts_with("asyncagents_")),
        "{names:?}"
    );
    harness.close().await;
}

#[tokio::test]
async fn what_everybody_used_adds_up() {
    let script = Script::new()
        .rule(
            When::always().first("Child:\n"),
            Reply::text("done").usage(100, 40, 10),
        )
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("a", "Child:\na", false))
                .and_call("asyncagents_task", launch("b", "Child:\nb", false))
                .usage(1_000, 0, 100),
        )
        .rule(When::always(), Reply::text("ok").usage(2_000, 1_000, 10));
    let prices = r#"{"test/model":{"input":2,"output":10,"cache_read":1,"window":100000,"max_output":1000}}"#;
    let plan = Plan {
        prices: Some(prices.to_owned()),
        wire: asyncagents_models::Wire::Chat,
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Two").await;
    harness.ended(&session, &prompt).await.said();
    let requests = harness.model.requests();
    let of_lead = requests.iter().filter(|request| request.turn() > 0).count() as u64;
    let (own, usage) = harness.used(&session).await;
    assert_eq!(own.tokens, 1_100 + of_lead * 2_010);
    assert_eq!(
        (usage.input, usage.cache_read),
        (1_000 + of_lead * 1_000, of_lead * 1_000)
    );
    assert_eq!(own.cost.0, 2_000 + 1_000 + of_lead * (2_000 + 1_000 + 100));
    for task in harness.tasks(&session).await {
        assert_eq!(task.progress.spent.tokens, 110);
        assert_eq!(task.progress.spent.cost.0, 60 * 2 + 40 + 10 * 10);
        assert_eq!(task.progress.spent.turns, 1);
    }
    harness.close().await;
}

#[tokio::test]
async fn a_task_is_resumed_with_its_full_history() {
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("read", json!({"path": "a.txt"})),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("first answer"))
        .rule(
            When::turn(2).first("Child:\n"),
            Reply::text("second answer"),
        )
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("child", "Child:\nx", false)),
        )
        .rule(
            When::always()
                .contains("Agent \"child\" finished")
                .lacks("goes on with your follow-up")
                .capture("id", "Task (task_[0-9a-f]+) is"),
            Reply::call(
                "asyncagents_task",
                json!({"resume": "{{id}}", "prompt": "And now?"}),
            ),
        )
        .rule(
            When::always()
                .contains("Resume #1 completed")
                .lacks("second answer")
                .capture("id", "Task (task_[0-9a-f]+) is"),
            Reply::call("asyncagents_output", json!({"task_id": "{{id}}"})),
        )
        .rule(When::always(), Reply::text("ok"));
    let harness = Harness::new(script).await;
    harness.write("a.txt", "history\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    harness.ended(&session, &prompt).await.said();
    let resumed = harness.bodies("And now?");
    let of_child = |body: &&String| body.contains("first answer") && !body.contains("Delegate");
    let resumed = resumed.iter().find(of_child);
    assert!(resumed.expect("a request").contains("history"));
    let seen = harness
        .model
        .requests()
        .iter()
        .any(|request| request.last().contains("second answer"));
    assert!(seen, "the parent reads the second answer");
    harness.close().await;
}
