//! What may happen to a task next: the one table of states and commands.
//!
//! [`decide`] answers a command with events and effects and changes nothing; [`apply`]
//! folds a saved event into a task. Nothing else changes a task.

mod tell;

use std::time::Duration;

use crate::{
    budget::Spent,
    event::{Event, Launched},
    fallback::Fallback,
    host_ref::HostRef,
    id::{ChainId, ModelName, OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    progress::{Observation, Progress, Totals},
    question::Reply,
    refusal::Refusal,
    speaker::Speaker,
    task::{Outcome, Stage, State, Task},
    task_limits::TaskLimits,
    wording::duration,
};

pub use tell::{unanswered, until_question_told};

/// What someone wants of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// There is a slot for it.
    Start,
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
    Stopped,
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
            | Command::SummedUp { .. }
            | Command::Stopped,
        ) => stopped_or_late(task),
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
        (Running { .. }, Command::Start | Command::Stopped) => nothing,

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
        (Ended { .. }, Command::Stopped) => stopped_or_late(task),
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
fn stopped_or_late(task: &Task) -> Result<Decision, Refusal> {
    if task.stopping {
        return happens(Event::Stopped);
    }
    Ok(Decision::default())
}

fn ends(outcome: Outcome, answer: Option<String>, stop: bool) -> Result<Decision, Refusal> {
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
fn sums_up(stage: &Stage, why: String) -> Result<Decision, Refusal> {
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

/// A task at its limit has no use for another model.
fn falls_back(stage: &Stage, fallback: Fallback) -> Result<Decision, Refusal> {
    match stage {
        Stage::SummingUp { .. } => Ok(Decision::default()),
        Stage::Creating | Stage::Prompting | Stage::Working => happens(Event::FellBack(fallback)),
    }
}

/// How a run ended: one that was summing up has ended at its limit.
fn at_limit(task: &Task, outcome: Outcome) -> Outcome {
    match &task.state {
        State::Running {
            stage: Stage::SummingUp { why },
            ..
        } => Outcome::Failed { why: why.clone() },
        State::Running { .. } | State::Queued { .. } | State::Ended { .. } => outcome,
    }
}

/// Whatever it has said, it has ended at its limit.
fn summed_up(
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
fn finished(task: &Task, mut end: Decision, totals: Option<Totals>) -> Decision {
    end.spends_first(task, totals.map(Observation::Counted));
    end
}

/// What is spent below counts for the task too. If that is too much, it ends, and so does what it
/// has left at work.
fn spent_below(task: &Task, below: Spent) -> Result<Decision, Refusal> {
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

fn cancelled(by: CancelledBy, stop: bool) -> Result<Decision, Refusal> {
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

fn cleared(task: &Task, live: bool, stop: bool) -> Result<Decision, Refusal> {
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

/// Why a task that calls the same thing again and again must end.
fn repeats(progress: &Progress, limits: &TaskLimits) -> Option<String> {
    let repeated = progress.repeated.times;
    (repeated >= limits.same_calls).then(|| {
        let tool = progress.recent.back().map_or("a tool", String::as_str);
        format!("it called {tool} with the same parameters {repeated} times in a row")
    })
}

/// Why a skill has had its iterations, if it has: for hosts that do not count them.
pub fn over_iterations(task: &Task) -> Option<String> {
    let most = task.skill.as_ref().map(|terms| terms.iterations)?;
    let progress = &task.progress;
    let turns = progress.spent.turns.saturating_sub(progress.turns_before);
    (turns > most).then(|| format!("the limit of {most} iterations is reached"))
}

/// Whether its session has been stopped, so that an answer would be of no use there.
pub fn was_stopped(task: &Task) -> bool {
    match &task.state {
        State::Queued { .. } | State::Running { .. } => task.cleared,
        State::Ended { outcome, .. } => task.cleared || *outcome != Outcome::Completed,
    }
}

/// Why a running task that has been quiet for so long must end, if it must.
pub fn overdue(task: &Task, quiet: Duration, now: Moment, limits: &TaskLimits) -> Option<String> {
    task.budget.out_of_time(task.ran(now)).or_else(|| {
        // A task that waits for an answer of the user makes no progress.
        let waits = !task.progress.asking.is_empty();
        (!waits && quiet >= limits.stall)
            .then(|| format!("it made no progress for {}", duration(limits.stall)))
    })
}

/// Why a task that was taken over must end, if it must: it may be what its workers died of.
pub fn lost_its_workers(task: &Task, limits: &TaskLimits) -> Option<String> {
    let deaths = task.progress.worker_deaths;
    let runs = matches!(task.state, State::Running { .. });
    (runs && deaths >= limits.worker_deaths).then(|| {
        format!(
            "it lost its worker {deaths} times, and made no progress in between; resume it to try \
             again"
        )
    })
}

/// How far the clock has moved since a running task was last looked after, if that is worth a word.
/// For a worker that takes a task over: it did not run in between. `renewed` is when the worker that is
/// gone was last known to live.
pub fn clock_moved(task: &Task, renewed: Option<Moment>, now: Moment) -> Option<i64> {
    let State::Running { since, .. } = task.state else {
        return None;
    };
    let progress = &task.progress;
    let seen = [progress.last_activity, progress.unattended_since, renewed];
    let seen = seen.into_iter().flatten().fold(since, Moment::max);
    let moved = now.as_millis().saturating_sub(seen.as_millis());
    let longest = i64::try_from(LONGEST_GAP.as_millis()).unwrap_or(i64::MAX);
    (moved < 0 || moved > longest).then_some(moved)
}

/// How long a task may go from one worker to the next and still count as running.
const LONGEST_GAP: Duration = Duration::from_secs(60);

/// What a host says about a session and a prompt of ours, when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is no such session.
    Gone,
    /// The prompt is not in its history.
    Unprompted,
    /// It is working on the prompt.
    Working,
    /// It has done with the prompt.
    Done {
        outcome: Outcome,
        /// What the child said last.
        answer: Option<String>,
    },
    /// Its model is out of quota or cannot be asked, so the prompt is not worked on.
    ModelUnavailable(Unavailable),
    /// The prompt is there, and it is neither answered nor worked on: the host itself was
    /// stopped in the middle.
    Interrupted,
}

/// What a host says about a model that it cannot ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Which model, where the host says so.
    pub model: Option<ModelName>,
    /// What the provider says.
    pub why: String,
    /// What the child said last.
    pub answer: Option<String>,
    /// Whether the host goes on asking, though in vain so far.
    pub retrying: bool,
}

/// What to do about a running task after its host was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Prompt,
    /// Wait for what the host reports.
    Wait,
    Finish {
        outcome: Outcome,
        /// What the child said last.
        answer: Option<String>,
    },
}

/// What to do about a running task whose host was asked, because reports may have been
/// missed: another process looked after it before, the connection broke, it was silent.
pub fn after_asking(standing: Standing) -> Next {
    let failed = |why: &str| Next::Finish {
        outcome: Outcome::Failed {
            why: why.to_owned(),
        },
        answer: None,
    };
    match standing {
        // Never in the history means never worked on, so this does nothing twice, if what may
        // have been on its way was given the time to arrive.
        Standing::Unprompted => Next::Prompt,
        Standing::Working => Next::Wait,
        Standing::Done { outcome, answer } => Next::Finish { outcome, answer },
        Standing::ModelUnavailable(unavailable) if unavailable.retrying => Next::Wait,
        Standing::ModelUnavailable(Unavailable { why, answer, .. }) => Next::Finish {
            outcome: Outcome::Failed { why },
            answer,
        },
        Standing::Gone => failed("its session no longer exists"),
        Standing::Interrupted => {
            failed("its host was stopped while it worked; resume it to go on from there")
        }
    }
}

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
            task.owner.clone_from(by);
        }
        Event::Started => {
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
