//! One entry of a list in a JSON file of another program. Everything else of it stays as it was written.

use std::fmt;

use serde::{
    Deserialize,
    de::{self, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Why a file is not edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotEdited(pub(super) &'static str);

const NOT_JSON: NotEdited =
    NotEdited("is not plain JSON (a comment, perhaps, which would be lost)");
const NO_LIST: NotEdited = NotEdited("has something else where the servers should be");

/// The text with this entry in the list.
pub(super) fn set(text: &str, list: &str, name: &str, entry: &Value) -> Result<String, NotEdited> {
    let mut file = Fields::read(text)?;
    let mut servers = file.list(list)?;
    if servers.is(name, entry) {
        return Ok(text.to_owned());
    }
    servers.put(name, format!("{entry:#}"));
    file.put(list, servers.write());
    Ok(file.write() + "\n")
}

/// The text without this entry in the list.
pub(super) fn remove(text: &str, list: &str, name: &str) -> Result<String, NotEdited> {
    let mut file = Fields::read(text)?;
    let mut servers = file.list(list)?;
    if !servers.take(name) {
        return Ok(text.to_owned());
    }
    file.put(list, servers.write());
    Ok(file.write() + "\n")
}

/// The fields of an object in their order, each as it is written.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn read(text: &str) -> Result<Self, NotEdited> {
        if text.trim().is_empty() {
            return Ok(Self(Vec::new()));
        }
        serde_json::from_str(text).map_err(|_| NOT_JSON)
    }

    /// A field that is an object itself, or is not there yet.
    fn list(&self, name: &str) -> Result<Self, NotEdited> {
        match self.0.iter().find(|(key, _)| key == name) {
            // It was indented, and will be again.
            Some((_, text)) => serde_json::from_str(&shifted(text, false)).map_err(|_| NO_LIST),
            None => Ok(Self(Vec::new())),
        }
    }

    fn is(&self, name: &str, value: &Value) -> bool {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.is_some_and(|(_, text)| {
            serde_json::from_str::<Value>(text).is_ok_and(|it| it == *value)
        })
    }

    fn put(&mut self, name: &str, text: String) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = shifted(&text, true),
            None => self.0.push((name.to_owned(), shifted(&text, true))),
        }
    }

    fn take(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(key, _)| key != name);
        self.0.len() < before
    }

    fn write(&self) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        let lines = self
            .0
            .iter()
            .map(|(key, text)| format!("  {}: {text}", Value::from(key.as_str())));
        format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
    }
}

/// The lines after the first two blanks further in, or out. A string of JSON has no line break in it.
fn shifted(text: &str, deeper: bool) -> String {
    let mut lines = text.split('\n');
    let mut shifted = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        shifted.push('\n');
        if deeper {
            shifted.push_str("  ");
            shifted.push_str(line);
        } else {
            shifted.push_str(line.strip_prefix("  ").unwrap_or(line));
        }
    }
    shifted
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push((key, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const WRITTEN: &str = r#"{
  "zebra": [1,   2],
  "mcpServers": {
    "other": {
      "command": "x",
      "args": []
    }
  },
  "apple": "{\"a\": 1}"
}
"#;

    #[test]
    fn an_entry_comes_and_goes_and_the_rest_stays() {
        let entry = json!({"args": ["mcp"], "command": "/bin/asyncagents"});
        let with = set(WRITTEN, "mcpServers", "asyncagents", &entry).expect("edited");
        insta::assert_snapshot!(with, @r#"
        {
          "zebra": [1,   2],
          "mcpServers": {
            "other": {
              "command": "x",
              "args": []
            },
            "asyncagents": {
              "args": [
                "mcp"
              ],
              "command": "/bin/asyncagents"
            }
          },
          "apple": "{\"a\": 1}"
        }
        "#);
        let again = set(&with, "mcpServers", "asyncagents", &entry).expect("edited");
        assert_eq!(again, with);
        let without = remove(&with, "mcpServers", "asyncagents").expect("edited");
        assert_eq!(without, WRITTEN);
        assert_eq!(
            remove(WRITTEN, "mcpServers", "asyncagents"),
            Ok(WRITTEN.to_owned())
        );
    }

    #[test]
    fn what_cannot_be_kept_is_not_edited() {
        let entry = json!({});
        assert_eq!(set("{ // mine\n}", "servers", "a", &entry), Err(NOT_JSON));
        assert_eq!(set("[1]", "servers", "a", &entry), Err(NOT_JSON));
        assert_eq!(
            set(r#"{"servers": 3}"#, "servers", "a", &entry),
            Err(NO_LIST)
        );
    }

    #[test]
    fn a_file_is_made() {
        let made = set("", "servers", "a", &json!({"b": 1})).expect("edited");
        insta::assert_snapshot!(made, @r#"
        {
          "servers": {
            "a": {
              "b": 1
            }
          }
        }
        "#);
    }

    proptest! {
        #[test]
        fn nothing_else_changes(keys in prop::collection::btree_set("[a-z]{1,4}", 0..5), number: i64) {
            let object: serde_json::Map<String, Value> =
                keys.into_iter().map(|key| (key, json!({"n": [number, {"x": "\n\"  {"}]}))).collect();
            let text = format!("{:#}", Value::Object(object.clone()));
            let with = set(&text, "SERVERS", "us", &json!({"c": number})).expect("edited");
            let mut read: serde_json::Map<String, Value> = serde_json::from_str(&with).expect("JSON");
            prop_assert_eq!(read.remove("SERVERS"), Some(json!({"us": {"c": number}})));
            prop_assert_eq!(read, object);
        }
    }
}
