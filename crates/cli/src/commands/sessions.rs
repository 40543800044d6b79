//! `asyncagents sessions`: the conversations with the built-in agent that one can go on with.

use std::env;

use anyhow::Context;
use asyncagents_core::budget::Price;
use asyncagents_runtime::SessionSummary;
use asyncagents_views::{SessionView, time};

use super::CommandContext;
use crate::{
    exit::{Exit, Failure},
    make_visible::make_visible,
    print,
    screen::{counted, dollars},
    width,
};

/// Show the sessions of the built-in agent in this folder, newest first.
///
/// A session is a conversation that `asyncagents run` began; `run --session ID` goes on with it.
/// The sessions of background tasks are not among them: `asyncagents list` shows the tasks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents sessions
  asyncagents sessions --all --json | jq -r '.[].id'
  asyncagents run --session ses_3f9c \"And the tests?\"")]
pub(super) struct SessionsArgs {
    /// Show the sessions of all folders.
    #[arg(long)]
    all: bool,

    /// Show at most N of the newest sessions.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print one line of JSON: a list of sessions.
    #[arg(long)]
    json: bool,
}

/// So many characters of an ID are enough to tell a few sessions apart.
const SHORT_ID: usize = 12;

/// So much of a title is shown in any case, in columns.
const SHORT_TITLE: usize = 12;

pub(super) async fn run(context: &CommandContext, args: &SessionsArgs) -> Result<Exit, Failure> {
    let here = env::current_dir().and_then(|here| here.canonicalize());
    let here = here.context("this folder").map_err(Failure::Machine)?;
    let folder = (!args.all).then(|| here.display().to_string());
    let sessions = match context.reader()? {
        Some(manager) => manager.sessions(folder, args.limit).await?,
        None => Vec::new(),
    };
    let views: Vec<_> = sessions.iter().map(view).collect();
    print::json_or(args.json, &views, || as_text(&sessions, args.all))?;
    Ok(Exit::Done)
}

fn as_text(sessions: &[SessionSummary], all: bool) -> String {
    if sessions.is_empty() {
        let none = if all {
            "No sessions found; `asyncagents run` begins one"
        } else {
            "No sessions found in this folder; --all shows those of others"
        };
        return none.to_owned();
    }
    let length = distinct(sessions);
    let mut lines = Vec::new();
    for summary in sessions {
        let session = &summary.session;
        let id: String = session.id.as_str().chars().take(length).collect();
        let used = format!(
            "{}, {}, {}",
            counted(summary.used.turns, "answer"),
            counted(summary.used.tokens, "token"),
            dollars(price(summary)),
        );
        let folder = if all {
            format!(" · {}", make_visible(&session.workspace))
        } else {
            String::new()
        };
        let head = format!(
            "{id}  {}  {:<10}  ",
            minute(&time(session.begun)),
            summary.state.name()
        );
        let tail = format!("  ({} · {} · {used}{folder})", session.agent, session.model);
        let beside = width::width(&head) + width::width(&tail);
        let room = width::of_answers().map_or(usize::MAX, |columns| columns.saturating_sub(beside));
        let title = width::fitting(&make_visible(&session.title), room.max(SHORT_TITLE));
        lines.push(format!("{head}{title}{tail}"));
    }
    lines.push(String::new());
    lines.push("`asyncagents run --session ID \"…\"` goes on with one".to_owned());
    lines.join("\n")
}

/// How much of the IDs tells all of them apart.
fn distinct(sessions: &[SessionSummary]) -> usize {
    let ids: Vec<&str> = sessions.iter().map(|one| one.session.id.as_str()).collect();
    let is_distinct = |length: &usize| {
        let mut beginnings: Vec<&str> = ids
            .iter()
            .map(|id| id.get(..*length).unwrap_or(id))
            .collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        beginnings.len() == ids.len()
    };
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or(SHORT_ID);
    (SHORT_ID..=longest).find(is_distinct).unwrap_or(longest)
}

/// `2026-03-01T12:30:05.123Z` as `2026-03-01 12:30`.
fn minute(time: &str) -> String {
    time.chars().take(16).collect::<String>().replace('T', " ")
}

fn price(summary: &SessionSummary) -> Price {
    Price::new(summary.used.cost, summary.used.unpriced)
}

fn view(summary: &SessionSummary) -> SessionView<'_> {
    SessionView::new(&summary.session, summary.state.name(), &summary.used)
}
