//! Traces, read from the journal.

use asyncagents_core::{
    id::{PostId, SessionId, TaskId},
    moment::Moment,
    port::Journal,
    refusal::Refusal,
    request::Caller,
    task::Task,
    trace::{Chain, ChainOf, Trace, trace_of_session, trace_of_task},
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
    let children = below(journal, chain.as_ref(), &task.id, now, depth)?;
    let trace = trace_of_task(task, run, chain.as_ref(), &events, &entries, now);
    Ok(Trace { children, ..trace })
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
    let trace = trace_of_session(chain, session, title, prompt, &entries, now);
    let children = below_chain(journal, chain, now, depth)?;
    Ok(Trace { children, ..trace })
}

/// The runs that were begun from within a run. Tasks of old are below tasks, not runs.
fn below(
    journal: &mut dyn Journal,
    chain: Option<&Chain>,
    task: &TaskId,
    now: Moment,
    depth: usize,
) -> Result<Vec<Trace>, Problem> {
    if let Some(chain) = chain {
        return below_chain(journal, chain, now, depth);
    }
    let mut children = Vec::new();
    if depth < DEEPEST {
        for below in journal.below(task)? {
            let run = below.run;
            children.push(of_task(journal, below, run, now, depth + 1)?);
        }
    }
    Ok(children)
}

fn below_chain(
    journal: &mut dyn Journal,
    chain: &Chain,
    now: Moment,
    depth: usize,
) -> Result<Vec<Trace>, Problem> {
    let mut children = Vec::new();
    if depth < DEEPEST {
        for child in journal.chains_below(&chain.id)? {
            children.push(of_chain(journal, &child, now, depth + 1)?);
        }
    }
    Ok(children)
}
