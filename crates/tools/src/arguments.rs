//! The arguments of a call: JSON text from a model, read field by field so that an error can
//! say which argument is wrong.

use serde_json::{Map, Value};

/// The arguments of one call.
pub(crate) struct Arguments {
    fields: Map<String, Value>,
    /// A call that fits, shown with every error.
    example: &'static str,
}

impl Arguments {
    /// Reads the object that a call came with.
    pub(crate) fn read(input: &str, example: &'static str) -> Result<Self, String> {
        let fields = match serde_json::from_str(input) {
            Ok(Value::Object(fields)) => fields,
            Ok(other) => {
                let found = kind_of(&other);
                return Err(format!(
                    "the arguments must be a JSON object, not {found}. Example: {example}"
                ));
            }
            Err(error) => {
                return Err(format!(
                    "the arguments are not JSON ({error}). Example: {example}"
                ));
            }
        };
        Ok(Self { fields, example })
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        match self.optional_text(name)? {
            Some(text) => Ok(text),
            None => Err(self.wrong(name, "is missing: expected a string")),
        }
    }

    /// A text that must be there and hold something.
    pub(crate) fn filled_text(&self, name: &str) -> Result<String, String> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            return Err(self.wrong(name, "is empty"));
        }
        Ok(text)
    }

    /// A text that may be left out.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.unfit(name, "a string", other)),
        }
    }

    /// A whole number that may be left out. Models also write numbers as strings.
    pub(crate) fn number(&self, name: &str, least: u64) -> Result<Option<u64>, String> {
        let expected = format!("a whole number from {least}");
        let number = match self.fields.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => whole(number),
            Some(_) => None,
        };
        match number {
            Some(number) if number >= least => Ok(Some(number)),
            _ => Err(self.unfit(name, &expected, &self.fields[name])),
        }
    }

    /// A yes or no, `false` if left out.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(self.unfit(name, "true or false", other)),
        }
    }

    /// One of a few words, the first if left out.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let given = self.optional_text(name)?;
        let found = match &given {
            None => words.first(),
            Some(given) => words.iter().find(|(word, _)| word == given),
        };
        match found {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let given = Value::String(given.unwrap_or_default());
                Err(self.unfit(name, &listed(words), &given))
            }
        }
    }

    /// A list of objects that must be there. A list written as a string is read too.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Arguments>, String> {
        let expected = "a list of objects";
        let items = match self.fields.get(name) {
            None | Some(Value::Null) => {
                return Err(self.wrong(name, "is missing: expected a list of objects"));
            }
            Some(Value::Array(items)) => items.clone(),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => items,
                _ => return Err(self.unfit(name, expected, &self.fields[name])),
            },
            Some(other) => return Err(self.unfit(name, expected, other)),
        };
        let example = self.example;
        items
            .into_iter()
            .map(|item| match item {
                Value::Object(fields) => Ok(Self { fields, example }),
                other => Err(self.unfit(name, expected, &other)),
            })
            .collect()
    }

    /// An error about one argument.
    pub(crate) fn wrong(&self, name: &str, what: &str) -> String {
        format!("`{name}` {what}. Example: {}", self.example)
    }

    fn unfit(&self, name: &str, expected: &str, found: &Value) -> String {
        let shown = match found {
            Value::Array(_) | Value::Object(_) => kind_of(found).to_owned(),
            other => shortened(&other.to_string()),
        };
        self.wrong(name, &format!("must be {expected}, not {shown}"))
    }
}

fn whole(number: &serde_json::Number) -> Option<u64> {
    let from_fraction = |number: f64| {
        let fits = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        fits.then_some(number as u64)
    };
    number
        .as_u64()
        .or_else(|| number.as_f64().and_then(from_fraction))
}

fn listed<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<_> = words
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect();
    quoted.join(" or ")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
