//! The system prompt, written once, when a session begins, and kept with it: every request of the
//! session begins with the same bytes. So do sessions that begin alike on the same day: it has
//! nothing random.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use asyncagents_core::{
    agent::{Profile, ToolSpec},
    shorten::{one_line, shorten},
    skill::{self, Role},
};

use crate::{
    profiles::Profiles,
    read_file::{Unread, read_projects},
    shared::Shared,
};

/// What is kept of a project's own instructions.
const MOST_INSTRUCTIONS: usize = 32_000;

/// What all descriptions of agents may have together: a project can bring any number of them, and
/// each request is paid for.
const MOST_OF_AGENTS: usize = 16_000;

/// What is left of each description at least.
const SHORTEST_DESCRIPTION: usize = 20;

/// Where projects keep instructions for agents. The first that is there counts.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md"];

/// Writes the system prompt of a session. `delegates`: it may launch background tasks.
pub(crate) fn write(
    shared: &Shared,
    profiles: &Profiles,
    profile: &Profile,
    delegates: bool,
) -> String {
    let (workspace, prefix) = (&shared.settings.workspace, &shared.settings.prefix);
    let mut text = profile.prompt.clone();
    let date = jiff::Timestamp::from_millisecond(shared.now().as_millis())
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default();
    let sandbox = shared.toolbox.sandbox_rules();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n\n# Workspace\n\nYou work in {} on {}. This conversation began on {date} (UTC). \
         {sandbox}\n",
        workspace.display(),
        std::env::consts::OS,
    );
    let delegates = delegates && profile.tools.offers(&format!("{prefix}task"));
    let agents: Vec<&Profile> = profiles.all().filter(|_| delegates).collect();
    if !agents.is_empty() {
        let _ = write!(
            text,
            "\n# Agents for {prefix}task\n\nYou may end your turn while they work.\n",
        );
        let share = MOST_OF_AGENTS / agents.len();
        for agent in agents {
            let description = one_line(&agent.description);
            let description = shorten(&description, share.max(SHORTEST_DESCRIPTION), "…");
            let _ = writeln!(text, "- {}: {description}", agent.name);
        }
    }
    if let Some((name, instructions)) = instructions(workspace) {
        let _ = write!(
            text,
            "\n# Instructions of this project ({name})\n\n{instructions}\n"
        );
    }
    text
}

/// What the system prompt of a sub-agent that runs a skill ends with.
pub(crate) fn skill_section(profile: &Profile, role: &Role, tools: &[ToolSpec]) -> String {
    let about = |spec: &ToolSpec| {
        let first = spec.description.split(". ").next().unwrap_or_default();
        match profile.tools.uses(&spec.name) {
            Some(uses) => format!("{first} ({uses})"),
            None => first.to_owned(),
        }
    };
    let abouts: Vec<String> = tools.iter().map(about).collect();
    let names = tools.iter().map(|spec| spec.name.as_str());
    let tools = names.zip(abouts.iter().map(String::as_str));
    let skill = skill::isolated(&role.terms.skill, &role.instructions, tools);
    format!("\n# Skill\n\n{skill}\n")
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
