//! What binds a task, as the journal says.

use super::{Journal, Stored};
use crate::{agent::Tools, skill::tools_below, task::Task};

/// The tools of the skills above a task, the outermost first. They bind it, whatever it runs.
///
/// # Errors
/// When the store fails.
pub fn tools_above(journal: &mut dyn Journal, task: &Task) -> Stored<Vec<Tools>> {
    let mut skills = Vec::new();
    let mut above = task.place.above.clone();
    while let Some(id) = above {
        let Some(task) = journal.task(&id)? else {
            break;
        };
        skills.push(task.brief.skill);
        above = task.place.above;
    }
    let outermost_first = skills.iter().rev();
    Ok(outermost_first.fold(Vec::new(), |bound, skill| {
        tools_below(bound, skill.as_ref())
    }))
}
