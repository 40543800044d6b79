//! Who tells a task something. Where the message came in decides that, never what it says.

use crate::words::words;

/// Who tells a task something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A person at a terminal.
    Person,
    /// A command that nobody was seen to type.
    Script,
    /// The agent that launched the task.
    Parent,
    /// An agent above that one.
    Ancestor,
}

words! {
    Speaker {
        Person = "person",
        Script = "script",
        Parent = "parent",
        Ancestor = "ancestor",
    }
}

impl Speaker {
    /// As the task itself is told.
    pub fn to_the_task(self) -> &'static str {
        match self {
            Speaker::Person => "your user",
            Speaker::Script => "a script",
            Speaker::Parent => "the agent that launched you",
            Speaker::Ancestor => "an agent above the one that launched you",
        }
    }

    /// As others are told.
    pub fn to_others(self) -> &'static str {
        match self {
            Speaker::Person => "the user",
            Speaker::Script => "a script",
            Speaker::Parent => "the agent that launched it",
            Speaker::Ancestor => "an agent above the one that launched it",
        }
    }
}
