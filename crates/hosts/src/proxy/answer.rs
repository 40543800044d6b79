//! What the proxy itself answers: sentences.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, PROXY_AUTHENTICATE},
};

pub(super) type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// A sentence.
pub(super) fn says(status: StatusCode, sentence: &str) -> Answer {
    let sentence = Full::from(format!("{sentence}\n"));
    let mut answer = Response::new(sentence.map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, text);
    answer
}

/// To somebody who has not the login.
pub(super) fn unknown() -> Answer {
    let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    let mut answer = says(status, "asyncagents: this proxy is for one agent only");
    let how = HeaderValue::from_static("Basic realm=\"asyncagents\"");
    answer.headers_mut().insert(PROXY_AUTHENTICATE, how);
    answer
}

/// Nothing but that a connection is there.
pub(super) fn connected() -> Answer {
    Response::new(Full::default().map_err(|never| match never {}).boxed())
}
