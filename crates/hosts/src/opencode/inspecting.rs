//! What became of a prompt: by events as far as they came, else by what OpenCode answers.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    id::{PostId, SessionId},
    lifecycle::Standing,
    port::{HostError, Inspection},
    progress::Totals,
    question::Question,
    task::Outcome,
};
use tokio::time;

use super::{history::Run, host::OpenCode, questions, wire::Statuses};

/// How long OpenCode may live on after it has aborted its sessions in order to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1_500);

impl OpenCode {
    pub(super) async fn inspect_prompt(
        &self,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Inspection, HostError> {
        if self.activity.is_busy(session, self.clock.now()) {
            return Ok(seen(Standing::Working));
        }
        // First whether the session is at work, then its messages: none that is written between the
        // two requests is missed.
        let statuses = self.api.statuses().await?;
        if let Some(why) = self.long_wait(&statuses, session) {
            let run = Run::read(&self.api, session, prompt).await?;
            return Ok(seen(Standing::ModelUnavailable(run.waits(why))));
        }
        if statuses.contains_key(session.as_str()) {
            return Ok(Inspection {
                // A question may have come while events were lost.
                asking: Some(self.asking(session).await?),
                ..seen(Standing::Working)
            });
        }
        if self.api.session(session).await?.is_none() {
            return Ok(seen(Standing::Gone));
        }
        self.inspect_idle(session, prompt).await
    }

    /// What became of a prompt whose session was not at work a moment ago.
    async fn inspect_idle(
        &self,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Inspection, HostError> {
        let run = Run::read(&self.api, session, prompt).await?;
        let is_starting = self.activity.is_starting(session, self.clock.now());
        let standing = run.standing(self.activity.end(session), is_starting);
        if standing == Standing::Interrupted {
            // The session may have begun to work again since.
            let statuses = self.api.statuses().await?;
            if statuses.contains_key(session.as_str()) {
                return Ok(seen(Standing::Working));
            }
        }
        let cancelled = Outcome::Cancelled;
        if matches!(&standing, Standing::Done { outcome, .. } if *outcome == cancelled) {
            // An OpenCode that ends aborts its sessions first: that is no cancelled run.
            time::sleep(SHUTDOWN_TIMEOUT).await;
            self.api.version().await?;
        }
        Ok(Inspection {
            totals: Some(run.totals).filter(|totals| *totals != Totals::default()),
            ..seen(standing)
        })
    }

    /// What a provider says that does not want to be asked for a long time, if the session waits for
    /// that.
    fn long_wait(&self, statuses: &Statuses, session: &SessionId) -> Option<String> {
        let status = statuses.get(session.as_str())?;
        status.long_wait(self.clock.now())
    }

    /// What a session has asked its user and waits for.
    async fn asking(&self, session: &SessionId) -> Result<BTreeMap<String, Question>, HostError> {
        let open = self.api.questions().await?;
        let open = open.iter().filter(|open| open.is_of(session));
        Ok(open.filter_map(questions::question).collect())
    }
}

fn seen(standing: Standing) -> Inspection {
    Inspection {
        standing,
        totals: None,
        asking: None,
    }
}
