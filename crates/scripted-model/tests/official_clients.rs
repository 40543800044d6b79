//! The official Python packages understand the server.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use serde_json::json;
use tokio::process::Command;

/// What is installed; a change makes a new environment.
const PACKAGES: [&str; 2] = ["anthropic==2.8.0", "openai==3.49.0"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_packages_parse_every_protocol() {
    let python = match environment().await {
        Ok(python) => python,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let server = ModelServer::start(script()).await.expect("a server");
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official_clients.py");
    let run = Command::new(python)
        .arg(checks)
        .arg(server.url())
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .output();
    let output = run.await.expect("a run");
    let (said, complained) = (lossy(&output.stdout), lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(server.unanswered().len(), 0);
}

fn script() -> Script {
    let full = Reply::call("read", json!({"path": "a.rs"}))
        .and_call("read", json!({"path": "b.rs", "lines": [1, 2]}))
        .and_text("Let me look at both files before I say anything.")
        .reasoning("Two files, two calls.")
        .chunk(10);
    Script::new()
        .rule(
            When::always().last("limit me"),
            Reply::status(429).retry_after("3").message("Slow down."),
        )
        .rule(
            When::always().last("be busy"),
            Reply::fault(Fault::ErrorEvent),
        )
        .rule(When::always().tools(true), full)
}

/// A Python with the packages, kept between runs; or why there is none.
///
/// # Panics
/// On a build server that has Python but cannot install the packages.
async fn environment() -> Result<PathBuf, String> {
    run(Command::new("python3").arg("--version")).await?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGES.join("-"));
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if ready.exists() {
        return Ok(python);
    }
    let installed = install(&folder, &python).await;
    if env::var("CI").is_ok_and(|ci| ci == "true") {
        installed.as_ref().expect("packages on a build server");
    }
    installed?;
    fs::write(ready, "").map_err(|error| error.to_string())?;
    Ok(python)
}

async fn install(folder: &Path, python: &Path) -> Result<(), String> {
    let venv = ["-m", "venv", "--clear"];
    run(Command::new("python3").args(venv).arg(folder)).await?;
    let pip = ["-m", "pip", "install", "--quiet", "--retries", "1"];
    run(Command::new(python).args(pip).args(PACKAGES)).await
}

async fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "{}{}",
            lossy(&output.stdout),
            lossy(&output.stderr)
        ))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
