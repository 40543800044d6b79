//! What OpenCode keeps for us with sessions and messages, under our name.

use asyncagents_core::id::{PostId, SessionId, TaskId};
use serde_json::{Value, json};

const OURS: &str = "asyncagents";

/// Of a session that is made for a task.
pub(crate) fn made_for(task: &TaskId, parent: &SessionId) -> Value {
    json!({OURS: {"task": task.as_str(), "parent": parent.as_str()}})
}

/// Of something that we send.
pub(crate) fn posted(post: &PostId) -> Value {
    json!({OURS: {"post": post.as_str()}})
}

/// Notes how many rules a session has that runs a skill, beside the skill's own.
pub(crate) fn note_inherited_rules(metadata: &mut Value, count: usize) {
    metadata[OURS]["inherited_rules"] = json!(count);
}

/// How many of a session's rules are not those of a skill, if it runs one.
pub(crate) fn inherited_rules(metadata: Option<&Value>) -> Option<usize> {
    usize::try_from(ours(metadata, "inherited_rules")?.as_u64()?).ok()
}

/// The task that a session was made for.
pub(crate) fn task(metadata: Option<&Value>) -> Option<&str> {
    ours(metadata, "task")?.as_str()
}

/// Our name for what we sent.
pub(crate) fn post(metadata: Option<&Value>) -> Option<&str> {
    ours(metadata, "post")?.as_str()
}

/// Notes what is to be said with every message to a session. OpenCode 1 forgets with each what the
/// one before it said for the system prompt.
pub(crate) fn note_system(metadata: &mut Value, system: &str) {
    metadata[OURS]["system"] = json!(system);
}

/// What the sub-agent that runs a skill in a session is told with every message.
pub(crate) fn system(metadata: Option<&Value>) -> Option<&str> {
    ours(metadata, "system")?.as_str()
}

fn ours<'m>(metadata: Option<&'m Value>, key: &str) -> Option<&'m Value> {
    metadata?.get(OURS)?.get(key)
}
