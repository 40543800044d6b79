//! The background tasks of a session: in its plan, as its calls, and what they ask.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use agent_client_protocol::v1::schema::{
    SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use asyncagents_core::{
    agent::Entry,
    answer::Shown,
    host_ref::HostRef,
    id::{SessionId, TaskId},
    lock::lock,
    question::{Given, Question, QuestionKind, Reply},
    request::{AnswerRequest, Caller},
    task::{Outcome, State, Task},
    task_list::ListRequest,
};
use asyncagents_runtime::{Manager, Problem};
use tokio::{
    sync::oneshot,
    time::{self, Instant},
};

use super::{
    permission,
    session::Session,
    updates::{self, Launched},
};

/// How often it is looked at most.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often it is looked whether a worker is alive, while there are tasks.
const WORKER_INTERVAL: Duration = Duration::from_secs(5);

/// What is shown in a call whose task is not among those of its session.
const NOT_KEPT: &str = "Its task is not one of this session: it was cleared, or launched before the session was forked.";

/// What the client knows of the background tasks of a session.
#[derive(Default)]
pub(super) struct Tasks {
    /// Those that had ended when the turn began are not in its plan.
    past: HashSet<TaskId>,
    /// The questions that the client is asked. Dropping one withdraws it.
    asked: HashMap<(TaskId, String), oneshot::Sender<()>>,
    /// When it was last made sure that somebody works on them.
    attended: Option<Instant>,
}

impl Session {
    /// Tells the client of the tasks whenever something changes, as long as the session is open.
    pub(super) async fn watch_tasks(self: Arc<Self>) {
        let mut version = self.manager.written_since(None).await;
        loop {
            self.look_at_tasks().await;
            let newer = self.manager.written_since(Some(version));
            tokio::select! {
                newer = newer => version = newer,
                () = time::sleep(WORKER_INTERVAL) => {}
                () = self.is_closed() => return,
            }
            time::sleep(INTERVAL).await;
        }
    }

    /// A turn begins: tasks that have ended belong to those before.
    pub(super) async fn begin_tasks(&self) {
        let mut tasks = self.tasks.lock().await;
        if let Some(all) = self.all_tasks().await {
            let ended = all.into_iter().filter(|task| !task.is_live());
            tasks.past = ended.map(|task| task.id).collect();
        }
    }

    /// Tells the client what has changed about the tasks.
    pub(super) async fn look_at_tasks(self: &Arc<Self>) {
        let mut tasks = self.tasks.lock().await;
        // What is launched from here on need not be among the tasks yet.
        let launched = lock(&self.updates).launched.clone();
        let Some(all) = self.all_tasks().await else {
            return;
        };
        self.attend(&mut tasks, &all).await;
        let shown = all.iter().filter(|task| !tasks.past.contains(&task.id));
        let plan = lock(&self.updates).plan.set_tasks(shown);
        self.send_all(plan);
        self.end_calls(launched, &all).await;
        if self.agent.may_ask() && !self.has_closed() {
            self.ask_for(&mut tasks, &all);
        }
    }

    /// Asks nothing for them any more.
    pub(super) async fn leave_tasks(&self) {
        self.tasks.lock().await.asked.clear();
    }

    /// Stops all background tasks.
    pub(super) async fn cancel_tasks(&self) {
        for task in self.all_tasks().await.unwrap_or_default() {
            if !task.is_live() {
                continue;
            }
            let id = task.id.to_string();
            if let Err(problem) = self.manager.cancel(&Caller::Person, &id).await {
                tracing::warn!(task = id, %problem, "cancelling failed");
            }
        }
    }

    /// The tasks of the session, and those below them, in the order of their launch. Nothing if they
    /// cannot be read now.
    async fn all_tasks(&self) -> Option<Vec<Task>> {
        let read = all_tasks(&self.manager, &self.id).await;
        if let Err(problem) = &read {
            tracing::warn!(session = %self.id, %problem, "its tasks cannot be read");
        }
        read.ok()
    }

    /// Somebody has to work on them.
    async fn attend(&self, tasks: &mut Tasks, all: &[Task]) {
        let is_due = |last: Instant| last.elapsed() >= WORKER_INTERVAL;
        let is_live = all.iter().any(Task::is_live);
        let is_unattended = all
            .iter()
            .any(|task| task.is_live() && task.owner.is_none());
        if is_unattended || (is_live && tasks.attended.is_none_or(is_due)) {
            self.agent.ensure_worker().await;
            tasks.attended = Some(Instant::now());
        }
    }

    /// The call that launched a task ends with it.
    async fn end_calls(&self, launched: Vec<Launched>, all: &[Task]) {
        for Launched { call, task } in launched {
            let found = all
                .iter()
                .find(|known| known.id.as_str().starts_with(&task));
            let (status, text) = match found.map(|task| (task, &task.state)) {
                Some((_, State::Queued { .. } | State::Running { .. })) => continue,
                Some((task, State::Ended { outcome, .. })) => self.end_of_task(task, outcome).await,
                None => (ToolCallStatus::Completed, NOT_KEPT.to_owned()),
            };
            let content: ToolCallContent = text.trim_end().to_owned().into();
            let fields = ToolCallUpdateFields::new()
                .status(status)
                .content(vec![content]);
            let mut updates = lock(&self.updates);
            let before = updates.launched.len();
            updates.launched.retain(|open| open.call != call);
            if updates.launched.len() < before {
                let update = ToolCallUpdate::new(call, fields);
                self.send(SessionUpdate::ToolCallUpdate(update));
            }
        }
    }

    /// How the call that launched it ends, and what is shown in it.
    async fn end_of_task(&self, task: &Task, outcome: &Outcome) -> (ToolCallStatus, String) {
        match outcome {
            Outcome::Completed => (ToolCallStatus::Completed, self.result_of(task).await),
            Outcome::Failed { why } => {
                let said = self.result_of(task).await;
                let text = format!("It failed: {why}\n\n{said}");
                (ToolCallStatus::Failed, text)
            }
            Outcome::Cancelled => (ToolCallStatus::Failed, "It was cancelled.".to_owned()),
        }
    }

    /// What a child said last, where its conversation is kept here.
    async fn result_of(&self, task: &Task) -> String {
        let Some(session) = &task.session else {
            return String::new();
        };
        let entries = self
            .agent
            .entries(&self.folder, session)
            .await
            .unwrap_or_default();
        let answer = entries
            .into_iter()
            .rev()
            .find_map(|filed| match filed.entry {
                Entry::Ended { answer, .. } => Some(answer),
                _ => None,
            });
        answer
            .flatten()
            .unwrap_or_else(|| "It has ended.".to_owned())
    }

    /// Asks the client for what tasks ask for.
    fn ask_for(self: &Arc<Self>, tasks: &mut Tasks, all: &[Task]) {
        let mut open = HashSet::new();
        for task in all.iter().filter(|task| task.is_live()) {
            for (id, asking) in &task.progress.asking {
                let key = (task.id.clone(), id.clone());
                open.insert(key.clone());
                // Other questions have no form in the protocol; their parent is told of them.
                let is_permission = asking.question.kind == QuestionKind::Permission;
                if !is_permission || tasks.asked.contains_key(&key) {
                    continue;
                }
                let (withdraw, withdrawn) = oneshot::channel();
                tasks.asked.insert(key, withdraw);
                let (session, task) = (self.clone(), task.clone());
                let (id, question) = (id.clone(), asking.question.clone());
                self.spawn(async move {
                    let call = session.begin_question(&task, &id, &question);
                    let status = tokio::select! {
                        status = session.ask_about(&task, &id, call.clone()) => status,
                        _ = withdrawn => ToolCallStatus::Completed,
                    };
                    session.send(updates::status(call.tool_call_id.0.to_string(), status));
                });
            }
        }
        tasks.asked.retain(|key, _| open.contains(key));
    }

    /// Shows a question of a task as a call of its own: the one that launched the task goes on, and one
    /// below it has none here.
    fn begin_question(&self, task: &Task, id: &str, question: &Question) -> ToolCall {
        let asks = format!("background task \"{}\" asks", task.brief.description);
        let content: ToolCallContent = question.text.clone().into();
        let call = ToolCall::new(format!("{}.{id}", task.id), asks)
            .status(ToolCallStatus::Pending)
            .content(vec![content]);
        self.send(SessionUpdate::ToolCall(call.clone()));
        call
    }

    /// Asks the client, passes the answer on, and says how the call of the question ends.
    async fn ask_about(&self, task: &Task, id: &str, call: ToolCall) -> ToolCallStatus {
        // What it covers in another agent is said with the question.
        let always = match task.brief.host.host {
            HostRef::Agent { .. } => "as the question says",
            _ => "in this tree of tasks",
        };
        let reply = match permission::ask(self, call.into(), always).await {
            Ok(reply) => reply,
            // The task goes on without the editor, and asks whoever looks at it next.
            Err(why) => {
                tracing::info!(task = %task.id, ?why, "a question of a task stays open");
                return ToolCallStatus::Failed;
            }
        };
        let (given, status) = match reply {
            Reply::Once => (Given::Once, ToolCallStatus::Completed),
            Reply::Always => (Given::Always, ToolCallStatus::Completed),
            Reply::Reject { text } => (Given::Reject { text }, ToolCallStatus::Failed),
            Reply::Values(_) => return ToolCallStatus::Failed,
        };
        let answer = AnswerRequest {
            task: task.id.to_string(),
            question: Some(id.to_owned()),
            given,
        };
        if let Err(problem) = self.manager.answer(&Caller::Person, answer).await {
            tracing::info!(task = %task.id, %problem, "an answer was not taken");
        }
        status
    }
}

async fn all_tasks(manager: &Manager, root: &SessionId) -> Result<Vec<Task>, Problem> {
    let mut sessions = vec![root.clone()];
    let mut tasks: Vec<Task> = Vec::new();
    while let Some(session) = sessions.pop() {
        let request = ListRequest {
            of: Some(session),
            ..ListRequest::all()
        };
        for Shown { task, .. } in manager.list(request).await?.tasks {
            sessions.extend(task.session.clone());
            tasks.push(task);
        }
    }
    tasks.sort_by_key(|task| task.launched_at);
    Ok(tasks)
}
