//! Follows a run until it is over.

use std::{io, mem, process, time::Instant};

use asyncagents_core::{
    answer::Shown,
    id::SessionId,
    moment::Moment,
    port::{Host, HostError},
    request::Caller,
    task::Outcome,
    task_list::ListRequest,
};
use asyncagents_engine::Live;
use asyncagents_runtime::Problem;
use futures_util::FutureExt;

use super::{
    session::{Begun, Sessions},
    totals::{Totals, spent},
};
use crate::{
    commands::signals::{INTERRUPTED, Signals},
    exit::{Exit, Failure},
};

/// How a run is shown.
pub(super) trait View {
    /// The run begins; these tasks are there already.
    fn open(&mut self, session: &SessionId, known: &[Shown]);
    fn show(&mut self, live: Live);
    fn tasks(&mut self, tasks: &[Shown], now: Moment);
    fn end(&mut self, totals: &Totals);
    /// Why the answer could not be written, if it could not.
    fn trouble(self: Box<Self>) -> Option<io::Error>;
}

/// A run that is followed.
pub(super) struct Run<'a> {
    sessions: &'a Sessions<'a>,
    begun: Begun,
    view: Box<dyn View>,
    /// As they were read last.
    tasks: Vec<Shown>,
    started: Instant,
    stopping: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(sessions: &'a Sessions, begun: Begun, view: Box<dyn View>) -> Self {
        Self {
            sessions,
            begun,
            view,
            tasks: Vec::new(),
            started: Instant::now(),
            stopping: false,
        }
    }

    pub(super) async fn open(&mut self) {
        let known = self.all_tasks().await;
        self.view.open(&self.begun.session, &known);
    }

    /// Shows what happens until the run is over.
    pub(super) async fn follow(
        &mut self,
        no_wait: bool,
        stop: &mut Signals,
    ) -> Result<(Outcome, Option<String>), Failure> {
        let (manager, screen) = (self.sessions.manager, &self.sessions.screen);
        let mut frames = screen.frames();
        // What is written from here on is a reason to look again.
        let mut version = manager.written_since(None).await;
        let mut is_written = true;
        loop {
            let may_be_over = tokio::select! {
                seen = self.begun.live.next() => match seen {
                    Some(live) => {
                        let ends = matches!(live, Live::Ended(_));
                        self.view.show(live);
                        frames.changed();
                        ends
                    }
                    None => true,
                },
                newer = manager.written_since(Some(version)), if !is_written => {
                    version = newer;
                    is_written = true;
                    frames.changed();
                    false
                }
                () = frames.next() => {
                    let is_written = mem::take(&mut is_written);
                    if is_written {
                        self.tasks = self.all_tasks().await;
                    }
                    self.view.tasks(&self.tasks, manager.now());
                    screen.tick();
                    is_written
                }
                () = stop.next() => {
                    self.interrupt(stop).await?;
                    true
                }
            };
            if may_be_over && let Some(ended) = self.ended().await? {
                // Everything that has happened is shown before the end.
                while let Some(seen) = self.begun.live.next().now_or_never().flatten() {
                    self.view.show(seen);
                }
                if !no_wait {
                    self.tasks = self.all_tasks().await;
                    self.view.tasks(&self.tasks, manager.now());
                }
                return Ok(ended);
            }
        }
    }

    /// How the run ended and its answer, once it has.
    async fn ended(&self) -> Result<Option<(Outcome, Option<String>)>, Failure> {
        let ended = self
            .sessions
            .engine
            .end_of(&self.begun.session, &self.begun.prompt)
            .await;
        let ended = ended.map_err(Problem::from)?;
        Ok(ended.map(|(end, answer)| (end.into(), answer)))
    }

    /// The tasks of this session, and those below them.
    async fn all_tasks(&self) -> Vec<Shown> {
        let mut sessions = vec![self.begun.session.clone()];
        let mut tasks = Vec::new();
        while let Some(session) = sessions.pop() {
            let request = ListRequest {
                of: Some(session),
                ..ListRequest::all()
            };
            let found = self.sessions.manager.list(request).await;
            for shown in found.unwrap_or_default().tasks {
                sessions.extend(shown.task.session.clone());
                tasks.push(shown);
            }
        }
        tasks.sort_by_key(|shown| shown.task.launched_at);
        tasks
    }

    /// The first Ctrl-C asks everything to stop, the second ends at once.
    async fn interrupt(&mut self, signals: &mut Signals) -> Result<(), Failure> {
        if self.stopping {
            self.sessions.screen.end();
            process::exit(INTERRUPTED);
        }
        self.stopping = true;
        self.sessions
            .screen
            .remark("stopping; Ctrl-C again ends at once");
        tokio::select! {
            stopped = self.stop() => stopped.map_err(|error| Problem::from(error).into()),
            () = signals.next() => {
                self.sessions.screen.end();
                process::exit(INTERRUPTED)
            }
        }
    }

    async fn stop(&self) -> Result<(), HostError> {
        // First the session that launches tasks.
        self.sessions.engine.abort(&self.begun.session).await?;
        let tasks = self.all_tasks().await;
        for shown in tasks.into_iter().filter(|shown| shown.task.is_live()) {
            let task = shown.task.id.to_string();
            if let Err(problem) = self.sessions.manager.cancel(&Caller::Person, &task).await {
                tracing::warn!(task, %problem, "cancelling failed");
            }
        }
        Ok(())
    }

    /// Shows the totals.
    pub(super) async fn totals(
        mut self,
        outcome: Outcome,
        answer: Option<String>,
    ) -> Result<Exit, Failure> {
        let used = self.sessions.engine.used(&self.begun.session).await;
        let (_, usage) = used.map_err(Problem::from)?;
        let tasks = self.all_tasks().await;
        let all = spent(
            self.sessions.manager,
            self.sessions.engine,
            &self.begun.session,
        )
        .await?;
        let totals = Totals {
            session: self.begun.session,
            outcome,
            answer,
            spent: all.beyond(self.begun.before),
            usage,
            took: self.started.elapsed(),
            tasks,
            now: self.sessions.manager.now(),
        };
        self.view.end(&totals);
        if let Some(error) = self.view.trouble() {
            self.sessions
                .screen
                .remark("asyncagents: the answer could not be written to its end");
            return Err(Failure::Output(error));
        }
        Ok(match totals.outcome {
            Outcome::Completed => Exit::Done,
            Outcome::Failed { .. } | Outcome::Cancelled => Exit::TaskFailed,
        })
    }
}
