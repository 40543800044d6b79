//! What tasks ask, with how each question is answered, in words for callers and parents.

use crate::{
    make_visible::make_visible,
    progress::{OpenQuestion, Progress},
    question::QuestionKind,
    shorten::{both_ends, one_line},
    wording::Reader,
};

/// What a task waits for, oldest first, each with its code and how it is answered.
/// `task` is the task's ID as people see it.
pub(crate) fn open_questions(task: &str, progress: &Progress, reader: Reader) -> Vec<String> {
    let open = progress.open_questions().into_iter();
    let shown = open.map(|(id, open)| {
        let code = open.question.code(id);
        let how = how_to_answer(task, &code, open, reader);
        format!("the user's answer ({code}): {}\n  {how}", asked(open))
    });
    shown.collect()
}

/// What is asked, with the fields of a form that has more than one, or offers something. A text of
/// several lines has a mark before each, so that none of them looks like ours.
fn asked(open: &OpenQuestion) -> String {
    with_fields(open, &marked(&seen(open)))
}

/// The same in one line, or both ends of that.
pub(crate) fn asked_in_line(open: &OpenQuestion, most: usize) -> String {
    both_ends(&one_line(&with_fields(open, &seen(open))), most)
}

/// The text; of a permission with nothing in it that cannot be seen, whichever host has worded it.
fn seen(open: &OpenQuestion) -> String {
    let text = &open.question.text;
    match &open.question.kind {
        QuestionKind::Permission => {
            let lines: Vec<String> = text.lines().map(make_visible).collect();
            lines.join("\n")
        }
        QuestionKind::Form(_) => text.clone(),
    }
}

fn with_fields(open: &OpenQuestion, text: &str) -> String {
    match &open.question.kind {
        QuestionKind::Permission => text.to_owned(),
        QuestionKind::Form(fields) => {
            let several = fields.len() > 1;
            let fields = fields
                .iter()
                .filter(|field| several || !field.options.is_empty());
            let fields: String = fields
                .map(|field| format!("\n  {}", one_line(&field.shown())))
                .collect();
            format!("{text}{fields}")
        }
    }
}

fn marked(text: &str) -> String {
    let text = text.trim_end();
    if !text.contains('\n') {
        return text.to_owned();
    }
    text.lines().map(|line| format!("\n  | {line}")).collect()
}

/// How a question is answered. It is always named: by the time that somebody answers, the task may
/// ask for something else.
pub(crate) fn how_to_answer(task: &str, code: &str, open: &OpenQuestion, reader: Reader) -> String {
    let several =
        |kind: &QuestionKind| matches!(kind, QuestionKind::Form(fields) if fields.len() > 1);
    match reader {
        Reader::Person => {
            let what = match &open.question.kind {
                QuestionKind::Permission => "once|always|reject",
                kind if several(kind) => "--value KEY=VALUE …",
                QuestionKind::Form(_) => "\"…\"",
            };
            format!("To answer it: asyncagents answer {task} {what} --question {code}")
        }
        Reader::Model { prefix } => {
            let (what, says) = match &open.question.kind {
                QuestionKind::Permission => (
                    "decision=\"reject\"",
                    "refuses it; to permit it is the user's",
                ),
                kind if several(kind) => ("values={…}", "answers it"),
                QuestionKind::Form(_) => ("text=\"…\"", "answers it"),
            };
            format!("{prefix}answer(task_id=\"{task}\", {what}, question=\"{code}\") {says}")
        }
    }
}
