//! The values of a manifest's keys. Each says what it would have accepted.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::name;
use crate::agent::{Rule, rule_pieces};

/// How long a duration may be.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Text; numbers and switches are text to those who write them.
pub(super) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(on) => Ok(on.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err("expected a text".to_owned()),
    }
}

/// `true` or `false`.
pub(super) fn switch(value: &Value) -> Result<bool, String> {
    let wrong = || {
        let shown = shown(value);
        Err(format!("{shown} is refused; allowed: true or false"))
    };
    match value {
        Value::Bool(on) => Ok(*on),
        Value::String(_) | Value::Number(_) => match text(value)?.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => wrong(),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => wrong(),
    }
}

/// A whole number within bounds.
pub(super) fn number(value: &Value, least: i64, most: i64) -> Result<i64, String> {
    let number = match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let within = number.filter(|number| (least..=most).contains(number));
    within.ok_or_else(|| format!("{} is refused; allowed: {least} to {most}", shown(value)))
}

/// `500ms`, `30s`, `5m`, `1h`, or seconds.
pub(super) fn duration(value: &Value) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{} is refused; allowed: 500ms, 30s, 5m, 1h, or seconds, up to 24h",
            shown(value)
        )
    };
    let written = text(value).map_err(|_| wrong())?;
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = written.get(digits.len()..).unwrap_or_default();
    let unit_in_seconds = match unit.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number * unit_in_seconds).map_err(|_| wrong())?;
    let fits = !time.is_zero() && time <= LONGEST;
    fits.then_some(time).ok_or_else(wrong)
}

/// A list, or one text split at blanks and commas.
pub(super) fn words(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "expected a list of words, or one text".to_owned();
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| text(item).map_err(|_| wrong()));
            items.collect()
        }
        Value::String(line) => Ok(rule_pieces(line)),
        Value::Number(_) | Value::Bool(_) => Ok(vec![text(value)?]),
        Value::Null | Value::Object(_) => Err(wrong()),
    }
}

/// Tools, as a list or as one text; patterns may hold blanks and commas.
pub(super) fn tools(value: &Value) -> Result<Vec<Rule>, String> {
    let (rules, wrong) = known_tools(value);
    wrong.into_iter().next().map_or(Ok(rules), Err)
}

/// Those of them that can be read, and what is wrong with the others.
pub(super) fn known_tools(value: &Value) -> (Vec<Rule>, Vec<String>) {
    let written = match words(value) {
        Ok(written) => written,
        Err(why) => return (Vec::new(), vec![why]),
    };
    let mut rules = Vec::new();
    let mut wrong = Vec::new();
    for rule in written.iter().filter(|rule| !rule.is_empty()) {
        match rule.parse::<Rule>() {
            Ok(rule) => rules.push(rule),
            Err(error) => wrong.push(name::seen(&error.to_string(), 200)),
        }
    }
    (rules, wrong)
}

/// Keys and texts.
pub(super) fn table(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let Value::Object(entries) = value else {
        return Err("expected keys and values".to_owned());
    };
    let entry = |(key, value): (&String, &Value)| {
        let text = text(value).unwrap_or_else(|_| value.to_string());
        (key.clone(), text)
    };
    Ok(entries.iter().map(entry).collect())
}

/// A value as it was written, more or less, in one line of few characters.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => name::seen(text, 41),
        other => name::seen(&other.to_string(), 41),
    };
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default().trim_end()),
        None => format!("`{text}`"),
    }
}
