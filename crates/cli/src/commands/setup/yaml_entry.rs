//! One entry of a list in a YAML file of another program, which goose writes itself, in block style.

use serde_json::{Map, Value, json};

use super::json_entries::NotEdited;

const OTHER_STYLE: NotEdited = NotEdited("is not written as goose writes it");

/// The text with this entry in the list. Its fields are JSON, which is YAML too.
pub(super) fn set(text: &str, list: &str, name: &str, entry: &Value) -> Result<String, NotEdited> {
    let edited = with(text, list, name, entry)?;
    let is_there = |servers: &mut Map<String, Value>| {
        servers.insert(name.to_owned(), entry.clone());
    };
    unless_more_changed(text, edited, list, is_there)
}

fn with(text: &str, list: &str, name: &str, entry: &Value) -> Result<String, NotEdited> {
    let mut lines = without(text, list, name)?;
    let mut block = vec![format!("  {name}:")];
    let fields = entry.as_object().into_iter().flatten();
    block.extend(fields.map(|(key, value)| format!("    {key}: {value}")));
    match lines
        .iter()
        .position(|line| line.trim_end() == format!("{list}:"))
    {
        Some(at) => {
            lines.splice(at + 1..=at, block);
        }
        None => {
            lines.push(format!("{list}:"));
            lines.extend(block);
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// The text without this entry in the list.
pub(super) fn remove(text: &str, list: &str, name: &str) -> Result<String, NotEdited> {
    let lines = without(text, list, name)?;
    if lines.len() == text.lines().count() {
        return Ok(text.to_owned());
    }
    let edited = lines.join("\n") + "\n";
    unless_more_changed(text, edited, list, |servers| _ = servers.remove(name))
}

/// The edited text, if this change of the list is all that it says otherwise. Lines are edited here, and
/// YAML can be written in many ways.
fn unless_more_changed(
    before: &str,
    after: String,
    list: &str,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<String, NotEdited> {
    let mut wanted = read(before)?;
    let servers = wanted.entry(list).or_insert(Value::Null);
    if servers.is_null() {
        *servers = json!({});
    }
    change(servers.as_object_mut().ok_or(OTHER_STYLE)?);
    let mut found = read(&after)?;
    if found.get(list).is_some_and(Value::is_null) {
        found.insert(list.to_owned(), json!({}));
    }
    if found == wanted {
        Ok(after)
    } else {
        Err(OTHER_STYLE)
    }
}

fn read(text: &str) -> Result<Map<String, Value>, NotEdited> {
    let read: Option<Map<String, Value>> = serde_saphyr::from_str(text).map_err(|_| OTHER_STYLE)?;
    Ok(read.unwrap_or_default())
}

fn without(text: &str, list: &str, name: &str) -> Result<Vec<String>, NotEdited> {
    let (mut in_list, mut in_entry) = (false, false);
    let mut kept = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        if !is_blank && indent == 0 {
            in_list = line.trim_end() == format!("{list}:");
            if line.starts_with(&format!("{list}:")) && !in_list || line.contains('\t') {
                return Err(OTHER_STYLE);
            }
        }
        if !is_blank && indent <= 2 {
            in_entry = in_list && line.trim_end() == format!("  {name}:");
        }
        if !in_entry {
            kept.push(line.to_owned());
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nlast: 1\n";

    #[test]
    fn a_list_in_another_style_is_left_alone() {
        let entry = json!({"cmd": "/bin/asyncagents"});
        for text in [
            "extensions:\n    developer:\n        enabled: true\n",
            "extensions:\n  # mine\n    developer:\n        enabled: true\n",
            "extensions:\n  \"asyncagents\":\n    enabled: true\n",
            "extensions:\n  developer:\n    enabled: true\n  'asyncagents': {}\n",
            "extensions: {}\n",
        ] {
            let set = set(text, "extensions", "asyncagents", &entry);
            assert!(set.is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_comes_and_goes_and_the_rest_stays() {
        let entry = json!({"args": ["mcp"], "cmd": "/bin/asyncagents"});
        let with = set(WRITTEN, "extensions", "asyncagents", &entry).expect("edited");
        insta::assert_snapshot!(with, @r#"
        GOOSE_MODEL: x
        extensions:
          asyncagents:
            args: ["mcp"]
            cmd: "/bin/asyncagents"
          developer:
            enabled: true
            type: builtin
        last: 1
        "#);
        assert_eq!(
            set(&with, "extensions", "asyncagents", &entry).as_ref(),
            Ok(&with)
        );
        assert_eq!(
            remove(&with, "extensions", "asyncagents").as_deref(),
            Ok(WRITTEN)
        );
        let made = set("", "extensions", "asyncagents", &entry).expect("edited");
        assert!(made.starts_with("extensions:\n  asyncagents:\n"), "{made}");
        assert_eq!(
            set("extensions: {}\n", "extensions", "a", &entry),
            Err(OTHER_STYLE)
        );
    }
}
