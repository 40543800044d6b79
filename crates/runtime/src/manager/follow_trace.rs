//! Following a run: what is new in it and in those below it, and nothing that was read before.

use std::{collections::HashMap, time::Duration};

use asyncagents_core::{
    agent::Filed,
    event::Saved,
    id::{PostId, SessionId, TaskId},
    port::Journal,
    refusal::Refusal,
    request::Caller,
    task::Task,
    trace::{Chain, ChainOf, RunPosition, RunReading, Step, Trace},
};
use tokio::time;

use super::{
    DEEPEST, Manager,
    trace::{Named, chain_of, named, task_of},
};
use crate::Problem;

/// How long steps that are no event of the task may go unnoticed.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// A run that is followed, with those below it.
pub struct TraceFollower {
    manager: Manager,
    root: Root,
    runs: HashMap<RunRef, Followed>,
    /// The store's version when it was read last.
    version: Option<i64>,
}

/// What is new in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSteps {
    /// How far it is below the run that is followed.
    pub depth: usize,
    /// The run's name, or its title if it has none.
    pub name: String,
    pub title: String,
    /// Whether nothing was said of the run before.
    pub is_first: bool,
    pub steps: Vec<Step>,
}

/// The run that is followed. Tasks of old have no name for theirs.
#[derive(Clone)]
enum Root {
    Chain(Chain),
    Task(TaskId, u32),
}

/// A run, by what it is a run of.
#[derive(Clone, PartialEq, Eq, Hash)]
enum RunRef {
    Task(TaskId, u32),
    Session(SessionId, PostId),
}

/// What is known of a run.
struct Followed {
    reading: RunReading,
    /// How it stood when it was read last.
    head: Option<Trace>,
}

/// A run with those below it, and what was read of them.
struct Found {
    run: RunRef,
    /// Nothing if the run was over the last time.
    news: Option<News>,
    below: Vec<Found>,
}

struct News {
    of: NewsOf,
    events: Vec<Saved>,
    entries: Vec<Filed>,
}

enum NewsOf {
    Task {
        task: Box<Task>,
        chain: Option<Chain>,
    },
    Session {
        chain: Chain,
        session: SessionId,
        title: Option<String>,
    },
}

impl Manager {
    /// Follows a run, which is named as for [`Manager::trace`].
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn follow_trace(&self, asked: &str) -> Result<TraceFollower, Problem> {
        let asked = asked.trim().to_owned();
        let found = self.shared.read(move |journal| named(journal, &asked));
        let root = match found.await? {
            Named::Chain(chain) => Root::Chain(chain),
            Named::Task(task) => Root::Task(task.id, task.run),
        };
        Ok(TraceFollower {
            manager: self.clone(),
            root,
            runs: HashMap::new(),
            version: None,
        })
    }
}

impl TraceFollower {
    /// What is new since the last time, of the run and then of those below it: the steps of which no
    /// more is to come. With it, how the run stands, without its steps.
    ///
    /// # Errors
    /// When the store fails, or the run is gone.
    pub async fn next(&mut self) -> Result<(Vec<NewSteps>, Trace), Problem> {
        let shared = &self.manager.shared;
        // Before it is read: what is written meanwhile is new the next time.
        self.version = shared.store.version().await.ok();
        let known = self.runs.iter();
        let known = known.map(|(run, followed)| (run.clone(), followed.position()));
        let (root, known) = (self.root.clone(), known.collect::<HashMap<_, _>>());
        let found = shared.read(move |journal| {
            let known = &known;
            Reader { journal, known }.of_root(&root)
        });
        let found = found.await?;
        let mut new_steps = Vec::new();
        let trace = self.take(found, 0, &mut new_steps);
        let mut trace = trace.ok_or_else(|| self.root.unknown())?;
        trace.add_up();
        Ok((new_steps, trace))
    }

    /// Returns when there may be something new, soon after it was saved.
    ///
    /// # Errors
    /// When the store fails, or the task is gone.
    pub async fn changed(&self) -> Result<(), Problem> {
        let shared = &self.manager.shared;
        loop {
            match self.root.run() {
                RunRef::Task(task, number) => {
                    let run = self.runs.get(&RunRef::Task(task.clone(), number));
                    let seen = run.map(|run| run.reading.position().event);
                    let (caller, task) = (Caller::Person, task.as_str());
                    let follow = self.manager.follow(&caller, task, seen, POLL_INTERVAL);
                    follow.await?;
                }
                RunRef::Session(..) => time::sleep(POLL_INTERVAL).await,
            }
            let version = shared.store.version().await.ok();
            if version.is_none() || version != self.version {
                return Ok(());
            }
        }
    }

    /// Folds what was read into what is known.
    fn take(&mut self, found: Found, depth: usize, new_steps: &mut Vec<NewSteps>) -> Option<Trace> {
        let now = self.manager.now();
        let is_first = !self.runs.contains_key(&found.run);
        let followed = self.runs.entry(found.run);
        let followed = followed.or_insert_with_key(Followed::new);
        let mut steps = Vec::new();
        if let Some(news) = found.news {
            let reading = &mut followed.reading;
            reading.take(&news.events, &news.entries);
            steps = reading.new_steps();
            followed.head = Some(match news.of {
                NewsOf::Task { task, chain } => reading.task_head(&task, chain.as_ref(), now),
                NewsOf::Session {
                    chain,
                    session,
                    title,
                } => reading.session_head(&chain, &session, title, now),
            });
        }
        let head = followed.head.clone()?;
        let name = head.chain.as_ref();
        new_steps.push(NewSteps {
            depth,
            name: name.map_or_else(|| head.title.clone(), ToString::to_string),
            title: head.title.clone(),
            is_first,
            steps,
        });
        let below = found.below.into_iter();
        let children = below.filter_map(|child| self.take(child, depth + 1, new_steps));
        let children = children.collect();
        Some(Trace { children, ..head })
    }
}

impl Root {
    fn run(&self) -> RunRef {
        match self {
            Root::Chain(chain) => RunRef::from(&chain.of),
            Root::Task(task, run) => RunRef::Task(task.clone(), *run),
        }
    }

    fn unknown(&self) -> Refusal {
        let asked = match self {
            Root::Chain(chain) => chain.id.to_string(),
            Root::Task(task, _) => task.to_string(),
        };
        Refusal::UnknownChain { asked }
    }
}

impl From<&ChainOf> for RunRef {
    fn from(of: &ChainOf) -> Self {
        match of {
            ChainOf::Task { task, run } => RunRef::Task(task.clone(), *run),
            ChainOf::Session { session, prompt } => {
                RunRef::Session(session.clone(), prompt.clone())
            }
        }
    }
}

impl Followed {
    fn new(run: &RunRef) -> Self {
        let reading = match run {
            RunRef::Task(task, run) => RunReading::of_task(task, *run),
            RunRef::Session(_, prompt) => RunReading::of_session(prompt),
        };
        Self {
            reading,
            head: None,
        }
    }

    /// From where on it is read; nothing if it is over.
    fn position(&self) -> Option<RunPosition> {
        let is_over = self.head.as_ref().is_some_and(|head| !head.state.is_live());
        (!is_over).then(|| self.reading.position())
    }
}

/// Reads what is new, in one transaction.
struct Reader<'j> {
    journal: &'j mut dyn Journal,
    /// How far the runs were read that are known, if they are not over.
    known: &'j HashMap<RunRef, Option<RunPosition>>,
}

impl Reader<'_> {
    fn of_root(&mut self, root: &Root) -> Result<Found, Problem> {
        match root {
            Root::Chain(chain) => self.of_chain(chain, 0),
            Root::Task(task, run) => {
                let found = self.journal.task(task)?;
                let task = found.ok_or_else(|| root.unknown())?;
                self.of_task(task, *run, 0)
            }
        }
    }

    fn of_chain(&mut self, chain: &Chain, depth: usize) -> Result<Found, Problem> {
        match &chain.of {
            ChainOf::Task { task, run } => {
                let task = task_of(self.journal, chain, task)?;
                self.of_task(task, *run, depth)
            }
            ChainOf::Session { session, .. } => {
                let run = RunRef::from(&chain.of);
                let news = match self.position(&run) {
                    Some(read) => Some(News {
                        entries: self.journal.entries(session, read.entry, u64::MAX)?,
                        events: Vec::new(),
                        of: NewsOf::Session {
                            chain: chain.clone(),
                            session: session.clone(),
                            title: self.journal.session(session)?.map(|session| session.title),
                        },
                    }),
                    None => None,
                };
                let below = self.below(chain, depth)?;
                Ok(Found { run, news, below })
            }
        }
    }

    fn of_task(&mut self, task: Task, run: u32, depth: usize) -> Result<Found, Problem> {
        let chain = chain_of(self.journal, &task.id, run)?;
        let below = match &chain {
            Some(chain) => self.below(chain, depth)?,
            None => self.below_task(&task.id, depth)?,
        };
        let run = RunRef::Task(task.id.clone(), run);
        let news = match self.position(&run) {
            Some(read) => Some(News {
                events: self.journal.events_after(&task.id, read.event)?,
                entries: match &task.session {
                    Some(session) => self.journal.entries(session, read.entry, u64::MAX)?,
                    None => Vec::new(),
                },
                of: NewsOf::Task {
                    task: Box::new(task),
                    chain,
                },
            }),
            None => None,
        };
        Ok(Found { run, news, below })
    }

    /// From where on a run is read; nothing if it is over.
    fn position(&self, run: &RunRef) -> Option<RunPosition> {
        let known = self.known.get(run).copied();
        known.unwrap_or(Some(RunPosition::default()))
    }

    /// The runs that were begun from within a run.
    fn below(&mut self, chain: &Chain, depth: usize) -> Result<Vec<Found>, Problem> {
        if depth >= DEEPEST {
            return Ok(Vec::new());
        }
        let below = self.journal.chains_below(&chain.id)?;
        let below = below.iter().map(|child| self.of_chain(child, depth + 1));
        below.collect()
    }

    /// The runs below a task of old, which has no name for its runs.
    fn below_task(&mut self, task: &TaskId, depth: usize) -> Result<Vec<Found>, Problem> {
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
