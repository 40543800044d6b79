//! Our tools for tasks, served to an agent that works on one. The connection says whose they are.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{
    host_ref::HostSetup,
    id::SessionId,
    notify::Wording,
    port::{Store, StoreError, query},
    tool_set::ToolRequest,
};
use asyncagents_hosts::proxy::{DoorStream, TwoWay};
use asyncagents_runtime::{Skills, ToolDoor, WeakManager};
use asyncagents_server::mcp::{
    Answers, CallerSource, ServedSkill, ToolCaller, UserSkill, WhoCalls, serve,
};

/// Serves our tools to the sessions of an agent.
pub(super) struct ChildTools {
    pub(super) manager: WeakManager,
    pub(super) store: Arc<dyn Store>,
    pub(super) setup: HostSetup,
    pub(super) skills: Skills,
    pub(super) wording: Wording,
}

impl ChildTools {
    /// For one session.
    pub(super) fn of_session(self: &Arc<Self>, session: SessionId) -> SessionTools {
        SessionTools {
            tools: self.clone(),
            session,
        }
    }
}

/// Our tools for one session.
pub(super) struct SessionTools {
    tools: Arc<ChildTools>,
    session: SessionId,
}

impl SessionTools {
    /// The host of the session's task, with the OpenCode that it belongs to: its own tasks do too.
    async fn setup(&self) -> HostSetup {
        let session = self.session.clone();
        let task: Result<_, StoreError> =
            query(&*self.tools.store, move |journal| journal.task_in(&session)).await;
        match task {
            Ok(Some(task)) => task.brief.host,
            Ok(None) | Err(_) => self.tools.setup.clone(),
        }
    }
}

#[async_trait]
impl DoorStream for SessionTools {
    async fn serve(&self, stream: Box<dyn TwoWay>) {
        let Some(manager) = self.tools.manager.upgrade() else {
            return;
        };
        let setup = self.setup().await;
        let door = ToolDoor::new(&manager, setup);
        let door = door.with_skills(self.tools.skills.clone());
        let who = OneSession {
            door: Arc::new(door.prefixed(&self.tools.wording.in_host(&self.tools.setup.host))),
            session: self.session.clone(),
            skills: self.tools.skills.clone(),
        };
        let pipes = tokio::io::split(stream);
        if let Err(error) = serve(manager, Arc::new(who), Answers::Text, pipes).await {
            tracing::debug!(%error, session = %self.session, "tools of an agent");
        }
    }
}

/// Every call is one session's.
struct OneSession {
    door: Arc<ToolDoor>,
    session: SessionId,
    skills: Skills,
}

#[async_trait]
impl WhoCalls for OneSession {
    async fn who(&self, source: CallerSource) -> Result<ToolCaller, String> {
        Ok(ToolCaller {
            session: self.session.clone(),
            door: self.door.clone(),
            call: source.tool_use.or(source.call),
            is_told_by_answers: false,
            answers_arrive: false,
            has_history: true,
            remark: None,
        })
    }

    async fn check(&self, _: &ToolRequest) -> Result<(), String> {
        Ok(())
    }

    fn disclosed(&self) -> Option<String> {
        self.skills.disclosed()
    }

    fn user_skills(&self) -> Vec<UserSkill> {
        Vec::new()
    }

    async fn skill_text(&self, name: &str, _: &str) -> Result<String, String> {
        Err(format!("`{name}` is not for users here"))
    }

    fn served_skills(&self) -> Vec<ServedSkill> {
        Vec::new()
    }

    async fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    async fn changed(&self) {}
}
