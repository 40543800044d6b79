//! How known agents are held to what the user allows: in which mode they ask, what they do not get, and
//! what they are told so that a project does not decide what runs. A file for each.

pub(crate) mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;
mod project_files;

use std::{ffi::OsString, path::Path};

use crate::acp::AcpSettings;

/// Where an agent works.
#[derive(Clone, Copy)]
pub struct AgentPlace<'p> {
    pub home: &'p Path,
    pub project: &'p Path,
    /// Whether it is in our sandbox.
    pub is_sandboxed: bool,
    /// Whether it is to ask also before it reads: there are rules about that.
    pub asks_to_read: bool,
    /// The user's variables.
    pub variable: fn(&str) -> Option<OsString>,
}

/// What one process of an agent is held to.
#[derive(Clone, Copy)]
pub struct Held<'h> {
    /// Whether it may have sub-agents.
    pub may_delegate: bool,
    /// Whether it is to ask also before it reads.
    pub asks_to_read: bool,
    /// The program that asks before each call, if that is needed.
    pub hook: Option<&'h Path>,
}

/// How an agent is used over ACP, as far as it is known.
pub fn acp_settings(name: &str, place: AgentPlace<'_>) -> AcpSettings {
    let settings = match name {
        "claude" => claude::acp_settings(place.asks_to_read),
        "codex" => codex::acp_settings(place.is_sandboxed),
        "gemini" => gemini::acp_settings(place),
        "goose" => goose::acp_settings(),
        "opencode" => opencode::acp_settings(),
        _ => AcpSettings::default(),
    };
    AcpSettings {
        name: name.to_owned(),
        ..settings
    }
}

/// Whether a hook asks before each call, because the protocol would not.
pub fn asks_by_hook(name: &str, is_sandboxed: bool) -> bool {
    name == "codex" && is_sandboxed
}

/// Whether it is asked about commands with which it only reads.
pub fn reads_by_commands(name: &str) -> bool {
    matches!(name, "claude" | "codex")
}

/// Whether it would show what the server of our tools gets, to all users of the machine: it starts its
/// own program with that on the command line. What that program starts has all its variables.
pub fn shows_variables_of_servers(name: &str) -> bool {
    name == "claude"
}

/// Tools that an agent does not get, as it can only be held to that by an answer.
pub fn refused_tools(name: &str) -> &'static [&'static str] {
    match name {
        "goose" => goose::REFUSED,
        _ => &[],
    }
}

/// Variables by which an agent is held to the same, where the protocol has no word for it.
pub fn variables(name: &str, place: AgentPlace<'_>, held: Held<'_>) -> Vec<(&'static str, String)> {
    match name {
        "codex" => codex::variables(held),
        "gemini" => gemini::variables(place),
        "opencode" => opencode::variables(held),
        "goose" => goose::variables(),
        _ => Vec::new(),
    }
}

/// A file by which it is held to that, and the argument before its name.
pub fn policy(name: &str, held: Held<'_>) -> Option<(&'static str, String)> {
    match name {
        "gemini" => Some(("--admin-policy", gemini::policy(held))),
        _ => None,
    }
}

/// Refuses a project whose files would decide what the agent runs, where nothing else can be done.
///
/// # Errors
/// With what to do.
pub fn check_project(name: &str, place: AgentPlace<'_>) -> Result<(), String> {
    match name {
        "codex" => codex::check_project(place),
        "gemini" => gemini::check_project(place),
        "goose" => goose::check_project(place),
        _ => Ok(()),
    }
}

fn modes(asks: &str, reads_only: Option<&str>) -> AcpSettings {
    AcpSettings {
        mode: Some(asks.to_owned()),
        read_only_mode: reads_only.map(str::to_owned),
        ..AcpSettings::default()
    }
}

#[cfg(test)]
fn place<'p>(home: &'p Path, project: &'p Path) -> AgentPlace<'p> {
    AgentPlace {
        home,
        project,
        is_sandboxed: true,
        asks_to_read: false,
        variable: |_| None,
    }
}
