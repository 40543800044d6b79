//! A run as a trace, from what the journal says about it. The runs below it are not in it yet.

use super::{
    Chain, RunEnd, Step, Trace, TraceState, TraceTotals, of_entries::EntrySteps,
    of_events::EventSteps,
};
use crate::{
    agent::Filed,
    budget::Spent,
    event::{Event, Saved},
    id::{AgentName, PostId, SessionId, TaskId},
    lifecycle::over_iterations,
    moment::Moment,
    progress::Progress,
    task::{Outcome, State, Task},
};

/// A run as far as it was read: of a task, or of a person in a session of the built-in agent.
#[derive(Debug)]
pub struct RunReading {
    /// Which run of its task, if it is one's.
    run: Option<u32>,
    of_events: RunOf,
    event_steps: EventSteps,
    entry_steps: EntrySteps,
    read: RunPosition,
}

/// How far the journal was read for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunPosition {
    /// The newest event of the task.
    pub event: u64,
    /// The newest entry of the session.
    pub entry: u64,
}

impl RunReading {
    /// A run of a task of which nothing was read.
    pub fn of_task(task: &TaskId, run: u32) -> Self {
        Self {
            run: Some(run),
            ..Self::of_session(&task.prompt(run))
        }
    }

    /// The run of a person that a prompt began, of which nothing was read.
    pub fn of_session(prompt: &PostId) -> Self {
        Self {
            run: None,
            of_events: RunOf::default(),
            event_steps: EventSteps::default(),
            entry_steps: EntrySteps::new(prompt.clone()),
            read: RunPosition::default(),
        }
    }

    /// How far it was read.
    pub fn position(&self) -> RunPosition {
        self.read
    }

    /// What was saved after that: events of the task, and entries of the session if that is the
    /// built-in agent's.
    pub fn take(&mut self, events: &[Saved], entries: &[Filed]) {
        for saved in events {
            let is_of_run = self.of_events.take(saved, self.run.unwrap_or_default());
            self.event_steps.take(saved, is_of_run);
            self.read.event = saved.seq;
        }
        for filed in entries {
            self.entry_steps.take(filed, &self.event_steps.told);
            self.read.entry = filed.seq;
        }
    }

    /// The steps that were not handed out yet: all of a run that has ended, else those before the
    /// first of which there is more to come.
    pub fn new_steps(&mut self) -> Vec<Step> {
        let has_ended = match self.run {
            Some(_) => self.of_events.ended.is_some(),
            None => self.entry_steps.end.is_some(),
        };
        // Before the prompt is there, nobody knows whether the session keeps the steps itself.
        if self.has_only_events() && !has_ended && !self.event_steps.is_prompted {
            return Vec::new();
        }
        self.hand_out(has_ended)
    }

    /// A run of this task as it stands, without its steps. `chain` is its name, if it has one.
    pub fn task_head(&self, task: &Task, chain: Option<&Chain>, now: Moment) -> Trace {
        let only_events = self.has_only_events();
        let used = if only_events {
            self.of_events.spent()
        } else {
            self.entry_steps.steps.totals()
        };
        let end = self.entry_steps.end.as_ref();
        head(task, chain, &self.of_events, end, only_events, used, now)
    }

    /// A run of a person as it stands, without its steps.
    pub fn session_head(
        &self,
        chain: &Chain,
        session: &SessionId,
        title: Option<String>,
        now: Moment,
    ) -> Trace {
        let steps = &self.entry_steps;
        let summary = steps.asked.clone().map(|(agent, request)| RunSummary {
            agent,
            request,
            end: steps.end.clone(),
            used: steps.steps.totals(),
        });
        summary_of_session(chain, session, title, summary, now)
    }

    fn has_only_events(&self) -> bool {
        self.read.entry == 0
    }

    fn hand_out(&mut self, all: bool) -> Vec<Step> {
        if self.has_only_events() {
            self.event_steps.steps.hand_out(all)
        } else {
            self.entry_steps.steps.hand_out(all)
        }
    }
}

/// A run in a session of the built-in agent, summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub agent: AgentName,
    pub request: String,
    /// How it ended, if it has.
    pub end: Option<RunEnd>,
    pub used: TraceTotals,
}

/// A run of a task with all its steps. `chain` is its name, if it has one; `entries` are those of
/// the task's session, if that is the built-in agent's.
pub fn trace_of_task(
    task: &Task,
    run: u32,
    chain: Option<&Chain>,
    events: &[Saved],
    entries: &[Filed],
    now: Moment,
) -> Trace {
    let mut reading = RunReading::of_task(&task.id, run);
    reading.take(events, entries);
    let head = reading.task_head(task, chain, now);
    let steps = reading.hand_out(true);
    Trace { steps, ..head }
}

/// A run of a person with all its steps, which `prompt` began, in a session with these entries.
pub fn trace_of_session(
    chain: &Chain,
    session: &SessionId,
    title: Option<String>,
    prompt: &PostId,
    entries: &[Filed],
    now: Moment,
) -> Trace {
    let mut reading = RunReading::of_session(prompt);
    reading.take(&[], entries);
    let head = reading.session_head(chain, session, title, now);
    let steps = reading.hand_out(true);
    Trace { steps, ..head }
}

/// A run of a task without its steps. `events` are those that begin and end runs; `summary` is what
/// the task's session says of this one, if that is the built-in agent's. Nothing if that is not
/// enough to know what the run has used.
pub fn summary_of_task(
    task: &Task,
    run: u32,
    chain: Option<&Chain>,
    events: &[Saved],
    summary: Option<&RunSummary>,
    now: Moment,
) -> Option<Trace> {
    // What a task has spent in all its runs is what it has spent in the first, if there is one.
    let counted = match summary {
        Some(summary) => summary.used,
        None if task.run == 0 => task.progress.spent.into(),
        None => return None,
    };
    let mut of_events = RunOf::default();
    for saved in events {
        of_events.take(saved, run);
    }
    let (end, only_events) = (summary.and_then(|run| run.end.as_ref()), summary.is_none());
    let head = head(task, chain, &of_events, end, only_events, counted, now);
    Some(head)
}

/// A run of a person without its steps.
pub fn summary_of_session(
    chain: &Chain,
    session: &SessionId,
    title: Option<String>,
    summary: Option<RunSummary>,
    now: Moment,
) -> Trace {
    let (agent, request, end, used) = match summary {
        Some(run) => (Some(run.agent), run.request, run.end, run.used),
        None => (None, String::new(), None, TraceTotals::default()),
    };
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
        steps: Vec::new(),
        answer,
        own: used,
        all: used,
        children: Vec::new(),
    }
}

fn head(
    task: &Task,
    chain: Option<&Chain>,
    run: &RunOf,
    end: Option<&RunEnd>,
    only_events: bool,
    counted: TraceTotals,
    now: Moment,
) -> Trace {
    // Where a host does not count iterations, its runtime does: that is an end of its own too.
    let had_its_iterations = only_events && over_iterations(task).is_some();
    let begun = chain.map_or(task.launched_at, |chain| chain.begun);
    let (state, at) = match &run.ended {
        Some((outcome, at)) => {
            let failed_itself = had_its_iterations || end.is_some_and(RunEnd::failed);
            (ended(outcome.clone(), failed_itself), *at)
        }
        None if matches!(task.state, State::Queued { .. }) => (TraceState::Queued, now),
        None => (TraceState::Running, now),
    };
    Trace {
        chain: chain.map(|chain| chain.id.clone()),
        parent: chain.and_then(|chain| chain.parent.clone()),
        title: task.brief.description.clone(),
        skill: task.skill.as_ref().map(|terms| terms.skill.clone()),
        agent: Some(task.brief.agent.clone()),
        task: Some(task.id.clone()),
        request: run.request.clone(),
        state,
        begun,
        took: at.since(begun),
        steps: Vec::new(),
        answer: run.answer.clone(),
        own: counted,
        all: counted,
        children: Vec::new(),
    }
}

/// What a task's events say about one of its runs.
#[derive(Debug, Default)]
struct RunOf {
    at_run: u32,
    request: String,
    answer: Option<String>,
    ended: Option<(Outcome, Moment)>,
    progress: Progress,
    /// What was spent in the runs before it.
    before: Spent,
}

impl RunOf {
    /// The next event; whether it is one of this run.
    fn take(&mut self, saved: &Saved, run: u32) -> bool {
        if matches!(saved.event, Event::Resumed { .. }) {
            self.at_run += 1;
        }
        if self.at_run > run {
            return false;
        }
        let is_of_run = self.at_run == run;
        match &saved.event {
            Event::Observed(observation) => self.progress.note(observation, saved.at),
            Event::Launched(launched) if run == 0 => self.request.clone_from(&launched.prompt),
            Event::Resumed { prompt, .. } if is_of_run => {
                self.request.clone_from(prompt);
                self.before = self.progress.spent;
            }
            Event::Ended {
                outcome, answer, ..
            } if is_of_run => {
                self.answer.clone_from(answer);
                self.ended = Some((outcome.clone(), saved.at));
            }
            _ => {}
        }
        is_of_run
    }

    /// What its host counted.
    fn spent(&self) -> TraceTotals {
        self.progress.spent.beyond(self.before).into()
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
