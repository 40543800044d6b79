//! Tools as a model sees them.

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// What it is called.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// What it takes: a JSON schema of an object, as compact JSON.
    pub schema: String,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    /// What the tool answered.
    Done(String),
    /// What went wrong, for the model to read.
    Failed(String),
    /// The process ended while the tool was running. It may have done all, some or nothing
    /// of its work, so it is not run again.
    Unknown,
}

impl ToolOutcome {
    /// What the model reads about a call whose outcome nobody knows.
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
