//! A run as a trace, from what the journal says about it. The runs below it are not in it yet.

use std::collections::HashMap;

use super::{
    Chain, Trace, TraceState, TraceTotals,
    of_entries::steps_of_entries,
    of_events::{steps_of_events, told},
};
use crate::{
    agent::{Entry, Filed},
    budget::Spent,
    event::{Event, Saved},
    id::{AgentName, PostId, SessionId},
    lifecycle::over_iterations,
    moment::Moment,
    progress::Progress,
    task::{Outcome, State, Task},
};

/// A run of a task. `chain` is its name, if it has one; `entries` are those of the task's session,
/// if that is the built-in agent's.
pub fn trace_of_task(
    task: Task,
    run: u32,
    chain: Option<&Chain>,
    events: &[Saved],
    entries: &[Filed],
    now: Moment,
) -> Trace {
    let (mut steps, end) = steps_of_entries(entries, &task.id.prompt(run), &told(events));
    let only_events = entries.is_empty();
    if only_events {
        steps = steps_of_events(events, run);
    }
    // Where a host does not count iterations, its runtime does: that is an end of its own too.
    let had_its_iterations = only_events && over_iterations(&task).is_some();
    let run = RunOf::new(events, run);
    let begun = chain.map_or(task.launched_at, |chain| chain.begun);
    let (state, at) = match run.ended {
        Some((outcome, at)) => {
            let failed_itself = had_its_iterations || end.is_some_and(|ended| ended.failed());
            (ended(outcome, failed_itself), at)
        }
        None if matches!(task.state, State::Queued { .. }) => (TraceState::Queued, now),
        None => (TraceState::Running, now),
    };
    Trace {
        chain: chain.map(|chain| chain.id.clone()),
        parent: chain.and_then(|chain| chain.parent.clone()),
        title: task.brief.description,
        skill: task.skill.map(|terms| terms.skill),
        agent: Some(task.brief.agent),
        task: Some(task.id),
        request: run.request,
        state,
        begun,
        took: at.since(begun),
        steps,
        answer: run.answer,
        counted: only_events.then_some(run.spent),
        own: TraceTotals::default(),
        all: TraceTotals::default(),
        children: Vec::new(),
    }
}

/// A run of a person, which `prompt` began, in a session with these entries.
pub fn trace_of_session(
    chain: &Chain,
    session: &SessionId,
    title: Option<String>,
    prompt: &PostId,
    entries: &[Filed],
    now: Moment,
) -> Trace {
    let (steps, end) = steps_of_entries(entries, prompt, &HashMap::new());
    let (agent, request) = asked(entries, prompt);
    let (state, answer, at) = match end {
        None => (TraceState::Running, None, now),
        Some(run) => {
            let failed_itself = run.failed();
            (ended(run.end.into(), failed_itself), run.answer, run.at)
        }
    };
    Trace {
        chain: Some(chain.id.clone()),
        parent: chain.parent.clone(),
        task: None,
        title: title.unwrap_or_else(|| session.to_string()),
        skill: None,
        agent,
        request,
        state,
        begun: chain.begun,
        took: at.since(chain.begun),
        steps,
        answer,
        counted: None,
        own: TraceTotals::default(),
        all: TraceTotals::default(),
        children: Vec::new(),
    }
}

/// What a task's events say about one of its runs.
#[derive(Default)]
struct RunOf {
    request: String,
    answer: Option<String>,
    ended: Option<(Outcome, Moment)>,
    spent: TraceTotals,
}

impl RunOf {
    fn new(events: &[Saved], run: u32) -> Self {
        let mut found = Self::default();
        let mut at_run = 0;
        let mut progress = Progress::default();
        let mut before = Spent::default();
        for saved in events {
            if at_run > run {
                break;
            }
            match &saved.event {
                Event::Observed(observation) => progress.note(observation, saved.at),
                Event::Launched(launched) if run == 0 => found.request.clone_from(&launched.prompt),
                Event::Resumed { prompt, .. } => {
                    at_run += 1;
                    if at_run == run {
                        found.request.clone_from(prompt);
                        before = progress.spent;
                    }
                }
                Event::Ended {
                    outcome, answer, ..
                } if at_run == run => {
                    found.answer.clone_from(answer);
                    found.ended = Some((outcome.clone(), saved.at));
                }
                _ => {}
            }
        }
        found.spent = progress.spent.beyond(before).into();
        found
    }
}

fn ended(outcome: Outcome, failed_itself: bool) -> TraceState {
    let own = match outcome {
        Outcome::Completed => true,
        Outcome::Failed { .. } => failed_itself,
        Outcome::Cancelled => false,
    };
    TraceState::Ended { outcome, own }
}

fn asked(entries: &[Filed], prompt: &PostId) -> (Option<AgentName>, String) {
    let found = entries.iter().find_map(|filed| match &filed.entry {
        Entry::Prompted {
            post, text, agent, ..
        } if post == prompt => Some((Some(agent.clone()), text.clone())),
        _ => None,
    });
    found.unwrap_or_default()
}
