//! Tasks and traces as resources. A client sees those of the sessions that have called over its own
//! connection: nothing in a request for a resource says which of them asks.

use asyncagents_core::{answer::Shown, request::TextPart};
use rmcp::model::{Resource, ResourceTemplate};

const TASKS: &str = "asyncagents://tasks/";
const TRACES: &str = "asyncagents://traces/";

/// What an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address<'a> {
    /// A task's status and result.
    Task(&'a str),
    /// What happened in a run.
    Trace(&'a str),
}

impl<'a> Address<'a> {
    pub(super) fn parse(uri: &'a str) -> Option<Self> {
        let task = uri.strip_prefix(TASKS).map(Self::Task);
        task.or_else(|| uri.strip_prefix(TRACES).map(Self::Trace))
    }
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TASKS}{{task_id}}"), "task")
            .with_description("The status or the result of one of your background tasks")
            .with_mime_type("text/markdown"),
        ResourceTemplate::new(format!("{TRACES}{{chain}}"), "trace")
            .with_description("What happened in a run, step by step, with the runs below it")
            .with_mime_type("application/json"),
    ]
}

/// A task, and the trace of its newest run.
pub(super) fn resources(shown: &Shown) -> Vec<Resource> {
    let Shown { id, task } = shown;
    let brief = &task.brief;
    let status = format!("{} by {}", task.status(), brief.agent);
    let result = Resource::new(format!("{TASKS}{id}"), brief.description.clone())
        .with_description(status)
        .with_mime_type("text/markdown");
    let trace = task.chain.as_ref().map(|chain| {
        let name = format!("trace of {}", brief.description);
        Resource::new(format!("{TRACES}{chain}"), name).with_mime_type("application/json")
    });
    [result].into_iter().chain(trace).collect()
}

/// A trace that is too long is summed up, so that what is returned is always JSON.
pub(super) fn fits(json: &str) -> bool {
    json.len() <= TextPart::MOST || json.chars().count() <= TextPart::MOST
}
