//! A child that works is told something: once, before its end, or its parent hears that it was not.

use std::time::Duration;

use asyncagents_core::{
    answer::MessageState,
    id::TaskId,
    refusal::Refusal,
    request::{Caller, MessageRequest},
    speaker::Speaker,
    task::{Outcome, Status},
};
use asyncagents_runtime::Problem;
use asyncagents_testkit::scripted_host::{Call, Child, Line, Script, ScriptedHost, Step};
use rstest::rstest;

use crate::harness::{Harness, Process, seconds, session, takes, until, usual};

/// Works for this long, and then says what it was told.
fn listens(time: Duration) -> Script {
    Script::of([
        Step::Wait(time),
        Step::Answer("{prompt} / {told}".to_owned()),
    ])
}

async fn tell_as(
    process: &Process,
    caller: &Caller,
    task: &TaskId,
    text: &str,
) -> Result<(), Problem> {
    let request = MessageRequest::new(task.as_str(), text.to_owned())?;
    process.manager.message(caller, request).await.map(drop)
}

async fn tell(process: &Process, task: &TaskId, text: &str) {
    let told = tell_as(process, &session("main"), task, text).await;
    told.expect("it takes messages");
}

/// What a child was told, as its session has it: who says what.
fn heard_of(harness: &Harness, task: &TaskId) -> Vec<String> {
    let lines = harness.child(task).into_iter();
    let told = lines.filter_map(|line| match line {
        Line::Told { visible, .. } => Some(visible),
        _ => None,
    });
    told.collect()
}

/// What the agent that launched it has told a child.
fn heard(harness: &Harness, task: &TaskId) -> Vec<String> {
    let told = heard_of(harness, task).into_iter().map(|visible| {
        let text = visible.strip_prefix("Message from the agent that launched you:\n");
        text.expect("who says it").to_owned()
    });
    told.collect()
}

async fn states(process: &Process, task: &TaskId) -> Vec<MessageState> {
    let messages = process.output(task).await.messages.into_iter();
    messages.map(|told| told.state).collect()
}

#[tokio::test(start_paused = true)]
async fn a_child_that_works_is_told_once_and_takes_it_into_account() {
    let harness = Harness::new(listens(seconds(60)));
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    tell(&process, &task, "left").await;
    tell(&process, &task, "then right").await;
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("go / left; then right"));
    assert_eq!(heard(&harness, &task), ["left", "then right"]);
    let delivered = [MessageState::Delivered, MessageState::Delivered];
    assert_eq!(states(&process, &task).await, delivered);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_read_is_not_told_and_the_next_one_is() {
    let harness = Harness::new(listens(seconds(60)));
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    let child = ScriptedHost::session_of(&task);
    harness.host.faults().busy.insert(child);
    tell(&process, &task, "left").await;
    // What was read before would be told as it was.
    let was_tried = async || harness.host.faults().asked.contains_key(&Call::Deliver);
    until("it is tried", was_tried).await;
    harness.damage("UPDATE notices SET kind = 'strange'");
    harness.host.faults().busy.clear();
    // Whoever reads the row before it is given up is told that it is damaged.
    while let Err(problem) = tell_as(&process, &session("main"), &task, "right").await {
        assert!(problem.to_string().contains("strange"), "{problem}");
        tokio::time::sleep(seconds(1)).await;
    }
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("go / right"));
    let states = states(&process, &task).await;
    let [MessageState::Undelivered(why), MessageState::Delivered] = states.as_slice() else {
        panic!("{states:?}");
    };
    assert!(why.contains("unknown word `strange`"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_is_told_with_its_prompt() {
    let harness = Harness::new(listens(seconds(60))).with(|settings| {
        settings.limits.concurrency = 1;
    });
    let process = harness.start().await;
    let first = process.launch("first").await;
    let queued = process.launch("second").await;
    process.until_prompted(&first).await;
    assert_eq!(process.status(&queued).await, Status::Queued);
    tell(&process, &queued, "left").await;
    process.settled().await;
    let prompts = harness.prompts(&queued);
    assert_eq!(
        prompts,
        ["second\n\nAdded before you began, by the agent that launched you:\nleft"]
    );
    assert_eq!(heard(&harness, &queued), Vec::<String>::new());
    assert_eq!(states(&process, &queued).await, [MessageState::WithPrompt]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_being_started_is_told_when_it_has_its_prompt() {
    let harness = Harness::new(listens(seconds(60)));
    let process = harness.start().await;
    harness.host.faults().slow = seconds(4);
    let task = process.launch("go").await;
    until("its session is made", async || {
        process.status(&task).await == Status::Running
    })
    .await;
    tell(&process, &task, "left").await;
    assert_eq!(states(&process, &task).await, [MessageState::Pending]);
    process.until_prompted(&task).await;
    harness.host.faults().slow = seconds(0);
    process.settled().await;
    assert_eq!(harness.prompts(&task), ["go"]);
    assert_eq!(heard(&harness, &task), ["left"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_resumed_instead() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.settled().await;
    let told = tell_as(&process, &session("main"), &task, "left").await;
    let refused = matches!(told, Err(Problem::Refused(Refusal::TooLateToTell { .. })));
    assert!(refused, "{told:?}");
    // What it was told in an earlier run is not told again.
    process.resume(&task, "and now?").await.expect("resumed");
    process.settled().await;
    assert_eq!(heard(&harness, &task), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_too_late_is_taken_back_and_the_parent_hears_of_it() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    let child = ScriptedHost::session_of(&task);
    harness.host.faults().busy.insert(child.clone());
    tell(&process, &task, "left").await;
    process.settled().await;
    harness.host.faults().busy.clear();
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(heard(&harness, &task), Vec::<String>::new());
    let why = "the run ended before it was delivered".to_owned();
    let lost = [MessageState::Undelivered(why)];
    assert_eq!(states(&process, &task).await, lost);
    let told = harness.told("main");
    assert_eq!(told.len(), 1);
    let (visible, _) = &told[0];
    assert!(
        visible.contains("1 message to it came too late"),
        "{visible}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_cancelled_before_it_began_was_not_told() {
    let harness = Harness::new(Script::of([Step::Hang])).with(|settings| {
        settings.limits.concurrency = 1;
    });
    let process = harness.start().await;
    let first = process.launch("first").await;
    process.until_prompted(&first).await;
    let queued = process.launch("second").await;
    tell(&process, &queued, "left").await;
    let caller = session("main");
    let cancelled = process.manager.cancel(&caller, queued.as_str()).await;
    cancelled.expect("cancelled");
    let states = states(&process, &queued).await;
    assert!(
        matches!(&states[..], [MessageState::Undelivered(_)]),
        "{states:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_who_is_above_a_task_or_a_person_tells_it_something() {
    let harness = Harness::new(Script::of([Step::Hang]));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let in_child = ScriptedHost::session_of(&child);
    let grandchild = process.launch_from(in_child.as_str(), "grandchild").await;
    process.until_prompted(&grandchild).await;
    let sibling = process.launch("sibling").await;
    process.until_prompted(&sibling).await;
    let in_sibling = session(ScriptedHost::session_of(&sibling).as_str());
    let in_child = session(in_child.as_str());
    for (caller, task) in [
        (&session("main"), &grandchild),
        (&in_child, &grandchild),
        (&Caller::Person, &grandchild),
    ] {
        tell_as(&process, caller, task, "left").await.expect("told");
    }
    for (caller, task) in [
        (&in_sibling, &grandchild),
        (&in_child, &sibling),
        // Nor is anyone above itself.
        (&in_child, &child),
    ] {
        let told = tell_as(&process, caller, task, "left").await;
        let refused = matches!(told, Err(Problem::Refused(Refusal::NotBelow { .. })));
        assert!(refused, "{told:?}");
    }
    let said = [
        "Message from an agent above the one that launched you:\nleft",
        "Message from the agent that launched you:\nleft",
        "Message from your user:\nleft",
    ];
    until("it is told", async || {
        heard_of(&harness, &grandchild) == said
    })
    .await;
    let messages = process.output(&grandchild).await.messages.into_iter();
    let speakers: Vec<_> = messages.map(|told| told.from).collect();
    let all = [Speaker::Ancestor, Speaker::Parent, Speaker::Person];
    assert_eq!(speakers, all.map(Some));
    let stranger = tell_as(&process, &session("stranger"), &child, "left").await;
    let unknown = matches!(stranger, Err(Problem::Refused(Refusal::UnknownTask { .. })));
    assert!(unknown, "{stranger:?}");
}

/// What the host does is done, whatever it answers; what it forgot is sent again.
#[rstest]
#[case::lost_answer(|harness: &Harness| { harness.host.faults().lose_answer.insert(Call::Deliver, 3); })]
#[case::failing(|harness: &Harness| { harness.host.faults().fail.insert(Call::Deliver, 3); })]
#[case::forgotten(|harness: &Harness| { harness.host.faults().forget = 2; })]
#[case::cannot_confirm(|harness: &Harness| { harness.host.faults().fail.insert(Call::Confirm, 3); })]
#[case::slow(|harness: &Harness| { harness.host.faults().on_its_way = seconds(5); })]
#[tokio::test(start_paused = true)]
async fn a_message_arrives_once_though_the_host_fails(#[case] fault: fn(&Harness)) {
    let harness = Harness::new(listens(seconds(300)));
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    fault(&harness);
    tell(&process, &task, "left").await;
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("go / left"));
    assert_eq!(heard(&harness, &task), ["left"]);
}

/// A child that says it is done while a message is on its way goes on when it has got it.
#[tokio::test(start_paused = true)]
async fn a_child_is_not_done_while_a_message_may_be_on_its_way_to_it() {
    let harness = Harness::new(listens(seconds(30))).with(|settings| {
        settings.confirm_timeout = seconds(100);
    });
    harness.host.faults().notices_wake = true;
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    harness.host.faults().late = seconds(60);
    tokio::time::sleep(seconds(25)).await;
    tell(&process, &task, "left").await;
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(process.status(&task).await, Status::Running);
    process.settled().await;
    assert_eq!(heard(&harness, &task), ["left"]);
    assert_eq!(states(&process, &task).await, [MessageState::Delivered]);
}

/// The host says that a child is done, and that is on its way to the worker while the child is told
/// something and goes on.
#[tokio::test(start_paused = true)]
async fn what_a_child_is_told_while_it_is_said_to_be_done_is_not_lost() {
    let harness = Harness::new(listens(seconds(30)));
    harness.host.faults().notices_wake = true;
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    harness.host.faults().late_inspection = seconds(10);
    tokio::time::sleep(seconds(32)).await;
    assert_eq!(process.status(&task).await, Status::Running);
    tell(&process, &task, "left").await;
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("go / left"));
    assert_eq!(heard(&harness, &task), ["left"]);
    assert_eq!(states(&process, &task).await, [MessageState::Delivered]);
}

/// A message that was on its way sets a session to work that had been stopped.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_told_something_after_it_was_stopped_is_stopped_again() {
    let harness = Harness::new(Script::of([Step::Hang]));
    harness.host.faults().notices_wake = true;
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    harness.host.faults().on_its_way = seconds(5);
    tell(&process, &task, "left").await;
    let aborts = || harness.host.faults().asked.get(&Call::Abort).copied();
    until("it is sent", async || {
        harness.host.faults().asked.contains_key(&Call::Deliver)
    })
    .await;
    let cancelled = process.manager.cancel(&Caller::Person, task.as_str()).await;
    cancelled.expect("cancelled");
    until("it is stopped", async || aborts() == Some(1)).await;
    assert_eq!(heard(&harness, &task), Vec::<String>::new());
    until("it is stopped again", async || aborts() == Some(2)).await;
    assert_eq!(heard(&harness, &task), ["left"]);
}

/// The newest word counts, so it has to be the last that is heard.
#[tokio::test(start_paused = true)]
async fn what_was_said_first_is_told_first() {
    let harness = Harness::new(listens(seconds(300)));
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    let child = ScriptedHost::session_of(&task);
    harness.host.faults().busy.insert(child);
    tell(&process, &task, "left").await;
    // By now it is tried only every few seconds.
    tokio::time::sleep(seconds(20)).await;
    harness.host.faults().busy.clear();
    tell(&process, &task, "no, right").await;
    let report = process.wait(&task).await;
    assert_eq!(heard(&harness, &task), ["left", "no, right"]);
    assert_eq!(report.answer.as_deref(), Some("go / left; no, right"));
}

/// Its run has ended, so there is nobody who would follow what it does now.
#[tokio::test(start_paused = true)]
async fn a_child_that_has_failed_is_stopped_if_a_message_wakes_it() {
    let fails = [Step::Wait(seconds(30)), Step::Fail("no".to_owned())];
    let harness = Harness::new(Script::of(fails));
    harness.host.faults().notices_wake = true;
    let process = harness.start().await;
    let task = process.launch("go").await;
    process.until_prompted(&task).await;
    harness.host.faults().on_its_way = seconds(10);
    tokio::time::sleep(seconds(25)).await;
    tell(&process, &task, "left").await;
    process.until_status(&task, Status::Error).await;
    assert_eq!(heard(&harness, &task), Vec::<String>::new());
    until("it is told", async || !heard(&harness, &task).is_empty()).await;
    until("it is stopped", async || {
        !process.look(&task).await.stopping
    })
    .await;
    let aborts = harness.host.faults().asked.get(&Call::Abort).copied();
    assert_eq!(aborts, Some(2));
}

/// Kills the worker inside each call that telling a child makes.
#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_tells_a_child_leaves_nothing_untold_or_told_twice() {
    for call in [Call::Deliver, Call::Confirm] {
        let harness = Harness::new(listens(seconds(500)));
        let first = harness.start().await;
        let task = first.launch("go").await;
        first.until_prompted(&task).await;
        harness.host.faults().slow = seconds(5);
        tell(&first, &task, "left").await;
        until("the host is asked", async || {
            harness.host.faults().asked.contains_key(&call)
        })
        .await;
        drop(first);
        harness.host.faults().slow = seconds(0);
        let second = harness.start().await;
        second.settled().await;
        let report = second.output(&task).await;
        assert_eq!(report.answer.as_deref(), Some("go / left"), "{call:?}");
        assert_eq!(heard(&harness, &task), ["left"], "{call:?}");
    }
}

/// A worker dies again and again while children are told things, by hosts that lose answers.
#[tokio::test(start_paused = true)]
async fn everything_is_told_once_though_workers_die_all_the_time() {
    let script = Script {
        children: vec![Child {
            when: None,
            steps: vec![
                Step::Wait(seconds(2_000)),
                Step::Answer("{told}".to_owned()),
            ],
        }],
        ..usual()
    };
    let harness = Harness::new(script).with(|settings| {
        settings.limits.worker_deaths = 1_000;
        settings.limits.stall = seconds(20_000);
    });
    let mut process = harness.start().await;
    let mut tasks = Vec::new();
    for number in 0..5 {
        let task = process.launch(&format!("task {number}")).await;
        process.until_prompted(&task).await;
        tasks.push(task);
    }
    let mut expected = Vec::new();
    for round in 0..40_u64 {
        {
            let mut faults = harness.host.faults();
            faults.slow = Duration::from_millis(round * 37 % 300);
            faults.lose_answer.insert(Call::Deliver, (round % 3) as u32);
            faults.on_its_way = Duration::from_millis(round * 53 % 700);
        }
        let text = format!("message {round}");
        for task in &tasks {
            tell(&process, task, &text).await;
        }
        expected.push(text);
        tokio::time::sleep(Duration::from_millis(round * 101 % 900)).await;
        process.worker.kill();
        process = harness.start().await;
    }
    harness.host.faults().slow = seconds(0);
    harness.host.faults().lose_answer.clear();
    process.settled().await;
    for task in &tasks {
        let report = process.output(task).await;
        let outcome = report.shown.task.status();
        assert_eq!(outcome, Outcome::Completed.status());
        let mut heard = heard(&harness, task);
        heard.sort_by_key(|text| {
            text.split(' ')
                .next_back()
                .and_then(|n| n.parse::<u64>().ok())
        });
        assert_eq!(heard, expected);
    }
}
