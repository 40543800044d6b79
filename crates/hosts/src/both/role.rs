//! What a skill wants of the session that runs it.

use asyncagents_core::{
    id::ModelName,
    skill::{self, Role},
};

/// The model that is asked for, or else the one that a skill would like. A skill may name it by
/// another agent's word for it, which OpenCode does not know.
pub(crate) fn wanted<'m>(
    asked: Option<&'m ModelName>,
    role: Option<&'m Role>,
) -> Option<&'m ModelName> {
    let liked = role.and_then(|role| role.terms.model.as_ref());
    let is_known = |model: &&ModelName| {
        let is_known = model.as_str().contains('/') || is_inherited(model);
        if !is_known {
            tracing::warn!(%model, "unknown model in a skill, falling back to the session's");
        }
        is_known
    };
    asked.or_else(|| liked.filter(is_known))
}

/// Where the model of a session comes from.
pub(crate) enum ModelSource<'m> {
    Named(&'m ModelName),
    /// Its parent's, whatever the agent has.
    Parent,
    /// Its agent's own, or else its parent's.
    Agent,
}

impl<'m> ModelSource<'m> {
    pub(crate) fn of(wanted: Option<&'m ModelName>) -> Self {
        match wanted {
            Some(name) if is_inherited(name) => Self::Parent,
            Some(name) => Self::Named(name),
            None => Self::Agent,
        }
    }
}

fn is_inherited(model: &ModelName) -> bool {
    model.as_str() == ModelName::INHERIT
}

/// What a sub-agent that runs a skill is told, beside what OpenCode tells its agent.
pub(crate) fn system_of(role: &Role) -> String {
    let terms = &role.terms;
    let listed = terms.tools.only.as_ref();
    let names: Vec<String> = match listed {
        Some(rules) => rules.iter().map(ToString::to_string).collect(),
        None => vec!["those of your agent".to_owned()],
    };
    let names = names.iter().map(|name| (name.as_str(), ""));
    skill::isolated(&terms.skill, &role.instructions, names)
}
