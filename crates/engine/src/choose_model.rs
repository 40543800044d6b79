//! Which model a session uses.

use asyncagents_core::{
    agent::{Effort, Profile},
    id::ModelName,
    model_choice::HostModel,
    port::{HostError, Session},
    refusal::Refusal,
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
        let model = models.resolve(asked).map_err(refused)?;
        return check_allowed(shared, &model).map(|()| model);
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
    let allowed = |model: &Model| check_allowed(shared, model).is_ok();
    if profile.of_project && !models.resolve(own).is_ok_and(|own| allowed(&own)) {
        tracing::warn!(agent = ?profile.name.as_str(), model = ?own,
            "the agent of a project names a model that is not in models.allowed, falling back");
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

/// Whether the user allows that a model is named.
fn check_allowed(shared: &Shared, model: &Model) -> Result<(), HostError> {
    let allowed = &shared.settings.model_policy.allowed;
    if allowed.allows(model.name()) {
        return Ok(());
    }
    let refusal = Refusal::ModelNotAllowed {
        model: model.name().clone(),
        agent: None,
        allowed: allowed.patterns().to_vec(),
    };
    Err(HostError::Refused(refusal.to_string()))
}

/// The next model to ask when one is unavailable, by its full name; or why each is not asked. Those
/// that were asked before are `tried`; `effort` is what it has to have.
pub(crate) fn next_model(
    shared: &Shared,
    tried: &[&ModelName],
    effort: Option<Effort>,
) -> Result<ModelName, Vec<(ModelName, String)>> {
    let policy = &shared.settings.model_policy;
    let mut skipped = Vec::new();
    for fallback in &policy.fallbacks {
        let checked = shared.models.check(fallback.as_str());
        let model = checked.and_then(|()| shared.models.resolve(fallback.as_str()));
        let lacks = |model: &Model| effort.filter(|effort| !model.efforts().contains(effort));
        let why = match model {
            Ok(model) if tried.contains(&model.name()) => continue,
            Ok(model) if !policy.allowed.allows(model.name()) => {
                "`models.allowed` does not allow it".to_owned()
            }
            Ok(model) => match lacks(&model) {
                Some(effort) => format!("it has no effort `{effort}`"),
                None => return Ok(model.name().clone()),
            },
            Err(error) => error.to_string(),
        };
        skipped.push((fallback.clone(), why));
    }
    Err(skipped)
}

/// A model as the runtime knows it.
pub(crate) fn as_host_model(model: &Model) -> HostModel {
    HostModel {
        name: model.name().clone(),
        efforts: model.efforts(),
        of_agent: false,
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
