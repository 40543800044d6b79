//! What there is to do for a worker, as the journal says.

use std::{collections::HashSet, sync::Arc};

use asyncagents_core::{
    id::OwnerId,
    moment::Moment,
    port::{Journal, PendingPost, UnreadablePost},
    schedule::{Schedule, Slots},
    task::Task,
    task_limits::TaskLimits,
};

use crate::{Problem, outbox::Lane, shared::Shared};

/// How many tasks are started in one transaction.
pub(crate) const STARTED_AT_ONCE: usize = 256;
/// How many queued tasks are read before it is known which hosts are full.
const FIRST_PAGE: usize = 8;
/// How many posts are looked at in one round.
const POSTS_AT_ONCE: usize = 256;

/// What there is to do.
#[derive(Default)]
pub(crate) struct Round {
    /// There are slots for tasks that wait.
    pub(crate) queued: bool,
    /// There are tasks without an owner.
    pub(crate) unowned: bool,
    pub(crate) to_stop: Vec<Task>,
    pub(crate) due: Vec<PendingPost>,
    /// Posts that were to be delivered and cannot be read.
    pub(crate) unreadable: Vec<UnreadablePost>,
    pub(crate) next_due: Option<Moment>,
}

/// Looks for what there is to do. `busy` are those who are being told something already.
pub(crate) async fn survey(
    shared: &Arc<Shared>,
    owner: &OwnerId,
    busy: &HashSet<Lane>,
) -> Result<Round, Problem> {
    let (handle, owner, busy) = (shared.clone(), owner.clone(), busy.clone());
    shared
        .read(move |journal| {
            let limits = &handle.settings.limits;
            let now = handle.now();
            let queued =
                journal.any_queued(&owner)? && !startable(journal, &owner, limits, 1)?.is_empty();
            let unowned = journal.unowned()?;
            let (due, unreadable) = due(journal, &owner, now, &busy)?;
            Ok(Round {
                queued,
                unowned: unowned.iter().any(|(task, host)| handle.takes(task, host)),
                to_stop: journal.to_stop(&owner)?,
                due,
                unreadable,
                next_due: journal.next_due(&owner, now)?,
            })
        })
        .await
}

/// Posts that are due, to those who are not being told something already; and those that cannot be
/// read.
fn due(
    journal: &mut dyn Journal,
    owner: &OwnerId,
    now: Moment,
    busy: &HashSet<Lane>,
) -> Result<(Vec<PendingPost>, Vec<UnreadablePost>), Problem> {
    let (mut due, mut unreadable) = (Vec::new(), Vec::new());
    let mut after = 0;
    while due.len() < POSTS_AT_ONCE {
        let page = journal.due(owner, now, after, POSTS_AT_ONCE)?;
        if page.is_empty() {
            break;
        }
        for found in page {
            match found {
                Ok(pending) => {
                    after = pending.place;
                    due.extend(Some(pending).filter(|found| !busy.contains(&Lane::of(found))));
                }
                Err(found) => {
                    after = found.place;
                    unreadable.push(found);
                }
            }
        }
    }
    Ok((due, unreadable))
}

/// The queued tasks of this owner for which there are slots, first come first served among
/// the tasks of all owners.
pub(crate) fn startable(
    journal: &mut dyn Journal,
    owner: &OwnerId,
    limits: &TaskLimits,
    most: usize,
) -> Result<Vec<Task>, Problem> {
    let mut schedule = Schedule::new(limits);
    let mut ours = Vec::new();
    for depth in journal.queued_depths()? {
        let (mut after, mut page_size) = (0, FIRST_PAGE);
        if journal.taken(&Slots::Depth(depth))? >= limits.concurrency {
            continue;
        }
        loop {
            // A host that is full is not asked for again, however many wait for it.
            let full = schedule.full_hosts(depth);
            let page = journal.queue(depth, &full, after, page_size)?;
            page_size = STARTED_AT_ONCE;
            let Some((_, last)) = page.last() else { break };
            after = *last;
            for (task, _) in page {
                // It waits for a worker that has what it needs, and keeps no slot meanwhile.
                if task.is_held() {
                    continue;
                }
                let admitted = schedule.admit(&task, |slots| journal.taken(slots))?;
                if admitted && task.owner.as_ref() == Some(owner) {
                    ours.push(task);
                }
                if ours.len() == most {
                    return Ok(ours);
                }
                if schedule.is_full(depth) {
                    break;
                }
            }
            if schedule.is_full(depth) {
                break;
            }
        }
    }
    Ok(ours)
}
