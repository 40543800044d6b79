//! Tools as a model sees them, and calls as rules and people see them.

use super::Kind;

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// What it takes: a JSON schema of an object, as compact JSON.
    pub schema: String,
}

/// What a call would do. The rules judge it and people are shown it before it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallInfo {
    /// What kind of thing it does.
    pub kind: Kind,
    /// To what: the path relative to the workspace if it is inside, else the whole path; the
    /// command; or what it is about.
    pub target: String,
    /// What a person who watches reads of it: mostly the target.
    pub title: String,
    /// All of it, for a person who is asked.
    pub preview: Preview,
}

/// All that a call would do, in the model's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    Command(String),
    Write {
        content: String,
    },
    /// A piece of a file is replaced.
    Edit {
        /// What is there now.
        old: String,
        /// What shall be there.
        new: String,
        /// Wherever it is, not in one place only.
        everywhere: bool,
    },
    /// Some other tool is used, with these arguments: names and values. What
    /// [`CallInfo::target`] says is not among them.
    Arguments(Vec<(String, String)>),
}

impl Preview {
    /// The arguments of a call besides its target.
    pub fn of_arguments(mut arguments: Vec<(String, String)>, target: &str) -> Self {
        arguments.retain(|(_, value)| value != target);
        Preview::Arguments(arguments)
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    Done(String),
    /// What went wrong, for the model to read.
    Failed(String),
    /// The process ended while the tool was running. It may have done all, some or nothing
    /// of its work, so it is not run again.
    Unknown,
}

impl ToolOutcome {
    /// What the model reads about a call whose outcome is unknown.
    pub const UNKNOWN: &'static str = "Interrupted: the process ended while this tool was \
        running. It may have done all, some or none of its work, and it was not run again. \
        Check what is there before you repeat it.";

    /// What the model reads.
    pub fn text(&self) -> &str {
        match self {
            ToolOutcome::Done(text) | ToolOutcome::Failed(text) => text,
            ToolOutcome::Unknown => Self::UNKNOWN,
        }
    }

    /// Anything but success.
    pub fn is_error(&self) -> bool {
        match self {
            ToolOutcome::Done(_) => false,
            ToolOutcome::Failed(_) | ToolOutcome::Unknown => true,
        }
    }
}
