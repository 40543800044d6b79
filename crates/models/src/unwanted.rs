//! Fields that a server refuses, though they can be done without.

use std::{collections::BTreeMap, sync::Mutex};

use asyncagents_core::lock::lock;

/// Which fields are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unwanted {
    pub(crate) stream_options: bool,
    pub(crate) reasoning_effort: bool,
    pub(crate) cache_control: bool,
}

impl Unwanted {
    /// Adds the fields that a refusal names.
    fn add(&mut self, refusal: &str) {
        self.stream_options |= refusal.contains("stream_options");
        self.reasoning_effort |= refusal.contains("reasoning_effort");
        self.cache_control |= refusal.contains("cache_control");
    }
}

/// What a provider has refused so far, by model: a router has many.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<String, Unwanted>>);

impl Refusals {
    /// Fields that are left out for this model.
    pub(crate) fn of(&self, model: &str) -> Unwanted {
        let known = lock(&self.0);
        known.get(model).copied().unwrap_or_default()
    }

    /// Fields that are left out after one more refusal.
    pub(crate) fn after(&self, model: &str, refusal: &str) -> Unwanted {
        let mut known = lock(&self.0);
        let unwanted = known.entry(model.to_owned()).or_default();
        unwanted.add(refusal);
        *unwanted
    }
}
