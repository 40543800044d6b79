//! The models of OpenCode 2, with the efforts that each has.

use asyncagents_core::{
    id::ModelName,
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

    /// The model that a task would have: the one that is asked for, its agent's own, or its
    /// parent's. Nothing if OpenCode does not say.
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
            ModelSource::Agent => (None, self.agents_model(folder, wanted).await?),
        };
        let of_agent = own.is_some();
        let parents = parent.as_ref().and_then(|parent| parent.model.as_ref());
        let name = named.or(own).or(parents.map(SessionModel::name));
        match name {
            Some(name) => Ok(chosen(name, of_agent, self.models_in(folder).await?)),
            None => Ok(None),
        }
    }

    async fn agents_model(
        &self,
        folder: Option<&str>,
        wanted: &WantedModel,
    ) -> Result<Option<ModelName>, HostError> {
        let agent = self.agents.find(folder, wanted.agent.as_str()).await?;
        Ok(agent.and_then(|agent| {
            let model = agent.model?;
            let (provider, id) = (model["providerID"].as_str()?, model["id"].as_str()?);
            Some(format!("{provider}/{id}").into())
        }))
    }
}

fn as_host_model(model: &Model) -> HostModel {
    HostModel {
        name: format!("{}/{}", model.provider, model.id).into(),
        efforts: model.efforts(),
        of_agent: false,
    }
}
