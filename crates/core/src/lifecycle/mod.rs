//! What may happen to a task next: the one table of states and commands.
//!
//! [`decide`] answers a command with events and effects and changes nothing; [`apply`]
//! folds a saved event into a task. Nothing else changes a task.

mod end;
mod fold;
mod limits;
mod standing;
mod tell;

use crate::{
    budget::Spent,
    event::Event,
    fallback::Fallback,
    host_ref::HostRef,
    id::{ChainId, OwnerId, PostId, SessionId},
    moment::Moment,
    progress::{Observation, Totals},
    question::Reply,
    refusal::Refusal,
    speaker::Speaker,
    task::{Outcome, Stage, State, Task},
    task_limits::TaskLimits,
};

pub use end::was_stopped;
use end::{at_limit, cancelled, cleared, ends, finished, spent_below, summed_up, sums_up};
pub use fold::{apply, begin};
use limits::repeats;
pub use limits::{clock_moved, lost_its_workers, over_iterations, overdue};
pub use standing::{Next, Standing, Unavailable, after_asking};
pub use tell::{unanswered, until_question_told};

/// What someone wants of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// There is a slot for it.
    Start,
    /// There is a slot for it, and this process lacks something that another may have.
    Hold {
        /// What is missing, in words.
        why: String,
    },
    SessionMade(SessionId),
    /// The host has its prompt.
    Prompted,
    Observe(Vec<Observation>),
    /// Its model is unavailable: go on with another one.
    FallBack(Fallback),
    /// The host says that it has ended.
    Finish {
        outcome: Outcome,
        /// What the child said last.
        answer: Option<String>,
        /// What the session has used in all, if the host says so.
        totals: Option<Totals>,
        /// Whether it may be at work again: something was on its way to it that wakes it.
        woken: bool,
    },
    /// It has reached a limit, or its host failed: end it and stop the host.
    GiveUp {
        /// The limit, or the failure.
        why: String,
    },
    /// It has reached a limit of its budget: stop its work, and let it say what it has found.
    SumUp {
        why: String,
    },
    /// It has said what it has found, or had no more to say it with.
    SummedUp {
        /// What it said, now or before.
        answer: Option<String>,
        /// What its last turn took.
        spent: Option<Observation>,
    },
    Cancel(CancelledBy),
    /// The host has stopped working for a run that had ended.
    Stopped {
        /// What its session has used by then: an agent may say that only when it stops.
        totals: Option<Totals>,
    },
    /// Go on with a follow-up.
    Resume {
        prompt: String,
        /// The batch it belongs to from now on.
        batch: u64,
        /// The trace of this run.
        chain: ChainId,
        /// The trace of the run that asks for it.
        from: Option<ChainId>,
    },
    /// Another process looks after it from now on, or none.
    Assign {
        to: Option<OwnerId>,
    },
    /// Another host has its session now.
    Move {
        host: HostRef,
    },
    /// The tasks below it have spent so much by now.
    SpentBelow(Spent),
    /// The clock moved by so many milliseconds in which it did not run.
    ClockMoved {
        /// Forwards, or backwards if it is negative.
        by: i64,
    },
    /// Tell it something while it works.
    Tell {
        from: Speaker,
        text: String,
    },
    /// Answer what it asks.
    Answer {
        /// The host's name for the question.
        question: String,
        reply: Reply,
    },
    /// Tell its parent what it has been asking for too long.
    TellQuestions,
    /// Its result is being read.
    Retrieve,
    Clear,
}

/// Who stops a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    Request,
    /// What it worked for has ended, so there is no parent to be told.
    Above,
}

/// What a command leads to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// To be saved, in this order.
    pub events: Vec<Event>,
    /// To be done in the same transaction.
    pub effects: Vec<Effect>,
}

impl Decision {
    fn only(effect: Effect) -> Self {
        Self {
            events: Vec::new(),
            effects: vec![effect],
        }
    }

    /// What was spent comes before everything else; the tasks above spend it too.
    fn spends_first(&mut self, task: &Task, spent: Option<Observation>) {
        if spent.is_some() && task.place.above.is_some() {
            self.effects.push(Effect::SpendAbove);
        }
        self.events.splice(0..0, spent.map(Event::Observed));
    }
}

/// What has to be done about other things than the task itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Tell the parent how it ended.
    Tell,
    /// There is no parent to be told how it ended.
    SuppressNotice,
    /// Take back what the parent has not been told yet.
    Withdraw,
    StopBelow,
    /// It has spent something, and so have the tasks above.
    SpendAbove,
    /// Send the child what it was told and did not get with its prompt, unless that was done.
    SendMessages,
    /// Give the host the answer to what the child asks.
    SendAnswer {
        id: PostId,
        /// The host's name for the question.
        question: String,
        reply: Reply,
    },
    /// Tell the parent what the child asks, and whoever is at the top of the tree.
    TellQuestion {
        id: PostId,
        /// The host's name for the question.
        question: String,
    },
}

/// Maps a command to events and effects. A command that arrives too late yields an empty
/// [`Decision`]; an error that the caller must see is a [`Refusal`].
///
/// # Errors
/// When the command makes no sense in this state and the caller should be told.
pub fn decide(
    task: &Task,
    command: Command,
    now: Moment,
    limits: &TaskLimits,
) -> Result<Decision, Refusal> {
    use State::{Ended, Queued, Running};
    let nothing = Ok(Decision::default());
    match (&task.state, command) {
        (Queued { .. } | Running { .. } | Ended { .. }, Command::Assign { to }) => {
            happens(Event::Owned { by: to })
        }
        (Queued { .. } | Running { .. } | Ended { .. }, Command::SpentBelow(spent)) => {
            spent_below(task, spent)
        }

        (Queued { .. } | Running { .. } | Ended { .. }, Command::Tell { from, text }) => {
            tell::told(task, from, text)
        }
        (
            Running {
                stage: Stage::Working,
                ..
            },
            Command::Answer { question, reply },
        ) => tell::answered(task, question, reply),
        (Queued { .. } | Running { .. } | Ended { .. }, Command::Answer { .. }) => {
            Err(Refusal::NotAsking {
                task: task.id.clone(),
            })
        }
        (Running { .. }, Command::TellQuestions) => Ok(tell::questions_told(task, now, limits)),
        (Queued { .. } | Ended { .. }, Command::TellQuestions) => nothing,

        (Queued { .. }, Command::Start) => happens(Event::Started),
        (Queued { .. }, Command::Hold { why }) if task.progress.held.as_ref() != Some(&why) => {
            happens(Event::Held { why })
        }
        (Queued { .. } | Running { .. } | Ended { .. }, Command::Hold { .. }) => nothing,
        (
            Queued { .. },
            Command::Finish {
                outcome, answer, ..
            },
        ) => ends(outcome, answer, false),
        (Queued { .. }, Command::GiveUp { why } | Command::SumUp { why }) => {
            ends(Outcome::Failed { why }, None, false)
        }
        (Queued { .. }, Command::Cancel(by)) => cancelled(by, false),
        (
            Queued { .. },
            Command::SessionMade(_)
            | Command::Prompted
            | Command::Observe(_)
            | Command::FallBack(_)
            | Command::SummedUp { .. },
        ) => stopped_or_late(task, None),
        (Queued { .. } | Ended { .. }, Command::Stopped { totals }) => {
            stopped_or_late(task, totals)
        }
        (Queued { .. }, Command::Move { host }) => happens(Event::Moved { host }),
        // A run stays where it began.
        (Running { .. } | Ended { .. }, Command::Move { .. }) => nothing,
        (Queued { .. } | Ended { .. }, Command::ClockMoved { .. }) => nothing,

        (Running { .. }, Command::SessionMade(session)) => happens(Event::SessionMade { session }),
        (Running { .. }, Command::Prompted) => Ok(Decision {
            events: vec![Event::Prompted],
            effects: vec![Effect::SendMessages],
        }),
        (Running { .. }, Command::ClockMoved { by }) => happens(Event::ClockMoved { by }),
        (Running { .. }, Command::Observe(seen)) => observed(task, seen, now, limits),
        (Running { stage, .. }, Command::FallBack(fallback)) => falls_back(stage, fallback),
        (
            Running { .. },
            Command::Finish {
                outcome,
                answer,
                totals,
                woken,
            },
        ) => {
            let end = ends(at_limit(task, outcome), answer, woken)?;
            Ok(finished(task, end, totals))
        }
        (Running { .. }, Command::GiveUp { why }) => ends(Outcome::Failed { why }, None, true),
        (Running { stage, .. }, Command::SumUp { why }) => sums_up(stage, why),
        (
            Running {
                stage: Stage::SummingUp { why },
                ..
            },
            Command::SummedUp { answer, spent },
        ) => summed_up(task, why, answer, spent),
        (Running { .. }, Command::SummedUp { .. }) => nothing,
        (Running { .. }, Command::Cancel(by)) => cancelled(by, true),
        (Running { .. }, Command::Start | Command::Stopped { .. }) => nothing,

        (Queued { .. } | Running { .. }, Command::Resume { .. }) => Err(Refusal::StillRunning {
            task: task.id.clone(),
            status: task.status(),
        }),
        (Queued { .. } | Running { .. }, Command::Retrieve) => nothing,
        (Queued { .. }, Command::Clear) => cleared(task, true, false),
        (Running { .. }, Command::Clear) => cleared(task, true, true),

        (
            Ended { .. },
            Command::Resume {
                prompt,
                batch,
                chain,
                from,
            },
        ) => {
            let chain = Some(chain);
            let resume = Event::Resumed {
                prompt,
                batch,
                chain,
                from,
            };
            resumed(task, resume)
        }
        (Ended { .. }, Command::Cancel(CancelledBy::Request)) => Err(Refusal::AlreadyEnded {
            task: task.id.clone(),
            status: task.status(),
        }),
        (Ended { .. }, Command::Retrieve) => match task.retrieved_at {
            Some(_) => nothing,
            None => happens(Event::Retrieved),
        },
        (Ended { .. }, Command::Clear) => cleared(task, false, false),
        (
            Ended { .. },
            Command::Start
            | Command::SessionMade(_)
            | Command::Prompted
            | Command::Observe(_)
            | Command::FallBack(_)
            | Command::Finish { .. }
            | Command::GiveUp { .. }
            | Command::SumUp { .. }
            | Command::SummedUp { .. }
            | Command::Cancel(CancelledBy::Above),
        ) => nothing,
    }
}

fn happens(event: Event) -> Result<Decision, Refusal> {
    Ok(Decision {
        events: vec![event],
        effects: Vec::new(),
    })
}

/// A resumed task waits until the host has stopped working for the run before.
fn stopped_or_late(task: &Task, totals: Option<Totals>) -> Result<Decision, Refusal> {
    if !task.stopping {
        return Ok(Decision::default());
    }
    let mut decision = happens(Event::Stopped)?;
    let news = totals.filter(|totals| task.progress.is_news(totals));
    decision.spends_first(task, news.map(Observation::Counted));
    Ok(decision)
}

/// A task at its limit has no use for another model.
fn falls_back(stage: &Stage, fallback: Fallback) -> Result<Decision, Refusal> {
    match stage {
        Stage::SummingUp { .. } => Ok(Decision::default()),
        Stage::Creating | Stage::Prompting | Stage::Working => happens(Event::FellBack(fallback)),
    }
}

fn resumed(task: &Task, resume: Event) -> Result<Decision, Refusal> {
    if task.session.is_none() {
        return Err(Refusal::NeverBegan {
            task: task.id.clone(),
        });
    }
    if matches!(&resume, Event::Resumed { prompt, .. } if prompt.trim().is_empty()) {
        return Err(Refusal::EmptyPrompt);
    }
    happens(resume)
}

fn observed(
    task: &Task,
    seen: Vec<Observation>,
    now: Moment,
    limits: &TaskLimits,
) -> Result<Decision, Refusal> {
    let mut progress = task.progress.clone();
    for observation in &seen {
        progress.note(observation, now);
    }
    let spends = progress.spent != task.progress.spent;
    let mut decision = Decision {
        events: seen.into_iter().map(Event::Observed).collect(),
        effects: Vec::new(),
    };
    if spends && task.place.above.is_some() {
        decision.effects.push(Effect::SpendAbove);
    }
    let State::Running { stage, .. } = &task.state else {
        return Ok(decision);
    };
    if matches!(stage, Stage::SummingUp { .. }) {
        return Ok(decision);
    }
    let spent = progress.spent.plus(task.below).beyond(task.spent_before);
    let end = match (task.budget.exceeded(spent), repeats(&progress, limits)) {
        (Some(why), _) => sums_up(stage, why)?,
        (None, Some(why)) => ends(Outcome::Failed { why }, None, true)?,
        (None, None) => Decision::default(),
    };
    decision.events.extend(end.events);
    decision.effects.extend(end.effects);
    Ok(decision)
}
