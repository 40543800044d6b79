//! Which model a session uses.

use asyncagents_core::{
    agent::Profile,
    id::ModelName,
    port::{HostError, Session},
};
use asyncagents_models::{Model, ModelError, Models};

use crate::shared::Shared;

/// The model of a session: what was asked for, the agent's own, the parent's, the
/// configured one, or the first that there is a key for.
pub(crate) fn choose_model(
    shared: &Shared,
    asked: Option<&str>,
    profile: &Profile,
    parent: Option<&Session>,
) -> Result<Model, HostError> {
    let models = &shared.models;
    let parents = parent.map(|parent| parent.model.as_str());
    let inherits = asked == Some(ModelName::INHERIT);
    if let Some(asked) = asked.filter(|_| !inherits) {
        return models.resolve(asked).map_err(refused);
    }
    let usual = || {
        let named = parents.or(shared.settings.model.as_deref());
        let named = named.map_or_else(|| models.default_model(), |name| Ok(name.into()));
        named.and_then(|name: String| models.resolve(&name))
    };
    let Some(own) = profile.model.as_deref().filter(|_| !inherits) else {
        return usual().map_err(refused);
    };
    // Another provider would be sent the conversation, and paid for it.
    let foreign = || usual().is_ok_and(|usual| !models.are_of_one_provider(own, &usual));
    if profile.of_project && foreign() {
        tracing::warn!(agent = ?profile.name.as_str(), model = ?own,
            "the agent of a project names a model of another provider, falling back");
        return usual().map_err(refused);
    }
    // The author of an agent's file may have other keys.
    match models.check(own) {
        Ok(()) => models.resolve(own).map_err(refused),
        Err(error) => usual()
            .map_err(|_| refused(error.clone()))
            .inspect(|model| {
                tracing::warn!(agent = %profile.name, %error, model = %model.name(),
                "model unavailable, falling back");
            }),
    }
}

pub(crate) fn refused(error: ModelError) -> HostError {
    HostError::Refused(error.to_string())
}

/// Whether there is such a model, and a key for it. The author of a skill may have
/// other models.
pub(crate) fn can_ask(models: &Models, model: &str) -> bool {
    let inherits = model == ModelName::INHERIT;
    let checked = models.check(model);
    let warn = |error: &ModelError| {
        tracing::warn!(model, %error, "model of a skill unavailable, falling back");
    };
    inherits || checked.inspect_err(warn).is_ok()
}
