//! What a command may use, and that nothing of it stays, whatever becomes of those who watch it.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use asyncagents_tools::{Bytes, MemoryLimit, SandboxMode, Settings};
use rstest::rstest;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::workbench::{HELPER, Workbench, eventually, is_alive, kill, processes, send};

/// Each makes two more, down to this depth: 511 in all, should nobody stop them.
const BOMB: &str = "
    b() { echo $BASHPID >> pids; [ $1 = 0 ] || { b $(($1 - 1)) & b $(($1 - 1)) & }; sleep 1000; }
    b 8";

#[rstest]
#[case::bomb(BOMB)]
#[case::bomb_of_sessions(
    "cat > bomb <<'end'
echo $$ >> pids
[ $1 = 0 ] || { setsid bash bomb $(($1 - 1)) & setsid bash bomb $(($1 - 1)) & }
sleep 1000
end
bash bomb 8"
)]
#[case::children_that_ended(
    "perl -e 'open F, q(>pids); print F $$; close F; fork || exit for 1 .. 400; sleep 1000'"
)]
#[tokio::test]
async fn too_many_processes_are_ended(
    #[case] command: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.resources.processes = Some(100);
    });
    let text = bench.failed("bash", json!({"command": command})).await;
    let expected = "[ended because it had more than 100 processes; all its processes were ended]\n";
    assert!(text.ends_with(expected), "{text}");
    let left = processes(&bench.workspace.join("pids"));
    assert!(!left.is_empty());
    assert!(!left.into_iter().any(is_alive));
}

#[tokio::test]
async fn threads_count_too() {
    let bench = Workbench::with(|settings| settings.resources.processes = Some(10));
    let command = "python3 -c 'import threading, time
for _ in range(300): threading.Thread(target=time.sleep, args=(1000,)).start()'";
    if bench
        .call("bash", json!({"command": "python3 --version"}))
        .await
        .text()
        .contains("[exit")
    {
        println!("skipped: no python3");
        return;
    }
    let text = bench.failed("bash", json!({"command": command})).await;
    let expected = "its processes had more than 160 threads; ";
    assert!(text.contains(expected), "{text}");
}

/// The bomb is still growing when its time is over.
#[rstest]
#[tokio::test]
async fn a_bomb_ends_with_its_command(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.bash_timeout = Duration::from_millis(200);
    });
    let text = bench.failed("bash", json!({"command": BOMB})).await;
    // A busy machine needs longer than the answer waits.
    assert!(text.starts_with("[timed out after 0.2 s; "), "{text}");
    let left = processes(&bench.workspace.join("pids"));
    eventually("all to end", || !left.iter().copied().any(is_alive));
}

#[rstest]
#[case::one("perl -e '$x = \"a\" x 200_000_000; sleep 1000'")]
#[case::together("for i in 1 2 3 4; do perl -e '$x = \"a\" x 40_000_000; sleep 1000' & done; wait")]
#[tokio::test]
async fn too_much_memory_ends_it(
    #[case] command: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.resources.memory = Some(MemoryLimit::Bytes(Bytes(100_000_000)));
    });
    let text = bench.failed("bash", json!({"command": command})).await;
    let expected = "[ended because its processes had more than 100MB of memory; all its processes \
        were ended]\n";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn shared_memory_counts_once() {
    let bench = Workbench::with(|settings| {
        settings.resources.memory = Some(MemoryLimit::Bytes(Bytes(200_000_000)));
    });
    // Ten processes with the same 80 MB, for many looks.
    let command = "perl -e '$x = \"a\" x 40_000_000; fork || sleep(1) && exit for 1 .. 9; \
        1 while wait > 0; print \"x\\n\"'";
    assert_eq!(bench.done("bash", json!({"command": command})).await, "x\n");
}

#[rstest]
#[case::by_signal(
    "exec head -c 2000000 /dev/zero > file",
    "[ended by signal 25 (SIGXFSZ)]\n"
)]
#[case::in_a_script("head -c 2000000 /dev/zero > file; exit $?", "[exit code 153]\n")]
#[case::by_error("trap '' XFSZ; head -c 2000000 /dev/zero > file", "[exit code 1]\n")]
#[tokio::test]
async fn a_file_cannot_become_too_large(
    #[case] command: &str,
    #[case] how: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.resources.file_size = Some(Bytes(1_000_000));
    });
    let text = bench.failed("bash", json!({"command": command})).await;
    let expected = format!("{how}[no file may be larger than 1MB]\n");
    assert!(text.ends_with(&expected), "{text}");
    let size = fs::metadata(bench.workspace.join("file"))
        .expect("a part of it")
        .len();
    assert_eq!(size, 1_000_000);
}

#[rstest]
#[tokio::test]
async fn there_are_no_core_dumps_and_memory_is_taken_from_commands_first(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    let command = "ulimit -H -c; [ $(cat /proc/self/oom_score_adj) -ge 500 ] && echo first";
    let text = bench.done("bash", json!({"command": command})).await;
    assert_eq!(text, "0\nfirst\n");
}

#[tokio::test]
async fn nothing_is_limited_where_nobody_wants_it() {
    let bench = Workbench::with(|settings| {
        settings.resources = asyncagents_tools::Resources::UNLIMITED;
    });
    let command = "for i in $(seq 50); do sleep 0.2 & done; wait; ulimit -f";
    let text = bench.done("bash", json!({"command": command})).await;
    assert_eq!(text, "unlimited\n");
}

#[tokio::test]
async fn a_signal_to_its_group_does_not_reach_the_supervisor() {
    let bench = Workbench::with(|settings| settings.sandbox = SandboxMode::Off);
    let command = "setsid sleep 1000 & echo $! > pids; kill -9 0";
    let text = bench.failed("bash", json!({"command": command})).await;
    assert_eq!(text, "[ended by signal 9 (SIGKILL)]\n");
    let left = processes(&bench.workspace.join("pids"));
    assert!(!left.is_empty());
    assert!(!left.into_iter().any(is_alive));
    let command = json!({"command": "trap '' TERM; kill 0; echo on"});
    assert_eq!(bench.done("bash", command).await, "on\n");
}

/// Daemons of several kinds, and who watches them.
const DAEMONS: &str = "
    setsid nohup sleep 1000 > /dev/null 2>&1 & echo $! >> pids
    (setsid bash -c 'echo $$ >> pids; sleep 1000; :' &)
    sleep 1000 & echo $! >> pids
    echo $$ >> pids
    until [ $(wc -l < pids) = 4 ]; do :; done
    echo $PPID > supervisor; wait";

/// The supervisor and the guard of the daemons, once all are there.
fn watchers(workspace: &Path) -> Option<[u32; 2]> {
    let [supervisor] = processes(&workspace.join("supervisor"))[..] else {
        return None;
    };
    let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let guard = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some([supervisor, guard])
}

async fn once_there(bench: &Workbench) -> [u32; 2] {
    loop {
        if let Some(watchers) = watchers(&bench.workspace) {
            return watchers;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn call() -> Value {
    json!({"command": DAEMONS, "timeout": 60})
}

#[rstest]
#[tokio::test]
async fn killing_the_supervisor_ends_everything(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    let (text, ()) = tokio::join!(bench.failed("bash", call()), async {
        let [supervisor, _] = once_there(&bench).await;
        kill(supervisor);
    });
    let expected = "[its supervisor was ended by signal 9; all its processes were ended, and the exit \
        status of the command is unknown]\n";
    assert_eq!(text, expected);
    let left = processes(&bench.workspace.join("pids"));
    assert_eq!(left.len(), 4);
    assert!(!left.into_iter().any(is_alive));
}

/// Then the supervisor is alone.
#[rstest]
#[tokio::test]
async fn a_command_goes_on_without_its_guard(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    let command = DAEMONS.replace("; wait", "");
    let command = format!("{command}; until [ -e go ]; do :; done; echo on");
    let command = json!({"command": command});
    let (text, supervisor) = tokio::join!(bench.done("bash", command), async {
        let [supervisor, guard] = once_there(&bench).await;
        kill(guard);
        bench.file("go", "");
        supervisor
    });
    assert_eq!(text, "on\n");
    let mut left = processes(&bench.workspace.join("pids"));
    assert_eq!(left.len(), 4);
    left.push(supervisor);
    eventually("all to end", || !left.iter().copied().any(is_alive));
}

/// A supervisor that gets no time for a while stands for one with much to do.
#[rstest]
#[tokio::test]
async fn a_slow_supervisor_is_left_at_work(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let slow = |settings: &mut Settings| {
        settings.sandbox = sandbox;
        settings.bash_timeout = Duration::from_secs(2);
    };
    let bench = Workbench::with(slow);
    let began = Instant::now();
    let input = json!({"command": DAEMONS});
    let (text, watchers) = tokio::join!(bench.failed("bash", input), async {
        let watchers = once_there(&bench).await;
        send(watchers[0], Signal::STOP);
        watchers
    });
    assert!(began.elapsed() < Duration::from_secs(20));
    let expected = "[timed out after 2 s; its processes are still being ended. `timeout` can be up \
        to 600 s]\n";
    assert_eq!(text, expected);
    let mut left = processes(&bench.workspace.join("pids"));
    assert_eq!(left.len(), 4);
    left.extend(watchers);
    assert!(left.iter().copied().all(is_alive));
    send(watchers[0], Signal::CONT);
    eventually("all to end", || !left.iter().copied().any(is_alive));
}

#[test]
fn a_slow_supervisor_ends_everything_after_asyncagents() {
    let bench = Workbench::new();
    let mut asyncagents = Command::new(HELPER)
        .arg("bash")
        .arg(&bench.workspace)
        .arg(call().to_string())
        .env("TMPDIR", &bench.outside)
        .spawn()
        .expect("the helper");
    eventually("the daemons", || watchers(&bench.workspace).is_some());
    let watchers = watchers(&bench.workspace).expect("they are there");
    let mut left = processes(&bench.workspace.join("pids"));
    left.extend(watchers);
    send(watchers[0], Signal::STOP);
    asyncagents.kill().expect("SIGKILL");
    asyncagents.wait().expect("it ended");
    assert!(left.iter().copied().all(is_alive));
    send(watchers[0], Signal::CONT);
    eventually("all to end", || !left.iter().copied().any(is_alive));
}
