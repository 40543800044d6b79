//! When a running task must end, whatever its host says.

use std::time::Duration;

use crate::{
    moment::Moment,
    progress::Progress,
    task::{State, Task},
    task_limits::TaskLimits,
    wording::duration,
};

/// Why a task that calls the same thing again and again must end.
pub(super) fn repeats(progress: &Progress, limits: &TaskLimits) -> Option<String> {
    let repeated = progress.repeated.times;
    (repeated >= limits.same_calls).then(|| {
        let tool = progress.recent.back().map_or("a tool", String::as_str);
        format!("it called {tool} with the same parameters {repeated} times in a row")
    })
}

/// Why a skill has had its iterations, if it has: for hosts that do not count them.
pub fn over_iterations(task: &Task) -> Option<String> {
    let most = task.skill.as_ref().map(|terms| terms.iterations)?;
    let progress = &task.progress;
    let turns = progress.spent.turns.saturating_sub(progress.turns_before);
    (turns > most).then(|| format!("the limit of {most} iterations is reached"))
}

/// Why a running task that has been quiet for so long must end, if it must.
pub fn overdue(task: &Task, quiet: Duration, now: Moment, limits: &TaskLimits) -> Option<String> {
    task.budget.out_of_time(task.ran(now)).or_else(|| {
        (!task.progress.is_waiting() && quiet >= limits.stall)
            .then(|| format!("it made no progress for {}", duration(limits.stall)))
    })
}

/// Why a task that was taken over must end, if it must: it may be what its workers died of.
pub fn lost_its_workers(task: &Task, limits: &TaskLimits) -> Option<String> {
    let deaths = task.progress.worker_deaths;
    let runs = matches!(task.state, State::Running { .. });
    (runs && deaths >= limits.worker_deaths).then(|| {
        format!(
            "it lost its worker {deaths} times, and made no progress in between; resume it to try \
             again"
        )
    })
}

/// How far the clock has moved since a running task was last looked after, if that is worth a word.
/// For a worker that takes a task over: it did not run in between. `renewed` is when the worker that is
/// gone was last known to live.
pub fn clock_moved(task: &Task, renewed: Option<Moment>, now: Moment) -> Option<i64> {
    let State::Running { since, .. } = task.state else {
        return None;
    };
    let progress = &task.progress;
    let seen = [progress.last_activity, progress.unattended_since, renewed];
    let seen = seen.into_iter().flatten().fold(since, Moment::max);
    let moved = now.as_millis().saturating_sub(seen.as_millis());
    let longest = i64::try_from(LONGEST_GAP.as_millis()).unwrap_or(i64::MAX);
    (moved < 0 || moved > longest).then_some(moved)
}

/// How long a task may go from one worker to the next and still count as running.
const LONGEST_GAP: Duration = Duration::from_secs(60);
