//! One question with all its attempts: retries, other keys, fields left out.

use std::time::Duration;

use asyncagents_core::secret::Secret;
use bytes::Bytes;
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    answer_limits::AnswerLimits,
    error::{Failure, ModelError, TransientKind},
    http::Sending,
    key::{KeySource, Redactor},
    provider_error::shortened,
    rate_limit::{KEEP_ALIVE, Permit},
    request::{AnswerEvent, OnEvent},
    retry,
    service::Service,
    settings::Provider,
    wire::{Folded, Question, Wire},
};

/// One question with all its attempts.
pub(crate) struct Asking<'a> {
    service: &'a Service,
    question: Question<'a>,
    body: Bytes,
    key: Option<Secret>,
    /// A key command was run again for this question.
    key_renewed: bool,
    headers: HeaderMap,
    redactor: Redactor,
    attempts: u32,
}

impl<'a> Asking<'a> {
    pub(crate) async fn new(
        service: &'a Service,
        question: Question<'a>,
    ) -> Result<Self, ModelError> {
        let key = service.key(None).await?;
        Ok(Self {
            service,
            headers: headers(&service.provider, key.as_ref())?,
            redactor: redactor(&service.provider, &service.url, key.as_ref()),
            body: body(service, &question)?,
            question,
            key,
            key_renewed: false,
            attempts: 0,
        })
    }

    /// The answer, and how many bytes the request had.
    pub(crate) async fn until_answered(
        mut self,
        on_event: OnEvent<'_>,
    ) -> Result<(Folded, u64), ModelError> {
        let rate_limit = &self.service.rate_limit;
        let mut ticket = rate_limit.ticket();
        let mut announced = false;
        loop {
            let permit = rate_limit.enter(ticket, announced, on_event).await;
            self.attempts += 1;
            match self.attempt(on_event).await {
                Ok(folded) => {
                    permit.succeeded();
                    return Ok((folded, self.body.len() as u64));
                }
                Err(failure) => {
                    if self.adapted(&failure).await? {
                        continue;
                    }
                    announced = self.wait(failure, permit, on_event).await?;
                    if announced {
                        // Under a long rate limit all requests take turns, so that no single one
                        // uses up all its attempts.
                        ticket = rate_limit.ticket();
                    }
                }
            }
        }
    }

    async fn attempt(&self, on_event: OnEvent<'_>) -> Result<Folded, Failure> {
        let (service, settings) = (self.service, &self.service.shared.settings);
        let sending = Sending {
            provider: &service.provider.name,
            url: &service.url,
            shown: &service.shown,
            headers: self.headers.clone(),
            body: self.body.clone(),
            idle_timeout: settings.idle_timeout,
            key_hint: service.provider.key.hint(),
        };
        let limits = AnswerLimits {
            answer: settings.max_answer,
            arguments: settings.max_arguments,
        };
        let wire = service.provider.wire;
        let fold = wire.fold(&self.question, self.body.len(), limits);
        let folded = service.shared.http.ask(sending, fold, on_event).await?;
        Ok(folded.with_distinct_ids(self.question.request.turns.len()))
    }

    /// Changes what the provider refuses, if that can be changed: then the request is sent again.
    async fn adapted(&mut self, failure: &Failure) -> Result<bool, ModelError> {
        let Failure::Permanent(ModelError::Refused {
            status, message, ..
        }) = failure
        else {
            return Ok(false);
        };
        match status {
            400 | 422 => self.without_what_is_named(message),
            401 | 403 => self.with_another_key().await,
            _ => Ok(false),
        }
    }

    fn without_what_is_named(&mut self, refusal: &str) -> Result<bool, ModelError> {
        let (refusals, model) = (&self.service.refusals, self.question.model);
        self.question.unwanted = refusals.after(model, refusal);
        let body = body(self.service, &self.question)?;
        let is_new = body != self.body;
        self.body = body;
        Ok(is_new)
    }

    /// Keys from a command expire.
    async fn with_another_key(&mut self) -> Result<bool, ModelError> {
        let provider = &self.service.provider;
        if self.key_renewed || !matches!(provider.key, KeySource::Command(_)) {
            return Ok(false);
        }
        self.key_renewed = true;
        let key = self.service.key(self.key.as_ref()).await?;
        let is_new = key != self.key;
        self.headers = headers(provider, key.as_ref())?;
        if let Some(key) = &key {
            self.redactor.hide(key.clone());
        }
        self.key = key;
        Ok(is_new)
    }

    /// Waits before the next attempt, or gives up. Tells whether the rate limit does the waiting.
    async fn wait(
        &self,
        failure: Failure,
        permit: Permit,
        on_event: OnEvent<'_>,
    ) -> Result<bool, ModelError> {
        let (kind, why, retry_after) = match failure {
            Failure::Permanent(error) => return Err(self.redacted(error)),
            Failure::Transient { kind, why, after } => (kind, self.shown(&why), after),
        };
        let settings = &self.service.shared.settings;
        let too_long = retry_after.filter(|wait| *wait > settings.longest_wait);
        let limited = kind == TransientKind::RateLimited;
        // A retry at once would hit the same limit again.
        let least = if limited { 0.5 } else { 0.0 };
        let luck = least + fastrand::f64() * (1.0 - least);
        // Some servers ask for no wait at all, again and again.
        let backoff = retry::backoff(self.attempts, luck);
        let after = retry_after.unwrap_or_default().max(backoff);
        if limited && too_long.is_none() {
            permit.limited(after, &why);
        } else {
            drop(permit);
        }
        if let Some(wait) = too_long {
            let why = format!("{why}; it asks for a wait of {} s", wait.as_secs());
            return Err(self.given_up(TransientKind::Overloaded, why));
        }
        if self.attempts >= self.most_attempts(kind) {
            return Err(self.given_up(kind, why));
        }
        let provider = &self.service.provider.name;
        tracing::debug!(%provider, attempts = self.attempts, ?after, %why, "attempt failed, retrying");
        let why = format!("{provider}: {why}");
        on_event(AnswerEvent::Retry { why, after });
        if !limited {
            sleep_alive(after, on_event).await;
        }
        Ok(limited)
    }

    /// A server on this machine that is down will not be up in a minute either.
    fn most_attempts(&self, kind: TransientKind) -> u32 {
        let most = self.service.shared.settings.attempts;
        if kind == TransientKind::Unreachable && asyncagents_http::is_loopback(&self.service.url) {
            most.min(2)
        } else {
            most
        }
    }

    fn given_up(&self, kind: TransientKind, why: String) -> ModelError {
        let provider = self.service.provider.name.clone();
        let attempts = self.attempts;
        match kind {
            TransientKind::RateLimited | TransientKind::Overloaded => ModelError::Overloaded {
                provider,
                attempts,
                why,
            },
            TransientKind::Broken => ModelError::Broken {
                provider,
                attempts,
                why,
            },
            TransientKind::Unreachable => ModelError::Unreachable {
                provider,
                url: self.service.shown.clone(),
                why,
            },
        }
    }

    /// The provider's words may quote the key, and half a key is too much.
    fn shown(&self, text: &str) -> String {
        shortened(self.redactor.clean(text))
    }

    fn redacted(&self, mut error: ModelError) -> ModelError {
        if let ModelError::Refused { message, .. } | ModelError::TooLong { message } = &mut error {
            *message = self.shown(message);
        }
        error
    }
}

async fn sleep_alive(wait: Duration, on_event: OnEvent<'_>) {
    let mut left = wait;
    while left > KEEP_ALIVE {
        tokio::time::sleep(KEEP_ALIVE).await;
        on_event(AnswerEvent::KeepAlive);
        left -= KEEP_ALIVE;
    }
    tokio::time::sleep(left).await;
}

fn body(service: &Service, question: &Question<'_>) -> Result<Bytes, ModelError> {
    let body = service.provider.wire.body(question);
    body.map(Bytes::from)
        .map_err(|error| ModelError::settings("the request", error))
}

/// The usual headers with the user's own over them.
fn headers(provider: &Provider, key: Option<&Secret>) -> Result<HeaderMap, ModelError> {
    let wrong = |what: &str| {
        let what = format!("{what} of provider {}", provider.name);
        ModelError::settings(what, "it has characters that cannot be sent")
    };
    let sensitive = |value: &str, what: &str| {
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong(what))?;
        value.set_sensitive(true);
        Ok::<_, ModelError>(value)
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if provider.wire == Wire::Anthropic {
        let version = HeaderValue::from_static("2023-06-01");
        headers.insert("anthropic-version", version);
    }
    if let Some(key) = key.map(Secret::reveal) {
        let (name, value) = match provider.wire {
            Wire::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Wire::Responses | Wire::Chat => (AUTHORIZATION, format!("Bearer {key}")),
        };
        headers.insert(name, sensitive(&value, "the key")?);
    }
    for (name, value) in &provider.headers {
        let what = format!("header {name}");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(&what))?;
        headers.insert(name, sensitive(value, &what)?);
    }
    Ok(headers)
}

/// Hides everything secret in a request to a provider.
fn redactor(provider: &Provider, url: &Url, key: Option<&Secret>) -> Redactor {
    let headers = provider.headers.iter();
    let headers = headers.map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
    let queries = url.query_pairs().map(|(_, value)| Secret::new(value));
    let mut redactor = Redactor::default();
    let secrets = headers
        .chain(url.password())
        .map(Secret::new)
        .chain(queries);
    secrets
        .chain(key.cloned())
        .for_each(|secret| redactor.hide(secret));
    redactor
}
