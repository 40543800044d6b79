//! Background tasks as tasks of the protocol (the extension `io.modelcontextprotocol/tasks`), for clients
//! that follow those: a launch returns a handle, and its result is that of the call. They are the tasks
//! of the journal, under the same IDs, so they outlive this process.

use asyncagents_core::{
    agent::ToolOutcome,
    answer::{self, Shown},
    moment::Moment,
    task::{Outcome, State, Task},
};
use asyncagents_views::time;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CreateTaskResult, DetailedTask, JsonObject, MetaObject, Task as ProtocolTask, TaskPayload,
        TaskStatus,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{
    answer::{done, failed},
    sessions::Followed,
};

/// How often a client should ask.
const POLL_MILLIS: u64 = 1_000;

/// What a client may show its model at once, so that it goes on while the task works.
const AT_ONCE: &str = "io.modelcontextprotocol/model-immediate-response";

/// Whether the client that makes this request follows tasks.
pub(super) fn is_spoken_by(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    capabilities.is_some_and(|capabilities| capabilities.supports_tasks())
}

/// The handle of a task that was launched; `text` is what a client without handles is answered.
pub(super) fn handle(shown: &Shown, text: String, now: Moment) -> CreateTaskResult {
    let at_once = (AT_ONCE.to_owned(), Value::String(text));
    let meta: JsonObject = [at_once].into_iter().collect();
    let task = protocol_task(&shown.task, TaskStatus::Working, now);
    CreateTaskResult::new(task).with_meta(MetaObject::from(meta))
}

/// Where a task stands, with its result if it has ended.
pub(super) fn detailed(followed: Followed, now: Moment) -> Result<DetailedTask, ErrorData> {
    let (Followed::Live(shown) | Followed::Ended(shown, _)) = &followed;
    let task = &shown.task;
    let payload = match (&task.state, &followed) {
        (State::Ended { outcome, .. }, Followed::Ended(_, said)) => match outcome {
            Outcome::Cancelled => TaskPayload::Cancelled,
            // To the protocol a task has failed only if the call itself was in error.
            Outcome::Completed | Outcome::Failed { .. } => TaskPayload::Completed {
                result: result(said, outcome)?,
            },
        },
        (State::Queued { .. } | State::Running { .. } | State::Ended { .. }, _) => {
            TaskPayload::Working
        }
    };
    let task = protocol_task(task, payload.status(), now);
    Ok(DetailedTask::new(task, payload))
}

/// There is no such task for this client.
pub(super) fn unknown(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

/// What the call that has launched the task returns in the end.
fn result(said: &ToolOutcome, outcome: &Outcome) -> Result<JsonObject, ErrorData> {
    let result = match (said, outcome) {
        (ToolOutcome::Done(text), Outcome::Completed) => done(text.clone()),
        (ToolOutcome::Done(text) | ToolOutcome::Failed(text), _) => failed(text.clone()),
        (ToolOutcome::Unknown, _) => failed("what came of it is not known".to_owned()),
    };
    match serde_json::to_value(result) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(JsonObject::new()),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

fn protocol_task(task: &Task, status: TaskStatus, now: Moment) -> ProtocolTask {
    let changed = match &task.state {
        State::Ended { at, .. } => Some(*at),
        State::Queued { .. } | State::Running { .. } => task.progress.last_activity,
    };
    let changed = changed.unwrap_or(task.launched_at);
    let message = format!("{}. {}", task.status(), answer::progress(task, now));
    ProtocolTask::new(
        task.id.as_str(),
        status,
        time(task.launched_at),
        time(changed),
    )
    .with_status_message(message)
    .with_poll_interval_ms(POLL_MILLIS)
}
