//! Drives one run of one task: makes the session, sends the prompt, follows the child until
//! it ends. Everything it learns is saved before it goes on.

mod fall_back;
mod finish;
mod make_session;
mod news;
mod sum_up;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use asyncagents_core::{
    budget::Spent,
    event::Launched,
    id::{OwnerId, PostId, SessionId, TaskId},
    last_turn,
    lifecycle::{
        Command, Next, Standing, after_asking, lost_its_workers, over_iterations, overdue,
        unanswered, until_question_told,
    },
    port::{HostError, Inspection, Prompt},
    progress::{Observation, Totals},
    question::Question,
    skill::Role,
    task::{Outcome, Stage, State, Task},
    task_limits::TaskLimits,
};
use tokio::{
    sync::{Notify, mpsc},
    time,
};

use self::{
    news::{News, Seen},
    sum_up::AskedBefore,
};
use crate::{
    Problem,
    clock::Clocks,
    hosts::{OpenHost, RunReport},
    metrics,
    shared::Shared,
};

/// How often a child that waits for its own tasks is checked.
const CHILDREN_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The longest pause before a host is asked again that did not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How many reports are saved together.
const TOGETHER: usize = 64;

/// How the worker got the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It has just started it.
    Started,
    /// Another worker had it, and its host may have done anything since.
    TakenOver,
}

/// One run of a task.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owner: OwnerId,
    pub(crate) host: Arc<OpenHost>,
    pub(crate) stop: Arc<Notify>,
    pub(crate) task: Task,
    /// The skill that the task runs, once it has been read.
    pub(crate) role: Option<Role>,
    pub(crate) got: Origin,
    pub(crate) limits: TaskLimits,
    pub(crate) clocks: Clocks,
    /// The child has nothing to do until tasks of its own have ended, or until it has got what is
    /// on its way to it.
    pub(crate) waits: bool,
    /// How many messages the child had got when its host was last asked about it.
    pub(crate) told: usize,
    /// How many times in a row the host was asked about the child and did not answer.
    pub(crate) unanswered: u32,
}

/// Why a runner lets go of its task.
pub(crate) enum RunStopped {
    /// The task has ended, or the worker stops, or another worker has it.
    Done,
    /// The store failed. The task is as it was, and will be taken over.
    Failed(Problem),
}

impl From<Problem> for RunStopped {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::NotOurs => RunStopped::Done,
            problem => RunStopped::Failed(problem),
        }
    }
}

impl Run {
    /// Drives the task to its end, or until the worker stops.
    pub(crate) async fn drive(mut self) {
        if self.got == Origin::Started {
            metrics::spawned(&self.task);
        }
        let driven = self.steps().await;
        metrics::ended(&self.shared, &self.task).await;
        match driven {
            Ok(()) | Err(RunStopped::Done) => {}
            Err(RunStopped::Failed(problem)) => {
                tracing::error!(task = %self.task.id, %problem, "cannot follow the task, letting go of it");
            }
        }
        if let Some(session) = &self.task.session {
            self.host.forget(session);
        }
    }

    async fn steps(&mut self) -> Result<(), RunStopped> {
        let lost = lost_its_workers(&self.task, &self.limits);
        if let Some(why) = lost.filter(|_| !is_summing_up(&self.task)) {
            return Err(self.give_up(why).await);
        }
        if let Err(why) = self.read_role().await {
            return Err(self.give_up(why).await);
        }
        let known = self.task.session.clone();
        // A session that is not known to the task has never been sent a prompt.
        let got = known.as_ref().map_or(Origin::Started, |_| self.got);
        let session = match known {
            Some(session) => session,
            None => self.make_session().await?,
        };
        let reports = self.host.listen(&session);
        if got == Origin::TakenOver && is_summing_up(&self.task) {
            return self.sum_up(&session, AskedBefore::Perhaps).await;
        }
        match got {
            Origin::Started => self.prompt(&session).await?,
            Origin::TakenOver => self.go_on(&session).await?,
        }
        self.follow(&session, reports).await
    }

    /// Reads the skill that the task runs. A run without the terms of its skill could do more than
    /// they allow, so there is none.
    async fn read_role(&mut self) -> Result<(), String> {
        let Some(terms) = self.task.skill.clone() else {
            return Ok(());
        };
        let role = self.launched_with(|launched| launched.role).await;
        let role = role.map_err(|problem| problem.to_string())?;
        let role = role.ok_or("its launch does not say which skill it runs")?;
        self.role = Some(Role { terms, ..role });
        Ok(())
    }

    /// Goes on where another worker left off.
    async fn go_on(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let on_its_way = stage(&self.task) == Some(&Stage::Prompting);
        if on_its_way && self.task.progress.reprompted > 0 {
            return self.go_on_falling_back(session).await;
        }
        let mut inspection = self.ask_until_answered(session).await?;
        if on_its_way && inspection.standing == Standing::Unprompted {
            // The other worker may have sent the prompt just before it died.
            self.pause(self.shared.settings.confirm_timeout).await?;
            inspection = self.ask_until_answered(session).await?;
        }
        self.act(session, inspection).await
    }

    /// A pause that the worker's end cuts short.
    async fn pause(&self, time: Duration) -> Result<(), RunStopped> {
        tokio::select! {
            () = time::sleep(time) => Ok(()),
            () = self.stop.notified() => Err(RunStopped::Done),
        }
    }

    /// Something of the launch event that is only read when it is needed.
    async fn launched_with<T: Send + 'static>(
        &self,
        what: fn(Launched) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let id = self.task.id.clone();
        self.shared
            .read(move |journal| Ok(journal.launched(&id)?.and_then(what)))
            .await
    }

    /// Sends the prompt. If that fails, the host may have it all the same.
    async fn prompt(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let (id, run, owner) = (self.task.id.clone(), self.task.run, self.owner.clone());
        let text = self
            .shared
            .read(move |journal| {
                // A worker that was asleep for too long has no right to send it.
                ours(journal.task(&id)?, &owner, run)?;
                Ok(journal.prompt(&id)?)
            })
            .await?
            .unwrap_or_default();
        let prompt = Prompt {
            id: self.prompt_id(),
            text: self.or_go_on(session, text).await?,
            agent: self.task.brief.agent.clone(),
            model: self.task.model().cloned(),
            effort: self.task.brief.effort,
            role: self.role.clone(),
        };
        if !self.shared.has_own_lease() {
            return Err(RunStopped::Done);
        }
        let sent = self.host.ask(|host| host.prompt(session, prompt)).await;
        if let Err(error) = sent {
            let why = format!("its prompt could not be sent: {error}");
            let inspection = self.ask_until_answered(session).await?;
            match inspection.standing {
                Standing::Unprompted => return Err(self.give_up(why).await),
                Standing::Working => {}
                Standing::Gone
                | Standing::Done { .. }
                | Standing::ModelUnavailable(_)
                | Standing::Interrupted => {
                    return Box::pin(self.act(session, inspection)).await;
                }
            }
        }
        self.record(Command::Prompted).await
    }

    /// Follows the child by what its host reports. The host is asked only when it says that
    /// the child is idle, when reports were missed, or after a long silence.
    async fn follow(
        &mut self,
        session: &SessionId,
        mut reports: mpsc::UnboundedReceiver<RunReport>,
    ) -> Result<(), RunStopped> {
        let mut seen = Seen::default();
        let mut quiet = Quiet::new(self.shared.settings.inspect_after);
        // What was found out on taking the task over may have been too much.
        self.check_budget(session).await?;
        loop {
            self.tell_questions().await?;
            let wake = self.next_wake(&quiet);
            let first = tokio::select! {
                first = reports.recv() => first,
                () = self.stop.notified() => return Ok(()),
                () = time::sleep(wake) => {
                    self.check_budget(session).await?;
                    if self.unanswered == 0 {
                        quiet.inspect_after = quiet.inspect_after.saturating_mul(2);
                    }
                    if self.catch_up(session, &mut reports, &mut seen).await? {
                        quiet = Quiet::new(self.shared.settings.inspect_after);
                    }
                    self.check_progress(session, &mut quiet).await?;
                    continue;
                }
                () = time::sleep(CHILDREN_POLL_INTERVAL), if self.waits && self.host.host.notices_wake() => {
                    self.look_for_unsettled().await?;
                    if !self.waits {
                        self.inspect(session).await?;
                    }
                    self.check_budget(session).await?;
                    continue;
                }
            };
            let Some(first) = first else { return Ok(()) };
            let mut news = News::default();
            news.take(first, &mut seen);
            while news.observed.len() < TOGETHER
                && let Ok(next) = reports.try_recv()
            {
                news.take(next, &mut seen);
            }
            if news.alive || !news.observed.is_empty() {
                quiet = Quiet::new(self.shared.settings.inspect_after);
            }
            if !news.observed.is_empty() {
                self.record(Command::Observe(news.observed)).await?;
            }
            if news.deleted {
                return Err(self.give_up("its session was deleted".to_owned()).await);
            }
            // That it is idle is no progress: a host could say so for ever.
            if news.ask && self.catch_up(session, &mut reports, &mut seen).await? {
                quiet = Quiet::new(self.shared.settings.inspect_after);
            }
            self.check_iterations(session).await?;
            self.check_progress(session, &mut quiet).await?;
        }
    }

    /// Ends a skill that has had its iterations, unless its host sees to that.
    async fn check_iterations(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        let why = over_iterations(&self.task);
        match why.filter(|_| !self.host.host.counts_iterations()) {
            Some(why) => self.end_at_limit(session, why).await,
            None => Ok(()),
        }
    }

    /// Ends a task that has made no progress for too long, or whose time is up.
    async fn check_progress(
        &mut self,
        session: &SessionId,
        quiet: &mut Quiet,
    ) -> Result<(), RunStopped> {
        self.check_budget(session).await?;
        let (quiet_for, now) = (quiet.since.elapsed(), self.shared.now());
        let Some(why) = overdue(&self.task, quiet_for, now, &self.limits) else {
            return Ok(());
        };
        // A task that waits for tasks of its own makes no progress; they have limits themselves.
        if self.unsettled_below().await? > 0 {
            quiet.since = time::Instant::now();
            return Ok(());
        }
        Err(self.give_up(why).await)
    }

    /// Ends a task whose budget is used up, or used up but for its last turn. A task whose time is
    /// up is not asked about first.
    async fn check_budget(&mut self, session: &SessionId) -> Result<(), RunStopped> {
        self.note_clock_moves().await?;
        if is_summing_up(&self.task) {
            return self.sum_up(session, AskedBefore::No).await;
        }
        let now = self.shared.now();
        let (task, ran) = (&self.task, self.task.ran(now));
        let why = if self.host.host.sums_up() {
            task.budget.out_of_time(ran)
        } else {
            last_turn::due(task.budget, task.spent_in_run(), ran)
        };
        match why {
            Some(why) => {
                let why = unanswered(&self.task, why);
                self.end_at_limit(session, why).await
            }
            None => Ok(()),
        }
    }

    /// Tells the parent what the child has been asking for too long.
    async fn tell_questions(&mut self) -> Result<(), RunStopped> {
        let left = until_question_told(&self.task, self.shared.now(), &self.limits);
        if left != Some(Duration::ZERO) {
            return Ok(());
        }
        self.record(Command::TellQuestions).await?;
        self.shared.written();
        Ok(())
    }

    /// The time that a task has run is told by the clock. If that was set, or the machine slept, the
    /// task did not run for so long: its beginning moves along.
    async fn note_clock_moves(&mut self) -> Result<(), RunStopped> {
        let moved = self.clocks.moved(&*self.shared.clock);
        match moved {
            Some(by) => self.record(Command::ClockMoved { by }).await,
            None => Ok(()),
        }
    }

    /// How long to wait for news before something has to be done.
    fn next_wake(&self, quiet: &Quiet) -> Duration {
        let now = self.shared.now();
        let quiet_for = quiet.since.elapsed();
        let budget = if self.host.host.sums_up() {
            self.task.budget
        } else {
            self.task.budget.for_work()
        };
        let left = budget.left(Spent::default(), self.task.ran(now)).time;
        let left = left.unwrap_or(Duration::MAX);
        let stall = if self.task.progress.asking.is_empty() {
            self.limits.stall.saturating_sub(quiet_for)
        } else {
            Duration::MAX
        };
        let inspect = match self.unanswered {
            0 => quiet.inspect_after.saturating_sub(quiet_for),
            times => retry_pause(times),
        };
        let told = until_question_told(&self.task, now, &self.limits);
        let told = told.unwrap_or(Duration::MAX);
        let first = inspect.min(left).min(stall).min(told);
        first.max(Duration::from_millis(1))
    }

    /// Asks the host, and does not count what it reported meanwhile if that is in its sums already.
    /// Returns whether there was progress that had not been reported.
    async fn catch_up(
        &mut self,
        session: &SessionId,
        reports: &mut mpsc::UnboundedReceiver<RunReport>,
        seen: &mut Seen,
    ) -> Result<bool, RunStopped> {
        let before = self.task.progress.spent;
        let Some(Inspected { summed }) = self.inspect(session).await? else {
            return Ok(false);
        };
        let mut news = News::default();
        while let Ok(next) = reports.try_recv() {
            news.take(next, seen);
        }
        news.observed.retain(|news| match news {
            Observation::Asked { .. } | Observation::Answered { .. } | Observation::FellBack(_) => {
                true
            }
            Observation::ToolCalled { .. }
            | Observation::Turned(_)
            | Observation::AskedBeside(_)
            | Observation::Counted(_) => !summed,
        });
        if !news.observed.is_empty() {
            self.record(Command::Observe(news.observed)).await?;
        }
        if news.ask || news.deleted {
            self.inspect(session).await?;
        }
        Ok(self.task.progress.spent.beyond(before) != Spent::default())
    }

    /// Asks the host what became of the prompt, and acts on it. Nothing if the host does not answer:
    /// it is asked again soon, for it may have said for the last time that the child is idle.
    async fn inspect(&mut self, session: &SessionId) -> Result<Option<Inspected>, RunStopped> {
        self.look_for_unsettled().await?;
        match self.ask(session).await {
            Ok(inspection) => {
                self.unanswered = 0;
                let summed = inspection.totals.is_some();
                self.act(session, inspection).await?;
                Ok(Some(Inspected { summed }))
            }
            Err(error) => {
                tracing::warn!(task = %self.task.id, %error, "inspecting the session failed, retrying");
                self.unanswered = self.unanswered.saturating_add(1);
                Ok(None)
            }
        }
    }

    /// Asks the host until it answers: nothing can be done before that is known.
    async fn ask_until_answered(&mut self, session: &SessionId) -> Result<Inspection, RunStopped> {
        let mut retries = Retries::begin();
        loop {
            self.look_for_unsettled().await?;
            match self.ask(session).await {
                Ok(inspection) => return Ok(inspection),
                Err(error) => self.before_retry(&mut retries, &error).await?,
            }
        }
    }

    /// Asks the host until it says whether it has got something.
    async fn confirm_until_answered(
        &mut self,
        session: &SessionId,
        post: &PostId,
    ) -> Result<bool, RunStopped> {
        let mut retries = Retries::begin();
        loop {
            match self.host.ask(|host| host.confirm(session, post)).await {
                Ok(is_there) => return Ok(is_there),
                Err(error) => self.before_retry(&mut retries, &error).await?,
            }
        }
    }

    /// A pause before the host is asked again, each longer than the one before. A run whose time is
    /// up is given up.
    async fn before_retry(
        &mut self,
        retries: &mut Retries,
        error: &HostError,
    ) -> Result<(), RunStopped> {
        tracing::warn!(task = %self.task.id, %error, "inspecting the session failed, retrying");
        self.note_clock_moves().await?;
        let now = self.shared.now();
        if let Some(why) = overdue(&self.task, retries.begun.elapsed(), now, &self.limits) {
            return Err(self.give_up(why).await);
        }
        retries.times = retries.times.saturating_add(1);
        self.pause(retry_pause(retries.times)).await
    }

    pub(crate) async fn ask(&self, session: &SessionId) -> Result<Inspection, HostError> {
        let prompt = self.prompt_id();
        self.host.ask(|host| host.inspect(session, &prompt)).await
    }

    async fn act(&mut self, session: &SessionId, inspection: Inspection) -> Result<(), RunStopped> {
        let totals = inspection.totals.filter(|totals| self.is_news(totals));
        let counted = |totals| Command::Observe(vec![Observation::Counted(totals)]);
        if let Standing::ModelUnavailable(unavailable) = &inspection.standing {
            let unavailable = unavailable.clone();
            return self.model_unavailable(session, unavailable, totals).await;
        }
        match after_asking(inspection.standing) {
            Next::Wait => {
                let mut commands: Vec<Command> = totals.map(counted).into_iter().collect();
                let questions = inspection.asking.map(|open| self.questions(&open));
                let questions = questions.filter(|news| !news.is_empty());
                commands.extend(questions.map(Command::Observe));
                if stage(&self.task) == Some(&Stage::Prompting) {
                    commands.push(Command::Prompted);
                }
                self.record_all(commands).await
            }
            Next::Prompt => Box::pin(self.prompt(session)).await,
            Next::Finish {
                outcome: Outcome::Completed,
                ..
            } if self.waits && self.host.host.notices_wake() => self.hold(totals).await,
            Next::Finish { outcome, answer } => self.finish(outcome, answer, totals).await,
        }
    }

    /// What has been asked and answered unheard, if these questions are open.
    fn questions(&self, open: &BTreeMap<String, Question>) -> Vec<Observation> {
        let known = &self.task.progress.asking;
        let asked = open.clone().into_iter();
        // One that was read from an old journal is told again, with its kind.
        let is_known =
            |id: &str, asked: &Question| known.get(id).is_some_and(|open| open.question == *asked);
        let asked = asked.filter(|(id, asked)| !is_known(id, asked));
        let answered = known.keys().filter(|id| !open.contains_key(*id)).cloned();
        asked
            .map(|(id, question)| Observation::Asked { id, question })
            .chain(answered.map(|id| Observation::Answered { id }))
            .collect()
    }

    fn is_news(&self, totals: &Totals) -> bool {
        let progress = &self.task.progress;
        let spent = progress.spent.beyond(progress.beside);
        (spent.tokens, spent.cost, spent.turns) != (totals.tokens, totals.cost, totals.turns)
            || progress.by_tool != totals.by_tool
    }

    async fn give_up(&mut self, why: String) -> RunStopped {
        match self.record(Command::GiveUp { why }).await {
            Ok(()) => RunStopped::Done,
            Err(let_go) => let_go,
        }
    }

    pub(crate) async fn record(&mut self, command: Command) -> Result<(), RunStopped> {
        self.record_all(vec![command]).await
    }

    /// Saves what has happened, if the task is still this worker's and this run still runs.
    async fn record_all(&mut self, commands: Vec<Command>) -> Result<(), RunStopped> {
        if commands.is_empty() {
            return Ok(());
        }
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        let (id, run, limits) = (self.task.id.clone(), self.task.run, self.limits.clone());
        let recorded = self.shared.write(move |journal| {
            let mut task = ours(journal.task(&id)?, &owner, run)?;
            for command in &commands {
                shared.carry_out_within(journal, &mut task, command.clone(), &limits)?;
            }
            Ok(task)
        });
        self.task = recorded.await?;
        self.shared.watch.wake(std::slice::from_ref(&self.task.id));
        if !self.task.is_live() {
            self.shared.written();
            return Err(RunStopped::Done);
        }
        Ok(())
    }

    fn prompt_id(&self) -> PostId {
        let Task { id, run, .. } = &self.task;
        match self.task.progress.reprompted {
            0 => id.prompt(*run),
            time => id.prompt_again(*run, time),
        }
    }
}

/// The task, if this worker still runs this run of it.
pub(crate) fn ours(task: Option<Task>, owner: &OwnerId, run: u32) -> Result<Task, Problem> {
    let ours = |task: &Task| {
        task.owner.as_ref() == Some(owner)
            && task.run == run
            && matches!(task.state, State::Running { .. })
    };
    task.filter(ours).ok_or(Problem::NotOurs)
}

pub(crate) fn stage(task: &Task) -> Option<&Stage> {
    match &task.state {
        State::Running { stage, .. } => Some(stage),
        State::Queued { .. } | State::Ended { .. } => None,
    }
}

fn is_summing_up(task: &Task) -> bool {
    matches!(stage(task), Some(Stage::SummingUp { .. }))
}

/// Attempts to get an answer from a host.
struct Retries {
    begun: time::Instant,
    times: u32,
}

impl Retries {
    fn begin() -> Self {
        Self {
            begun: time::Instant::now(),
            times: 0,
        }
    }
}

/// The pause after so many attempts in a row that failed.
fn retry_pause(times: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(times.saturating_sub(1));
    let pause = Duration::from_millis(100).saturating_mul(doubled);
    pause.min(LONGEST_PAUSE)
}

/// How long a child has made no progress.
struct Quiet {
    since: time::Instant,
    /// When the host is asked about it.
    inspect_after: Duration,
}

impl Quiet {
    fn new(inspect_after: Duration) -> Self {
        let since = time::Instant::now();
        Self {
            since,
            inspect_after,
        }
    }
}

/// What came of asking the host.
struct Inspected {
    /// Whether the host told the totals of the session.
    summed: bool,
}

/// What a worker calls a run.
pub(crate) type RunKey = (TaskId, u32);
