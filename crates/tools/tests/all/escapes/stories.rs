//! Ways out that need more than a line, and that work goes on in the sandbox.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::{UnixDatagram, UnixListener},
    },
    process::Command,
};

use asyncagents_tools::{Sandbox, SandboxMode, Settings};
use rstest::rstest;
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::json;

use crate::workbench::{Workbench, can_sandbox, is_alive};

/// Runs a command and looks whether it got out.
async fn escapes(
    sandbox: SandboxMode,
    command: &str,
    got_out: impl Fn(&Workbench, &str) -> bool,
) -> (bool, String) {
    let bench = Workbench::with(|settings: &mut Settings| {
        settings.sandbox = sandbox;
        settings.secret_paths.push("../outside/token".into());
    });
    fs::write(bench.outside.join("token"), "PRIVATE TOKEN\n").expect("a secret");
    let command = bench.filled(command);
    let outcome = bench.call("bash", json!({"command": command})).await;
    let text = outcome.text().to_owned();
    (got_out(&bench, &text), text)
}

async fn is_stopped(command: &str, got_out: impl Fn(&Workbench, &str) -> bool) {
    if !can_sandbox() {
        return;
    }
    let (out, text) = escapes(SandboxMode::Off, command, &got_out).await;
    assert!(
        out,
        "without the sandbox this should get out: {command}: {text}"
    );
    let (out, text) = escapes(SandboxMode::Required, command, &got_out).await;
    assert!(!out, "it got out: {command}: {text}");
}

/// What no list knows, but its owner keeps for themselves.
#[rstest]
#[case::in_the_home(".someapp", true)]
#[case::configuration(".config/someapp/auth", true)]
#[case::data(".local/share/someapp/x/token", true)]
#[case::toolchain(".cargo/registry/index", false)]
#[tokio::test]
async fn private_files_are_not_read(#[case] path: &str, #[case] closed: bool) {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let file = bench.home.join(path);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, "PRIVATE\n").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let beside = file.with_file_name("beside");
    fs::write(&beside, "HARMLESS\n").expect("a file");
    let command = format!("cat {}; cat {}", beside.display(), file.display());
    let outcome = bench.call("bash", json!({"command": command})).await;
    assert!(outcome.text().contains("HARMLESS"), "{}", outcome.text());
    assert_eq!(outcome.text().contains("PRIVATE"), !closed);
}

/// Also not by the file tools, if the home is the workspace; a file that the user names is open.
#[tokio::test]
async fn private_files_are_closed_to_file_tools_unless_named() {
    let home = tempfile::tempdir().expect("a folder");
    let root = home.path().canonicalize().expect("it is there");
    for name in ["closed", "named"] {
        let file = root.join(".config/someapp").join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, "PRIVATE\n").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    let bench = Workbench::with(|settings| {
        settings.workspace.clone_from(&root);
        settings.home = Some(root.clone());
        settings.readable = vec![root.join(".config/someapp/named")];
    });
    let refused = bench.failed("read", json!({"path": ".config/someapp/closed"}));
    assert_eq!(
        refused.await,
        ".config/someapp/closed may hold credentials and is kept from tools"
    );
    let read = bench
        .done("read", json!({"path": ".config/someapp/named"}))
        .await;
    assert!(read.contains("PRIVATE"), "{read}");
    let found = bench.done("grep", json!({"pattern": "PRIVATE"})).await;
    assert!(
        found.contains("named") && !found.contains("closed"),
        "{found}"
    );
    if can_sandbox() {
        let command = "cd .config/someapp; cat named; cat closed";
        let outcome = bench.call("bash", json!({"command": command})).await;
        assert_eq!(
            outcome.text().matches("PRIVATE").count(),
            1,
            "{}",
            outcome.text()
        );
    }
}

#[tokio::test]
async fn the_network_can_be_allowed() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Required;
        settings.network = true;
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its port").port();
    let command = format!("echo out > /dev/tcp/127.0.0.1/{port}; echo x > ../outside/new");
    bench.failed("bash", json!({"command": command})).await;
    let mut text = String::new();
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.read_to_string(&mut text).expect("text");
    assert_eq!(text, "out\n");
    assert!(!bench.outside.join("new").exists());
}

/// Behind such a socket there may be one who starts programs outside.
#[rstest]
#[case::stream("stream")]
#[case::datagram("datagram")]
#[case::one_of_a_pair("pair")]
#[tokio::test]
async fn the_network_does_not_open_local_sockets(#[case] verb: &str) {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Required;
        settings.network = true;
    });
    let [stream, datagram] = ["stream", "datagram"].map(|name| bench.workspace.join(name));
    let listener = UnixListener::bind(&stream).expect("a socket");
    listener.set_nonblocking(true).expect("nonblocking");
    let receiver = UnixDatagram::bind(&datagram).expect("a socket");
    receiver.set_nonblocking(true).expect("nonblocking");
    let to = match verb {
        "stream" => "stream",
        _ => "datagram",
    };
    let command = bench.filled(&format!("{{helper}} {verb} {to} x"));
    let text = bench.failed("bash", json!({"command": command})).await;
    assert!(text.contains("Operation not permitted"), "{text}");
    assert!(text.ends_with(" and use no local sockets]\n"), "{text}");
    assert!(listener.accept().is_err());
    assert!(receiver.recv(&mut [0; 9]).is_err());
}

#[tokio::test]
async fn names_are_looked_up_with_the_network() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Required;
        settings.network = true;
    });
    // Address families 16, routes and then something else.
    let command =
        "perl -MSocket -e 'for (0, 15) { print socket(my $s, 16, SOCK_RAW, $_) ? 1 : 0 }'";
    let text = bench.done("bash", json!({"command": command})).await;
    assert_eq!(text, "10\n");
}

#[test]
fn what_is_not_stopped_is_told() {
    if !can_sandbox() {
        return;
    }
    for (network, told) in [
        (true, "; network allowed, local sockets not; "),
        (false, "; no network, no local sockets; "),
    ] {
        let bench = Workbench::with(|settings| settings.network = network);
        let Sandbox::Enforced { what } = bench.toolbox.sandbox() else {
            panic!("it was enforced before");
        };
        assert!(what.contains(told), "{what}");
        let gaps = "not stopped: listing names, and changing modes, owners, times and attributes of \
             files elsewhere, or locking them";
        assert!(what.contains(gaps), "{what}");
    }
}

#[rstest]
#[case::supervisor("kill -9 $PPID; echo alive")]
#[case::all("kill -9 -1; echo alive")]
#[tokio::test]
async fn the_supervisor_is_not_killed(#[case] command: &str) {
    if !can_sandbox() {
        return;
    }
    let command = format!("{command}; setsid sleep 1000 & echo $! > pids");
    let bench = Workbench::with(|settings| settings.sandbox = SandboxMode::Required);
    let text = bench.call("bash", json!({"command": command})).await;
    assert!(!text.text().contains("vanished"), "{text:?}");
    let left = crate::workbench::processes(&bench.workspace.join("pids"));
    assert!(!left.into_iter().any(is_alive));
}

#[tokio::test]
async fn the_supervisor_is_not_blinded() {
    // Without files it cannot list what it has to end. Then the guard does it.
    let command = "prlimit --pid $PPID --nofile=0:0; setsid sleep 1000 & echo $! > pids";
    is_stopped(command, |bench, text| {
        let left = crate::workbench::processes(&bench.workspace.join("pids"));
        assert!(!left.is_empty(), "there was no process: {text}");
        assert!(!left.into_iter().any(is_alive), "{text}");
        text.contains("[its supervisor could not do its work; all its processes were ended")
    })
    .await;
}

/// Without time it could not end anything either.
#[rstest]
#[case::nice("renice -n 19 -p $PPID > /dev/null")]
#[case::nice_of_its_group("renice -n 19 -g $(cut -d ' ' -f 5 /proc/$PPID/stat) > /dev/null")]
#[case::idle("chrt -i -p 0 $PPID")]
#[case::processors("taskset -p -c $(taskset -p -c $PPID | sed 's/.*: //') $PPID > /dev/null")]
#[case::disk("ionice -c 3 -p $PPID")]
#[case::disk_of_its_group("ionice -c 3 -P $(cut -d ' ' -f 5 /proc/$PPID/stat)")]
#[tokio::test]
async fn the_supervisor_is_not_slowed_down(#[case] command: &str) {
    let command = format!("{command} && echo out");
    is_stopped(&command, |_, text| text.contains("out\n")).await;
}

#[tokio::test]
async fn files_that_asyncagents_has_open_are_closed() {
    let bench = Workbench::new();
    let call = json!({"command": "echo out >&9"}).to_string();
    let run = |verb: &str| {
        let script = format!("exec 9<>{{outside}}/precious; {verb}");
        let status = Command::new("bash")
            .args(["-c", &bench.filled(&script), "bash", &call])
            .output();
        status.expect("bash");
        fs::read_to_string(bench.outside.join("precious")).expect("it is there")
    };
    let sandboxed = run("{helper} bash {workspace} \"$1\"");
    assert_eq!(sandboxed, "precious\n");
    assert_eq!(run("bash -c 'echo out >&9'"), "out\nious\n");
}

/// What work needs must go on.
#[rstest]
#[case::write("echo x > file && cat file")]
#[case::rename_across_folders("mkdir a b && echo x > a/f && mv a/f b/f && cat b/f")]
#[case::hard_link("echo x > f && ln f g && cat g")]
#[case::temporary("f=$(mktemp) && echo x > $f && cat $f")]
#[case::temporary_to_workspace("f=$(mktemp) && echo x > $f && mv $f here && cat here")]
#[case::null("echo y > /dev/null && echo x")]
#[case::random("head -c 4 /dev/urandom | wc -c | sed s/4/x/")]
#[case::programs("ls /usr/bin > /dev/null && echo x")]
#[case::home("cat {home}/.profile | sed s/harmless/x/")]
#[case::threads_and_pipes("echo x | cat | (cat; true)")]
#[case::a_sandbox_within("{helper} bash . '{\"command\": \"echo x\"}'")]
#[case::executable("printf '#!/bin/sh\necho x' > run && chmod +x run && ./run")]
#[case::own_processes("sleep 100 & kill $! && echo x")]
#[case::own_priority("nice -n 5 ionice -c 3 chrt -b 0 echo x")]
#[case::own_processors("taskset $(taskset -p $$ | sed 's/.*: //') echo x")]
#[case::proc("cat /proc/self/comm > /dev/null && echo x")]
#[case::stderr_by_name("echo x > /dev/stderr")]
#[tokio::test]
async fn work_goes_on(#[case] command: &str) {
    let bench = Workbench::new();
    let command = bench.filled(command);
    assert_eq!(bench.done("bash", json!({"command": command})).await, "x\n");
}

#[tokio::test]
async fn a_workspace_around_secrets_keeps_them() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Required;
        settings.secret_paths = vec!["vault/keys".into()];
    });
    bench.file("vault/keys/id", "PRIVATE");
    bench.file("vault/list", "x\n");
    bench.file("src/main", "x\n");
    let Sandbox::Enforced { what } = bench.toolbox.sandbox() else {
        panic!("it was enforced before");
    };
    assert!(
        what.contains("contains secret paths: beside them nothing new can be made"),
        "{what}"
    );
    let run = |command: &str| bench.call("bash", json!({"command": command}));
    for command in [
        "cat vault/keys/id",
        "cp -r vault src/copy; cat src/copy/keys/id",
    ] {
        assert!(!run(command).await.text().contains("PRIVATE"), "{command}");
    }
    let text = run("echo y > vault/list && echo y > src/new && cat vault/list src/new").await;
    assert_eq!(text.text(), "y\ny\n");
}

/// The rules are made once and used for many commands. What they were made of may change.
#[tokio::test]
async fn what_comes_later_is_read_unless_it_is_a_secret() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| settings.sandbox = SandboxMode::Required);
    let home = &bench.home;
    let cat = async |name: &str| {
        let command = format!("cat {}", home.join(name).display());
        let outcome = bench.call("bash", json!({"command": command})).await;
        outcome.text().to_owned()
    };
    assert_eq!(cat(".profile").await, "harmless\n");

    let put = |name: &str, text: &str| {
        let file = home.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    };
    // Beside the way to a secret, and where there was no secret before.
    put("new", "NEW\n");
    assert_eq!(cat("new").await, "NEW\n");
    put(".config/some/file", "NEW\n");
    assert_eq!(cat(".config/some/file").await, "NEW\n");
    put(".config/gh/hosts.yml", "PRIVATE\n");
    put(".netrc", "PRIVATE\n");
    for secret in [".config/gh/hosts.yml", ".netrc"] {
        assert!(!cat(secret).await.contains("PRIVATE"), "{secret}");
    }
    assert_eq!(cat(".config/some/file").await, "NEW\n");
    // A rule is about a file, whatever its name becomes.
    put("token", "PRIVATE\n");
    assert_eq!(cat("token").await, "PRIVATE\n");
    fs::rename(home.join("token"), home.join(".pgpass")).expect("renamed");
    assert!(!cat(".pgpass").await.contains("PRIVATE"));
    fs::rename(home.join(".pgpass"), home.join("token")).expect("renamed");
    assert_eq!(cat("token").await, "PRIVATE\n");
}

/// The database is such a file. A process that opens and closes a file, for whatever purpose, gives
/// up its locks there.
#[tokio::test]
async fn asyncagents_keeps_its_locks_on_what_is_secret() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| {
        settings.sandbox = SandboxMode::Required;
        settings.secret_paths.push("../outside/precious".into());
    });
    let file = bench.outside.join("precious");
    let file = fs::OpenOptions::new().write(true).open(file);
    let file = file.expect("a file");
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("a lock");
    let inode = file.metadata().expect("a file").ino();
    let held = || {
        let locks = fs::read_to_string("/proc/locks").expect("a list");
        let ours = format!(" {} ", std::process::id());
        let there = format!(":{inode} ");
        locks
            .lines()
            .any(|lock| lock.contains(&ours) && lock.contains(&there))
    };
    assert!(held());
    for _ in 0..2 {
        bench.done("bash", json!({"command": "true"})).await;
        assert!(held());
    }
}

#[tokio::test]
async fn a_workspace_that_was_made_anew_is_written() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::with(|settings| settings.sandbox = SandboxMode::Required);
    let write = json!({"command": "echo x > file && cat file"});
    assert_eq!(bench.done("bash", write.clone()).await, "x\n");
    fs::remove_dir_all(&bench.workspace).expect("removed");
    fs::create_dir(&bench.workspace).expect("made");
    assert_eq!(bench.done("bash", write).await, "x\n");
}

/// Guard and supervisor write there.
#[tokio::test]
async fn a_command_has_no_rights_of_its_supervisor() {
    is_stopped(
        "echo 700 > /proc/self/oom_score_adj && echo out",
        |_, text| text.contains("out\n"),
    )
    .await;
}

#[tokio::test]
async fn a_refusal_is_explained_once() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let call = json!({"command": "echo x > ../outside/new"});
    let first = bench.failed("bash", call.clone()).await;
    let second = bench.failed("bash", call).await;
    let begin = bench.filled("[commands are sandboxed: they can write only in {workspace}, ");
    assert!(first.contains(&begin), "{first}");
    assert!(first.ends_with(" and have no network]\n"), "{first}");
    assert!(!second.contains("sandboxed"), "{second}");
}
