//! What is said to an agent and what it says.

use std::{fs, time::Duration};

use asyncagents_tools::{AgentProcess, Sandbox};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{sleep, timeout},
};

use super::started::{PATIENCE, Site};
use crate::workbench::can_sandbox;

#[rstest]
#[tokio::test]
async fn it_is_talked_to_through_three_pipes_of_its_own(#[values(true, false)] sandboxed: bool) {
    if sandboxed && !can_sandbox() {
        return;
    }
    let site = Site::new();
    let limits = sandboxed.then(|| site.usual_limits());
    let script = "read name; echo \"hello $name\"; echo $$ >&2; cat; exit 7";
    let command = site.command(limits, &["/bin/sh", "-c", script]);
    let agent = AgentProcess::start(command).await.expect("started");
    let AgentProcess {
        mut input,
        mut output,
        mut errors,
        mut life,
    } = agent;
    let talk = async {
        let mut greeting = [0; 9];
        input.write_all(b"you\n").await.expect("said");
        output.read_exact(&mut greeting).await.expect("an answer");
        assert_eq!(&greeting, b"hello you");
        input.write_all(b"more").await.expect("said");
        drop(input);
        let (mut rest, mut number) = (String::new(), String::new());
        output.read_to_string(&mut rest).await.expect("the rest");
        errors.read_to_string(&mut number).await.expect("errors");
        assert_eq!(rest, "\nmore");
        assert_eq!(number.trim().parse().ok(), life.pid());
        assert_eq!(life.wait().await, "exited with code 7");
    };
    timeout(PATIENCE, talk).await.expect("in time");
    match (sandboxed, life.sandbox()) {
        (true, Sandbox::Enforced { what }) => {
            assert!(
                what.contains("no network but TCP connections to port 1 "),
                "{what}"
            );
        }
        (false, Sandbox::Off) => {}
        (_, other) => panic!("{other:?}"),
    }
}

#[rstest]
#[case::is_not_there("/nowhere/agent", "/nowhere/agent cannot be started: No such file")]
#[case::is_no_program("/etc/passwd", "/etc/passwd cannot be started: Permission denied")]
#[tokio::test]
async fn why_it_did_not_begin_is_said(#[case] program: &str, #[case] why: &str) {
    let site = Site::new();
    let (printed, complained, ended) = site.run(None, &[program]).await;
    assert!(ended.starts_with(why), "{ended}");
    assert_eq!((printed.as_str(), complained.as_str()), ("", ""));
}

#[tokio::test]
async fn it_gets_nothing_but_what_it_is_given() {
    let site = Site::new();
    let (printed, _, _) = site.shell(None, "ls /proc/self/fd | wc -l; env").await;
    let mut lines = printed.lines();
    // Input, output, errors, and the folder that is listed.
    assert_eq!(lines.next(), Some("4"));
    let mut names: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["PATH", "TMPDIR"]);
}

#[tokio::test]
async fn its_folder_for_temporary_files_is_its_own_and_goes_with_it() {
    let site = Site::new();
    let limits = can_sandbox().then(|| site.usual_limits());
    let (printed, complained, _) = site
        .shell(limits, "echo x > $TMPDIR/a && echo $TMPDIR")
        .await;
    assert!(printed.starts_with('/'), "{complained}");
    // There may be much in it, so that nobody waits for that.
    let gone = async {
        while fs::metadata(printed.trim()).is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("it goes");
}
