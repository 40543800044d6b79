//! Puts what was captured into a reply.

use serde_json::Value;

/// What a rule found in the conversation.
pub(crate) type Captures = Vec<Captured>;

/// One thing found, and the name it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// `text` with every `{{NAME}}` replaced. Names that were not captured stay as they are, and so do
/// braces inside a captured value.
pub(crate) fn fill(text: &str, captures: &[Captured]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let known = after
            .split_once("}}")
            .and_then(|(name, rest)| Some((value_of(name.trim(), captures)?, rest)));
        match known {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The same for every string inside `value`, so that quotes are escaped afterwards.
pub(crate) fn fill_json(value: &Value, captures: &[Captured]) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, captures)),
        Value::Array(items) => items.iter().map(|item| fill_json(item, captures)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, item)| (key.clone(), fill_json(item, captures)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn value_of<'a>(name: &str, captures: &'a [Captured]) -> Option<&'a str> {
    let captured = captures.iter().find(|captured| captured.name == name)?;
    Some(&captured.value)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn captured(name: &str, value: &str) -> Captured {
        Captured {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    #[rstest]
    #[case::nothing_to_fill("plain", "plain")]
    #[case::one("wait for {{id}}!", "wait for t-1!")]
    #[case::with_spaces("wait for {{ id }}", "wait for t-1")]
    #[case::twice_and_another("{{id}}{{id}} {{tricky}}", "t-1t-1 {{id}}")]
    #[case::nobody_captured_it("{{unknown}} {{id}}", "{{unknown}} t-1")]
    #[case::not_closed("{{id", "{{id")]
    fn captures_fill_a_text(#[case] text: &str, #[case] filled: &str) {
        let captures = [captured("id", "t-1"), captured("tricky", "{{id}}")];
        assert_eq!(fill(text, &captures), filled);
    }

    #[test]
    fn what_is_filled_into_arguments_stays_json() {
        let captures = [captured("said", "a \"quote\"\n")];
        let filled = fill_json(&json!({"list": ["<{{said}}>", 1, null]}), &captures);
        assert_eq!(filled, json!({"list": ["<a \"quote\"\n>", 1, null]}));
    }
}
