//! What an agent asks its user, and what it can be answered.

use std::collections::BTreeMap;

use crate::{
    digest::digest,
    make_visible::make_visible,
    shorten::{both_ends, one_line},
    wording::{brief, listed},
};

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

/// How much of each text somebody who answers is shown, in characters.
const MOST_SHOWN: usize = 4_000;

/// The same where a question is spoken of in one line.
const LONGEST_LINE: usize = 500;

/// A text that is to be judged by who answers: whole, or so that it shows that it is not.
pub fn excerpt(text: &str) -> String {
    both_ends(text, MOST_SHOWN)
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

impl Reply {
    /// What it says, in a word or as it was given.
    pub fn shown(&self) -> String {
        match self {
            Reply::Once => "once".to_owned(),
            Reply::Always => "always".to_owned(),
            Reply::Reject { text: None } => "reject".to_owned(),
            Reply::Reject { text: Some(text) } => format!("reject: {text}"),
            Reply::Values(values) => {
                let values = values.values().map(|values| values.join(", "));
                values.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// What came of answering a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The host took the answer, and the agent goes on.
    Taken,
    /// The question is not open: it was answered before, or there never was one.
    NotAsked,
}

/// What a tool is to do that wants a permission. Most of it is the model's choice, so what it cannot
/// hide is how it is laid out: the first line and what `always` covers are ours, characters that a
/// terminal hides are named, and empty lines do not push the rest out of sight.
pub fn about_call(tool: &str, what: &str, always: Option<&str>, details: &str) -> String {
    let (what, details) = (excerpt(what.trim()), excerpt(details));
    let always = always.map(|covers| format!("(always: {})", make_visible(&excerpt(covers))));
    let (beside, rest) = if what.contains('\n') {
        ("", &*what)
    } else {
        (&*what, "")
    };
    let first = make_visible(format!("permission for {tool} {beside}").trim_end());
    let own = [Some(first), always];
    let call = [rest, &details].into_iter().flat_map(visible_lines);
    let lines: Vec<String> = own.into_iter().flatten().chain(call).collect();
    lines.join("\n")
}

/// The lines of a text, with runs of empty ones as one.
fn visible_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut empty = 0;
    for line in text.trim_end().lines() {
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        match std::mem::take(&mut empty) {
            0 => {}
            1 => lines.push(String::new()),
            some => lines.push(format!("[{some} empty lines]")),
        }
        lines.push(make_visible(line));
    }
    lines
}

impl Question {
    /// Whether a tool call may run.
    pub fn permission(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: QuestionKind::Permission,
        }
    }

    /// What is asked, in one line, or both ends of that.
    pub fn in_line(&self) -> String {
        both_ends(&one_line(&self.text), LONGEST_LINE)
    }

    /// A short name for people to type, made from the host's name for the question and from what is
    /// asked: what nobody has been shown, nobody has the name of. Who asks does not know the host's
    /// name beforehand, so nobody makes two questions of one code on purpose.
    pub fn code(&self, id: &str) -> String {
        format!("{:06x}", digest(&[id, &self.text]) & 0xff_ffff)
    }
}

/// What someone answers, before it is known what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    Once,
    Always,
    Reject {
        /// What the agent is told instead.
        text: Option<String>,
    },
    /// For a form of one field.
    Text(String),
    /// By the keys of a form's fields.
    Values(BTreeMap<String, Vec<String>>),
}

impl Question {
    /// The reply that was meant.
    ///
    /// # Errors
    /// When it does not answer this question, with what would.
    pub fn reply(&self, given: Given) -> Result<Reply, String> {
        match (&self.kind, given) {
            (_, Given::Reject { text }) => Ok(Reply::Reject { text }),
            (QuestionKind::Permission, Given::Once) => Ok(Reply::Once),
            (QuestionKind::Permission, Given::Always) => Ok(Reply::Always),
            (QuestionKind::Permission, Given::Text(_) | Given::Values(_)) => {
                Err("it asks for a permission: answer `once`, `always` or `reject`".to_owned())
            }
            (QuestionKind::Form(fields), Given::Once) => Err(no_permission(fields, "once")),
            (QuestionKind::Form(fields), Given::Always) => Err(no_permission(fields, "always")),
            (QuestionKind::Form(fields), Given::Text(text)) => match fields.as_slice() {
                [field] => {
                    let value = field.value(&text)?;
                    Ok(Reply::Values([(field.key.clone(), vec![value])].into()))
                }
                fields => Err(wanted(fields)),
            },
            (QuestionKind::Form(fields), Given::Values(values)) => {
                fitting(fields, values).map(Reply::Values)
            }
        }
    }
}

/// The values as the fields offer them.
fn fitting(
    fields: &[Field],
    values: BTreeMap<String, Vec<String>>,
) -> Result<BTreeMap<String, Vec<String>>, String> {
    if values.is_empty() {
        return Err(wanted(fields));
    }
    let mut fit = BTreeMap::new();
    for (key, given) in values {
        let Some(field) = fields.iter().find(|field| field.key == key) else {
            let key = brief(&key);
            return Err(format!("it has no field `{key}`; {}", wanted(fields)));
        };
        if given.len() > 1 && !field.multiple {
            return Err(format!("`{key}` takes one value"));
        }
        let given: Result<Vec<_>, _> = given.iter().map(|value| field.value(value)).collect();
        fit.insert(key, given?);
    }
    Ok(fit)
}

impl Field {
    /// A value as it is offered, or as it was given where any will do.
    fn value(&self, given: &str) -> Result<String, String> {
        let given = given.trim();
        let same = |option: &&String| option.eq_ignore_ascii_case(given);
        match self.options.iter().find(same) {
            Some(option) => Ok(option.clone()),
            None if given.is_empty() => Err(format!("`{}` is empty", self.key)),
            None if self.custom || self.options.is_empty() => Ok(given.to_owned()),
            None => Err(format!(
                "`{}` is not offered; there are {}",
                brief(given),
                listed(&self.options, "and")
            )),
        }
    }

    /// What it asks, by its key, with what is offered.
    pub fn shown(&self) -> String {
        match self.options.as_slice() {
            [] => format!("{}: {}", self.key, self.text),
            options => format!("{}: {} ({})", self.key, self.text, listed(options, "or")),
        }
    }
}

/// Why a word that permits does not answer a form. The word itself may be the answer.
fn no_permission(fields: &[Field], word: &str) -> String {
    let wanted = wanted(fields);
    match fields {
        [field] => format!(
            "it asks no permission; {wanted}. If the answer is that word: --value {}={word}",
            field.key
        ),
        _ => format!("it asks no permission; {wanted}"),
    }
}

fn wanted(fields: &[Field]) -> String {
    match fields {
        [] => "its host does not say what it asks for; answer it in its own window".to_owned(),
        [field] => format!("answer with a text: {}", field.shown()),
        fields => {
            let fields = fields.iter().map(Field::shown);
            format!("give a value for each of {}", listed(fields, "and"))
        }
    }
}
