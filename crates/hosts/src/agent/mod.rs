//! Any other agent as a child. A child's session is one of our own journal; a process of the other
//! agent works in it.

mod drive;
mod drivers;
mod events;
mod grants;
mod hook;
mod host;
mod journal;
mod message;
mod messages;
mod program;
mod turn;
mod unsent;
mod wire;

pub use events::{EventReceiver, EventSender, events};
pub use hook::{HOOK_TIMEOUT, HookCall, hook_door};
pub use host::{AgentHost, AgentSettings, Judge, Owner, Parts, Profile, Verdict};
pub use journal::JournalSessions;
pub(crate) use message::{is_in, mark};
pub(crate) use messages::Messages;
pub use program::{CHILD_VARIABLE, ErrorTail, Program, Programs, ToolServer, ToolsFor};
pub use turn::Prices;
pub(crate) use unsent::Unsent;
pub use wire::{
    Ask, Asked, AskedCall, Connection, Message, MessagePart, OpenSession, SessionOpened, ToolNews,
    TurnEnd, TurnStop, Which, Wire, WireError, WireEvent,
};
pub(crate) use wire::{START_TIMEOUT, tool_label};
