//! Slots, queues, and the limits that end a task.

use std::time::Duration;

use asyncagents_core::{
    answer,
    budget::{Budget, Cost},
    id::TaskId,
    port::{Report, SessionEvent},
    progress::Observation,
    question::Question,
    request::TaskArgs,
    task::Status,
    task_limits::TaskLimits,
};
use asyncagents_testkit::scripted_host::{Line, Script, ScriptedHost, Step};
use rstest::rstest;

use super::harness::{Harness, Process, asks, seconds, session, takes, tool, turn};

async fn running(process: &Process, tasks: &[TaskId]) -> Vec<usize> {
    let mut running = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        if process.status(task).await == Status::Running {
            running.push(at);
        }
    }
    running
}

/// When the children were prompted, in order of launch.
fn prompted_at(harness: &Harness, tasks: &[TaskId]) -> Vec<i64> {
    let at = |task: &TaskId| {
        harness.child(task).into_iter().find_map(|line| match line {
            Line::Prompted { at, .. } => Some(at),
            _ => None,
        })
    };
    tasks
        .iter()
        .map(|task| at(task).expect("prompted"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn over_the_limit_tasks_wait_in_the_order_they_came() {
    let harness = Harness::new(Script::of(takes(seconds(10))))
        .with(|settings| settings.limits.concurrency = 2);
    let process = harness.start().await;
    let mut tasks = Vec::new();
    for n in 0..6 {
        tasks.push(process.launch(&format!("task {n}")).await);
    }
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(running(&process, &tasks).await, [0, 1]);
    assert_eq!(process.status(&tasks[2]).await, Status::Queued);
    let list = process.list("main").await;
    assert!(list.contains("6 tasks: 4 queued, 2 running"), "{list}");
    process.settled().await;
    let times = prompted_at(&harness, &tasks);
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(harness.ends_told("main").len(), 6);
    let told = harness.told("main");
    let (last, _) = told.last().expect("told");
    assert!(last.contains("Task Progress: 6/6"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_full_model_does_not_hold_up_the_others() {
    let harness = Harness::new(Script::of(takes(seconds(10)))).with(|settings| {
        settings.limits.per_model.insert("big/one".into(), 1);
    });
    let process = harness.start().await;
    let of = |model: &str, n: usize| TaskArgs {
        model: Some(model.to_owned()),
        ..asks(&format!("{model} {n}"))
    };
    let mut tasks = Vec::new();
    for (n, model) in ["big/one", "big/one", "small/two", "small/two"]
        .iter()
        .enumerate()
    {
        tasks.push(process.launch_args(of(model, n)).await);
    }
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(running(&process, &tasks).await, [0, 2, 3]);
    process.settled().await;
}

#[tokio::test(start_paused = true)]
async fn one_parent_cannot_take_every_slot() {
    let harness = Harness::new(Script::of(takes(seconds(10)))).with(|settings| {
        settings.limits.per_parent = Some(1);
        settings.limits.concurrency = 3;
    });
    let process = harness.start().await;
    let mut tasks = Vec::new();
    for n in 0..3 {
        tasks.push(process.launch(&format!("greedy {n}")).await);
    }
    tasks.push(process.launch_from("modest", "one").await);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(running(&process, &tasks).await, [0, 3]);
    process.settled().await;
}

#[tokio::test(start_paused = true)]
async fn parents_that_fill_all_slots_do_not_starve_their_children() {
    let harness = Harness::new(Script::of(takes(seconds(300))).when("below", takes(seconds(5))))
        .with(|settings| settings.limits.concurrency = 2);
    let process = harness.start().await;
    let parents = [process.launch("one").await, process.launch("two").await];
    for parent in &parents {
        process.until_prompted(parent).await;
    }
    for parent in &parents {
        let inside = ScriptedHost::session_of(parent);
        let below = process.launch_from(inside.as_str(), "below").await;
        process.until_status(&below, Status::Completed).await;
    }
    assert_eq!(running(&process, &parents).await, [0, 1], "still waiting");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_keeps_its_slot_until_its_host_has_stopped() {
    let harness = Harness::new(Script::of(takes(seconds(100))))
        .with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    let first = process.launch("first").await;
    let second = process.launch("second").await;
    process.until_status(&first, Status::Running).await;
    tokio::time::sleep(seconds(1)).await;
    harness.host.faults().slow = seconds(30);
    process
        .manager
        .cancel(&session("main"), first.as_str())
        .await
        .expect("cancelled");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(
        process.status(&second).await,
        Status::Queued,
        "the host is still busy"
    );
    process.until_status(&second, Status::Running).await;
}

/// A child that would go on for an hour, calling a tool and answering every ten seconds.
fn busy() -> Script {
    let mut steps = Vec::new();
    for n in 0..360 {
        steps.push(Step::Wait(seconds(10)));
        steps.push(Step::Tool {
            name: "read".to_owned(),
            input: format!("file {n}"),
        });
        steps.push(turn(1_000));
    }
    Script::of(steps)
}

#[rstest]
#[case::tokens(Budget { tokens: Some(2_500), ..Budget::default() }, "the budget of 2,500 tokens is used up", 30)]
#[case::cost(Budget { cost: Some(Cost(9_000)), ..Budget::default() }, "the budget of $0.009 is used up", 30)]
#[case::turns(Budget { turns: Some(1), ..Budget::default() }, "the budget of 1 turn is used up", 20)]
#[case::tool_calls(Budget { tool_calls: Some(4), ..Budget::default() }, "the budget of 4 tool calls is used up", 50)]
#[case::no_tool_calls(Budget { tool_calls: Some(0), ..Budget::default() }, "the budget of 0 tool calls is used up", 10)]
#[case::no_money(Budget { cost: Some(Cost(0)), ..Budget::default() }, "the budget of $0.00 is used up", 10)]
#[case::time(Budget { time: Some(seconds(100)), ..Budget::default() }, "the time limit of 1m 40s is reached", 90)]
#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_ends_the_task_and_stops_the_child(
    #[case] budget: Budget,
    #[case] why: &str,
    #[case] after: u64,
) {
    let harness = Harness::new(busy());
    let process = harness.start().await;
    let task = process
        .launch_args(TaskArgs {
            budget,
            ..asks("work")
        })
        .await;
    process.settled().await;
    let ended = process.look(&task).await;
    assert_eq!(ended.status(), Status::Error);
    let ran = ended.ran(process.manager.now());
    assert!(
        ran >= seconds(after) && ran < seconds(after + 2),
        "after {ran:?}, not {after} s"
    );
    let hidden = &harness.told("main")[0].1;
    assert!(hidden.contains(why), "{hidden}");
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(harness.child(&task).iter().any(aborted), "for real");
}

#[tokio::test(start_paused = true)]
async fn what_the_tasks_below_spend_counts_too() {
    let harness = Harness::new(busy().when("lead", takes(seconds(3_000))));
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let lead = process
        .launch_args(TaskArgs {
            budget,
            ..asks("lead")
        })
        .await;
    process.until_prompted(&lead).await;
    let inside = ScriptedHost::session_of(&lead);
    let mut below = Vec::new();
    for n in 0..3 {
        below.push(
            process
                .launch_from(inside.as_str(), &format!("work {n}"))
                .await,
        );
    }
    process.settled().await;
    assert_eq!(process.status(&lead).await, Status::Error);
    let mut spent = 0;
    for task in &below {
        assert_eq!(process.status(task).await, Status::Cancelled, "with it");
        spent += process.look(task).await.progress.spent.tokens;
    }
    assert!(spent > 10_000 && spent <= 13_000, "{spent}");
    assert_eq!(process.look(&lead).await.below.tokens, spent);
    assert_eq!(
        harness.told(inside.as_str()).len(),
        0,
        "nobody is left to be told"
    );
    assert!(
        harness.told("main")[0]
            .1
            .contains("10,000 tokens is used up")
    );
}

/// Some agents say only when they have stopped what they have used.
#[tokio::test(start_paused = true)]
async fn what_a_host_counts_of_a_cancelled_task_is_on_the_bill() {
    let harness = Harness::new(busy().when("lead", takes(seconds(3_000))));
    let process = harness.start().await;
    let lead = process.launch("lead").await;
    process.until_prompted(&lead).await;
    harness.host.faults().mute = true;
    harness.host.faults().counts_at_the_end = true;
    let inside = ScriptedHost::session_of(&lead);
    let child = process.launch_from(inside.as_str(), "work").await;
    process.until_prompted(&child).await;
    tokio::time::sleep(seconds(35)).await;
    assert_eq!(process.look(&child).await.progress.spent.tokens, 0);
    let cancelled = process
        .manager
        .cancel(&session(inside.as_str()), child.as_str())
        .await;
    cancelled.expect("cancelled");
    while process.look(&child).await.stopping {
        tokio::time::sleep(seconds(1)).await;
    }
    let spent = process.look(&child).await.progress.spent;
    assert_eq!((spent.tokens, spent.turns, spent.tool_calls), (3_000, 3, 3));
    assert_eq!(process.look(&lead).await.below.tokens, 3_000);
    assert_eq!(process.status(&child).await, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn every_run_has_the_whole_budget() {
    let harness = Harness::new(Script::of([turn(900), Step::Wait(seconds(1))]));
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(1_000),
        ..Budget::default()
    };
    let task = process
        .launch_args(TaskArgs {
            budget,
            ..asks("one")
        })
        .await;
    process.settled().await;
    process.resume(&task, "two").await.expect("resumed");
    process.settled().await;
    let task = process.look(&task).await;
    assert_eq!(task.status(), Status::Completed);
    assert_eq!(task.progress.spent.tokens, 1_800);
}

#[tokio::test(start_paused = true)]
async fn without_progress_for_ten_minutes_a_task_has_stalled() {
    let steps = [Step::Wait(seconds(60)), tool("bash"), Step::Hang];
    let harness = Harness::new(Script::of(steps));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    let ended = process.look(&task).await;
    let ran = ended.ran(process.manager.now());
    assert!(ran >= seconds(660) && ran < seconds(662), "{ran:?}");
    let hidden = &harness.told("main")[0].1;
    assert!(
        hidden.contains("it made no progress for 10m 00s"),
        "{hidden}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_folder_hold_for_the_tasks_in_it() {
    let same = (0..30).flat_map(|_| [Step::Wait(seconds(1)), tool("grep")]);
    let mut harness = Harness::new(Script::of(same));
    harness.limits = Some(TaskLimits {
        same_calls: 5,
        ..harness.settings.limits.clone()
    });
    let process = harness.start().await;
    let looping = process.launch("loop").await;
    process.settled().await;
    assert_eq!(process.look(&looping).await.progress.spent.tool_calls, 5);
}

#[tokio::test(start_paused = true)]
async fn twenty_times_the_same_call_is_a_loop_and_twenty_different_ones_are_work() {
    let same = (0..30).flat_map(|_| [Step::Wait(seconds(1)), tool("grep")]);
    let different = (0..30).flat_map(|n| {
        let name = "grep".to_owned();
        let input = format!("{}", n % 2);
        [Step::Wait(seconds(1)), Step::Tool { name, input }]
    });
    let harness = Harness::new(Script::of(different).when("loop", same));
    let process = harness.start().await;
    let looping = process.launch("loop").await;
    let working = process.launch("work").await;
    process.settled().await;
    assert_eq!(process.status(&working).await, Status::Completed);
    let ended = process.look(&looping).await;
    assert_eq!(ended.status(), Status::Error);
    assert_eq!(ended.progress.spent.tool_calls, 20);
    let said = format!("{:?}", ended.state);
    assert!(
        said.contains("called grep with the same parameters 20 times in a row"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_is_given_up_after_a_minute() {
    let harness = Harness::new(Script::of(takes(seconds(1))));
    let process = harness.start().await;
    process.launch("the agents are known now").await;
    process.settled().await;
    harness.host.faults().slow = Duration::from_secs(100_000);
    let task = process.launch("one").await;
    process.until_status(&task, Status::Error).await;
    let ran = process.look(&task).await.ran(process.manager.now());
    assert!(ran >= seconds(60) && ran < seconds(63), "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_task_has_left_at_work_is_bound_by_its_budget() {
    let harness = Harness::new(busy().when("lead", takes(seconds(15))));
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(10_000),
        ..Budget::default()
    };
    let lead = process
        .launch_args(TaskArgs {
            budget,
            ..asks("lead")
        })
        .await;
    process.until_prompted(&lead).await;
    let inside = ScriptedHost::session_of(&lead);
    for n in 0..4 {
        process
            .launch_from(inside.as_str(), &format!("work {n}"))
            .await;
    }
    process.settled().await;
    let lead = process.look(&lead).await;
    assert_eq!(lead.status(), Status::Completed);
    assert!(
        lead.below.tokens > 10_000 && lead.below.tokens <= 14_000,
        "{:?}",
        lead.below
    );
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_that_waits_is_not_charged_for_the_run_before() {
    let harness = Harness::new(
        Script::of([turn(850), Step::Wait(seconds(30))])
            .when(
                "below",
                [Step::Wait(seconds(60)), turn(200), Step::Wait(seconds(1))],
            )
            .when("blocks", takes(seconds(120))),
    )
    .with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(1_000),
        ..Budget::default()
    };
    let lead = process
        .launch_args(TaskArgs {
            budget,
            ..asks("lead")
        })
        .await;
    process.until_prompted(&lead).await;
    let inside = ScriptedHost::session_of(&lead);
    process.launch_from(inside.as_str(), "below").await;
    process.until_status(&lead, Status::Completed).await;
    process.launch_from("other", "blocks the slot").await;
    process.resume(&lead, "more").await.expect("resumed");
    process.settled().await;
    let lead = process.look(&lead).await;
    assert_eq!(
        lead.status(),
        Status::Completed,
        "850 in each run, and 200 between them"
    );
    assert_eq!(
        (lead.progress.spent.tokens, lead.below.tokens),
        (1_700, 200)
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_user_says_so_and_is_not_stalled() {
    let harness = Harness::new(Script::of([
        tool("read"),
        Step::Ask("permission for bash rm -rf build".to_owned()),
        Step::Wait(seconds(40 * 60)),
        Step::Answered,
        Step::Wait(seconds(5 * 60)),
        Step::Answer("removed".to_owned()),
    ]));
    let process = harness.start().await;
    let task = process.launch("clean up").await;
    // Far beyond the time after which a silent child counts as stalled.
    tokio::time::sleep(seconds(30 * 60)).await;
    let list = process.list("main").await;
    assert!(list.contains("running (asks)"), "{list}");
    let text = "permission for bash rm -rf build";
    let code = Question::permission(text).code("question");
    let question = format!("waits for the user's answer ({code}): {text}");
    assert!(list.contains(&question), "{list}");
    let output = answer::output(
        &process.output(&task).await,
        process.manager.now(),
        answer::Reader::Person,
    );
    assert!(output.contains(&question), "{output}");
    tokio::time::sleep(seconds(11 * 60)).await;
    let list = process.list("main").await;
    assert!(!list.contains("asks"), "{list}");
    process.settled().await;
    assert_eq!(
        process.output(&task).await.answer.as_deref(),
        Some("removed")
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_child_asked_while_nobody_listened_is_found_out() {
    let harness = Harness::new(Script::of([
        Step::Ask("permission for bash make".to_owned()),
        Step::Wait(seconds(30 * 60)),
        Step::Answered,
        Step::Answer("made".to_owned()),
    ]));
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let task = process.launch("build").await;
    tokio::time::sleep(seconds(20 * 60)).await;
    let list = process.list("main").await;
    assert!(list.contains("running (asks)"), "{list}");
    process.settled().await;
    assert_eq!(process.output(&task).await.answer.as_deref(), Some("made"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_heard_of_again_and_again_is_at_work() {
    let harness = Harness::new(Script::of([Step::Hang]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    process.until_prompted(&task).await;
    // Its output grows, for longer than a silent child may take.
    for _ in 0..20 {
        tokio::time::sleep(seconds(60)).await;
        let (tool, call) = ("bash".to_owned(), 1);
        let (key, what) = ("call".to_owned(), Observation::ToolCalled { tool, call });
        let event = SessionEvent::Observed { key, what };
        let session = ScriptedHost::session_of(&task);
        harness.host.report(Report::Session(session, event));
    }
    assert_eq!(process.status(&task).await, Status::Running);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_answered_can_stall_again() {
    let harness = Harness::new(Script::of([
        Step::Ask("permission for bash make".to_owned()),
        Step::Wait(seconds(60)),
        Step::Answered,
        Step::Hang,
    ]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    process.settled().await;
    let task = process.look(&task).await;
    assert_eq!(task.status(), Status::Error);
    assert!(task.progress.asking.is_empty());
}
