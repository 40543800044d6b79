//! The JSON Schema of `asyncagents.toml`, made from the settings there are.
//!
//! It describes how a value is best written: a number as a number. The reader takes such a value
//! as a text, too.

use serde_json::{Value as Json, json};

use super::{all_settings, settings::Config};

/// What a value looks like in a file.
pub(super) enum Shape {
    Integer,
    Boolean,
    Text,
    Duration,
    Dollars,
    Size,
    OneOf(fn() -> Vec<&'static str>),
    List,
    /// A number for each name.
    Counts,
    OrNone(&'static Shape),
    OrWord(&'static Shape, &'static str),
}

impl Shape {
    pub(super) fn schema(&self) -> Json {
        let text = json!({"type": "string"});
        match self {
            Shape::Integer => json!({"type": "integer", "minimum": 0}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Text => json!({"type": "string", "minLength": 1}),
            Shape::Duration => json!({"type": "string", "pattern": "^[0-9].*[a-z]$"}),
            Shape::Dollars => json!({"anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1e9},
                {"type": "string", "pattern": "^\\$?[0-9.]+$"},
            ]}),
            Shape::Size => json!({"anyOf": [
                {"type": "string", "pattern": "^[0-9]"},
                {"type": "integer", "minimum": 0},
            ]}),
            Shape::OneOf(words) => json!({"enum": words()}),
            Shape::List => json!({"anyOf": [{"type": "array", "items": text}, text]}),
            Shape::Counts => json!({"anyOf": [
                {"type": "object", "additionalProperties": Shape::Integer.schema()},
                text,
            ]}),
            Shape::OrWord(shape, word) => json!({"anyOf": [shape.schema(), {"const": word}]}),
            Shape::OrNone(shape) => json!({"anyOf": [shape.schema(), {"const": "none"}]}),
        }
    }
}

/// The whole schema.
pub(crate) fn schema() -> Json {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "asyncagents.toml",
        "description": "Settings of asyncagents; `asyncagents config` shows their values.",
        "type": "object",
        "additionalProperties": false,
    });
    let mut defaults = Config::defaults();
    // Where that is depends on the user.
    defaults.db.clear();
    for setting in all_settings() {
        place(&mut schema, setting.key, setting.schema(&defaults));
    }
    for (limit, value, allowed) in defaults.fork.describe() {
        place(
            &mut schema,
            &format!("fork.{limit}"),
            of_limit(&value, &allowed),
        );
    }
    let text = Shape::Text.schema();
    schema["properties"]["aliases"] = json!({
        "description": "names for models",
        "type": "object",
        "additionalProperties": text,
    });
    schema["properties"]["providers"] = json!({
        "description": "providers of models",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "base_url": {"type": "string", "pattern": "^https?://"},
                "wire": {"enum": ["anthropic", "responses", "chat"]},
                "key_env": text,
                "key_command": text,
            },
        },
    });
    let list = || Shape::List.schema();
    schema["properties"]["hosts"] = json!({
        "description": "other agents that tasks can run in",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "command": list(),
                "mode": text,
                "read_only_mode": text,
                "variables": list(),
                "servers": list(),
                "writable": list(),
                "sandbox": Shape::Boolean.schema(),
            },
        },
    });
    schema
}

/// `limits.depth` is `depth` in the table `limits`.
fn place(schema: &mut Json, key: &str, of_value: Json) {
    let Some((table, key)) = key.split_once('.') else {
        schema["properties"][key] = of_value;
        return;
    };
    let table = &mut schema["properties"][table];
    table["type"] = "object".into();
    table["additionalProperties"] = false.into();
    place(table, key, of_value);
}

/// A limit of forks. The fork itself says in words what each may be.
fn of_limit(value: &str, allowed: &str) -> Json {
    let number = |text: &str| text.replace(',', "").parse::<u64>().ok();
    let range = allowed.split_once(" to ");
    let mut schema = match range.map(|(least, most)| (number(least), number(most))) {
        Some((Some(least), Some(most))) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        _ if allowed == "true or false" => Shape::Boolean.schema(),
        _ => match allowed.split_once(" or ") {
            Some((one, other)) => json!({"enum": [one, other]}),
            None => Shape::List.schema(),
        },
    };
    schema["description"] = format!("allowed: {allowed}").into();
    schema["default"] = default(value);
    schema
}

/// A default as a file would have it, from how it is shown.
pub(super) fn default(shown: &str) -> Json {
    let plain = serde_json::from_str::<Json>(shown).ok();
    let plain = plain.filter(|plain| plain.is_number() || plain.is_boolean());
    plain.unwrap_or_else(|| shown.into())
}
