//! The door for agents: the five tools, as a model calls them.

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolOutcome, ToolSpec},
    answer,
    id::{HostKey, SessionId},
    port::Delegation,
    request::Caller,
    tool_set::{self, ToolRequest},
};

use crate::{Manager, Problem, WeakManager};

/// The tools for the sessions of one host.
pub struct ToolDoor {
    manager: WeakManager,
    host: HostKey,
    prefix: String,
}

impl ToolDoor {
    /// The tools, for the sessions of this host.
    pub fn new(manager: &Manager, host: HostKey) -> Self {
        Self {
            manager: manager.downgrade(),
            host,
            prefix: manager.settings().wording.prefix.clone(),
        }
    }

    /// Calls a tool, from a message of the session if it is known which.
    pub async fn call_from(
        &self,
        session: &SessionId,
        message: Option<String>,
        tool: &str,
        input: &str,
    ) -> ToolOutcome {
        let Some(manager) = self.manager.upgrade() else {
            return ToolOutcome::Failed("asyncagents is ending; nothing was done".to_owned());
        };
        let request = match tool_set::parse(&self.prefix, tool, input) {
            Ok(request) => request,
            Err(why) => return ToolOutcome::Failed(why),
        };
        let caller = Caller::Session {
            session: session.clone(),
            host: self.host.clone(),
            message,
        };
        match self.answer(&manager, session, caller, request).await {
            Ok(text) => ToolOutcome::Done(text),
            Err(problem) => ToolOutcome::Failed(problem.to_string()),
        }
    }

    async fn answer(
        &self,
        manager: &Manager,
        session: &SessionId,
        caller: Caller,
        request: ToolRequest,
    ) -> Result<String, Problem> {
        Ok(match request {
            ToolRequest::Task(args) => manager.task(&caller, args).await?.text(&self.prefix),
            ToolRequest::Output(request) => {
                let report = manager.output(&caller, request).await?;
                answer::output(&report, manager.now())
            }
            ToolRequest::List(status) => {
                let tasks = manager.list(Some(session), status).await?;
                answer::list(&tasks, manager.now())
            }
            ToolRequest::Cancel(task) => manager.cancel(&caller, &task).await?.text(),
            ToolRequest::Clear => manager.clear(session).await?.text(),
        })
    }
}

#[async_trait]
impl Delegation for ToolDoor {
    fn tools(&self) -> Vec<ToolSpec> {
        tool_set::specs(&self.prefix)
    }

    async fn call(&self, session: &SessionId, tool: &str, input: &str) -> ToolOutcome {
        self.call_from(session, None, tool, input).await
    }
}
