//! The last turn of a task that has reached a limit: what it has found so far is not lost.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost},
    id::TaskId,
    request::TaskArgs,
    task::{Phase, Status},
};
use asyncagents_testkit::scripted_host::{Call, LastTurn, Line, Script, ScriptedHost, Step};
use rstest::rstest;

use super::harness::{Harness, Process, asks, seconds, tool, turn, until};

/// Works for ever: a call and an answer of 1,000 tokens every ten seconds.
fn busy() -> Script {
    let mut steps = Vec::new();
    for n in 0..1_000 {
        steps.push(Step::Wait(seconds(10)));
        steps.push(Step::Tool {
            name: "read".to_owned(),
            input: format!("file {n}"),
        });
        steps.push(turn(1_000));
    }
    Script::of(steps)
}

fn says(after: Duration) -> LastTurn {
    LastTurn {
        after,
        text: "So far: the cache is cold.".to_owned(),
        tokens: 700,
        cost: Cost(2_100),
    }
}

async fn launch(process: &Process, budget: Budget) -> TaskId {
    let args = TaskArgs {
        budget,
        ..asks("work")
    };
    process.launch_args(args).await
}

fn questions(harness: &Harness, task: &TaskId) -> Vec<String> {
    let asked = |line| match line {
        Line::AskedOnce { text, .. } => Some(text),
        _ => None,
    };
    harness.child(task).into_iter().filter_map(asked).collect()
}

#[rstest]
#[case::tokens(Budget { tokens: Some(100_000), ..Budget::default() }, "the budget of 100,000 tokens is used up", 910)]
#[case::cost(Budget { cost: Some(Cost(300_000)), ..Budget::default() }, "the budget of $0.30 is used up", 910)]
#[case::time(Budget { time: Some(seconds(100)), ..Budget::default() }, "the time limit of 1m 40s is reached", 90)]
#[case::tool_calls(Budget { tool_calls: Some(4), ..Budget::default() }, "the budget of 4 tool calls is used up", 50)]
#[tokio::test(start_paused = true)]
async fn at_its_limit_a_task_says_what_it_has_found(
    #[case] budget: Budget,
    #[case] why: &str,
    #[case] after: u64,
) {
    let harness = Harness::new(busy().with_last_turn(says(seconds(2))));
    let process = harness.start().await;
    let task = launch(&process, budget).await;
    process.settled().await;
    let report = process.output(&task).await;
    let ended = report.shown.task;
    assert_eq!(ended.status(), Status::Error, "at a limit nothing is done");
    assert_eq!(report.answer.as_deref(), Some("So far: the cache is cold."));
    let ran = ended.ran(process.manager.now());
    assert!(
        ran >= seconds(after + 2) && ran < seconds(after + 4),
        "after {ran:?}, not {after} s and 2 s for the last turn"
    );
    let told = &harness.told("main")[0].1;
    assert!(told.contains(why), "{told}");
    let asked = questions(&harness, &task);
    assert_eq!(asked.len(), 1, "asked once");
    let request = format!("This is your last turn: {why}. Do not call tools.");
    assert!(asked[0].contains(&request), "{}", asked[0]);
    assert!(asked[0].contains("file 1"), "it is told what it did");
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(
        harness.child(&task).iter().any(aborted),
        "its work has stopped"
    );
    let tokens = ended.progress.spent.tokens;
    assert_eq!(
        tokens % 1_000,
        700,
        "the last turn is counted too: {tokens}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_not_waited_for() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(500))));
    let process = harness.start().await;
    let budget = Budget {
        time: Some(seconds(100)),
        ..Budget::default()
    };
    let task = launch(&process, budget).await;
    until("it sums up", async || {
        process.look(&task).await.phase() == Some(Phase::SummingUp)
    })
    .await;
    process.settled().await;
    let report = process.output(&task).await;
    let ended = report.shown.task;
    assert_eq!(ended.status(), Status::Error);
    assert_eq!(report.answer, None);
    let ran = ended.ran(process.manager.now());
    assert!(ran >= seconds(99) && ran <= seconds(102), "after {ran:?}");
}

#[rstest]
#[case::no_money(Budget { cost: Some(Cost(0)), ..Budget::default() })]
#[case::nothing_left(Budget { tokens: Some(500), ..Budget::default() })]
#[tokio::test(start_paused = true)]
async fn zero_stays_zero(#[case] budget: Budget) {
    let harness = Harness::new(busy().with_last_turn(says(seconds(1))));
    let process = harness.start().await;
    let task = launch(&process, budget).await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Error);
    assert_eq!(questions(&harness, &task), [""; 0], "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn who_has_finished_with_the_last_of_its_budget_has_finished() {
    let steps = [
        Step::Wait(seconds(5)),
        tool("read"),
        turn(9_900),
        Step::Answer("Found it.".to_owned()),
    ];
    let harness = Harness::new(Script::of(steps).with_last_turn(says(seconds(1))));
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let task = launch(&process, budget).await;
    process.settled().await;
    let report = process.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Completed);
    assert_eq!(report.answer.as_deref(), Some("Found it."));
    assert_eq!(questions(&harness, &task), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_does_not_hold_up_the_end() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(1))));
    harness.host.faults().fail.insert(Call::AskOnce, 1);
    let process = harness.start().await;
    let budget = Budget {
        tool_calls: Some(2),
        ..Budget::default()
    };
    let task = launch(&process, budget).await;
    process.settled().await;
    let report = process.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Error);
    assert_eq!(report.answer, None);
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_in_the_last_turn_leaves_a_task_that_ends_at_its_limit() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(5))));
    let first = harness.start().await;
    let budget = Budget {
        time: Some(seconds(100)),
        ..Budget::default()
    };
    let task = launch(&first, budget).await;
    until("its last turn is asked for", async || {
        !questions(&harness, &task).is_empty()
    })
    .await;
    first.worker.kill();
    let second = harness.start().await;
    second.settled().await;
    let report = second.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Error);
    let told = harness.told("main");
    assert_eq!(told.len(), 1, "once");
    assert!(told[0].1.contains("the time limit of 1m 40s is reached"));
    assert_eq!(
        questions(&harness, &task).len(),
        1,
        "and not paid for twice"
    );
}

#[tokio::test(start_paused = true)]
async fn after_its_last_turn_a_task_can_be_resumed() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(1))).when(
        "go on",
        [Step::Wait(seconds(1)), Step::Answer("Done.".to_owned())],
    ));
    let process = harness.start().await;
    let budget = Budget {
        tool_calls: Some(2),
        ..Budget::default()
    };
    let task = launch(&process, budget).await;
    process.settled().await;
    process.resume(&task, "go on").await.expect("resumed");
    process.settled().await;
    let report = process.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Completed);
    assert_eq!(report.answer.as_deref(), Some("Done."));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_changed_hands_long_ago_has_its_last_turn() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(1))));
    let first = harness.start().await;
    let budget = Budget {
        time: Some(seconds(600)),
        ..Budget::default()
    };
    let task = launch(&first, budget).await;
    first.until_prompted(&task).await;
    first.worker.kill();
    let second = harness.start().await;
    second.settled().await;
    let report = second.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Error);
    assert_eq!(report.answer.as_deref(), Some("So far: the cache is cold."));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_back_is_not_for_the_tasks_below() {
    let harness = Harness::new(busy());
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(10_000),
        cost: Some(Cost(1_000_000)),
        time: Some(seconds(100)),
        ..Budget::default()
    };
    let lead = launch(&process, budget).await;
    process.until_prompted(&lead).await;
    let inside = ScriptedHost::session_of(&lead);
    let below = process.launch_from(inside.as_str(), "below").await;
    let granted = process.look(&below).await.budget;
    assert_eq!(granted.tokens, Some(9_000));
    assert_eq!(granted.cost, Some(Cost(900_000)));
    assert!(granted.time.is_some_and(|time| time <= seconds(90)));
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_beside_a_session_stays_counted_when_the_task_goes_on() {
    let harness = Harness::new(busy().with_last_turn(says(seconds(1))).when(
        "go on",
        [
            Step::Wait(seconds(1)),
            turn(100),
            Step::Answer("Done.".to_owned()),
        ],
    ));
    let process = harness.start().await;
    let budget = Budget {
        tool_calls: Some(2),
        ..Budget::default()
    };
    let task = launch(&process, budget).await;
    process.settled().await;
    let before = process.look(&task).await.progress.spent;
    process.resume(&task, "go on").await.expect("resumed");
    process.settled().await;
    let after = process.look(&task).await.progress.spent;
    assert_eq!(after.tokens, before.tokens + 100, "of {before:?}");
}

#[tokio::test(start_paused = true)]
async fn who_only_waits_for_its_tasks_is_not_done_at_its_limit() {
    let steps = [
        Step::Wait(seconds(10)),
        turn(9_500),
        Step::Answer("Launched.".to_owned()),
    ];
    let harness = Harness::new(busy().when("lead", steps));
    harness.host.faults().notices_wake = true;
    let process = harness.start().await;
    let args = TaskArgs {
        budget: Budget {
            tokens: Some(10_000),
            ..Budget::default()
        },
        ..asks("lead")
    };
    let lead = process.launch_args(args).await;
    process.until_prompted(&lead).await;
    let inside = ScriptedHost::session_of(&lead);
    process.launch_from(inside.as_str(), "below").await;
    process.settled().await;
    let report = process.output(&lead).await;
    assert_eq!(report.shown.task.status(), Status::Error);
    assert_eq!(
        report.answer.as_deref(),
        Some("Launched."),
        "what it said is kept"
    );
}
