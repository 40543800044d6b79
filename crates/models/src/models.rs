//! Finds models by name, and asks them until they answer.

use std::{fmt, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Answer, Usage},
    budget::Cost,
    id::ModelName,
};
use bytes::Bytes;
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::sync::Mutex;

use crate::{
    answer_limits::AnswerLimits,
    error::{Failure, ModelError, Passing},
    gate::{Gate, Pass},
    http::{Http, Sending},
    judge::shortened,
    key::{KeySource, Redactor, Secret, printed_by},
    overview::{KeyState, ProviderOverview},
    price::{Figures, Prices},
    request::{Hear, Heard, Request},
    retry,
    settings::{Provider, Settings, catalog},
    unwanted::Refusals,
    wire::{Folded, Question, Wire},
};

/// The models of a configuration. A clone is the same.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    services: Vec<Arc<Service>>,
    settings: Settings,
    prices: Prices,
    http: Http,
    environment: Environment,
}

type Environment = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A provider, and what all requests to it share.
struct Service {
    provider: Provider,
    url: Url,
    shown: String,
    gate: Arc<Gate>,
    /// What the key command has printed.
    printed: Mutex<Option<Secret>>,
    refusals: Refusals,
}

/// A model that can be asked. A clone is the same.
#[derive(Clone)]
pub struct Model {
    models: Arc<Inner>,
    service: Arc<Service>,
    name: ModelName,
    /// The provider's name for it.
    model: String,
    figures: Figures,
}

impl Models {
    /// With keys from the environment of this process.
    pub fn new(settings: Settings) -> Result<Self, ModelError> {
        Self::with_environment(settings, |name| std::env::var(name).ok())
    }

    /// With keys from elsewhere.
    pub fn with_environment(
        settings: Settings,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let mut services: Vec<Arc<Service>> = Vec::new();
        for provider in &settings.providers {
            let service = Arc::new(Service::new(provider.clone())?);
            let same = |other: &&mut Arc<Service>| other.provider.name == provider.name;
            match services.iter_mut().find(same) {
                Some(earlier) => *earlier = service,
                None => services.push(service),
            }
        }
        Ok(Self(Arc::new(Inner {
            services,
            prices: Prices::with(settings.prices.as_deref())?,
            settings,
            http: Http::default(),
            environment: Box::new(environment),
        })))
    }

    /// The model with this name: a short name, `provider/model`, or a model that only one
    /// provider has. Whether there is a key shows when it is asked.
    pub fn resolve(&self, name: &str) -> Result<Model, ModelError> {
        let unknown = || ModelError::UnknownModel {
            name: name.to_owned(),
            known: self.providers(),
        };
        let full = self.unaliased(name);
        let found = match full.split_once('/') {
            Some((provider, model)) if !model.is_empty() => {
                self.service(provider).map(|service| (service, model))
            }
            Some(_) => None,
            None => self.only_provider_of(full).map(|service| (service, full)),
        };
        let (service, model) = found.ok_or_else(unknown)?;
        let provider = &service.provider;
        let router = provider.name == "openrouter"
            || (service.url.scheme() == "https" && model.contains('/'));
        Ok(Model {
            models: Arc::clone(&self.0),
            service: Arc::clone(service),
            name: format!("{}/{model}", provider.name).into(),
            model: model.to_owned(),
            figures: self.0.prices.figures(&provider.name, model, router),
        })
    }

    /// Whether this model can be asked, as far as can be told without asking it.
    pub fn check(&self, name: &str) -> Result<(), ModelError> {
        let model = self.resolve(name)?;
        match &model.service.provider.key {
            KeySource::Command(_) => Ok(()),
            KeySource::None | KeySource::Env(_) | KeySource::MaybeEnv(_) | KeySource::Given(_) => {
                self.0.plain_key(&model.service.provider).map(drop)
            }
        }
    }

    /// The model to use when nobody has chosen one: of the first provider that has a key.
    pub fn default_model(&self) -> Result<String, ModelError> {
        let mut variables = Vec::new();
        for (provider, model) in catalog::DEFAULTS {
            let Some(service) = self.service(provider) else {
                continue;
            };
            match &service.provider.key {
                KeySource::None => {}
                KeySource::Command(_) | KeySource::Given(_) => return Ok(model.to_owned()),
                KeySource::Env(name) | KeySource::MaybeEnv(name) => {
                    if self.0.variable(name).is_some() {
                        return Ok(model.to_owned());
                    }
                    variables.push(name.clone());
                }
            }
        }
        Err(ModelError::NoModel { variables })
    }

    /// Who could be asked, for people.
    pub fn overview(&self) -> Vec<ProviderOverview> {
        let overview = |service: &Arc<Service>| ProviderOverview {
            name: service.provider.name.clone(),
            url: service.shown.clone(),
            key: match &service.provider.key {
                KeySource::None => KeyState::NotNeeded,
                KeySource::Command(_) => KeyState::Command,
                KeySource::Given(_) => KeyState::Given,
                KeySource::Env(name) | KeySource::MaybeEnv(name) => KeyState::Variable {
                    is_set: self.0.variable(name).is_some(),
                    needed: matches!(service.provider.key, KeySource::Env(_)),
                    name: name.clone(),
                },
            },
        };
        self.0.services.iter().map(overview).collect()
    }

    /// The short names, and what they stand for.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        let aliases = self.0.settings.aliases.iter();
        aliases.map(|(name, model)| (name.as_str(), model.as_str()))
    }

    /// The environment variables that hold keys. Children that need no key must not see them.
    pub fn secret_variables(&self) -> Vec<String> {
        let variable = |service: &Arc<Service>| service.provider.key.variable().map(str::to_owned);
        self.0.services.iter().filter_map(variable).collect()
    }

    /// Whether a name stands for a model of the same provider as this one.
    pub fn are_of_one_provider(&self, name: &str, model: &Model) -> bool {
        let provider = |model: &Model| model.service.provider.name.clone();
        self.resolve(name)
            .is_ok_and(|named| provider(&named) == provider(model))
    }

    fn providers(&self) -> Vec<String> {
        let name = |service: &Arc<Service>| service.provider.name.clone();
        self.0.services.iter().map(name).collect()
    }

    fn service(&self, provider: &str) -> Option<&Arc<Service>> {
        let same = |service: &&Arc<Service>| service.provider.name == provider;
        self.0.services.iter().find(same)
    }

    /// A short name may stand for another one, but not forever.
    fn unaliased<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name.trim();
        for _ in 0..8 {
            match self.0.settings.aliases.get(name) {
                Some(longer) => name = longer,
                None => break,
            }
        }
        name
    }

    fn only_provider_of(&self, model: &str) -> Option<&Arc<Service>> {
        let knows = |service: &&Arc<Service>| self.0.prices.knows(&service.provider.name, model);
        let mut knowing = self.0.services.iter().filter(knows);
        let first = knowing.next();
        first.filter(|_| knowing.next().is_none())
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Models").field(&self.0.settings).finish()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Model").field(&self.name.as_str()).finish()
    }
}

impl Service {
    fn new(provider: Provider) -> Result<Self, ModelError> {
        let url = catalog::endpoint(&provider)?;
        Ok(Self {
            url,
            shown: catalog::shown(&provider.base_url),
            gate: Arc::new(Gate::default()),
            printed: Mutex::new(None),
            refusals: Refusals::default(),
            provider,
        })
    }
}

impl Inner {
    /// An empty variable is as good as none.
    fn variable(&self, name: &str) -> Option<Secret> {
        let secret = Secret::new((self.environment)(name)?);
        Some(secret).filter(|secret| !secret.reveal().is_empty())
    }

    /// A key that needs no command.
    fn plain_key(&self, provider: &Provider) -> Result<Option<Secret>, ModelError> {
        match &provider.key {
            KeySource::None | KeySource::Command(_) => Ok(None),
            KeySource::MaybeEnv(name) => Ok(self.variable(name)),
            KeySource::Given(secret) => Ok(Some(secret.clone())),
            KeySource::Env(name) => match self.variable(name) {
                Some(secret) => Ok(Some(secret)),
                None => Err(ModelError::MissingKey {
                    provider: provider.name.clone(),
                    how: format!("set {name}"),
                }),
            },
        }
    }

    /// The key. A command is run only if it has not yet printed another one than `refused`.
    async fn key(
        &self,
        service: &Service,
        refused: Option<&Secret>,
    ) -> Result<Option<Secret>, ModelError> {
        let provider = &service.provider;
        let KeySource::Command(command) = &provider.key else {
            return self.plain_key(provider);
        };
        let mut printed = service.printed.lock().await;
        if printed.is_none() || printed.as_ref() == refused {
            *printed = None;
            *printed = Some(printed_by(&provider.name, command).await?);
        }
        Ok(printed.clone())
    }
}

impl Model {
    /// Its full name: `provider/model`.
    pub fn name(&self) -> &ModelName {
        &self.name
    }

    /// Whether it is known what it costs.
    pub fn has_price(&self) -> bool {
        self.figures.priced
    }

    /// How many tokens a conversation may have.
    pub fn window(&self) -> u64 {
        self.figures.window()
    }

    /// How many tokens an answer may have.
    pub fn max_output(&self) -> u64 {
        self.figures.max_output()
    }

    /// What these tokens cost; nothing if nobody knows.
    pub fn cost(&self, usage: Usage) -> Option<Cost> {
        self.figures.cost(usage)
    }

    /// Asks, and asks again if need be, until there is a whole answer. Dropping the future
    /// cancels the request.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        hear: &mut (dyn FnMut(Heard<'_>) + Send),
    ) -> Result<Answer, ModelError> {
        let provider = &self.service.provider;
        let origin = format!("{}@{}", provider.wire, self.name);
        let question = Question {
            provider: &provider.name,
            model: &self.model,
            origin: &origin,
            figures: self.figures,
            unwanted: self.service.refusals.of(&self.model),
            request,
        };
        let key = self.models.key(&self.service, None).await?;
        let mut asking = Asking {
            model: self,
            headers: headers(provider, key.as_ref())?,
            redactor: redactor(provider, &self.service.url, key.as_ref()),
            body: self.body(&question)?,
            question,
            key,
            key_renewed: false,
            attempts: 0,
        };
        let folded = asking.until_answered(hear).await?;
        let sent = asking.body.len() as u64;
        Ok(self.answer(folded, sent))
    }

    fn body(&self, question: &Question<'_>) -> Result<Bytes, ModelError> {
        let body = self.service.provider.wire.body(question);
        body.map(Bytes::from).map_err(|error| ModelError::Settings {
            what: "the request".to_owned(),
            why: error.to_string(),
        })
    }

    /// `sent` is how many bytes the request had.
    fn answer(&self, folded: Folded, sent: u64) -> Answer {
        let usage = self.believed(folded.usage, sent);
        let cost = folded.cost.or_else(|| self.figures.cost(usage));
        Answer {
            model: self.name.clone(),
            blocks: folded.blocks,
            stop: folded.stop,
            usage,
            cost,
        }
    }

    /// What a server says that an answer has used, as far as that can be: a request has no more
    /// tokens than bytes, and an answer no more than fit into the window.
    fn believed(&self, told: Usage, sent: u64) -> Usage {
        let most = self.window().max(sent);
        let usage = Usage {
            input: told.input.min(most),
            cache_read: told.cache_read.min(most),
            cache_write: told.cache_write.min(most),
            output: told.output.min(most),
        };
        if usage != told {
            tracing::warn!(model = %self.name, ?told, "more tokens than there can be; fewer are counted");
        }
        usage
    }
}

/// One question with all its attempts.
struct Asking<'a> {
    model: &'a Model,
    question: Question<'a>,
    body: Bytes,
    key: Option<Secret>,
    /// A key command was run again for this question.
    key_renewed: bool,
    headers: HeaderMap,
    redactor: Redactor,
    attempts: u32,
}

impl Asking<'_> {
    async fn until_answered(&mut self, hear: Hear<'_>) -> Result<Folded, ModelError> {
        let gate = &self.model.service.gate;
        let mut ticket = gate.ticket();
        let mut told = false;
        loop {
            let pass = gate.enter(ticket, told, hear).await;
            self.attempts += 1;
            match self.attempt(hear).await {
                Ok(folded) => {
                    pass.succeeded();
                    return Ok(folded);
                }
                Err(failure) => {
                    if self.adapted(&failure).await? {
                        continue;
                    }
                    told = self.wait(failure, pass, hear).await?;
                    if told {
                        // In a long storm all take turns, so that nobody alone uses up all
                        // attempts.
                        ticket = gate.ticket();
                    }
                }
            }
        }
    }

    async fn attempt(&self, hear: Hear<'_>) -> Result<Folded, Failure> {
        let (service, settings) = (&self.model.service, &self.model.models.settings);
        let sending = Sending {
            provider: &service.provider.name,
            url: &service.url,
            shown: &service.shown,
            headers: self.headers.clone(),
            body: self.body.clone(),
            silence: settings.silence,
            key_hint: service.provider.key.hint(),
        };
        let limits = AnswerLimits {
            answer: settings.max_answer,
            arguments: settings.max_arguments,
        };
        let wire = service.provider.wire;
        let fold = wire.fold(&self.question, self.body.len(), limits);
        let folded = self.model.models.http.ask(sending, fold, hear).await?;
        Ok(folded.told_apart(self.question.request.turns.len()))
    }

    /// Changes what the provider refuses, if that can be changed. Then it is asked once more.
    async fn adapted(&mut self, failure: &Failure) -> Result<bool, ModelError> {
        let Failure::Final(ModelError::Refused {
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
        let model = self.model;
        self.question.unwanted = model.service.refusals.after(&model.model, refusal);
        let body = model.body(&self.question)?;
        let is_new = body != self.body;
        self.body = body;
        Ok(is_new)
    }

    /// Keys from a command expire.
    async fn with_another_key(&mut self) -> Result<bool, ModelError> {
        let (models, service) = (&self.model.models, &self.model.service);
        if self.key_renewed || !matches!(service.provider.key, KeySource::Command(_)) {
            return Ok(false);
        }
        self.key_renewed = true;
        let key = models.key(service, self.key.as_ref()).await?;
        let is_new = key != self.key;
        self.headers = headers(&service.provider, key.as_ref())?;
        if let Some(key) = &key {
            self.redactor.hide(key.clone());
        }
        self.key = key;
        Ok(is_new)
    }

    /// Waits before the next attempt, or gives up. Tells whether the wait is at the gate.
    async fn wait(&self, failure: Failure, pass: Pass, hear: Hear<'_>) -> Result<bool, ModelError> {
        let (why, asked_for) = match &failure {
            Failure::Final(error) => return Err(self.cleaned(error.clone())),
            Failure::Limited { why, after } | Failure::Passing { why, after, .. } => {
                (self.shown(why), *after)
            }
        };
        let settings = &self.model.models.settings;
        let too_long = asked_for.filter(|wait| *wait > settings.longest_wait);
        let limited = matches!(failure, Failure::Limited { .. });
        let luck = fastrand::f64();
        let luck = if limited { retry::patient(luck) } else { luck };
        // Some servers ask for no wait at all, again and again.
        let backoff = retry::backoff(self.attempts, luck);
        let after = asked_for.unwrap_or_default().max(backoff);
        if limited && too_long.is_none() {
            pass.limited(after, &why);
        } else {
            drop(pass);
        }
        if let Some(wait) = too_long {
            let why = format!("{why}; it asks for a wait of {} s", wait.as_secs());
            return Err(self.given_up(Passing::Overloaded, why));
        }
        if self.attempts >= self.most_attempts(&failure) {
            let kind = match failure {
                Failure::Passing { kind, .. } => kind,
                Failure::Final(_) | Failure::Limited { .. } => Passing::Overloaded,
            };
            return Err(self.given_up(kind, why));
        }
        let provider = &self.model.service.provider.name;
        tracing::debug!(%provider, attempts = self.attempts, ?after, %why, "asked in vain");
        let why = format!("{provider}: {why}");
        hear(Heard::Again { why, after });
        if !limited {
            sleep_alive(after, hear).await;
        }
        Ok(limited)
    }

    /// A server on this machine that is not there will not be there in a minute either.
    fn most_attempts(&self, failure: &Failure) -> u32 {
        let most = self.model.models.settings.attempts;
        let unreachable = Passing::Unreachable;
        match failure {
            Failure::Passing { kind, .. } if *kind == unreachable && self.is_local() => most.min(2),
            Failure::Passing { .. } | Failure::Limited { .. } | Failure::Final(_) => most,
        }
    }

    fn is_local(&self) -> bool {
        let host = self.model.service.url.host_str().unwrap_or_default();
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    }

    fn given_up(&self, kind: Passing, why: String) -> ModelError {
        let service = &self.model.service;
        let provider = service.provider.name.clone();
        let attempts = self.attempts;
        match kind {
            Passing::Overloaded => ModelError::Overloaded {
                provider,
                attempts,
                why,
            },
            Passing::Broken => ModelError::Broken {
                provider,
                attempts,
                why,
            },
            Passing::Unreachable => ModelError::Unreachable {
                provider,
                url: service.shown.clone(),
                why,
            },
        }
    }

    /// The provider's words may quote the key, and half a key is too much.
    fn shown(&self, text: &str) -> String {
        shortened(self.redactor.clean(text))
    }

    fn cleaned(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Refused {
                provider,
                status,
                message,
                hint,
            } => ModelError::Refused {
                provider,
                status,
                message: self.shown(&message),
                hint,
            },
            ModelError::TooLong { message } => ModelError::TooLong {
                message: self.shown(&message),
            },
            other => other,
        }
    }
}

async fn sleep_alive(wait: Duration, hear: Hear<'_>) {
    const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
    let mut left = wait;
    while left > SIGN_OF_LIFE {
        tokio::time::sleep(SIGN_OF_LIFE).await;
        hear(Heard::Alive);
        left -= SIGN_OF_LIFE;
    }
    tokio::time::sleep(left).await;
}

/// The usual headers with the user's own over them.
fn headers(provider: &Provider, key: Option<&Secret>) -> Result<HeaderMap, ModelError> {
    let wrong = |what: &str| ModelError::Settings {
        what: format!("{what} of provider {}", provider.name),
        why: "it has characters that cannot be sent".to_owned(),
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if provider.wire == Wire::Anthropic {
        let version = HeaderValue::from_static("2023-06-01");
        headers.insert("anthropic-version", version);
    }
    if let Some(key) = key {
        let (name, value) = match provider.wire {
            Wire::Anthropic => (
                HeaderName::from_static("x-api-key"),
                key.reveal().to_owned(),
            ),
            Wire::Responses | Wire::Chat => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("the key"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let what = format!("header {name}");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(&what))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong(&what))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// All that must not be shown of what goes to a provider.
fn redactor(provider: &Provider, url: &Url, key: Option<&Secret>) -> Redactor {
    let mut redactor = Redactor::default();
    if let Some(key) = key {
        redactor.hide(key.clone());
    }
    for (_, value) in &provider.headers {
        let bare = value.strip_prefix("Bearer ").unwrap_or(value);
        redactor.hide(Secret::new(bare));
    }
    if let Some(password) = url.password() {
        redactor.hide(Secret::new(password));
    }
    for (_, value) in url.query_pairs() {
        redactor.hide(Secret::new(value));
    }
    redactor
}
