//! How a run ends: by itself, at a limit, or because somebody stops it.

use super::{CancelledBy, Decision, Effect};
use crate::{
    budget::Spent,
    event::Event,
    progress::{Observation, Totals},
    refusal::Refusal,
    task::{Outcome, Stage, State, Task},
};

pub(super) fn ends(
    outcome: Outcome,
    answer: Option<String>,
    stop: bool,
) -> Result<Decision, Refusal> {
    let mut effects = vec![Effect::Tell];
    // A task that failed has no use for what it asked others to do.
    if outcome != Outcome::Completed {
        effects.push(Effect::StopBelow);
    }
    Ok(Decision {
        events: vec![Event::Ended {
            outcome,
            answer,
            stop,
        }],
        effects,
    })
}

/// A task that works is stopped and may sum up; one that has not begun to has nothing to say.
pub(super) fn sums_up(stage: &Stage, why: String) -> Result<Decision, Refusal> {
    match stage {
        Stage::Creating | Stage::Prompting => ends(Outcome::Failed { why }, None, true),
        Stage::SummingUp { .. } => Ok(Decision::default()),
        Stage::Working => Ok(Decision {
            events: vec![Event::SummingUp { why }],
            // What the tasks below would find is not waited for.
            effects: vec![Effect::StopBelow],
        }),
    }
}

/// How a run ended: one that was summing up has ended at its limit.
pub(super) fn at_limit(task: &Task, outcome: Outcome) -> Outcome {
    match &task.state {
        State::Running {
            stage: Stage::SummingUp { why },
            ..
        } => Outcome::Failed { why: why.clone() },
        State::Running { .. } | State::Queued { .. } | State::Ended { .. } => outcome,
    }
}

/// Whatever it has said, it has ended at its limit.
pub(super) fn summed_up(
    task: &Task,
    why: &str,
    answer: Option<String>,
    spent: Option<Observation>,
) -> Result<Decision, Refusal> {
    let why = why.to_owned();
    let mut decision = ends(Outcome::Failed { why }, answer, true)?;
    decision.spends_first(task, spent);
    Ok(decision)
}

/// What is done is done: a last sum that is over the budget does not undo the answer.
pub(super) fn finished(task: &Task, mut end: Decision, totals: Option<Totals>) -> Decision {
    end.spends_first(task, totals.map(Observation::Counted));
    end
}

/// What is spent below counts for the task too. If that is too much, it ends, and so does what it
/// has left at work.
pub(super) fn spent_below(task: &Task, below: Spent) -> Result<Decision, Refusal> {
    let spent = task.progress.spent.plus(below).beyond(task.spent_before);
    let mut decision = Decision::default();
    if let Some(why) = task.budget.exceeded(spent) {
        decision = match &task.state {
            State::Queued { .. } => ends(Outcome::Failed { why }, None, false)?,
            State::Running { .. } => ends(Outcome::Failed { why }, None, true)?,
            State::Ended { .. } => Decision::only(Effect::StopBelow),
        };
    }
    decision.events.insert(0, Event::SpentBelow(below));
    Ok(decision)
}

pub(super) fn cancelled(by: CancelledBy, stop: bool) -> Result<Decision, Refusal> {
    let ended = Event::Ended {
        outcome: Outcome::Cancelled,
        answer: None,
        stop,
    };
    let effects = match by {
        CancelledBy::Request => vec![Effect::Tell, Effect::StopBelow],
        CancelledBy::Above => vec![Effect::SuppressNotice, Effect::StopBelow],
    };
    Ok(Decision {
        events: vec![ended],
        effects,
    })
}

pub(super) fn cleared(task: &Task, live: bool, stop: bool) -> Result<Decision, Refusal> {
    if task.cleared {
        return Ok(Decision::default());
    }
    let mut decision = if live {
        cancelled(CancelledBy::Above, stop)?
    } else {
        Decision::only(Effect::StopBelow)
    };
    decision.events.push(Event::Cleared);
    decision.effects.push(Effect::Withdraw);
    Ok(decision)
}

/// Whether its session has been stopped, so that an answer would be of no use there.
pub fn was_stopped(task: &Task) -> bool {
    match &task.state {
        State::Queued { .. } | State::Running { .. } => task.cleared,
        State::Ended { outcome, .. } => task.cleared || *outcome != Outcome::Completed,
    }
}
