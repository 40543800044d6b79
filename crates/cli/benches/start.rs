//! How long it takes from starting `asyncagents run` to its first request to the model.
//!
//! `cargo bench -p asyncagents --bench start` prints what is in `docs/benchmarks.md`.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Reply, Script, When};

const TIMES: usize = 40;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let script = Script::new().rule(When::always(), Reply::text("done"));
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let base = format!("providers.test.base_url={}", model.url());
        let begun = Instant::now();
        let ended = Command::new(env!("CARGO_BIN_EXE_asyncagents"))
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .args(["-c", &base, "-c", "providers.test.wire=anthropic"])
            .args(["-c", "model=test/model"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(ended.expect("runs").success(), "{args:?}");
        begun
    };
    // The first makes the database.
    let first = run(&["run", "x"]);
    let request = |number: usize| model.requests()[number].at;
    println!(
        "first start, with a new database: {:.1} ms to the first request",
        milliseconds(request(0) - first)
    );
    let mut starts = Vec::new();
    let mut whole = Vec::new();
    let mut bare = Vec::new();
    for number in 1..=TIMES {
        let begun = run(&["run", "x"]);
        whole.push(begun.elapsed());
        starts.push(request(number) - begun);
        let begun = run(&["--version"]);
        bare.push(begun.elapsed());
    }
    for (what, mut times) in [
        ("start to the first request", starts),
        ("the whole run", whole),
        ("--version, for comparison", bare),
    ] {
        times.sort();
        println!(
            "{what}: median {:.1} ms, 90 % within {:.1} ms, best {:.1} ms",
            milliseconds(times[TIMES / 2]),
            milliseconds(times[TIMES * 9 / 10]),
            milliseconds(times[0]),
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
