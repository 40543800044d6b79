//! Any other agent as a child. A child's session is one of our own journal; a process of the other
//! agent works in it.

mod drive;
mod drivers;
mod grants;
mod hook;
mod host;
mod journal;
mod message;
mod program;
mod turn;
mod wire;

pub use hook::{HOOK_TIMEOUT, HookCall, hook_door};
pub use host::{AgentHost, AgentSettings, Judge, Owner, Parts, Profile, Verdict};
pub use journal::JournalSessions;
pub(crate) use message::{is_in, mark};
pub use program::{CHILD_VARIABLE, ErrorTail, Program, Programs, ToolServer, ToolsFor};
pub use turn::Prices;
pub(crate) use wire::tool_label;
pub use wire::{
    Ask, Asked, AskedCall, Connection, Message, MessagePart, OpenSession, SessionOpened, ToolNews,
    TurnEnd, TurnStop, Which, Wire, WireError, WireEvent,
};
