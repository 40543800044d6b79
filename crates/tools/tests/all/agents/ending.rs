//! Whatever ends, all that an agent has started ends with it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use asyncagents_tools::{AgentLife, AgentProcess};
use rstest::rstest;
use tokio::time::timeout;

use super::started::{PATIENCE, Site};
use crate::workbench::{HELPER, can_sandbox, eventually, is_alive, kill, processes};

/// Starts processes that leave their group and their session, writes their numbers, and waits.
const SCRIPT: &str = "echo $$ >> list; setsid sh -c 'echo $$ >> list; (sleep 1000 & echo $! >> list); sleep 1000' & \
                      wait";
const STARTED: usize = 3;

async fn started(site: &Site) -> (AgentProcess, Vec<u32>) {
    let limits = can_sandbox().then(|| site.usual_limits());
    let command = site.command(limits, &["/bin/sh", "-c", SCRIPT]);
    let agent = AgentProcess::start(command).await.expect("started");
    (agent, listed(&site.workspace))
}

fn listed(workspace: &Path) -> Vec<u32> {
    let list = workspace.join("list");
    eventually("all have begun", || processes(&list).len() == STARTED);
    let all = processes(&list);
    assert!(all.iter().copied().all(is_alive));
    all
}

fn all_gone(all: &[u32]) {
    eventually("all are gone", || !all.iter().copied().any(is_alive));
}

#[tokio::test]
async fn with_the_one_who_holds_it() {
    let site = Site::new();
    let (agent, all) = started(&site).await;
    drop(agent);
    all_gone(&all);
}

#[tokio::test]
async fn when_it_is_killed_and_then_it_is_over() {
    let site = Site::new();
    let (agent, all) = started(&site).await;
    timeout(PATIENCE, agent.life.kill()).await.expect("in time");
    assert!(!all.iter().copied().any(is_alive));
}

#[tokio::test]
async fn when_the_program_itself_ends() {
    let site = Site::new();
    let (mut agent, all) = started(&site).await;
    kill(agent.life.pid().expect("it has begun"));
    let wait = AgentLife::wait(&mut agent.life);
    let ended = timeout(PATIENCE, wait).await.expect("in time");
    assert_eq!(ended, "was ended by signal 9 (SIGKILL)");
    assert!(!all.iter().copied().any(is_alive));
}

/// `kill -9` of those who look after it. Where only the guard is gone, the supervisor still does.
#[rstest]
#[case::asyncagents(&[2])]
#[case::the_guard_and_asyncagents(&[1, 2])]
#[case::the_supervisor(&[0])]
#[test]
fn when_others_are_killed(#[case] killed: &[usize]) {
    let site = Site::new();
    let mut asyncagents = Command::new(HELPER)
        .args(["agent", "/bin/sh", "-c", SCRIPT])
        .current_dir(&site.workspace)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut number = String::new();
    let output = asyncagents.stdout.take().expect("its output");
    BufReader::new(output)
        .read_line(&mut number)
        .expect("a number");
    let agent: u32 = number.trim().parse().expect("a number");
    let all = listed(&site.workspace);
    assert!(all.contains(&agent));
    let supervisor = parent(agent);
    let above = [supervisor, parent(supervisor), asyncagents.id()];
    assert_eq!(parent(above[1]), asyncagents.id());
    for killed in killed {
        kill(above[*killed]);
    }
    all_gone(&all);
    // It is told, and ends too.
    asyncagents.wait().expect("ended");
}

fn parent(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let (_, rest) = stat.rsplit_once(')').expect("its name");
    let parent = rest.split_ascii_whitespace().nth(1);
    parent
        .and_then(|parent| parent.parse().ok())
        .expect("a number")
}
