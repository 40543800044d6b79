//! Processes die and are stopped; tasks go on.

use std::{sync::atomic::Ordering, time::Duration};

use asyncagents_core::{
    answer,
    event::Event,
    host_ref::HostRef,
    lifecycle,
    port::{Report, SessionEvent},
    progress::Observation,
    request::{Caller, TaskArgs},
    task::{State, Status},
};
use asyncagents_testkit::opencode::{Session, result};
use asyncagents_testkit::scripted_host::{Call, Line, Script, ScriptedHost, Step};

use super::harness::{Harness, asks, events, seconds, session, takes, until, usual};

fn times_prompted(harness: &Harness, task: &asyncagents_core::id::TaskId) -> usize {
    harness.prompts(task).len()
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_worker_dies_is_followed_to_its_end_by_the_next() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    drop(first);
    let second = harness.start().await;
    assert_eq!(second.status(&task).await, Status::Running, "not lost");
    second.settled().await;
    assert_eq!(
        second.output(&task).await.answer.as_deref(),
        Some("ok: one")
    );
    assert_eq!(times_prompted(&harness, &task), 1, "nothing ran twice");
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ended_while_nobody_was_there_is_found_ended() {
    let harness = Harness::new(usual());
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    drop(first);
    tokio::time::sleep(seconds(3_600)).await;
    let second = harness.start().await;
    tokio::time::sleep(seconds(2)).await;
    let ended = second.look(&task).await;
    assert_eq!(ended.status(), Status::Completed);
    assert_eq!(
        ended.progress.spent.tool_calls, 2,
        "what was missed is counted"
    );
    second.settled().await;
    assert_eq!(harness.told("main").len(), 1);
}

/// Kills the worker as soon as the host was asked for something so many times.
async fn killed_at(call: Call, script: Script) -> (Harness, asyncagents_core::id::TaskId) {
    let harness = Harness::new(script);
    let first = harness.start().await;
    let warm_up = first.launch("warm up").await;
    first.settled().await;
    assert_eq!(harness.told("main").len(), 1, "{warm_up}");
    let before = harness.host.faults().asked.get(&call).copied().unwrap_or(0);
    harness.host.faults().slow = seconds(5);
    let task = first.launch("one").await;
    until("the host is asked", async || {
        harness.host.faults().asked.get(&call).copied().unwrap_or(0) > before
    })
    .await;
    drop(first);
    harness.host.faults().slow = seconds(0);
    (harness, task)
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_inside_any_call_leaves_nothing_undone_and_nothing_done_twice() {
    for call in [
        Call::Create,
        Call::Prompt,
        Call::Inspect,
        Call::Deliver,
        Call::Confirm,
    ] {
        let (harness, task) = killed_at(call, usual()).await;
        let second = harness.start().await;
        second.settled().await;
        assert_eq!(second.status(&task).await, Status::Completed, "{call:?}");
        assert_eq!(times_prompted(&harness, &task), 1, "{call:?}");
        assert_eq!(harness.told("main").len(), 2, "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_shows_late_is_not_sent_again_by_a_worker_that_takes_over_early() {
    let harness = Harness::new(usual()).with(|settings| {
        settings.lease = Duration::from_millis(600);
        settings.confirm_timeout = seconds(10);
    });
    let first = harness.start().await;
    harness.host.faults().late = seconds(8);
    first.launch("one").await;
    harness.host.faults().slow = seconds(2);
    until("it is sent", async || harness.told("main").len() == 1).await;
    // In the middle of asking whether it has arrived.
    drop(first);
    harness.host.faults().slow = seconds(0);
    let second = harness.start().await;
    second.settled().await;
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_stops_a_child_leaves_the_stop_to_the_next() {
    let harness = Harness::new(Script::of(takes(seconds(600))));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    harness.host.faults().slow = seconds(30);
    first
        .manager
        .cancel(&session("main"), task.as_str())
        .await
        .expect("cancelled");
    tokio::time::sleep(seconds(1)).await;
    drop(first);
    harness.host.faults().slow = seconds(0);
    let second = harness.start().await;
    second.settled().await;
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(harness.child(&task).iter().any(aborted));
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_running_worker_takes_over_when_the_lease_of_a_dead_one_runs_out() {
    let harness = Harness::new(Script::of(takes(seconds(300))));
    let first = harness.start().await;
    let second = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    let owner = second.look(&task).await.owner;
    drop(first);
    until("it has another owner", async || {
        second.look(&task).await.owner != owner
    })
    .await;
    assert!(second.look(&task).await.owner.is_some());
    second.settled().await;
    assert_eq!(times_prompted(&harness, &task), 1);
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_lives_keeps_its_tasks() {
    let harness = Harness::new(Script::of(takes(seconds(300))));
    let first = harness.start().await;
    let second = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    let owner = first.look(&task).await.owner;
    tokio::time::sleep(seconds(200)).await;
    assert_eq!(second.look(&task).await.owner, owner);
    first.settled().await;
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_in_good_order_leaves_its_children_at_work() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let first = harness.start().await;
    let running = first.launch("running").await;
    first.until_prompted(&running).await;
    let begun = tokio::time::Instant::now();
    first.worker.stop().await;
    assert!(begun.elapsed() < seconds(5), "{:?}", begun.elapsed());
    let manager = first.manager;
    let left = manager
        .follow(&Caller::Person, running.as_str(), None, seconds(0))
        .await;
    let left = left.expect("there").shown.task;
    assert_eq!(left.status(), Status::Running);
    assert_eq!(left.owner, None, "anyone may go on with it at once");
    assert_eq!(manager.workers().await.expect("workers"), []);
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(!harness.child(&running).iter().any(aborted));
    let second = harness.start().await;
    second.settled().await;
    assert_eq!(second.status(&running).await, Status::Completed);
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_stops_within_five_seconds_though_its_host_does_not_answer() {
    let harness = Harness::new(usual());
    let first = harness.start().await;
    first.launch("warm up").await;
    first.settled().await;
    harness.host.faults().slow = seconds(1_000);
    first.launch("one").await;
    tokio::time::sleep(seconds(1)).await;
    let begun = tokio::time::Instant::now();
    first.worker.stop().await;
    assert!(begun.elapsed() < seconds(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_shell_launches_is_picked_up_by_a_worker() {
    let harness = Harness::new(usual());
    let worker = harness.start().await;
    let shell = harness.manager();
    let task = shell
        .task(&session("shell"), asks("one"))
        .await
        .expect("launched");
    assert_eq!(task.shown.task.owner, None);
    worker.settled().await;
    assert_eq!(worker.status(&task.shown.task.id).await, Status::Completed);
    assert_eq!(harness.told("shell").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shell_can_wait_cancel_and_resume_what_a_worker_runs() {
    let harness = Harness::new(Script::of(takes(seconds(30))));
    let worker = harness.start().await;
    let shell = harness.manager();
    let task = worker.launch("one").await;
    worker.until_prompted(&task).await;
    shell
        .cancel(&Caller::Person, task.as_str())
        .await
        .expect("cancelled");
    worker.settled().await;
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(
        harness.child(&task).iter().any(aborted),
        "by the worker that has it"
    );
    let args = TaskArgs {
        resume: Some(task.to_string()),
        prompt: "go on".to_owned(),
        ..Default::default()
    };
    shell.task(&Caller::Person, args).await.expect("resumed");
    let request = asyncagents_core::request::OutputRequest::new(task.as_str(), true, Some(600));
    let report = shell
        .output(&Caller::Person, request.expect("a request"))
        .await;
    assert_eq!(report.expect("output").answer.as_deref(), Some("ok: go on"));
}

#[tokio::test(start_paused = true)]
async fn two_workers_share_the_slots() {
    let harness = Harness::new(Script::of(takes(seconds(10))))
        .with(|settings| settings.limits.concurrency = 2);
    let (first, second) = (harness.start().await, harness.start().await);
    let mut tasks = Vec::new();
    for n in 0..4 {
        tasks.push(first.launch(&format!("first {n}")).await);
        tasks.push(second.launch(&format!("second {n}")).await);
    }
    let mut most = 0;
    until("all have ended", async || {
        let mut running = 0;
        let mut left = 0;
        for task in &tasks {
            let state = first.look(task).await.state;
            running += usize::from(matches!(state, State::Running { .. }));
            left += usize::from(!matches!(state, State::Ended { .. }));
        }
        most = most.max(running);
        left == 0
    })
    .await;
    assert_eq!(most, 2);
    first.settled().await;
    assert_eq!(harness.ends_told("main").len(), 8);
}

#[tokio::test(start_paused = true)]
async fn the_rows_are_what_the_events_say() {
    let harness = Harness::new(usual().when(
        "break",
        [Step::Wait(seconds(1)), Step::Fail("broken".to_owned())],
    ));
    let process = harness.start().await;
    let mut tasks = Vec::new();
    for prompt in ["one", "break", "three"] {
        tasks.push(process.launch(prompt).await);
    }
    process.until_prompted(&tasks[2]).await;
    process
        .manager
        .cancel(&session("main"), tasks[2].as_str())
        .await
        .expect("cancelled");
    process.settled().await;
    process.resume(&tasks[0], "more").await.expect("resumed");
    process.settled().await;
    process.output(&tasks[0]).await;
    for id in &tasks {
        let saved = events(harness.store(), id).await;
        let mut saved = saved.iter();
        let first = saved.next().expect("a first event");
        let Event::Launched(launched) = &first.event else {
            panic!("begins with {first:?}");
        };
        let mut folded = lifecycle::begin(id.clone(), launched, first.at);
        for event in saved {
            lifecycle::apply(&mut folded, &event.event, event.at);
        }
        assert_eq!(folded, process.look(id).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_again_after_the_store_has_failed() {
    let harness = Harness::new(Script::of(takes(seconds(20))));
    let (process, fails) = harness.start_flaky().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    // Full when the child ends, and for a while after.
    fails.store(true, Ordering::SeqCst);
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(
        process.status(&task).await,
        Status::Running,
        "it could not be saved"
    );
    fails.store(false, Ordering::SeqCst);
    process.settled().await;
    assert_eq!(
        process.output(&task).await.answer.as_deref(),
        Some("ok: one")
    );
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_on_its_way_when_its_worker_stops_is_not_sent_again_by_the_next() {
    let harness = Harness::new(usual()).with(|settings| settings.confirm_timeout = seconds(10));
    let first = harness.start().await;
    first.launch("the agents are known now").await;
    first.settled().await;
    harness.host.faults().on_its_way = seconds(6);
    let task = first.launch("one").await;
    tokio::time::sleep(seconds(1)).await;
    first.worker.stop().await;
    harness.host.faults().on_its_way = seconds(0);
    let second = harness.start().await;
    second.settled().await;
    assert_eq!(harness.prompts(&task), ["one"]);
    assert_eq!(second.status(&task).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_notice_on_its_way_when_its_worker_stops_is_not_sent_again_by_the_next() {
    let harness = Harness::new(usual()).with(|settings| settings.confirm_timeout = seconds(4));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    harness.host.faults().on_its_way = seconds(6);
    first.until_status(&task, Status::Completed).await;
    first.worker.stop().await;
    let second = harness.start().await;
    second.settled().await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_worker_of_another_host_does_not_keep_the_slots() {
    let harness = Harness::new(Script::of(takes(seconds(20))))
        .with(|settings| settings.limits.concurrency = 1);
    let other = harness.start_of(HostRef::engine("/other")).await;
    let caller = |session: &str| Caller::Session {
        session: session.into(),
        host: HostRef::engine("/other").into(),
        outside: None,
        message: None,
    };
    for n in 0..3 {
        let launched = other
            .manager
            .task(&caller("theirs"), asks(&format!("theirs {n}")))
            .await;
        launched.expect("launched");
    }
    tokio::time::sleep(seconds(1)).await;
    drop(other);
    let ours = harness.start().await;
    let task = ours.launch("ours").await;
    ours.until_status(&task, Status::Completed).await;
    let again = harness.start_of(HostRef::engine("/other")).await;
    again.settled().await;
    assert_eq!(harness.told("theirs").len(), 3, "they were not lost");
}

#[tokio::test(start_paused = true)]
async fn a_child_inherits_what_its_launcher_set_whatever_worker_runs_it() {
    let said = Session::new()
        .user("Why is the login slow?")
        .agent(vec![result(&"x".repeat(5_000))]);
    let script = Script {
        conversation: Some(said.json()),
        ..usual()
    };
    let mut harness = Harness::new(script);
    let worker = harness.start().await;
    harness
        .settings
        .fork
        .set("whole_results", "0")
        .expect("set");
    harness
        .settings
        .fork
        .set("middle_result_chars", "700")
        .expect("set");
    let elsewhere = harness.manager();
    let args = TaskArgs {
        fork: true,
        ..asks("use it")
    };
    let accepted = elsewhere
        .task(&session("main"), args)
        .await
        .expect("launched");
    worker.settled().await;
    let lines = harness.child(&accepted.shown.task.id);
    let cut = lines.iter().any(|line| match line {
        Line::Inherited { context, .. } => context.contains("truncated 4300 of 5000 chars"),
        _ => false,
    });
    assert!(cut, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_away_for_too_long_writes_nothing_about_what_others_have_taken_over() {
    let harness =
        Harness::new(Script::of([Step::Hang])).with(|settings| settings.lease = seconds(30));
    let (asleep, fails) = harness.start_flaky().await;
    let task = asleep.launch("one").await;
    asleep.until_prompted(&task).await;
    let first = asleep.look(&task).await.owner;
    // It cannot renew its lease, and does not know it.
    fails.store(true, Ordering::SeqCst);
    let awake = harness.start().await;
    until("another has it", async || {
        awake.look(&task).await.owner != first
    })
    .await;
    fails.store(false, Ordering::SeqCst);
    let what = Observation::ToolCalled {
        tool: "grep".to_owned(),
        call: 1,
    };
    let key = "heard by both".to_owned();
    let event = SessionEvent::Observed { key, what };
    let session = ScriptedHost::session_of(&task);
    harness.host.report(Report::Session(session, event));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        awake.look(&task).await.progress.spent.tool_calls,
        1,
        "written once"
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_host_that_ended_have_failed_and_their_parent_is_told_when_it_is_back() {
    let harness = Harness::new(Script::of(takes(seconds(600))))
        .with(|settings| settings.limits.concurrency = 1);
    let first = harness.start().await;
    let (running, queued) = (first.launch("one").await, first.launch("two").await);
    first.until_prompted(&running).await;
    let ended = first.manager.host_ended("the host ended; resume it");
    ended.await.expect("ended");
    for task in [&running, &queued] {
        let task = first.look(task).await;
        assert_eq!(task.status(), Status::Error);
        let report = first.output(&task.id).await;
        let text = answer::output(&report, first.manager.now(), answer::Reader::Person);
        assert!(text.contains("the host ended; resume it"), "{text}");
    }
    // Nobody could be told: it has ended.
    first.worker.kill();
    let second = harness.start().await;
    second.settled().await;
    assert_eq!(harness.ends_told("main").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_does_not_count_tasks_that_it_cannot_run() {
    let harness = Harness::new(usual());
    let ours = harness.start().await;
    let other = harness.start_of(HostRef::engine("/other")).await;
    let caller = Caller::Session {
        session: "theirs".into(),
        host: HostRef::engine("/other").into(),
        outside: None,
        message: None,
    };
    let launched = other.manager.task(&caller, asks("theirs")).await;
    launched.expect("launched");
    drop(other);
    assert_eq!(ours.manager.unfinished().await.expect("a count"), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_on_sees_what_changed_since() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let (none, from) = process
        .manager
        .changed(None, seconds(60))
        .await
        .expect("read");
    assert!(none.is_empty());
    let task = process.launch("one").await;
    let (changed, next) = process
        .manager
        .changed(Some(from), seconds(60))
        .await
        .expect("read");
    assert_eq!(changed[0].task.id, task);
    process.settled().await;
    let (changed, newest) = process
        .manager
        .changed(Some(next), seconds(60))
        .await
        .expect("read");
    assert_eq!(changed[0].task.status(), Status::Completed);
    let (changed, _) = process
        .manager
        .changed(Some(newest), seconds(60))
        .await
        .expect("read");
    assert!(changed.is_empty());
}
