//! A message of a session, whichever generation it comes from.

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) by: Speaker,
    pub(crate) text: String,
    /// What only the model sees, of a message that people see too.
    pub(crate) hidden: String,
    pub(crate) calls: Vec<Call>,
    /// The agent and the model that said it or that it is addressed to.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// Whether it is an answer that has ended.
    pub(crate) is_complete: bool,
    /// Whether it is an answer that was stopped.
    pub(crate) is_aborted: bool,
}

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Agent,
    /// OpenCode itself, about the conversation.
    Opencode,
}

/// A tool that was used.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: String,
    /// What it answered or failed with.
    pub(crate) said: Option<String>,
    /// When it began and ended, in milliseconds since 1970.
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
}

/// What a parent was told about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What people see.
    pub(crate) visible: String,
    /// What only the model sees.
    pub(crate) hidden: String,
    /// The agent that it is addressed to.
    pub(crate) agent: String,
    /// The model that it is addressed to.
    pub(crate) model: String,
}

impl Call {
    pub(super) fn is_running(&self) -> bool {
        self.began.is_some() && self.ended.is_none()
    }
}

impl Message {
    /// A notice, if it is one: what a user would see, and what only the model sees.
    pub(crate) fn notice(&self) -> Option<Notice> {
        let told = self.by == Speaker::User && is_notice(&self.text);
        told.then(|| Notice {
            visible: self.text.clone(),
            hidden: self.hidden.clone(),
            agent: self.agent.clone(),
            model: self.model.clone(),
        })
    }
}

/// Five children have each counted a shelf, and each end was told once.
pub(crate) fn each_shelf_told_once(notices: &[Notice]) {
    for number in 1..=5 {
        let told = format!("✓ **Agent \"shelf {number}\" finished in ");
        let lines = notices.iter().flat_map(|notice| notice.visible.lines());
        let times = lines.filter(|line| line.starts_with(&told));
        assert_eq!(times.count(), 1, "{told}: {notices:#?}");
    }
}

/// Whether a text tells of the end of a task.
pub(crate) fn is_notice(text: &str) -> bool {
    text.starts_with(['✓', '✗', '⊘'])
}
