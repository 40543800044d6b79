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
    /// The fields that a refusal names.
    fn named_in(refusal: &str) -> Self {
        Self {
            stream_options: refusal.contains("stream_options"),
            reasoning_effort: refusal.contains("reasoning_effort"),
            cache_control: refusal.contains("cache_control"),
        }
    }

    fn and(self, more: Self) -> Self {
        Self {
            stream_options: self.stream_options || more.stream_options,
            reasoning_effort: self.reasoning_effort || more.reasoning_effort,
            cache_control: self.cache_control || more.cache_control,
        }
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
        *unwanted = unwanted.and(Unwanted::named_in(refusal));
        *unwanted
    }
}
