//! What a session asks its user, and what OpenCode is told in answer.

use std::collections::BTreeMap;

use asyncagents_core::{
    id::SessionId,
    port::HostError,
    question::{Answered, Field, Question, QuestionKind, Reply, about_call, excerpt},
};
use serde_json::{Value, json};

use super::{
    api::Api,
    wire::{self, Properties},
};

/// What a user is asked, with OpenCode's name for the question.
pub(super) fn question(about: &Properties) -> Option<(String, Question)> {
    let id = about.id.clone()?;
    let Some(permission) = &about.permission else {
        let fields = fields(&about.questions);
        let texts: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        let text = excerpt(&texts.join(" "));
        let kind = QuestionKind::Form(fields);
        return Some((id, Question { text, kind }));
    };
    let what = about.patterns.join(", ");
    let diff = about.metadata.as_ref().and_then(|more| more.get("diff"));
    let diff = diff.and_then(Value::as_str).unwrap_or_default();
    let patterns = about.always.join(", ");
    let always = format!("{permission} {patterns}, for all sessions of the project");
    let always = (!about.always.is_empty()).then_some(always.as_str());
    let text = about_call(permission, &what, always, diff);
    Some((id, Question::permission(text)))
}

/// The questions as fields. Their keys are the short names that OpenCode shows, if those tell them
/// apart, and else their numbers.
fn fields(questions: &[wire::Question]) -> Vec<Field> {
    let names: Vec<&str> = questions
        .iter()
        .map(|question| question.header.as_deref().unwrap_or_default().trim())
        .collect();
    let is_unique = |name: &str| names.iter().filter(|other| **other == name).count() == 1;
    let key = |(number, question): (usize, &wire::Question)| {
        let name = question.header.as_deref().unwrap_or_default().trim();
        let key = if !name.is_empty() && is_unique(name) {
            name.to_owned()
        } else {
            (number + 1).to_string()
        };
        let options = question.options.iter();
        Field {
            key,
            text: excerpt(question.question.as_deref().unwrap_or_default()),
            options: options.filter_map(|option| option.label.clone()).collect(),
            custom: question.custom.unwrap_or(true),
            multiple: question.multiple,
        }
    };
    questions.iter().enumerate().map(key).collect()
}

/// Answers a question, if this session has asked it and nobody has answered.
pub(super) async fn answer(
    api: &Api,
    session: &SessionId,
    id: &str,
    reply: Reply,
) -> Result<Answered, HostError> {
    let open = api.questions().await?;
    let mut own = open.iter().filter(|open| open.is_of(session));
    let Some(asked) = own.find(|open| open.id.as_deref() == Some(id)) else {
        return Ok(Answered::NotAsked);
    };
    let taken = if asked.permission.is_some() {
        api.reply_permission(id, permission_reply(reply)?).await?
    } else {
        match form_answers(&fields(&asked.questions), reply)? {
            Some(answers) => api.reply_question(id, json!({"answers": answers})).await?,
            None => api.reject_question(id).await?,
        }
    };
    Ok(if taken {
        Answered::Taken
    } else {
        Answered::NotAsked
    })
}

fn permission_reply(reply: Reply) -> Result<Value, HostError> {
    Ok(match reply {
        Reply::Once => json!({"reply": "once"}),
        Reply::Always => json!({"reply": "always"}),
        Reply::Reject { text: None } => json!({"reply": "reject"}),
        // OpenCode ends a run that is refused something, unless it is told what to do instead.
        Reply::Reject { text: Some(text) } => json!({"reply": "reject", "message": text}),
        Reply::Values(_) => {
            let why = "it asks for a permission, which is given once, always or not at all";
            return Err(HostError::Refused(why.to_owned()));
        }
    })
}

/// The answers in the order of the fields; nothing if the questions are dismissed.
fn form_answers(fields: &[Field], reply: Reply) -> Result<Option<Vec<Vec<String>>>, HostError> {
    let mut values = match reply {
        Reply::Values(values) => values,
        Reply::Reject { text: None } => return Ok(None),
        // There is no other place for it: whoever asks is told the text in place of an answer.
        Reply::Reject { text: Some(text) } => {
            let free = fields.iter().filter(|field| field.custom);
            let told = free.map(|field| (field.key.clone(), vec![text.clone()]));
            let told: BTreeMap<_, _> = told.collect();
            if told.is_empty() {
                return Ok(None);
            }
            told
        }
        Reply::Once | Reply::Always => {
            let why = "it asks for no permission; answer it with values, or reject it";
            return Err(HostError::Refused(why.to_owned()));
        }
    };
    let mut taken = |field: &Field| values.remove(&field.key).unwrap_or_default();
    let answers = fields.iter().map(&mut taken).collect();
    match values.keys().next() {
        Some(unknown) => {
            let known: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
            Err(HostError::Refused(format!(
                "nothing called `{unknown}` is asked; asked is: {}",
                known.join(", ")
            )))
        }
        None => Ok(Some(answers)),
    }
}
