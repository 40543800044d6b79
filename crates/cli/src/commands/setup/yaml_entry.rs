//! One entry of a list in a YAML file of another program, which goose writes itself, in block style.

use serde_json::Value;

use super::json_entries::NotEdited;

const OTHER_STYLE: NotEdited = NotEdited("is not written as goose writes it");

/// The text with this entry in the list. Its fields are JSON, which is YAML too.
pub(super) fn set(text: &str, list: &str, name: &str, entry: &Value) -> Result<String, NotEdited> {
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
    Ok(lines.join("\n") + "\n")
}

fn without(text: &str, list: &str, name: &str) -> Result<Vec<String>, NotEdited> {
    let (mut in_list, mut in_entry) = (false, false);
    // Whether the next entry is the first of the list.
    let mut is_first = false;
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
        let is_comment = line.trim_start().starts_with('#');
        // An entry between others that are indented otherwise, or that is named in another way, would
        // change what they mean.
        let is_odd =
            in_list && !is_blank && !is_comment && (indent == 1 || is_first && indent != 2);
        let is_quoted = [format!("\"{name}\""), format!("'{name}'")]
            .iter()
            .any(|quoted| in_list && line.trim_start().starts_with(quoted));
        if (is_odd && indent != 0) || is_quoted {
            return Err(OTHER_STYLE);
        }
        if !is_blank && !is_comment {
            is_first = indent == 0 && in_list;
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
    use serde_json::json;

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
