//! What a worker costs that has nothing to do, and whether its memory grows with the tasks that it has
//! finished.
//!
//! `cargo bench -p asyncagents --bench memory` prints what is in `docs/benchmarks.md`. The worker
//! that the first launch starts runs all tasks; each reads a file and answers, and the scripted model answers at once.
//! What is measured is the worker's own memory (`RssAnon`), not what it shares with files.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

mod place;

use std::{
    collections::HashMap,
    fs::{self, DirEntry},
    process::Command,
    thread,
    time::Duration,
};

use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use serde_json::json;
use tokio::runtime::Runtime;

use place::Place;

/// After how many tasks it is measured.
const AFTER: [usize; 7] = [100, 200, 500, 1_000, 2_000, 4_000, 8_000];

/// From where on it should stay the same: by then all caches are full.
const FULL: usize = 1_000;

/// How many are launched side by side, and then waited for.
const AT_ONCE: usize = 50;

/// How many tasks wait for a model that says nothing.
const HANGING: usize = 10;

/// For how long a worker is watched, after it has settled.
const SETTLING: Duration = Duration::from_secs(5);
const WATCHED: Duration = Duration::from_secs(20);

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    idle(&runtime);
    growth(&runtime);
}

/// Wake-ups are voluntary context switches of all threads.
fn idle(runtime: &Runtime) {
    let script = Script::new()
        .rule(When::always().first("hang"), Reply::fault(Fault::Hang))
        .rule(When::always(), Reply::text("There is nothing to find."));
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let place = Place::new(&model.url());
    launch(&place, 1);
    let worker = place.started_worker();
    println!("a worker with nothing to do: {}", watched(worker));
    for number in 0..HANGING {
        place.launch(&format!("hang {number}"));
    }
    println!("with {HANGING} hanging tasks: {}", watched(worker));
    end(worker);
}

fn watched(process: u32) -> String {
    thread::sleep(SETTLING);
    let (before, ticks) = (wakeups(process), ticks(process));
    thread::sleep(WATCHED);
    let (after, ticks) = (wakeups(process), self::ticks(process) - ticks);
    // Of threads that have ended meanwhile nothing is known.
    let since = |(thread, now): (&String, &u64)| now - before.get(thread).unwrap_or(&0);
    let switches: u64 = after.iter().map(since).sum();
    let seconds = WATCHED.as_secs_f64();
    // A tick is a hundredth of a second on every Linux.
    format!(
        "{:.1} wake-ups per second, {:.2} % of a core",
        switches as f64 / seconds,
        ticks as f64 / seconds
    )
}

/// Of each thread.
fn wakeups(process: u32) -> HashMap<String, u64> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let of_thread = |thread: DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let name = thread.file_name().into_string().ok()?;
        Some((name, line?.trim().parse().ok()?))
    };
    threads.flatten().filter_map(of_thread).collect()
}

/// Processor time.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn end(process: u32) {
    let told = Command::new("kill").arg(process.to_string()).status();
    told.expect("told to end");
}

fn growth(runtime: &Runtime) {
    let read = Reply::call("read", json!({ "path": "source.rs" }));
    let script = Script::new()
        .rule(When::turn(0), read)
        .rule(When::always(), Reply::text("There is nothing to find."))
        .forget_bodies();
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let place = Place::new(&model.url());
    let (mut done, mut full) = (0, 0);
    for after in AFTER {
        while done < after {
            let many = AT_ONCE.min(after - done);
            launch(&place, many);
            done += many;
        }
        let now = anonymous(place.started_worker());
        if done == FULL {
            full = now;
        }
        let since = if done > FULL {
            let more = i64::try_from(now).expect("small") - i64::try_from(full).expect("small");
            format!(", {more:+} kB since {FULL}")
        } else {
            String::new()
        };
        println!("after {done} tasks: {now} kB{since}");
    }
    end(place.started_worker());
}

fn launch(place: &Place, many: usize) {
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in (0..many).filter(|number| number % 4 == thread) {
                    place.launch(&format!("look at query {number}"));
                }
            });
        }
    });
    place.until_idle(0);
}

/// What a process has for itself, in kB.
fn anonymous(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.expect("a line").trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}
