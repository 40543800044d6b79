//! `asyncagents task` and `asyncagents resume`: launch a task, go on with one.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost},
    request::{Caller, TaskArgs as Args},
};
use asyncagents_runtime::{Accepted, Manager};
use asyncagents_views::TaskView;
use clap::builder::NonEmptyStringValueParser;

use super::{
    CommandContext,
    output::{self, OutputArgs},
};
use crate::{
    args::{Assignment, given},
    compose::{App, AppOptions},
    config,
    exit::{Exit, Failure},
    host_name::opencode_at,
    hosts::ShellLaunch,
    print,
    read_input::prompt,
};

/// Launch a background task and print its ID.
///
/// The task outlives the command: a worker process looks after it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents task \"Find the slow query\"
  asyncagents task --follow \"Find the slow query\"
  asyncagents task --fork \"Fix what we found\" --max-time 10m --max-cost 0.50
  asyncagents task - < prompt.txt
  id=$(asyncagents task \"Count the tests\") && asyncagents output $id --block")]
pub(super) struct TaskArgs {
    /// What to do, or `-` for standard input.
    prompt: String,

    /// Short description shown in lists [default: the beginning of the prompt].
    #[arg(long, short, value_name = "TEXT")]
    description: Option<String>,

    /// Agent to run [default: the setting `agent`].
    #[arg(long)]
    agent: Option<String>,

    /// Model to use [default: the agent's own].
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,

    /// How hard the model thinks: low, medium or high [default: the setting `effort`, or what the
    /// host has].
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    effort: Option<String>,

    /// Let the child inherit the session's conversation.
    #[arg(long)]
    fork: bool,

    /// Go on with a finished task instead; like `asyncagents resume`.
    #[arg(long, value_name = "ID")]
    resume: Option<String>,

    /// Session that the task belongs to [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// What the built-in agent, or another that is a child, may do without asking: ask, auto-edit or
    /// yolo [default: the setting `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    permission: Option<String>,

    /// Host to run in: `engine`, `engine:FOLDER`, `opencode:URL`, or another agent: `claude`, `codex`,
    /// `gemini`, `opencode`, `goose` or one of `[hosts.NAME]` [default: the setting `host`].
    #[arg(long)]
    host: Option<String>,

    /// Run in the `opencode serve` at this address; its password comes from
    /// OPENCODE_SERVER_PASSWORD. `--session` names the session that is notified, and inherited.
    #[arg(long, value_name = "URL", conflicts_with = "host")]
    opencode: Option<String>,

    /// End the task after this many tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// End the task after this many dollars.
    #[arg(long, value_name = "USD", value_parser = config::dollars)]
    max_cost: Option<Cost>,

    /// End the task after this time, such as 90s, 10m or 1h 30m.
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    max_time: Option<Duration>,

    /// End the task after this many answers of the model.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,

    /// End the task after this many tool calls.
    #[arg(long, value_name = "N")]
    max_tool_calls: Option<u64>,

    /// Show progress until the task has ended, then its result, like `output --follow`.
    #[arg(long)]
    follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl TaskArgs {
    /// The settings that its options set.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        let opencode = self.opencode.as_deref().map(opencode_at);
        let settings = [
            given("host", &self.host),
            given("host", &opencode),
            given("session", &self.session),
            given("permissions.mode", &self.permission),
        ];
        settings.into_iter().flatten().collect()
    }
}

/// Go on with a finished task, in its session.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents resume 3f9c21ab \"And in the tests?\"")]
pub(super) struct ResumeArgs {
    /// ID of the task, or a unique beginning of it.
    #[arg(value_name = "ID")]
    task: String,

    /// What to do now, or `-` for standard input.
    prompt: String,

    /// Print the task as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn launch(context: &CommandContext, args: &TaskArgs) -> Result<Exit, Failure> {
    let request = Args {
        description: args.description.clone().unwrap_or_default(),
        prompt: prompt(&args.prompt)?,
        agent: match &args.resume {
            Some(_) => args.agent.clone().unwrap_or_default(),
            None => args.agent.clone().unwrap_or(context.config.agent.clone()),
        },
        // The host is a setting of the command.
        host: None,
        fork: args.fork,
        resume: args.resume.clone(),
        model: args.model.clone(),
        effort: args.effort.clone(),
        budget: Budget {
            tokens: args.max_tokens,
            cost: args.max_cost,
            time: args.max_time,
            turns: args.max_turns,
            tool_calls: args.max_tool_calls,
        },
    };
    let App { manager, hosts, .. } = context.open(AppOptions::default())?;
    let session = match &args.session {
        Some(named) => manager.session_named(named).await?,
        None => context.session(),
    };
    let mut launch = ShellLaunch {
        host: context.host(&hosts, &session)?,
        session,
        is_session_named: args.session.is_some(),
        request: &request,
    };
    let caller = if request.resume.is_some() {
        // A person may go on with any task.
        Caller::Person
    } else {
        hosts.check(&mut launch).await?;
        let ShellLaunch { session, host, .. } = launch;
        Caller::Shell { session, host }
    };
    let accepted = ask(context, &manager, &caller, request).await?;
    if args.follow {
        print::remark(&format!("{}\n", accepted.shown.id));
        let follow = OutputArgs {
            task: accepted.shown.task.id.to_string(),
            follow: true,
            json: args.json,
            ..OutputArgs::default()
        };
        return output::show(context, &manager, &follow).await;
    }
    answer(context, &manager, &accepted, args.json)
}

pub(super) async fn resume(context: &CommandContext, args: &ResumeArgs) -> Result<Exit, Failure> {
    let request = Args {
        prompt: prompt(&args.prompt)?,
        resume: Some(args.task.clone()),
        ..Args::default()
    };
    let manager = context.manager()?;
    let accepted = ask(context, &manager, &Caller::Person, request).await?;
    answer(context, &manager, &accepted, args.json)
}

async fn ask(
    context: &CommandContext,
    manager: &Manager,
    caller: &Caller,
    request: Args,
) -> Result<Accepted, Failure> {
    let accepted = manager.task(caller, request).await?;
    context.ensure_worker(manager).await;
    Ok(accepted)
}

/// The ID alone, so that a script can take it; the rest is a remark.
fn answer(
    context: &CommandContext,
    manager: &Manager,
    accepted: &Accepted,
    json: bool,
) -> Result<Exit, Failure> {
    if json {
        print::json_line(&TaskView::new(&accepted.shown, manager.now()))?;
    } else {
        let (id, status) = (&accepted.shown.id, accepted.shown.task.status());
        print::answer(id)?;
        let db = if context.flags.iter().any(|(key, _)| key == "db") {
            format!(" --db {}", context.config.db.display())
        } else {
            String::new()
        };
        print::remark(&format!(
            "{status}; `asyncagents output {id} --follow{db}` shows how far it has come\n"
        ));
    }
    if !accepted.ignored.is_empty() {
        let names = accepted.ignored.join(", ");
        print::remark(&format!(
            "ignored, for a resumed task keeps its own: {names}\n"
        ));
    }
    Ok(Exit::Done)
}
