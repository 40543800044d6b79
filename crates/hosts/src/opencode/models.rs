//! The models of one OpenCode, with the efforts that each has.

use asyncagents_core::{
    agent::Effort,
    id::ModelName,
    model_choice::HostModel,
    port::{HostError, WantedModel},
};

use crate::both::{chosen_model::chosen, role::ModelSource};

use super::{
    agents::Agents,
    api::Api,
    wire::{Model, Provider},
};

/// The models of all providers that can be used. Nothing if OpenCode does not say.
pub(super) async fn list(api: &Api) -> Result<Option<Vec<HostModel>>, HostError> {
    let Some(all) = api.providers().await? else {
        return Ok(None);
    };
    Ok(Some(all.providers.iter().flat_map(of_provider).collect()))
}

fn of_provider(provider: &Provider) -> impl Iterator<Item = HostModel> {
    let models = provider.models.iter();
    models.map(|(id, model)| HostModel {
        name: format!("{}/{id}", provider.id).into(),
        efforts: efforts(model),
        of_agent: false,
    })
}

/// An effort is the variant of its name.
fn efforts(model: &Model) -> Vec<Effort> {
    let names = model.variants.keys();
    let mut efforts: Vec<Effort> = names.filter_map(|name| Effort::of_word(name)).collect();
    efforts.sort();
    efforts
}

/// The model that a task would have: the one that is asked for, its agent's own, its parent's, or
/// the one that OpenCode is configured with. Nothing if OpenCode does not say.
pub(super) async fn wanted(
    api: &Api,
    agents: &Agents,
    wanted: &WantedModel,
) -> Result<Option<HostModel>, HostError> {
    let (named, own) = match ModelSource::of(wanted.asked.as_ref()) {
        ModelSource::Named(name) => (Some(name.clone()), None),
        ModelSource::Parent => (None, None),
        ModelSource::Agent => (None, of_agent(agents, wanted).await?),
    };
    let is_agents = own.is_some();
    let name = match named.or(own) {
        Some(name) => Some(name),
        None => usual(api, wanted).await?,
    };
    match name {
        Some(name) => Ok(chosen(name, is_agents, list(api).await?)),
        None => Ok(None),
    }
}

async fn of_agent(agents: &Agents, wanted: &WantedModel) -> Result<Option<ModelName>, HostError> {
    let agent = agents.find(wanted.agent.as_str()).await?;
    Ok(agent.and_then(|agent| {
        let model = agent.model?;
        let (provider, id) = (model["providerID"].as_str()?, model["modelID"].as_str()?);
        Some(format!("{provider}/{id}").into())
    }))
}

/// The model of the session that launches the task, or the one that is configured.
async fn usual(api: &Api, wanted: &WantedModel) -> Result<Option<ModelName>, HostError> {
    let parent = api.session(&wanted.parent).await?;
    if let Some(model) = parent.and_then(|parent| parent.model) {
        return Ok(Some(model.name()));
    }
    Ok(api.configured().await?.model.map(ModelName::from))
}
