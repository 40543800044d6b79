//! The end of a task that has reached a limit: its work is stopped, and it says what it has found
//! so far.

use asyncagents_core::{
    fork::{Limits, Plan},
    id::SessionId,
    last_turn::{self, Allowance},
    lifecycle::{Command, Standing, Unavailable},
    port::{Inspection, OneAnswer, OneQuestion},
    progress::Observation,
    task::{Outcome, Stage},
};
use tokio::time;

use super::{Run, RunStopped, stage};

/// Whether the last turn of a task was asked for before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBefore {
    No,
    /// The worker that had the task may have asked, and it was paid for.
    Perhaps,
}

impl Run {
    /// Ends a task that has reached a limit, unless it has just come to its end by itself.
    pub(crate) async fn end_at_limit(
        &mut self,
        session: &SessionId,
        why: String,
    ) -> Result<(), RunStopped> {
        self.finish_if_done(session).await?;
        self.record(Command::SumUp { why }).await?;
        self.sum_up(session, AskedBefore::No).await
    }

    /// Stops a task at its limit, and lets it say what it has found so far.
    pub(crate) async fn sum_up(
        &mut self,
        session: &SessionId,
        asked: AskedBefore,
    ) -> Result<(), RunStopped> {
        let aborted = self.host.ask(|host| host.abort(session));
        if let Err(error) = aborted.await {
            tracing::warn!(task = %self.task.id, %error, "host did not stop");
        }
        let last = match asked {
            AskedBefore::No => self.ask_last_turn(session).await,
            AskedBefore::Perhaps => None,
        };
        let spent = last
            .as_ref()
            .map(|last| Observation::AskedBeside(last.spent));
        let last = last.map(|last| last.text);
        let answer = match last.filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(text),
            None => self.last_answer(session).await,
        };
        self.record(Command::SummedUp { answer, spent }).await?;
        Err(RunStopped::Done)
    }

    /// Ends a task that has done with its prompt. One that only waits for tasks of its own has not.
    async fn finish_if_done(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        self.look_for_unsettled().await?;
        let Ok(Inspection {
            standing: Standing::Done { outcome, answer },
            totals,
            ..
        }) = self.ask(session).await
        else {
            return Ok(());
        };
        if outcome != Outcome::Completed || (self.waits && self.host.host.notices_wake()) {
            return Ok(());
        }
        self.finish(outcome, answer, totals).await
    }

    /// The last answer of a task that has been stopped.
    async fn last_answer(&self, session: &SessionId) -> Option<String> {
        match self.ask(session).await.ok()?.standing {
            Standing::Done { answer, .. }
            | Standing::ModelUnavailable(Unavailable { answer, .. }) => answer,
            Standing::Gone | Standing::Unprompted | Standing::Working | Standing::Interrupted => {
                None
            }
        }
    }

    /// Asks a model what came of the task so far, without tools and within what was kept back.
    /// Nothing if that is not enough, or the host cannot.
    async fn ask_last_turn(&self, session: &SessionId) -> Option<OneAnswer> {
        let Some(Stage::SummingUp { why }) = stage(&self.task) else {
            return None;
        };
        let left = self.task.left(self.shared.now());
        let allowance = Allowance::of(self.task.budget, left)?;
        if self.host.host.sums_up() {
            return None;
        }
        let begun = time::Instant::now();
        let room = last_turn::tokens(allowance, self.task.spent_in_run());
        let context = match self.shortened(session, room).await {
            Ok(context) => context,
            Err(why) => {
                tracing::warn!(task = %self.task.id, why, "skipping the last turn");
                return None;
            }
        };
        let question = OneQuestion {
            id: self.task.id.last_turn(self.task.run),
            text: format!("{context}\n\n{}", last_turn::request(why)),
            agent: self.task.brief.agent.clone(),
            model: self.task.model().cloned(),
            effort: self.task.brief.effort,
            role: self.role.clone(),
            within: allowance.time.checked_sub(begun.elapsed())?,
        };
        let asked = self.host.host.ask_once(session, question).await;
        asked
            .inspect_err(|error| {
                tracing::warn!(task = %self.task.id, %error, "skipping the last turn");
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
        let forked = self.forked(&self.host, session, plan).await;
        forked
            .map(|forked| forked.context)
            .map_err(|not_made| not_made.why)
    }
}
