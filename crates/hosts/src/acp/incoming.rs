//! Which lines are messages of the protocol.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

/// Whether what is written to an agent answers something that it has asked.
pub(super) fn is_answer(message: &str) -> bool {
    serde_json::from_str::<Head<'_>>(message).is_ok_and(|head| head.method.is_none())
}

/// A line that is a message. Others would be answered one by one. An answer that cannot be read is one all
/// the same: who has asked would wait for ever.
pub(super) fn message(line: &str) -> Option<String> {
    let head = serde_json::from_str::<Head<'_>>(line).ok()?;
    if !head.is_complete() {
        return None;
    }
    let is_readable = head.method.is_some() || Answer::is_readable(line);
    Some(match head.id {
        Some(id) if !is_readable => {
            let error = r#"{"code":-32603,"message":"its answer cannot be read"}"#;
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())
        }
        _ => line.to_owned(),
    })
}

/// An answer as the protocol has it.
#[derive(Deserialize)]
struct Answer<'l> {
    #[serde(borrow)]
    jsonrpc: Cow<'l, str>,
    #[serde(rename = "error")]
    _error: Option<AnsweredError>,
}

#[derive(Deserialize)]
struct AnsweredError {
    #[serde(rename = "code")]
    _code: i32,
    #[serde(rename = "message")]
    _message: String,
}

impl Answer<'_> {
    fn is_readable(line: &str) -> bool {
        serde_json::from_str::<Answer<'_>>(line).is_ok_and(|answer| answer.jsonrpc == "2.0")
    }
}

/// What all messages have.
#[derive(Deserialize)]
struct Head<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'l, str>>,
    #[serde(default)]
    result: Present,
    #[serde(default)]
    error: Present,
}

/// Whether there is such a field, whatever is in it.
#[derive(Default)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from)?;
        Ok(Self(true))
    }
}

impl Head<'_> {
    fn is_complete(&self) -> bool {
        let is_name = |id: &RawValue| !id.get().starts_with(['{', '[', 't', 'f']);
        let is_named = self.id.is_some_and(is_name);
        match &self.method {
            Some(_) => self.id.is_none() || is_named,
            None => is_named && (self.result.0 || self.error.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_come_in() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"session/request_permission"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"no"}}"#,
        ] {
            assert_eq!(message(line).as_deref(), Some(line));
        }
        for line in [
            "y",
            "{",
            "[]",
            r#"{"id":{},"method":"x"}"#,
            r#"{"id":7}"#,
            r#"{"id":7,"id":8,"result":1}"#,
            r#"{"result":1}"#,
        ] {
            assert_eq!(message(line), None);
        }
    }

    /// Who has asked would wait for it until the task is stalled.
    #[test]
    fn an_answer_that_cannot_be_read_is_an_error() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":99999999999,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
        ] {
            let read = message(line).expect("an answer");
            assert!(read.contains(r#""id":7,"error":{"code":-32603"#), "{read}");
        }
    }

    #[test]
    fn what_is_asked_is_no_answer() {
        assert!(is_answer(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        let id = "0f5d6f3c-3f5e-4d6b-9a51-5f2f7d1f7a10";
        for asked in [
            r#"{"jsonrpc":"2.0","method":"session/cancel"}"#.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"session/prompt","params":{{}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","params":{{"result":1}},"method":"x","id":"{id}"}}"#),
        ] {
            assert!(!is_answer(&asked), "{asked}");
        }
    }
}
