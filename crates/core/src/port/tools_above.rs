//! What binds a task, as the journal says.

use super::{Journal, Stored};
use crate::{
    agent::Tools,
    id::{SessionId, TaskId},
    launch::Bound,
    skill::{Terms, tools_below},
    task::Task,
};

/// The tools of the skills above a task, the outermost first. They bind it, whatever it runs.
///
/// # Errors
/// When the store fails.
pub fn tools_above(journal: &mut dyn Journal, task: &Task) -> Stored<Vec<Tools>> {
    let skills = skills_from(journal, task.place.above.clone())?;
    Ok(tools_below(&skills))
}

/// What binds everything that is launched from a session, if a skill works in it or above it.
///
/// # Errors
/// When the store fails.
pub fn bound(journal: &mut dyn Journal, session: &SessionId) -> Stored<Option<Bound>> {
    let task = journal.task_in(session)?;
    let skills = skills_from(journal, task.map(|task| task.id))?;
    Ok(Bound::of(&skills))
}

/// The skills that a task and those above it run, the innermost first.
fn skills_from(journal: &mut dyn Journal, task: Option<TaskId>) -> Stored<Vec<Terms>> {
    let mut skills = Vec::new();
    let mut next = task;
    while let Some(id) = next {
        let Some(task) = journal.task(&id)? else {
            break;
        };
        skills.extend(task.skill);
        next = task.place.above;
    }
    Ok(skills)
}
