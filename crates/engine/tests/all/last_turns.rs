//! The last turn of a task of the built-in agent: within what was kept back of its budget, without
//! tools, and with what it has found so far.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost},
    id::{SessionId, TaskId},
    request::{Caller, OutputRequest},
    task::{Outcome, State, Task},
};
use asyncagents_models::Wire;
use asyncagents_scripted_model::{Gate, Recorded, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    delegating::launch,
    harness::{Harness, Plan},
};

/// A lead that launches one child, and is told.
fn lead() -> Script {
    Script::new()
        .rule(
            When::turn(0).first("Lead"),
            Reply::call("asyncagents_task", launch("work", "Child: work", false)),
        )
        .rule(When::always().first("Lead"), Reply::text("Told."))
}

fn limited(budget: Budget) -> Plan {
    let prices = r#"{"test/model":{"input":2,"output":10,"window":200000,"max_output":20000}}"#;
    let mut plan = Plan {
        prices: Some(prices.to_owned()),
        ..Plan::default()
    };
    plan.runtime.limits.budget = budget;
    plan
}

/// Reads one file after the other, each answer with so many tokens.
fn reads(script: Script, input: u64) -> Script {
    (0..9).fold(script, |script, n| {
        let path = format!("file{n}.txt");
        let reply = Reply::call("read", json!({"path": path}))
            .and_text(format!("Reading {path}."))
            .usage(input, 0, 100);
        script.rule(When::turn(n).first("Child").lacks("last turn"), reply)
    })
}

fn sums_up(script: Script) -> Script {
    let last = Reply::text("So far: file0 is empty.").usage(1_500, 0, 50);
    script.rule(When::always().contains("This is your last turn"), last)
}

/// Runs the lead to its end, and returns the child and what it said.
async fn child(harness: &Harness) -> (Task, Option<String>) {
    let session: SessionId = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Lead").await;
    harness.ended(&session, &prompt).await.said();
    let tasks = harness.tasks(&session).await;
    let id: TaskId = tasks[0].id.clone();
    let request = OutputRequest::new(id.as_str(), false, None).expect("a request");
    let report = harness.manager.output(&Caller::Person, request).await;
    (tasks[0].clone(), report.expect("a report").answer)
}

fn why(task: &Task) -> &str {
    match &task.state {
        State::Ended {
            outcome: Outcome::Failed { why },
            ..
        } => why,
        other => panic!("{other:?}"),
    }
}

fn last_request(harness: &Harness) -> Recorded {
    let requests = harness.model.requests().into_iter();
    let mut last = requests.filter(|request| request.text().contains("This is your last turn"));
    let found = last.next().expect("a last turn");
    assert!(last.next().is_none(), "only one");
    found
}

#[rstest]
#[case::tokens(Budget { tokens: Some(30_000), ..Budget::default() }, "the budget of 30,000 tokens is used up")]
#[case::money(Budget { cost: Some(Cost(100_000)), ..Budget::default() }, "the budget of $0.10 is used up")]
#[tokio::test]
async fn before_a_budget_is_used_up_the_child_sums_up(#[case] budget: Budget, #[case] used: &str) {
    let harness = Harness::with(sums_up(reads(lead(), 8_000)), limited(budget)).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), used);
    assert_eq!(said.as_deref(), Some("So far: file0 is empty."));
    let last = last_request(&harness).json();
    // What was kept back does not pay for the whole conversation.
    assert_eq!(last["messages"].as_array().map(Vec::len), Some(1), "{last}");
    assert!(last["messages"].to_string().contains("Reading file0.txt"));
    assert_eq!(last.get("tools"), None, "no tools");
    let most = last["max_tokens"].as_u64().expect("limited");
    assert!((300..=1_000).contains(&most), "{most}");
    // Nothing is over the budget, with the last turn counted in.
    let spent = task.progress.spent;
    assert!(
        budget.tokens.is_none_or(|most| spent.tokens <= most),
        "{spent:?}"
    );
    assert!(
        budget.cost.is_none_or(|most| spent.cost <= most),
        "{spent:?}"
    );
    harness.close().await;
}

/// A model that is out of quota when it is to sum up is replaced as at any other time. If there is
/// no other, what was said before counts, and the task has ended at its limit all the same.
#[rstest]
#[case::replaced(&["test/second"], "So far: file0 is empty.")]
#[case::none_left(&[], "Reading file2.txt.")]
#[tokio::test]
async fn a_model_out_of_quota_is_replaced_for_the_last_turn(
    #[case] fallbacks: &'static [&str],
    #[case] says: &str,
) {
    let budget = Budget {
        tokens: Some(100_000),
        tool_calls: Some(2),
        ..Budget::default()
    };
    let plan = Plan {
        attempts: 2,
        settings: Box::new(|settings| {
            let policy = &mut settings.model_policy;
            policy.fallbacks = fallbacks.iter().map(|&model| model.into()).collect();
        }),
        ..limited(budget)
    };
    let out_of_quota = Reply::status(429)
        .code("insufficient_quota")
        .message("the credit is used up");
    let last = When::always()
        .contains("This is your last turn")
        .model("model");
    let script = reads(lead(), 2_000).rule(last, out_of_quota);
    let harness = Harness::with(sums_up(script), plan).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), "the budget of 2 tool calls is used up");
    assert_eq!(said.as_deref(), Some(says));
    let models = task.progress.fallbacks.iter().map(|one| one.to.as_str());
    assert_eq!(models.collect::<Vec<_>>(), fallbacks);
    harness.close().await;
}

#[rstest]
#[case(Wire::Anthropic, "max_tokens")]
#[case(Wire::Chat, "max_tokens")]
#[case(Wire::Responses, "max_output_tokens")]
#[tokio::test]
async fn what_fits_is_asked_as_it_is_and_the_answer_is_bounded(
    #[case] wire: Wire,
    #[case] key: &str,
) {
    let budget = Budget {
        tokens: Some(100_000),
        tool_calls: Some(2),
        ..Budget::default()
    };
    let plan = Plan {
        wire,
        ..limited(budget)
    };
    let harness = Harness::with(sums_up(reads(lead(), 2_000)), plan).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), "the budget of 2 tool calls is used up");
    assert_eq!(said.as_deref(), Some("So far: file0 is empty."));
    assert_eq!(task.progress.spent.tool_calls, 2, "the third was not run");
    let last = last_request(&harness).json();
    assert!(
        last["tools"].is_array(),
        "declared, so that the cache knows them"
    );
    let forbidden = [json!("none"), json!({"type": "none"})];
    assert!(forbidden.contains(&last["tool_choice"]), "{last}");
    assert!(
        last[key].as_u64().is_some_and(|most| most <= 10_000),
        "{last}"
    );
    assert!(last.to_string().contains("Reading file1.txt"), "all of it");
    harness.close().await;
}

#[tokio::test]
async fn where_the_last_turn_cannot_be_paid_what_was_said_is_kept() {
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let harness = Harness::with(reads(lead(), 4_000), limited(budget)).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), "the budget of 10,000 tokens is used up");
    assert_eq!(said.as_deref(), Some("Reading file1.txt."));
    harness.close().await;
}

#[tokio::test]
async fn when_the_time_is_nearly_up_the_work_is_stopped_for_the_last_turn() {
    let gate = Gate::closed();
    let script = lead()
        .rule(
            When::turn(0).first("Child"),
            Reply::call("read", json!({"path": "file0.txt"})).and_text("Reading."),
        )
        .rule(
            When::turn(1).first("Child").lacks("last turn"),
            Reply::text("Never said.").behind(&gate),
        );
    let budget = Budget {
        time: Some(Duration::from_secs(10)),
        ..Budget::default()
    };
    let harness = Harness::with(sums_up(script), limited(budget)).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), "the time limit of 10s is reached");
    assert_eq!(said.as_deref(), Some("So far: file0 is empty."));
    let ran = task.ran(harness.manager.now());
    assert!(
        ran >= Duration::from_secs(9) && ran <= Duration::from_secs(10),
        "{ran:?}"
    );
    gate.open();
    harness.close().await;
}

#[tokio::test]
async fn a_tool_that_is_called_in_the_last_turn_is_not_run() {
    let write = json!({"path": "made.txt", "content": "x"});
    let script = reads(lead(), 2_000).rule(
        When::always().contains("This is your last turn"),
        Reply::call("write", write).and_text("One more thing."),
    );
    let budget = Budget {
        tool_calls: Some(1),
        ..Budget::default()
    };
    let mut plan = limited(budget);
    plan.settings = Box::new(|settings| {
        settings.permissions.mode = asyncagents_core::agent::Mode::Yolo;
    });
    let harness = Harness::with(script, plan).await;
    let (task, said) = child(&harness).await;
    assert_eq!(why(&task), "the budget of 1 tool call is used up");
    assert_eq!(said.as_deref(), Some("One more thing."));
    assert!(!harness.path("made.txt").exists());
    assert_eq!(task.progress.spent.tool_calls, 1);
    let _: Value = last_request(&harness).json();
    harness.close().await;
}

#[tokio::test]
async fn a_child_that_ends_within_its_budget_knows_of_no_last_turn() {
    let script = lead().rule(
        When::turn(0).first("Child"),
        Reply::text("Done at once.").usage(9_800, 0, 100),
    );
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let harness = Harness::with(script, limited(budget)).await;
    let (task, said) = child(&harness).await;
    assert!(matches!(
        task.state,
        State::Ended {
            outcome: Outcome::Completed,
            ..
        }
    ));
    assert_eq!(said.as_deref(), Some("Done at once."));
    harness.close().await;
}

#[tokio::test]
async fn an_error_in_the_last_of_so_many_answers_is_called_what_it_is() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("read", json!({"path": "x"})))
        .rule(
            When::turn(1),
            Reply::status(400).message("the model is on strike"),
        );
    let plan = Plan {
        settings: Box::new(|settings| settings.max_turns = Some(2)),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let ended = harness.run("Look").await;
    assert!(ended.error().contains("on strike"), "{ended:?}");
    let last = last_request(&harness).json();
    assert_eq!(last["tool_choice"], json!({"type": "none"}));
    harness.close().await;
}
