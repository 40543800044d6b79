//! What happens in a session, as updates for the client.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::PathBuf,
    time::{Duration, Instant},
};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use asyncagents_core::{
    agent::{Call, Preview},
    shorten::shorten,
};
use uuid::Uuid;

use super::{
    Happening,
    plan::SessionPlan,
    tool_call::{self, TODO},
};

/// How many of the last lines of a command are shown while it runs.
const MOST_LINES: usize = 40;

/// How much of each is shown, in characters.
const LONGEST_LINE: usize = 500;

/// How often they are shown at most.
const LINES_INTERVAL: Duration = Duration::from_millis(200);

/// Turns what happens in a session into updates. One for each session, as long as it is open.
pub(super) struct Updates {
    folder: PathBuf,
    /// That of the tools for background tasks.
    prefix: String,
    pub(super) plan: SessionPlan,
    /// What the names of its messages begin with: a client may have those from before.
    name: String,
    /// How many messages there were.
    messages: u64,
    /// What the newest update was a piece of.
    speaking: Speaking,
    /// Something of the answer that is on its way was said.
    has_said: bool,
    /// The client's names of calls that have not ended, by the model's.
    open: HashMap<String, String>,
    /// All of the client's names: a model may call two calls the same.
    used: HashSet<String>,
    printing: Option<Printing>,
    /// Calls that have launched a task and were not told its end.
    pub(super) launched: Vec<Launched>,
}

/// A call that stays open until its task has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launched {
    /// The client's name for the call.
    pub(super) call: String,
    /// The beginning of the task's ID.
    pub(super) task: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaking {
    Nothing,
    /// The text of this message.
    Text(u64),
    Thought(u64),
}

/// The call that prints.
struct Printing {
    call: String,
    lines: VecDeque<String>,
    shown: Instant,
}

impl Updates {
    pub(super) fn new(folder: &str, prefix: &str) -> Self {
        Self {
            folder: folder.into(),
            prefix: prefix.to_owned(),
            plan: SessionPlan::default(),
            name: Uuid::new_v4().simple().to_string(),
            messages: 0,
            speaking: Speaking::Nothing,
            has_said: false,
            open: HashMap::new(),
            used: HashSet::new(),
            printing: None,
            launched: Vec::new(),
        }
    }

    /// The user has said something.
    pub(super) fn prompted(&mut self, text: &str) -> SessionUpdate {
        self.next_message();
        self.speaking = Speaking::Nothing;
        let told = SessionUpdate::UserMessageChunk(self.chunk(text.to_owned()));
        self.next_message();
        told
    }

    /// Calls that have launched a task are told its end, also where that was told before.
    pub(super) fn take_launched(&mut self, launched: Vec<Launched>) {
        for call in launched {
            if !self.launched.contains(&call) {
                self.launched.push(call);
            }
        }
    }

    /// What the client is told of something.
    pub(super) fn of(&mut self, happening: Happening) -> Vec<SessionUpdate> {
        match happening {
            Happening::Text(text) => vec![self.text(text)],
            Happening::Thought(text) => vec![self.thought(text)],
            Happening::Answered => {
                self.next_message();
                self.has_said = false;
                Vec::new()
            }
            // What was said cannot be taken back.
            Happening::Retrying(why) if self.has_said => {
                let broke_off =
                    format!("\n\n[The answer broke off, and is asked for again: {why}]");
                let update = self.text(broke_off);
                self.next_message();
                vec![update]
            }
            Happening::Retrying(_) | Happening::Ended => Vec::new(),
            Happening::CallBegan(call) => self.began(&call).into_iter().collect(),
            Happening::Printed(lines) => self.printed(lines).into_iter().collect(),
            Happening::CallEnded {
                call,
                name,
                failed,
                result,
            } => self
                .ended(&call, &name, failed, &result)
                .into_iter()
                .collect(),
        }
    }

    /// A call that a person is asked about.
    pub(super) fn asked(
        &mut self,
        call: &str,
        tool: &str,
        target: &str,
        preview: &Preview,
    ) -> ToolCall {
        self.speaking = Speaking::Nothing;
        let id = self.open_call(call);
        tool_call::asked(&id, tool, target, preview, &self.folder)
    }

    /// Ends what has no end of its own, because the run is over.
    pub(super) fn close_calls(&mut self) -> Vec<SessionUpdate> {
        self.next_message();
        self.speaking = Speaking::Nothing;
        self.has_said = false;
        self.printing = None;
        let open = std::mem::take(&mut self.open);
        let failed = |id: String| status(id, ToolCallStatus::Failed);
        let mut open: Vec<String> = open.into_values().collect();
        open.sort();
        open.into_iter().map(failed).collect()
    }

    fn text(&mut self, text: String) -> SessionUpdate {
        // Two answers in a row are two paragraphs, also where messages are not told apart.
        let is_next = matches!(self.speaking, Speaking::Text(of) if of != self.messages);
        let text = if is_next { format!("\n\n{text}") } else { text };
        self.speaking = Speaking::Text(self.messages);
        self.has_said = true;
        SessionUpdate::AgentMessageChunk(self.chunk(text))
    }

    fn thought(&mut self, text: String) -> SessionUpdate {
        self.speaking = Speaking::Thought(self.messages);
        SessionUpdate::AgentThoughtChunk(self.chunk(text))
    }

    fn chunk(&self, text: String) -> ContentChunk {
        let message = MessageId::from(format!("message_{}_{}", self.name, self.messages));
        ContentChunk::new(ContentBlock::from(text)).message_id(message)
    }

    fn next_message(&mut self) {
        self.messages += 1;
    }

    fn began(&mut self, call: &Call) -> Option<SessionUpdate> {
        self.speaking = Speaking::Nothing;
        if call.name == TODO {
            return self.plan.note(&call.input);
        }
        let was_asked = self.open.contains_key(&call.id);
        let id = self.open_call(&call.id);
        let shown = tool_call::shown(&id, call, &self.folder, &self.prefix)
            .status(ToolCallStatus::InProgress);
        self.printing = Some(Printing {
            call: id.clone(),
            lines: VecDeque::new(),
            shown: Instant::now(),
        });
        Some(if was_asked {
            let fields = ToolCallUpdateFields::new()
                .status(ToolCallStatus::InProgress)
                .raw_input(shown.raw_input);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
        } else {
            SessionUpdate::ToolCall(shown)
        })
    }

    fn printed(&mut self, lines: Vec<String>) -> Option<SessionUpdate> {
        let printing = self.printing.as_mut()?;
        let lines = lines.iter().map(|line| shorten(line, LONGEST_LINE, "…"));
        printing.lines.extend(lines);
        while printing.lines.len() > MOST_LINES {
            printing.lines.pop_front();
        }
        if printing.shown.elapsed() < LINES_INTERVAL {
            return None;
        }
        printing.shown = Instant::now();
        let content = tool_call::printed(printing.lines.iter());
        let fields = ToolCallUpdateFields::new().content(content);
        let update = ToolCallUpdate::new(printing.call.clone(), fields);
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    fn ended(
        &mut self,
        call: &str,
        name: &str,
        failed: bool,
        result: &str,
    ) -> Option<SessionUpdate> {
        self.printing = None;
        if name == TODO && !failed {
            return None;
        }
        let known = self.open.remove(call);
        let status = if failed {
            ToolCallStatus::Failed
        } else if let (Some(id), Some(task)) = (&known, self.launched_task(name, result)) {
            let call = id.clone();
            self.launched.push(Launched { call, task });
            ToolCallStatus::InProgress
        } else {
            ToolCallStatus::Completed
        };
        let content = tool_call::result(name, failed, result);
        Some(match known {
            Some(id) => {
                let fields = ToolCallUpdateFields::new().status(status).content(content);
                SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
            }
            // It was refused before it began.
            None => {
                self.speaking = Speaking::Nothing;
                let id = self.open_call(call);
                self.open.remove(call);
                let call = ToolCall::new(id, name)
                    .name(name.to_owned())
                    .status(status)
                    .content(content.unwrap_or_default());
                SessionUpdate::ToolCall(call)
            }
        })
    }

    /// The task that a call has launched or resumed, by what it was answered.
    fn launched_task(&self, name: &str, result: &str) -> Option<String> {
        let launches = name == "skill" || name.strip_prefix(&*self.prefix) == Some("task");
        let task = result.strip_prefix("Task ")?.split_whitespace().next()?;
        launches.then(|| task.to_owned())
    }

    /// The client's name for a call that is open from now on.
    fn open_call(&mut self, call: &str) -> String {
        if let Some(known) = self.open.get(call) {
            return known.clone();
        }
        let mut id = call.to_owned();
        let mut number = 1_u64;
        while !self.used.insert(id.clone()) {
            number += 1;
            id = format!("{call}.{number}");
        }
        self.open.insert(call.to_owned(), id.clone());
        id
    }
}

/// A call has this status now.
pub(super) fn status(id: String, status: ToolCallStatus) -> SessionUpdate {
    let fields = ToolCallUpdateFields::new().status(status);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updates() -> Updates {
        Updates::new("/work", "asyncagents_")
    }

    fn call(id: &str, name: &str, input: &str) -> Happening {
        Happening::CallBegan(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
        })
    }

    fn ended(id: &str, name: &str, result: &str) -> Happening {
        Happening::CallEnded {
            call: id.to_owned(),
            name: name.to_owned(),
            failed: false,
            result: result.to_owned(),
        }
    }

    #[test]
    fn a_name_that_a_model_uses_twice_is_two_calls() {
        let mut updates = updates();
        let mut ids = Vec::new();
        for _ in 0..2 {
            for update in updates.of(call("call_1", "read", r#"{"path": "a"}"#)) {
                let SessionUpdate::ToolCall(call) = update else {
                    panic!("{update:?}");
                };
                ids.push(call.tool_call_id.0.to_string());
            }
            updates.of(ended("call_1", "read", "text"));
        }
        assert_eq!(ids, ["call_1", "call_1.2"]);
    }

    #[test]
    fn a_call_that_launched_a_task_stays_open() {
        let mut updates = updates();
        updates.of(call("c", "asyncagents_task", r#"{"description": "Look"}"#));
        let told = updates.of(ended(
            "c",
            "asyncagents_task",
            "Task task_4f1c is queued: …",
        ));
        let [SessionUpdate::ToolCallUpdate(told)] = told.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!(told.fields.status, Some(ToolCallStatus::InProgress));
        let launched = Launched {
            call: "c".to_owned(),
            task: "task_4f1c".to_owned(),
        };
        assert_eq!(updates.launched, [launched]);
    }

    #[test]
    fn two_answers_in_a_row_are_two_paragraphs() {
        let mut updates = updates();
        let said: String = [
            Happening::Text("One".to_owned()),
            Happening::Text(" more.".to_owned()),
            Happening::Answered,
            Happening::Text("Two.".to_owned()),
        ]
        .into_iter()
        .flat_map(|happening| updates.of(happening))
        .map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
                ContentBlock::Text(text) => text.text,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
        assert_eq!(said, "One more.\n\nTwo.");
    }
}
