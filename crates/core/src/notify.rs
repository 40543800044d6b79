//! What sessions are told: a parent of what a task asks, a child of what was said to it. What a parent
//! is told of tasks that have ended is in `end_notice`.

use crate::{
    host_ref::HostRef,
    open_question::{asked_in_line, how_to_answer},
    progress::OpenQuestion,
    question::QuestionKind,
    shorten::one_line,
    speaker::Speaker,
    task::{Outcome, State, Task},
    wording::{Reader, duration},
};

/// One message of two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// For people and the model.
    pub visible: String,
    /// For the model only.
    pub hidden: String,
}

/// How many of the tasks that a parent waits for have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Ended, this one included.
    pub ended: u64,
    pub total: u64,
}

/// How messages are worded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The prefix of the tools' names.
    pub prefix: String,
    /// Whether people are told that there is a hidden part.
    pub show_hint: bool,
    /// How many characters of a result a notice has at most; the rest is read with the tool
    /// `output`.
    pub result_chars: usize,
}

impl Default for Wording {
    fn default() -> Self {
        Self {
            prefix: "asyncagents_".to_owned(),
            show_hint: false,
            result_chars: 4_000,
        }
    }
}

impl Wording {
    /// The same for a session of a host. Over MCP the server's name is in front of the tools' names,
    /// so they have no prefix.
    #[must_use]
    pub fn in_host(&self, host: &HostRef) -> Self {
        if host.has_tools_over_mcp() {
            let prefix = String::new();
            return Self {
                prefix,
                ..self.clone()
            };
        }
        self.clone()
    }

    /// The last line of the visible part, if people are told that there is a hidden one.
    pub(crate) fn hint(&self) -> &'static str {
        if self.show_hint {
            "\n[hint attached]"
        } else {
            ""
        }
    }
}

/// How long what is asked may be in a notice.
const ASKED: usize = 500;

/// The message about something that a task has been asking for too long, by the host's name for it.
/// `shown` is its ID as people see it.
pub fn question_message(
    task: &Task,
    shown: &str,
    (question, open): (&str, &OpenQuestion),
    wording: &Wording,
) -> Message {
    let description = one_line(&task.brief.description);
    let asked = asked_in_line(open, ASKED);
    let (prefix, hint) = (&wording.prefix, wording.hint());
    let code = open.question.code(question);
    let person = how_to_answer(shown, &code, open, Reader::Person);
    let model = how_to_answer(shown, &code, open, Reader::Model { prefix });
    let first = match &open.question.kind {
        QuestionKind::Permission => "Tell the user what it asks.",
        QuestionKind::Form(_) => "If you know the answer, give it; if not, ask the user.",
    };
    Message {
        visible: format!(
            "? **Agent \"{description}\" waits for an answer.**\nIt asks: {asked}\n{person}{hint}"
        ),
        hidden: format!(
            "Task {shown} waits and does nothing until it is answered. {first} {model}."
        ),
    }
}

/// What the line begins with that says who speaks to a child that works, and to one that has not
/// begun.
const MESSAGE_FROM: &str = "Message from";
const ADDED: &str = "Added before you began";

/// What a child that works is told, and by whom if that is known.
pub fn told_message(from: Option<Speaker>, text: &str) -> Message {
    let text = without_headings(text);
    let Some(from) = from else {
        let hidden = "This was said to you while you work. ".to_owned() + TAKE_INTO_ACCOUNT;
        return Message {
            visible: text,
            hidden,
        };
    };
    let who = from.to_the_task();
    let not_the_user = match from {
        Speaker::Person => "",
        Speaker::Script => ". Whether your user is behind it is not known",
        Speaker::Parent | Speaker::Ancestor => ", which is not your user",
    };
    Message {
        visible: format!("{MESSAGE_FROM} {who}:\n{text}"),
        hidden: format!(
            "This was said to you while you work, by {who}{not_the_user}. {TAKE_INTO_ACCOUNT}"
        ),
    }
}

const TAKE_INTO_ACCOUNT: &str = "Take it into account, and go on with your task.";

/// A prompt, with what was said to the task before it began, and by whom if that is known.
pub fn prompt_with<'a>(
    prompt: String,
    told: impl IntoIterator<Item = (Option<Speaker>, &'a str)>,
) -> String {
    let mut told = told.into_iter().peekable();
    if told.peek().is_none() {
        return prompt;
    }
    let mut text = without_headings(&prompt);
    for (from, told) in told {
        let by = from.map_or(String::new(), |from| format!(", by {}", from.to_the_task()));
        text.push_str(&format!("\n\n{ADDED}{by}:\n{}", without_headings(told)));
    }
    text
}

/// What a model may take for the end of a line.
const LINE_BREAKS: &[char] = &[
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// A text in which no line passes for one of ours that says who speaks: such a line is quoted.
fn without_headings(text: &str) -> String {
    let is_heading = |line: &str| {
        let words = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let words = words.to_lowercase();
        let mut headings = [MESSAGE_FROM, ADDED].into_iter();
        headings.any(|heading| words.starts_with(&heading.to_lowercase()))
    };
    let lines = text.split_inclusive(LINE_BREAKS).map(|line| {
        let quoted = if is_heading(line) { "> " } else { "" };
        format!("{quoted}{line}")
    });
    lines.collect()
}

/// How a task that has ended did so: a mark and a sentence.
pub fn headline(task: &Task) -> Option<(&'static str, String)> {
    let State::Ended { ran, outcome, .. } = &task.state else {
        return None;
    };
    let description = one_line(&task.brief.description);
    let took = duration(*ran);
    Some(match outcome {
        Outcome::Completed if task.run > 0 => {
            ("✓", format!("Resume #{} completed in {took}.", task.run))
        }
        Outcome::Completed => ("✓", format!("Agent \"{description}\" finished in {took}.")),
        Outcome::Failed { .. } => ("✗", format!("Agent \"{description}\" failed in {took}.")),
        Outcome::Cancelled => (
            "⊘",
            format!("Agent \"{description}\" cancelled after {took}."),
        ),
    })
}
