//! What a task asks, and what it was told.

use asyncagents_core::{
    answer::{AnswerState, MessageState, NotTaken, Shown, ToldMessage},
    progress::OpenQuestion,
    question::{Field, QuestionKind, Reply},
    speaker::Speaker,
    task::Task,
};
use serde::Serialize;

use crate::values::time;

/// What a task asks and waits for.
#[derive(Debug, Serialize)]
pub(crate) struct QuestionView<'a> {
    /// The host's name for it: `asyncagents answer --question` takes it.
    id: &'a str,
    kind: &'static str,
    text: &'a str,
    since: String,
    /// Whether the parent was told of it.
    told: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldView<'a>>,
}

#[derive(Debug, Serialize)]
struct FieldView<'a> {
    key: &'a str,
    text: &'a str,
    options: &'a [String],
    custom: bool,
    multiple: bool,
}

/// Something that a task was told.
#[derive(Debug, Serialize)]
pub(crate) struct ToldView<'a> {
    id: &'a str,
    at: String,
    state: &'static str,
    /// Why it did not reach the child.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    /// Who told it, if that was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    text: &'a str,
}

/// The texts of what a task asks, oldest first.
pub(crate) fn asked(task: &Task) -> Vec<&str> {
    let open = task.progress.open_questions().into_iter();
    open.map(|(_, open)| open.question.text.as_str()).collect()
}

/// What a task asks, oldest first.
pub(crate) fn questions(task: &Task) -> Vec<QuestionView<'_>> {
    let open = task.progress.open_questions().into_iter();
    open.map(|(id, open)| QuestionView::new(id, open)).collect()
}

impl<'a> QuestionView<'a> {
    fn new(id: &'a str, open: &'a OpenQuestion) -> Self {
        let (kind, fields) = match &open.question.kind {
            QuestionKind::Permission => ("permission", &[][..]),
            QuestionKind::Form(fields) => ("question", fields.as_slice()),
        };
        Self {
            id,
            kind,
            text: &open.question.text,
            since: time(open.since),
            told: open.told,
            fields: fields.iter().map(FieldView::new).collect(),
        }
    }
}

impl<'a> FieldView<'a> {
    fn new(field: &'a Field) -> Self {
        Self {
            key: &field.key,
            text: &field.text,
            options: &field.options,
            custom: field.custom,
            multiple: field.multiple,
        }
    }
}

impl<'a> ToldView<'a> {
    pub(crate) fn new(told: &'a ToldMessage) -> Self {
        let (state, why) = match &told.state {
            MessageState::WithPrompt => ("with_prompt", None),
            MessageState::Pending => ("pending", None),
            MessageState::Delivered => ("delivered", None),
            MessageState::Undelivered(why) => ("undelivered", Some(why.as_str())),
        };
        Self {
            id: told.id.as_str(),
            at: time(told.at),
            state,
            why,
            from: told.from.map(Speaker::word),
            text: &told.text,
        }
    }
}

/// An answer that did not reach its question.
#[derive(Debug, Serialize)]
pub(crate) struct NotTakenView<'a> {
    asked: &'a str,
    reply: String,
    why: &'a str,
}

impl<'a> NotTakenView<'a> {
    pub(crate) fn new(answer: &'a NotTaken) -> Self {
        Self {
            asked: &answer.asked,
            reply: answer.reply.shown(),
            why: &answer.why,
        }
    }
}

/// An answer to what a task asked.
#[derive(Debug, Serialize)]
pub struct AnswerView<'a> {
    id: &'a str,
    asked: &'a str,
    reply: String,
    state: &'static str,
    /// Why it was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

impl<'a> AnswerView<'a> {
    /// What was answered to what, and what came of it.
    pub fn new(shown: &'a Shown, asked: &'a str, reply: &Reply, state: &'a AnswerState) -> Self {
        let (state, why) = match state {
            AnswerState::OnItsWay => ("pending", None),
            AnswerState::Taken => ("taken", None),
            AnswerState::NotTaken(why) => ("not_taken", Some(why.as_str())),
        };
        Self {
            id: shown.task.id.as_str(),
            asked,
            reply: reply.shown(),
            state,
            why,
        }
    }
}
