//! One attempt: a request over the network, and the stream that comes back.

use std::{
    error::Error,
    io,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{
    Client, Response, Url,
    header::{CONTENT_TYPE, HeaderMap},
};
use sse_stream::SseStream;
use tokio::time::{Instant, timeout};

use crate::{
    Settings,
    answer_limits::Exceeded,
    error::{Failure, ModelError, TransientKind},
    provider_error::{ProviderError, Verdict, error_in},
    request::OnEvent,
    retry,
    wire::{Fold, Folded, Step, StreamError},
};

/// A server that does not accept the connection in this time is unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the token count of an answer that is complete.
const USAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// An event that has no end by then will have none. The last event of an answer may repeat all
/// of it, and the instructions too.
const LONGEST_EVENT: usize = 32 * 1024 * 1024;
/// An error text is not longer than this.
const LONGEST_ERROR: usize = 64 * 1024;

/// Connection pools, each set up when it is needed first.
#[derive(Default)]
pub(crate) struct Http {
    /// Without and with TLS, for other machines and for this one.
    clients: [[OnceLock<Client>; 2]; 2],
}

/// One HTTP request.
pub(crate) struct Sending<'a> {
    pub(crate) provider: &'a str,
    pub(crate) url: &'a Url,
    /// The address as it may be shown.
    pub(crate) shown: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) idle_timeout: Duration,
    /// What the user can check when the key is not accepted.
    pub(crate) key_hint: String,
}

impl Http {
    /// Sends the request and reads the stream to its end.
    pub(crate) async fn ask(
        &self,
        sending: Sending<'_>,
        fold: Box<dyn Fold>,
        on_event: OnEvent<'_>,
    ) -> Result<Folded, Failure> {
        let client = self.client(sending.url).map_err(|error| {
            Failure::Permanent(ModelError::settings("the HTTP client", cause(error)))
        })?;
        let request = client
            .post(sending.url.clone())
            .headers(sending.headers.clone())
            .body(sending.body.clone());
        let response = timeout(sending.idle_timeout, request.send())
            .await
            .map_err(|_| Failure::broken(no_byte(sending.idle_timeout)))?
            .map_err(unreachable)?;
        let response = accepted(response, &sending).await?;
        read_stream(response, &sending, fold, on_event).await
    }

    fn client(&self, url: &Url) -> reqwest::Result<&Client> {
        let (secure, here) = (url.scheme() == "https", asyncagents_http::is_loopback(url));
        let slot = &self.clients[usize::from(secure)][usize::from(here)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let client = asyncagents_http::builder(url);
        let client = client.connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(slot.get_or_init(|| client))
    }
}

/// The response, if it is a stream.
async fn accepted(response: Response, sending: &Sending<'_>) -> Result<Response, Failure> {
    let status = response.status().as_u16();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let is_page = kind.starts_with("text/html") || kind.starts_with("application/json");
    if status == 200 && !is_page {
        return Ok(response);
    }
    let wait = retry::retry_after(response.headers(), SystemTime::now());
    let text = error_text(response, sending.idle_timeout).await;
    if status != 200 {
        let error = ProviderError::with_status(status, &text);
        return Err(failure(&error, wait, sending));
    }
    // Some servers answer 200 with an error in the body.
    let json = serde_json::from_str::<serde_json::Value>(&text).ok();
    match json.filter(|json| error_in(json).is_some()) {
        Some(json) => Err(failure(&ProviderError::in_stream(&json), wait, sending)),
        None => Err(Failure::Permanent(ModelError::Refused {
            provider: sending.provider.to_owned(),
            status,
            message: format!("it answers with {kind}, not with a stream of events"),
            hint: Some(format!("is {} the right address?", sending.shown)),
        })),
    }
}

async fn error_text(mut response: Response, idle_timeout: Duration) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < LONGEST_ERROR
            && let Ok(Some(more)) = response.chunk().await
        {
            bytes.extend_from_slice(&more);
        }
    };
    // Half an error says more than none.
    let _ = timeout(idle_timeout, read).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a provider's error means for this attempt.
fn failure(error: &ProviderError, after: Option<Duration>, sending: &Sending<'_>) -> Failure {
    let transient = |kind| Failure::Transient {
        kind,
        why: error.text(),
        after: after.or_else(|| error.retry_after()),
    };
    match error.verdict() {
        Verdict::TooLong => Failure::Permanent(ModelError::TooLong {
            message: error.message.clone(),
        }),
        Verdict::RateLimited => transient(TransientKind::RateLimited),
        Verdict::Transient => transient(TransientKind::Overloaded),
        Verdict::Permanent => {
            let status = error.status.unwrap_or(200);
            let hint = match status {
                401 | 403 => Some(sending.key_hint.clone()),
                300..=399 => Some(format!("is {} the right address?", sending.shown)),
                _ => None,
            };
            Failure::Permanent(ModelError::Refused {
                provider: sending.provider.to_owned(),
                status,
                message: error.message.clone(),
                hint,
            })
        }
    }
}

fn too_long(exceeded: Exceeded, sending: &Sending<'_>) -> Failure {
    let provider = sending.provider.to_owned();
    let (what, limit, setting) = match exceeded {
        Exceeded::Answer { limit } => ("it is longer", limit, "models.max_answer"),
        Exceeded::Arguments { limit } => {
            let what = "the arguments of one call are longer";
            (what, limit, "models.max_arguments")
        }
    };
    Failure::Permanent(ModelError::AnswerTooLong {
        provider,
        what,
        limit,
        setting,
    })
}

/// The answer may have been in the making all the time; a retry would pay for that again.
fn only_keep_alives(time: Duration, sending: &Sending<'_>) -> Failure {
    let time = time.as_secs_f32();
    Failure::Permanent(ModelError::Broken {
        provider: sending.provider.to_owned(),
        attempts: 1,
        why: format!(
            "nothing but keep-alives came for {time} s; `models.silence` says how long that may be"
        ),
    })
}

/// Folds the events of a stream into an answer.
async fn read_stream(
    response: Response,
    sending: &Sending<'_>,
    mut fold: Box<dyn Fold>,
    on_event: OnEvent<'_>,
) -> Result<Folded, Failure> {
    let bytes = with_idle_timeout(response, sending.idle_timeout);
    let mut events = Box::pin(SseStream::from_bytes_stream(bytes));
    let with_keep_alives = sending.idle_timeout.saturating_mul(Settings::KEEP_ALIVES);
    // When something came that is part of the answer: keep-alives could come for ever.
    let mut progress = Instant::now();
    loop {
        let (whole, size) = (fold.is_whole(), fold.size());
        // Some servers leave the stream open after the last thing that matters.
        let most = if whole {
            USAGE_TIMEOUT
        } else {
            with_keep_alives
        };
        let left = most.saturating_sub(progress.elapsed());
        let data = match timeout(left, events.next()).await {
            Ok(Some(Ok(event))) => event.data.unwrap_or_default(),
            Ok(Some(Err(_)) | None) | Err(_) if whole => return Ok(fold.folded()),
            Ok(Some(Err(error))) => return Err(Failure::broken(broken(error))),
            Ok(None) => return Err(Failure::broken("the stream ended too early")),
            Err(_) => return Err(only_keep_alives(with_keep_alives, sending)),
        };
        if data.is_empty() {
            continue;
        }
        match fold.event(&data, on_event) {
            Ok(Step::More) => {}
            Ok(Step::Done) => return Ok(fold.folded()),
            Err(StreamError::Malformed(why)) => return Err(Failure::broken(why)),
            Err(StreamError::Provider(error)) => return Err(failure(&error, None, sending)),
            Err(StreamError::TooLong(exceeded)) => return Err(too_long(exceeded, sending)),
        }
        if fold.size() > size || fold.is_whole() != whole {
            progress = Instant::now();
        }
    }
}

/// The bytes of a response; an idle timeout is an error, and an event without end is one too.
/// Comments count as bytes here, though they are no events.
fn with_idle_timeout(
    response: Response,
    idle_timeout: Duration,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(
        Some((response.bytes_stream().boxed(), LastEvent::default())),
        move |state| async move {
            let (mut bytes, event) = state?;
            match timeout(idle_timeout, bytes.next()).await {
                Ok(Some(Ok(chunk))) => match event.and(&chunk) {
                    event if event.bytes > LONGEST_EVENT => {
                        let why = "an event of the stream does not end";
                        Some((Err(io::Error::other(why)), None))
                    }
                    event => Some((Ok(chunk), Some((bytes, event)))),
                },
                Ok(Some(Err(error))) => Some((Err(io::Error::other(cause(error))), None)),
                Ok(None) => None,
                Err(_) => Some((Err(io::Error::other(no_byte(idle_timeout))), None)),
            }
        },
    )
}

/// The event at the end of a stream: the lines since the last empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LastEvent {
    bytes: usize,
    /// Whether the last line has bytes.
    in_line: bool,
    /// `\r\n` is one end of a line.
    after_return: bool,
}

impl LastEvent {
    /// Adds the bytes of a chunk.
    fn and(mut self, chunk: &[u8]) -> Self {
        for byte in chunk {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' if self.in_line => self.in_line = false,
                b'\n' | b'\r' => self.bytes = 0,
                _ => {
                    self.in_line = true;
                    self.bytes += 1;
                }
            }
        }
        self
    }
}

fn no_byte(idle_timeout: Duration) -> String {
    format!("nothing came for {} s", idle_timeout.as_secs_f32())
}

fn broken(error: sse_stream::Error) -> String {
    match error {
        sse_stream::Error::Body(error) => root(&*error),
        other => format!("the stream is malformed: {other}"),
    }
}

fn unreachable(error: reqwest::Error) -> Failure {
    let kind = if error.is_connect() {
        TransientKind::Unreachable
    } else {
        TransientKind::Broken
    };
    Failure::Transient {
        kind,
        why: cause(error),
        after: None,
    }
}

/// The root cause of an error, without the address, which may hold secrets.
fn cause(error: reqwest::Error) -> String {
    root(&error.without_url())
}

fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::LastEvent;

    #[rstest]
    #[case::one_line(&["data: x"], 7)]
    #[case::lines_of_one_event(&["data: x\nda", "ta: y\n"], 14)]
    #[case::an_empty_line_ends_it(&["data: x\n\n: y"], 3)]
    #[case::with_returns(&["data: x\r\n\r\n: y"], 3)]
    #[case::with_returns_alone(&["data: x\r\r: y"], 3)]
    #[case::cut_within_an_end(&["data: x\r", "\n\r", "\n: y"], 3)]
    #[case::one_end_is_not_two(&["data: x\r\n: y"], 10)]
    fn an_event_is_as_long_as_its_lines(#[case] chunks: &[&str], #[case] bytes: usize) {
        let and = |event: LastEvent, chunk: &&str| event.and(chunk.as_bytes());
        let event = chunks.iter().fold(LastEvent::default(), and);
        assert_eq!(event.bytes, bytes);
    }
}
