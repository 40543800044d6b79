//! Asks the model, and shows its answer as it comes.

use asyncagents_core::{
    agent::{Answer, Call, End, Entry, Turn},
    digest::digest,
    port::SessionEvent,
    progress::Observation,
};
use asyncagents_models::{AnswerEvent, Model, ModelError, Request};
use tokio::time;

use super::{DriveError, Driven, Driver, compact::SummaryOf, save::Saved};
use crate::{Live, drivers::Halt};

/// Whether a watcher sees an answer while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Shown,
    Hidden,
}

impl Driver {
    /// Asks the model what to do next, and saves its answer.
    pub(super) async fn ask(&mut self, model: &Model) -> Driven {
        let run = self.conversation.run();
        let last = run.and_then(|run| run.last_turn.clone());
        if let Some(last) = last.clone().filter(|last| last.fails) {
            return self.sum_up(model, last.why).await;
        }
        let shown = self.conversation.shown();
        let longest = self.session.terms.as_ref();
        let longest = longest.and_then(|terms| terms.iteration_time);
        self.iteration_deadline = longest.map(|longest| time::Instant::now() + longest);
        let work_deadline = self.work_deadline();
        let until = [self.iteration_deadline, work_deadline]
            .into_iter()
            .flatten()
            .min();
        let mut request = self.whole(&shown.turns);
        request.no_tools = last.is_some();
        let asked = self.request(model, request, Stream::Shown);
        let asked = match until {
            Some(until) => time::timeout_at(until, asked).await,
            None => Ok(asked.await),
        };
        let Ok(asked) = asked else {
            if work_deadline.is_some_and(|until| until <= time::Instant::now()) {
                // What was streamed of the answer is void.
                self.show(Live::Retrying("the time for work is up".to_owned()));
                return Ok(());
            }
            let longest = longest.unwrap_or_default();
            let why = format!("an iteration took longer than {longest:?}");
            return self.finish(End::Failed { why }).await;
        };
        match asked? {
            Ok(answer) => {
                self.compacted_for_window = false;
                let seen = shown.seen;
                let mut reports = reports(&answer);
                // That a call begins is saved at once after its answer, and both are on disk before it
                // does.
                let begins = answer.calls().next().is_some_and(|call| self.changes(call));
                let saved = if begins { Saved::Soon } else { Saved::OnDisk };
                self.save_as(vec![Entry::Answered { seen, answer }], saved)
                    .await?;
                self.answer_unsynced = begins;
                self.show(Live::Answered);
                let budget = self.run_budget.as_ref();
                let used_up = budget.map(|budget| budget.used_up(&self.conversation));
                if last.is_some() || used_up.is_some_and(|used_up| used_up.tool_calls.is_some()) {
                    // The calls are not run.
                    reports.retain(|what| !matches!(what, Observation::ToolCalled { .. }));
                }
                self.report(reports);
                Ok(())
            }
            Err(error) if error.is_too_long() && !self.compacted_for_window => {
                self.compacted_for_window = true;
                self.compact(model, SummaryOf::Shortened).await
            }
            Err(error) => self.model_failed(&error).await,
        }
    }

    /// Reports to the listeners of the session what was observed.
    pub(super) fn report(&self, observed: Vec<Observation>) {
        let newest = self.conversation.newest();
        for (number, what) in observed.into_iter().enumerate() {
            let key = format!("{}.{newest}.{number}", self.session.id);
            let event = SessionEvent::Observed { key, what };
            self.shared.report(&self.session.id, event);
        }
    }

    /// A request with everything that the session has.
    pub(super) fn whole<'a>(&'a self, turns: &'a [Turn]) -> Request<'a> {
        let terms = self.session.terms.as_ref();
        let own_effort = terms.and_then(|terms| terms.effort);
        Request {
            system: &self.session.system,
            tools: &self.tools,
            turns,
            inherited: self.conversation.inherited(),
            no_tools: false,
            max_output: None,
            cache_key: &self.cache_key,
            effort: self.effort.or(own_effort).or(self.shared.settings.effort),
        }
    }

    /// Asks the model, unless the driver is halted before it has answered.
    pub(super) async fn request(
        &self,
        model: &Model,
        request: Request<'_>,
        stream: Stream,
    ) -> Driven<Result<Answer, ModelError>> {
        let mut on_event = |event: AnswerEvent| match event {
            AnswerEvent::Text(_) | AnswerEvent::Reasoning(_) if stream == Stream::Hidden => {}
            AnswerEvent::Text(text) => self.show(Live::Text(text.to_owned())),
            AnswerEvent::Reasoning(text) => self.show(Live::Reasoning(text.to_owned())),
            AnswerEvent::Retry { why, after } => {
                let after = after.as_secs_f64();
                self.show(Live::Retrying(format!(
                    "{why}; asked again in {after:.1} s"
                )));
            }
            AnswerEvent::Call(_) | AnswerEvent::KeepAlive => {}
        };
        tokio::select! {
            answer = model.ask(&request, &mut on_event) => Ok(answer),
            _ = self.handle.halted(Halt::Soon) => Err(DriveError::Halted),
        }
    }
}

/// What is reported of an answer.
fn reports(answer: &Answer) -> Vec<Observation> {
    let turned = Observation::Turned(answer.spent());
    let called = |call: &Call| Observation::ToolCalled {
        tool: call.name.clone(),
        call: digest(&[&call.name, &call.input]),
    };
    let mut reports = vec![turned];
    reports.extend(answer.calls().map(called));
    reports
}
