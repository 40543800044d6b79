//! Another model goes on when one is unavailable. That is an entry of the session, so that the
//! next driver goes on with the same one.

use asyncagents_core::{
    agent::{End, Entry},
    fallback::{Fallback, none_left},
    id::ModelName,
    port::SessionEvent,
    progress::Observation,
};
use asyncagents_models::ModelError;

use super::{Driven, Driver};
use crate::{Live, choose_model::next_model};

impl Driver {
    /// The model gave no answer: the next one is asked if it is unavailable, else the run is over.
    pub(super) async fn model_failed(&mut self, error: &ModelError) -> Driven {
        let Some(run) = self.conversation.run().filter(|_| error.is_unavailable()) else {
            return self.not_answered(error.to_string()).await;
        };
        let from = self.model_name();
        let froms = run.fallbacks.iter().filter_map(|one| one.from.as_ref());
        let tried: Vec<&ModelName> = froms
            .chain(run.fallbacks.iter().map(|one| &one.to))
            .chain([&from])
            .collect();
        let why = error.to_string();
        let to = match next_model(&self.shared, &tried, self.effort) {
            Ok(to) => to,
            Err(skipped) => {
                let why = none_left(&run.fallbacks, (Some(&from), &why), &skipped);
                return self.not_answered(why).await;
            }
        };
        tracing::warn!(session = %self.session.id, %from, %to, why, "model unavailable, falling back");
        let fallback = Fallback::new(Some(from), to, &why);
        self.show(Live::Retrying(fallback.to_string()));
        self.save(vec![Entry::FellBack(fallback)]).await?;
        self.report_fallbacks();
        Ok(())
    }

    /// Ends a run whose model cannot be asked. One that was only to sum up has ended at its limit.
    async fn not_answered(&mut self, error: String) -> Driven {
        let run = self.conversation.run();
        let last = run.and_then(|run| run.last_turn.clone());
        match last.filter(|last| last.fails) {
            Some(last) => {
                tracing::warn!(session = %self.session.id, error, "last turn skipped");
                self.finish(End::Failed { why: last.why }).await
            }
            None => self.fail(&error).await,
        }
    }

    /// Reports which models took the place of which in this run. A driver that takes the session
    /// over does so again: the one before may have died just before it did.
    pub(super) fn report_fallbacks(&self) {
        let Some(run) = self.conversation.run() else {
            return;
        };
        for (number, fallback) in run.fallbacks.iter().enumerate() {
            let event = SessionEvent::Observed {
                key: format!("{}.{}.fell_back.{number}", self.session.id, run.prompt),
                what: Observation::FellBack(fallback.clone()),
            };
            self.shared.report(&self.session.id, event);
        }
    }

    /// The full name of the model that is asked now.
    fn model_name(&self) -> ModelName {
        let name = self.conversation.model().unwrap_or(&self.session.model);
        let resolved = self.shared.models.resolve(name.as_str());
        resolved.map_or_else(|_| name.clone(), |model| model.name().clone())
    }
}
