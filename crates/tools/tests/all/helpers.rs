//! The helpers that are started for the next command before there is one.

use std::{fs, path::Path};

use asyncagents_core::agent::ToolOutcome;
use asyncagents_tools::{SESSION_VARIABLE, SandboxMode, Toolbox};
use rstest::rstest;
use serde_json::json;

use crate::workbench::{Workbench, can_sandbox, eventually, is_alive, kill};

/// Guard, supervisor, and the one that becomes the command.
const OF_A_HELPER: usize = 3;

/// The processes that are in a folder, oldest first.
fn in_folder(folder: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_there = |process: &u32| {
        let place = fs::read_link(format!("/proc/{process}/cwd"));
        place.is_ok_and(|place| place == folder) && is_alive(*process)
    };
    let mut there: Vec<u32> = numbers.filter(is_there).collect();
    there.sort_unstable();
    there
}

/// Those that wait for the next command, once they are there.
fn waiting(folder: &Path) -> Vec<u32> {
    eventually("a helper waits", || in_folder(folder).len() == OF_A_HELPER);
    in_folder(folder)
}

async fn bash(toolbox: &Toolbox, command: &str) -> String {
    let input = json!({ "command": command }).to_string();
    match toolbox.call("bash", &input, &|_| {}).await {
        ToolOutcome::Done(text) => text,
        other => panic!("{command}: {other:?}"),
    }
}

#[rstest]
#[tokio::test]
async fn the_next_command_finds_a_helper_that_waits_for_it(
    #[values(SandboxMode::Auto, SandboxMode::Off)] sandbox: SandboxMode,
) {
    let bench = Workbench::with(|settings| {
        settings.sandbox = sandbox;
        // Other tests make folders beside that home, which changes the rules.
        settings.home = None;
    });
    bash(&bench.toolbox, "true").await;
    let helper = waiting(&bench.workspace);
    let became: u32 = bash(&bench.toolbox, "echo $$")
        .await
        .trim()
        .parse()
        .expect("a number");
    assert!(helper.contains(&became), "{became} is none of {helper:?}");
    let next = waiting(&bench.workspace);
    assert!(
        helper.iter().all(|process| !next.contains(process)),
        "used once"
    );
}

#[tokio::test]
async fn whoever_uses_it_is_named_to_the_command() {
    let bench = Workbench::new();
    let ask = format!("echo \"<${SESSION_VARIABLE}>\"");
    for session in ["first", "second"] {
        let toolbox = bench.toolbox.for_session().named(session);
        assert_eq!(bash(&toolbox, &ask).await, format!("<{session}>\n"));
        waiting(&bench.workspace);
    }
    assert_eq!(bash(&bench.toolbox, &ask).await, "<>\n");
}

#[rstest]
#[case::guard(0)]
#[case::supervisor(1)]
#[case::the_one_that_becomes_the_command(2)]
#[tokio::test]
async fn one_that_was_killed_is_not_missed(#[case] which: usize) {
    let bench = Workbench::new();
    bash(&bench.toolbox, "true").await;
    let helper = waiting(&bench.workspace);
    kill(helper[which]);
    // Until then a command that is given to it has ended with it, for all that is known.
    eventually("its guard is gone", || !is_alive(helper[0]));
    assert_eq!(bash(&bench.toolbox, "echo here").await, "here\n");
    eventually("all of it is gone", || {
        !helper.iter().copied().any(is_alive)
    });
}

/// It was started where the folder was then.
#[tokio::test]
async fn a_folder_that_is_replaced_is_not_worked_in() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    bash(&bench.toolbox, "true").await;
    waiting(&bench.workspace);
    fs::rename(&bench.workspace, bench.outside.join("moved")).expect("moved");
    fs::create_dir(&bench.workspace).expect("a folder");
    bench.file("new", "");
    assert_eq!(
        bash(&bench.toolbox, "ls; pwd -P").await,
        format!("new\n{}\n", bench.workspace.display())
    );
}

/// It was started under the rules that held then.
#[tokio::test]
async fn a_secret_that_has_come_since_is_kept() {
    if !can_sandbox() {
        return;
    }
    let bench = Workbench::new();
    let show = bench.filled("cat {home}/.aws/credentials {home}/.profile");
    bash(&bench.toolbox, "true").await;
    waiting(&bench.workspace);
    fs::create_dir(bench.home.join(".aws")).expect("a folder");
    fs::write(bench.home.join(".aws/credentials"), "SECRET\n").expect("a secret");
    let shown = bench.failed("bash", json!({ "command": show })).await;
    assert!(
        shown.contains("harmless") && !shown.contains("SECRET"),
        "{shown}"
    );
}

#[rstest]
#[case::dropped(drop as fn(Toolbox))]
#[case::closed(|toolbox: Toolbox| {
    toolbox.close();
    std::mem::forget(toolbox);
})]
#[tokio::test]
async fn they_end_with_their_toolbox(#[case] end: fn(Toolbox)) {
    let bench = Workbench::new();
    let toolbox = bench.session_in(&bench.workspace);
    bash(&toolbox, "true").await;
    waiting(&bench.workspace);
    let Workbench {
        toolbox: other,
        workspace,
        ..
    } = bench;
    drop(other);
    end(toolbox);
    eventually("all have ended", || in_folder(&workspace).is_empty());
}
