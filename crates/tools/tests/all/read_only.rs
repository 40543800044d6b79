//! Read-only commands.

use std::time::{Duration, Instant};

use crate::workbench::{Workbench, can_sandbox};

#[tokio::test]
async fn what_a_command_prints_is_returned() {
    let bench = Workbench::new();
    bench.file("a.txt", "hello");
    let printed = bench
        .toolbox
        .run_read_only("cat a.txt; echo", can_sandbox())
        .await;
    if can_sandbox() {
        assert_eq!(printed.as_deref().map(str::trim_end), Ok("hello"))
    } else {
        assert!(printed.is_err())
    }
}

#[tokio::test]
async fn it_can_change_nothing_and_reach_nobody() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    bench.file("a.txt", "hello");
    for command in [
        "echo evil > a.txt",
        "touch new.txt",
        "rm a.txt",
        "mkdir -p .git/hooks",
        "exec 3<>/dev/tcp/127.0.0.1/9",
    ] {
        let done = bench.toolbox.run_read_only(command, false).await;
        assert!(done.is_err(), "{command}: {done:?}");
    }
    assert_eq!(bench.content("a.txt"), "hello");
    let printed = bench
        .toolbox
        .run_read_only("echo x > $TMPDIR/x && cat $TMPDIR/x", false)
        .await;
    assert_eq!(printed.as_deref().map(str::trim_end), Ok("x"));
}

#[tokio::test]
async fn it_may_take_five_seconds_and_print_ten_thousand_characters() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let begun = Instant::now();
    let slow = bench.toolbox.run_read_only("sleep 60", false).await;
    assert_eq!(slow, Err("it took longer than 5s".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let long = bench.toolbox.run_read_only("seq 1 100000", false).await;
    let long = long.expect("printed");
    let length = long.chars().count();
    assert!((9_000..=11_000).contains(&length), "{length}");
    let failed = bench
        .toolbox
        .run_read_only("echo why >&2; exit 3", false)
        .await;
    assert_eq!(failed, Err("exit code 3: why".to_owned()));
}

#[tokio::test]
async fn without_a_sandbox_it_runs_only_if_it_may_do_so_freely() {
    let bench = Workbench::with(|settings| {
        settings.sandbox = asyncagents_tools::SandboxMode::Off;
    });
    let refused = bench.toolbox.run_read_only("echo x", false).await;
    assert_eq!(
        refused,
        Err("it cannot be sandboxed: that is switched off".to_owned())
    );
    let free = bench.toolbox.run_read_only("echo x", true).await;
    assert_eq!(free.as_deref().map(str::trim_end), Ok("x"));
}
