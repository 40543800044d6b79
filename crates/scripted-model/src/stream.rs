//! A response's body, and what goes wrong with it.

use std::{fmt::Write, io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;

use crate::{in_flight::InFlightGuard, reply::Fault, wire::Event};

/// One step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Send(Bytes),
    /// The connection breaks.
    Break,
    /// Nothing more, until the client goes.
    Silence,
}

/// The body of a stream of events, damaged by `fault`. The request is in flight to its end.
pub(crate) fn of_events(
    mut events: Vec<Event>,
    fault: Option<Fault>,
    pace: Duration,
    guard: InFlightGuard,
) -> Body {
    let middle = events.len() / 2;
    let end = match fault {
        Some(Fault::Cut) => {
            events.truncate(middle.max(1));
            Some(Step::Break)
        }
        Some(Fault::Hang) => {
            events.truncate(1);
            Some(Step::Silence)
        }
        Some(Fault::Malformed) => {
            if let Some(event) = events.get_mut(middle) {
                event.data = half(&event.data).to_owned();
            }
            None
        }
        Some(Fault::Empty | Fault::ErrorEvent | Fault::Drop) | None => None,
    };
    let mut steps = sent(&events, pace);
    steps.extend(end);
    play(steps, pace, guard)
}

/// The body of one document, damaged by `fault`.
pub(crate) fn of_document(document: String, fault: Option<Fault>, guard: InFlightGuard) -> Body {
    let steps = match fault {
        Some(Fault::Cut) => vec![send(half(&document).to_owned()), Step::Break],
        Some(Fault::Hang) => vec![Step::Silence],
        Some(Fault::Malformed) => return Body::from(half(&document).to_owned()),
        Some(Fault::Empty | Fault::ErrorEvent | Fault::Drop) | None => {
            return Body::from(document);
        }
    };
    play(steps, Duration::ZERO, guard)
}

/// Without a pace, everything is sent in one piece: a thousand clients cost less this way.
fn sent(events: &[Event], pace: Duration) -> Vec<Step> {
    if pace.is_zero() {
        return vec![send(text(events))];
    }
    let one = |event| send(text(std::slice::from_ref(event)));
    events.iter().map(one).collect()
}

fn text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        if let Some(name) = event.name {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "event: {name}");
        }
        let _ = write!(text, "data: {}\n\n", event.data);
    }
    text
}

fn send(text: String) -> Step {
    Step::Send(text.into())
}

fn play(steps: Vec<Step>, pace: Duration, guard: InFlightGuard) -> Body {
    let state = (steps.into_iter().enumerate(), guard);
    Body::from_stream(stream::unfold(
        state,
        move |(mut steps, guard)| async move {
            let (index, step) = steps.next()?;
            if index > 0 && !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            let item = match step {
                Step::Send(bytes) => Ok(bytes),
                Step::Break => {
                    // What was sent before reaches the client only if this waits once.
                    tokio::task::yield_now().await;
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                }
                Step::Silence => std::future::pending().await,
            };
            Some((item, (steps, guard)))
        },
    ))
}

fn half(text: &str) -> &str {
    text.get(..text.floor_char_boundary(text.len() / 2))
        .unwrap_or_default()
}
