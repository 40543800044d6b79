//! Goes on with another model when one is unavailable, in hosts that do not do so themselves: the
//! session is prompted again. What is about to be sent is saved first, and looked for before it is
//! sent again.

use std::time::Duration;

use asyncagents_core::{
    fallback::{Fallback, none_left},
    id::{ModelName, SessionId},
    lifecycle::{Command, Standing, Unavailable},
    port::WantedModel,
    progress::{Observation, Totals},
    task::{Outcome, Stage},
};
use tokio::time;

use super::{Run, RunStopped, is_summing_up, stage};

/// What a session is told whose model was replaced.
pub(super) const GO_ON: &str = "The model that worked on this became unavailable, and you go on in \
    its place. Go on with the task where it stands; nothing else has changed.";

/// How long a host may take to give up a model that it goes on asking.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);
const ABORT_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Run {
    /// The host cannot ask the task's model: the next one goes on, or the run is over. A host that
    /// goes on trying is left to it if there is no other.
    pub(super) async fn model_unavailable(
        &mut self,
        session: &SessionId,
        unavailable: Unavailable,
        totals: Option<Totals>,
    ) -> Result<(), RunStopped> {
        let Unavailable {
            model,
            why,
            answer,
            retrying,
        } = unavailable;
        let from = model.or_else(|| self.task.model().cloned());
        let next = if is_summing_up(&self.task) {
            Err(Vec::new())
        } else {
            self.next_model(from.as_ref()).await
        };
        match next {
            Ok(to) => {
                tracing::warn!(task = %self.task.id, ?from, %to, why, "model unavailable, falling back");
                self.record(Command::FallBack(Fallback::new(from, to, &why)))
                    .await?;
                if retrying {
                    self.stop_retrying(session).await?;
                }
                Box::pin(self.prompt(session)).await
            }
            Err(_) if retrying => {
                let counted = |totals| Command::Observe(vec![Observation::Counted(totals)]);
                let mut commands: Vec<Command> = totals.map(counted).into_iter().collect();
                // What it goes on trying is the prompt that it has.
                if stage(&self.task) == Some(&Stage::Prompting) {
                    commands.push(Command::Prompted);
                }
                self.record_all(commands).await
            }
            Err(skipped) => {
                let tried = &self.task.progress.fallbacks;
                let why = none_left(tried, (from.as_ref(), &why), &skipped);
                self.finish(Outcome::Failed { why }, answer, totals).await
            }
        }
    }

    /// Goes on where another worker had decided to go on with another model.
    pub(super) async fn go_on_falling_back(
        &mut self,
        session: &SessionId,
    ) -> Result<(), RunStopped> {
        // The other worker may have sent the prompt just before it died.
        self.pause(self.shared.settings.confirm_timeout).await?;
        let prompt = self.prompt_id();
        if self.confirm_until_answered(session, &prompt).await? {
            self.record(Command::Prompted).await?;
            let inspection = self.ask_until_answered(session).await?;
            self.act(session, inspection).await
        } else {
            self.stop_retrying(session).await?;
            self.prompt(session).await
        }
    }

    /// What a session is prompted with: its task, or to go on with that if another model has it
    /// already. A host may have found out that there is no such model before it kept the prompt.
    pub(super) async fn or_go_on(
        &mut self,
        session: &SessionId,
        task: String,
    ) -> Result<String, RunStopped> {
        if self.task.progress.reprompted == 0 {
            return Ok(task);
        }
        let first = self.task.id.prompt(self.task.run);
        let is_kept = self.confirm_until_answered(session, &first).await?;
        Ok(if is_kept { GO_ON.to_owned() } else { task })
    }

    /// Stops a host that goes on asking a model in vain. A prompt that came before it has stopped
    /// would be stopped too.
    async fn stop_retrying(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let aborted = self.host.ask(|host| host.abort(session));
        if let Err(error) = aborted.await {
            tracing::warn!(task = %self.task.id, %error, "host did not stop");
        }
        let until = time::Instant::now() + ABORT_TIMEOUT;
        while time::Instant::now() < until {
            match self.ask(session).await {
                Ok(inspection) if !is_at_work(&inspection.standing) => break,
                Ok(_) | Err(_) => self.pause(ABORT_POLL_INTERVAL).await?,
            }
        }
        Ok(())
    }

    /// The next model that may be asked and is to be had; or those that are not, each with why.
    async fn next_model(
        &self,
        from: Option<&ModelName>,
    ) -> Result<ModelName, Vec<(ModelName, String)>> {
        let policy = self.shared.model_policy(&self.task.brief.host);
        let tried = &self.task.progress.fallbacks;
        let is_tried = |model: &ModelName| {
            let mut tried = tried.iter();
            Some(model) == from
                || tried.any(|one| one.to == *model || one.from.as_ref() == Some(model))
        };
        let mut skipped = Vec::new();
        for candidate in policy.fallbacks.iter().filter(|model| !is_tried(model)) {
            let why = match self.usable(candidate).await {
                Ok(model) if is_tried(&model) => continue,
                Ok(model) if policy.allowed.allows(&model) => return Ok(model),
                Ok(_) => "`models.allowed` does not allow it".to_owned(),
                Err(why) => why,
            };
            skipped.push((candidate.clone(), why));
        }
        Err(skipped)
    }

    /// The full name of a model, if the host has it and it can be told to think as hard as the task
    /// wants; or why not.
    async fn usable(&self, model: &ModelName) -> Result<ModelName, String> {
        let wanted = WantedModel {
            asked: Some(model.clone()),
            agent: self.task.brief.agent.clone(),
            parent: self.task.place.parent.clone(),
        };
        let found = self.host.model_of(&wanted).await;
        let Some(found) = found.map_err(|error| error.to_string())? else {
            let models = self.host.models().await;
            return match models.map_err(|error| error.to_string())? {
                Some(_) => Err("the host has no such model".to_owned()),
                // Whether it has shows when it is asked.
                None => Ok(model.clone()),
            };
        };
        match self.task.brief.effort {
            Some(effort) if !found.efforts.contains(&effort) => {
                Err(format!("it has no effort `{effort}`"))
            }
            Some(_) | None => Ok(found.name),
        }
    }
}

fn is_at_work(standing: &Standing) -> bool {
    match standing {
        Standing::Working => true,
        Standing::ModelUnavailable(unavailable) => unavailable.retrying,
        Standing::Gone | Standing::Unprompted | Standing::Done { .. } | Standing::Interrupted => {
            false
        }
    }
}
