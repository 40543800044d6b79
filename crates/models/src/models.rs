//! Finds models by name.

use std::{fmt, sync::Arc};

use crate::{
    asking::Asking,
    error::ModelError,
    http::Http,
    key::KeySource,
    overview::{KeyState, ProviderOverview},
    price::{Figures, Prices},
    request::{AnswerEvent, Request},
    service::{Service, Shared},
    settings::{Settings, catalog},
    wire::{Folded, Question},
};
use asyncagents_core::{
    agent::{Answer, Effort, Usage},
    budget::Cost,
    id::ModelName,
};

/// The models of a configuration. A clone is the same.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    services: Vec<Arc<Service>>,
    prices: Prices,
    shared: Arc<Shared>,
}

/// A model that can be asked. A clone is the same.
#[derive(Clone)]
pub struct Model {
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

    /// With keys from another environment.
    pub fn with_environment(
        settings: Settings,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let prices = Prices::with(settings.prices.as_deref())?;
        let shared = Arc::new(Shared {
            settings,
            http: Http::default(),
            environment: Box::new(environment),
        });
        let mut services: Vec<Arc<Service>> = Vec::new();
        for provider in &shared.settings.providers {
            let service = Arc::new(Service::new(provider.clone(), &shared)?);
            let same = |other: &&mut Arc<Service>| other.provider.name == provider.name;
            match services.iter_mut().find(same) {
                Some(earlier) => *earlier = service,
                None => services.push(service),
            }
        }
        Ok(Self(Arc::new(Inner {
            services,
            prices,
            shared,
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
            service: Arc::clone(service),
            name: format!("{}/{model}", provider.name).into(),
            model: model.to_owned(),
            figures: self.0.prices.figures(&provider.name, model, router),
        })
    }

    /// What tokens cost of a model that another agent asks, by its full name: its provider may be none
    /// that is asked here. None if the price is unknown.
    pub fn cost_elsewhere(&self, name: &str, usage: Usage) -> Option<Cost> {
        if let Ok(known) = self.resolve(name) {
            return known.cost(usage);
        }
        let (provider, model) = name.split_once('/')?;
        self.0.prices.listed(provider, model)?.cost(usage)
    }

    /// Checks the name and the key of a model, without a request.
    pub fn check(&self, name: &str) -> Result<(), ModelError> {
        self.resolve(name)?.service.plain_key().map(drop)
    }

    /// The model to use when none is chosen: of the first provider that has a key.
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
                    if self.0.shared.variable(name).is_some() {
                        return Ok(model.to_owned());
                    }
                    variables.push(name.clone());
                }
            }
        }
        Err(ModelError::NoModel { variables })
    }

    /// Whether a model is asked over TLS: then the system's certificates will be needed.
    pub fn uses_tls(&self, name: &str) -> bool {
        let model = self.resolve(name);
        model.is_ok_and(|model| model.service.url.scheme() == "https")
    }

    /// All providers, for people.
    pub fn overview(&self) -> Vec<ProviderOverview> {
        let overview = |service: &Arc<Service>| ProviderOverview {
            name: service.provider.name.clone(),
            url: service.shown.clone(),
            key: match &service.provider.key {
                KeySource::None => KeyState::NotNeeded,
                KeySource::Command(_) => KeyState::Command,
                KeySource::Given(_) => KeyState::Given,
                KeySource::Env(name) | KeySource::MaybeEnv(name) => KeyState::Variable {
                    is_set: self.0.shared.variable(name).is_some(),
                    needed: matches!(service.provider.key, KeySource::Env(_)),
                    name: name.clone(),
                },
            },
        };
        self.0.services.iter().map(overview).collect()
    }

    /// The models that can be asked as far as is known: those of the tables, of providers that have
    /// a key. A provider may have more.
    pub fn known(&self) -> Vec<Model> {
        let usable = self
            .overview()
            .into_iter()
            .filter(|one| one.key.is_usable());
        let named = usable.flat_map(|one| self.0.prices.names(&one.name));
        let short = self.aliases().map(|(_, model)| model.to_owned());
        let usable = |name: String| {
            self.resolve(&name)
                .ok()
                .filter(|_| self.check(&name).is_ok())
        };
        let mut models: Vec<Model> = named.chain(short).filter_map(usable).collect();
        models.sort_by(|one, other| one.name.cmp(&other.name));
        models.dedup_by(|one, other| one.name == other.name);
        models
    }

    /// The short names, and what they stand for.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        let aliases = self.0.shared.settings.aliases.iter();
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
            match self.0.shared.settings.aliases.get(name) {
                Some(longer) => name = longer,
                None => break,
            }
        }
        name
    }

    fn only_provider_of(&self, model: &str) -> Option<&Arc<Service>> {
        let knows = |service: &&Arc<Service>| {
            self.0
                .prices
                .listed(&service.provider.name, model)
                .is_some()
        };
        let mut knowing = self.0.services.iter().filter(knows);
        let first = knowing.next();
        first.filter(|_| knowing.next().is_none())
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Models")
            .field(&self.0.shared.settings)
            .finish()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Model").field(&self.name.as_str()).finish()
    }
}

impl Model {
    /// Its full name: `provider/model`.
    pub fn name(&self) -> &ModelName {
        &self.name
    }

    /// How hard it can be told to think.
    pub fn efforts(&self) -> Vec<Effort> {
        let all = [Effort::Low, Effort::Medium, Effort::High];
        all.into_iter().filter(|_| self.figures.thinks()).collect()
    }

    /// Whether it is known what it costs.
    pub fn has_price(&self) -> bool {
        self.figures.has_price()
    }

    /// How many tokens a conversation may have.
    pub fn window(&self) -> u64 {
        self.figures.window()
    }

    /// How many tokens an answer may have.
    pub fn max_output(&self) -> u64 {
        self.figures.max_output()
    }

    /// What these tokens cost; none if the price is unknown.
    pub fn cost(&self, usage: Usage) -> Option<Cost> {
        self.figures.cost(usage)
    }

    /// Sends the request, with retries, until there is a whole answer. Dropping the future cancels
    /// the request.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        on_event: &mut (dyn FnMut(AnswerEvent<'_>) + Send),
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
        let asking = Asking::new(&self.service, question).await?;
        let (folded, sent) = asking.until_answered(on_event).await?;
        Ok(self.answer(folded, sent))
    }

    /// `sent` is how many bytes the request had.
    fn answer(&self, folded: Folded, sent: u64) -> Answer {
        let usage = self.plausible(folded.usage, sent);
        let cost = folded.cost.or_else(|| self.figures.cost(usage));
        Answer {
            model: self.name.clone(),
            blocks: folded.blocks,
            stop: folded.stop,
            usage,
            cost,
        }
    }

    /// The usage that a server reports, within what is possible: a request has no more tokens than
    /// bytes, and an answer no more than fit into the window.
    fn plausible(&self, reported: Usage, sent: u64) -> Usage {
        let most = self.window().max(sent);
        let usage = Usage {
            input: reported.input.min(most),
            cache_read: reported.cache_read.min(most),
            cache_write: reported.cache_write.min(most),
            output: reported.output.min(most),
        };
        if usage != reported {
            tracing::warn!(model = %self.name, ?reported, "implausible token counts, clamped");
        }
        usage
    }
}
