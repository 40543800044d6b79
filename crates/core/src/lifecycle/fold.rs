//! Folds what happened to a task into it.

use std::time::Duration;

use crate::{
    budget::Spent,
    event::{Event, Launched},
    id::TaskId,
    moment::Moment,
    progress::Progress,
    task::{Stage, State, Task},
};

/// The task that its first event begins.
pub fn begin(id: TaskId, launched: &Launched, at: Moment) -> Task {
    Task {
        id,
        place: launched.place.clone(),
        brief: launched.brief.clone(),
        skill: launched.role.as_ref().map(|role| role.terms.clone()),
        budget: launched.budget,
        launched_at: at,
        batch: launched.batch,
        run: 0,
        session: None,
        state: State::Queued { since: at },
        stopping: false,
        progress: Progress::default(),
        below: Spent::default(),
        spent_before: Spent::default(),
        retrieved_at: None,
        cleared: false,
        owner: launched.owner.clone(),
        chain: launched.chain.clone(),
        seq: 1,
    }
}

/// Folds a saved event into a task.
pub fn apply(task: &mut Task, event: &Event, at: Moment) {
    task.seq += 1;
    match event {
        Event::Launched(_) => {}
        Event::Owned { by } => {
            // A worker that gives a task back says so; this one was taken from a worker that is gone.
            let taken = by.is_some() && task.owner.is_some() && task.owner != *by;
            if taken && matches!(task.state, State::Running { .. }) {
                task.progress.worker_deaths += 1;
            }
            task.progress.unattended_since = match by {
                Some(_) => None,
                None => task.progress.unattended_since.or(Some(at)),
            };
            // Another worker waits anew.
            task.progress.command_queued = false;
            task.owner.clone_from(by);
        }
        Event::Held { why } => task.progress.held = Some(why.clone()),
        Event::Started => {
            task.progress.held = None;
            let stage = match task.session {
                Some(_) => Stage::Prompting,
                None => Stage::Creating,
            };
            task.state = State::Running { since: at, stage };
            task.spent_before = task.progress.spent.plus(task.below);
            task.progress.worker_deaths = 0;
            task.progress.repeated = Default::default();
            task.progress.asking.clear();
            task.progress.using = None;
            task.progress.command_queued = false;
            task.progress.turns_before = task.progress.spent.turns;
            task.progress.fallbacks.clear();
            task.progress.reprompted = 0;
        }
        Event::SessionMade { session } => {
            task.session = Some(session.clone());
            task.progress.worker_deaths = 0;
            reach(task, Stage::Prompting);
        }
        Event::Prompted => {
            task.progress.worker_deaths = 0;
            reach(task, Stage::Working);
        }
        Event::SummingUp { why } => {
            task.progress.asking.clear();
            reach(task, Stage::SummingUp { why: why.clone() });
        }
        Event::Observed(observation) => {
            task.progress.worker_deaths = 0;
            task.progress.note(observation, at);
        }
        Event::FellBack(fallback) => {
            task.progress.fell_back(fallback);
            task.progress.reprompted += 1;
            reach(task, Stage::Prompting);
        }
        Event::SpentBelow(spent) => task.below = *spent,
        Event::Ended { outcome, stop, .. } => {
            let ran: Duration = task.ran(at);
            task.progress.asking.clear();
            task.stopping |= *stop;
            task.state = State::Ended {
                at,
                ran,
                outcome: outcome.clone(),
            };
        }
        Event::Stopped => task.stopping = false,
        Event::Resumed { batch, chain, .. } => {
            task.run += 1;
            task.progress.worker_deaths = 0;
            task.chain.clone_from(chain);
            task.spent_before = task.progress.spent.plus(task.below);
            task.batch = *batch;
            task.retrieved_at = None;
            task.state = State::Queued { since: at };
        }
        Event::ClockMoved { by } => {
            if let State::Running { since, .. } = &mut task.state {
                *since = since.moved(*by);
            }
            let last_activity = &mut task.progress.last_activity;
            *last_activity = last_activity.map(|at| at.moved(*by));
            for open in task.progress.asking.values_mut() {
                open.since = open.since.moved(*by);
            }
        }
        Event::Moved { host } => task.brief.host.host = host.clone(),
        // What is sent of these is in the outbox.
        Event::Messaged { .. } | Event::Replied { .. } => {}
        Event::QuestionTold { question } => {
            if let Some(open) = task.progress.asking.get_mut(question) {
                open.told = true;
            }
        }
        Event::Retrieved => task.retrieved_at = task.retrieved_at.or(Some(at)),
        Event::Cleared => task.cleared = true,
    }
}

fn reach(task: &mut Task, reached: Stage) {
    if let State::Running { stage, .. } = &mut task.state {
        *stage = reached;
    }
}
