//! Asks the host about its child, and acts on what it says.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    budget::Spent,
    id::{PostId, SessionId},
    lifecycle::{Command, Next, Standing, after_asking, overdue},
    port::{HostError, Inspection},
    progress::Observation,
    question::Question,
    task::{Outcome, Stage},
};
use tokio::{sync::mpsc, time};

use super::{
    Run, RunStopped,
    news::{News, Seen},
    stage,
};
use crate::hosts::RunReport;

/// The longest pause before a host is asked again that did not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Run {
    /// Asks the host, and does not count what it reported meanwhile if that is in its sums already.
    /// Returns whether there was progress that had not been reported.
    pub(super) async fn catch_up(
        &mut self,
        session: &SessionId,
        reports: &mut mpsc::UnboundedReceiver<RunReport>,
        seen: &mut Seen,
    ) -> Result<bool, RunStopped> {
        let before = self.task.progress.spent;
        let Some(Inspected { summed }) = self.inspect(session).await? else {
            return Ok(false);
        };
        let mut news = News::default();
        while let Ok(next) = reports.try_recv() {
            news.take(next, seen);
        }
        news.observed.retain(|news| match news {
            Observation::Asked { .. }
            | Observation::Answered { .. }
            | Observation::CommandQueued
            | Observation::CommandStarted
            | Observation::FellBack(_) => true,
            Observation::ToolCalled { .. }
            | Observation::Turned(_)
            | Observation::AskedBeside(_)
            | Observation::Counted(_) => !summed,
        });
        if !news.observed.is_empty() {
            self.record(Command::Observe(news.observed)).await?;
        }
        if news.ask || news.deleted {
            self.inspect(session).await?;
        }
        Ok(self.task.progress.spent.beyond(before) != Spent::default())
    }

    /// Asks the host what became of the prompt, and acts on it. Nothing if the host does not answer:
    /// it is asked again soon, for it may have said for the last time that the child is idle.
    pub(super) async fn inspect(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<Inspected>, RunStopped> {
        self.look_for_unsettled().await?;
        match self.ask(session).await {
            Ok(inspection) => {
                self.unanswered = 0;
                let summed = inspection.totals.is_some();
                self.act(session, inspection).await?;
                Ok(Some(Inspected { summed }))
            }
            Err(error) => {
                tracing::warn!(task = %self.task.id, %error, "inspecting the session failed, retrying");
                self.unanswered = self.unanswered.saturating_add(1);
                Ok(None)
            }
        }
    }

    /// Asks the host until it answers: nothing can be done before that is known.
    pub(super) async fn ask_until_answered(
        &mut self,
        session: &SessionId,
    ) -> Result<Inspection, RunStopped> {
        let mut retries = Retries::begin();
        loop {
            self.look_for_unsettled().await?;
            match self.ask(session).await {
                Ok(inspection) => return Ok(inspection),
                Err(error) => self.before_retry(&mut retries, &error).await?,
            }
        }
    }

    /// Asks the host until it says whether it has got something.
    pub(super) async fn confirm_until_answered(
        &mut self,
        session: &SessionId,
        post: &PostId,
    ) -> Result<bool, RunStopped> {
        let mut retries = Retries::begin();
        loop {
            match self.host.ask(|host| host.confirm(session, post)).await {
                Ok(is_there) => return Ok(is_there),
                Err(error) => self.before_retry(&mut retries, &error).await?,
            }
        }
    }

    /// A pause before the host is asked again, each longer than the one before. A run whose time is
    /// up is given up.
    async fn before_retry(
        &mut self,
        retries: &mut Retries,
        error: &HostError,
    ) -> Result<(), RunStopped> {
        tracing::warn!(task = %self.task.id, %error, "inspecting the session failed, retrying");
        self.note_clock_moves().await?;
        let now = self.shared.now();
        if let Some(why) = overdue(&self.task, retries.begun.elapsed(), now, &self.limits) {
            return Err(self.give_up(why).await);
        }
        retries.times = retries.times.saturating_add(1);
        self.pause(retry_pause(retries.times)).await
    }

    pub(super) async fn ask(&self, session: &SessionId) -> Result<Inspection, HostError> {
        let prompt = self.prompt_id();
        self.host.ask(|host| host.inspect(session, &prompt)).await
    }

    pub(super) async fn act(
        &mut self,
        session: &SessionId,
        inspection: Inspection,
    ) -> Result<(), RunStopped> {
        let totals = inspection
            .totals
            .filter(|totals| self.task.progress.is_news(totals));
        let counted = |totals| Command::Observe(vec![Observation::Counted(totals)]);
        if let Standing::ModelUnavailable(unavailable) = &inspection.standing {
            let unavailable = unavailable.clone();
            return self.model_unavailable(session, unavailable, totals).await;
        }
        match after_asking(inspection.standing) {
            Next::Wait => {
                let mut commands: Vec<Command> = totals.map(counted).into_iter().collect();
                let questions = inspection.asking.map(|open| self.questions(&open));
                let questions = questions.filter(|news| !news.is_empty());
                commands.extend(questions.map(Command::Observe));
                if stage(&self.task) == Some(&Stage::Prompting) {
                    commands.push(Command::Prompted);
                }
                self.record_all(commands).await
            }
            Next::Prompt => Box::pin(self.prompt(session)).await,
            Next::Finish {
                outcome: Outcome::Completed,
                ..
            } if self.waits && self.host.host.notices_wake() => self.hold(totals).await,
            Next::Finish { outcome, answer } => self.finish(outcome, answer, totals).await,
        }
    }

    /// What has been asked and answered unheard, if these questions are open.
    fn questions(&self, open: &BTreeMap<String, Question>) -> Vec<Observation> {
        let known = &self.task.progress.asking;
        let asked = open.clone().into_iter();
        // One that was read from an old journal is told again, with its kind.
        let is_known =
            |id: &str, asked: &Question| known.get(id).is_some_and(|open| open.question == *asked);
        let asked = asked.filter(|(id, asked)| !is_known(id, asked));
        let answered = known.keys().filter(|id| !open.contains_key(*id)).cloned();
        asked
            .map(|(id, question)| Observation::Asked { id, question })
            .chain(answered.map(|id| Observation::Answered { id }))
            .collect()
    }
}

/// Attempts to get an answer from a host.
struct Retries {
    begun: time::Instant,
    times: u32,
}

impl Retries {
    fn begin() -> Self {
        Self {
            begun: time::Instant::now(),
            times: 0,
        }
    }
}

/// The pause after so many attempts in a row that failed.
pub(super) fn retry_pause(times: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(times.saturating_sub(1));
    let pause = Duration::from_millis(100).saturating_mul(doubled);
    pause.min(LONGEST_PAUSE)
}

/// What came of asking the host.
pub(super) struct Inspected {
    /// Whether the host told the totals of the session.
    summed: bool,
}
