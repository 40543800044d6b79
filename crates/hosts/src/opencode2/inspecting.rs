//! What became of a prompt: by events as far as they came, by the session's messages, its inbox and
//! whether it is at work.

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

use crate::both::{pages::Pages, session_model::SessionModel};

use super::{
    activity::End,
    host::OpenCode2,
    id, questions,
    retry::Retry,
    run::{Known, Run, Verdict, failed, unavailable},
    wire::{Message, Session},
};

/// How long a server may live on after it has interrupted its sessions in order to end, and how
/// long one that has started may take until it goes on with what was interrupted.
const SETTLE_TIME: Duration = Duration::from_millis(1_500);

impl OpenCode2 {
    pub(super) async fn inspect_prompt(
        &self,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Inspection, HostError> {
        let now = self.clock.now();
        if self.activity.is_busy(session, now) {
            let waits = self.activity.long_wait(session, now);
            return Ok(standing(waits.unwrap_or(Standing::Working)));
        }
        match self.look(session, prompt).await? {
            Look::Settled(inspection) => Ok(inspection),
            Look::Unsettled(_) => {
                time::sleep(SETTLE_TIME).await;
                // A server that was about to end has ended by now: nothing is known then.
                self.api.health().await?;
                match self.look(session, prompt).await? {
                    Look::Settled(inspection) | Look::Unsettled(inspection) => Ok(inspection),
                }
            }
        }
    }

    async fn look(&self, session: &SessionId, prompt: &PostId) -> Result<Look, HostError> {
        if !id::is_session(session) {
            return Ok(Look::Settled(standing(Standing::Gone)));
        }
        // First whether the session is at work, then its messages: none that is written between the
        // two requests is missed.
        if self.api.active().await?.contains_key(session.as_str()) {
            if let Some(waits) = self.long_wait(session).await {
                return Ok(Look::Settled(standing(waits)));
            }
            return Ok(Look::Settled(Inspection {
                // A question may have come while events were lost.
                asking: Some(self.asking(session).await?),
                ..standing(Standing::Working)
            }));
        }
        let Some(there) = self.api.session(session).await? else {
            return Ok(Look::Settled(standing(Standing::Gone)));
        };
        let run = Run::read(&self.api, session, prompt).await?;
        let known = Known {
            end: self.activity.end(session),
            outcome: there.outcome.clone(),
            is_starting: self.activity.is_starting(session, self.clock.now()),
            now: self.clock.now(),
        };
        let totals = Some(run.totals.clone()).filter(|totals| *totals != Totals::default());
        let inspection = |standing| Inspection {
            standing,
            totals,
            asking: None,
        };
        Ok(match run.verdict(&known) {
            Verdict::Certain(standing) => Look::Settled(inspection(standing)),
            Verdict::Unsettled(standing) => Look::Unsettled(inspection(standing)),
            Verdict::Unanswered => match self.unknown_model(&there).await? {
                Some(why) => {
                    let model = there.model.as_ref().map(SessionModel::name);
                    Look::Settled(inspection(unavailable(model, why, None)))
                }
                None => Look::Unsettled(inspection(Standing::Interrupted)),
            },
            Verdict::NotThere => Look::Settled(inspection(
                self.not_delivered(session, prompt, known).await?,
            )),
        })
    }

    /// Where a session at work stands, if its model is not to be asked again for a long time. One
    /// whose messages cannot be read is simply at work.
    async fn long_wait(&self, session: &SessionId) -> Option<Standing> {
        let newest = Pages::new(&self.api, session, 1).next().await.ok()??;
        let newest: Message = newest.newest_first().ok()?.into_iter().next()?;
        Retry::of(&newest)?.long_wait(newest.model(), self.clock.now())
    }

    /// What becomes of a prompt that is not in the history. One that waits in the inbox of an idle
    /// session is sent again, which sets the session to work.
    async fn not_delivered(
        &self,
        session: &SessionId,
        prompt: &PostId,
        known: Known,
    ) -> Result<Standing, HostError> {
        let message = id::message(prompt);
        let inbox = self.api.inbox(session).await?;
        if inbox.iter().any(|item| item.id == message) {
            self.activity.found(session, &message, self.clock.now());
        }
        Ok(match known.end {
            Some(End::Failed {
                why,
                by_model: true,
            }) => unavailable(None, why, None),
            Some(End::Failed { why, .. }) => done(failed(&why)),
            Some(End::Interrupted { reason }) if reason == "user" => done(Outcome::Cancelled),
            Some(End::Interrupted { .. }) | None if known.is_starting => Standing::Working,
            Some(End::Interrupted { .. }) | None => Standing::Unprompted,
        })
    }

    /// Why the model of a session cannot answer, if OpenCode does not have it. That leaves no
    /// message behind, and the event may have been missed.
    async fn unknown_model(&self, there: &Session) -> Result<Option<String>, HostError> {
        let Some(model) = there.model.clone().map(|model| model.plain()) else {
            return Ok(None);
        };
        let models = self.api.models(there.folder()).await?;
        let same = |id: &str, provider: &str| id == model.id && provider == model.provider;
        let found = models.iter().find(|it| same(&it.id, &it.provider));
        let name = format!("{}/{}", model.provider, model.id);
        Ok(match (found, &model.variant) {
            // A list that is empty says nothing: the folder's plugins may not be loaded.
            (None, _) if models.is_empty() => None,
            (None, _) => Some(format!("Model unavailable: {name}")),
            (Some(found), Some(variant)) if !found.has_variant(variant) => {
                Some(format!("Variant unavailable: {name}#{variant}"))
            }
            (Some(_), _) => None,
        })
    }

    /// What a session has asked its user and waits for.
    async fn asking(&self, session: &SessionId) -> Result<BTreeMap<String, Question>, HostError> {
        let permissions = self.api.permissions(session).await?;
        let forms = self.api.forms(session).await?;
        let permissions = permissions.iter().map(questions::of_permission);
        Ok(permissions
            .chain(forms.iter().map(questions::of_form))
            .collect())
    }
}

/// What was seen of a prompt, once.
enum Look {
    Settled(Inspection),
    /// To be looked at again, when a server that ends has ended and one that starts has started.
    Unsettled(Inspection),
}

fn standing(standing: Standing) -> Inspection {
    Inspection {
        standing,
        totals: None,
        asking: None,
    }
}

fn done(outcome: Outcome) -> Standing {
    let answer = None;
    Standing::Done { outcome, answer }
}
