//! The sessions that have called over a connection, and what they may read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    agent::ToolOutcome, answer::Shown, id::SessionId, lock::lock, request::OutputRequest,
    shorten::shorten, task_list::ListRequest, tool_set::ToolRequest,
};
use asyncagents_runtime::{Manager, Problem, ToolDoor};
use asyncagents_views::TraceView;

use super::{ToolCaller, resources};

/// How many characters of a text are in a trace that is summed up.
const MOST_OF_TEXT: usize = 5_000;

/// The sessions that have called over a connection. That a call was theirs has been proved.
#[derive(Default)]
pub(super) struct Sessions(Mutex<BTreeMap<SessionId, Arc<ToolDoor>>>);

impl Sessions {
    pub(super) fn add(&self, caller: &ToolCaller) {
        let mut known = lock(&self.0);
        if !known.contains_key(&caller.session) {
            known.insert(caller.session.clone(), caller.door.clone());
        }
    }

    fn all(&self) -> Vec<(SessionId, Arc<ToolDoor>)> {
        let known = lock(&self.0);
        let all = known.iter();
        all.map(|(session, door)| (session.clone(), door.clone()))
            .collect()
    }

    /// Their tasks, newest first for each.
    pub(super) async fn tasks(&self, manager: &Manager) -> Result<Vec<Shown>, Problem> {
        let mut tasks = Vec::new();
        for (session, _) in self.all() {
            let list = manager.list(ListRequest::for_model(&session, None)).await?;
            tasks.extend(list.tasks);
        }
        Ok(tasks)
    }

    /// What `output` says of a task of theirs, or why it is not to be had. A program may read that which
    /// shows it to no model, so it does not count as read.
    pub(super) async fn output(&self, task: &str) -> Result<String, String> {
        let (session, door, _) = self.owner(task).await?;
        door.show(&session, task).await
    }

    /// What a call that waits for a task of theirs returns now, if it does: the task has ended, or `is_over`.
    /// A session that is answered so is not also told.
    pub(super) async fn awaited(
        &self,
        task: &str,
        is_over: bool,
    ) -> Result<(Shown, Option<ToolOutcome>), String> {
        let (session, door, shown) = self.owner(task).await?;
        if shown.task.is_live() && !is_over {
            return Ok((shown, None));
        }
        let request = OutputRequest::new(task, true, Some(0)).map_err(|error| error.to_string())?;
        let request = ToolRequest::Output(request);
        let answered = door.call_from(&session, None, request).await;
        Ok((shown, Some(answered.outcome)))
    }

    /// A task, and the one of them that it belongs to. Nothing is marked as read.
    pub(super) async fn owner(
        &self,
        task: &str,
    ) -> Result<(SessionId, Arc<ToolDoor>, Shown), String> {
        let mut why = format!("no task of this connection is called {task}");
        for (session, door) in self.all() {
            match door.look(&session, task).await {
                Ok(shown) => return Ok((session, door, shown)),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    /// The trace of a run of theirs as JSON; without its steps if it would be too long.
    pub(super) async fn trace(&self, manager: &Manager, chain: &str) -> Result<String, String> {
        let tasks = self.tasks(manager).await.map_err(|why| why.to_string())?;
        let has_chain = |shown: &Shown| {
            let known = shown.task.chain.as_ref();
            known.is_some_and(|known| known.as_str() == chain)
        };
        if !tasks.iter().any(has_chain) {
            return Err(format!("no task of this connection has the trace {chain}"));
        }
        let mut trace = manager.trace(chain).await.map_err(|why| why.to_string())?;
        let json = |view: &TraceView| serde_json::to_string_pretty(view);
        let whole = json(&TraceView::whole(&trace)).map_err(|why| why.to_string())?;
        if resources::fits(&whole) {
            return Ok(whole);
        }
        let cut = |text: &str| shorten(text, MOST_OF_TEXT, "…");
        trace.answer = trace.answer.as_deref().map(cut);
        trace.request = cut(&trace.request);
        json(&TraceView::head(&trace)).map_err(|why| why.to_string())
    }
}
