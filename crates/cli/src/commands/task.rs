//! `asyncagents task` and `asyncagents resume`: launch a task, go on with one.

use std::io::{self, Read};

use anyhow::Context;
use asyncagents_core::{
    budget::Budget,
    request::{Caller, TaskArgs as Args},
};
use asyncagents_runtime::Accepted;

use super::Shell;
use crate::{
    args::{ResumeArgs, TaskArgs},
    exit::{Exit, Failure},
    print, view,
};

pub(super) async fn launch(shell: &Shell, args: &TaskArgs) -> Result<Exit, Failure> {
    let request = Args {
        description: args.description.clone().unwrap_or_default(),
        prompt: prompt(&args.prompt)?,
        agent: match &args.resume {
            Some(_) => args.agent.clone().unwrap_or_default(),
            None => args.agent.clone().unwrap_or(shell.config.agent.clone()),
        },
        fork: args.fork,
        resume: args.resume.clone(),
        model: args.model.clone(),
        budget: Budget {
            tokens: args.max_tokens,
            cost: args.max_cost,
            time: args.max_time,
            turns: args.max_turns,
            tool_calls: args.max_tool_calls,
        },
    };
    ask(shell, &shell.caller()?, request, args.json).await
}

pub(super) async fn resume(shell: &Shell, args: &ResumeArgs) -> Result<Exit, Failure> {
    let request = Args {
        prompt: prompt(&args.prompt)?,
        resume: Some(args.task.clone()),
        ..Args::default()
    };
    ask(shell, &Caller::Person, request, args.json).await
}

async fn ask(shell: &Shell, caller: &Caller, request: Args, json: bool) -> Result<Exit, Failure> {
    let manager = shell.manager()?;
    // A person may go on with any task.
    let caller = if request.resume.is_some() {
        &Caller::Person
    } else {
        caller
    };
    let accepted: Accepted = manager.task(caller, request).await?;
    shell.ensure_worker(&manager).await;
    match json {
        true => print::json_line(&view::task(&accepted.shown, manager.now()))?,
        false => {
            print::answer(&accepted.shown.id)?;
            let status = accepted.shown.task.status();
            let id = &accepted.shown.id;
            print::remark(&format!(
                "{status}; `asyncagents output {id} --follow` shows how far it has come\n"
            ));
            if !accepted.ignored.is_empty() {
                print::remark(&format!(
                    "ignored, for a resumed task keeps its own: {}\n",
                    accepted.ignored.join(", ")
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// The prompt as typed, or standard input for `-`.
fn prompt(typed: &str) -> Result<String, Failure> {
    if typed != "-" {
        return Ok(typed.to_owned());
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .context("standard input")
        .map_err(Failure::Input)?;
    Ok(text)
}
