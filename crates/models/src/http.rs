//! One attempt: a request over the network, and the stream that comes back.

use std::{
    error::Error,
    io,
    net::IpAddr,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{
    Client, Response, Url,
    header::{CONTENT_TYPE, HeaderMap},
    redirect::Policy,
};
use sse_stream::SseStream;
use tokio::time::{Instant, timeout};

use crate::{
    Settings,
    answer_limits::Exceeded,
    error::{Failure, ModelError, Passing},
    judge::{Complaint, Verdict, error_in},
    request::Hear,
    retry,
    wire::{Fold, Folded, Step, Trouble},
};

/// A server that does not even take the connection in this time is not there.
const CONNECT: Duration = Duration::from_secs(30);
/// How long to wait for the token count of an answer that is complete.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// An event that has no end by then will have none. The last event of an answer may repeat all
/// of it, and the instructions too.
const LONGEST_EVENT: usize = 32 * 1024 * 1024;
/// An error text is not longer than this.
const LONGEST_ERROR: usize = 64 * 1024;

/// The connections. Each kind is set up when it is needed first.
#[derive(Default)]
pub(crate) struct Http {
    clients: [OnceLock<Client>; 4],
}

/// What is sent.
pub(crate) struct Sending<'a> {
    pub(crate) provider: &'a str,
    pub(crate) url: &'a Url,
    /// The address as it may be shown.
    pub(crate) shown: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) silence: Duration,
    /// What to check when the key is not accepted.
    pub(crate) key_hint: String,
}

impl Http {
    /// Sends the request and listens to the end.
    pub(crate) async fn ask(
        &self,
        sending: Sending<'_>,
        fold: Box<dyn Fold>,
        hear: Hear<'_>,
    ) -> Result<Folded, Failure> {
        let client = self.client(sending.url).map_err(|error| {
            Failure::Final(ModelError::Settings {
                what: "the HTTP client".to_owned(),
                why: cause(error),
            })
        })?;
        let request = client
            .post(sending.url.clone())
            .headers(sending.headers.clone())
            .body(sending.body.clone());
        let response = timeout(sending.silence, request.send())
            .await
            .map_err(|_| silent(sending.silence))?
            .map_err(unreachable)?;
        let response = accepted(response, &sending).await?;
        listen(response, sending.silence, fold, hear)
            .await
            .map_err(|trouble| match trouble {
                Heeded::Failure(failure) => failure,
                Heeded::Complaint(complaint) => judged(&complaint, None, &sending),
                Heeded::Exceeded(exceeded) => Failure::Final(too_long(exceeded, &sending)),
                // It may have thought all the time; to ask again would pay for that again.
                Heeded::Idle(time) => Failure::Final(ModelError::Broken {
                    provider: sending.provider.to_owned(),
                    attempts: 1,
                    why: format!(
                        "nothing but keep-alives came for {} s; `models.silence` says how long that \
                         may be",
                        time.as_secs_f32()
                    ),
                }),
            })
    }

    /// Reading the system's certificates takes time, so it is done only for `https`. A proxy
    /// is never asked for this machine.
    fn client(&self, url: &Url) -> reqwest::Result<&Client> {
        let (secure, here) = (url.scheme() == "https", is_loopback(url));
        let [far, near, far_secure, near_secure] = &self.clients;
        let slot = match (secure, here) {
            (false, false) => far,
            (false, true) => near,
            (true, false) => far_secure,
            (true, true) => near_secure,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        // A redirect could carry the key to a stranger.
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .redirect(Policy::none())
            .user_agent(concat!("asyncagents/", env!("CARGO_PKG_VERSION")));
        if here {
            builder = builder.no_proxy();
        }
        if !secure {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build()?;
        Ok(slot.get_or_init(|| client))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The response, if it is a stream.
async fn accepted(response: Response, sending: &Sending<'_>) -> Result<Response, Failure> {
    let status = response.status().as_u16();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let is = |page: &str| kind.starts_with(page);
    let streams = !is("text/html") && !is("application/json");
    if status == 200 && streams {
        return Ok(response);
    }
    let wait = retry::asked_for(response.headers(), SystemTime::now());
    let text = error_text(response, sending.silence).await;
    if status != 200 {
        return Err(judged(
            &Complaint::with_status(status, &text),
            wait,
            sending,
        ));
    }
    // Some servers put errors into a page that says that all is well.
    let json = serde_json::from_str::<serde_json::Value>(&text).ok();
    match json.filter(|json| error_in(json).is_some()) {
        Some(json) => Err(judged(&Complaint::in_stream(&json), wait, sending)),
        None => Err(Failure::Final(ModelError::Refused {
            provider: sending.provider.to_owned(),
            status,
            message: format!("it answers with {kind}, not with a stream of events"),
            hint: Some(format!("is {} the right address?", sending.shown)),
        })),
    }
}

async fn error_text(mut response: Response, silence: Duration) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < LONGEST_ERROR
            && let Ok(Some(more)) = response.chunk().await
        {
            bytes.extend_from_slice(&more);
        }
    };
    // Half an error says more than none.
    let _ = timeout(silence, read).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a complaint means for this attempt.
fn judged(complaint: &Complaint, after: Option<Duration>, sending: &Sending<'_>) -> Failure {
    let why = complaint.text();
    let after = after.or_else(|| complaint.asks_for());
    match complaint.verdict() {
        Verdict::TooLong => Failure::Final(ModelError::TooLong {
            message: complaint.message.clone(),
        }),
        Verdict::Limited => Failure::Limited { why, after },
        Verdict::Passing => Failure::Passing {
            kind: Passing::Overloaded,
            why,
            after,
        },
        Verdict::Refused => {
            let status = complaint.status.unwrap_or(200);
            let hint = match status {
                401 | 403 => Some(sending.key_hint.clone()),
                300..=399 => Some(format!("is {} the right address?", sending.shown)),
                _ => None,
            };
            Failure::Final(ModelError::Refused {
                provider: sending.provider.to_owned(),
                status,
                message: complaint.message.clone(),
                hint,
            })
        }
    }
}

fn too_long(exceeded: Exceeded, sending: &Sending<'_>) -> ModelError {
    let provider = sending.provider.to_owned();
    let (what, limit, setting) = match exceeded {
        Exceeded::Answer { limit } => ("it is longer", limit, "models.max_answer"),
        Exceeded::Arguments { limit } => {
            let what = "the arguments of one call are longer";
            (what, limit, "models.max_arguments")
        }
    };
    ModelError::AnswerTooLong {
        provider,
        what,
        limit,
        setting,
    }
}

enum Heeded {
    Failure(Failure),
    Complaint(Complaint),
    Exceeded(Exceeded),
    /// Nothing that counts came for this long.
    Idle(Duration),
}

/// Folds the events of a stream into an answer.
async fn listen(
    response: Response,
    silence: Duration,
    mut fold: Box<dyn Fold>,
    hear: Hear<'_>,
) -> Result<Folded, Heeded> {
    let mut events = Box::pin(SseStream::from_bytes_stream(unless_silent(
        response, silence,
    )));
    let with_keep_alives = silence.saturating_mul(Settings::KEEP_ALIVES);
    // When something came that is part of the answer: keep-alives could come for ever.
    let mut progress = Instant::now();
    loop {
        let (whole, size) = (fold.is_whole(), fold.size());
        // Some servers leave the stream open after the last thing that matters.
        let patience = if whole { AFTERWARDS } else { with_keep_alives };
        let patience = patience.saturating_sub(progress.elapsed());
        let data = match timeout(patience, events.next()).await {
            Ok(Some(Ok(event))) => event.data.unwrap_or_default(),
            Ok(Some(Err(_)) | None) | Err(_) if whole => return Ok(fold.folded()),
            Ok(Some(Err(error))) => return Err(Heeded::Failure(Failure::broken(broken(error)))),
            Ok(None) => {
                let why = "the stream ended too early";
                return Err(Heeded::Failure(Failure::broken(why)));
            }
            Err(_) => return Err(Heeded::Idle(with_keep_alives)),
        };
        if data.is_empty() {
            continue;
        }
        match fold.event(&data, hear) {
            Ok(Step::More) => {}
            Ok(Step::Done) => return Ok(fold.folded()),
            Err(Trouble::Malformed(why)) => return Err(Heeded::Failure(Failure::broken(why))),
            Err(Trouble::Complaint(complaint)) => return Err(Heeded::Complaint(complaint)),
            Err(Trouble::Exceeded(exceeded)) => return Err(Heeded::Exceeded(exceeded)),
        }
        if fold.size() > size || fold.is_whole() != whole {
            progress = Instant::now();
        }
    }
}

/// The bytes of a response; a long silence is an error, and an event without end is one too.
/// Comments count as bytes here, though they are no events.
fn unless_silent(
    response: Response,
    silence: Duration,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(
        Some((response.bytes_stream().boxed(), LastEvent::default())),
        move |state| async move {
            let (mut bytes, event) = state?;
            match timeout(silence, bytes.next()).await {
                Ok(Some(Ok(chunk))) => match event.and(&chunk) {
                    event if event.bytes > LONGEST_EVENT => {
                        let why = "an event of the stream does not end";
                        Some((Err(io::Error::other(why)), None))
                    }
                    event => Some((Ok(chunk), Some((bytes, event)))),
                },
                Ok(Some(Err(error))) => Some((Err(io::Error::other(cause(error))), None)),
                Ok(None) => None,
                Err(_) => Some((Err(io::Error::other(no_byte(silence))), None)),
            }
        },
    )
}

/// The event at the end of a stream: the lines since the last empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastEvent {
    bytes: usize,
    line_is_empty: bool,
    /// `\r\n` is one end of a line.
    after_return: bool,
}

impl Default for LastEvent {
    fn default() -> Self {
        Self {
            bytes: 0,
            line_is_empty: true,
            after_return: false,
        }
    }
}

impl LastEvent {
    /// The same, now that more has come.
    fn and(mut self, chunk: &[u8]) -> Self {
        for byte in chunk {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' if self.line_is_empty => self.bytes = 0,
                b'\n' | b'\r' => self.line_is_empty = true,
                _ => {
                    self.line_is_empty = false;
                    self.bytes += 1;
                }
            }
        }
        self
    }
}

fn no_byte(silence: Duration) -> String {
    format!("nothing came for {} s", silence.as_secs_f32())
}

fn silent(silence: Duration) -> Failure {
    Failure::broken(no_byte(silence))
}

fn broken(error: sse_stream::Error) -> String {
    match error {
        sse_stream::Error::Body(error) => root(&*error),
        other => format!("the stream is malformed: {other}"),
    }
}

fn unreachable(error: reqwest::Error) -> Failure {
    let kind = if error.is_connect() {
        Passing::Unreachable
    } else {
        Passing::Broken
    };
    Failure::Passing {
        kind,
        why: cause(error),
        after: None,
    }
}

/// What lies at the bottom of an error, without the address, which may hold secrets.
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
