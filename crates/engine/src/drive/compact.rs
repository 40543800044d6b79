//! Summarises a conversation that becomes too long for its model.

use asyncagents_core::{
    agent::{Answer, Entry, SUMMARISE, Stop, Turn, Usage, transcript},
    budget::Cost,
    fork::{Limits, Parent, fork},
    tokens,
};
use asyncagents_models::{Model, ModelError};
use tokio::task::spawn_blocking;

use super::{Driven, Driver, ask::Stream};
use crate::Live;

/// What a summary is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryOf {
    /// The conversation as it is: the provider has it in its cache.
    Whole,
    /// What fits, through the fork pipeline.
    Shortened,
}

impl Driver {
    /// Summarises what the model has seen: as it is, for the provider has it in its cache; if
    /// that comes to nothing, once more with what fits of it and without tools.
    pub(super) async fn compact(&mut self, model: &Model, of: SummaryOf) -> Driven {
        self.show(Live::Compacting);
        let seen = self.conversation.newest();
        let mut spent = (Usage::default(), Some(Cost::default()));
        if of == SummaryOf::Whole {
            let turns = self.conversation.settled();
            match self.summary(model, turns, false).await? {
                Ok(answer) if is_summary(&answer) => {
                    return self.save(vec![Entry::Compacted { seen, answer }]).await;
                }
                // The answer was paid for all the same.
                Ok(answer) => spent = (answer.usage, answer.cost),
                Err(error) if error.is_too_long() => {}
                Err(error) => return self.model_failed(&error).await,
            }
        }
        let most = (model.window() / 2).max(1_000);
        let turns = match self.shortened(most).await? {
            Ok(context) => vec![Turn::Said(context)],
            Err(why) => return self.fail(&why).await,
        };
        match self.summary(model, turns, true).await? {
            Ok(mut answer) if is_summary(&answer) => {
                answer.usage = answer.usage.plus(spent.0);
                let both = answer.cost.zip(spent.1);
                answer.cost = both.map(|(one, other)| one + other);
                self.save(vec![Entry::Compacted { seen, answer }]).await
            }
            Ok(_) => {
                self.fail(&"the conversation is too long, and the model gave no summary of it")
                    .await
            }
            Err(error) => self.model_failed(&error).await,
        }
    }

    async fn summary(
        &self,
        model: &Model,
        mut turns: Vec<Turn>,
        no_tools: bool,
    ) -> Driven<Result<Answer, ModelError>> {
        turns.push(Turn::Said(SUMMARISE.to_owned()));
        let mut request = self.whole(&turns);
        request.no_tools = no_tools;
        self.request(model, request, Stream::Hidden).await
    }

    /// The conversation as a fork would inherit it, within so many tokens: for a model that could
    /// not even read it to summarise it, or that cannot be paid for reading it.
    pub(super) async fn shortened(&self, most: u64) -> Driven<Result<String, String>> {
        let whole = self.shared.whole(&self.session.id).await?;
        let entries = whole.map(|whole| whole.entries()).unwrap_or_default();
        let forked = spawn_blocking(move || {
            let mut limits = Limits::default();
            for (key, value) in [
                ("max_tokens", most.min(100_000)),
                ("max_chars", (most * 4).min(200_000)),
            ] {
                let set = limits.set(key, value.to_string().as_str());
                set.map_err(|error| error.to_string())?;
            }
            let forked = fork(&Parent::new(transcript(&entries)), &limits, tokens::o200k);
            let forked = forked.map_err(|error| error.to_string())?;
            Ok(forked.context)
        });
        Ok(forked.await.unwrap_or_else(|error| Err(error.to_string())))
    }
}

/// A summary that was refused or cut would be all that is left of the conversation.
fn is_summary(answer: &Answer) -> bool {
    let whole = matches!(answer.stop, Stop::Finished | Stop::Tools);
    whole && !answer.text().trim().is_empty()
}
