//! Queued tasks that this process lacks something for, such as a key.

use std::{collections::HashSet, sync::Arc};

use asyncagents_core::{
    id::{OwnerId, TaskId},
    lifecycle::Command,
    port::Journal,
};

use crate::{
    Problem,
    shared::Shared,
    survey::{STARTED_AT_ONCE, startable},
};

/// The tasks that may be started, and for which nothing is missing here. The others stay queued, with the
/// reason, until a worker takes them that has what they need.
pub(crate) async fn startable_here(
    shared: &Arc<Shared>,
    owner: &OwnerId,
) -> Result<HashSet<TaskId>, Problem> {
    let (limits, by) = (shared.settings.clone(), owner.clone());
    let found =
        shared.read(move |journal| startable(journal, &by, &limits.limits, STARTED_AT_ONCE));
    let mut checked = HashSet::new();
    let mut held = Vec::new();
    for task in found.await? {
        match shared.lacks(&task) {
            None => _ = checked.insert(task.id),
            Some(why) => held.push((task.id, why)),
        }
    }
    if !held.is_empty() {
        let (handle, by) = (shared.clone(), owner.clone());
        let hold = shared.write(move |journal| hold(journal, &handle, &by, &held));
        hold.await?;
        shared.written();
    }
    Ok(checked)
}

/// Leaves queued tasks to other workers, with the reasons.
fn hold(
    journal: &mut dyn Journal,
    shared: &Shared,
    owner: &OwnerId,
    held: &[(TaskId, String)],
) -> Result<(), Problem> {
    for (id, why) in held {
        let task = journal.task(id)?;
        let ours = task.filter(|task| task.owner.as_ref() == Some(owner));
        let Some(mut task) = ours else { continue };
        let why = why.clone();
        shared.carry_out(journal, &mut task, Command::Hold { why })?;
        shared.carry_out(journal, &mut task, Command::Assign { to: None })?;
    }
    Ok(())
}
