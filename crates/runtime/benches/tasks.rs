//! What tasks cost: launching, saving events, living, ending.
//!
//! `cargo bench -p asyncagents-runtime` prints what is in `docs/benchmarks.md`. Everything is
//! on disk with full durability. Comparisons are made within one run.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Command as Program, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use asyncagents_core::{
    budget::{Cost, Spent},
    host_ref::{HostRef, HostSetup},
    id::TaskId,
    lifecycle::{Command, decide},
    moment::Moment,
    port::{Clock, Host, HostError, Journal, Store},
    progress::Observation,
    request::{Caller, TaskArgs},
    task_limits::TaskLimits,
};
use asyncagents_runtime::{Hosts, Manager, Settings, SystemClock, Worker};
use asyncagents_store::{Durability, Options, Sqlite};
use asyncagents_testkit::scripted_host::{Line, Script, ScriptedHost, Step, World};

fn main() {
    if let Some(path) = env::var_os(WRITES_TO) {
        return write_when_told(Path::new(&path));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        launching().await;
        delivering().await;
        appending().await;
        bursts().await;
        living().await;
        noticing().await;
    });
}

/// A file, a host and a worker.
struct Place {
    _folder: tempfile::TempDir,
    manager: Manager,
    host: ScriptedHost,
    worker: Worker,
}

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

async fn place(script: Script) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let host = ScriptedHost::new(script, World::in_memory(), clock.clone());
    let store = Sqlite::open(folder.path().join("tasks.db")).expect("a store");
    let mut settings = Settings::default();
    settings.limits.concurrency = 1_000_000;
    settings.limits.spawns = 1_000_000;
    // What it takes to tell of one end, not how long that waits for others.
    settings.notice_window = Duration::ZERO;
    let hosts = Arc::new(OneHost(host.clone()));
    let manager = Manager::new(Arc::new(store), hosts, clock, settings);
    let worker = Worker::start(&manager).await.expect("a worker");
    Place {
        _folder: folder,
        manager,
        host,
        worker,
    }
}

fn caller(n: usize) -> Caller {
    Caller::Session {
        session: format!("parent-{}", n % 50).as_str().into(),
        host: HostRef::from("scripted").into(),
        outside: None,
        message: None,
    }
}

fn asks(prompt: &str) -> TaskArgs {
    TaskArgs {
        prompt: prompt.to_owned(),
        agent: "general".to_owned(),
        ..TaskArgs::default()
    }
}

/// Launches many and waits until all are at work.
async fn fill(place: &Place, many: usize, prompt: &str) {
    let mut launches = tokio::task::JoinSet::new();
    for n in 0..many {
        let (manager, args) = (place.manager.clone(), asks(prompt));
        launches.spawn(async move { manager.task(&caller(n), args).await.expect("launched") });
        if launches.len() >= 64 {
            launches.join_next().await.expect("one").expect("launched");
        }
    }
    while let Some(launched) = launches.join_next().await {
        launched.expect("launched");
    }
    let sessions = || place.host.world().sessions().expect("sessions").len();
    while sessions() < many {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

fn shown(name: &str, mut times: Vec<Duration>) {
    times.sort();
    println!(
        "{name}: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        milliseconds(percentile(&times, 50)),
        milliseconds(percentile(&times, 90)),
        milliseconds(percentile(&times, 99)),
        milliseconds(times[times.len() - 1]),
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn launching() {
    let place = place(Script::of([Step::Hang])).await;
    fill(&place, 1_000, "live").await;
    let mut times = Vec::new();
    for n in 0..2_000 {
        let begun = Instant::now();
        place
            .manager
            .task(&caller(n), asks("one more"))
            .await
            .expect("launched");
        times.push(begun.elapsed());
        // As an agent would, not as a flood.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    shown("launch to ID with 1,000 live tasks", times);
}

async fn delivering() {
    let place = place(Script::of([
        Step::Wait(Duration::from_millis(100)),
        Step::Tool {
            name: "read".to_owned(),
            input: String::new(),
        },
        Step::Wait(Duration::from_millis(100)),
    ]))
    .await;
    // Some fifty at work at any time.
    for n in 0..1_000 {
        place
            .manager
            .task(&caller(n), asks("one"))
            .await
            .expect("launched");
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    while place.manager.unfinished().await.expect("a count") > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let world = place.host.world();
    let mut ended = std::collections::HashMap::new();
    let mut told = Vec::new();
    for session in world.sessions().expect("sessions") {
        for line in world.lines(&session).expect("lines") {
            match line {
                Line::Prompted { id, at, .. } => {
                    ended.insert(id.replace(".prompt.", ".notice."), at + 200);
                }
                Line::Told { id, at, .. } => told.push((id, at)),
                _ => {}
            }
        }
    }
    let late = told.iter().map(|(id, at)| {
        let late = at - ended[id];
        Duration::from_millis(u64::try_from(late).unwrap_or(0))
    });
    let late: Vec<Duration> = late.collect();
    println!("delivered: {} of 1000", late.len());
    shown(
        "end of the child to its notice in the parent's history",
        late,
    );
    place.worker.stop().await;
}

/// What the runner does with a report: look the task up, decide, save.
async fn append(store: &Sqlite, id: TaskId) {
    let work = Box::new(move |journal: &mut dyn Journal| {
        let now = Moment::from_millis(1);
        let mut task = journal.task(&id).expect("read").expect("a task");
        let seen = vec![Observation::Turned(Spent::answer(10, Cost(1), 0))];
        let limits = TaskLimits::default();
        let decision = decide(&task, Command::Observe(seen), now, &limits).expect("decided");
        journal
            .append(&mut task, &decision.events, now)
            .expect("saved");
        true
    });
    store.write(work).await.expect("committed");
}

/// A store with so many running tasks.
async fn stored(folder: &Path, many: usize, durability: Durability) -> (Sqlite, Vec<TaskId>) {
    use asyncagents_core::{
        budget::Budget,
        event::{Event, Launched},
        task::{Brief, Context, Place},
    };
    let path = folder.join(format!("{many}-{durability:?}.db"));
    let options = Options {
        durability,
        ..Options::default()
    };
    let store = Sqlite::open_with(path, options).expect("a store");
    let ids: Vec<TaskId> = (0..many)
        .map(|_| TaskId::from_random(fastrand::u128(..)))
        .collect();
    for chunk in ids.chunks(500) {
        let chunk = chunk.to_vec();
        let work = Box::new(move |journal: &mut dyn Journal| {
            for id in chunk.clone() {
                let launched = Launched {
                    place: Place {
                        parent: format!("parent-{}", fastrand::u8(..)).as_str().into(),
                        above: None,
                        root: "root".into(),
                        depth: 1,
                        outside: None,
                        above_in: None,
                    },
                    brief: Brief {
                        description: "a task".to_owned(),
                        agent: "general".into(),
                        model: None,
                        effort: None,
                        context: Context::Fresh,
                        host: HostRef::from("scripted").into(),
                    },
                    prompt: "do it ".repeat(50),
                    fork: None,
                    budget: Budget::default(),
                    batch: 0,
                    owner: Some("worker".into()),
                    chain: None,
                    from: None,
                    role: None,
                };
                let now = Moment::from_millis(1);
                let mut task = journal.insert(id, launched, now).expect("saved");
                journal
                    .append(&mut task, &[Event::Started], now)
                    .expect("saved");
            }
            true
        });
        store.write(work).await.expect("committed");
    }
    (store, ids)
}

async fn appending() {
    let folder = tempfile::tempdir().expect("a folder");
    for durability in [Durability::Full, Durability::Process] {
        let (few, few_ids) = stored(folder.path(), 100, durability).await;
        let (many, many_ids) = stored(folder.path(), 10_000, durability).await;
        let mut times = [Vec::new(), Vec::new()];
        // Turn by turn, so that a neighbour disturbs both alike.
        for round in 0..4_000 {
            for (at, (store, ids)) in [(&few, &few_ids), (&many, &many_ids)].iter().enumerate() {
                let id = ids[fastrand::usize(..ids.len())].clone();
                let begun = Instant::now();
                append(store, id).await;
                if round >= 200 {
                    times[at].push(begun.elapsed());
                }
            }
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            percentile(times, 50)
        };
        let [few, many] = &mut times;
        let (few, many) = (median(few), median(many));
        println!(
            "one event, {durability:?} durability: {:.3} ms with 100 tasks, {:.3} ms with 10,000, ratio {:.2}",
            milliseconds(few),
            milliseconds(many),
            many.as_secs_f64() / few.as_secs_f64(),
        );
    }
}

async fn bursts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, ids) = stored(folder.path(), 1_000, Durability::Full).await;
    let each = 1_500;
    let begun = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..32 {
        let store = store.clone();
        let ids: Vec<TaskId> = ids.iter().skip(writer).step_by(32).cloned().collect();
        writers.spawn(async move {
            for n in 0..each {
                append(&store, ids[n % ids.len()].clone()).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("written");
    }
    let rate = 32.0 * each as f64 / begun.elapsed().as_secs_f64();
    println!("32 writers, each waiting for its event to be on disk: {rate:.0} events/s");
}

async fn living() {
    let place = place(Script::of([Step::Hang])).await;
    // What a process has anyway.
    fill(&place, 10, "warm up").await;
    let before = resident();
    fill(&place, 10_000, "live").await;
    let each = (resident() - before) / 10_000.0;
    let (begun, used) = (Instant::now(), processor_time());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let share = (processor_time() - used) / begun.elapsed().as_secs_f64();
    println!(
        "10,000 live tasks: {each:.1} KB each, {:.2} % of a core while idle",
        share * 100.0
    );
}

/// Kilobytes of memory in use.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("the process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let line = line.expect("a line");
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse().expect("a number")
}

/// Seconds of processor time used so far.
fn processor_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("the process");
    let after_name = stat.rsplit(") ").next().expect("numbers");
    let ticks: Vec<f64> = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().expect("a number"))
        .collect();
    (ticks[0] + ticks[1]) / 100.0
}

/// Where another process writes, when it is told to.
const WRITES_TO: &str = "TASKS_BENCH_WRITES_TO";
const WRITES: u64 = 200;

/// The other process: commits for every line that it reads, and prints when it was done.
fn write_when_told(path: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = Sqlite::open(path).expect("a store");
    for _ in io::stdin().lock().lines() {
        let work = Box::new(|journal: &mut dyn Journal| {
            let wait = journal.wait(&"task_1".into(), &"main".into(), Moment::from_millis(1));
            wait.is_ok()
        });
        runtime.block_on(store.write(work)).expect("written");
        println!("{}", SystemClock.steady().as_nanos());
    }
}

/// How long after a commit another process that waits has noticed it.
async fn noticing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let store = Sqlite::open(&path).expect("a store");
    let mut other = Program::new(env::current_exe().expect("this program"))
        .env(WRITES_TO, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let mut tells = other.stdin.take().expect("its input");
    let mut told = BufReader::new(other.stdout.take().expect("its output")).lines();
    let mut took = Vec::new();
    let mut version = store.version().await.expect("a version");
    for number in 0..WRITES {
        // Sometimes it is in the middle of a pause between two looks.
        tokio::time::sleep(Duration::from_millis(number * 37 % 120)).await;
        writeln!(tells, "write").expect("told");
        version = store.changed_since(version).await;
        let noticed = SystemClock.steady().as_nanos();
        let written = told.next().expect("an answer").expect("an answer");
        let written: u128 = written.parse().expect("a time");
        // It may be noticed before the other process has gone on.
        took.push(noticed.saturating_sub(written) as f64 / 1e6);
    }
    drop(tells);
    other.wait().expect("ended");
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "a commit of another process is noticed after {:.1} ms, 99 % {:.1} ms, at most {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
