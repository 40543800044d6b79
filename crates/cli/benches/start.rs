//! How long it takes from starting `asyncagents run` to its first request to the model, over http
//! and over https, and what a step with a command costs, in a clean and in a crowded home.
//!
//! `cargo bench -p asyncagents --bench start` prints what is in `docs/benchmarks.md`.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

mod tls;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use asyncagents_core::agent::ToolOutcome;
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use asyncagents_tools::{Sandbox, Settings, Toolbox};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const TIMES: usize = 40;
/// Steps of a run, and commands that are measured by themselves.
const STEPS: usize = 100;
/// What the model takes for an answer that calls one.
const PAUSE: Duration = Duration::from_millis(30);
/// How many files a crowded home has.
const CROWD: usize = 2_200;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    starts(&runtime);
    for crowd in [0, CROWD] {
        steps(&runtime, crowd);
    }
}

/// From the start of the program to its first request.
fn starts(runtime: &Runtime) {
    let script = Script::new().rule(When::always(), Reply::text("done"));
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let home = TempDir::new().expect("a folder");
    let plain = model.url();
    let secure = tls::in_front_of(runtime, home.path(), &plain);
    let mut seen = 0;
    let mut start = |url: &str| {
        let begun = run(home.path(), url, &["run", "x"]);
        let whole = begun.elapsed();
        let request = model.requests()[seen].at - begun;
        seen += 1;
        (request, whole)
    };
    // The first makes the database.
    let (first, _) = start(&plain);
    println!(
        "first start, with a new database: {:.1} ms to the first request",
        milliseconds(first)
    );
    let (mut http, mut tls, mut whole, mut bare) = (vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let (request, all) = start(&plain);
        http.push(request);
        whole.push(all);
        if let Some(secure) = &secure {
            tls.push(start(secure).0);
        }
        bare.push(run(home.path(), &plain, &["--version"]).elapsed());
    }
    print("start to the first request, http", http);
    match secure {
        Some(_) => print("start to the first request, https", tls),
        None => println!("https: skipped, there is no openssl to make a certificate"),
    }
    print("the whole run", whole);
    print("--version, for comparison", bare);
}

/// `bash true`: the command by itself, and as a step of a run, from the request whose answer calls
/// it to the request that has its result, without the time that the model takes. Between two commands
/// is a pause, shorter than that of any model: in it the next one is prepared.
fn steps(runtime: &Runtime, crowd: usize) {
    let home = TempDir::new().expect("a folder");
    for number in 0..crowd {
        fs::write(home.path().join(format!("file{number}")), "").expect("a file");
    }
    fs::create_dir(home.path().join(".ssh")).expect("a folder");
    let name = match crowd {
        0 => "a clean home".to_owned(),
        crowd => format!("a home with {crowd} files"),
    };

    let workspace = home.path().join("work");
    fs::create_dir_all(&workspace).expect("a folder");
    let mut settings = Settings::new(&workspace, env!("CARGO_BIN_EXE_asyncagents"));
    settings.home = Some(home.path().to_owned());
    let toolbox = Toolbox::new(settings).expect("a toolbox");
    if !matches!(toolbox.sandbox(), Sandbox::Enforced { .. }) {
        println!("no sandbox on this machine: the commands below run without");
    }
    let call = || async {
        let input = json!({"command": "true"}).to_string();
        let begun = Instant::now();
        let outcome = toolbox.call("bash", &input, &|_| {}).await;
        assert!(matches!(outcome, ToolOutcome::Done(_)), "{outcome:?}");
        begun.elapsed()
    };
    let commands = runtime.block_on(async {
        let mut times = Vec::new();
        for _ in 0..STEPS {
            times.push(call().await);
            tokio::time::sleep(PAUSE).await;
        }
        times
    });
    print(&format!("bash true in {name}, the command"), commands);

    let calls = (0..STEPS).fold(Script::new(), |script, turn| {
        let command = json!({"command": format!("true {turn}")});
        script.rule(When::turn(turn), Reply::call("bash", command).delay(PAUSE))
    });
    let script = calls.rule(When::always(), Reply::text("done"));
    let model = runtime
        .block_on(ModelServer::start(script))
        .expect("a port");
    let allowed = ["-c", "permissions.mode=yolo", "run", "x"];
    run(home.path(), &model.url(), &allowed);
    let requests = model.requests();
    assert_eq!(requests.len(), STEPS + 1, "the model was asked");
    let steps = requests
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at - PAUSE);
    print(&format!("bash true in {name}, the step"), steps.collect());
}

/// Runs the program to its end, and returns when it was started.
fn run(home: &Path, url: &str, args: &[&str]) -> Instant {
    let base = format!("providers.test.base_url={url}");
    let work = home.join("work");
    fs::create_dir_all(&work).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    command
        .current_dir(work)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .args(["-c", &base, "-c", "providers.test.wire=anthropic"])
        .args(["-c", "model=test/model"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if url.starts_with("https") {
        command.env("SSL_CERT_FILE", tls::roots(home));
        // As where neither is set: the file and the folder.
        command.env("SSL_CERT_DIR", "/etc/ssl/certs");
    }
    let begun = Instant::now();
    let ended = command.status();
    assert!(ended.expect("runs").success(), "{args:?}");
    begun
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!(
        "{what}: median {:.1} ms, 90 % within {:.1} ms, best {:.1} ms",
        milliseconds(times[times.len() / 2]),
        milliseconds(times[times.len() * 9 / 10]),
        milliseconds(times[0]),
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
