//! Follows a child: what its host reports is saved, and it is ended when it has reached a limit.

use std::time::Duration;

use asyncagents_core::{
    budget::Spent,
    id::SessionId,
    last_turn,
    lifecycle::{Command, over_iterations, overdue, unanswered, until_question_told},
};
use tokio::{sync::mpsc, time};

use super::{
    Run, RunStopped,
    inspect::retry_pause,
    is_summing_up,
    news::{News, Seen},
    sum_up::AskedBefore,
};
use crate::hosts::RunReport;

/// How often a child that waits for its own tasks is checked.
const CHILDREN_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How many reports are saved together.
const TOGETHER: usize = 64;

impl Run {
    /// Follows the child by what its host reports. The host is asked only when it says that
    /// the child is idle, when reports were missed, or after a long silence.
    pub(super) async fn follow(
        &mut self,
        session: &SessionId,
        mut reports: mpsc::UnboundedReceiver<RunReport>,
    ) -> Result<(), RunStopped> {
        let mut seen = Seen::default();
        let mut quiet = Quiet::new(self.shared.settings.inspect_after);
        // What was found out on taking the task over may have been too much.
        self.check_budget(session).await?;
        loop {
            self.reject_questions().await?;
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
    pub(super) async fn note_clock_moves(&mut self) -> Result<(), RunStopped> {
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
        let stall = if self.task.progress.is_waiting() {
            Duration::MAX
        } else {
            self.limits.stall.saturating_sub(quiet_for)
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
