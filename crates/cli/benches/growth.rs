//! What commands cost with 100, 10,000 and 100,000 finished tasks, and how much room these take.
//!
//! `cargo bench -p asyncagents --bench growth` prints what is in `docs/benchmarks.md`. Twenty real
//! tasks of the built-in agent are copied, row by row, until there are enough; the real ones stay
//! the newest. Commands take turns between the databases, so that noise hits all alike.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

mod place;

use std::time::{Duration, Instant};

use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use rusqlite::Connection;
use serde_json::json;

use place::Place;

const SIZES: [usize; 3] = [100, 10_000, 100_000];

/// How many real tasks there are in each database.
const REAL: usize = 20;

/// How many steps the long runs have.
const LONG: usize = 200;

const ROUNDS: usize = 25;

/// What the largest database may cost, as a multiple of the smallest.
const MOST: f64 = 1.5;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let steps = u32::try_from(REAL * LONG).expect("few");
    let read = || Reply::call("read", json!({ "path": "source.rs" }));
    let script = Script::new()
        .rule(When::always().first("hang"), Reply::fault(Fault::Hang))
        .rule(When::always().first("many steps").times(steps), read())
        .rule(When::turn(0).first("look"), read())
        .rule(When::always(), Reply::text("There is nothing to find."));
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let places = SIZES.map(|size| {
        let place = filled(&model, "look");
        place.copy_tasks(size);
        place
    });
    println!("median of {ROUNDS}, in ms; with so many finished tasks:");
    println!(
        "{:<34}{:>8}{:>9}{:>9}{:>8}",
        "", "100", "10,000", "100,000", "ratio"
    );
    let places: Vec<Place> = places.into_iter().map(Place::with_worker).collect();
    commands(&places);
    launches(&places, "task, nothing live");
    for place in &places {
        place.launch("hang");
    }
    launches(&places, "task, another one live");
    first_requests(&places, &model);
    room(&places);
    drop(places);
    long_runs(&model);
}

/// A database with real tasks that have finished.
fn filled(model: &ModelServer, prompt: &str) -> Place {
    let place = Place::new(&model.url()).with_worker();
    for number in 0..REAL {
        place.launch(&format!("{prompt} at query {number}"));
    }
    place.until_idle(0);
    place.without_worker()
}

/// Commands that look something up.
fn commands(places: &[Place]) {
    type Args = fn(&Place) -> Vec<String>;
    let commands: [(&str, Args); 17] = [
        ("list", |_| words("list")),
        ("list --json", |_| words("list --json")),
        ("list --limit 10", |_| words("list --limit 10")),
        ("list --status running (none)", |_| {
            words("list --status running")
        }),
        ("list --status error (none)", |_| {
            words("list --status error")
        }),
        ("list --status completed", |_| {
            words("list --status completed")
        }),
        ("list --session shell", |_| words("list --session shell")),
        ("  and --status error (none)", |_| {
            words("list --session shell --status error")
        }),
        ("list --search (all match)", |_| {
            words("list --search query")
        }),
        ("list --search (none)", |_| words("list --search nowhere")),
        // No index knows two characters, or a common word together with a status.
        ("  of two characters (all match)", |_| {
            words("list --search qu")
        }),
        ("  and --status error (none)", |_| {
            words("list --search query --status error")
        }),
        ("output, whole ID", |place| {
            vec!["output".into(), place.task()]
        }),
        ("output, short ID", |place| {
            vec!["output".into(), place.task()[..13].into()]
        }),
        ("trace", |_| words("trace")),
        ("trace --json", |_| words("trace --json")),
        ("trace ID", |place| vec!["trace".into(), place.task()]),
    ];
    for (name, args) in commands {
        compare(name, places, |place| {
            let begun = Instant::now();
            place.run(&args(place));
            begun.elapsed()
        });
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// A launch until its ID is printed. The task ends before the next one.
fn launches(places: &[Place], name: &str) {
    let live: Vec<u32> = places.iter().map(Place::unfinished).collect();
    compare(name, places, |place| {
        let at = places.iter().position(|other| std::ptr::eq(other, place));
        let begun = Instant::now();
        place.launch("answer");
        let took = begun.elapsed();
        place.until_idle(live[at.expect("one of them")]);
        took
    });
}

/// From the start of `run` to its first request.
fn first_requests(places: &[Place], model: &ModelServer) {
    compare("run, until its first request", places, |place| {
        let before = model.requests().len();
        let begun = Instant::now();
        place.run(&words("run answer"));
        model.requests()[before].at - begun
    });
}

/// Measures something in all places, in turns, and prints the medians.
fn compare(name: &str, places: &[Place], measure: impl Fn(&Place) -> Duration) {
    let mut times = vec![Vec::new(); places.len()];
    for round in 0..=ROUNDS {
        for turn in 0..places.len() {
            let at = (turn + round) % places.len();
            let took = measure(&places[at]);
            // The first fills the system's cache.
            if round > 0 {
                times[at].push(took);
            }
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let ratio = medians[medians.len() - 1] / medians[0];
    print!("{name:<34}");
    for (median, width) in medians.iter().zip([8, 9, 9]) {
        print!("{median:>width$.1}");
    }
    let over = if ratio > MOST { "  OVER" } else { "" };
    println!("{ratio:>8.2}{over}");
}

/// The middle one, in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// How much room tasks take, and their entries for each byte of text.
fn room(places: &[Place]) {
    for (place, size) in places.iter().zip(SIZES) {
        let db = Connection::open(place.db()).expect("a database");
        let number = |sql: &str| {
            db.query_row(sql, [], |row| row.get::<_, f64>(0))
                .expect("a number")
        };
        let bytes =
            number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
        // A compressed text begins with its length.
        let texts = "SELECT session, body, substr(packed, 1, 4) FROM entries";
        let mut texts = db.prepare(texts).expect("entries");
        let texts = texts.query_map([], |row| {
            let plain = row.get::<_, Option<String>>(1)?.map(|text| text.len());
            let packed = row.get::<_, Option<[u8; 4]>>(2)?.map(u32::from_le_bytes);
            Ok(plain.unwrap_or_default() + packed.map_or(0, |length| length as usize))
        });
        let text: usize = texts
            .expect("entries")
            .map(|length| length.expect("a length"))
            .sum();
        let table = number("SELECT sum(pgsize) FROM dbstat WHERE name = 'entries'");
        let all = number(
            "SELECT sum(pgsize) FROM dbstat WHERE name IN \
             (SELECT name FROM sqlite_master WHERE tbl_name = 'entries')",
        );
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let (text, size) = (text as f64, size as f64);
        println!(
            "{size:.0} tasks: {:.1} kB each; entries: {:.2} bytes for each byte of text, {:.2} with indexes",
            bytes / size / 1e3,
            table / text,
            all / text,
        );
    }
}

/// Whether a list of runs costs more where runs are long.
fn long_runs(model: &ModelServer) {
    let places = [filled(model, "look"), filled(model, "many steps")];
    println!("{REAL} runs of 1 step, and of {LONG} steps:");
    for (name, args) in [
        ("trace", "trace"),
        ("trace --json", "trace --json"),
        ("list", "list"),
    ] {
        compare(name, &places, |place| {
            let begun = Instant::now();
            place.run(&words(args));
            begun.elapsed()
        });
    }
    for name in ["trace ID (reads the run)", "output"] {
        compare(name, &places, |place| {
            let verb = name.split(' ').next().expect("a verb");
            let begun = Instant::now();
            place.run(&[verb.to_owned(), place.task()]);
            begun.elapsed()
        });
    }
}
