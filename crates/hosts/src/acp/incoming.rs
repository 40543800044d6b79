//! What an agent writes, as lines: only what is a message of the protocol, and no more of them than it
//! takes answers. An agent may write anything, and much of it.

use std::{borrow::Cow, io, sync::Arc};

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;
use tokio::{io::AsyncRead, sync::watch};

use crate::{agent::ErrorTail, lines::Lines};

/// A longer message is ignored. Pictures that an agent reads are in one.
const LONGEST: usize = 16 << 20;

/// One of more values is, too: as values it takes a hundred times the memory of its text.
const MOST_VALUES: usize = 100_000;

/// After so many lines in a row that are no messages it is no agent.
const MOST_IN_A_ROW: usize = 1_000;

/// How many answers may wait until the agent reads them.
const MOST_UNSENT: usize = 100;

/// The answers that an agent has not read yet.
#[derive(Clone)]
pub(super) struct Unsent(Arc<watch::Sender<usize>>);

impl Unsent {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more is on its way.
    pub(super) fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// A message was written.
    pub(super) fn written(&self, message: &str) {
        let beginning = message.get(..BEGINNING).unwrap_or(message);
        if !beginning.contains("\"method\":") {
            self.0.send_modify(|count| *count = count.saturating_sub(1));
        }
    }

    async fn room(&self) {
        // The sender is here.
        let mut count = self.0.subscribe();
        let _ = count.wait_for(|count| *count < MOST_UNSENT).await;
    }
}

/// So much of a message says what kind it is.
const BEGINNING: usize = 60;

/// The messages of an agent.
pub(super) struct Incoming<R> {
    lines: Lines<R>,
    unsent: Unsent,
    errors: ErrorTail,
    /// How many lines in a row were none.
    others: usize,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) fn new(output: R, unsent: Unsent, errors: ErrorTail) -> Self {
        Self {
            lines: Lines::up_to(LONGEST, output),
            unsent,
            errors,
            others: 0,
        }
    }

    /// The next message, or nothing if there will be none.
    pub(super) async fn next(&mut self) -> io::Result<Option<String>> {
        self.unsent.room().await;
        while let Some(line) = self.lines.next().await? {
            let line = String::from_utf8_lossy(&line).into_owned();
            if is_message(&line) {
                self.others = 0;
                return Ok(Some(line));
            }
            self.others += 1;
            if self.others == MOST_IN_A_ROW {
                self.errors
                    .note("it writes what is no message of the protocol");
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// Whether a line is a message that is not too large. Others would be answered one by one.
fn is_message(line: &str) -> bool {
    values(line) <= MOST_VALUES
        && serde_json::from_str::<Head<'_>>(line).is_ok_and(|head| head.is_complete())
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

/// How many values are in a text of JSON, about.
fn values(text: &str) -> usize {
    if text.len() <= MOST_VALUES {
        return 0;
    }
    let (mut count, mut in_text, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn read(text: &str) -> (Vec<String>, ErrorTail) {
        let errors = ErrorTail::default();
        let mut incoming = Incoming::new(text.as_bytes(), Unsent::new(), errors.clone());
        let mut all = Vec::new();
        while let Some(message) = incoming.next().await.expect("read") {
            all.push(message);
        }
        (all, errors)
    }

    #[tokio::test]
    async fn only_messages_come_in() {
        let messages = [
            r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"session/request_permission"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"no"}}"#,
        ];
        let others = [
            "y",
            "{",
            "[]",
            r#"{"id":{},"method":"x"}"#,
            r#"{"id":7}"#,
            r#"{"id":7,"id":8,"result":1}"#,
            r#"{"result":1}"#,
        ];
        let text: Vec<&str> = others.into_iter().chain(messages).chain(others).collect();
        let text = format!("{}\n", text.join("\n"));
        assert_eq!(read(&text).await.0, messages);
    }

    #[tokio::test]
    async fn what_never_writes_a_message_is_no_agent() {
        let (all, errors) = read(&"y\n".repeat(MOST_IN_A_ROW + 1)).await;
        assert_eq!(all, [] as [&str; 0]);
        let why = errors.explain("it has ended");
        assert!(why.contains("no message of the protocol"), "{why}");
    }

    /// A line of many values would take gigabytes; a long text with the same signs does not.
    #[tokio::test]
    async fn a_message_of_very_many_values_is_ignored() {
        let message = |value: &str| format!(r#"{{"method":"m","params":{{"of":{value}}}}}"#);
        let numbers = message(&format!("[{}0]", "0,".repeat(MOST_VALUES)));
        let text = message(&format!("\"{}\\\"\"", "{[,".repeat(MOST_VALUES)));
        let (all, _) = read(&format!("{numbers}\n{text}\n")).await;
        assert_eq!(all, [text]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_does_not_read_its_answers_is_not_heard() {
        let unsent = Unsent::new();
        let text = "{\"method\":\"m\"}\n".repeat(2);
        let mut incoming = Incoming::new(text.as_bytes(), unsent.clone(), ErrorTail::default());
        for _ in 0..MOST_UNSENT {
            unsent.add();
        }
        unsent.written(r#"{"jsonrpc":"2.0","method":"session/prompt"}"#);
        let hour = Duration::from_secs(3_600);
        assert!(timeout(hour, incoming.next()).await.is_err());
        unsent.written(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let next = timeout(hour, incoming.next()).await.expect("it is heard");
        assert!(next.expect("read").is_some());
    }
}
