//! Names of things. Each kind of thing has its own type, so they cannot be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Box<str>>> From<T> for $name {
            fn from(name: T) -> Self {
                Self(name.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// A background task: `task_` and 32 hexadecimal digits.
    TaskId;
    /// A session of a host, be it a parent's or a child's.
    SessionId;
    /// A process that looks after tasks, for as long as its lease lasts.
    OwnerId;
    /// What an agent is called: `general`, `explore`.
    AgentName;
    /// A model as `provider/model`.
    ModelName;
    /// What is put into a session under a name of ours, so that it can be found again
    /// there: a prompt, an inherited context, a notification.
    PostId;
    /// The trace of one run: a UUID.
    ChainId;
}

impl ModelName {
    /// Stands for the caller's model, whatever that is.
    pub const INHERIT: &'static str = "inherit";
}

impl SessionId {
    /// What every session of the built-in agent begins with.
    pub const KIND: &'static str = "ses_";
}

/// Between a task's ID and the number of a message to it.
const MESSAGE: &str = ".message.";

impl PostId {
    /// Whether it is something that a task was told while it worked.
    pub fn is_message(&self) -> bool {
        self.0.contains(MESSAGE)
    }

    /// The same for the session at the top of the tree.
    #[must_use]
    pub fn for_root(&self) -> Self {
        Self(format!("{self}.root").into())
    }
}

impl TaskId {
    /// What every task's ID begins with.
    pub const KIND: &'static str = "task_";
    /// How many characters are shown after the kind, at least.
    pub const SHOWN: usize = 8;

    /// An ID of random bits. They come first, so that a few digits tell tasks apart that
    /// were launched in the same moment.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{}{bits:032x}", Self::KIND).into())
    }

    /// The prompt of one run of the task.
    pub fn prompt(&self, run: u32) -> PostId {
        PostId(format!("{self}.prompt.{run}").into())
    }

    /// The prompt by which one run of the task goes on with another model, for the `time`th time.
    pub fn prompt_again(&self, run: u32, time: u32) -> PostId {
        PostId(format!("{self}.prompt.{run}m{time}").into())
    }

    /// What is asked in the last turn of one run of the task.
    pub fn last_turn(&self, run: u32) -> PostId {
        PostId(format!("{self}.last.{run}").into())
    }

    /// What the child inherits.
    pub fn inheritance(&self) -> PostId {
        PostId(format!("{self}.inherited").into())
    }

    /// What the parent is told of one run of the task.
    pub fn notice(&self, run: u32) -> PostId {
        PostId(format!("{self}.notice.{run}").into())
    }

    /// Something that the task is told, by the number of the event.
    pub fn message(&self, event: u64) -> PostId {
        PostId(format!("{self}{MESSAGE}{event}").into())
    }

    /// The answer to something that the task asks, by the number of the event.
    pub fn answer(&self, event: u64) -> PostId {
        PostId(format!("{self}.answer.{event}").into())
    }

    /// What the parent is told of a question, by the number of the event.
    pub fn asked(&self, event: u64) -> PostId {
        PostId(format!("{self}.asked.{event}").into())
    }

    /// The session in which the built-in agent works on the task. It is known before it is there.
    pub fn session(&self) -> SessionId {
        let digits = self.0.rsplit('_').next().unwrap_or(&self.0);
        SessionId(format!("{}{digits}", SessionId::KIND).into())
    }

    /// The shortest form of this ID that is no prefix of its neighbours in sorted order.
    pub fn shown<'a>(&'a self, neighbours: impl IntoIterator<Item = &'a TaskId>) -> &'a str {
        let common = |other: &TaskId| {
            let pairs = self.0.bytes().zip(other.0.bytes());
            pairs.take_while(|(a, b)| a == b).count()
        };
        let shared = neighbours.into_iter().map(common).max().unwrap_or(0);
        let length = (shared + 1).max(Self::KIND.len() + Self::SHOWN);
        self.0.get(..length).unwrap_or(&self.0)
    }
}
