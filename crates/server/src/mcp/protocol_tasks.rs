//! Calls that wait, as tasks of the protocol (the extension `io.modelcontextprotocol/tasks`), for clients
//! that follow those: they are given a handle, ask again and again, and no call is kept open. All that is
//! to be known of a wait is in its handle, so the next process knows it too.
//!
//! A launch is never one: it returns its ID at once, and a client that follows a handle until it has a
//! result would wait for the background task.

use std::time::Duration;

use asyncagents_core::{
    agent::ToolOutcome,
    answer::{self, Shown},
    moment::Moment,
    request::{OutputRequest, TextPart},
    task::Task,
};
use asyncagents_views::time;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CreateTaskResult, DetailedTask, JsonObject, ProtocolVersion, Task as ProtocolTask,
        TaskPayload, TaskStatus,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::answer::{done, failed};

/// How often a client should ask.
const POLL_MILLIS: u64 = 500;

/// Between the ID of a task and when the wait for it began, and before how long it lasts.
const MARK: &str = ".wait.";

/// A call that waits for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) task: String,
    begun: Moment,
    lasts: Duration,
}

/// Whether the client that makes this request follows tasks of the protocol. Before this version they
/// were something else, which clients may mean that say so in an older one.
pub(super) fn is_spoken_by(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    let capabilities = context.client_capabilities();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && capabilities.is_some_and(|capabilities| capabilities.supports_tasks())
}

/// How long a call of `output` waits, if a handle can stand for it: what it returns in the end is what
/// it returns without further wishes.
pub(super) fn waits(request: &OutputRequest) -> Option<Duration> {
    let is_plain = request.conversation.is_none() && request.part == TextPart::default();
    request.wait.filter(|_| is_plain)
}

impl Wait {
    pub(super) fn new(task: &Task, begun: Moment, lasts: Duration) -> Self {
        Self {
            task: task.id.to_string(),
            begun,
            lasts,
        }
    }

    /// Reads what [`Wait::name`] has written.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (task, rest) = name.split_once(MARK)?;
        let (begun, lasts) = rest.split_once('.')?;
        let begun: i64 = begun.parse().ok()?;
        let lasts = Duration::from_millis(lasts.parse().ok()?);
        (lasts <= OutputRequest::LONGEST).then(|| Self {
            task: task.to_owned(),
            begun: Moment::from_millis(begun),
            lasts,
        })
    }

    fn name(&self) -> String {
        let (begun, lasts) = (self.begun.as_millis(), self.lasts.as_millis());
        format!("{}{MARK}{begun}.{lasts}", self.task)
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        now.since(self.begun) >= self.lasts
    }

    pub(super) fn handle(&self, shown: &Shown, now: Moment) -> CreateTaskResult {
        CreateTaskResult::new(self.protocol_task(&shown.task, TaskStatus::Working, now))
    }

    /// Where it stands; `said` is what the call returns, if it does so now.
    pub(super) fn detailed(
        &self,
        shown: &Shown,
        said: Option<ToolOutcome>,
        now: Moment,
    ) -> Result<DetailedTask, ErrorData> {
        let payload = match said {
            None => TaskPayload::Working,
            Some(said) => TaskPayload::Completed {
                result: result(said)?,
            },
        };
        let task = self.protocol_task(&shown.task, payload.status(), now);
        Ok(DetailedTask::new(task, payload))
    }

    pub(super) fn given_up(&self, shown: &Shown, now: Moment) -> DetailedTask {
        let task = self.protocol_task(&shown.task, TaskStatus::Cancelled, now);
        DetailedTask::new(task, TaskPayload::Cancelled)
    }

    fn protocol_task(&self, task: &Task, status: TaskStatus, now: Moment) -> ProtocolTask {
        let message = format!(
            "{} is {}. {}",
            task.id,
            task.status(),
            answer::progress(task, now)
        );
        ProtocolTask::new(self.name(), status, time(self.begun), time(now))
            .with_status_message(message)
            .with_poll_interval_ms(POLL_MILLIS)
    }
}

/// There is no such task for this client.
pub(super) fn unknown(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

fn result(said: ToolOutcome) -> Result<JsonObject, ErrorData> {
    let result = match said {
        ToolOutcome::Done(text) => done(text),
        ToolOutcome::Failed(why) => failed(why),
        ToolOutcome::Unknown => failed("what came of it is not known".to_owned()),
    };
    match serde_json::to_value(result) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(JsonObject::new()),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        let wait = Wait {
            task: "task_0123".to_owned(),
            begun: Moment::from_millis(1_763_475_000_000),
            lasts: Duration::from_secs(30),
        };
        assert_eq!(Wait::parse(&wait.name()), Some(wait));
    }

    #[test]
    fn what_is_no_handle_is_none() {
        for name in [
            "",
            "task_0123",
            "task_0123.wait.",
            "task_0123.wait.1",
            "task_0123.wait.x.1",
            "task_0123.wait.1.x",
            "task_0123.wait.1.-1",
            "task_0123.wait.1.600001",
            "task_0123.wait.99999999999999999999.1",
        ] {
            assert_eq!(Wait::parse(name), None, "{name}");
        }
    }
}
