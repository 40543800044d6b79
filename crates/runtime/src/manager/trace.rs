//! Traces, read from the journal.

use asyncagents_core::{
    agent::{End, Entry, Filed},
    budget::Spent,
    event::Event,
    id::{AgentName, PostId, SessionId, TaskId},
    lifecycle::over_iterations,
    moment::Moment,
    port::{Journal, Saved},
    progress::Progress,
    refusal::Refusal,
    request::Caller,
    task::{Outcome, State, Task},
    trace::{
        Chain, ChainOf, RunEnd, Trace, TraceState, TraceTotals, steps_of_entries, steps_of_events,
    },
};

use super::{Manager, find};
use crate::Problem;

/// How deep runs are followed; tasks go less deep by far.
pub(crate) const DEEPEST: usize = 32;

impl Manager {
    /// The trace of a run by its name or the beginning of it, or of the newest run of a task;
    /// with the runs below it.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn trace(&self, asked: &str) -> Result<Trace, Problem> {
        let (asked, now) = (asked.trim().to_owned(), self.now());
        self.shared
            .read(move |journal| {
                let mut trace = match named(journal, &asked)? {
                    Named::Chain(chain) => of_chain(journal, &chain, now, 0)?,
                    Named::Task(task) => {
                        let run = task.run;
                        of_task(journal, *task, run, now, 0)?
                    }
                };
                trace.add_up();
                Ok(trace)
            })
            .await
    }

    /// The traces of the newest runs that were not begun from within others, newest first,
    /// with the runs below them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn newest_traces(&self, most: usize) -> Result<Vec<Trace>, Problem> {
        let now = self.now();
        self.shared
            .read(move |journal| {
                let mut traces = Vec::new();
                for chain in journal.newest_chains(most)? {
                    let mut trace = of_chain(journal, &chain, now, 0)?;
                    trace.add_up();
                    traces.push(trace);
                }
                Ok(traces)
            })
            .await
    }
}

/// What a name stands for.
enum Named {
    Chain(Chain),
    Task(Box<Task>),
}

fn named(journal: &mut dyn Journal, asked: &str) -> Result<Named, Problem> {
    let is_name = |c: char| c.is_ascii_hexdigit() || c == '-';
    if !asked.is_empty() && asked.chars().all(is_name) {
        let mut chains = journal.chains_beginning_with(&asked.to_ascii_lowercase())?;
        match chains.len() {
            0 => {}
            1 => return Ok(Named::Chain(chains.remove(0))),
            _ => {
                let matches = chains.iter().take(10).map(|chain| chain.id.to_string());
                return Err(Problem::Refused(Refusal::Ambiguous {
                    asked: asked.to_owned(),
                    matches: matches.collect(),
                }));
            }
        }
    }
    match find(journal, &Caller::Person, asked) {
        Ok(task) => Ok(Named::Task(Box::new(task))),
        Err(Problem::Refused(Refusal::UnknownTask { asked })) => {
            Err(Problem::Refused(Refusal::UnknownChain { asked }))
        }
        Err(problem) => Err(problem),
    }
}

fn of_chain(
    journal: &mut dyn Journal,
    chain: &Chain,
    now: Moment,
    depth: usize,
) -> Result<Trace, Problem> {
    match &chain.of {
        ChainOf::Task { task, run } => match journal.task(task)? {
            Some(task) => of_task(journal, task, *run, now, depth),
            None => Err(Problem::Refused(Refusal::UnknownChain {
                asked: chain.id.to_string(),
            })),
        },
        ChainOf::Session { session, prompt } => {
            of_session(journal, chain, session, prompt, now, depth)
        }
    }
}

/// A run of a task.
pub(crate) fn of_task(
    journal: &mut dyn Journal,
    task: Task,
    run: u32,
    now: Moment,
    depth: usize,
) -> Result<Trace, Problem> {
    let chains = journal.chains_of(&task.id)?;
    let chain = chains
        .into_iter()
        .find(|chain| matches!(chain.of, ChainOf::Task { run: of, .. } if of == run));
    let events = journal.events(&task.id)?;
    let entries = match &task.session {
        Some(session) => journal.entries(session, 0, u64::MAX)?,
        None => Vec::new(),
    };
    let prompt = task.id.prompt(run);
    let (mut steps, end) = steps_of_entries(&entries, &prompt);
    let heard = entries.is_empty();
    if heard {
        steps = steps_of_events(&events, run);
    }
    // Where a host does not count iterations, its runtime does: that is an end of its own too.
    let had_its_iterations = heard && over_iterations(&task).is_some();
    let run = RunOf::new(&events, run);
    let begun = chain.as_ref().map_or(task.launched_at, |chain| chain.begun);
    let (state, at) = match &run.ended {
        Some((Outcome::Failed { why }, at)) if had_its_iterations => {
            (TraceState::Failed { why: why.clone() }, *at)
        }
        Some((outcome, at)) => (
            ended_state(outcome, end.as_ref().map(|ended| &ended.end)),
            *at,
        ),
        None if matches!(task.state, State::Queued { .. }) => (TraceState::Queued, now),
        None => (TraceState::Running, now),
    };
    let children = below(journal, chain.as_ref(), &task.id, now, depth)?;
    Ok(Trace {
        chain: chain.as_ref().map(|chain| chain.id.clone()),
        parent: chain.and_then(|chain| chain.parent),
        title: task.brief.description,
        skill: task.brief.skill.map(|terms| terms.skill),
        agent: Some(task.brief.agent),
        task: Some(task.id),
        request: run.request,
        state,
        begun,
        took: at.since(begun),
        steps,
        answer: run.answer,
        counted: heard.then_some(run.spent),
        own: TraceTotals::default(),
        all: TraceTotals::default(),
        children,
    })
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
        let spent = progress.spent.beyond(before);
        found.spent = TraceTotals {
            untold: spent.tokens,
            cost: spent.cost,
            unpriced: spent.unpriced,
            turns: spent.turns,
            tool_calls: spent.tool_calls,
            ..TraceTotals::default()
        };
        found
    }
}

/// A run of a person.
fn of_session(
    journal: &mut dyn Journal,
    chain: &Chain,
    session: &SessionId,
    prompt: &PostId,
    now: Moment,
    depth: usize,
) -> Result<Trace, Problem> {
    let entries = journal.entries(session, 0, u64::MAX)?;
    let title = journal.session(session)?.map(|session| session.title);
    let (steps, end) = steps_of_entries(&entries, prompt);
    let (agent, request) = asked(&entries, prompt);
    let (state, answer, at) = match end {
        None => (TraceState::Running, None, now),
        Some(RunEnd { end, answer, at }) => {
            let state = match end {
                End::Answered => TraceState::Completed,
                End::Failed { why } => TraceState::Failed { why },
                End::Broken { why } => TraceState::Died { why },
                End::Aborted => TraceState::Cancelled,
            };
            (state, answer, at)
        }
    };
    let mut children = Vec::new();
    if depth < DEEPEST {
        for child in journal.chains_below(&chain.id)? {
            children.push(of_chain(journal, &child, now, depth + 1)?);
        }
    }
    Ok(Trace {
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
        children,
    })
}

/// The runs that were begun from within a run. Tasks of old are below tasks, not runs.
fn below(
    journal: &mut dyn Journal,
    chain: Option<&Chain>,
    task: &TaskId,
    now: Moment,
    depth: usize,
) -> Result<Vec<Trace>, Problem> {
    let mut children = Vec::new();
    if depth >= DEEPEST {
        return Ok(children);
    }
    let Some(chain) = chain else {
        for below in journal.below(task)? {
            let run = below.run;
            children.push(of_task(journal, below, run, now, depth + 1)?);
        }
        return Ok(children);
    };
    for child in journal.chains_below(&chain.id)? {
        children.push(of_chain(journal, &child, now, depth + 1)?);
    }
    Ok(children)
}

/// How a task ended, and what its own session says about that. An end that the agent itself
/// came to is a result; everything else has befallen it.
fn ended_state(outcome: &Outcome, end: Option<&End>) -> TraceState {
    match outcome {
        Outcome::Completed => TraceState::Completed,
        Outcome::Cancelled => TraceState::Cancelled,
        Outcome::Failed { why } => match end {
            Some(End::Failed { .. }) => TraceState::Failed { why: why.clone() },
            Some(End::Answered | End::Broken { .. } | End::Aborted) | None => {
                TraceState::Died { why: why.clone() }
            }
        },
    }
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
