//! The end of a task that has reached a limit: its work is stopped, and it says what it has found
//! so far.

use asyncagents_core::{
    fork::{Limits, Plan},
    id::SessionId,
    last_turn,
    lifecycle::{Command, Standing},
    port::{Inspection, OneAnswer, OneQuestion},
    progress::Observation,
    task::{Outcome, Stage},
};
use tokio::time;

use crate::runner::{Got, Over, Run, in_time, stage};

impl Run {
    /// Ends a task that has reached a limit.
    pub(crate) async fn end_at_limit(
        &mut self,
        session: &SessionId,
        why: String,
    ) -> Result<(), Over> {
        self.record(Command::SumUp { why }).await?;
        self.sum_up(session).await
    }

    /// Stops a task at its limit, and lets it say what it has found so far.
    pub(crate) async fn sum_up(&mut self, session: &SessionId) -> Result<(), Over> {
        let before = self.said(session).await?;
        if let Err(error) = in_time(self.host.host.abort(session)).await {
            tracing::warn!(task = %self.task.id, %error, "the host does not stop");
        }
        let said = match before {
            Some(said) => Some(said),
            None => self.said(session).await?,
        };
        // Whoever had the task before may have asked already, and it was paid for.
        let last = match self.got {
            Got::Started => self.last_words(session).await,
            Got::TakenOver => None,
        };
        let spent = last.as_ref().map(|last| Observation::Turned {
            tokens: last.tokens,
            cost: last.cost,
            unpriced: last.unpriced,
        });
        let last = last
            .map(|last| last.text)
            .filter(|text| !text.trim().is_empty());
        let answer = last.or(said.flatten());
        self.record(Command::SummedUp { answer, spent }).await?;
        Err(Over::Enough)
    }

    /// What a task has said that does not work any more. One that has done with its prompt
    /// after all has ended, and has no need to sum up.
    async fn said(&mut self, session: &SessionId) -> Result<Option<Option<String>>, Over> {
        let asked = self.ask(session).await;
        let Ok(Inspection {
            standing: Standing::Done { outcome, answer },
            totals,
            ..
        }) = asked
        else {
            return Ok(None);
        };
        if outcome != Outcome::Completed {
            return Ok(Some(answer));
        }
        let finish = Command::Finish {
            outcome,
            answer,
            totals,
        };
        self.record(finish).await?;
        Err(Over::Enough)
    }

    /// Asks a model what came of the task so far, without tools and within what was kept back.
    /// Nothing if that is not enough, or the host cannot.
    async fn last_words(&self, session: &SessionId) -> Option<OneAnswer> {
        let Some(Stage::SummingUp { why }) = stage(&self.task) else {
            return None;
        };
        let allowance = last_turn::allowance(&self.task, self.desk.now())?;
        let begun = time::Instant::now();
        let room = last_turn::tokens(allowance, self.task.spent_in_run());
        let context = match self.shortened(session, room).await {
            Ok(context) => context,
            Err(why) => {
                tracing::warn!(task = %self.task.id, why, "no last turn");
                return None;
            }
        };
        let question = OneQuestion {
            id: self.task.id.last_turn(self.task.run),
            text: format!("{context}\n\n{}", last_turn::request(why)),
            agent: self.task.brief.agent.clone(),
            model: self.task.brief.model.clone(),
            within: allowance.time.saturating_sub(begun.elapsed()),
        };
        let asked = self.host.host.ask_once(session, question).await;
        asked
            .inspect_err(|error| {
                tracing::warn!(task = %self.task.id, %error, "no last turn");
            })
            .ok()
            .flatten()
    }

    /// The child's conversation, through the fork pipeline, within so many tokens. A quarter of
    /// them is for the answer.
    async fn shortened(&self, session: &SessionId, room: u64) -> Result<String, String> {
        let mut limits = Limits::default();
        let most = room - room / 4;
        let set = limits.set("max_tokens", most.to_string().as_str());
        set.map_err(|error| error.to_string())?;
        let plan = Plan {
            limits,
            ..Plan::default()
        };
        self.forked(session, plan)
            .await
            .map(|forked| forked.context)
    }
}
