//! Whether a worker's memory grows with the tasks that it has finished.
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

use std::{fs, process::Command, thread};

use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use serde_json::json;

use place::Place;

/// After how many tasks it is measured.
const AFTER: [usize; 7] = [100, 200, 500, 1_000, 2_000, 4_000, 8_000];

/// From where on it should stay the same: by then all caches are full.
const FULL: usize = 1_000;

/// How many are launched side by side, and then waited for.
const AT_ONCE: usize = 50;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
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
    let worker = place.started_worker().to_string();
    Command::new("kill")
        .arg(worker)
        .status()
        .expect("told to end");
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
