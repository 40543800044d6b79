//! Tasks of a kind of host that this program does not have: they stay as they are, can be looked
//! at and cancelled, and nothing is lost.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    path::Path,
    process::{Command, Output},
};

fn run(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("ASYNCAGENTS_WORKER_AUTOSTART", "false")
        .env("ASYNCAGENTS_WORKER_IDLE", "50ms")
        .args(["-c", "model=x/m"])
        .args(["-c", "providers.x.base_url=http://127.0.0.1:9/v1"])
        .args(args)
        .output()
        .expect("runs")
}

/// What a command answers that must succeed.
fn ask(home: &Path, args: &[&str]) -> String {
    let output = run(home, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_task_of_a_host_that_is_not_here_waits_and_can_be_cancelled() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let id = ask(home, &["task", "hello"]);
    let db = home.join(".local/share/asyncagents/asyncagents.db");
    let name = "scripted:/srv/children.toml#0123abcd";
    let changed = rusqlite::Connection::open(db)
        .expect("opens")
        .execute("UPDATE tasks SET host = ?1, session = 'ses_1'", [name]);
    assert_eq!(changed.expect("changed"), 1);

    // A worker neither runs it nor fails it.
    ask(home, &["worker"]);
    let list = ask(home, &["list"]);
    assert!(list.contains("1 queued"), "{list}");

    let conversation = run(home, &["output", &id, "--full-session"]);
    let why = String::from_utf8_lossy(&conversation.stderr);
    assert!(
        why.contains("this version of asyncagents does not know the host `scripted:/srv/"),
        "{why}"
    );

    ask(home, &["cancel", &id]);
    let list = ask(home, &["list"]);
    assert!(list.contains("1 cancelled"), "{list}");
}

#[test]
fn a_host_that_is_not_here_cannot_be_named() {
    let home = tempfile::tempdir().expect("a folder");
    let refused = run(home.path(), &["task", "--host", "scripted", "hello"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(
        why.contains("must be engine, engine:FOLDER, opencode:URL, or another agent"),
        "{why}"
    );
}

#[test]
fn an_agent_whose_program_is_not_there_is_not_launched() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    for (program, why) in [
        (
            "/nonexistent/agent",
            "there is no program `/nonexistent/agent`;",
        ),
        (
            "no-such-agent",
            "there is no program `no-such-agent` on the PATH;",
        ),
        ("/etc", "there is no program `/etc`;"),
    ] {
        let command = format!("hosts.mine.command={program}");
        let done = run(home, &["-c", &command, "task", "--host", "mine", "hello"]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(said.contains("hosts.mine.command names it"), "{said}");
    }
    // A name that is misspelt where something else is said of it.
    let done = run(
        home,
        &[
            "-c",
            "hosts.cluade.sandbox=false",
            "task",
            "--host",
            "cluade",
            "hello",
        ],
    );
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("it is not said how `cluade` is started; set hosts.cluade.command"),
        "{said}"
    );
    assert_eq!(ask(home, &["list", "--json"]), "[]");
}
