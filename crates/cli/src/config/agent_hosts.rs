//! `[hosts.NAME]`: other agents, and what the user says about those that are known. Only in the user's
//! own files: it says what is run.

use std::path::PathBuf;

use asyncagents_hosts::proxy::AllowedHosts;

/// Another agent, as far as the user says something about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentHostConfig {
    /// The program that speaks ACP on its standard input and output, and its arguments.
    pub(crate) command: Vec<String>,
    /// The mode in which it asks before it changes something.
    pub(crate) mode: Option<String>,
    /// The mode in which it only reads.
    pub(crate) read_only_mode: Option<String>,
    /// Variables that it gets besides what commands get, for its login.
    pub(crate) variables: Vec<String>,
    /// The hosts of its models, which it may reach.
    pub(crate) servers: Vec<String>,
    /// Its own files and folders, which it may write: its login, its sessions.
    pub(crate) writable: Vec<PathBuf>,
    /// Whether it runs in the sandbox.
    pub(crate) sandbox: Option<bool>,
}

/// What can be said about an agent.
const ALLOWED: &str = "hosts.NAME.command, .mode, .read_only_mode, .variables, .servers, .writable or \
    .sandbox";

impl AgentHostConfig {
    /// Sets one thing.
    pub(super) fn set(&mut self, what: &str, value: &str) -> Result<(), String> {
        let filled = || Some(value.trim().to_owned()).filter(|text| !text.is_empty());
        match what {
            "command" => {
                let command = words(value);
                if command.is_empty() {
                    return Err("a program, and its arguments".to_owned());
                }
                self.command = command;
            }
            "mode" => self.mode = filled(),
            "read_only_mode" => self.read_only_mode = filled(),
            "variables" => self.variables = words(value),
            "servers" => {
                let servers = words(value);
                let mut each = servers.iter().map(String::as_str);
                each.try_fold(AllowedHosts::new(), allow)?;
                self.servers = servers;
            }
            "writable" => {
                let paths: Vec<PathBuf> = words(value).iter().map(PathBuf::from).collect();
                if paths.iter().any(|path| path.is_relative()) {
                    return Err("absolute paths".to_owned());
                }
                self.writable = paths;
            }
            "sandbox" => {
                let parsed = value.trim().parse();
                self.sandbox = Some(parsed.map_err(|_| "true or false".to_owned())?);
            }
            _ => return Err(ALLOWED.to_owned()),
        }
        Ok(())
    }

    /// What is set, as keys and values.
    pub(crate) fn describe(&self) -> Vec<(&'static str, String)> {
        let paths = self.writable.iter().map(|path| path.display().to_string());
        let texts = [
            ("command", self.command.join(" ")),
            ("mode", self.mode.clone().unwrap_or_default()),
            (
                "read_only_mode",
                self.read_only_mode.clone().unwrap_or_default(),
            ),
            ("variables", self.variables.join(" ")),
            ("servers", self.servers.join(" ")),
            ("writable", paths.collect::<Vec<_>>().join(" ")),
            (
                "sandbox",
                self.sandbox.map(|on| on.to_string()).unwrap_or_default(),
            ),
        ];
        let set = texts.into_iter().filter(|(_, text)| !text.is_empty());
        set.collect()
    }
}

/// Adds a server, named by its host or as an address.
///
/// # Errors
/// When it is neither.
pub(crate) fn allow(allowed: AllowedHosts, server: &str) -> Result<AllowedHosts, String> {
    if server.contains("://") {
        allowed.own_server(server)
    } else {
        allowed.host(server)
    }
}

/// The items of a list: one on each line, or else between blanks and commas.
fn words(value: &str) -> Vec<String> {
    let pieces: Vec<&str> = if value.contains('\n') {
        value.split('\n').collect()
    } else {
        value.split([' ', ',']).collect()
    };
    let pieces = pieces.iter().map(|piece| piece.trim());
    pieces
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The name of an agent and what is said about it, of a key after `hosts.`.
///
/// # Errors
/// When it is no such key, with what is allowed.
pub(super) fn split_key(key: &str) -> Result<(&str, &str), String> {
    let (name, what) = key.rsplit_once('.').ok_or_else(|| ALLOWED.to_owned())?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_plain) || matches!(name, "engine" | "agent") {
        return Err("a name of letters, digits and dashes, not `engine`".to_owned());
    }
    Ok((name, what))
}
