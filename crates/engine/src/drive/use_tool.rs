//! Runs the tools that a model has called: one by one or together, and what is saved when.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use asyncagents_core::{
    agent::{Call, Entry, Kind, ToolOutcome},
    arguments::CallError,
    shorten::shorten,
    skill_event::ErrorCode,
    tool_set,
};
use futures_util::future::join_all;
use tokio::time;

use super::{DriveError, Driven, Driver, await_slot::Turn, save::Saved};
use crate::{
    Live, PrintedLines,
    drivers::Halt,
    permit::{Judge, NotPermitted, Permitted, Prepared},
};

/// What is kept of an answer about background tasks.
const MOST_CHARS: usize = 60_000;

/// What the model is told of a call that it could not finish.
const CUT: &str = "Your answer was cut at its greatest length, before the parameters of this call \
    were complete. Nothing was done. Do it in smaller pieces.";

impl Driver {
    /// Runs the first of these calls; the others are considered again afterwards, for by then the
    /// run may have been ended. Read-only calls that stand together run together; a call that
    /// changes something runs alone.
    pub(super) async fn run_tools(&mut self, calls: Vec<Call>) -> Driven {
        let mut read_only: Vec<(Call, Prepared)> = Vec::new();
        for call in calls {
            match self.prepare(&call) {
                Ok(prepared) if prepared.is_read_only() => read_only.push((call, prepared)),
                Ok(_) | Err(_) if !read_only.is_empty() => break,
                Ok(prepared) => return self.run_alone(call, prepared).await,
                Err(why) => return self.refuse(call, why).await,
            }
        }
        self.run_together(read_only).await
    }

    /// What a call means, or what is wrong with it.
    fn prepare(&self, call: &Call) -> Result<Prepared, String> {
        let failures = self.failures(call);
        if let Some(terms) = &self.session.terms
            && terms.is_used_up(failures)
        {
            return Err(format!(
                "this call has failed {failures} times and was not run again: go another way"
            ));
        }
        if !self.tools.iter().any(|spec| spec.name == call.name) {
            let names: Vec<&str> = self.tools.iter().map(|spec| spec.name.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            let name = &call.name;
            return Err(format!("there is no tool `{name}` here; there are {names}"));
        }
        let prepared = if self.is_delegation(&call.name) {
            let prefix = &self.shared.settings.prefix;
            tool_set::prepare(prefix, &call.name, &call.input).map(Prepared::Delegated)
        } else {
            let toolbox = self.toolbox.as_ref().map_err(Clone::clone)?;
            toolbox.prepare(&call.name, &call.input).map(Prepared::Own)
        };
        prepared.map_err(|error| match error {
            CallError::NotJson(_) if self.was_cut() => CUT.to_owned(),
            // Cut before its first argument.
            _ if self.was_cut() && call.input.trim().is_empty() => CUT.to_owned(),
            error => error.to_string(),
        })
    }

    /// Whether a call makes sense and changes something.
    pub(super) fn changes(&self, call: &Call) -> bool {
        let prepared = self.prepare(call);
        prepared.is_ok_and(|prepared| !prepared.is_read_only())
    }

    fn is_delegation(&self, tool: &str) -> bool {
        self.delegation.iter().any(|name| name == tool)
    }

    async fn run_together(&mut self, calls: Vec<(Call, Prepared)>) -> Driven {
        if calls.is_empty() {
            return Ok(());
        }
        self.sync_answer().await?;
        // After a power cut it is looked again; a person is not asked again.
        let again = AtomicBool::new(true);
        let results = join_all(calls.into_iter().map(|(call, prepared)| async {
            let begun = time::Instant::now();
            let outcome = match self.judge().permit(&call, prepared).await {
                Ok(permitted) => {
                    if permitted.by_person() {
                        again.store(false, Ordering::Relaxed);
                    }
                    let deadline = self.iteration_deadline.map(|at| at + begun.elapsed());
                    self.advised(&call, self.run_call(&call, permitted, deadline).await)
                }
                Err(NotPermitted::Refused(why)) => {
                    again.store(false, Ordering::Relaxed);
                    self.show_refusal(&call, &why);
                    ToolOutcome::Failed(why)
                }
                Err(NotPermitted::Unanswered(question)) => return Err(Some(question)),
                Err(NotPermitted::Halted) => return Err(None),
            };
            Ok(Entry::ToolEnded {
                call: call.id,
                outcome,
            })
        }));
        let mut entries = Vec::new();
        for result in self.unless_halted(results).await? {
            match result {
                Ok(entry) => entries.push(entry),
                // The call stays open, and the time for the task is up.
                Err(Some(question)) => self.unanswered = Some(question),
                Err(None) => return Err(DriveError::Halted),
            }
        }
        let again = again.into_inner();
        let saved = if again { Saved::Soon } else { Saved::OnDisk };
        self.save_as(entries, saved).await
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            shared: &self.shared,
            session: &self.session,
            conversation: &self.conversation,
            handle: &self.handle,
            tree: self.tree.as_ref(),
            acting: self.acting(),
            deadline: self.work_deadline(),
        }
    }

    async fn run_alone(&mut self, call: Call, prepared: Prepared) -> Driven {
        let begun = time::Instant::now();
        if self.judge().asks(&call, prepared.info()) {
            self.sync_answer().await?;
        }
        let judged = self.judge().permit(&call, prepared).await;
        // A person who thinks does not take the iteration's time.
        self.extend_iteration(begun.elapsed());
        let permitted = match judged {
            Ok(permitted) => permitted,
            Err(NotPermitted::Refused(why)) => return self.refuse(call, why).await,
            Err(NotPermitted::Unanswered(question)) => {
                self.unanswered = Some(question);
                return Ok(());
            }
            Err(NotPermitted::Halted) => return Err(DriveError::Halted),
        };
        let begun = time::Instant::now();
        if permitted.info().kind == Kind::Run && !self.shared.commands.is_free(self.depth) {
            self.sync_answer().await?;
        }
        let Turn::Now(_slot) = self.await_slot(&call, permitted.info().kind).await? else {
            return Ok(());
        };
        // Nor do the commands of others.
        self.extend_iteration(begun.elapsed());
        // From here on the call may have happened.
        self.save(vec![Entry::ToolBegan {
            call: call.id.clone(),
        }])
        .await?;
        let begun = time::Instant::now();
        let called = self.run_call(&call, permitted, self.iteration_deadline);
        let outcome = self.unless_halted(called).await?;
        if self.is_delegation(&call.name) {
            // Nor does a sub-agent that the call waits for.
            self.extend_iteration(begun.elapsed());
        }
        let outcome = self.advised(&call, outcome);
        self.end(call, outcome).await
    }

    /// A call that is not run is reported to the model, and to the watcher.
    async fn refuse(&mut self, call: Call, why: String) -> Driven {
        self.show_refusal(&call, &why);
        self.end(call, ToolOutcome::Failed(why)).await
    }

    fn show_refusal(&self, call: &Call, why: &str) {
        let first_line = why.lines().next().unwrap_or_default();
        self.show_end(call, Some(first_line.to_owned()), why);
    }

    fn show_end(&self, call: &Call, error: Option<String>, result: &str) {
        self.show(Live::ToolEnded {
            call: call.id.clone(),
            name: call.name.clone(),
            error,
            result: Some(result.to_owned()),
        });
    }

    /// The time that others took does not count for the iteration.
    fn extend_iteration(&mut self, by: Duration) {
        self.iteration_deadline = self.iteration_deadline.map(|at| at + by);
    }

    async fn end(&mut self, call: Call, outcome: ToolOutcome) -> Driven {
        self.save(vec![Entry::ToolEnded {
            call: call.id,
            outcome,
        }])
        .await
    }

    /// Where a skill runs, a failure says how often the same call may be tried again.
    fn advised(&self, call: &Call, outcome: ToolOutcome) -> ToolOutcome {
        match (outcome, &self.session.terms) {
            // What no try can change is not tried again.
            (ToolOutcome::Failed(why), Some(_))
                if self.is_delegation(&call.name)
                    && ErrorCode::of_answer(&why).is_some_and(ErrorCode::is_final) =>
            {
                ToolOutcome::Failed(why)
            }
            (ToolOutcome::Failed(why), Some(terms)) => {
                let advice = terms.advice(self.failures(call) + 1);
                ToolOutcome::Failed(format!("{why}\n{advice}"))
            }
            (outcome, _) => outcome,
        }
    }

    async fn run_call(
        &self,
        call: &Call,
        permitted: Permitted,
        iteration_deadline: Option<time::Instant>,
    ) -> ToolOutcome {
        self.show(Live::Tool {
            call: call.id.clone(),
            name: call.name.clone(),
            target: permitted.info().title.clone(),
            input: call.input.clone(),
            approved: permitted.by_person(),
        });
        // A sub-agent that is waited for would go on, and be paid for, without its caller.
        let iteration = iteration_deadline.filter(|_| !permitted.is_delegation());
        let work = self.work(permitted);
        let deadlines = [
            iteration.map(|at| (at, "stopped: the iteration's time is up")),
            self.work_deadline()
                .map(|at| (at, "stopped: the time for the task is up")),
        ];
        let outcome = match deadlines.into_iter().flatten().min_by_key(|(at, _)| *at) {
            Some((deadline, why)) => {
                let worked = time::timeout_at(deadline, work).await;
                worked.unwrap_or_else(|_| ToolOutcome::Failed(why.to_owned()))
            }
            None => work.await,
        };
        let error = outcome.is_error().then(|| last_line(outcome.text()));
        self.show_end(call, error, outcome.text());
        outcome
    }

    async fn work(&self, permitted: Permitted) -> ToolOutcome {
        match permitted.into_parts() {
            (Prepared::Own(prepared), reaching) => {
                let progress = |line: &str| self.show(Live::Lines(PrintedLines::one(line)));
                prepared.run(reaching, &progress).await
            }
            (Prepared::Delegated(prepared), _) => {
                let delegation = &self.shared.delegation;
                let message = self.conversation.newest_answer().to_string();
                let call = delegation.call(&self.session.id, &message, prepared.request);
                bounded(call.await)
            }
        }
    }

    /// Waits for work, unless the driver is halted: at once, or after the shutdown timeout if the work
    /// may finish first. Dropping the work stops it.
    pub(super) async fn unless_halted<T>(&self, work: impl Future<Output = T>) -> Driven<T> {
        let halted = async {
            if self.handle.halted(Halt::Soon).await == Halt::Soon {
                let now = self.handle.halted(Halt::Now);
                let _ = time::timeout(self.shared.settings.shutdown_timeout, now).await;
            }
        };
        tokio::select! {
            done = work => Ok(done),
            () = halted => Err(DriveError::Halted),
        }
    }
}

/// Cuts what is too long.
fn bounded(outcome: ToolOutcome) -> ToolOutcome {
    let mark = format!("\n[cut at {MOST_CHARS} characters; ask for less, with message_limit]");
    let cut = |text: String| shorten(&text, MOST_CHARS, &mark);
    match outcome {
        ToolOutcome::Done(text) => ToolOutcome::Done(cut(text)),
        ToolOutcome::Failed(text) => ToolOutcome::Failed(cut(text)),
        ToolOutcome::Unknown => ToolOutcome::Unknown,
    }
}

/// Where a program says how it ended.
fn last_line(text: &str) -> String {
    let filled = |line: &&str| !line.trim().is_empty();
    let code = text
        .lines()
        .rev()
        .find(|line| line.starts_with("[exit code"));
    let last = code.or(text.lines().rev().find(filled));
    last.unwrap_or_default().to_owned()
}
