//! What the sandbox costs. Run with `--ignored --nocapture`, in release for true figures.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use asyncagents_tools::{Sandbox, SandboxMode};
use serde_json::json;

use crate::workbench::Workbench;

const CALLS: u32 = 200;

#[tokio::test]
#[ignore = "it measures"]
async fn of_a_call() {
    let real_home = std::env::home_dir();
    let full = tempfile::tempdir().expect("a folder");
    fill(full.path());
    let cases = [
        ("supervisor only", SandboxMode::Off, None),
        ("sandbox, small home", SandboxMode::Auto, None),
        (
            "sandbox, a home with 5,000 files, 34 of them private",
            SandboxMode::Auto,
            Some(full.path().to_owned()),
        ),
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

/// A home in which 100 programs have left their files.
fn fill(home: &Path) {
    for number in 0..100 {
        let shared = [".config", ".local/share"][number % 2];
        let program = home.join(shared).join(format!("program{number}"));
        for file in 0..50 {
            let file = program.join(format!("{}/{file}", file % 5));
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, "x").expect("a file");
        }
        if number % 3 == 0 {
            let token = program.join("token");
            fs::write(&token, "x").expect("a file");
            fs::set_permissions(token, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
    }
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let (half, most) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    format!("median {half:.1?}, 95 % within {most:.1?}")
}
