//! Traces, read from the journal.

use asyncagents_core::{
    id::TaskId,
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
                let named = named(journal, &asked)?;
                let mut traces = Traces { journal, now };
                let mut trace = match named {
                    Named::Chain(chain) => traces.of_chain(&chain, 0)?,
                    Named::Task(task) => {
                        let run = task.run;
                        traces.of_task(*task, run, 0)?
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
                let chains = journal.newest_chains(most)?;
                let mut traces = Traces { journal, now };
                let each = chains.iter().map(|chain| {
                    let mut trace = traces.of_chain(chain, 0)?;
                    trace.add_up();
                    Ok(trace)
                });
                each.collect()
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

/// Reads traces, in one transaction and as of one moment.
pub(crate) struct Traces<'j> {
    pub(crate) journal: &'j mut dyn Journal,
    pub(crate) now: Moment,
}

impl Traces<'_> {
    fn of_chain(&mut self, chain: &Chain, depth: usize) -> Result<Trace, Problem> {
        match &chain.of {
            ChainOf::Task { task, run } => match self.journal.task(task)? {
                Some(task) => self.of_task(task, *run, depth),
                None => Err(Problem::Refused(Refusal::UnknownChain {
                    asked: chain.id.to_string(),
                })),
            },
            ChainOf::Session { session, prompt } => {
                let entries = self.journal.entries(session, 0, u64::MAX)?;
                let title = self.journal.session(session)?.map(|session| session.title);
                let trace = trace_of_session(chain, session, title, prompt, &entries, self.now);
                let children = self.below_chain(chain, depth)?;
                Ok(Trace { children, ..trace })
            }
        }
    }

    /// A run of a task.
    pub(crate) fn of_task(&mut self, task: Task, run: u32, depth: usize) -> Result<Trace, Problem> {
        let chains = self.journal.chains_of(&task.id)?;
        let chain = chains
            .into_iter()
            .find(|chain| matches!(chain.of, ChainOf::Task { run: of, .. } if of == run));
        let events = self.journal.events(&task.id)?;
        let entries = match &task.session {
            Some(session) => self.journal.entries(session, 0, u64::MAX)?,
            None => Vec::new(),
        };
        let children = match &chain {
            Some(chain) => self.below_chain(chain, depth)?,
            None => self.below_task(&task.id, depth)?,
        };
        let trace = trace_of_task(task, run, chain.as_ref(), &events, &entries, self.now);
        Ok(Trace { children, ..trace })
    }

    /// The runs that were begun from within a run.
    fn below_chain(&mut self, chain: &Chain, depth: usize) -> Result<Vec<Trace>, Problem> {
        if depth >= DEEPEST {
            return Ok(Vec::new());
        }
        let below = self.journal.chains_below(&chain.id)?;
        let below = below.iter().map(|child| self.of_chain(child, depth + 1));
        below.collect()
    }

    /// The runs below a task of old: it has no name for its runs, so they are below all of them.
    fn below_task(&mut self, task: &TaskId, depth: usize) -> Result<Vec<Trace>, Problem> {
        if depth >= DEEPEST {
            return Ok(Vec::new());
        }
        let below = self.journal.below(task)?.into_iter();
        below
            .map(|below| {
                let run = below.run;
                self.of_task(below, run, depth + 1)
            })
            .collect()
    }
}
