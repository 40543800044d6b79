//! The model that a task would have, beside those that its host lists.

use asyncagents_core::{id::ModelName, model_choice::HostModel};

/// What is known of a model. That of an agent is known by its name also where it is not listed, or
/// there is no list: a project's file may have named it, and its user may not allow it.
pub(crate) fn chosen(
    name: ModelName,
    of_agent: bool,
    listed: Option<Vec<HostModel>>,
) -> Option<HostModel> {
    let mut listed = listed.into_iter().flatten();
    match listed.find(|model| model.name == name) {
        Some(model) => Some(HostModel { of_agent, ..model }),
        None => of_agent.then(|| HostModel {
            name,
            efforts: Vec::new(),
            of_agent,
        }),
    }
}
