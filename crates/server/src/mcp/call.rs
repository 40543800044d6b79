//! A call, and whose it is.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, tool_set::ToolRequest};
use asyncagents_runtime::ToolDoor;
use rmcp::{RoleServer, model::JsonObject, service::RequestContext};
use serde_json::Value;

use super::{ServedSkill, UserSkill};

/// Under this name a hook puts into the arguments of a call what it knows of the caller.
const HANDED_OVER: &str = "asyncagents_caller";

/// What a call says about who makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerSource {
    /// Claude Code's ID of the tool use.
    pub tool_use: Option<String>,
    /// Codex's thread.
    pub thread: Option<String>,
    /// Codex's ID of the call.
    pub call: Option<String>,
    /// What a hook says: a session of Claude Code, and a sub-agent in it. It has to be proved.
    pub session: Option<String>,
    pub agent: Option<String>,
}

/// Who makes a call.
pub struct ToolCaller {
    pub session: SessionId,
    pub door: Arc<ToolDoor>,
    /// The call by which it asks, so that a fork inherits what came before.
    pub call: Option<String>,
    /// Whether the answer to a call can have in it what the session has not been told.
    pub is_told_by_answers: bool,
    /// Whether what is in an answer is known to have reached it: it has no history that could be read.
    pub answers_arrive: bool,
    /// Whether it has a conversation that a fork can inherit.
    pub has_history: bool,
    /// Something that it should know, once.
    pub remark: Option<String>,
}

/// Knows whose call it is.
#[async_trait]
pub trait WhoCalls: Send + Sync + 'static {
    /// Who makes a call.
    ///
    /// # Errors
    /// With a sentence for the model, if that cannot be found out.
    async fn who(&self, source: CallerSource) -> Result<ToolCaller, String>;

    /// What can be known before something is asked for: a launch that could only fail is refused.
    ///
    /// # Errors
    /// With a sentence for the model.
    async fn check(&self, request: &ToolRequest) -> Result<(), String>;

    /// The list of skills for the model, if there are any.
    fn disclosed(&self) -> Option<String>;

    /// The skills that the user can choose.
    fn user_skills(&self) -> Vec<UserSkill>;

    /// The text of a skill that the user has chosen.
    ///
    /// # Errors
    /// With a sentence for the user.
    async fn skill_text(&self, name: &str, arguments: &str) -> Result<String, String>;

    /// The skills that a client can be given with their files.
    fn served_skills(&self) -> Vec<ServedSkill>;

    /// The agents that a task can be given to, a line each.
    async fn agents(&self) -> Vec<String>;

    /// Something was asked for that a worker has to do.
    async fn changed(&self);
}

/// What a call says about who makes it. What a hook has put into the arguments is taken out.
pub(super) fn source(
    context: &RequestContext<RoleServer>,
    arguments: &mut JsonObject,
) -> CallerSource {
    let text = |name: &str| context.meta.get(name)?.as_str().map(str::to_owned);
    let handed_over = arguments.remove(HANDED_OVER);
    let said = |name: &str| match handed_over.as_ref()?.get(name)? {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    CallerSource {
        tool_use: text("claudecode/toolUseId"),
        thread: text("threadId"),
        call: text("callId"),
        session: said("session"),
        agent: said("agent"),
    }
}
