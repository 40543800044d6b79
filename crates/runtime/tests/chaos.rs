//! Processes are killed at random points, and stopped for longer than their lease, while they
//! launch, cancel, resume and read tasks on one database file. Afterwards nothing may be lost, doubled or stuck.
//!
//! `cargo test` runs it in small, `scripts/chaos KILLS` in large. The driver starts this very
//! program as its members. What is true is asked of three witnesses: what launches were
//! answered (`acks`), the journal, and the sessions of the host, which keep everything that
//! was ever put into them.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test talks to a person and may panic"
)]

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use asyncagents_core::{
    event::Event,
    host_ref::{HostRef, HostSetup},
    id::{PostId, SessionId, TaskId},
    lifecycle,
    port::{Clock, Fate, Host, HostError, Journal, PostKind, Store, Stored},
    request::{Caller, OutputRequest, TaskArgs},
    task::{Outcome, State, Task},
};
use asyncagents_runtime::{Hosts, Manager, Settings, SystemClock, Worker};
use asyncagents_store::Sqlite;
use asyncagents_testkit::scripted_host::{Line, Script, ScriptedHost, Step, World};
use rustix::process::{Pid, Signal};

/// How many processes work at once.
const MEMBERS: usize = 4;
/// How long a process may be silent before others take over.
const LEASE: Duration = Duration::from_millis(900);
/// How long the last tasks may take when nobody is killed any more.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    if let Ok(role) = env::var("CHAOS_ROLE") {
        let folder = PathBuf::from(env::var("CHAOS_FOLDER").expect("a folder"));
        let seed = env::var("CHAOS_SEED")
            .expect("a seed")
            .parse()
            .expect("a seed");
        fastrand::seed(seed);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            match role.as_str() {
                "flood" => flood(&folder).await,
                _ => work(&folder).await,
            }
        });
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = env::args().collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let given = |name: &str, usual: u64| {
        let at = arguments.iter().rposition(|argument| argument == name);
        let value = at.and_then(|at| arguments.get(at + 1));
        value.map_or(usual, |value| value.parse().expect("a number"))
    };
    let kills = given("--kills", 25);
    let stops = given("--stops", 8);
    let tasks = given("--tasks", 150);
    let seed = given("--seed", fastrand::u64(..1_000_000));
    let flooded = given("--flood", 10_000);
    println!("\nrunning 2 tests");
    let chaos = chaos(kills, stops, tasks, seed);
    let flood = two_floods(flooded);
    let passed = usize::from(chaos) + usize::from(flood);
    let verdict = if passed == 2 { "ok" } else { "FAILED" };
    let failed = 2 - passed;
    println!("\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured");
    ExitCode::from(u8::from(failed > 0))
}

// The driver.

fn member(folder: &Path, role: &str, seed: u64) -> Child {
    Command::new(env::current_exe().expect("this program"))
        .env("CHAOS_ROLE", role)
        .env("CHAOS_FOLDER", folder)
        .env("CHAOS_SEED", seed.to_string())
        .spawn()
        .expect("a process")
}

/// A process that was stopped, and goes on at a moment.
struct Stopped {
    member: usize,
    until: Instant,
}

fn signal(process: &Child, signal: Signal) {
    // One that has just ended gets none.
    let _ = rustix::process::kill_process(Pid::from_child(process), signal);
}

fn chaos(kills: u64, stops: u64, tasks: u64, seed: u64) -> bool {
    println!(
        "chaos: seed {seed}, {MEMBERS} processes, {tasks} tasks, {kills} kills, {stops} stops"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("goal"), tasks.to_string()).expect("written");
    let mut random = fastrand::Rng::with_seed(seed);
    let begun = Instant::now();
    let mut members: Vec<Child> = (0..MEMBERS)
        .map(|_| member(folder, "work", random.u64(..)))
        .collect();
    let (mut killed, mut halted) = (0, 0);
    let mut stopped: Vec<Stopped> = Vec::new();
    while killed < kills
        || halted < stops
        || acks(folder).len() < usize::try_from(tasks).expect("a number")
    {
        // Most live for a while, some die young.
        let pause = match random.u8(..4) {
            0 => random.u64(1..20),
            _ => random.u64(20..200),
        };
        thread::sleep(Duration::from_millis(pause));
        stopped.retain(|asleep| {
            let sleeps = Instant::now() < asleep.until;
            if !sleeps {
                signal(&members[asleep.member], Signal::CONT);
            }
            sleeps
        });
        let victim = random.usize(..MEMBERS);
        if stopped.iter().any(|asleep| asleep.member == victim) {
            continue;
        }
        if halted < stops && stopped.is_empty() && random.u8(..3) == 0 {
            signal(&members[victim], Signal::STOP);
            let time = LEASE + Duration::from_millis(random.u64(100..2_000));
            stopped.push(Stopped {
                member: victim,
                until: Instant::now() + time,
            });
            halted += 1;
            continue;
        }
        if killed < kills {
            members[victim].kill().expect("killed");
            members[victim].wait().expect("gone");
            killed += 1;
        } else if members[victim].try_wait().expect("asked").is_none() {
            continue;
        }
        members[victim] = member(folder, "work", random.u64(..));
    }
    for asleep in stopped {
        signal(&members[asleep.member], Signal::CONT);
    }
    fs::write(folder.join("stop"), "").expect("written");
    let ending = Instant::now();
    let mut in_time = true;
    for member in &mut members {
        while member.try_wait().expect("asked").is_none() {
            if ending.elapsed() > PATIENCE {
                in_time = false;
                member.kill().expect("killed");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    let verdict = examine(folder);
    println!(
        "  {killed} kills and {halted} stops beyond the lease in {:.1} s, settled {:.1} s after the last\n{verdict}",
        begun.elapsed().as_secs_f64(),
        ending.elapsed().as_secs_f64(),
    );
    let good = in_time && verdict.is_good();
    println!("test chaos ... {}", if good { "ok" } else { "FAILED" });
    if !good {
        println!("again: scripts/chaos {kills} --stops {stops} --tasks {tasks} --seed {seed}");
    }
    good
}

/// Tasks whose launch was answered.
fn acks(folder: &Path) -> Vec<TaskId> {
    let text = fs::read_to_string(folder.join("acks")).unwrap_or_default();
    let whole = text.lines().filter(|line| line.len() == 37);
    whole.map(TaskId::from).collect()
}

#[derive(Default)]
struct Verdict {
    acknowledged: usize,
    tasks: usize,
    runs: usize,
    statuses: BTreeMap<String, usize>,
    told: usize,
    read_instead: usize,
    nobody_to_tell: usize,
    lost_tasks: usize,
    lost_notices: usize,
    doubled_notices: usize,
    unexpected_notices: usize,
    unfinished: usize,
    ran_twice: usize,
    rows_unlike_events: usize,
}

impl Verdict {
    fn is_good(&self) -> bool {
        let bad = [
            self.lost_tasks,
            self.lost_notices,
            self.doubled_notices,
            self.unexpected_notices,
            self.unfinished,
            self.ran_twice,
            self.rows_unlike_events,
        ];
        bad.iter().all(|count| *count == 0) && self.tasks > 0
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let statuses: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        writeln!(f, "  launches answered: {}", self.acknowledged)?;
        writeln!(f, "  tasks: {} ({})", self.tasks, statuses.join(", "))?;
        writeln!(f, "  runs ended: {}", self.runs)?;
        writeln!(f, "  notices in parents' histories: {}", self.told)?;
        writeln!(
            f,
            "  read by a blocked parent instead: {}",
            self.read_instead
        )?;
        writeln!(
            f,
            "  parent stopped, nobody to tell: {}",
            self.nobody_to_tell
        )?;
        writeln!(f, "  lost tasks: {}", self.lost_tasks)?;
        writeln!(f, "  lost notices: {}", self.lost_notices)?;
        writeln!(f, "  doubled notices: {}", self.doubled_notices)?;
        writeln!(
            f,
            "  notices that should not be: {}",
            self.unexpected_notices
        )?;
        writeln!(
            f,
            "  tasks unfinished or without owner: {}",
            self.unfinished
        )?;
        writeln!(f, "  prompts sent twice: {}", self.ran_twice)?;
        write!(
            f,
            "  rows that are not what the events say: {}",
            self.rows_unlike_events
        )
    }
}

/// What the journal knows of a task.
struct Record {
    task: Task,
    folded: Task,
    ends: Vec<u32>,
    /// What became of each notice, and the name of the message that tells of it.
    notices: HashMap<PostId, (Fate, PostId)>,
}

fn examine(folder: &Path) -> Verdict {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = Sqlite::open(folder.join("tasks.db")).expect("the store");
    let records = runtime.block_on(read(&store, |journal| {
        let mut records = BTreeMap::new();
        for task in journal.tasks_of(None)? {
            records.insert(task.id.clone(), record(journal, task)?);
        }
        Ok(records)
    }));
    let world = World::in_folder(&folder.join("sessions")).expect("the sessions");
    // How often each message is there, and of how many ends it tells.
    let mut told: HashMap<String, usize> = HashMap::new();
    let mut ends_told: HashMap<String, usize> = HashMap::new();
    let mut prompted: HashMap<String, usize> = HashMap::new();
    for session in world.sessions().expect("the sessions") {
        for line in world.lines(&session).expect("a session") {
            match line {
                Line::Told { id, visible, .. } => {
                    let is_end = |line: &&str| line.starts_with(['✓', '✗', '⊘']);
                    let ends = visible.lines().filter(is_end).count();
                    ends_told.insert(id.clone(), ends);
                    *told.entry(id).or_default() += 1;
                }
                Line::Prompted { id, .. } => *prompted.entry(id).or_default() += 1,
                _ => {}
            }
        }
    }
    let acknowledged = acks(folder);
    let mut verdict = Verdict {
        acknowledged: acknowledged.len(),
        tasks: records.len(),
        told: ends_told.values().sum(),
        ..Verdict::default()
    };
    verdict.lost_tasks = acknowledged
        .iter()
        .filter(|id| !records.contains_key(id))
        .count();
    verdict.ran_twice = prompted.values().filter(|times| **times > 1).count();
    verdict.doubled_notices = told.values().filter(|times| **times > 1).count();
    for record in records.values() {
        let status = match &record.task.state {
            State::Ended {
                outcome: Outcome::Failed { why },
                ..
            } => format!("error: {why}"),
            _ => record.task.status().to_string(),
        };
        *verdict.statuses.entry(status).or_default() += 1;
        verdict.unfinished += usize::from(record.task.is_live() || record.task.stopping);
        verdict.rows_unlike_events += usize::from(record.folded != record.task);
        verdict.runs += record.ends.len();
        for run in &record.ends {
            let id = record.task.id.notice(*run);
            let Some((fate, message)) = record.notices.get(&id) else {
                verdict.lost_notices += 1;
                continue;
            };
            let arrived = told.get(message.as_str()).copied().unwrap_or(0);
            match fate {
                Fate::Delivered => {
                    verdict.lost_notices += usize::from(arrived == 0);
                    // It is one of the ends that the message tells of.
                    match ends_told.get_mut(message.as_str()) {
                        Some(left @ 1..) => *left -= 1,
                        Some(0) | None => verdict.lost_notices += 1,
                    }
                }
                Fate::Pending => verdict.lost_notices += 1,
                Fate::Undelivered(why) => {
                    verdict.unexpected_notices += arrived;
                    if why.contains("blocked") {
                        verdict.read_instead += 1
                    } else {
                        verdict.nobody_to_tell += 1
                    }
                }
            }
        }
    }
    // What is left was told and never happened.
    verdict.unexpected_notices += ends_told.values().sum::<usize>();
    verdict
}

fn record(journal: &mut dyn Journal, task: Task) -> Stored<Record> {
    let mut events = journal.events(&task.id)?.into_iter();
    let first = events.next().expect("a first event");
    let Event::Launched(launched) = &first.event else {
        panic!("begins with {:?}", first.event);
    };
    let mut folded = lifecycle::begin(task.id.clone(), launched, first.at);
    let mut ends = Vec::new();
    for saved in events {
        lifecycle::apply(&mut folded, &saved.event, saved.at);
        if let Event::Ended { .. } = saved.event {
            ends.push(folded.run);
        }
    }
    Ok(Record {
        notices: (journal.posts(&task.id)?.into_iter())
            .filter(|post| post.kind == PostKind::Notice)
            .map(|post| {
                let message = post.told_with.unwrap_or_else(|| post.id.clone());
                (post.id, (post.fate, message))
            })
            .collect(),
        folded,
        ends,
        task,
    })
}

async fn read<T: Send + 'static>(
    store: &dyn Store,
    look: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = Box::new(move |journal: &mut dyn Journal| sender.send(look(journal)).is_ok());
    store.read(work).await.expect("read");
    receiver.recv().expect("an answer").expect("read")
}

// A member.

struct OneHost(ScriptedHost);

#[async_trait::async_trait]
impl Hosts for OneHost {
    fn serves(&self, _: &HostRef) -> bool {
        true
    }

    fn open(&self, _: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        Ok(Arc::new(self.0.clone()))
    }
}

fn manager(folder: &Path) -> Manager {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let world = World::in_folder(&folder.join("sessions")).expect("the sessions");
    let host = ScriptedHost::new(script(), world, clock.clone());
    let store = Sqlite::open(folder.join("tasks.db")).expect("the store");
    let mut settings = Settings {
        lease: LEASE,
        inspect_after: Duration::from_millis(500),
        notice_delay: Duration::from_millis(200),
        confirm_timeout: Duration::from_millis(200),
        ..Settings::default()
    };
    settings.limits.concurrency = 40;
    settings.limits.spawns = 1_000_000;
    // Nobody dies of a task here.
    settings.limits.worker_deaths = u64::MAX;
    Manager::new(Arc::new(store), Arc::new(OneHost(host)), clock, settings)
}

fn script() -> Script {
    let wait = |millis| Step::Wait(Duration::from_millis(millis));
    let tool = |name: &str| Step::Tool {
        name: name.to_owned(),
        input: String::new(),
    };
    Script::of([wait(5), tool("read"), wait(10), tool("grep")])
        .when("at once", [])
        .when("fails", [wait(20), Step::Fail("as told".to_owned())])
        .when("slow", [wait(300), tool("bash"), wait(300)])
}

async fn work(folder: &Path) {
    let goal: usize = fs::read_to_string(folder.join("goal"))
        .expect("a goal")
        .parse()
        .expect("a number");
    let manager = manager(folder);
    let worker = Worker::start(&manager).await.expect("a worker");
    let stop = folder.join("stop");
    let mut known = acks(folder);
    while !stop.exists() {
        act(folder, &manager, &mut known, goal).await;
        if fastrand::u8(..8) == 0 {
            known = acks(folder);
        }
    }
    while manager.unfinished().await.expect("a count") > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    worker.stop().await;
}

/// Does one thing. Most things are refused now and then, and that is fine.
async fn act(folder: &Path, manager: &Manager, known: &mut Vec<TaskId>, goal: usize) {
    let some = fastrand::choice(known.iter()).cloned();
    match (fastrand::u8(..10), some) {
        (0..6, some) if known.len() < goal => {
            let prompt = fastrand::choice(["usual", "at once", "fails", "slow"]);
            let args = TaskArgs {
                prompt: prompt.unwrap_or("usual").to_owned(),
                agent: "general".to_owned(),
                fork: fastrand::u8(..10) == 0,
                ..TaskArgs::default()
            };
            // Now and then from inside another task.
            let inside = some.filter(|_| fastrand::u8(..4) == 0);
            let caller = match inside {
                Some(task) => caller(ScriptedHost::session_of(&task)),
                None => caller(format!("parent-{}", fastrand::u8(..8)).as_str().into()),
            };
            if let Ok(accepted) = manager.task(&caller, args).await {
                let id = accepted.shown.task.id;
                let mut options = fs::OpenOptions::new();
                let mut acks = options.create(true).append(true).open(folder.join("acks"));
                let acks = acks.as_mut().expect("a file");
                acks.write_all(format!("{id}\n").as_bytes())
                    .expect("written");
                known.push(id);
            }
        }
        (6, Some(task)) => {
            let _ = manager.cancel(&Caller::Person, task.as_str()).await;
        }
        (7, Some(task)) => {
            let args = TaskArgs {
                prompt: "usual".to_owned(),
                resume: Some(task.to_string()),
                ..TaskArgs::default()
            };
            let _ = manager.task(&Caller::Person, args).await;
        }
        (8, Some(task)) => {
            // As its parent, blocked for a moment.
            let request = OutputRequest::new(task.as_str(), false, None).expect("a request");
            let Ok(report) = manager.output(&Caller::Person, request).await else {
                return;
            };
            let parent = caller(report.shown.task.place.parent);
            let request = OutputRequest::new(task.as_str(), true, Some(1)).expect("a request");
            let _ = manager.output(&parent, request).await;
        }
        (_, Some(task)) => {
            let request = OutputRequest::new(task.as_str(), false, None).expect("a request");
            let _ = manager.output(&Caller::Person, request).await;
        }
        (_, None) => {}
    }
}

fn caller(session: SessionId) -> Caller {
    Caller::Session {
        session,
        host: HostRef::from("scripted").into(),
        outside: None,
        message: None,
    }
}

// Two processes that write as fast as they can.

fn two_floods(each: u64) -> bool {
    println!("flood: 2 processes launch {each} tasks each");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("goal"), each.to_string()).expect("written");
    let begun = Instant::now();
    let both: Vec<Child> = (0..2).map(|seed| member(folder, "flood", seed)).collect();
    let mut ended_well = true;
    for mut process in both {
        ended_well &= process.wait().expect("ended").success();
    }
    let took = begun.elapsed().as_secs_f64();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = Sqlite::open(folder.join("tasks.db")).expect("the store");
    let there = runtime.block_on(read(&store, |journal| Ok(journal.tasks_of(None)?.len())));
    println!("  {there} tasks there after {took:.1} s");
    let good = ended_well && u64::try_from(there).expect("a number") == 2 * each;
    println!("test two_floods ... {}", if good { "ok" } else { "FAILED" });
    good
}

async fn flood(folder: &Path) {
    let goal: u64 = fs::read_to_string(folder.join("goal"))
        .expect("a goal")
        .parse()
        .expect("a number");
    let manager = manager(folder);
    let mut launches = tokio::task::JoinSet::new();
    for n in 0..goal {
        let manager = manager.clone();
        launches.spawn(async move {
            let caller = caller(
                format!("flood-{}-{}", std::process::id(), n % 100)
                    .as_str()
                    .into(),
            );
            let args = TaskArgs {
                prompt: format!("task {n}"),
                agent: "general".to_owned(),
                ..TaskArgs::default()
            };
            manager.task(&caller, args).await.expect("launched");
        });
        if launches.len() >= 64 {
            launches.join_next().await.expect("one").expect("launched");
        }
    }
    while let Some(launched) = launches.join_next().await {
        launched.expect("launched");
    }
}
