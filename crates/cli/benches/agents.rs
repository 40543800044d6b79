//! How long an idle session of the real Claude Code and Codex takes to hear of an end, step by step.
//!
//! `cargo bench -p asyncagents --bench agents` prints what is in `docs/benchmarks.md`. With
//! `-- pictures FOLDER` after it, it writes there what the terminals of the pictures in `docs` show, with
//! their colours.
#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

#[path = "../tests/agents/harness/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the stories use more of it")]
mod harness;

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Gate, Reply, Script};
use harness::{Agent, World, asked, child, launch, notices_in};
use serde_json::json;

/// How many ends a session is told of.
const ROUNDS: usize = 10;

fn main() {
    let mut arguments = env::args().skip_while(|argument| argument != "pictures");
    if arguments.next().is_some() {
        let folder = PathBuf::from(arguments.next().expect("pictures FOLDER"));
        picture(Agent::ClaudeCode, &folder.join("claude-code.txt"));
        return picture(Agent::Codex, &folder.join("codex.txt"));
    }
    println!("| session | child answered → task ended | → model asked | both, median | most |");
    println!("|---|---|---|---|---|");
    wake("Claude Code", Agent::ClaudeCode, &[]);
    wake("Codex with its daemon", Agent::Codex, &[]);
    let no_daemon = ["--disable", "daemon_auto_start"];
    wake("Codex without its daemon", Agent::Codex, &no_daemon);
}

/// Two forked tasks, and what the session is told while it is idle.
fn picture(agent: Agent, file: &Path) {
    let gate = Gate::closed();
    let launch = |description: &str, prompt: &str| {
        let task = json!({
            "description": description, "prompt": prompt, "agent": "general", "fork": true,
        });
        (agent.tool("task"), task)
    };
    let (first, arguments) = launch("Measure the query", "Which query of the login is slow?");
    let (second, more) = launch("Review the cache", "Is the session cache ever used?");
    let script = Script::new()
        .rule(
            child("Which query of the login"),
            Reply::text("`sessions_by_user` scans 2.1 million rows: there is no index on user_id."),
        )
        .rule(
            child("Is the session cache"),
            Reply::text("It is never hit: its key has the time in it.").behind(&gate),
        )
        .rule(
            asked(agent, "never hit"),
            Reply::text(
                "Both are in. The login is slow because sessions_by_user has no index on user_id, and the \
                 session cache is never hit: its key has the time in it.",
            ),
        )
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("The query is known: no index on user_id. The review of the cache still runs."),
        )
        .rule(
            asked(agent, "is queued"),
            Reply::text("Two background agents look at it, and know what we have read. I go on meanwhile."),
        )
        .rule(
            asked(agent, "Why is the login slow"),
            Reply::call(first, arguments).and_call(second, more),
        );
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Why is the login slow? Look at the query and the cache in parallel.");
    terminal.until_shows("The query is known");
    gate.open();
    terminal.until_shows("Both are in.");
    fs::write(file, terminal.in_colour()).expect("written");
    world.leave(&terminal);
}

fn wake(name: &str, agent: Agent, options: &[&str]) {
    let gates: Vec<Gate> = (0..ROUNDS).map(|_| Gate::closed()).collect();
    let mut script = Script::new()
        .rule(asked(agent, "[asyncagents notice"), Reply::text("Told."))
        .rule(asked(agent, "is queued"), Reply::text("Meanwhile."));
    for (round, gate) in gates.iter().enumerate() {
        let prompt = format!("Say number {round}.");
        script = script
            .rule(child(&prompt), Reply::text("A number.").behind(gate))
            .rule(
                asked(agent, &format!("Round {round}.")),
                launch(agent, &prompt, false),
            );
    }
    let Some(world) = World::new(agent, script) else {
        return println!("| {name} | not here | | | |");
    };
    let terminal = world.terminal("tmux", options);
    let (mut ended, mut told) = (Vec::new(), Vec::new());
    for (round, gate) in gates.iter().enumerate() {
        terminal.types(&format!("Round {round}."));
        world.until_task_asks(&format!("Say number {round}."));
        world.until("the turn has ended", || {
            let answered =
                |one: &&asyncagents_scripted_model::Recorded| one.last().contains("is queued");
            let turns = world.requests().iter().filter(answered).count();
            (turns > round && terminal.screen().contains("Meanwhile.")).then_some(())
        });
        let begun = Instant::now();
        gate.open();
        ended.push(world.ended_after(round, begun));
        let asked = world.until("it is told", || {
            let requests = world.requests().into_iter();
            requests
                .filter(|one| !notices_in(&one.last()).is_empty())
                .nth(round)
        });
        told.push(asked.at.duration_since(begun));
        terminal.until_shows("Told.");
    }
    let (end, all) = (median(&mut ended), median(&mut told));
    let most = told.last().copied().unwrap_or_default();
    let ms = |time: Duration| format!("{} ms", time.as_millis());
    println!(
        "| {name} | {} | {} | {} | {} |",
        ms(end),
        ms(all.saturating_sub(end)),
        ms(all),
        ms(most)
    );
    world.leave(&terminal);
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
