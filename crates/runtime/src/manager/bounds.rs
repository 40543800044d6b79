//! What binds the session of a task, for hosts that have no rules for sessions.

use asyncagents_core::{agent::Tools, id::SessionId, port::tools_above};

use crate::{Manager, Problem};

/// What binds the session of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionBounds {
    /// Whether tasks may be launched from it.
    pub may_delegate: bool,
    /// The tools of the skills above the task, the outermost first, and of its own.
    pub tools: Vec<Tools>,
}

impl Manager {
    /// What binds a session, if a task works in it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn bounds(&self, session: &SessionId) -> Result<Option<SessionBounds>, Problem> {
        let session = session.clone();
        let read = self.shared.read(move |journal| {
            let Some(task) = journal.task_in(&session)? else {
                return Ok(None);
            };
            let mut tools = tools_above(journal, &task)?;
            tools.extend(task.skill.as_ref().map(|terms| terms.tools.clone()));
            Ok(Some((task, tools)))
        });
        let found = read.await?;
        Ok(found.map(|(task, tools)| {
            let limits = self.shared.limits(&task.brief.host.host);
            SessionBounds {
                may_delegate: task.place.depth < limits.depth,
                tools,
            }
        }))
    }
}
