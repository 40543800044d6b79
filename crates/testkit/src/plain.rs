//! What hosts are asked, with nothing special about it.

use asyncagents_core::{
    id::{PostId, SessionId, TaskId},
    port::{NewSession, Prompt},
};

/// A session of a task that may have tasks of its own.
pub fn new_session(task: &TaskId, parent: &SessionId) -> NewSession {
    NewSession {
        task: task.clone(),
        parent: parent.clone(),
        title: "look around".to_owned(),
        agent: "general".into(),
        model: None,
        effort: None,
        may_delegate: true,
        role: None,
        within: Vec::new(),
        first_attempt: false,
    }
}

/// A prompt for such a session.
pub fn prompt(id: PostId, text: &str) -> Prompt {
    Prompt {
        id,
        text: text.to_owned(),
        agent: "general".into(),
        model: None,
        effort: None,
        role: None,
    }
}
