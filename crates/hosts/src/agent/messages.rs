//! What an agent writes, as lines: only what is a message of its protocol, and no more of them than are taken in.
//! An agent may write anything, and much of it.

use std::io;

use tokio::io::AsyncRead;

use super::{ErrorTail, EventSender, Unsent};
use crate::lines::Lines;

/// A longer message is ignored. Pictures that an agent reads are in one.
const LONGEST: usize = 16 << 20;

/// One of more values is, too: as values it takes a hundred times the memory of its text.
const MOST_VALUES: usize = 100_000;

/// After so many lines in a row that are no messages it is no agent.
const MOST_IN_A_ROW: usize = 1_000;

/// The messages of an agent.
pub(crate) struct Messages<R> {
    lines: Lines<R>,
    events: EventSender,
    unsent: Unsent,
    errors: ErrorTail,
    /// How many lines in a row were none.
    others: usize,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    pub(crate) fn new(output: R, events: EventSender, unsent: Unsent, errors: ErrorTail) -> Self {
        Self {
            lines: Lines::up_to(LONGEST, output),
            events,
            unsent,
            errors,
            others: 0,
        }
    }

    /// The next line that this reads as a message, or nothing if there will be none.
    pub(crate) async fn next<T>(
        &mut self,
        read: impl Fn(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.unsent.room().await;
        self.events.room().await;
        while let Some(line) = self.lines.next().await? {
            let line = String::from_utf8_lossy(&line);
            let message = (values(&line) <= MOST_VALUES)
                .then(|| read(&line))
                .flatten();
            if message.is_some() {
                self.others = 0;
                return Ok(message);
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

    use super::{super::events, *};

    fn messages<'t>(text: &'t str, unsent: &Unsent, errors: &ErrorTail) -> Messages<&'t [u8]> {
        Messages::new(text.as_bytes(), events().0, unsent.clone(), errors.clone())
    }

    fn begins(line: &str) -> Option<String> {
        line.starts_with('{').then(|| line.to_owned())
    }

    async fn read(text: &str) -> (Vec<String>, ErrorTail) {
        let errors = ErrorTail::default();
        let mut messages = messages(text, &Unsent::new(), &errors);
        let mut all = Vec::new();
        while let Some(message) = messages.next(begins).await.expect("read") {
            all.push(message);
        }
        (all, errors)
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
        let text = "{}\n".repeat(3);
        let mut messages = messages(&text, &unsent, &ErrorTail::default());
        while timeout(Duration::ZERO, unsent.room()).await.is_ok() {
            unsent.add();
        }
        let hour = Duration::from_secs(3_600);
        assert!(timeout(hour, messages.next(begins)).await.is_err());
        unsent.written();
        let next = timeout(hour, messages.next(begins))
            .await
            .expect("it is heard");
        assert!(next.expect("read").is_some());
        // Nor is its end, unless nothing is written to it any more.
        unsent.add();
        assert!(timeout(hour, messages.next(begins)).await.is_err());
        unsent.close();
        unsent.add();
        let next = timeout(hour, messages.next(begins)).await;
        assert!(next.expect("it is heard").expect("read").is_some());
    }
}
