//! Which tasks a list shows, and what it says of those it leaves out.

use crate::{
    answer::{self, Reader, Shown},
    id::SessionId,
    moment::Moment,
    task::Status,
    wording::grouped,
};

/// Which tasks are wanted. Those that were cleared are in no list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// Only the tasks of this session.
    pub of: Option<SessionId>,
    /// Only tasks with this status. A queued task counts as running, for its caller waits for it.
    pub status: Option<Status>,
    /// Only tasks with this text in their description, agent or ID, in whatever case.
    pub search: Option<String>,
    /// How many of the newest.
    pub newest: usize,
    /// How many more that are older and not finished.
    pub live: usize,
}

impl ListRequest {
    /// How many of the newest tasks are in a list unless its caller says otherwise.
    pub const NEWEST: usize = 50;

    /// How many more that are not finished a model is shown: what it is told has to fit into its
    /// context.
    const LIVE_FOR_MODELS: usize = 50;

    /// The newest tasks and all that are not finished.
    pub fn usual() -> Self {
        Self {
            newest: Self::NEWEST,
            ..Self::all()
        }
    }

    /// As many as a model should be shown.
    pub fn for_model(of: &SessionId, status: Option<Status>) -> Self {
        Self {
            of: Some(of.clone()),
            status,
            live: Self::LIVE_FOR_MODELS,
            ..Self::usual()
        }
    }

    /// All tasks.
    pub fn all() -> Self {
        Self {
            of: None,
            status: None,
            search: None,
            newest: usize::MAX,
            live: usize::MAX,
        }
    }
}

/// Tasks that would be in a list, were it longer. They are counted up to [`LeftOut::MOST`]: a
/// longer count would cost more than the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    pub count: u64,
    /// Whether there are more than that.
    pub or_more: bool,
}

impl LeftOut {
    /// How far is counted.
    pub const MOST: u64 = 1_000;

    /// So many, of which one more than [`LeftOut::MOST`] may have been counted.
    pub fn counted(count: u64) -> Self {
        Self {
            count: count.min(Self::MOST),
            or_more: count > Self::MOST,
        }
    }

    /// What a reader is told, and what they can do about it; nothing if all are in the list.
    pub fn text(self, reader: Reader) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let than = if self.or_more { "more than " } else { "" };
        let count = grouped(self.count);
        let hint = match reader {
            Reader::Person => {
                "--all shows all of them, --limit N the N newest; --status and --search choose"
            }
            Reader::Model { .. } => {
                "older, all finished or beyond the limit; `status` narrows it, and output takes their IDs"
            }
        };
        let are = if self.count == 1 && !self.or_more {
            "is"
        } else {
            "are"
        };
        Some(format!("{than}{count} more {are} not shown: {hint}"))
    }
}

/// Tasks, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskList<T = Shown> {
    pub tasks: Vec<T>,
    pub left_out: LeftOut,
}

impl<T> Default for TaskList<T> {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            left_out: LeftOut::default(),
        }
    }
}

impl TaskList {
    /// A Markdown table, a line that sums up, and one on what is left out; in so many columns if
    /// descriptions can be short enough for that.
    pub fn text(&self, now: Moment, reader: Reader, columns: Option<usize>) -> String {
        let mut text = answer::list_within(&self.tasks, now, reader, columns);
        if let Some(left_out) = self.left_out.text(reader) {
            text.push('\n');
            text.push_str(&left_out);
        }
        text
    }
}
