//! The parent is told, exactly once, whatever the host does.

use std::time::Duration;

use asyncagents_core::{
    notify::Wording,
    port::{Fate, Report, SessionEvent},
    request::{Caller, OutputRequest},
    task::Status,
    task_list::ListRequest,
};
use asyncagents_testkit::scripted_host::{Call, Script, ScriptedHost, Step};
use rstest::rstest;

use super::harness::{Harness, Process, fates, seconds, session, takes, until, usual};

fn visible(harness: &Harness, session: &str) -> Vec<String> {
    let told = harness.told(session).into_iter();
    told.map(|(visible, _)| visible).collect()
}

#[tokio::test(start_paused = true)]
async fn each_ending_has_its_own_words() {
    let script = Script::of(takes(seconds(65))).when(
        "break",
        [
            Step::Wait(seconds(3)),
            Step::Fail("no such model".to_owned()),
        ],
    );
    let harness = Harness::new(script);
    let process = harness.start().await;
    let good = process.launch("read the\nlogs").await;
    process.settled().await;
    process.resume(&good, "again").await.expect("resumed");
    process.settled().await;
    process.launch("break").await;
    process.settled().await;
    let long = process.launch("long").await;
    process.until_prompted(&long).await;
    tokio::time::sleep(seconds(10)).await;
    process
        .manager
        .cancel(&session("main"), long.as_str())
        .await
        .expect("cancelled");
    process.settled().await;
    let said = visible(&harness, "main");
    assert_eq!(
        said[0],
        "✓ **Agent \"read the logs\" finished in 1m 05s.**\nTask Progress: 1/1"
    );
    assert_eq!(
        said[1],
        "✓ **Resume #1 completed in 1m 05s.**\nTask Progress: 1/1"
    );
    assert_eq!(
        said[2],
        "✗ **Agent \"break\" failed in 3.0s.**\nTask Progress: 1/1"
    );
    assert!(
        said[3].starts_with("⊘ **Agent \"long\" cancelled after 10s.**\n"),
        "{}",
        said[3]
    );
    assert_eq!(said.len(), 4);
    let hidden = &harness.told("main")[2].1;
    assert!(hidden.contains("no such model"), "{hidden}");
}

#[tokio::test(start_paused = true)]
async fn developers_see_that_there_is_a_hint() {
    let harness = Harness::new(usual()).with(|settings| {
        settings.wording = Wording {
            prefix: "superagents_".to_owned(),
            show_hint: true,
            ..Wording::default()
        };
    });
    let process = harness.start().await;
    process.launch("one").await;
    process.settled().await;
    let told = harness.told("main");
    assert!(
        told[0].0.ends_with("\nTask Progress: 1/1\n[hint attached]"),
        "{}",
        told[0].0
    );
    assert!(
        told[0].1.contains("Use superagents_output tools"),
        "{}",
        told[0].1
    );
}

#[tokio::test(start_paused = true)]
async fn nineteen_launched_nineteen_told() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    for n in 0..19 {
        process.launch(&format!("task {n}")).await;
    }
    process.settled().await;
    let said = visible(&harness, "main");
    let last = said.last().expect("told");
    assert!(last.contains("Task Progress: 19/19"), "{last}");
    let mut ends = harness.ends_told("main");
    assert_eq!(ends.len(), 19);
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 19, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_parent_gets_the_result_and_no_notice() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("Found: one"));
    assert!(report.shown.task.retrieved_at.is_some());
    process.settled().await;
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(visible(&harness, "main"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_parent_in_another_process_has_the_time_it_needs_to_notice() {
    let harness = Harness::new(usual()).looking_every(seconds(1));
    let process = harness.start().await;
    let elsewhere = harness.manager();
    let task = process.launch("one").await;
    let request = OutputRequest::new(task.as_str(), true, None).expect("a request");
    let report = elsewhere
        .output(&session("main"), request)
        .await
        .expect("output");
    assert_eq!(report.answer.as_deref(), Some("Found: one"));
    process.settled().await;
    assert_eq!(visible(&harness, "main"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_person_does_not_keep_the_parent_from_being_told() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    let request = OutputRequest::new(task.as_str(), true, None).expect("a request");
    let report = process
        .manager
        .output(&Caller::Person, request)
        .await
        .expect("output");
    assert_eq!(report.answer.as_deref(), Some("Found: one"));
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_parent_that_goes_away_is_told() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    // The wait begins, and is given up long before its time.
    tokio::select! {
        _ = process.wait(&task) => panic!("too early"),
        () = tokio::time::sleep(seconds(1)) => {}
    }
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_does_not_hold_back_the_notice() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    let begun = tokio::time::Instant::now();
    tokio::select! {
        _ = process.wait(&task) => panic!("too early"),
        () = tokio::time::sleep(seconds(1)) => {}
    }
    process.settled().await;
    let took = begun.elapsed();
    assert!(took < seconds(60), "the wait was for 600 s: {took:?}");
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_times_out_answers_with_the_status_and_the_notice_comes() {
    let harness = Harness::new(Script::of(takes(seconds(100))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    let request = OutputRequest::new(task.as_str(), true, Some(10)).expect("a request");
    let begun = tokio::time::Instant::now();
    let report = process
        .manager
        .output(&session("main"), request)
        .await
        .expect("no error");
    assert_eq!(report.shown.task.status(), Status::Running);
    let waited = begun.elapsed();
    assert!(waited >= seconds(10) && waited < seconds(11), "{waited:?}");
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[test]
fn a_timeout_is_in_seconds_and_has_a_limit() {
    let said = OutputRequest::new("task_1", true, Some(60_000)).expect_err("too long");
    assert_eq!(
        said.to_string(),
        "`timeout`: 60000 is refused; allowed: 0 to 600 seconds"
    );
    let request = OutputRequest::new("task_1", true, None).expect("a request");
    assert_eq!(request.wait, Some(seconds(30)));
    assert_eq!(
        OutputRequest::new("task_1", false, Some(5))
            .expect("a request")
            .wait,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_parent_is_told_as_soon_as_it_can_take_it() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    let task = process.launch("one").await;
    process.until_status(&task, Status::Completed).await;
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(visible(&harness, "main").len(), 0);
    harness.host.faults().busy.clear();
    harness
        .host
        .report(Report::Session("main".into(), SessionEvent::Idle));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(visible(&harness, "main").len(), 1, "not a pause later");
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_the_host_took_and_lost_is_sent_again() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().forget = 2;
    process.launch("one").await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
    assert_eq!(harness.host.faults().asked[&Call::Deliver], 3);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_arrived_though_nobody_could_confirm_it_is_not_sent_again() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().fail.insert(Call::Confirm, 5);
    process.launch("one").await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
    assert_eq!(harness.host.faults().asked[&Call::Deliver], 1);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_arrived_though_its_answer_was_lost_is_not_sent_again() {
    let harness = Harness::new(usual());
    harness.host.faults().lose_answer.insert(Call::Deliver, 1);
    let process = harness.start().await;
    process.launch("one").await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
    assert_eq!(harness.host.faults().asked[&Call::Deliver], 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_reached_is_tried_until_it_can() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().fail.insert(Call::Deliver, 12);
    process.launch("one").await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_gone_is_not_told_for_ever() {
    let harness = Harness::new(Script::of(takes(seconds(10))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    // Gone without a word: the host's report is lost.
    harness.host.faults().mute = true;
    asyncagents_core::port::Host::delete(&harness.host, &"main".into())
        .await
        .expect("deleted");
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(visible(&harness, "main").len(), 0);
}

#[rstest]
#[case::of_another_version("kind = 'strange'")]
#[case::of_no_run("run = -5")]
#[case::of_no_text("ending = x'00'")]
#[case::of_no_end("ending = '{}'")]
#[case::to_no_question("kind = 'answer', reply = '{\"reply\":\"once\"}'")]
#[case::of_no_sense("kind = 'answer', question = 'one', reply = '{{{'")]
#[tokio::test(start_paused = true)]
async fn a_post_that_cannot_be_read_is_in_the_way_of_nothing_else(#[case] damage: &str) {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    let task = process.launch("one").await;
    process.until_status(&task, Status::Completed).await;
    harness.damage(&format!("UPDATE notices SET {damage}"));
    harness.host.faults().busy.clear();
    let next = process.launch("two").await;
    process.settled().await;
    assert_eq!(process.status(&next).await, Status::Completed);
    assert_eq!(visible(&harness, "main").len(), 1, "only of the second");
    let first = process.output(&task).await;
    assert_eq!(first.answer.as_deref(), Some("Found: one"));
}

#[tokio::test(start_paused = true)]
async fn a_grandchild_tells_its_direct_parent() {
    let harness = Harness::new(Script::of(takes(seconds(100))).when("below", takes(seconds(1))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    process.launch_from(inside.as_str(), "below").await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(visible(&harness, inside.as_str()).len(), 1);
    assert_eq!(visible(&harness, "main").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_what_ran_together() {
    let harness = Harness::new(Script::of(takes(seconds(10))));
    let process = harness.start().await;
    process.launch("one").await;
    process.launch("two").await;
    process.settled().await;
    process.launch("three").await;
    process.settled().await;
    let said = visible(&harness, "main");
    let [.., both, new] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert!(both.contains("2/2"), "{said:?}");
    assert!(new.contains("1/1"), "a new batch: {said:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_cleared_is_not_announced() {
    let harness = Harness::new(Script::of(takes(seconds(100))).when("quick", takes(seconds(1))));
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    let quick = process.launch("quick").await;
    let long = process.launch("long").await;
    process.until_status(&quick, Status::Completed).await;
    process.until_prompted(&long).await;
    let cleared = process
        .manager
        .clear(&"main".into())
        .await
        .expect("cleared");
    assert_eq!(cleared.text(), "Cleared 2 tasks; 1 was stopped.");
    harness.host.faults().busy.clear();
    process.settled().await;
    assert_eq!(visible(&harness, "main"), [""; 0]);
    assert_eq!(process.list("main").await, "No background tasks found");
    let cleared = process
        .manager
        .clear(&"main".into())
        .await
        .expect("cleared");
    assert_eq!(cleared.text(), "No background tasks found");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_slow_and_shows_late_is_told_once() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.host.faults().slow = seconds(3);
    harness.host.faults().late = seconds(4);
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_parent_that_asks_for_a_finished_task_and_would_wait_is_not_told_later() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    let task = process.launch("one").await;
    process.until_status(&task, Status::Completed).await;
    tokio::time::sleep(seconds(5)).await;
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("Found: one"));
    harness.host.faults().busy.clear();
    process.settled().await;
    assert_eq!(visible(&harness, "main"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_cannot_be_read_costs_neither_the_result_nor_the_notice() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    let mut request = OutputRequest::new(task.as_str(), true, None).expect("a request");
    request.conversation = Some(asyncagents_core::request::ConversationRequest {
        since: Some("no such message".to_owned()),
        ..Default::default()
    });
    let refused = process.manager.output(&session("main"), request).await;
    assert!(refused.is_err());
    assert_eq!(process.look(&task).await.retrieved_at, None, "not read");
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1, "told");
}

#[tokio::test(start_paused = true)]
async fn one_hanging_parent_does_not_keep_the_others_from_being_told() {
    let harness = Harness::new(Script::of(takes(seconds(1)))).with(|settings| {
        settings.limits.concurrency = 1_000;
        settings.limits.spawns = 1_000;
    });
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    for n in 0..300 {
        process.launch(&format!("task {n}")).await;
    }
    process.launch_from("other", "one").await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(visible(&harness, "other").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_notice_on_its_way_is_not_called_back() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.host.faults().on_its_way = seconds(6);
    process.until_status(&task, Status::Completed).await;
    tokio::time::sleep(seconds(1)).await;
    process.wait(&task).await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 1);
    assert_eq!(
        fates(harness.store(), &task).await,
        [Fate::Delivered],
        "and it is known"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_parent_is_not_woken_by_what_goes_on_below_it() {
    let harness = Harness::new(Script::of(takes(seconds(30))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    let below = process.launch_from(inside.as_str(), "below").await;
    process.until_prompted(&below).await;
    process
        .manager
        .cancel(&session("main"), child.as_str())
        .await
        .expect("cancelled");
    process
        .resume(&below, "go on all the same")
        .await
        .expect("resumed");
    process.settled().await;
    assert_eq!(process.status(&below).await, Status::Completed);
    assert_eq!(visible(&harness, inside.as_str()), [""; 0]);
}

/// A child that ended before is in its window when its parent is stopped.
#[tokio::test(start_paused = true)]
async fn a_stopped_parent_is_not_woken_by_what_ended_before() {
    let harness = Harness::new(Script::of(takes(seconds(30))).when("short", takes(seconds(1))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    process.launch_from(inside.as_str(), "long").await;
    let short = process.launch_from(inside.as_str(), "short").await;
    process.until_status(&short, Status::Completed).await;
    process
        .manager
        .cancel(&session("main"), child.as_str())
        .await
        .expect("cancelled");
    process.settled().await;
    assert_eq!(visible(&harness, inside.as_str()), [""; 0]);
    let why = Fate::Undelivered("the parent had been stopped".to_owned());
    assert_eq!(fates(harness.store(), &short).await, [why]);
}

/// The parent waits for the last one and is not told of it; what waits for others need not any more.
#[tokio::test(start_paused = true)]
async fn what_waits_is_told_when_the_last_one_of_the_batch_was_awaited() {
    let script = waits_as_told(8, 2_000).when("long", takes(Duration::from_millis(15_500)));
    let harness = Harness::new(script);
    let process = harness.start().await;
    let last = process.launch("long").await;
    for n in 0..8 {
        process.launch(&format!("wait {}", 1_000 + n * 2_000)).await;
    }
    let begun = tokio::time::Instant::now();
    process.wait(&last).await;
    until("all others are told", async || {
        harness.ends_told("main").len() == 8
    })
    .await;
    let took = begun.elapsed();
    assert!(
        took < seconds(18),
        "and not a window of 8 s later: {took:?}"
    );
}

/// Results are told once: who has asked for one meanwhile is only told of the end. A person who has
/// read it is not the parent.
#[rstest]
#[case::the_parent(session("main"), false)]
#[case::a_person(Caller::Person, true)]
#[tokio::test(start_paused = true)]
async fn a_result_that_the_parent_has_read_is_not_told_again(
    #[case] reader: Caller,
    #[case] is_told: bool,
) {
    let harness = Harness::new(waits_as_told(1, 0));
    let process = a_batch(&harness, 1, 0).await;
    let tasks = process
        .manager
        .list(ListRequest::for_model(&"main".into(), None));
    let tasks = tasks.await.expect("tasks").tasks;
    let short = tasks
        .iter()
        .find(|shown| shown.task.brief.description == "wait 1000");
    let short = &short.expect("launched").task.id;
    process.until_status(short, Status::Completed).await;
    let request = OutputRequest::new(short.as_str(), false, None).expect("a request");
    let read = process
        .manager
        .output(&reader, request)
        .await
        .expect("read");
    assert_eq!(read.answer.as_deref(), Some("waited 1000"));
    until("the parent is told", async || {
        !visible(&harness, "main").is_empty()
    })
    .await;
    let (visible, hidden) = harness.told("main").remove(0);
    assert!(visible.contains("\"wait 1000\" finished"), "{visible}");
    assert_eq!(hidden.contains("waited 1000"), is_told, "{hidden}");
}

/// One child that works for long, and others that end one after the other, every so many milliseconds.
async fn a_batch(harness: &Harness, others: u64, every: u64) -> Process {
    let process = harness.start().await;
    process.launch("long").await;
    for n in 0..others {
        let millis = 1_000 + n * every;
        process.launch(&format!("wait {millis}")).await;
    }
    process
}

/// Waits as long as its prompt says, in milliseconds; `long` for 100 seconds.
fn waits_as_told(most: u64, every: u64) -> Script {
    let mut script = Script::of(takes(seconds(100)));
    for n in 0..most {
        let millis = 1_000 + n * every;
        let wait = Step::Wait(Duration::from_millis(millis));
        let steps = [wait, Step::Answer(format!("waited {millis}"))];
        script = script.when(&format!("wait {millis}"), steps);
    }
    script
}

#[tokio::test(start_paused = true)]
async fn ends_that_come_close_together_are_told_in_few_messages() {
    let harness = Harness::new(waits_as_told(99, 50));
    let process = a_batch(&harness, 99, 50).await;
    process.settled().await;
    assert_eq!(harness.ends_told("main").len(), 100);
    let said = visible(&harness, "main");
    assert!(said.len() <= 5, "{} messages", said.len());
    assert_eq!(
        said.last().map(String::as_str),
        Some("✓ **Agent \"long\" finished in 1m 40s.**\nTask Progress: 100/100"),
        "at once, and alone"
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_waits_half_a_second_for_others_and_longer_after_each_message() {
    let harness = Harness::new(waits_as_told(4, 1_100));
    let process = a_batch(&harness, 4, 1_100).await;
    let begun = tokio::time::Instant::now();
    let mut told = Vec::new();
    for messages in 1..=3 {
        until("the parent is told", async || {
            visible(&harness, "main").len() >= messages
        })
        .await;
        told.push(begun.elapsed().as_secs_f64());
    }
    // They end after 1, 2.1, 3.2 and 4.3 seconds; the windows are 0.5, 1 and 2 seconds.
    for (told, expected) in told.iter().zip([1.5, 3.1, 5.2]) {
        assert!((told - expected).abs() < 0.4, "{told} and not {expected}");
    }
    assert_eq!(harness.ends_told("main").len(), 4);
    process.settled().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_window_every_end_is_told_at_once() {
    let harness = Harness::new(waits_as_told(10, 100))
        .with(|settings| settings.notice_window = Duration::ZERO);
    let process = a_batch(&harness, 10, 100).await;
    process.settled().await;
    assert_eq!(visible(&harness, "main").len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_was_busy_is_told_of_everything_in_one_message() {
    let harness = Harness::new(waits_as_told(10, 1_000));
    harness.host.faults().busy.insert("main".into());
    let process = a_batch(&harness, 10, 1_000).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(visible(&harness, "main"), [""; 0]);
    harness.host.faults().busy.clear();
    harness
        .host
        .report(Report::Session("main".into(), SessionEvent::Idle));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(visible(&harness, "main").len(), 1);
    assert_eq!(harness.ends_told("main").len(), 10);
    process.settled().await;
}

/// What may have been sent is sent again as it was, whatever has ended meanwhile.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_repeated_is_the_same() {
    let harness = Harness::new(waits_as_told(10, 1_000));
    let process = a_batch(&harness, 10, 1_000).await;
    // Taken and lost, three times, while other children end.
    harness.host.faults().forget = 3;
    process.settled().await;
    assert!(harness.host.faults().asked[&Call::Deliver] > 3);
    let first = "✓ **Agent \"wait 1000\" finished in 1.0s.**\nTask Progress: 1/11".to_owned();
    let said = visible(&harness, "main");
    assert!(said.contains(&first), "{said:?}");
    let mut ends = harness.ends_told("main");
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 11, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_tells_of_several_ends_leaves_none_untold() {
    let harness = Harness::new(waits_as_told(10, 50));
    harness.host.faults().lose_answer.insert(Call::Deliver, 2);
    let process = a_batch(&harness, 10, 50).await;
    until("it has been sent", async || {
        harness.host.faults().asked.contains_key(&Call::Deliver)
    })
    .await;
    process.worker.kill();
    let process = harness.start().await;
    process.settled().await;
    let mut ends = harness.ends_told("main");
    assert_eq!(ends.len(), 11);
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 11, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_told_whole_counts_as_read() {
    let long = "x".repeat(5_000);
    let script = Script::of(takes(seconds(1)))
        .when("long", [Step::Answer(long.clone())])
        .when("unheard", takes(seconds(1)));
    let harness = Harness::new(script);
    let process = harness.start().await;
    let short = process.launch("short").await;
    let cut = process.launch("long").await;
    process.settled().await;
    assert!(process.look(&short).await.retrieved_at.is_some());
    assert_eq!(process.look(&cut).await.retrieved_at, None);
    let told: String = harness
        .told("main")
        .into_iter()
        .map(|told| told.1)
        .collect();
    assert!(told.contains("4000 of 5000 characters"), "{told}");
    assert_eq!(process.output(&cut).await.answer, Some(long));
    // Who was not told has not read it.
    harness.host.faults().busy.insert("main".into());
    let unheard = process.launch("unheard").await;
    process.until_status(&unheard, Status::Completed).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(process.look(&unheard).await.retrieved_at, None);
}

/// Of a batch, one is waited for: it is not told, and the others are not kept from being told.
#[tokio::test(start_paused = true)]
async fn a_parent_that_is_blocked_on_one_task_is_told_of_the_others() {
    let harness = Harness::new(waits_as_told(3, 1_000));
    let process = harness.start().await;
    let tasks = [1_000, 2_000, 3_000].map(|millis| format!("wait {millis}"));
    process.launch(&tasks[0]).await;
    let awaited = process.launch(&tasks[1]).await;
    process.launch(&tasks[2]).await;
    let begun = tokio::time::Instant::now();
    process.wait(&awaited).await;
    let waited = begun.elapsed();
    assert!(waited < Duration::from_millis(2_300), "{waited:?}");
    process.settled().await;
    let ends = harness.ends_told("main");
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(
        !ends.iter().any(|end| end.contains("wait 2000")),
        "{ends:?}"
    );
}
