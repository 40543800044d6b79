//! How long a fork takes, step by step and as a command, and how much memory.
//!
//! `cargo bench` prints what is in `docs/benchmarks.md`. Sessions are generated and the
//! same every time. Each time is the median of many runs, and the best of them in brackets
//! where a busy machine makes the difference. `-- readers` prints the last table alone.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    fs,
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    read::Format,
    tokens,
};
use asyncagents_testkit::generate::{self, Shape};

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if std::env::args().any(|arg| arg == "readers") {
        return compare_readers(folder.path());
    }
    let mut pipeline = Vec::new();

    println!(
        "| session | JSON | messages | reading | pipeline | context | tokens of it | command | peak memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, shape) in generate::BENCHMARK {
        let json = generate::session(shape);
        let file = folder.path().join(format!("{name}.json"));
        fs::write(&file, &json).expect("the session is written");
        let steps = measure_steps(&json);
        let command = measure_asyncagents(&file);
        println!(
            "| {name} | {:.1} MB | {} | {} | {} | {} chars | {} ({}) | {} | {:.1} MB ({:.2}×) |",
            megabytes(json.len()),
            steps.messages,
            shown(steps.reading.median),
            steps.pipeline.shown(),
            steps.context_chars,
            steps.counting.shown(),
            steps.tokens,
            shown(command.time),
            megabytes(command.peak_bytes),
            command.peak_bytes as f64 / json.len() as f64,
        );
        pipeline.push(steps.pipeline.median);
    }

    println!("\npipeline (d)/(b): {:.2}", ratio(pipeline[3], pipeline[1]));
    println!("looking through (d) once: {}", look_through().shown());
    println!(
        "{FULL_CONTEXT} characters: {} to count",
        count_full_context().shown()
    );
    compare_with_parsers(&folder.path().join("d.json"));
    compare_readers(folder.path());
}

/// The longest context that the default limits allow.
const FULL_CONTEXT: usize = 200_000;

fn read(json: &str) -> Parent<'_> {
    Parent::new(Format::OpenCode.read(json).expect("a session"))
}

struct Steps {
    messages: usize,
    reading: Times,
    pipeline: Times,
    context_chars: usize,
    tokens: usize,
    counting: Times,
}

fn measure_steps(json: &str) -> Steps {
    let limits = Preset::Graduated.limits();
    let reading = time(5, || read(json));
    let parent = read(json);
    let without_tokens = || fork(&parent, &limits, |_| 0).expect("a fork");
    let made = fork(&parent, &limits, tokens::o200k).expect("a fork");
    Steps {
        messages: parent.transcript().messages().len(),
        reading,
        pipeline: time(101, without_tokens),
        context_chars: made.stats.characters.after,
        tokens: made.stats.tokens.after,
        counting: time(21, || tokens::o200k(&made.context)),
    }
}

/// The part of reading that is not reading: what a parent knows of itself.
fn look_through() -> Times {
    let (_, shape) = generate::BENCHMARK[3];
    let json = generate::session(shape);
    let looks = (0..5).map(|_| {
        let transcript = Format::OpenCode.read(&json).expect("a session");
        let begun = Instant::now();
        let parent = black_box(Parent::new(transcript));
        let time = begun.elapsed();
        drop(parent);
        time
    });
    summed_up(looks.collect())
}

/// Exactly as many characters as fit, of the kind that sessions hold, counted again and again.
fn count_full_context() -> Times {
    let (_, shape) = generate::BENCHMARK[1];
    let json = generate::session(shape);
    let parent = read(&json);
    let mut limits = Preset::Flat.limits();
    limits.set("max_chars", 400_000).expect("a limit");
    let made = fork(&parent, &limits, |_| 0).expect("a fork");
    let full: String = made.context.chars().take(FULL_CONTEXT).collect();
    assert_eq!(
        full.chars().count(),
        FULL_CONTEXT,
        "the session is long enough"
    );
    time(51, || tokens::o200k(&full))
}

struct Run {
    time: Duration,
    peak_bytes: usize,
}

fn measure_asyncagents(file: &Path) -> Run {
    let runs: Vec<Run> = (0..5).map(|_| run_asyncagents(file)).collect();
    Run {
        peak_bytes: runs
            .iter()
            .map(|run| run.peak_bytes)
            .max()
            .unwrap_or_default(),
        time: summed_up(runs.into_iter().map(|run| run.time).collect()).median,
    }
}

fn run_asyncagents(file: &Path) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    run(command.arg("fork").arg(file))
}

/// Files of about 100 MB of other agents beside a session of OpenCode of that size: all of each
/// file understood, in turn so that all meet the same noise, and then the command, which reads
/// files with a record on each line from their end.
fn compare_readers(folder: &Path) {
    let shape = |turns, compacted| Shape {
        turns,
        result_bytes: (8_000, 12_000),
        compacted,
    };
    let sessions = [
        (
            "OpenCode",
            "opencode",
            generate::session(shape(8_400, false)),
        ),
        (
            "Claude Code",
            "claude-code",
            generate::transcript(shape(3_530, false)),
        ),
        (
            "Claude Code, compacted",
            "claude-code",
            generate::transcript(shape(3_530, true)),
        ),
        ("Codex", "codex", generate::rollout(shape(4_500, false))),
        (
            "Codex, compacted",
            "codex",
            generate::rollout(shape(4_500, true)),
        ),
    ];
    let mut reading = vec![Vec::new(); sessions.len()];
    for _ in 0..5 {
        for ((_, from, session), times) in sessions.iter().zip(&mut reading) {
            let format = Format::ALL.iter().find(|(name, _)| name == from);
            let (_, format) = format.expect("a format");
            let begun = Instant::now();
            let parent = black_box(Parent::new(format.read(session).expect("a session")));
            times.push(begun.elapsed());
            drop(parent);
        }
    }
    println!(
        "\n| session | file | all of it understood | MB/s | × OpenCode's | command | peak memory |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut of_opencode = None;
    for ((name, from, session), times) in sessions.iter().zip(reading) {
        let file = folder.join("session.saved");
        fs::write(&file, session).expect("the session is written");
        let times = summed_up(times);
        let speed = megabytes(session.len()) / times.median.as_secs_f64();
        let beside = speed / *of_opencode.get_or_insert(speed);
        let runs = (0..5).map(|_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
            run(command.arg("fork").arg(&file).args(["--from", from]))
        });
        let runs: Vec<Run> = runs.collect();
        let peak = runs
            .iter()
            .map(|run| run.peak_bytes)
            .max()
            .unwrap_or_default();
        let command = summed_up(runs.into_iter().map(|run| run.time).collect());
        println!(
            "| {name} | {:.1} MB | {} | {speed:.0} | {beside:.2} | {} | {:.1} MB |",
            megabytes(session.len()),
            times.shown(),
            command.shown(),
            megabytes(peak),
        );
    }
}

/// What others need to parse the file and do nothing with it.
const PARSERS: [&str; 2] = ["node", "bun"];

/// All in turn, so that all meet the same noise.
fn compare_with_parsers(file: &Path) {
    let script = "JSON.parse(require('fs').readFileSync(process.argv[1], 'utf8'))";
    let is_here = |parser: &&str| {
        let mut version = Command::new(parser);
        let version = version.arg("--version").stdout(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    let parsers: Vec<&str> = PARSERS.into_iter().filter(is_here).collect();
    let mut ours = Vec::new();
    let mut theirs = vec![Vec::new(); parsers.len()];
    for _ in 0..7 {
        ours.push(run_asyncagents(file).time);
        for (parser, times) in parsers.iter().zip(&mut theirs) {
            times.push(run(Command::new(parser).args(["-e", script]).arg(file)).time);
        }
    }
    let ours = summed_up(ours);
    println!("whole command on (d): {}", ours.shown());
    for (parser, times) in parsers.iter().zip(theirs) {
        let theirs = summed_up(times);
        println!(
            "  {parser}'s JSON.parse alone: {}, ratio {:.2} [{:.2}]",
            theirs.shown(),
            ratio(ours.median, theirs.median),
            ratio(ours.best, theirs.best),
        );
    }
}

fn run(command: &mut Command) -> Run {
    let begun = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    // The kernel keeps the high-water mark; whatever is read last before the end is it.
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_bytes = 0;
    let status = loop {
        peak_bytes = high_water_mark(&status_file).unwrap_or(peak_bytes);
        if let Some(status) = child.try_wait().expect("the command can be waited for") {
            break status;
        }
        std::thread::sleep(Duration::from_micros(500));
    };
    let time = begun.elapsed();
    assert!(status.success(), "{command:?} failed");
    Run { time, peak_bytes }
}

fn high_water_mark(status_file: &str) -> Option<usize> {
    let status = fs::read_to_string(status_file).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

struct Times {
    median: Duration,
    best: Duration,
}

impl Times {
    fn shown(&self) -> String {
        format!(
            "{} [{:.3}]",
            shown(self.median),
            self.best.as_secs_f64() * 1e3
        )
    }
}

fn time<T>(runs: usize, mut work: impl FnMut() -> T) -> Times {
    let timed = (0..runs).map(|_| {
        let begun = Instant::now();
        let made = black_box(work());
        let time = begun.elapsed();
        drop(made);
        time
    });
    summed_up(timed.collect())
}

fn summed_up(mut times: Vec<Duration>) -> Times {
    times.sort();
    Times {
        median: times[times.len() / 2],
        best: times[0],
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn shown(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
