//! How questions are written. The names here are on people's disks.

use std::collections::BTreeMap;

use asyncagents_core::{
    moment::Moment,
    progress::OpenQuestion,
    question::{Field, Question, QuestionKind, Reply},
};
use serde::{Deserialize, Serialize};

/// A question; one without a form is about a permission.
#[derive(Serialize, Deserialize)]
pub(crate) struct QuestionRecord {
    question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<Vec<FieldRecord>>,
}

#[derive(Serialize, Deserialize)]
struct FieldRecord {
    key: String,
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    #[serde(default)]
    custom: bool,
    #[serde(default)]
    multiple: bool,
}

impl From<Question> for QuestionRecord {
    fn from(question: Question) -> Self {
        Self {
            question: question.text,
            form: match question.kind {
                QuestionKind::Permission => None,
                QuestionKind::Form(fields) => {
                    Some(fields.into_iter().map(FieldRecord::from).collect())
                }
            },
        }
    }
}

impl From<QuestionRecord> for Question {
    fn from(record: QuestionRecord) -> Self {
        Self {
            text: record.question,
            kind: match record.form {
                None => QuestionKind::Permission,
                Some(fields) => QuestionKind::Form(fields.into_iter().map(Field::from).collect()),
            },
        }
    }
}

impl From<Field> for FieldRecord {
    fn from(field: Field) -> Self {
        Self {
            key: field.key,
            text: field.text,
            options: field.options,
            custom: field.custom,
            multiple: field.multiple,
        }
    }
}

impl From<FieldRecord> for Field {
    fn from(record: FieldRecord) -> Self {
        Self {
            key: record.key,
            text: record.text,
            options: record.options,
            custom: record.custom,
            multiple: record.multiple,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A question in the row of a task.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OpenRecord {
    Open {
        #[serde(flatten)]
        question: QuestionRecord,
        since: i64,
        #[serde(default, skip_serializing_if = "is_false")]
        told: bool,
    },
    /// Older versions wrote only what was asked.
    Text(String),
}

impl From<&OpenQuestion> for OpenRecord {
    fn from(open: &OpenQuestion) -> Self {
        Self::Open {
            question: open.question.clone().into(),
            since: open.since.as_millis(),
            told: open.told,
        }
    }
}

impl OpenRecord {
    /// A task that was heard of at `heard` has asked by then.
    pub(crate) fn open(self, heard: Option<Moment>) -> OpenQuestion {
        match self {
            Self::Open {
                question,
                since,
                told,
            } => OpenQuestion {
                question: question.into(),
                since: Moment::from_millis(since),
                told,
            },
            Self::Text(text) => OpenQuestion {
                question: Question::permission(text),
                since: heard.unwrap_or_default(),
                told: false,
            },
        }
    }
}

/// The answer to a question.
#[derive(Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum ReplyRecord {
    Once,
    Always,
    Reject {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    Values {
        values: BTreeMap<String, Vec<String>>,
    },
}

impl From<Reply> for ReplyRecord {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Once => Self::Once,
            Reply::Always => Self::Always,
            Reply::Reject { text } => Self::Reject { text },
            Reply::Values(values) => Self::Values { values },
        }
    }
}

impl From<ReplyRecord> for Reply {
    fn from(record: ReplyRecord) -> Self {
        match record {
            ReplyRecord::Once => Self::Once,
            ReplyRecord::Always => Self::Always,
            ReplyRecord::Reject { text } => Self::Reject { text },
            ReplyRecord::Values { values } => Self::Values(values),
        }
    }
}
