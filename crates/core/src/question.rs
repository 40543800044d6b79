//! What an agent asks its user, and what it can be answered.

use std::collections::BTreeMap;

/// What an agent asks its user and waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked, for people.
    pub text: String,
    pub kind: QuestionKind,
}

/// What kind of answer a question wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// Whether a tool call may run. Old journals do not say the kind, and this is the one that
    /// least may answer.
    Permission,
    /// Something the agent wants to know: one value or more for each field.
    Form(Vec<Field>),
}

/// One thing that an agent wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The host's name for it.
    pub key: String,
    /// What is asked, for people.
    pub text: String,
    /// The values that are offered, if any are.
    pub options: Vec<String>,
    /// Whether it may be answered with something that is not offered.
    pub custom: bool,
    /// Whether it may be answered with more than one value.
    pub multiple: bool,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Permitted, this time.
    Once,
    /// Permitted, and everything that the host takes for the same from now on.
    Always,
    /// Not permitted, or a question that is not answered.
    Reject {
        /// What the agent is told instead.
        text: Option<String>,
    },
    /// Values by the keys of a form's fields.
    Values(BTreeMap<String, Vec<String>>),
}

/// What came of answering a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The host took the answer, and the agent goes on.
    Taken,
    /// The question is not open: it was answered before, or there never was one.
    NotAsked,
}

impl Question {
    /// Whether a tool call may run.
    pub fn permission(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: QuestionKind::Permission,
        }
    }
}
