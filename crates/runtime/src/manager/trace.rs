//! Traces, read from the journal.

use asyncagents_core::{
    id::TaskId,
    moment::Moment,
    port::Journal,
    refusal::Refusal,
    request::Caller,
    task::Task,
    trace::{
        Chain, ChainOf, Trace, summary_of_session, summary_of_task, trace_of_session, trace_of_task,
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

    /// The newest runs that were not begun from within others, newest first, with the runs below
    /// them. What happened in them is summed up, not read, so that long runs cost no more than short
    /// ones.
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
                    let mut trace = traces.summary_of_chain(chain, 0)?;
                    trace.add_up();
                    Ok(trace)
                });
                each.collect()
            })
            .await
    }
}

/// What a name stands for.
pub(super) enum Named {
    Chain(Chain),
    Task(Box<Task>),
}

pub(super) fn named(journal: &mut dyn Journal, asked: &str) -> Result<Named, Problem> {
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
            ChainOf::Task { task, run } => {
                let task = task_of(self.journal, chain, task)?;
                self.of_task(task, *run, depth)
            }
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
    fn of_task(&mut self, task: Task, run: u32, depth: usize) -> Result<Trace, Problem> {
        let chain = chain_of(self.journal, &task.id, run)?;
        let events = self.journal.events(&task.id)?;
        let entries = match &task.session {
            Some(session) => self.journal.entries(session, 0, u64::MAX)?,
            None => Vec::new(),
        };
        let children = match &chain {
            Some(chain) => self.below_chain(chain, depth)?,
            None => self.below_task(&task.id, depth)?,
        };
        let trace = trace_of_task(&task, run, chain.as_ref(), &events, &entries, self.now);
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

    /// A run and those below it, without their steps.
    fn summary_of_chain(&mut self, chain: &Chain, depth: usize) -> Result<Trace, Problem> {
        let trace = match &chain.of {
            ChainOf::Task { task, run } => {
                let task = task_of(self.journal, chain, task)?;
                self.summary_of_run(&task, *run, Some(chain))?
            }
            ChainOf::Session { session, prompt } => {
                let summary = self.journal.run_summary(session, prompt)?;
                let title = self.journal.session(session)?.map(|session| session.title);
                summary_of_session(chain, session, title, summary, self.now)
            }
        };
        if depth >= DEEPEST {
            return Ok(trace);
        }
        let below = self.journal.chains_below(&chain.id)?;
        let below = below
            .iter()
            .map(|child| self.summary_of_chain(child, depth + 1));
        let children = below.collect::<Result<_, Problem>>()?;
        Ok(Trace { children, ..trace })
    }

    /// A run of a task by itself, without its steps.
    pub(crate) fn summary_of_run(
        &mut self,
        task: &Task,
        run: u32,
        chain: Option<&Chain>,
    ) -> Result<Trace, Problem> {
        let events = self.journal.run_events(&task.id)?;
        let summary = match &task.session {
            Some(session) => self.journal.run_summary(session, &task.id.prompt(run))?,
            None => None,
        };
        let summed_up = summary_of_task(task, run, chain, &events, summary.as_ref(), self.now);
        match summed_up {
            Some(trace) => Ok(trace),
            // One of several runs in a host that keeps them itself.
            None => Ok(Trace {
                steps: Vec::new(),
                ..self.of_task(task.clone(), run, DEEPEST)?
            }),
        }
    }
}

/// The task that a run is one of.
pub(super) fn task_of(
    journal: &mut dyn Journal,
    chain: &Chain,
    task: &TaskId,
) -> Result<Task, Problem> {
    let unknown = || Refusal::UnknownChain {
        asked: chain.id.to_string(),
    };
    Ok(journal.task(task)?.ok_or_else(unknown)?)
}

/// The name of a run of a task, if it has one.
pub(super) fn chain_of(
    journal: &mut dyn Journal,
    task: &TaskId,
    run: u32,
) -> Result<Option<Chain>, Problem> {
    let chains = journal.chains_of(task)?;
    let is_of_run = |chain: &Chain| matches!(chain.of, ChainOf::Task { run: of, .. } if of == run);
    Ok(chains.into_iter().find(is_of_run))
}
