//! What may happen to a task next: a table of stories, and what always holds.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost, Spent},
    event::{Event, Launched},
    host_ref::HostRef,
    id::TaskId,
    lifecycle::{
        CancelledBy, Command, Effect, Next, Standing, after_asking, apply, begin, decide,
        lost_its_workers, overdue,
    },
    moment::Moment,
    progress::{Observation, Totals},
    question::{Question, Reply},
    refusal::Refusal,
    speaker::Speaker,
    task::{Brief, Context, Outcome, Phase, Place, Stage, State, Status, Task},
    task_limits::TaskLimits,
};
use proptest::prelude::*;
use rstest::rstest;

const START: Moment = Moment::from_millis(1_000_000);

fn at(seconds: u64) -> Moment {
    START.after(Duration::from_secs(seconds))
}

fn launched() -> Launched {
    Launched {
        place: Place {
            parent: "main".into(),
            above: None,
            root: "main".into(),
            depth: 1,
            outside: None,
            above_in: None,
        },
        brief: Brief {
            description: "one".to_owned(),
            agent: "general".into(),
            model: None,
            effort: None,
            context: Context::Fresh,
            host: HostRef::from("scripted").into(),
        },
        prompt: "do it".to_owned(),
        fork: None,
        budget: Budget::default(),
        batch: 0,
        owner: Some("worker".into()),
        chain: None,
        from: None,
        role: None,
    }
}

fn task() -> Task {
    begin(TaskId::from_random(7), &launched(), START)
}

fn after(events: &[Event]) -> Task {
    let mut task = task();
    for (n, event) in (1..).zip(events) {
        apply(&mut task, event, at(n));
    }
    task
}

fn session_made() -> Event {
    Event::SessionMade {
        session: "child".into(),
    }
}

fn ended(outcome: Outcome, stop: bool) -> Event {
    Event::Ended {
        outcome,
        answer: None,
        stop,
    }
}

fn summing_up() -> Event {
    Event::SummingUp {
        why: "the budget is used up".to_owned(),
    }
}

fn sum_up() -> Command {
    Command::SumUp {
        why: "the budget is used up".to_owned(),
    }
}

fn summed_up() -> Command {
    Command::SummedUp {
        answer: Some("so far".to_owned()),
        spent: Some(Observation::Turned(Spent::answer(10, Cost(1), 0))),
    }
}

fn stopped(tokens: u64) -> Command {
    let totals = Totals {
        tokens,
        ..Totals::default()
    };
    Command::Stopped {
        totals: Some(totals),
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        why: "broken".to_owned(),
    }
}

/// Where a story begins.
#[derive(Debug, Clone, Copy)]
enum From {
    Queued,
    Creating,
    Working,
    SummingUp,
    Completed,
    Failed,
    Cancelled,
    Stopping,
    ResumedWhileStopping,
    Resumed,
    NeverBegan,
    Cleared,
}

const EVERYWHERE: [From; 12] = [
    From::Queued,
    From::Creating,
    From::Working,
    From::SummingUp,
    From::Completed,
    From::Failed,
    From::Cancelled,
    From::Stopping,
    From::ResumedWhileStopping,
    From::Resumed,
    From::NeverBegan,
    From::Cleared,
];

fn stand(from: From) -> Task {
    let working = [Event::Started, session_made(), Event::Prompted];
    let resumed = Event::Resumed {
        prompt: "more".to_owned(),
        batch: 1,
        chain: None,
        from: None,
    };
    let and = |more: &[Event]| [&working[..], more].concat();
    match from {
        From::Queued => after(&[]),
        From::Creating => after(&[Event::Started]),
        From::Working => after(&working),
        From::SummingUp => after(&and(&[summing_up()])),
        From::Completed => after(&and(&[ended(Outcome::Completed, false)])),
        From::Failed => after(&and(&[ended(failed(), false)])),
        From::Cancelled => after(&and(&[ended(Outcome::Cancelled, true), Event::Stopped])),
        From::Stopping => after(&and(&[ended(Outcome::Cancelled, true)])),
        From::ResumedWhileStopping => after(&and(&[ended(Outcome::Cancelled, true), resumed])),
        From::Resumed => after(&and(&[
            ended(Outcome::Completed, false),
            resumed,
            Event::Started,
            Event::Prompted,
        ])),
        From::NeverBegan => after(&[ended(Outcome::Cancelled, false)]),
        From::Cleared => after(&and(&[ended(Outcome::Completed, false), Event::Cleared])),
    }
}

/// What happens, in a line: events, effects, and how the task stands then.
fn story(from: From, command: Command) -> String {
    let mut task = stand(from);
    task.budget.tool_calls = Some(10);
    let decision = match decide(&task, command, at(100), &TaskLimits::default()) {
        Ok(decision) => decision,
        Err(refusal) => return format!("refused: {refusal}"),
    };
    let events = decision.events.iter().map(|event| {
        let shown = format!("{event:?}");
        let end = shown.find([' ', '(', '{']).unwrap_or(shown.len());
        shown[..end].to_lowercase()
    });
    let events = events.collect::<Vec<_>>().join("+");
    for event in &decision.events {
        apply(&mut task, event, at(100));
    }
    let effects = decision.effects.iter().map(|effect| match effect {
        Effect::Tell => " tell",
        Effect::SuppressNotice => " hush",
        Effect::Withdraw => " withdraw",
        Effect::StopBelow => " stop-below",
        Effect::SpendAbove => " spend-above",
        Effect::SendMessages => " send-messages",
        Effect::SendAnswer { .. } => " send-answer",
        Effect::TellQuestion { .. } => " tell-question",
    });
    let effects: String = effects.collect();
    let stopping = if task.stopping { ", stopping" } else { "" };
    match events.as_str() {
        "" => "nothing".to_owned(),
        events => format!("{events}{effects} -> {}{stopping}", task.status()),
    }
}

fn finish(outcome: Outcome) -> Command {
    Command::Finish {
        outcome,
        answer: Some("an answer".to_owned()),
        totals: None,
        woken: false,
    }
}

fn move_on() -> Command {
    Command::Move {
        host: HostRef::engine("/other"),
    }
}

fn spent_below(tool_calls: u64) -> Command {
    Command::SpentBelow(Spent {
        tool_calls,
        ..Spent::default()
    })
}

fn tell() -> Command {
    Command::Tell {
        from: Speaker::Parent,
        text: "left, not right".to_owned(),
    }
}

fn answer() -> Command {
    Command::Answer {
        question: "q".to_owned(),
        reply: Reply::Once,
    }
}

fn resume() -> Command {
    Command::Resume {
        prompt: "more".to_owned(),
        batch: 3,
        chain: "chain".into(),
        from: None,
    }
}

#[rstest]
#[case(From::Queued, Command::Start, "started -> running")]
#[case(From::Queued, Command::Hold { why: "no key".into() }, "held -> queued")]
#[case(From::Working, Command::Hold { why: "no key".into() }, "nothing")]
#[case(From::Completed, Command::Hold { why: "no key".into() }, "nothing")]
#[case(
    From::Queued,
    Command::Cancel(CancelledBy::Request),
    "ended tell stop-below -> cancelled"
)]
#[case(
    From::Queued,
    Command::Cancel(CancelledBy::Above),
    "ended hush stop-below -> cancelled"
)]
#[case(From::Queued, Command::GiveUp { why: "no host".into() }, "ended tell stop-below -> error")]
#[case(From::Queued, finish(Outcome::Completed), "ended tell -> completed")]
#[case(
    From::Queued,
    Command::Clear,
    "ended+cleared hush stop-below withdraw -> cancelled"
)]
#[case(From::Queued, Command::Prompted, "nothing")]
#[case(From::Queued, Command::Retrieve, "nothing")]
#[case(From::Queued, Command::ClockMoved { by: 9 }, "nothing")]
#[case(From::Working, Command::ClockMoved { by: 9 }, "clockmoved -> running")]
#[case(From::Completed, Command::ClockMoved { by: 9 }, "nothing")]
#[case(From::Creating, Command::SessionMade("child".into()), "sessionmade -> running")]
#[case(From::Creating, Command::Start, "nothing")]
#[case(From::Creating, Command::GiveUp { why: "no session".into() }, "ended tell stop-below -> error, stopping")]
#[case(From::Working, Command::Prompted, "prompted send-messages -> running")]
#[case(From::Queued, tell(), "messaged -> queued")]
#[case(From::Creating, tell(), "messaged -> running")]
#[case(From::Working, tell(), "messaged send-messages -> running")]
#[case(
    From::SummingUp,
    tell(),
    "refused: task_00000000000000000000000000000007 sums up what it has found and takes no more messages; resume it when it has ended"
)]
#[case(
    From::Completed,
    tell(),
    "refused: task_00000000000000000000000000000007 takes no more messages (completed); resume it to go on with it"
)]
#[case(
    From::Working,
    answer(),
    "refused: task_00000000000000000000000000000007 asks nothing that is open; it may have been answered meanwhile"
)]
#[case(From::Queued, Command::TellQuestions, "nothing")]
#[case(From::Working, Command::TellQuestions, "nothing")]
#[case(From::Working, finish(Outcome::Completed), "ended tell -> completed")]
#[case(From::Working, finish(failed()), "ended tell stop-below -> error")]
#[case(From::Working, Command::GiveUp { why: "too long".into() }, "ended tell stop-below -> error, stopping")]
#[case(
    From::Working,
    Command::Cancel(CancelledBy::Request),
    "ended tell stop-below -> cancelled, stopping"
)]
#[case(
    From::Working,
    Command::Cancel(CancelledBy::Above),
    "ended hush stop-below -> cancelled, stopping"
)]
#[case(
    From::Working,
    Command::Clear,
    "ended+cleared hush stop-below withdraw -> cancelled, stopping"
)]
#[case(From::Working, Command::Retrieve, "nothing")]
#[case(From::Working, Command::Stopped { totals: None }, "nothing")]
#[case(From::Queued, sum_up(), "ended tell stop-below -> error")]
#[case(From::Creating, sum_up(), "ended tell stop-below -> error, stopping")]
#[case(From::Working, sum_up(), "summingup stop-below -> running")]
#[case(From::Resumed, sum_up(), "summingup stop-below -> resumed")]
#[case(From::Working, summed_up(), "nothing")]
#[case(From::SummingUp, sum_up(), "nothing")]
#[case(
    From::SummingUp,
    summed_up(),
    "observed+ended tell stop-below -> error, stopping"
)]
#[case(
    From::SummingUp,
    finish(Outcome::Completed),
    "ended tell stop-below -> error"
)]
#[case(
    From::SummingUp,
    Command::Cancel(CancelledBy::Request),
    "ended tell stop-below -> cancelled, stopping"
)]
#[case(From::SummingUp, Command::Start, "nothing")]
#[case(From::Completed, sum_up(), "nothing")]
#[case(From::Completed, summed_up(), "nothing")]
#[case(From::Completed, resume(), "resumed -> queued")]
#[case(From::Completed, Command::Retrieve, "retrieved -> completed")]
#[case(
    From::Completed,
    Command::Clear,
    "cleared stop-below withdraw -> completed"
)]
#[case(From::Completed, Command::Cancel(CancelledBy::Above), "nothing")]
#[case(From::Completed, finish(failed()), "nothing")]
#[case(From::Completed, Command::GiveUp { why: "late".into() }, "nothing")]
#[case(From::Completed, Command::Start, "nothing")]
#[case(From::Completed, Command::Prompted, "nothing")]
#[case(From::Failed, resume(), "resumed -> queued")]
#[case(From::Cancelled, resume(), "resumed -> queued")]
#[case(From::Cancelled, Command::Stopped { totals: None }, "nothing")]
#[case(From::Stopping, Command::Stopped { totals: None }, "stopped -> cancelled")]
#[case(From::Stopping, stopped(10), "observed+stopped -> cancelled")]
#[case(From::Stopping, stopped(0), "stopped -> cancelled")]
#[case(From::ResumedWhileStopping, stopped(10), "observed+stopped -> queued")]
#[case(From::Completed, stopped(10), "nothing")]
#[case(From::Stopping, resume(), "resumed -> queued, stopping")]
#[case(From::ResumedWhileStopping, Command::Stopped { totals: None }, "stopped -> queued")]
#[case(From::Resumed, finish(Outcome::Completed), "ended tell -> completed")]
#[case(
    From::Resumed,
    Command::Cancel(CancelledBy::Request),
    "ended tell stop-below -> cancelled, stopping"
)]
#[case(From::Cleared, Command::Clear, "nothing")]
#[case(From::Queued, move_on(), "moved -> queued")]
#[case(From::Working, move_on(), "nothing")]
#[case(From::Completed, move_on(), "nothing")]
#[case(From::Queued, Command::Assign { to: None }, "owned -> queued")]
#[case(From::Working, Command::Assign { to: Some("other".into()) }, "owned -> running")]
#[case(From::Stopping, Command::Assign { to: None }, "owned -> cancelled, stopping")]
#[case(From::Queued, spent_below(10), "spentbelow -> queued")]
#[case(
    From::Queued,
    spent_below(11),
    "spentbelow+ended tell stop-below -> error"
)]
#[case(From::Working, spent_below(10), "spentbelow -> running")]
#[case(
    From::Working,
    spent_below(11),
    "spentbelow+ended tell stop-below -> error, stopping"
)]
#[case(From::Completed, spent_below(10), "spentbelow -> completed")]
#[case(From::Completed, spent_below(11), "spentbelow stop-below -> completed")]
fn a_command_in_a_state(#[case] from: From, #[case] command: Command, #[case] expected: &str) {
    assert_eq!(story(from, command), expected);
}

#[rstest]
#[case(
    From::Queued,
    resume(),
    "is still queued; wait until it has finished, or cancel it"
)]
#[case(From::Working, resume(), "is still running; wait")]
#[case(From::Resumed, resume(), "is still resumed; wait")]
#[case(
    From::NeverBegan,
    resume(),
    "ended before it had a session to go on with"
)]
#[case(From::Completed, Command::Resume { prompt: " ".into(), batch: 1, chain: "c".into(), from: None }, "the prompt is empty")]
#[case(
    From::Completed,
    Command::Cancel(CancelledBy::Request),
    "has ended already (completed)"
)]
#[case(
    From::Failed,
    Command::Cancel(CancelledBy::Request),
    "has ended already (error)"
)]
fn a_command_that_is_refused(#[case] from: From, #[case] command: Command, #[case] why: &str) {
    let story = story(from, command);
    assert!(
        story.starts_with("refused: ") && story.contains(why),
        "{story}"
    );
}

#[test]
fn a_second_reading_changes_nothing() {
    let mut task = stand(From::Completed);
    apply(&mut task, &Event::Retrieved, at(50));
    let again = decide(&task, Command::Retrieve, at(60), &TaskLimits::default());
    assert_eq!(again.expect("no refusal").events, []);
    assert_eq!(task.retrieved_at, Some(at(50)));
}

#[rstest]
#[case(Standing::Unprompted, Next::Prompt)]
#[case(Standing::Working, Next::Wait)]
#[case(
    Standing::Done { outcome: Outcome::Completed, answer: Some("yes".into()) },
    Next::Finish { outcome: Outcome::Completed, answer: Some("yes".into()) }
)]
fn what_a_host_says_decides_what_is_next(#[case] standing: Standing, #[case] next: Next) {
    assert_eq!(after_asking(standing), next);
}

#[rstest]
#[case(Standing::Gone, "its session no longer exists")]
#[case(Standing::Interrupted, "its host was stopped while it worked")]
fn what_cannot_go_on_ends_with_a_reason(#[case] standing: Standing, #[case] reason: &str) {
    match after_asking(standing) {
        Next::Finish {
            outcome: Outcome::Failed { why },
            ..
        } => assert!(why.contains(reason), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn time_and_silence_end_a_task_and_not_a_moment_before() {
    let mut task = stand(From::Working);
    task.budget.time = Some(Duration::from_secs(50));
    let limits = TaskLimits::default();
    let quiet = Duration::from_secs;
    // It has been running since second 1.
    assert_eq!(overdue(&task, quiet(49), at(50), &limits), None);
    let why = overdue(&task, quiet(50), at(51), &limits).expect("overdue");
    assert_eq!(why, "the time limit of 50s is reached");
    task.budget.time = None;
    assert_eq!(overdue(&task, quiet(599), at(600), &limits), None);
    let why = overdue(&task, quiet(600), at(601), &limits).expect("overdue");
    assert_eq!(why, "it made no progress for 10m 00s");
    // It waits for other tasks, not they for it.
    task.progress.note(&Observation::CommandQueued, at(2));
    assert_eq!(overdue(&task, quiet(600), at(601), &limits), None);
    task.progress.note(&Observation::CommandStarted, at(3));
    assert!(overdue(&task, quiet(600), at(601), &limits).is_some());
}

#[test]
fn what_a_task_does_is_told_by_what_was_heard_last() {
    let phase = |task: &Task| task.phase().map(|phase| phase.to_string());
    assert_eq!(phase(&task()), None, "it is queued");
    let mut task = after(&[Event::Started]);
    let mut hear = |event: Event| {
        apply(&mut task, &event, at(2));
        phase(&task).expect("it runs")
    };
    assert_eq!(hear(session_made()), "starting");
    assert_eq!(hear(Event::Prompted), "working");
    let called = |tool: &str| {
        let (tool, call) = (tool.to_owned(), 1);
        Event::Observed(Observation::ToolCalled { tool, call })
    };
    assert_eq!(hear(called("read")), "using read");
    assert_eq!(hear(called("bash")), "using bash");
    let asked = Observation::Asked {
        id: "1".to_owned(),
        question: Question::permission("permission for bash"),
    };
    assert_eq!(hear(Event::Observed(asked)), "asking");
    let answered = Observation::Answered { id: "1".to_owned() };
    assert_eq!(hear(Event::Observed(answered)), "using bash");
    let turned = Observation::Turned(Spent::answer(1, Cost(1), 0));
    assert_eq!(hear(Event::Observed(turned)), "working");
    apply(&mut task, &ended(Outcome::Completed, false), at(3));
    assert_eq!(phase(&task), None);
}

#[test]
fn a_clock_that_is_set_back_ends_nothing() {
    let mut task = stand(From::Working);
    task.budget.time = Some(Duration::from_secs(50));
    let before = Moment::from_millis(0);
    let quiet = Duration::from_secs;
    assert_eq!(
        overdue(&task, quiet(0), before, &TaskLimits::default()),
        None
    );
    assert_eq!(task.ran(before), Duration::ZERO);
}

#[test]
fn a_task_that_takes_its_workers_along_is_ended_unless_it_makes_progress() {
    let limits = TaskLimits::default();
    let mut task = stand(From::Working);
    task.owner = None;
    let owned = |by: Option<&str>, task: &mut Task| {
        let by = by.map(Into::into);
        apply(task, &Event::Owned { by }, at(5));
        lost_its_workers(task, &limits).is_some()
    };
    assert!(!owned(Some("a"), &mut task), "nobody had it before");
    assert!(!owned(Some("b"), &mut task), "a died");
    assert!(!owned(None, &mut task), "b gave it back");
    assert!(!owned(Some("c"), &mut task), "so nobody died");
    let turned = Observation::Turned(Spent::answer(1, Cost(1), 0));
    apply(&mut task, &Event::Observed(turned), at(6));
    assert!(!owned(Some("d"), &mut task), "c died, after progress");
    assert!(owned(Some("e"), &mut task), "and d, without any");
}

#[rstest]
#[case(0, "$0.00")]
#[case(1, "$0.000001")]
#[case(500_000, "$0.50")]
#[case(1_234_500, "$1.2345")]
#[case(12_000_000, "$12.00")]
fn money_is_shown_exactly(#[case] millionths: u64, #[case] shown: &str) {
    assert_eq!(Cost(millionths).to_string(), shown);
}

fn any_observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        (0..3_u64).prop_map(|call| Observation::ToolCalled {
            tool: format!("tool {call}"),
            call,
        }),
        (0..1_000_u64, 0..1_000_u64).prop_map(|(tokens, cost)| Observation::Turned(Spent::answer(
            tokens,
            Cost(cost),
            0
        ))),
        (0..1_000_u64).prop_map(|tokens| Observation::Counted(Totals {
            tokens,
            ..Totals::default()
        })),
        Just(Observation::Asked {
            id: "q".to_owned(),
            question: Question::permission("May I?"),
        }),
        Just(Observation::Answered { id: "q".to_owned() }),
    ]
}

fn any_command() -> impl Strategy<Value = Command> {
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(failed()),
        Just(Outcome::Cancelled)
    ];
    prop_oneof![
        Just(Command::Start),
        Just(Command::SessionMade("child".into())),
        Just(Command::Prompted),
        prop::collection::vec(any_observation(), 0..4).prop_map(Command::Observe),
        outcome.prop_map(finish),
        Just(Command::GiveUp { why: "so".into() }),
        Just(Command::Hold { why: "so".into() }),
        Just(sum_up()),
        Just(summed_up()),
        Just(Command::Cancel(CancelledBy::Request)),
        Just(Command::Cancel(CancelledBy::Above)),
        Just(Command::Stopped { totals: None }),
        (0..3_000_u64).prop_map(stopped),
        Just(resume()),
        Just(move_on()),
        Just(Command::Assign { to: None }),
        (0..20_u64).prop_map(spent_below),
        Just(Command::Retrieve),
        (-9_000_000i64..9_000_000).prop_map(|by| Command::ClockMoved { by }),
        Just(tell()),
        Just(answer()),
        Just(Command::TellQuestions),
        Just(Command::Clear),
    ]
}

proptest! {
    /// Whatever is asked, in whatever order.
    #[test]
    fn whatever_is_asked(commands in prop::collection::vec(any_command(), 0..60), budget in prop::option::of(0..3_000_u64)) {
        let limits = TaskLimits::default();
        let mut task = task();
        task.budget.tokens = budget;
        let mut ends = 0;
        let mut tells = 0;
        let mut quiet = 0;
        let mut resumes = 0;
        for (n, command) in (1..).zip(commands) {
            let before = task.clone();
            let decision = match decide(&task, command, at(n), &limits) {
                Ok(decision) => decision,
                Err(Refusal::StillRunning { .. }) => {
                    prop_assert!(task.is_live());
                    continue;
                }
                Err(Refusal::TooLateToTell { .. }) => {
                    prop_assert!(!task.is_live());
                    continue;
                }
                Err(Refusal::SummingUp { .. }) => {
                    prop_assert_eq!(task.phase(), Some(Phase::SummingUp));
                    continue;
                }
                Err(Refusal::NotAsking { .. }) => {
                    prop_assert!(task.phase() != Some(Phase::Asking));
                    continue;
                }
                Err(_) => {
                    prop_assert!(!task.is_live());
                    continue;
                }
            };
            for event in &decision.events {
                ends += usize::from(matches!(event, Event::Ended { .. }));
                resumes += u32::from(matches!(event, Event::Resumed { .. }));
                apply(&mut task, event, at(n));
            }
            tells += decision.effects.iter().filter(|effect| **effect == Effect::Tell).count();
            quiet += decision.effects.iter().filter(|effect| **effect == Effect::SuppressNotice).count();
            // An ended task comes back only by being resumed.
            if !before.is_live() && task.is_live() {
                prop_assert_eq!(task.status(), Status::Queued);
            }
            // Work that may still go on is remembered until it was stopped.
            if before.stopping && !task.stopping {
                prop_assert!(decision.events.contains(&Event::Stopped));
            }
            // A prompt is sent only into a session.
            if let State::Running { stage: Stage::Prompting, .. } = task.state {
                prop_assert!(task.session.is_some());
            }
            prop_assert_eq!(task.seq, before.seq + decision.events.len() as u64);
        }
        prop_assert_eq!(tells + quiet, ends, "each end is told once, or nobody is there to be told");
        prop_assert_eq!(task.run, resumes);
        let sum: u64 = task.progress.by_tool.values().sum();
        prop_assert_eq!(task.progress.spent.tool_calls, sum);
    }
}

#[test]
fn every_state_answers_every_command() {
    // `decide` is an exhaustive match, so this is about panics alone.
    for from in EVERYWHERE {
        for command in [
            Command::Start,
            Command::Prompted,
            Command::Observe(vec![]),
            Command::Stopped { totals: None },
            Command::Retrieve,
            Command::Clear,
            Command::SessionMade("child".into()),
            Command::GiveUp { why: "so".into() },
            sum_up(),
            summed_up(),
            resume(),
            move_on(),
            Command::Assign { to: None },
            spent_below(11),
            finish(Outcome::Completed),
            Command::Cancel(CancelledBy::Request),
            Command::Cancel(CancelledBy::Above),
        ] {
            story(from, command);
        }
    }
}
