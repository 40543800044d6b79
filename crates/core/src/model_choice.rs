//! Which models a task may have: what its user allows, and what there is.

use crate::{
    agent::{Effort, glob::fits},
    id::ModelName,
    shorten::shorten,
    similar::edits,
};

/// What a user says about models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPolicy {
    /// What calls, skills and agents of projects may name.
    pub allowed: AllowedModels,
    /// What is asked when a model is unavailable, the first first.
    pub fallbacks: Vec<ModelName>,
}

/// The models that may be named, as patterns: `anthropic/*`. All by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedModels(Vec<String>);

impl Default for AllowedModels {
    fn default() -> Self {
        Self(vec!["*".to_owned()])
    }
}

impl AllowedModels {
    /// Those that fit one of these patterns.
    pub fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// Whether a model is one of them, by its full name.
    pub fn allows(&self, model: &ModelName) -> bool {
        self.0.iter().any(|pattern| fits(pattern, model.as_str()))
    }

    /// Whether every model is.
    pub fn is_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }
}

/// A model that a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostModel {
    /// Its full name.
    pub name: ModelName,
    /// How hard it can be told to think.
    pub efforts: Vec<Effort>,
    /// Whether nobody has asked for it but an agent's file, which may be a project's.
    pub of_agent: bool,
}

/// How many models a refusal names.
const SHOWN: usize = 8;

/// How many characters of a name are compared.
const LONGEST_NAME: usize = 200;

/// Some of the models there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownModels {
    /// Those whose names are nearest to what was asked for.
    pub nearest: Vec<ModelName>,
    /// How many there are besides.
    pub more: usize,
}

impl KnownModels {
    /// Of these, the nearest to what was asked for.
    pub fn near(asked: &str, models: impl IntoIterator<Item = ModelName>) -> Self {
        // No name is so long, and to compare megabytes takes minutes.
        let asked = shorten(asked, LONGEST_NAME, "");
        let distance = |model: &ModelName| {
            let name = model.as_str();
            let own = name.split_once('/').map_or(name, |(_, own)| own);
            edits(&asked, name).min(edits(&asked, own))
        };
        let mut all: Vec<ModelName> = models.into_iter().collect();
        all.sort_by_cached_key(|model| (distance(model), model.clone()));
        all.dedup();
        let more = all.len().saturating_sub(SHOWN);
        all.truncate(SHOWN);
        Self { nearest: all, more }
    }
}
