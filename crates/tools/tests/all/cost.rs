//! What the sandbox costs. Run with `--ignored --nocapture`, in release for true figures.

use std::time::{Duration, Instant};

use asyncagents_tools::{Sandbox, SandboxMode};
use serde_json::json;

use crate::workbench::Workbench;

const CALLS: u32 = 200;

#[tokio::test]
#[ignore = "it measures"]
async fn of_a_call() {
    let real_home = std::env::home_dir();
    let cases = [
        ("supervisor only", SandboxMode::Off, None),
        ("sandbox, small home", SandboxMode::Auto, None),
        (
            "sandbox, the home of this user",
            SandboxMode::Auto,
            real_home,
        ),
    ];
    for (name, sandbox, home) in cases {
        let bench = Workbench::with(|settings| {
            settings.sandbox = sandbox;
            settings.home = home.or(settings.home.take());
        });
        let (Sandbox::Enforced { .. } | Sandbox::Off) = bench.toolbox.sandbox() else {
            println!("{name}: skipped");
            continue;
        };
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let began = Instant::now();
            bench.done("bash", json!({"command": "true"})).await;
            times.push(began.elapsed());
        }
        println!("{name}: {}", summary(times));
    }
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        let status = std::process::Command::new("bash")
            .args(["-c", "true"])
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        times.push(began.elapsed());
    }
    println!("bash alone: {}", summary(times));
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let (half, most) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    format!("median {half:.1?}, 95 % within {most:.1?}")
}
