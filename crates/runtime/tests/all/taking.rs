//! A session that can be sent nothing is told when it asks: each end once, and none is lost. Who asks is a
//! process of its own each time, as the hooks of a program are.

use std::{collections::HashSet, time::Duration};

use asyncagents_core::{
    host_ref::HostRef,
    id::{PostId, SessionId, TaskId},
    port::Fate,
    request::{Caller, OutputRequest},
};
use asyncagents_runtime::{Asking, Awaited, Manager, TakenNotice};
use asyncagents_testkit::scripted_host::{Call, Line, Script, Step};
use rstest::rstest;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::harness::{Harness, Process, asks, ends, fates, key, notices, seconds, takes, until};

/// Longer than anything takes to show in a history.
const LONG: Duration = Duration::from_secs(3);

fn main_session() -> SessionId {
    SessionId::from("main")
}

/// Session `main` of a program that can be sent nothing.
fn parent() -> Caller {
    parent_in(HostRef::ClaudeCode {
        config: "/home/me/.claude".into(),
    })
}

fn parent_in(program: HostRef) -> Caller {
    Caller::Session {
        session: main_session(),
        host: key().into(),
        outside: Some(program),
        message: None,
    }
}

/// Children that take as many seconds as their prompt says.
fn children() -> Harness {
    let script = [5, 10, 60]
        .into_iter()
        .fold(Script::of(takes(seconds(1))), |script, time: u64| {
            script.when(&format!("{time} seconds"), takes(seconds(time)))
        });
    Harness::new(script).looking_every(seconds(1))
}

async fn launch(process: &Process, prompt: &str) -> TaskId {
    let accepted = process.manager.task(&parent(), asks(prompt)).await;
    accepted.expect("launched").shown.task.id
}

/// Launches a task that has ended when this returns.
async fn ended(process: &Process, prompt: &str) -> TaskId {
    let task = launch(process, prompt).await;
    process.settled().await;
    task
}

async fn take(harness: &Harness, asking: Asking) -> Vec<TakenNotice> {
    let (manager, session) = (harness.manager(), main_session());
    let taken = manager.take_notices(&session, asking).await;
    taken.expect("taken")
}

/// Takes one notice.
async fn take_one(harness: &Harness, asking: Asking) -> TakenNotice {
    let mut taken = take(harness, asking).await;
    assert_eq!(taken.len(), 1, "{taken:?}");
    taken.remove(0)
}

/// Begins to wait, for as long as the session can be told.
fn waits(manager: Manager, asking: Asking) -> JoinHandle<Awaited> {
    let session = main_session();
    tokio::spawn(async move {
        let awaited = manager.await_notices(&session, asking, async || true);
        awaited.await.expect("awaited")
    })
}

/// What came of a wait, which has to end within a few minutes.
async fn outcome(waiter: JoinHandle<Awaited>) -> Awaited {
    let outcome = timeout(seconds(300), waiter).await;
    outcome
        .expect("it does not wait for ever")
        .expect("it ends")
}

/// The names of what a wait brought.
async fn brought(waiter: JoinHandle<Awaited>) -> Vec<PostId> {
    match outcome(waiter).await {
        Awaited::Notices(taken) => taken.into_iter().map(|taken| taken.id).collect(),
        Awaited::NothingLeft => Vec::new(),
    }
}

/// What was taken is in the session's history from now on.
fn show(harness: &Harness, taken: &TakenNotice) {
    let line = Line::Told {
        id: taken.id.to_string(),
        visible: taken.message.visible.clone(),
        hidden: taken.message.hidden.clone(),
        at: 0,
    };
    let world = harness.outside.world();
    world.add(&main_session(), line).expect("shown");
}

/// The ends that are in the session's history.
fn in_history(harness: &Harness) -> Vec<String> {
    let history = harness.outside.world().lines(&main_session());
    let told = history.expect("a history").into_iter();
    let ends = told.flat_map(|line| match line {
        Line::Told { visible, .. } => ends(&visible),
        _ => Vec::new(),
    });
    ends.collect()
}

/// The program of the session has been started anew.
async fn start_anew(harness: &Harness) {
    let given_back = harness.manager();
    let given_back = given_back.give_back_lost(&main_session()).await;
    given_back.expect("given back");
}

async fn fate(harness: &Harness, task: &TaskId) -> Fate {
    let mut fates = fates(harness.store(), task).await;
    assert_eq!(fates.len(), 1, "{fates:?}");
    fates.remove(0)
}

#[tokio::test(start_paused = true)]
async fn an_end_is_given_once_to_those_who_ask() {
    let harness = children();
    let process = harness.start().await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    let task = ended(&process, "one").await;
    let (first, second) = tokio::join!(
        take(&harness, Asking::Running),
        take(&harness, Asking::Waking)
    );
    let given = [first, second].concat();
    assert_eq!(given.len(), 1, "{given:?}");
    let text = given[0].text();
    let says = "✓ **Agent \"one\" finished in 1.0s.**\nTask Progress: 1/1\n";
    assert!(text.starts_with(says), "{text}");
    assert!(text.contains("ok: one"), "{text}");
    let mark = format!("\n[asyncagents notice {}]", task.notice(0));
    assert!(text.ends_with(&mark), "{text}");
    // It may be on its way.
    for asking in [Asking::Running, Asking::Waking] {
        assert_eq!(take(&harness, asking).await, []);
    }
    sleep(harness.settings.confirm_timeout - Duration::from_millis(500)).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    assert_eq!(fate(&harness, &task).await, Fate::Pending);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_history_is_settled_and_its_result_is_read() {
    let harness = children();
    let process = harness.start().await;
    let task = ended(&process, "one").await;
    show(&harness, &take_one(&harness, Asking::Running).await);
    // However it is asked for.
    assert_eq!(take(&harness, Asking::Waking).await, []);
    assert_eq!(fate(&harness, &task).await, Fate::Delivered);
    assert!(process.look(&task).await.retrieved_at.is_some());
    sleep(seconds(600)).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    assert_eq!(take(&harness, Asking::Started).await, []);
    // Nobody has to look for it any more.
    assert_eq!(harness.outside.faults().asked[&Call::Confirm], 1);
}

/// An answer that certainly arrived needs no history.
#[tokio::test(start_paused = true)]
async fn what_has_arrived_for_certain_is_not_looked_for() {
    let harness = children();
    let process = harness.start().await;
    let task = ended(&process, "one").await;
    let taken = take(&harness, Asking::Running).await;
    let told = harness.manager();
    told.notices_told(&taken).await.expect("settled");
    assert_eq!(fate(&harness, &task).await, Fate::Delivered);
    sleep(LONG).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_given_again_when_it_is_certain_that_it_was() {
    let harness = children();
    let process = harness.start().await;
    let task = ended(&process, "one").await;
    let lost = take_one(&harness, Asking::Waking).await;
    sleep(LONG).await;
    // A program that is frozen would be told as often as there are hooks.
    assert_eq!(take(&harness, Asking::Waking).await, []);
    harness.outside.faults().queued.insert(lost.id.clone());
    sleep(seconds(600)).await;
    for asking in [Asking::Running, Asking::Waking] {
        assert_eq!(take(&harness, asking).await, []);
    }
    harness.outside.faults().queued.clear();
    assert_eq!(take(&harness, Asking::Waking).await, []);
    let again = take_one(&harness, Asking::Running).await;
    assert_eq!(again, lost);
    // From now on it is on its way anew.
    assert_eq!(take(&harness, Asking::Running).await, []);
    show(&harness, &again);
    sleep(LONG).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    assert_eq!(fate(&harness, &task).await, Fate::Delivered);
}

#[tokio::test(start_paused = true)]
async fn of_two_who_wait_one_is_given_an_end_and_the_other_waits_for_what_is_left() {
    let harness = children();
    let process = harness.start().await;
    let quick = launch(&process, "10 seconds").await;
    let slow = launch(&process, "60 seconds").await;
    let waiters = [
        waits(harness.manager(), Asking::Waking),
        waits(harness.manager(), Asking::Waking),
    ];
    until("one is told", async || {
        waiters.iter().any(JoinHandle::is_finished)
    })
    .await;
    sleep(seconds(20)).await;
    let (done, waiting): (Vec<_>, Vec<_>) = waiters.into_iter().partition(JoinHandle::is_finished);
    assert_eq!((done.len(), waiting.len()), (1, 1));
    for done in done {
        assert_eq!(brought(done).await, [quick.notice(0)]);
    }
    // Its result is read by somebody who is blocked, so there is nothing to tell.
    let request = OutputRequest::new(slow.as_str(), true, Some(600)).expect("a request");
    let read = process.manager.output(&parent(), request).await;
    assert_eq!(
        read.expect("read").answer.as_deref(),
        Some("ok: 60 seconds")
    );
    for waiting in waiting {
        assert_eq!(outcome(waiting).await, Awaited::NothingLeft);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_who_wait_each_is_given_another_end() {
    let harness = children();
    let process = harness.start().await;
    let tasks = [
        launch(&process, "10 seconds").await,
        launch(&process, "60 seconds").await,
    ];
    let waiters: Vec<_> = (0..3)
        .map(|_| waits(harness.manager(), Asking::Waking))
        .collect();
    let mut told = Vec::new();
    for waiter in waiters {
        told.push(brought(waiter).await);
    }
    // The third has waited for nothing.
    told.sort();
    let mut each: Vec<_> = tasks.iter().map(|task| vec![task.notice(0)]).collect();
    each.push(Vec::new());
    each.sort();
    assert_eq!(told, each);
}

/// It ends while one who waits is still looking for what was given before.
#[tokio::test(start_paused = true)]
async fn an_end_that_comes_while_one_who_waits_looks_elsewhere_is_given() {
    let harness = children();
    let process = harness.start().await;
    ended(&process, "before").await;
    take_one(&harness, Asking::Waking).await;
    let task = launch(&process, "5 seconds").await;
    harness.outside.faults().slow = seconds(20);
    let waiter = waits(harness.manager(), Asking::Waking);
    assert_eq!(brought(waiter).await, [task.notice(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_started_anew_is_told_at_once_what_the_one_before_lost() {
    let harness = children();
    let process = harness.start().await;
    let mut given = Vec::new();
    for prompt in ["seen", "lost", "new"] {
        ended(&process, prompt).await;
        if prompt != "new" {
            given.push(take_one(&harness, Asking::Running).await);
        }
    }
    show(&harness, &given[0]);
    // It waited in the program that has ended.
    harness.outside.faults().queued.insert(given[1].id.clone());
    start_anew(&harness).await;
    let again = take(&harness, Asking::Waking).await;
    let again: Vec<_> = again
        .iter()
        .map(|taken| ends(&taken.message.visible))
        .collect();
    let says = |name: &str| vec![format!("✓ **Agent \"{name}\" finished in 1.0s.**")];
    assert_eq!(again, [says("lost"), says("new")]);
    assert_eq!(take(&harness, Asking::Waking).await, []);
}

/// What was told in one message is told in one again.
#[tokio::test(start_paused = true)]
async fn ends_that_were_lost_together_are_given_back_together() {
    let harness = children();
    let process = harness.start().await;
    for n in 0..5 {
        launch(&process, &format!("task {n}")).await;
    }
    process.settled().await;
    let lost = take_one(&harness, Asking::Running).await;
    assert_eq!(ends(&lost.message.visible).len(), 5, "{lost:?}");
    start_anew(&harness).await;
    let again = take_one(&harness, Asking::Waking).await;
    assert_eq!(ends(&again.message.visible), ends(&lost.message.visible));
}

#[tokio::test(start_paused = true)]
async fn however_much_was_lost_all_of_it_is_given_back() {
    const MANY: usize = 25;
    let harness = children();
    let process = harness.start().await;
    let mut lost = HashSet::new();
    for n in 0..MANY {
        ended(&process, &format!("task {n}")).await;
        // The ones before it may still be on their way.
        lost.insert(take_one(&harness, Asking::Waking).await.id);
    }
    assert_eq!(lost.len(), MANY);
    start_anew(&harness).await;
    let first = take(&harness, Asking::Waking).await;
    let rest = take(&harness, Asking::Waking).await;
    // So much at once would be too much to read.
    assert_eq!((first.len(), rest.len()), (20, 5));
    let again: HashSet<_> = first
        .into_iter()
        .chain(rest)
        .map(|taken| taken.id)
        .collect();
    assert_eq!(again, lost);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_session_that_is_shown_no_more_takes_nothing() {
    let harness = children();
    let process = harness.start().await;
    let (program, main) = ("claude 17", main_session());
    let manager = harness.manager();
    manager.shows(program, &main).await.expect("shown");
    let task = launch(&process, "60 seconds").await;
    let waiting = harness.manager();
    let shows_it = async || waiting.shown_by(program).await.expect("known").as_ref() == Some(&main);
    let begun = Instant::now();
    let waits = async {
        let awaited = waiting.await_notices(&main, Asking::Waking, shows_it);
        (awaited.await.expect("awaited"), begun.elapsed())
    };
    // The user begins another conversation in the same window.
    let clears = async {
        sleep(seconds(10)).await;
        let other = "other".into();
        manager.shows(program, &other).await.expect("shown");
    };
    let ((awaited, waited), ()) = tokio::join!(waits, clears);
    assert_eq!(awaited, Awaited::NothingLeft);
    assert!(waited >= seconds(10), "{waited:?}");
    assert!(
        process.look(&task).await.is_live(),
        "it has not waited for the end"
    );
    process.settled().await;
    assert_eq!(take_one(&harness, Asking::Waking).await.id, task.notice(0));
}

/// The end is there already, and it is asked for the moment the session cannot be told any more.
#[tokio::test(start_paused = true)]
async fn who_cannot_tell_the_session_leaves_an_end_to_the_next() {
    let harness = children();
    let process = harness.start().await;
    let task = ended(&process, "one").await;
    let (manager, session) = (harness.manager(), main_session());
    for asking in [Asking::Waking, Asking::Running] {
        let awaited = manager.await_notices(&session, asking, async || false);
        assert_eq!(awaited.await.expect("awaited"), Awaited::NothingLeft);
    }
    assert_eq!(take_one(&harness, Asking::Waking).await.id, task.notice(0));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_held_is_given_again_what_was_lost() {
    let harness = children();
    let process = harness.start().await;
    ended(&process, "one").await;
    let lost = take_one(&harness, Asking::Waking).await;
    // From here on nobody writes anything that would wake who waits.
    drop(process);
    let begun = Instant::now();
    let again = outcome(waits(harness.manager(), Asking::Running)).await;
    assert_eq!(again, Awaited::Notices(vec![lost]));
    let waited = begun.elapsed();
    let shortest = harness.settings.confirm_timeout;
    assert!((shortest..shortest * 2).contains(&waited), "{waited:?}");
}

/// The turn may end as soon as it is known that the session was told.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_held_ends_when_all_is_in_the_history() {
    let harness = children();
    let process = harness.start().await;
    ended(&process, "one").await;
    let taken = take_one(&harness, Asking::Waking).await;
    harness.outside.faults().queued.insert(taken.id.clone());
    let waiter = waits(harness.manager(), Asking::Running);
    sleep(seconds(60)).await;
    assert!(!waiter.is_finished(), "it is on its way");
    show(&harness, &taken);
    assert_eq!(outcome(waiter).await, Awaited::NothingLeft);
}

/// Nobody can say whether it was told: it is neither told twice nor given up.
#[rstest]
#[case::history(Call::Confirm)]
#[case::queue(Call::IsOnItsWay)]
#[tokio::test(start_paused = true)]
async fn while_a_program_cannot_be_asked_nothing_is_given_twice_or_lost(
    #[case] unreachable: Call,
    #[values(false, true)] was_told: bool,
) {
    let harness = children();
    let process = harness.start().await;
    let task = ended(&process, "one").await;
    let taken = take_one(&harness, Asking::Running).await;
    harness.outside.faults().fail.insert(unreachable, u32::MAX);
    let waiter = waits(harness.manager(), Asking::Running);
    sleep(seconds(60)).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    if unreachable == Call::Confirm {
        start_anew(&harness).await;
        assert_eq!(take(&harness, Asking::Waking).await, []);
    }
    assert!(!waiter.is_finished());
    assert_eq!(fate(&harness, &task).await, Fate::Pending);
    if was_told {
        show(&harness, &taken);
    }
    harness.outside.faults().fail.clear();
    let expected = if was_told {
        Awaited::NothingLeft
    } else {
        Awaited::Notices(vec![taken])
    };
    assert_eq!(outcome(waiter).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_a_blocked_session_has_read_is_not_given() {
    let harness = children();
    let process = harness.start().await;
    let task = launch(&process, "10 seconds").await;
    let waiter = waits(process.manager.clone(), Asking::Waking);
    let request = OutputRequest::new(task.as_str(), true, Some(600)).expect("a request");
    // It hears of the end later than who waits.
    let read = harness.manager().output(&parent(), request).await;
    assert_eq!(
        read.expect("read").answer.as_deref(),
        Some("ok: 10 seconds")
    );
    assert_eq!(outcome(waiter).await, Awaited::NothingLeft);
    sleep(seconds(600)).await;
    assert_eq!(take(&harness, Asking::Running).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_session_that_goes_away_is_told() {
    let harness = children();
    let process = harness.start().await;
    let task = launch(&process, "10 seconds").await;
    let waiter = waits(harness.manager(), Asking::Waking);
    let request = OutputRequest::new(task.as_str(), true, Some(600)).expect("a request");
    let (blocked, caller) = (harness.manager(), parent());
    let output = blocked.output(&caller, request);
    timeout(seconds(5), output)
        .await
        .expect_err("it is at work");
    assert_eq!(brought(waiter).await, [task.notice(0)]);
}

/// A thread that is in no window now.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_given_when_it_is_asked_for() {
    let harness = children();
    let process = harness.start().await;
    let thread = parent_in(HostRef::Codex {
        home: "/home/me/.codex".into(),
    });
    let launch = async |prompt| {
        let accepted = process.manager.task(&thread, asks(prompt)).await;
        accepted.expect("launched").shown.task.id
    };
    harness.outside.faults().holds = true;
    let held = launch("held").await;
    process.settled().await;
    assert_eq!(take_one(&harness, Asking::Running).await.id, held.notice(0));
    harness.outside.faults().holds = false;
    // It has been sent this one, and only its history does not show it yet.
    harness.outside.faults().late = seconds(1);
    let sent = launch("sent").await;
    until("it is sent", async || {
        let sent = notices(harness.store(), &sent).await;
        sent.iter().any(|notice| notice.attempted)
    })
    .await;
    assert_eq!(take(&harness, Asking::Running).await, []);
    process.settled().await;
    assert_eq!(fate(&harness, &sent).await, Fate::Delivered);
    // What it was given is not sent to it as well.
    sleep(seconds(60)).await;
    let sent = "✓ **Agent \"sent\" finished in 1.0s.**";
    assert_eq!(in_history(&harness), [sent]);
}

/// What a program does with what it was given.
enum Flight {
    /// It waits in there.
    Queued(TakenNotice),
    /// It is in the history soon.
    Soon(TakenNotice, Instant),
}

/// A program that is told by hooks, each of which may die, and that may die itself.
struct Program<'h> {
    harness: &'h Harness,
    random: fastrand::Rng,
    waiters: Vec<JoinHandle<Awaited>>,
    flying: Vec<Flight>,
}

impl Program<'_> {
    fn given(&mut self, taken: Vec<TakenNotice>) {
        for taken in taken {
            match self.random.u8(0..5) {
                0 => {}
                1 => {
                    let id = taken.id.clone();
                    self.harness.outside.faults().queued.insert(id);
                    self.flying.push(Flight::Queued(taken));
                }
                2 => {
                    let soon = Duration::from_millis(self.random.u64(0..1_500));
                    self.flying.push(Flight::Soon(taken, Instant::now() + soon));
                }
                _ => show(self.harness, &taken),
            }
        }
    }

    /// Shows what is due, and what waits if it is taken out of the queue now.
    fn show_due(&mut self) {
        for flight in std::mem::take(&mut self.flying) {
            match flight {
                Flight::Soon(taken, at) if at <= Instant::now() => show(self.harness, &taken),
                Flight::Queued(taken) if self.random.u8(0..100) == 0 => {
                    show(self.harness, &taken);
                    self.harness.outside.faults().queued.remove(&taken.id);
                }
                flying => self.flying.push(flying),
            }
        }
    }

    /// Passes on what those who waited were given.
    async fn go_on(&mut self) {
        self.show_due();
        for waiter in std::mem::take(&mut self.waiters) {
            if !waiter.is_finished() {
                self.waiters.push(waiter);
            } else if let Awaited::Notices(taken) = outcome(waiter).await {
                self.given(taken);
            }
        }
    }

    /// What is not in the history is lost.
    async fn lose_all(&mut self) {
        self.kill_waiters().await;
        self.flying.clear();
        self.harness.outside.faults().queued.clear();
    }

    /// Ends with all its hooks, and is started again.
    async fn restart(&mut self) {
        self.lose_all().await;
        start_anew(self.harness).await;
    }

    /// What one has taken and not passed on is lost with it.
    async fn kill_waiters(&mut self) {
        for waiter in self.waiters.drain(..) {
            waiter.abort();
            // It has ended or was killed.
            let _ = waiter.await;
        }
    }

    async fn act(&mut self) {
        match self.random.u8(0..12) {
            0..3 => {
                let taken = take(self.harness, Asking::Running).await;
                self.given(taken);
            }
            3 => {
                let taken = take(self.harness, Asking::Waking).await;
                self.given(taken);
            }
            4..6 if self.waiters.len() < 3 => {
                let asking = if self.random.bool() {
                    Asking::Waking
                } else {
                    Asking::Running
                };
                self.waiters.push(waits(self.harness.manager(), asking));
            }
            6 => self.kill_waiters().await,
            7 => self.restart().await,
            8 => {
                let failures = self.random.u32(1..4);
                let mut faults = self.harness.outside.faults();
                faults.fail.insert(Call::Confirm, failures);
                faults.fail.insert(Call::IsOnItsWay, failures);
            }
            _ => {
                for _ in 0..self.random.u64(0..30) {
                    sleep(Duration::from_millis(100)).await;
                    self.go_on().await;
                }
            }
        }
        self.go_on().await;
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn every_end_is_in_the_history_once_whatever_the_program_does(
    #[values(1, 2, 3, 4, 5, 6, 7, 8)] seed: u64,
) {
    const ENDS: usize = 50;
    let script = Script::of([
        Step::Wait(Duration::from_millis(700)),
        Step::Answer("ok".to_owned()),
    ]);
    let harness = Harness::new(script).looking_every(Duration::from_millis(200));
    let process = harness.start().await;
    let mut program = Program {
        harness: &harness,
        random: fastrand::Rng::with_seed(seed),
        waiters: Vec::new(),
        flying: Vec::new(),
    };
    let mut launched = 0;
    while launched < ENDS {
        if program.random.u8(0..3) == 0 {
            launch(&process, &format!("task {launched}")).await;
            launched += 1;
        }
        program.act().await;
    }
    process.settled().await;
    harness.outside.faults().fail.clear();
    program.lose_all().await;
    // One whose every hook works.
    while let Awaited::Notices(taken) = outcome(waits(harness.manager(), Asking::Running)).await {
        taken.iter().for_each(|taken| show(&harness, taken));
    }
    let mut told = in_history(&harness);
    told.sort();
    let name = |n| format!("✓ **Agent \"task {n}\" finished in 700ms.**");
    let mut all: Vec<_> = (0..ENDS).map(name).collect();
    all.sort();
    assert_eq!(told, all);
}
