//! What a model is told before everything else. It is written once, when a session begins,
//! and kept with it: every request of the session begins with the same bytes.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use asyncagents_core::{agent::Profile, id::AgentName, moment::Moment};

use crate::read_file::{Unread, read_projects};

/// What is kept of a project's own instructions.
const MOST_INSTRUCTIONS: usize = 32_000;

/// What all descriptions of agents may have together: a project can bring any number of them, and
/// each request is paid for.
const MOST_OF_AGENTS: usize = 16_000;

/// And what is left of each at least.
const SHORTEST_DESCRIPTION: usize = 20;

/// Where projects keep instructions for agents. The first that is there counts.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md"];

/// What goes into it.
pub(crate) struct Facts<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) workspace: &'a Path,
    pub(crate) now: Moment,
    /// Whom it may delegate to; nobody if it may not.
    pub(crate) agents: Vec<(&'a AgentName, &'a str)>,
    pub(crate) prefix: &'a str,
    /// How commands are run.
    pub(crate) sandbox: String,
}

pub(crate) fn write(facts: &Facts) -> String {
    let mut text = facts.profile.prompt.clone();
    let date = jiff::Timestamp::from_millisecond(facts.now.as_millis())
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n\n# Workspace\n\nYou work in {} on {}. This conversation began on {date} (UTC). {}\n",
        facts.workspace.display(),
        std::env::consts::OS,
        facts.sandbox,
    );
    if !facts.agents.is_empty() {
        let prefix = facts.prefix;
        let _ = write!(
            text,
            "\n# Background agents\n\n{prefix}task launches one and returns at once; you are told \
             when it has finished. You may end your turn while they work. Agents:\n",
        );
        let share = MOST_OF_AGENTS / facts.agents.len();
        for (name, description) in &facts.agents {
            let description = beginning(description, share.max(SHORTEST_DESCRIPTION));
            let _ = writeln!(text, "- {name}: {description}");
        }
    }
    if let Some((name, instructions)) = instructions(facts.workspace) {
        let _ = write!(
            text,
            "\n# Instructions of this project ({name})\n\n{instructions}\n"
        );
    }
    text
}

fn instructions(workspace: &Path) -> Option<(&'static str, String)> {
    INSTRUCTIONS.iter().find_map(|name| {
        let text = read_projects(workspace, &workspace.join(name)).ok()?;
        let kept: String = text.trim().chars().take(MOST_INSTRUCTIONS).collect();
        (!kept.is_empty()).then_some((*name, kept))
    })
}

/// Instructions that are not read because another user wrote them.
pub(crate) fn foreign_instructions(workspace: &Path) -> impl Iterator<Item = PathBuf> {
    let files = INSTRUCTIONS.iter().map(|name| workspace.join(name));
    files.filter(|file| read_projects(workspace, file) == Err(Unread::Foreign))
}

/// The beginning of a text, in one line.
fn beginning(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
