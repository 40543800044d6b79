//! What an agent asks: whether a tool may run, or something that it wants to know.

use asyncagents_core::{
    agent::Kind,
    question::{Field, Question, QuestionKind, Reply},
};
use serde_json::{Value, json};

use super::updates::{is_of_server, kind_of, tool_name};
use crate::agent::{Ask, Asked, AskedCall};

/// A question of `session/request_permission`. `call` is what is known of the call that it is about.
pub(super) fn permission(id: String, call: &Value, tools: Option<&str>) -> Ask {
    let tool = tool_name(call).unwrap_or_else(|| "a tool".to_owned());
    let kind = kind_of(call);
    let input = &call["rawInput"];
    let text = |name: &str| input[name].as_str();
    let path = || ["file_path", "path", "filePath"].into_iter().find_map(text);
    let places = call["locations"].as_array().into_iter().flatten();
    let mut places: Vec<&str> = places.filter_map(|place| place["path"].as_str()).collect();
    // As Codex names the files of a patch.
    let changes = input["changes"].as_object();
    places.extend(
        changes
            .into_iter()
            .flat_map(|changes| changes.keys().map(String::as_str)),
    );
    let place = || places.first().copied();
    let target = match kind {
        Some(Kind::Run) => command(input),
        Some(Kind::Read | Kind::Edit) => path().or_else(place).map(str::to_owned),
        Some(Kind::Note) | None => None,
    };
    let title = || call["title"].as_str().unwrap_or_default().to_owned();
    let target = target.unwrap_or_else(title);
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
            also: match kind {
                Some(Kind::Read | Kind::Edit) => places.iter().map(|it| (*it).to_owned()).collect(),
                Some(Kind::Run | Kind::Note) | None => Vec::new(),
            },
            tool,
            kind,
            target,
            details,
        }),
    }
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

/// A form of `elicitation/create`. Nothing if it is of another kind.
pub(super) fn form(id: String, request: &Value) -> Option<Ask> {
    if request["mode"].as_str().is_some_and(|mode| mode != "form") {
        return None;
    }
    let properties = request
        .pointer("/requestedSchema/properties")?
        .as_object()?;
    let fields = properties.iter().map(|(key, property)| Field {
        key: key.clone(),
        text: ["description", "title"]
            .iter()
            .find_map(|name| property[name].as_str())
            .unwrap_or(key)
            .to_owned(),
        options: options(property),
        custom: false,
        multiple: property["type"] == "array",
    });
    Some(Ask {
        id,
        what: Asked::Form(Question {
            text: request["message"].as_str().unwrap_or_default().to_owned(),
            kind: QuestionKind::Form(fields.collect()),
        }),
    })
}

fn options(property: &Value) -> Vec<String> {
    if property["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    let values = property["enum"]
        .as_array()
        .or(property["items"]["enum"].as_array());
    let words = values.into_iter().flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
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
