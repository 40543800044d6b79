//! Somebody sets the clock, or the machine sleeps; tasks run for as long as they run.

use std::time::Duration;

use asyncagents_core::{
    event::Event,
    request::{Caller, TaskArgs},
    task::{Outcome, State, Status},
};
use asyncagents_testkit::scripted_host::{Script, Step};

use super::harness::{Harness, events, seconds, takes, tool};

const TWO_HOURS: i64 = 2 * 60 * 60;

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_ends_nothing() {
    let harness = Harness::new(Script::of(takes(seconds(300))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    harness.clock.set_forward(TWO_HOURS);
    process.settled().await;
    let ended = process.look(&task).await;
    assert_eq!(ended.status(), Status::Completed, "{:?}", ended.state);
    let State::Ended { ran, .. } = ended.state else {
        panic!("it has ended");
    };
    assert!(ran < seconds(400), "it ran for five minutes, not {ran:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_its_time_and_no_more_however_the_clock_is_set() {
    for set in [TWO_HOURS, -TWO_HOURS] {
        let harness = Harness::new(Script::of(takes(seconds(3_500))))
            .with(|settings| settings.limits.stall = seconds(7_200));
        let process = harness.start().await;
        let within = process.launch("within its hour").await;
        process.until_prompted(&within).await;
        harness.clock.set_forward(set);
        process.settled().await;
        assert_eq!(process.status(&within).await, Status::Completed);

        let harness = Harness::new(Script::of(
            [tool("grep"), Step::Wait(seconds(300)), tool("read")]
                .into_iter()
                .cycle()
                .take(60)
                .chain(takes(seconds(1))),
        ));
        let process = harness.start().await;
        let beyond = process.launch("longer than that").await;
        process.until_prompted(&beyond).await;
        harness.clock.set_forward(set);
        let begun = tokio::time::Instant::now();
        process.settled().await;
        let took = begun.elapsed();
        assert!(
            took > seconds(3_500) && took < seconds(3_700),
            "set by {set}: {took:?}"
        );
        let State::Ended { outcome, .. } = process.look(&beyond).await.state else {
            panic!("it has ended");
        };
        let Outcome::Failed { why } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(why, "the time limit of 1h 00m is reached");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_does_not_run_out_because_the_clock_is_set() {
    let harness = Harness::new(Script::of(takes(seconds(300))));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    let owner = first.look(&task).await.owner;
    harness.clock.set_forward(TWO_HOURS);
    let second = harness.start().await;
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(second.look(&task).await.owner, owner, "it is alive");
    first.settled().await;
    assert_eq!(second.status(&task).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_dead_worker_is_replaced_also_if_the_clock_was_set_back() {
    let harness = Harness::new(Script::of(takes(seconds(300))));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    let owner = first.look(&task).await.owner;
    drop(first);
    harness.clock.set_forward(-TWO_HOURS);
    let second = harness.start().await;
    tokio::time::sleep(seconds(20)).await;
    assert_ne!(second.look(&task).await.owner, owner);
    second.settled().await;
    assert_eq!(second.status(&task).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn time_in_which_no_worker_was_there_is_not_the_tasks() {
    let harness = Harness::new(Script::of(takes(seconds(6 * 60 * 60))))
        .with(|settings| settings.limits.stall = seconds(24 * 60 * 60));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    drop(first);
    tokio::time::sleep(seconds(5 * 60 * 60)).await;
    let second = harness.start().await;
    tokio::time::sleep(seconds(30 * 60)).await;
    assert_eq!(second.status(&task).await, Status::Running);
    second.settled().await;
    let State::Ended { ran, .. } = second.look(&task).await.state else {
        panic!("it has ended");
    };
    assert!(ran <= seconds(60 * 60 + 60), "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn time_that_was_worked_is_not_given_back_by_a_takeover() {
    for killed in [true, false] {
        let harness = Harness::new(Script::of(takes(seconds(6 * 60 * 60))))
            .with(|settings| settings.limits.stall = seconds(24 * 60 * 60));
        let first = harness.start().await;
        let task = first.launch("one").await;
        first.until_prompted(&task).await;
        // One long command, of which nothing is heard.
        tokio::time::sleep(seconds(50 * 60)).await;
        if killed {
            drop(first);
        } else {
            first.worker.stop().await;
        }
        let second = harness.start().await;
        tokio::time::sleep(seconds(15 * 60)).await;
        assert_eq!(
            second.status(&task).await,
            Status::Error,
            "killed: {killed}"
        );
    }
}

/// A worker takes the task over, and dies before anything is heard of it.
async fn take_over_and_die(harness: &Harness) {
    let process = harness.start().await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_workers_is_ended() {
    let harness = Harness::new(Script::of(takes(seconds(3_000))));
    let first = harness.start().await;
    let task = first.launch("poison").await;
    first.until_prompted(&task).await;
    drop(first);
    take_over_and_die(&harness).await;
    let third = harness.start().await;
    third.settled().await;
    let State::Ended { outcome, .. } = third.look(&task).await.state else {
        panic!("it has ended");
    };
    let Outcome::Failed { why } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.starts_with("it lost its worker 2 times"), "{why}");
    assert_eq!(harness.told("main").len(), 1, "its parent is told");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_goes_on_survives_any_number_of_workers() {
    let step = [Step::Wait(seconds(20)), tool("grep")];
    let steps = step.into_iter().cycle().take(20).chain(takes(seconds(1)));
    let harness = Harness::new(Script::of(steps));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    drop(first);
    for _ in 0..4 {
        let process = harness.start().await;
        tokio::time::sleep(seconds(60)).await;
        drop(process);
    }
    let last = harness.start().await;
    last.settled().await;
    assert_eq!(last.status(&task).await, Status::Completed);
    let taken = events(harness.store(), &task).await;
    let taken = taken
        .iter()
        .filter(|saved| matches!(saved.event, Event::Owned { by: Some(_) }));
    assert!(taken.count() >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_ended_for_its_workers_can_be_resumed() {
    let harness = Harness::new(Script::of(takes(seconds(3_000))))
        .with(|settings| settings.limits.stall = seconds(7_200));
    let first = harness.start().await;
    let task = first.launch("poison").await;
    first.until_prompted(&task).await;
    drop(first);
    take_over_and_die(&harness).await;
    let third = harness.start().await;
    third.settled().await;
    assert_eq!(third.status(&task).await, Status::Error);
    third.worker.stop().await;
    let manager = harness.manager();
    let again = TaskArgs {
        resume: Some(task.to_string()),
        prompt: "once more".to_owned(),
        ..TaskArgs::default()
    };
    manager.task(&Caller::Person, again).await.expect("resumed");
    let fourth = harness.start().await;
    fourth.settled().await;
    assert_eq!(fourth.status(&task).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_is_counted_once() {
    let harness = Harness::new(Script::of([
        Step::Wait(seconds(10)),
        tool("grep"),
        Step::Wait(seconds(1_500)),
        Step::Answer("done".to_owned()),
    ]))
    .with(|settings| settings.limits.stall = seconds(7_200));
    let first = harness.start().await;
    let task = first.launch("one").await;
    first.until_prompted(&task).await;
    tokio::time::sleep(seconds(30)).await;
    harness.clock.set_forward(-TWO_HOURS);
    first.worker.stop().await;
    for _ in 0..3 {
        let next = harness.start().await;
        tokio::time::sleep(seconds(5)).await;
        next.worker.stop().await;
    }
    let last = harness.start().await;
    last.settled().await;
    assert_eq!(last.status(&task).await, Status::Completed);
}
