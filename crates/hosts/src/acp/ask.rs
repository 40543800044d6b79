//! What an agent asks: whether a tool may run, or something that it wants to know.

use asyncagents_core::{
    agent::Kind,
    question::{Field, Question, QuestionKind, Reply},
    shorten::shorten,
};
use serde_json::{Value, json};

use super::updates::{is_of_server, kind_of, tool_name};
use crate::agent::{Ask, Asked, AskedCall};

/// A question of `session/request_permission`. `call` is what is known of the call that it is about.
pub(super) fn permission(id: String, call: &Value, tools: Option<&str>) -> Ask {
    let tool = tool_name(call).unwrap_or_else(|| "a tool".to_owned());
    let kind = kind_of(call);
    let input = &call["rawInput"];
    let places = match kind {
        Some(Kind::Read | Kind::Edit) => places(call),
        Some(Kind::Run | Kind::Note) | None => Vec::new(),
    };
    let exact = match kind {
        Some(Kind::Run) => command(input),
        // One that looks and has a command may do anything.
        Some(Kind::Read) if !input["command"].is_null() => None,
        Some(Kind::Read | Kind::Edit) => places.first().cloned(),
        Some(Kind::Note) | None => None,
    };
    let is_exact = exact.is_some();
    let title = || call["title"].as_str().unwrap_or_default().to_owned();
    let target = exact.unwrap_or_else(title);
    let details = match input {
        Value::Null => String::new(),
        Value::Object(fields) => {
            // What a model says of a command is no part of it.
            let of_command = |name: &str| kind == Some(Kind::Run) && name == "description";
            let fields = fields.iter().filter(|(name, _)| !of_command(name));
            let lines = fields.map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    Ask {
        id,
        what: Asked::Call(AskedCall {
            is_ours: tools.is_some_and(|server| is_of_server(call, server)),
            also: places,
            tool,
            kind,
            target,
            is_exact,
            details,
        }),
    }
}

/// For an agent that says a command only as a title, which it makes of nothing else.
pub(super) fn take_title_for_command(ask: &mut Ask) {
    if let Asked::Call(call) = &mut ask.what
        && call.kind == Some(Kind::Run)
        && call.details.is_empty()
    {
        call.is_exact = true;
    }
}

/// Where agents say which files a call is about, most telling first.
const PATHS: [&str; 14] = [
    "file_path",
    "filePath",
    "filepath",
    "notebook_path",
    "path",
    "target_file",
    "paths",
    "from",
    "to",
    "source",
    "destination",
    "old_path",
    "new_path",
    "uri",
];

/// The files that a call is about.
fn places(call: &Value) -> Vec<String> {
    let input = &call["rawInput"];
    let said = PATHS.iter().flat_map(|name| match &input[*name] {
        Value::String(path) => vec![path.clone()],
        Value::Array(paths) => {
            let paths = paths.iter().filter_map(Value::as_str);
            paths.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    });
    // As Codex names the files of a patch.
    let changes = input["changes"].as_object().into_iter().flatten();
    let changes = changes.map(|(path, _)| path.clone());
    let located = call["locations"].as_array().into_iter().flatten();
    let located = located.filter_map(|place| place["path"].as_str().map(str::to_owned));
    said.chain(located).chain(changes).collect()
}

/// A command, as text or in words.
fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str);
            Some(words.collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// The answer to a permission, among the options that are offered: never one that the agent would
/// remember as allowed.
pub(super) fn permitted(request: &Value, reply: &Reply) -> Value {
    let kinds: &[&str] = match reply {
        Reply::Once | Reply::Always => &["allow_once"],
        Reply::Reject { .. } | Reply::Values(_) => &["reject_once", "reject_always"],
    };
    let options = request["options"].as_array();
    let offered = |kind: &&str| {
        let mut options = options?.iter();
        let option = options.find(|option| option["kind"] == **kind)?;
        option["optionId"].as_str()
    };
    match kinds.iter().find_map(offered) {
        Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option}}),
        None => cancelled(),
    }
}

/// No permission, and no answer.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// How many fields and choices a form can have, and how long each text in it can be.
const MOST_FIELDS: usize = 100;
const LONGEST_TEXT: usize = 2_000;

/// A form of `elicitation/create`. Nothing if it is of another kind, or too large.
pub(super) fn form(id: String, request: &Value) -> Option<Ask> {
    if request["mode"].as_str().is_some_and(|mode| mode != "form") {
        return None;
    }
    let properties = request
        .pointer("/requestedSchema/properties")?
        .as_object()?;
    let short = |text: &str| shorten(text, LONGEST_TEXT, "…");
    let is_short = |text: &str| text.len() <= LONGEST_TEXT;
    if properties.len() > MOST_FIELDS || !properties.keys().all(|key| is_short(key)) {
        return None;
    }
    let fields = properties.iter().map(|(key, property)| Field {
        key: key.clone(),
        text: ["description", "title"]
            .iter()
            .find_map(|name| property[name].as_str())
            .map_or_else(|| key.clone(), short),
        options: options(property),
        custom: false,
        multiple: property["type"] == "array",
    });
    Some(Ask {
        id,
        what: Asked::Form(Question {
            text: short(request["message"].as_str().unwrap_or_default()),
            kind: QuestionKind::Form(fields.collect()),
        }),
    })
}

fn options(property: &Value) -> Vec<String> {
    if property["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    // Plain, or each with a title of its own.
    let of = [property, &property["items"]].into_iter();
    let mut lists = of.flat_map(|of| [&of["enum"], &of["oneOf"], &of["anyOf"]]);
    let values = lists.find_map(Value::as_array);
    let word = |value: &Value| {
        let word = value.as_str().or_else(|| value["const"].as_str());
        word.map(str::to_owned)
    };
    let words = values.into_iter().flatten().filter_map(word);
    let words = words.filter(|word| word.len() <= LONGEST_TEXT);
    words.take(MOST_FIELDS).collect()
}

/// The answer to a form, in the types that it asks for.
pub(super) fn filled(request: &Value, reply: &Reply) -> Value {
    let Reply::Values(values) = reply else {
        return declined();
    };
    let properties = &request["requestedSchema"]["properties"];
    let content = values.iter().map(|(key, given)| {
        let first = given.first().map(String::as_str).unwrap_or_default();
        let value = match properties[key]["type"].as_str() {
            Some("boolean") => json!(first == "true"),
            Some("integer") => first.parse::<i64>().map_or(json!(first), Value::from),
            Some("number") => first.parse::<f64>().map_or(json!(first), Value::from),
            Some("array") => json!(given),
            _ => json!(first),
        };
        (key.clone(), value)
    });
    let content: serde_json::Map<String, Value> = content.collect();
    json!({"action": "accept", "content": content})
}

/// A form that is not filled in.
pub(super) fn declined() -> Value {
    json!({"action": "decline"})
}
