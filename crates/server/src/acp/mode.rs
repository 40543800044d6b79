//! The modes of a session: what the agent may do without asking.

use agent_client_protocol::v1::schema::{
    SessionMode as ModeShown, SessionModeId, SessionModeState,
};
use asyncagents_core::agent::Mode;

/// What the agent of a session may do without asking. Rules of the user and the project hold in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionMode {
    /// One of the settings' permission modes.
    Permission(Mode),
    /// The agent `plan` works, which has only tools that read.
    Plan,
}

/// The name, and what it means for the user.
const MODES: [(SessionMode, &str, &str); 4] = [
    (
        SessionMode::Permission(Mode::Ask),
        "Ask",
        "Reads freely; asks before it changes a file or runs a command",
    ),
    (
        SessionMode::Permission(Mode::AutoEdit),
        "Auto-edit",
        "Reads and changes files freely; asks before it runs a command",
    ),
    (
        SessionMode::Permission(Mode::Yolo),
        "Yolo",
        "Does everything without asking, except what your rules say",
    ),
    (
        SessionMode::Plan,
        "Plan",
        "Works out what to do; only reads, and launches no background agents",
    ),
];

impl SessionMode {
    /// What the client calls it.
    pub fn word(self) -> &'static str {
        match self {
            SessionMode::Permission(mode) => mode.word(),
            SessionMode::Plan => "plan",
        }
    }

    /// What is asked for.
    pub fn permission(self) -> Mode {
        match self {
            SessionMode::Permission(mode) => mode,
            SessionMode::Plan => Mode::Ask,
        }
    }

    /// The mode of this name, or which there are.
    pub(super) fn named(id: &SessionModeId) -> Result<Self, String> {
        let mut modes = MODES.iter().map(|(mode, ..)| *mode);
        modes.find(|mode| mode.word() == &*id.0).ok_or_else(|| {
            let words: Vec<&str> = MODES.iter().map(|(mode, ..)| mode.word()).collect();
            format!("there is no mode `{id}`; there are {}", words.join(", "))
        })
    }

    /// All modes, and that this is the one of a session.
    pub(super) fn state(self) -> SessionModeState {
        let shown = MODES.map(|(mode, name, description)| {
            ModeShown::new(mode.word(), name).description(description.to_owned())
        });
        SessionModeState::new(self.word(), shown.to_vec())
    }
}
