//! From an HTTP request to its response.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

use crate::{
    active_rules::ActiveRules,
    answer::{Answer, AnswerContext},
    connection::CutSwitch,
    failure::Failure,
    in_flight::{InFlight, InFlightGuard},
    prefix::PrefixCache,
    protocol::Wire,
    record::{Place, Record, Recorded},
    reply::{Content, Fault, Outcome, Reply},
    request::{Address, Request, readable},
    script::Script,
    stream,
};

const FILLER: &str = "This answer was going well for a while, and then something happened to it.";
const OVERLOADED: &str = "Overloaded";
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
const DOCUMENT: HeaderValue = HeaderValue::from_static("application/json");

/// Answers requests as the script says, and records them.
pub(crate) struct Responder {
    pub(crate) record: Record,
    pub(crate) in_flight: InFlight,
    active_rules: ActiveRules,
    cache: PrefixCache,
    answers: AtomicU64,
}

/// A request as it came.
pub(crate) struct Incoming {
    pub(crate) wire: Wire,
    pub(crate) address: Option<Address>,
    pub(crate) switch: CutSwitch,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// A request on its way to a response.
struct Exchange {
    wire: Wire,
    switch: CutSwitch,
    place: Place,
    guard: InFlightGuard,
    /// The number of the answer.
    number: u64,
}

impl Responder {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            record: Record::new(script.forget_bodies),
            in_flight: InFlight::default(),
            active_rules: ActiveRules::new(script),
            cache: PrefixCache::default(),
            answers: AtomicU64::new(0),
        }
    }

    /// Answers a request as the script wants.
    pub(crate) async fn answer(&self, incoming: Incoming) -> Response {
        let (at, guard) = (Instant::now(), self.in_flight.begin());
        // A client that broke off does not read what is said to its empty body.
        let body = to_bytes(incoming.body, usize::MAX)
            .await
            .unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let read = Request::read(incoming.wire, &body);
        let in_flight = self.in_flight.now();
        let read = read.map(|request| {
            let request = request.with_address(incoming.address);
            let request = request.with_headers(&incoming.headers);
            Arc::new(request.with_in_flight(in_flight))
        });
        let place = self.record.arrived(|| Recorded {
            wire: incoming.wire,
            body: body.into_owned(),
            headers: readable(&incoming.headers),
            status: 0,
            at,
            seen: read.as_ref().map(Arc::clone).unwrap_or_default(),
            unanswered: false,
        });
        let exchange = Exchange {
            wire: incoming.wire,
            switch: incoming.switch,
            place,
            guard,
            number: self.answers.fetch_add(1, Ordering::Relaxed) + 1,
        };
        match read {
            Ok(request) => self.play(&request, exchange).await,
            Err(failure) => self.fail(&failure, exchange),
        }
    }

    async fn play(&self, request: &Arc<Request>, exchange: Exchange) -> Response {
        let seen = self.cache.seen(request);
        let Some((reply, captures)) = self.active_rules.choose(request) else {
            self.record.unanswered(exchange.place);
            return self.fail(&no_reply(request), exchange);
        };
        if !reply.delay.is_zero() {
            tokio::time::sleep(reply.delay).await;
        }
        if let Some(gate) = &reply.gate {
            gate.opened().await;
        }
        let context = AnswerContext {
            wire: exchange.wire,
            request,
            captures: &captures,
            seen,
            number: exchange.number,
            created: seconds_since_1970(),
        };
        match &reply.outcome {
            Outcome::Status(error) => {
                let failure = Failure {
                    status: error.status,
                    code: error.code.clone(),
                    message: reply.message_or("the script says so"),
                };
                let mut response = self.fail(&failure, exchange);
                let retry_after = error.retry_after.as_deref().map(HeaderValue::from_str);
                if let Some(Ok(value)) = retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, value);
                }
                response
            }
            Outcome::Fault(Fault::Drop) => {
                exchange.switch.cut();
                Response::default()
            }
            Outcome::Fault(fault) => self.answer_with(reply, Some(*fault), &context, exchange),
            Outcome::Answer => self.answer_with(reply, None, &context, exchange),
        }
    }

    /// An answer in words and calls, damaged by `fault`.
    fn answer_with(
        &self,
        reply: &Reply,
        fault: Option<Fault>,
        context: &AnswerContext<'_>,
        exchange: Exchange,
    ) -> Response {
        let answer = Answer::new(&damaged(&reply.content, fault), context);
        let error = (fault == Some(Fault::ErrorEvent)).then(|| reply.message_or(OVERLOADED));
        let wire = exchange.wire;
        if answer.wants.stream {
            let events = match &error {
                Some(message) => wire.failing_events(&answer, message),
                None => wire.events(&answer),
            };
            return self.respond(200, EVENTS, exchange, |guard| {
                stream::of_events(events, fault, reply.pace, guard)
            });
        }
        if let Some(message) = error {
            let failure = Failure {
                status: wire.overloaded_status(),
                code: None,
                message,
            };
            return self.fail(&failure, exchange);
        }
        let document = wire.whole(&answer).to_string();
        self.respond(200, DOCUMENT, exchange, |guard| {
            stream::of_document(document, fault, guard)
        })
    }

    fn fail(&self, failure: &Failure, exchange: Exchange) -> Response {
        let document = exchange
            .wire
            .failure(failure, &exchange.request_id())
            .to_string();
        self.respond(failure.status, DOCUMENT, exchange, |_| Body::from(document))
    }

    fn respond(
        &self,
        status: u16,
        kind: HeaderValue,
        exchange: Exchange,
        body: impl FnOnce(InFlightGuard) -> Body,
    ) -> Response {
        let name = HeaderName::from_static(exchange.wire.request_id_header());
        let id = HeaderValue::from_str(&exchange.request_id());
        self.record.answered(exchange.place, status);
        let mut response = Response::new(body(exchange.guard));
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.extend(id.ok().map(|id| (name, id)));
        response
    }
}

impl Exchange {
    fn request_id(&self) -> String {
        format!("req_{:08}", self.number)
    }
}

/// What is said when this goes wrong: nothing, or something even if the script has nothing.
fn damaged(content: &Content, fault: Option<Fault>) -> Cow<'_, Content> {
    match fault {
        Some(Fault::Empty | Fault::ErrorEvent) => Cow::Owned(Content {
            usage: content.usage,
            ..Content::default()
        }),
        Some(Fault::Cut | Fault::Malformed | Fault::Hang | Fault::Drop) if content.is_empty() => {
            Cow::Owned(Content {
                text: Some(FILLER.to_owned()),
                ..content.clone()
            })
        }
        Some(Fault::Cut | Fault::Malformed | Fault::Hang | Fault::Drop) | None => {
            Cow::Borrowed(content)
        }
    }
}

fn no_reply(request: &Request) -> Failure {
    let last = request.last();
    let beginning: String = last.chars().take(120).collect();
    let dots = if beginning.len() < last.len() {
        "…"
    } else {
        ""
    };
    Failure::invalid(format!(
        "the script has no reply for turn {}, whose newest message is: {beginning}{dots}",
        request.turn
    ))
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
