//! What a session asks its user, and what OpenCode is told in answer.

use std::collections::BTreeMap;

use asyncagents_core::{
    port::HostError,
    question::{Field, Question, QuestionKind, Reply, about_call, excerpt},
};
use serde_json::{Map, Value, json};

use super::wire::{Form, FormField, Permission};

/// A permission, with OpenCode's name for the question.
pub(super) fn of_permission(asked: &Permission) -> (String, Question) {
    let action = &asked.action;
    let always = format!("{action} {}", asked.save.join(", "));
    let always = (!asked.save.is_empty()).then_some(always.as_str());
    let text = about_call(action, &asked.resources.join(", "), always, &changes(asked));
    (asked.id.clone(), Question::permission(text))
}

/// What would be changed in files.
fn changes(asked: &Permission) -> String {
    let more = asked.metadata.as_ref();
    let files = more.and_then(|more| more["files"].as_array());
    let patches = files.into_iter().flatten();
    patches.filter_map(|file| file["patch"].as_str()).collect()
}

/// A form, with OpenCode's name for it.
pub(super) fn of_form(form: &Form) -> (String, Question) {
    let fields: Vec<Field> = form.fields.iter().map(field).collect();
    let texts: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
    let text = if texts.is_empty() {
        form.title.clone().unwrap_or_default()
    } else {
        texts.join(" ")
    };
    let question = Question {
        text: excerpt(&text),
        kind: QuestionKind::Form(fields),
    };
    (form.id.clone(), question)
}

/// One question of a form.
fn field(field: &FormField) -> Field {
    let text = field.description.as_ref().or(field.title.as_ref());
    let text = text.unwrap_or(&field.key);
    let is_boolean = field.kind() == "boolean";
    let options = field.options.iter().map(|option| option.value.clone());
    Field {
        key: field.key.clone(),
        text: excerpt(text),
        options: if is_boolean {
            vec!["true".to_owned(), "false".to_owned()]
        } else {
            options.collect()
        },
        // A field without options takes any text or number.
        custom: !is_boolean && (field.custom || field.options.is_empty()),
        multiple: field.kind() == "multiselect",
    }
}

/// The answer to a permission. Releases call the decision by another name; both are sent, since
/// a name that is not known is left alone.
pub(super) fn permission_body(reply: &Reply) -> Result<Value, HostError> {
    let (decision, text) = match reply {
        Reply::Once => ("once", None),
        Reply::Always => ("always", None),
        Reply::Reject { text } => ("reject", text.as_ref()),
        Reply::Values(_) => {
            let why = "a permission is answered with once, always or reject, not with values";
            return Err(HostError::Refused(why.to_owned()));
        }
    };
    let mut body = json!({"reply": decision, "decision": decision});
    if let Some(text) = text {
        body["message"] = json!(text);
    }
    Ok(body)
}

/// The values of a form as OpenCode wants them: a list for some fields, a number or a truth value
/// for others.
pub(super) fn form_body(
    form: &Form,
    values: &BTreeMap<String, Vec<String>>,
) -> Result<Value, HostError> {
    let mut answer = Map::new();
    for (key, given) in values {
        let field = form.fields.iter().find(|field| field.key == *key);
        let field = field.ok_or_else(|| unknown_field(form, key))?;
        answer.insert(key.clone(), value(field, given)?);
    }
    Ok(json!({"answer": answer}))
}

fn value(field: &FormField, given: &[String]) -> Result<Value, HostError> {
    if field.kind() == "multiselect" {
        return Ok(json!(given));
    }
    let refused = |what: &str| {
        let why = format!("`{}` wants {what}", field.key);
        HostError::Refused(why)
    };
    let [one] = given else {
        return Err(refused("one value"));
    };
    let read = |what: &str| {
        let value: Option<Value> = serde_json::from_str(one.trim()).ok();
        value.ok_or_else(|| refused(what))
    };
    match field.kind() {
        "number" | "integer" => read("a number").and_then(|value| {
            let is_number = value.is_number();
            is_number
                .then_some(value)
                .ok_or_else(|| refused("a number"))
        }),
        "boolean" => read("true or false").and_then(|value| {
            let is_truth = value.is_boolean();
            is_truth
                .then_some(value)
                .ok_or_else(|| refused("true or false"))
        }),
        _ => Ok(json!(one)),
    }
}

fn unknown_field(form: &Form, key: &str) -> HostError {
    let known: Vec<&str> = form.fields.iter().map(|field| field.key.as_str()).collect();
    let known = known.join(", ");
    HostError::Refused(format!(
        "nothing called `{key}` is asked; asked is: {known}"
    ))
}

/// The values for a form that is refused with a text: whoever asks is told that instead, wherever
/// any text will do. Nothing where there is no such field.
pub(super) fn as_text(form: &Form, text: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let takes_text = |field: &&FormField| {
        let is_free = field.custom || field.options.is_empty();
        matches!(field.kind(), "string" | "multiselect") && is_free
    };
    let fields = form.fields.iter().filter(takes_text);
    let told: BTreeMap<_, _> = fields
        .map(|field| (field.key.clone(), vec![text.to_owned()]))
        .collect();
    (!told.is_empty()).then_some(told)
}
