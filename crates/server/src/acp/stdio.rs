//! Standard input and output, a message on each line.

use std::{io, sync::Arc};

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{sink, stream};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::watch,
};

/// No message is longer. What is, is answered as one that cannot be read.
const LONGEST_LINE: usize = 64_000_000;

/// How many updates may wait to be written. A session that works does not wait for its client, so what
/// happens in it is kept where it is bounded.
const MOST_UNSENT: u64 = 1_000;

/// The beginning of an update, as it is written.
const UPDATE: &str = r#""method":"session/update""#;

/// Knows how many updates the client has not been sent yet.
#[derive(Clone)]
pub(super) struct Unsent(Arc<watch::Sender<u64>>);

impl Unsent {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more is on its way.
    pub(super) fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// One has left.
    pub(super) fn less(&self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }

    fn written(&self, line: &str) {
        let beginning = line.as_bytes().get(..80).unwrap_or(line.as_bytes());
        if String::from_utf8_lossy(beginning).contains(UPDATE) {
            self.less();
        }
    }

    /// Returns when there is room for more.
    pub(super) async fn room(&self) {
        // The sender is here.
        let _ = self
            .0
            .subscribe()
            .wait_for(|count| *count < MOST_UNSENT)
            .await;
    }
}

/// The client on the other end of standard input and output. `closed` is told when it has closed either.
pub(super) fn stdio(
    unsent: Unsent,
    closed: Arc<watch::Sender<bool>>,
) -> impl ConnectTo<Agent> + 'static {
    let input = (BufReader::new(tokio::io::stdin()), closed.clone());
    let lines = stream::unfold(input, |(mut input, closed)| async move {
        match next_line(&mut input).await {
            Ok(Some(line)) => Some((Ok(line), (input, closed))),
            Ok(None) => {
                closed.send_replace(true);
                None
            }
            Err(error) => Some((Err(error), (input, closed))),
        }
    });
    let output = (tokio::io::stdout(), unsent, closed);
    let written = sink::unfold(output, |mut output, line: String| async move {
        let (stdout, unsent, closed) = &mut output;
        if let Err(error) = write_line(stdout, &line).await {
            if error.kind() == io::ErrorKind::BrokenPipe {
                closed.send_replace(true);
            }
            return Err(error);
        }
        unsent.written(&line);
        Ok(output)
    });
    Lines::new(Box::pin(written), Box::pin(lines))
}

async fn write_line(output: &mut (impl AsyncWrite + Unpin), line: &str) -> io::Result<()> {
    output.write_all(line.as_bytes()).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

/// The next line that is not empty; nothing at the end. What is no text has signs in the place of it, so
/// that it is answered and not an end.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let piece = input.fill_buf().await?;
        if piece.is_empty() && line.is_empty() {
            return Ok(None);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        let is_over = end.is_some() || piece.is_empty();
        is_too_long |= line.len() + taken > LONGEST_LINE;
        if !is_too_long {
            line.extend_from_slice(&piece[..taken]);
        }
        input.consume(taken);
        if !is_over {
            continue;
        }
        if std::mem::take(&mut is_too_long) {
            return Ok(Some("(a line that is too long)".to_owned()));
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() {
            return Ok(Some(text));
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::{
        RawJsonRpcMessage, TransportFrame,
        v1::schema::{CurrentModeUpdate, SessionNotification, SessionUpdate},
    };

    use super::*;

    async fn lines(input: &[u8]) -> Vec<String> {
        let mut input = BufReader::with_capacity(4, input);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).await.expect("read") {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn empty_lines_and_bytes_that_are_no_text_end_nothing() {
        let read = lines(b"{\"a\": 1}\r\n\n  \n\xff\xfe{\nlast").await;
        assert_eq!(read, ["{\"a\": 1}", "\u{fffd}\u{fffd}{", "last"]);
    }

    /// Updates are counted by how they are written.
    #[tokio::test]
    async fn an_update_that_was_written_makes_room() {
        let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("ask"));
        let params = serde_json::to_value(SessionNotification::new("ses_1", update));
        let message =
            RawJsonRpcMessage::notification("session/update".to_owned(), params.expect("JSON"));
        let line = TransportFrame::Single(message.expect("a message")).to_json();
        let unsent = Unsent::new();
        for _ in 0..MOST_UNSENT {
            unsent.add();
        }
        let wait = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(wait, unsent.room()).await.is_err());
        unsent.written(&line.expect("JSON"));
        unsent.room().await;
    }
}
