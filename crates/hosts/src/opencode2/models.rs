//! The models of OpenCode 2, with the efforts that each has.

use asyncagents_core::{
    agent::Effort,
    id::AgentName,
    model_choice::HostModel,
    port::{HostError, WantedModel},
};

use crate::both::{chosen_model::chosen, role::ModelSource, session_model::SessionModel};

use super::{
    host::OpenCode2,
    wire::{Model, Session},
};

impl OpenCode2 {
    /// The models of a folder. A list that is empty says nothing: the folder's plugins may not be
    /// loaded.
    pub(super) async fn models_in(
        &self,
        folder: Option<&str>,
    ) -> Result<Option<Vec<HostModel>>, HostError> {
        let models = self.api.models(folder).await?;
        let models: Vec<HostModel> = models.iter().map(as_host_model).collect();
        Ok(Some(models).filter(|models| !models.is_empty()))
    }

    /// The model that a task would have: the one that is asked for, its agent's own, its parent's,
    /// or the one that OpenCode takes then. Nothing if OpenCode does not say.
    pub(super) async fn wanted_model(
        &self,
        wanted: &WantedModel,
    ) -> Result<Option<HostModel>, HostError> {
        let parent = self.api.session(&wanted.parent).await?;
        let folder = parent.as_ref().and_then(Session::folder);
        let folder = folder.or(self.folder());
        let (named, own) = match ModelSource::of(wanted.asked.as_ref()) {
            ModelSource::Named(name) => (Some(name.clone()), None),
            ModelSource::Parent => (None, None),
            ModelSource::Agent => (None, self.agents_model(folder, &wanted.agent).await?),
        };
        let of_agent = own.is_some();
        let own = own.as_ref().map(SessionModel::name);
        let parents = parent.as_ref().and_then(|parent| parent.model.as_ref());
        let name = match named.or(own).or(parents.map(SessionModel::name)) {
            None => self.default_model(folder).await?.map(|model| model.name()),
            name => name,
        };
        match name {
            Some(name) => Ok(chosen(name, of_agent, self.models_in(folder).await?)),
            None => Ok(None),
        }
    }

    /// A model with an effort. OpenCode takes an effort only with a model, so where it is to choose
    /// the model, the one that it would choose is named.
    pub(super) async fn with_effort(
        &self,
        model: Option<SessionModel>,
        effort: Option<Effort>,
        folder: Option<&str>,
        agent: &AgentName,
    ) -> Result<Option<SessionModel>, HostError> {
        let model = match model {
            None if effort.is_some() => match self.agents_model(folder, agent).await? {
                None => self.default_model(folder).await?,
                own => own,
            },
            model => model,
        };
        Ok(model.map(|model| model.with_effort(effort)))
    }

    async fn default_model(&self, folder: Option<&str>) -> Result<Option<SessionModel>, HostError> {
        let model = self.api.default_model(folder).await?;
        Ok(model.map(|model| SessionModel {
            id: model.id,
            provider: model.provider,
            variant: None,
        }))
    }

    async fn agents_model(
        &self,
        folder: Option<&str>,
        agent: &AgentName,
    ) -> Result<Option<SessionModel>, HostError> {
        let agent = self.agents.find(folder, agent.as_str()).await?;
        let model = agent.and_then(|agent| agent.model);
        Ok(model.and_then(|model| serde_json::from_value(model).ok()))
    }
}

fn as_host_model(model: &Model) -> HostModel {
    HostModel {
        name: format!("{}/{}", model.provider, model.id).into(),
        efforts: model.efforts(),
        of_agent: false,
    }
}
