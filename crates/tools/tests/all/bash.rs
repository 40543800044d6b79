use std::{
    path::PathBuf,
    process::Command,
    sync::Mutex,
    time::{Duration, Instant},
};

use asyncagents_core::agent::ToolOutcome;
use asyncagents_tools::{Sandbox, SandboxMode};
use rstest::rstest;
use serde_json::json;

use crate::workbench::{HELPER, Workbench, can_sandbox, eventually, is_alive, kill, processes};

#[rstest]
#[case::output("echo out; echo err >&2; echo out", "out\nerr\nout\n")]
#[case::in_the_workspace("cat file", "content\n")]
#[case::no_output("true", "[no output]\n")]
#[case::no_line_end("printf x", "x\n")]
#[case::no_input("cat; read line || echo end", "end\n")]
#[case::bash("a=(1 2); echo ${a[1]}", "2\n")]
#[case::colours_and_bars(r"printf '\e[31mred\e[0m\n1%%\r2%%\r3%%\n'", "red\n3%\n")]
#[case::not_text(r"printf 'a\xffb\n'", "a\u{fffd}b\n")]
#[case::no_terminal(
    "tty; [ -e /dev/tty ] && (: < /dev/tty) 2>/dev/null || echo none",
    "not a tty\nnone\n"
)]
#[case::pipes_break("yes | head -1", "y\n")]
#[tokio::test]
async fn gives_what_is_printed(
    #[case] command: &str,
    #[case] expected: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    bench.file("file", "content\n");
    assert_eq!(
        bench.done("bash", json!({"command": command})).await,
        expected
    );
}

#[rstest]
#[case::exit_code("echo a; exit 3", "a\n[exit code 3]\n")]
#[case::unknown_command("surely-not-there 2>/dev/null", "[exit code 127]\n")]
#[case::killed("echo a; kill -9 $$", "a\n[ended by signal 9 (SIGKILL)]\n")]
#[case::looks_killed("exit 137", "[exit code 137]\n")]
#[tokio::test]
async fn tells_how_it_ended(
    #[case] command: &str,
    #[case] expected: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    assert_eq!(
        bench.failed("bash", json!({"command": command})).await,
        expected
    );
}

#[tokio::test]
async fn lines_are_told_as_they_come() {
    let bench = Workbench::new();
    let lines = Mutex::new(Vec::new());
    let told = |line: &str| lines.lock().expect("no panic").push(line.to_owned());
    let input = json!({"command": "echo one; echo two; printf three"}).to_string();
    bench.toolbox.call("bash", &input, &told).await;
    assert_eq!(*lines.lock().expect("no panic"), ["one", "two", "three"]);
}

#[tokio::test]
async fn ten_megabytes_are_cut_in_the_middle() {
    let bench = Workbench::new();
    let command = "echo first; yes 0123456789 | head -c 10000000; echo; echo last";
    let text = bench.done("bash", json!({"command": command})).await;
    assert!(text.chars().count() <= 30_000);
    assert!(text.starts_with("first\n0123456789\n"));
    assert!(text.ends_with("\nlast\n"));
    assert!(text.contains("\n[… 9971012 characters left out …]\n"));
}

#[tokio::test]
async fn one_endless_line_takes_little_memory() {
    let before = memory();
    let bench = Workbench::new();
    let command = "head -c 200000000 /dev/zero | tr '\\0' x";
    let text = bench.done("bash", json!({"command": command})).await;
    assert!(text.contains("characters left out …]"));
    // Other tests run in the same process.
    assert!(memory() < before + 150_000_000);
}

/// The memory of this process in bytes.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = pages
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    pages * 4096
}

#[rstest]
#[case::plain("sleep 1000 & echo $! > pids; wait")]
#[case::own_session("setsid nohup sleep 1000 & echo $! > pids; wait")]
#[case::deaf("trap '' TERM INT HUP; echo $$ > pids; while true; do sleep 1000; done")]
#[tokio::test]
async fn a_timeout_ends_everything(
    #[case] command: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.bash_timeout = Duration::from_millis(1500);
    });
    let began = Instant::now();
    let command = format!("echo so far; {command}");
    let text = bench.failed("bash", json!({"command": command})).await;
    let expected = "so far\n[timed out after 1.5 s; all its processes were ended. `timeout` can be \
        up to 600 s]\n";
    assert_eq!(text, expected);
    assert!(began.elapsed() < Duration::from_secs(20));
    let left = processes(&bench.workspace.join("pids"));
    assert_eq!(left.len(), 1);
    assert!(!left.into_iter().any(is_alive));
}

#[rstest]
#[case::background("sleep 1000 & echo $! > pids")]
#[case::own_session("setsid sleep 1000 & echo $! > pids")]
#[case::no_hang_up("nohup sleep 1000 > /dev/null 2>&1 & echo $! > pids; disown")]
#[case::all_of_it("setsid nohup sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > pids")]
#[case::forked_twice(
    "(setsid bash -c '(echo $BASHPID >> pids; exec sleep 1000) &' &) ; until [ -s pids ]; do :; done"
)]
#[case::many(
    "for i in $(seq 50); do (setsid bash -c 'echo $$ >> pids; sleep 1000; :' &) ; done; until [ $(wc -l < pids) = 50 ]; do :; done"
)]
#[case::after_an_error("setsid sleep 1000 & echo $! > pids; kill -9 $$")]
#[tokio::test]
async fn nothing_outlives_the_call(
    #[case] command: &str,
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    let began = Instant::now();
    bench
        .call("bash", json!({"command": command, "timeout": 60}))
        .await;
    assert!(began.elapsed() < Duration::from_secs(30));
    let left = processes(&bench.workspace.join("pids"));
    assert!(!left.is_empty());
    assert!(!left.into_iter().any(is_alive));
}

#[tokio::test]
async fn a_process_that_forks_without_end_is_caught() {
    let bench = Workbench::new();
    // Each lives just long enough to make the next.
    let script = bench.file("comet", "echo $$ > now\nsetsid bash comet &\n");
    let command = format!("bash {} & until [ -s now ]; do :; done", script.display());
    bench.done("bash", json!({"command": command})).await;
    let last = processes(&bench.workspace.join("now"));
    assert!(!last.into_iter().any(is_alive));
    let marks = || std::fs::read_to_string(bench.workspace.join("now")).ok();
    let mark = marks();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(mark, marks(), "no further process has come");
}

#[rstest]
#[tokio::test]
async fn dropping_the_call_ends_everything(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| settings.sandbox = sandbox);
    let list = bench.workspace.join("pids");
    let command = "setsid nohup sleep 1000 & echo $! >> pids; echo $$ >> pids; wait";
    let call = bench.call("bash", json!({"command": command}));
    let list_is_full = async {
        while processes(&list).len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        outcome = call => panic!("it ended: {outcome:?}"),
        () = list_is_full => {}
    }
    let left = processes(&list);
    eventually("the processes to end", || {
        !left.iter().copied().any(is_alive)
    });
}

#[test]
fn killing_asyncagents_ends_everything() {
    let bench = Workbench::new();
    let list = bench.workspace.join("pids");
    let command = "setsid nohup sleep 1000 & echo $! >> pids; echo $$ >> pids; wait";
    let mut asyncagents = Command::new(HELPER)
        .arg("bash")
        .arg(&bench.workspace)
        .arg(json!({"command": command}).to_string())
        // What it cannot tidy up any more.
        .env("TMPDIR", &bench.outside)
        .spawn()
        .expect("the helper");
    eventually("the command to start", || processes(&list).len() == 2);
    let left = processes(&list);
    assert!(left.iter().copied().all(is_alive));
    asyncagents.kill().expect("SIGKILL");
    asyncagents.wait().expect("it ended");
    eventually("the processes to end", || {
        !left.iter().copied().any(is_alive)
    });
}

#[test]
fn secrets_in_the_environment_are_not_passed_on() {
    let bench = Workbench::new();
    let output = Command::new(HELPER)
        .arg("bash")
        .arg(&bench.workspace)
        .arg(json!({"command": "env; cat /proc/$PPID/environ | tr '\\0' '\\n'"}).to_string())
        .env("MY_API_KEY", "hush")
        .env("GITHUB_TOKEN", "hush")
        .env("SSH_AUTH_SOCK", "hush")
        .env("BASH_ENV", "hush")
        .env("SERVICE", "postgres://me:hush@host/base")
        .env("LC_MESSAGES", "told")
        .output()
        .expect("the helper");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("LC_MESSAGES=told"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

/// A name says little: only what is listed gets into the sandbox, and whoever misses one is told.
#[rstest]
#[case::not_listed("STAGE_FILE", false)]
#[case::looks_harmless("STRIPE_SK", false)]
#[case::listed("RUST_BACKTRACE", true)]
fn only_listed_variables_get_into_the_sandbox(#[case] name: &str, #[case] passes: bool) {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let command = format!("echo \"<${name}>\"; : \"${{{name}:?}}\"");
    let output = Command::new(HELPER)
        .arg("bash")
        .arg(&bench.workspace)
        .arg(json!({"command": command}).to_string())
        .env(name, "value")
        .output()
        .expect("the helper");
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = if passes {
        "<value>\n".to_owned()
    } else {
        format!(
            "[exit code 127]\n[{name} is set, but not passed on to sandboxed commands; the user can \
             list it in `sandbox.variables`]\n"
        )
    };
    assert!(text.ends_with(&expected), "{text}");
    assert_eq!(text.contains("<value>"), passes, "{text}");
}

#[tokio::test]
async fn named_variables_are_not_passed_on() {
    let command = json!({"command": "echo \"<$HOME>\""});
    let home = std::env::var("HOME").unwrap_or_default();
    let told = Workbench::new();
    let expected = format!("<{home}>\n");
    assert_eq!(told.done("bash", command.clone()).await, expected);
    let kept = Workbench::with(|s| s.secret_variables = vec!["HOME".to_owned()]);
    assert_eq!(kept.done("bash", command).await, "<>\n");
}

/// A helper that can supervise but not sandbox, as on an old kernel.
fn on_an_old_kernel(sandbox: SandboxMode) -> Workbench {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        settings.helper = settings.workspace.join("helper");
    });
    let script = format!(
        "#!/bin/sh\nif [ \"$2\" = probe ]; then printf 'the kernel is old'; exit 3; fi\n\
         exec {HELPER} \"$@\"\n"
    );
    bench.program("helper", &script);
    bench
}

#[tokio::test]
async fn a_missing_sandbox_refuses_where_it_is_required() {
    let bench = on_an_old_kernel(SandboxMode::Required);
    let why = "the kernel is old".to_owned();
    assert_eq!(bench.toolbox.sandbox(), Sandbox::Missing { why });
    let command = json!({"command": "echo a > made"});
    let expected = "bash is refused: the configuration requires a sandbox, and there is none: the \
        kernel is old";
    assert_eq!(bench.failed("bash", command).await, expected);
    assert!(!bench.workspace.join("made").exists());
}

#[tokio::test]
async fn the_first_answer_of_a_session_says_that_there_is_no_sandbox() {
    let bench = on_an_old_kernel(SandboxMode::Auto);
    let call = json!({"command": "echo a"});
    let warned = "[not sandboxed: the kernel is old]\na\n";
    assert_eq!(bench.done("bash", call.clone()).await, warned);
    assert_eq!(bench.done("bash", call.clone()).await, "a\n");
    let input = call.to_string();
    let other = bench.toolbox.for_session();
    let other = other.call("bash", &input, &|_| {}).await;
    assert_eq!(other, ToolOutcome::Done(warned.to_owned()));
}

/// A supervisor that does not do its work in time is left to it, because nobody else would.
#[rstest]
#[case::holds_the_output(
    "exec sleep 1000",
    "[timed out after 0.5 s; its processes are still being ended. `timeout` can be up to 600 s]\n"
)]
#[case::does_not_go(
    "exec sleep 1000 2>/dev/null",
    "[its processes are still being ended; the exit status of the command is not known yet]\n"
)]
#[case::says_nothing(
    "exit 0",
    "[its supervisor has vanished; the exit status of the command is unknown]\n"
)]
#[tokio::test]
async fn a_supervisor_that_stays_is_not_waited_for(#[case] script: &str, #[case] expected: &str) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Off;
        settings.helper = settings.workspace.join("helper");
        settings.bash_timeout = Duration::from_millis(500);
    });
    bench.program("helper", &format!("#!/bin/sh\necho $$ > pids\n{script}\n"));
    let text = bench.failed("bash", json!({"command": "true"})).await;
    assert_eq!(text, expected);
    let left = processes(&bench.workspace.join("pids"));
    assert_eq!(left.len(), 1);
    let stays = script.contains("sleep");
    assert_eq!(left.iter().copied().any(is_alive), stays);
    left.into_iter().filter(|_| stays).for_each(kill);
}

#[rstest]
#[case::not_there(
    "/not/there",
    SandboxMode::Off,
    "bash cannot be started: No such file or directory (os error 2)"
)]
#[case::not_there_for_the_sandbox(
    "/not/there",
    SandboxMode::Auto,
    "bash cannot be started: the helper /not/there failed: No such file or directory (os error 2)"
)]
#[case::broken(
    "/bin/false",
    SandboxMode::Auto,
    "bash cannot be started: the helper /bin/false failed: exit status: 1 "
)]
#[tokio::test]
async fn a_broken_helper_runs_nothing(
    #[case] helper: &str,
    #[case] sandbox: SandboxMode,
    #[case] expected: &str,
) {
    let bench = Workbench::with(|settings| {
        settings.helper = PathBuf::from(helper);
        settings.sandbox = sandbox;
    });
    let command = json!({"command": "echo a > made"});
    assert_eq!(bench.failed("bash", command).await, expected);
    assert!(!bench.workspace.join("made").exists());
}
