//! How each agent is started and what it calls its tools.

mod claude;
mod codex;
mod opencode;
mod ours;
mod pi;

use std::{io, process::Command};

use super::{place::Place, script::Call};

pub(crate) use claude::Claude;
pub(crate) use codex::Codex;
pub(crate) use opencode::OpenCode;
pub(crate) use ours::Ours;
pub(crate) use pi::Pi;

/// A coding agent that works on one prompt and ends.
pub(crate) trait Agent {
    /// Makes `command` answer `prompt` with the model at `url`, in this place and without asking
    /// anybody. It has an empty environment but for the path and the home.
    fn configure(
        &self,
        command: &mut Command,
        place: &Place,
        url: &str,
        prompt: &str,
    ) -> io::Result<()>;

    /// Its way to read a whole file.
    fn read(&self, file: String) -> Call;

    /// Its way to run a command.
    fn bash(&self, command: &str) -> Call;

    /// Its way to delegate, if it has sub-agents.
    fn delegate(&self, prompt: String) -> Option<Call>;
}
