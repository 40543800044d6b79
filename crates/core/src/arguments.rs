//! The arguments of a tool call: JSON text from a model, read field by field so that an error can
//! say which argument is wrong. Lenient where models are known to be sloppy: `"true"`, `"30"`, `30.0`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::shorten::shorten;

/// Why a call cannot be run: a text for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The arguments are not JSON, perhaps because the model's answer was cut.
    #[error("{0}")]
    NotJson(String),
    /// None of the tools that other agents are given has this name.
    #[error("{0}")]
    NoTool(String),
    /// There is no such tool here, an argument does not fit, or the path is secret.
    #[error("{0}")]
    Unfit(String),
}

impl From<String> for CallError {
    fn from(why: String) -> Self {
        CallError::Unfit(why)
    }
}

/// The arguments of one call. An error is a sentence that names the argument.
#[derive(Debug, Clone)]
pub struct Arguments {
    fields: Map<String, Value>,
    /// A call that fits, shown with every error.
    example: &'static str,
}

impl Arguments {
    /// Reads the object that a call came with. Models write nothing at all where there is nothing
    /// to say.
    ///
    /// # Errors
    /// If it is not JSON, or not an object.
    pub fn read(input: &str, example: &'static str) -> Result<Self, CallError> {
        if input.trim().is_empty() {
            let fields = Map::new();
            return Ok(Self { fields, example });
        }
        match serde_json::from_str(input) {
            Ok(Value::Object(fields)) => Ok(Self { fields, example }),
            Ok(Value::Null) => Self::read("", example),
            Ok(other) => {
                let found = kind_of(&other);
                let why = "the arguments must be a JSON object, not";
                Err(format!("{why} {found}. Example: {example}").into())
            }
            Err(error) => Err(CallError::NotJson(format!(
                "the arguments are not JSON ({error}). Example: {example}"
            ))),
        }
    }

    /// All of them as people read them: names and values.
    pub fn shown(&self) -> Vec<(String, String)> {
        let shown = |(name, value): (&String, &Value)| (name.clone(), written(value));
        self.fields.iter().map(shown).collect()
    }

    /// A text that must be there.
    pub fn text(&self, name: &str) -> Result<String, String> {
        match self.optional_text(name)? {
            Some(text) => Ok(text),
            None => Err(self.wrong(name, "is missing: expected a string")),
        }
    }

    /// A text that must be there and hold something.
    pub fn filled_text(&self, name: &str) -> Result<String, String> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            return Err(self.wrong(name, "is empty"));
        }
        Ok(text)
    }

    /// A text that may be left out.
    pub fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.unfit(name, "a string", other)),
        }
    }

    /// A whole number that may be left out. Models also write numbers as strings.
    pub fn number(&self, name: &str, least: u64) -> Result<Option<u64>, String> {
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

    /// A value of any kind as text: some models write JSON where text is wanted. Empty if left out.
    pub fn any_text(&self, name: &str) -> String {
        match self.fields.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(value) => written(value),
        }
    }

    /// Whether something is said under this name.
    pub fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !value.is_null())
    }

    /// A yes or no, `false` if left out.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// A yes or no that may be left out.
    pub fn optional_flag(&self, name: &str) -> Result<Option<bool>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(Value::String(text)) if text.is_empty() => Ok(Some(false)),
            Some(other) => Err(self.unfit(name, "true or false", other)),
        }
    }

    /// One of a few words, the first if left out.
    pub fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
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
    pub fn objects(&self, name: &str) -> Result<Vec<Arguments>, String> {
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

    /// Values by their names, one or several each; none if left out. An object written as a string
    /// is read too.
    pub fn values(&self, name: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
        let expected = "an object of values by their keys";
        let fields = match self.fields.get(name) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(fields)) => fields.clone(),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => fields,
                _ => return Err(self.unfit(name, expected, &self.fields[name])),
            },
            Some(other) => return Err(self.unfit(name, expected, other)),
        };
        let several = |value: &Value| match value {
            Value::Array(values) => values.iter().map(written).collect(),
            value => vec![written(value)],
        };
        let fields = fields.into_iter();
        Ok(fields.map(|(key, value)| (key, several(&value))).collect())
    }

    /// An error about one argument.
    pub fn wrong(&self, name: &str, what: &str) -> String {
        format!("`{name}` {what}. Example: {}", self.example)
    }

    fn unfit(&self, name: &str, expected: &str, found: &Value) -> String {
        let shown = match found {
            Value::Array(_) | Value::Object(_) => kind_of(found).to_owned(),
            other => shorten(&other.to_string(), 60, "…"),
        };
        self.wrong(name, &format!("must be {expected}, not {shown}"))
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
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
