//! Checks the model and the effort of a launch, before there is a task.

use asyncagents_core::{
    agent::Effort,
    id::{ModelName, SessionId},
    model_choice::{HostModel, KnownModels, ModelPolicy},
    port::{HostError, WantedModel},
    refusal::Refusal,
    request::LaunchTask,
};

use crate::{Problem, hosts::OpenHost};

/// What a launch is checked against.
pub(super) struct ModelCheck<'a> {
    pub(super) host: &'a OpenHost,
    pub(super) policy: ModelPolicy,
    /// The session that launches.
    pub(super) parent: &'a SessionId,
}

impl ModelCheck<'_> {
    /// The launch, if its host has the model and the effort that it asks for and its user allows
    /// the model. A skill that may not have its model goes on with the usual one, as one does whose
    /// model is not to be had.
    pub(super) async fn check(&self, mut launch: LaunchTask) -> Result<LaunchTask, Problem> {
        self.drop_skills_model(&mut launch).await?;
        let allowed = &self.policy.allowed;
        let is_free = allowed.is_all() && launch.effort.is_none();
        let model = match named(launch.model.as_ref()) {
            Some(asked) => Some(self.existing(&launch, asked).await?),
            None if is_free => None,
            None => self.ask(&launch, launch.model.as_ref()).await?,
        };
        if let Some(effort) = launch.effort {
            self.check_effort(model.as_ref(), effort).await?;
        }
        let Some(model) = model else {
            return Ok(launch);
        };
        let asked = named(launch.model.as_ref()).is_some();
        if (asked || model.of_agent) && !allowed.allows(&model.name) {
            return Err(Problem::Refused(Refusal::ModelNotAllowed {
                model: model.name,
                agent: (!asked).then(|| launch.agent.clone()),
                allowed: allowed.patterns().to_vec(),
            }));
        }
        Ok(launch)
    }

    /// Leaves out the model of a skill, if the user does not allow it.
    async fn drop_skills_model(&self, launch: &mut LaunchTask) -> Result<(), Problem> {
        let terms = launch.role.as_ref().map(|role| &role.terms);
        let own = terms.and_then(|terms| named(terms.model.as_ref())).cloned();
        let Some(own) = own.filter(|_| !self.policy.allowed.is_all()) else {
            return Ok(());
        };
        let known = match self.ask(launch, Some(&own)).await {
            Err(HostError::Refused(_)) => None,
            known => known?,
        };
        let full = known.map_or(own, |model| model.name);
        if !self.policy.allowed.allows(&full)
            && let Some(role) = &mut launch.role
        {
            tracing::warn!(skill = %role.terms.skill, model = %full,
                "model of a skill is not in models.allowed, falling back");
            role.terms.model = None;
        }
        Ok(())
    }

    /// The model that is asked for.
    async fn existing(&self, launch: &LaunchTask, asked: &ModelName) -> Result<HostModel, Problem> {
        let why = match self.ask(launch, Some(asked)).await {
            Ok(Some(model)) => return Ok(model),
            Ok(None) => None,
            Err(HostError::Refused(why)) => Some(why),
            Err(error) => return Err(error.into()),
        };
        let Some(models) = self.host.models().await? else {
            if let Some(why) = why {
                return Err(HostError::Refused(why).into());
            }
            // Whether there is such a model shows when the host asks it.
            return Ok(HostModel {
                name: asked.clone(),
                efforts: Vec::new(),
                of_agent: false,
            });
        };
        let names = models.into_iter().map(|model| model.name);
        let allowed = names.filter(|name| self.policy.allowed.allows(name));
        Err(Problem::Refused(Refusal::UnknownModel {
            model: asked.clone(),
            why,
            known: KnownModels::near(asked.as_str(), allowed),
        }))
    }

    async fn check_effort(&self, model: Option<&HostModel>, effort: Effort) -> Result<(), Problem> {
        let unknown = |why| Err(Problem::Refused(Refusal::EffortNotKnown { why }));
        if self.host.models().await?.is_none() {
            return unknown("this host does not say what its models have");
        }
        let Some(model) = model else {
            return unknown("this host does not say which model the agent would have");
        };
        if model.efforts.contains(&effort) {
            return Ok(());
        }
        Err(Problem::Refused(Refusal::UnknownEffort {
            model: model.name.clone(),
            effort,
            known: model.efforts.clone(),
        }))
    }

    async fn ask(
        &self,
        launch: &LaunchTask,
        asked: Option<&ModelName>,
    ) -> Result<Option<HostModel>, HostError> {
        let wanted = WantedModel {
            asked: asked.cloned(),
            agent: launch.agent.clone(),
            parent: self.parent.clone(),
        };
        self.host.model_of(&wanted).await
    }
}

/// A model that is called by its name: one that is inherited is not.
fn named(model: Option<&ModelName>) -> Option<&ModelName> {
    model.filter(|model| model.as_str() != ModelName::INHERIT)
}
