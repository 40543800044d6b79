//! How tasks end, what their host is asked, and what goes with them.

use asyncagents_core::{
    budget::Budget,
    id::TaskId,
    port::{Report, SessionEvent},
    request::TaskArgs,
    task::Status,
};
use asyncagents_testkit::scripted_host::{Call, Line, Script, ScriptedHost, Step};

use super::{
    harness::{Harness, Process, asks, seconds, session, takes, tool, turn, usual},
    refusals::refused_resume,
};

fn aborted(harness: &Harness, task: &TaskId) -> bool {
    let lines = harness.child(task);
    lines
        .iter()
        .any(|line| matches!(line, Line::Aborted { .. }))
}

#[tokio::test(start_paused = true)]
async fn while_reports_come_the_host_is_not_asked() {
    let mut steps: Vec<Step> = Vec::new();
    for n in 0..20 {
        steps.push(Step::Wait(seconds(30)));
        steps.push(Step::Tool {
            name: "read".to_owned(),
            input: n.to_string(),
        });
    }
    let harness = Harness::new(Script::of(steps));
    let process = harness.start().await;
    process.launch("ten minutes of work").await;
    process.settled().await;
    let asked = harness.host.faults().asked.clone();
    assert_eq!(asked[&Call::Inspect], 1, "once, at the end: {asked:?}");
    assert_eq!(asked[&Call::Prompt], 1);
    assert_eq!(
        asked.get(&Call::Messages),
        None,
        "a fresh task reads nobody"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_did_not_answer_at_the_end_is_asked_again_soon() {
    let harness = Harness::new(usual());
    harness.host.faults().fail.insert(Call::Inspect, 3);
    let process = harness.start().await;
    let begun = tokio::time::Instant::now();
    let task = process.launch("one").await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    // Not only after a long silence.
    assert!(begun.elapsed() < seconds(10), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn reports_that_come_twice_count_once() {
    let harness = Harness::new(usual());
    harness.host.faults().repeat = true;
    let process = harness.start().await;
    let task = process.launch("one").await;
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let spent = process.look(&task).await.progress.spent;
    assert_eq!((spent.tool_calls, spent.tokens), (2, 1_000));
    process.settled().await;
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reports_that_never_come_are_made_up_for() {
    let harness = Harness::new(usual());
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    let ended = process.look(&task).await;
    assert_eq!(ended.status(), Status::Completed);
    assert_eq!(ended.progress.spent.tool_calls, 2);
    assert_eq!(ended.progress.spent.tokens, 1_000);
    let ran = ended.ran(process.manager.now());
    assert!(
        ran < seconds(65),
        "found out after a minute of silence: {ran:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_is_made_up_for_at_once() {
    let harness = Harness::new(usual());
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(
        process.status(&task).await,
        Status::Running,
        "nobody knows yet"
    );
    harness.host.faults().mute = false;
    harness.host.report(Report::Missed);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(process.status(&task).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_idle_report_before_the_end_ends_nothing() {
    let harness = Harness::new(Script::of(takes(seconds(100))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    let session = ScriptedHost::session_of(&task);
    for _ in 0..3 {
        harness
            .host
            .report(Report::Session(session.clone(), SessionEvent::Idle));
    }
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(process.status(&task).await, Status::Running);
    process.settled().await;
    assert_eq!(
        process.output(&task).await.answer.as_deref(),
        Some("ok: one")
    );
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_stopped_in_the_middle_ends_the_task_with_a_reason_and_it_can_be_resumed() {
    let harness = Harness::new(Script::of(takes(seconds(100))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.host.restart().expect("restarted");
    process.until_status(&task, Status::Error).await;
    process.settled().await;
    let hidden = &harness.told("main")[0].1;
    assert!(
        hidden.contains("its host was stopped while it worked; resume it"),
        "{hidden}"
    );
    process.resume(&task, "go on").await.expect("resumed");
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(
        harness.prompts(&task),
        ["one", "go on"],
        "nothing ran twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_session_is_deleted_has_failed() {
    let harness = Harness::new(Script::of(takes(seconds(100))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    let session = ScriptedHost::session_of(&task);
    asyncagents_core::port::Host::delete(&harness.host, &session)
        .await
        .expect("deleted");
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Error);
    assert!(
        harness.told("main")[0]
            .1
            .contains("its session was deleted")
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_the_child_and_everything_below_it() {
    let harness = Harness::new(Script::of(takes(seconds(500))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    let one = process.launch_from(inside.as_str(), "below one").await;
    let two = process.launch_from(inside.as_str(), "below two").await;
    process.until_prompted(&one).await;
    process.until_prompted(&two).await;
    let other = process.launch("other").await;
    let cancelled = process
        .manager
        .cancel(&session("main"), &child.as_str()[..13])
        .await;
    let said = cancelled.expect("cancelled").text();
    assert_eq!(
        said,
        format!("Cancelled {} and 2 tasks below it.", &child.as_str()[..13])
    );
    for task in [&child, &one, &two] {
        assert_eq!(process.status(task).await, Status::Cancelled, "at once");
    }
    process.settled().await;
    for task in [&child, &one, &two] {
        assert!(aborted(&harness, task), "for real");
    }
    assert_eq!(
        process.status(&other).await,
        Status::Completed,
        "not touched"
    );
    assert_eq!(
        harness.told(inside.as_str()).len(),
        0,
        "nobody is woken there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_is_cancelled_without_ever_beginning() {
    let harness = Harness::new(Script::of(takes(seconds(100))))
        .with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    process.launch("first").await;
    let second = process.launch("second").await;
    process
        .manager
        .cancel(&session("main"), second.as_str())
        .await
        .expect("cancelled");
    process.settled().await;
    assert_eq!(harness.child(&second), [], "the host never heard of it");
    let refused = refused_resume(&process, &second).await;
    assert!(
        refused.contains("start a new asyncagents_task"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_stop_is_told_until_it_does() {
    let harness = Harness::new(Script::of(takes(seconds(600))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.host.faults().fail.insert(Call::Abort, 5);
    process
        .manager
        .cancel(&session("main"), task.as_str())
        .await
        .expect("cancelled");
    process.settled().await;
    assert!(aborted(&harness, &task));
    assert_eq!(harness.host.faults().asked[&Call::Abort], 6);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_task_is_not_stopped_by_what_stopped_it_before() {
    let harness = Harness::new(Script::of(takes(seconds(20))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.host.faults().fail.insert(Call::Abort, 3);
    process
        .manager
        .cancel(&session("main"), task.as_str())
        .await
        .expect("cancelled");
    process.resume(&task, "after all").await.expect("resumed");
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(
        process.output(&task).await.answer.as_deref(),
        Some("ok: after all")
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_arrived_though_its_answer_was_lost_is_not_sent_again() {
    let harness = Harness::new(usual());
    harness.host.faults().lose_answer.insert(Call::Prompt, 1);
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(harness.prompts(&task), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_never_arrived_ends_the_task() {
    let harness = Harness::new(usual());
    harness.host.faults().fail.insert(Call::Prompt, 1);
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Error);
    assert!(
        harness.told("main")[0]
            .1
            .contains("its prompt could not be sent")
    );
    assert_eq!(harness.prompts(&task), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn progress_adds_up_over_runs() {
    let harness = Harness::new(Script::of([
        tool("grep"),
        turn(100),
        Step::Wait(seconds(1)),
        tool("grep"),
        tool("read"),
        turn(50),
    ]));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    process.resume(&task, "two").await.expect("resumed");
    process.settled().await;
    let progress = process.look(&task).await.progress;
    assert_eq!(progress.spent.tool_calls, 6);
    assert_eq!(progress.spent.tokens, 300);
    assert_eq!(progress.by_tool["grep"], 4);
    assert_eq!(progress.by_tool["read"], 2);
}

/// A child that has completed and left one of its own at work.
async fn left_behind(harness: &Harness) -> (Process, TaskId, TaskId) {
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    let below = process.launch_from(inside.as_str(), "below").await;
    process.until_prompted(&below).await;
    process.until_status(&child, Status::Completed).await;
    (process, child, below)
}

fn leaves_work() -> Script {
    Script::of(takes(seconds(20))).when("below", takes(seconds(500)))
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_what_an_ended_task_has_left_at_work() {
    let harness = Harness::new(leaves_work());
    let (process, child, below) = left_behind(&harness).await;
    let cancelled = process
        .manager
        .cancel(&session("main"), child.as_str())
        .await;
    let said = cancelled.expect("cancelled").text();
    let shown = &child.as_str()[..13];
    assert_eq!(
        said,
        format!("{shown} had ended already (completed). Cancelled 1 task below it.")
    );
    process.settled().await;
    assert!(aborted(&harness, &below));
    assert_eq!(process.status(&child).await, Status::Completed, "as it was");
}

#[tokio::test(start_paused = true)]
async fn clear_stops_what_an_ended_task_has_left_at_work() {
    let harness = Harness::new(leaves_work());
    let (process, _, below) = left_behind(&harness).await;
    let cleared = process
        .manager
        .clear(&"main".into())
        .await
        .expect("cleared");
    assert_eq!((cleared.tasks, cleared.stopped), (1, 1));
    process.settled().await;
    assert!(aborted(&harness, &below));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_parent_takes_what_an_ended_task_has_left_at_work_with_it() {
    let harness = Harness::new(leaves_work());
    let (process, _, below) = left_behind(&harness).await;
    asyncagents_core::port::Host::delete(&harness.host, &"main".into())
        .await
        .expect("deleted");
    process.settled().await;
    assert!(aborted(&harness, &below));
}

#[tokio::test(start_paused = true)]
async fn a_child_at_work_whose_reports_are_lost_has_not_stalled() {
    let steps = (0..20).flat_map(|n| {
        let (name, input) = ("read".to_owned(), n.to_string());
        [Step::Wait(seconds(100)), Step::Tool { name, input }]
    });
    let harness = Harness::new(Script::of(steps));
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let task = process.launch("half an hour of work").await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(process.look(&task).await.progress.spent.tool_calls, 20);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_there_is_not_thrown_away_because_it_cost_too_much() {
    let harness = Harness::new(usual());
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(500),
        ..Budget::default()
    };
    let task = process
        .launch_args(TaskArgs {
            budget,
            ..asks("one")
        })
        .await;
    process.settled().await;
    let report = process.output(&task).await;
    assert_eq!(report.shown.task.status(), Status::Completed);
    assert_eq!(report.answer.as_deref(), Some("Found: one"));
    assert_eq!(report.shown.task.progress.spent.tokens, 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_gone_for_good_does_not_keep_its_slot() {
    let harness = Harness::new(Script::of(takes(seconds(500))))
        .with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    let first = process.launch("first").await;
    process.until_prompted(&first).await;
    harness.host.faults().fail.insert(Call::Abort, u32::MAX);
    process
        .manager
        .cancel(&session("main"), first.as_str())
        .await
        .expect("cancelled");
    let second = process.launch("second").await;
    process.until_status(&second, Status::Running).await;
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_below_a_task_that_has_ended() {
    let script = Script::of(takes(seconds(500))).when("short", takes(seconds(20)));
    let harness = Harness::new(script).with(|settings| settings.limits.depth = 3);
    let process = harness.start().await;
    let top = process.launch("top").await;
    process.until_prompted(&top).await;
    let inside = ScriptedHost::session_of(&top);
    let middle = process.launch_from(inside.as_str(), "short").await;
    process.until_prompted(&middle).await;
    let inside = ScriptedHost::session_of(&middle);
    let bottom = process.launch_from(inside.as_str(), "bottom").await;
    process.until_prompted(&bottom).await;
    process.until_status(&middle, Status::Completed).await;
    let cancelled = process.manager.cancel(&session("main"), top.as_str()).await;
    assert_eq!(cancelled.expect("cancelled").below, 1);
    process.settled().await;
    assert!(aborted(&harness, &bottom));
    assert_eq!(
        process.status(&middle).await,
        Status::Completed,
        "as it was"
    );
}
