//! A model that did not answer and is asked again.

use asyncagents_core::{
    id::ModelName,
    lifecycle::{Standing, Unavailable},
    moment::Moment,
};
use serde::Deserialize;

use super::wire::{self, Message, Problem};
use crate::both::{json::moment, long_wait::long_wait};

/// A model that did not answer is asked again.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Retry {
    /// When that is.
    pub(super) at: Option<f64>,
    /// What the provider said.
    pub(super) error: Option<Problem>,
}

impl Retry {
    /// What a message waits for that has no answer yet.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let retry = message.retry.clone().filter(|_| message.finish.is_none())?;
        serde_json::from_value(retry).ok()
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.at.map(moment)
    }

    /// Where a run stands, if the model is not to be asked again for a long time. OpenCode waits
    /// for that.
    pub(super) fn long_wait(&self, model: Option<ModelName>, now: Moment) -> Option<Standing> {
        let said = self.error.as_ref().map(|error| wire::reason(Some(error)));
        let why = long_wait(said.as_deref(), self.next()?, now)?;
        Some(Standing::ModelUnavailable(Unavailable {
            model,
            why,
            answer: None,
            retrying: true,
        }))
    }
}
