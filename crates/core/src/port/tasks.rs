//! Tasks and what happened to them.

use super::Stored;
use crate::{
    budget::Spent,
    event::{Event, Launched, Saved},
    id::{PostId, SessionId, TaskId},
    moment::Moment,
    notify::Batch,
    speaker::Speaker,
    task::Task,
    task_list::{ListRequest, TaskList},
};

/// The tasks, as one transaction sees them.
pub trait Tasks {
    /// A task.
    fn task(&mut self, id: &TaskId) -> Stored<Option<Task>>;
    /// The task that works in a session.
    fn task_in(&mut self, session: &SessionId) -> Stored<Option<Task>>;
    /// Begins a task with its first event.
    fn insert(&mut self, id: TaskId, launched: Launched, at: Moment) -> Stored<Task>;
    /// Saves what happened to a task, and folds it in.
    fn append(&mut self, task: &mut Task, events: &[Event], at: Moment) -> Stored<()>;
    /// Everything that happened to a task.
    fn events(&mut self, id: &TaskId) -> Stored<Vec<Saved>>;
    /// What happened to a task after its event number `after`.
    fn events_after(&mut self, id: &TaskId, after: u64) -> Stored<Vec<Saved>>;
    /// The events that began and ended the runs of a task, however much happened in between.
    fn run_events(&mut self, id: &TaskId) -> Stored<Vec<Saved>>;
    /// Which tasks something happened to after event number `position`, and the number of
    /// the newest event.
    fn changed_since(&mut self, position: i64) -> Stored<(Vec<TaskId>, i64)>;
    /// How a task began: with what it inherits, and the text of the skill it runs.
    fn launched(&mut self, id: &TaskId) -> Stored<Option<Launched>>;
    /// What a task has to do in its newest run, with what it was told before that began.
    fn prompt(&mut self, id: &TaskId) -> Stored<Option<String>>;
    /// What a task was told in its newest run, oldest first.
    fn messages(&mut self, id: &TaskId) -> Stored<Vec<Messaged>>;
    /// What a task's child said at the end of its newest finished run.
    fn answer(&mut self, id: &TaskId) -> Stored<Option<String>>;

    /// The tasks of a session that are not cleared, newest first; of all without one.
    fn tasks_of(&mut self, parent: Option<&SessionId>) -> Stored<Vec<Task>>;
    /// The tasks that a list is to show, newest first.
    fn list(&mut self, request: &ListRequest) -> Stored<TaskList<Task>>;
    /// Whether a session has tasks that are neither finished nor cleared.
    fn any_live(&mut self, parent: &SessionId) -> Stored<bool>;
    /// The tasks launched from the session of a task.
    fn below(&mut self, above: &TaskId) -> Stored<Vec<Task>>;
    /// What the tasks below a task have spent, all together.
    fn spent_below(&mut self, above: &TaskId) -> Stored<Spent>;
    /// The tasks that are not cleared and whose ID begins like this.
    fn beginning_with(&mut self, beginning: &str) -> Stored<Vec<Task>>;
    /// The IDs just before and after this one.
    fn neighbours(&mut self, id: &TaskId) -> Stored<Vec<TaskId>>;
    /// How many tasks were ever launched below a root session.
    fn launched_below(&mut self, root: &SessionId) -> Stored<u64>;
    /// What all tasks below a root session have spent, cleared ones too.
    fn spent_below_root(&mut self, root: &SessionId) -> Stored<Spent>;
    /// The batch a parent's unfinished tasks belong to, or a new one.
    fn open_batch(&mut self, parent: &SessionId) -> Stored<u64>;
    /// How far a batch has come.
    fn batch(&mut self, parent: &SessionId, batch: u64) -> Stored<Batch>;
}

/// Something that a task was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messaged {
    /// Its name in the outbox and in the child's session.
    pub id: PostId,
    /// Who told it, if that was saved.
    pub from: Option<Speaker>,
    pub text: String,
    pub at: Moment,
    /// Whether it goes with the prompt, for it was said before the run began.
    pub with_prompt: bool,
    /// Whether the host has the prompt of the run.
    pub prompted: bool,
}
