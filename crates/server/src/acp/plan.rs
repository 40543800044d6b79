//! The plan of a session: what the model has noted down to do, and its background tasks.

use agent_client_protocol::v1::schema::{
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
};
use asyncagents_core::task::{Outcome, State, Task};
use serde::Deserialize;

/// The plan of a session, as it was told last.
#[derive(Debug, Default)]
pub(super) struct SessionPlan {
    notes: Vec<PlanEntry>,
    tasks: Vec<PlanEntry>,
    told: Vec<PlanEntry>,
}

/// The arguments of the tool for notes.
#[derive(Deserialize)]
struct Notes {
    items: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    text: String,
    status: String,
}

impl SessionPlan {
    /// The model has noted this down.
    pub(super) fn note(&mut self, input: &str) -> Option<SessionUpdate> {
        let Notes { items } = serde_json::from_str(input).ok()?;
        let entry = |note: Note| {
            let status = match note.status.as_str() {
                "doing" => PlanEntryStatus::InProgress,
                "done" => PlanEntryStatus::Completed,
                _ => PlanEntryStatus::Pending,
            };
            PlanEntry::new(note.text, PlanEntryPriority::Medium, status)
        };
        self.notes = items.into_iter().map(entry).collect();
        self.update()
    }

    /// These are the background tasks.
    pub(super) fn set_tasks<'t>(
        &mut self,
        tasks: impl Iterator<Item = &'t Task>,
    ) -> Option<SessionUpdate> {
        self.tasks = tasks.map(of_task).collect();
        self.update()
    }

    /// A turn begins. Notes of which all are done belong to the turn before.
    pub(super) fn begin_turn(&mut self) {
        let is_done = |entry: &PlanEntry| entry.status == PlanEntryStatus::Completed;
        if self.notes.iter().all(is_done) {
            self.notes.clear();
        }
    }

    /// The plan, if the client does not know it yet.
    fn update(&mut self) -> Option<SessionUpdate> {
        let entries = [self.notes.as_slice(), self.tasks.as_slice()].concat();
        if entries == self.told {
            return None;
        }
        self.told.clone_from(&entries);
        Some(SessionUpdate::Plan(Plan::new(entries)))
    }
}

/// The protocol knows no tasks that failed.
fn of_task(task: &Task) -> PlanEntry {
    let (status, end) = match &task.state {
        State::Queued { .. } => (PlanEntryStatus::Pending, String::new()),
        State::Running { .. } => (PlanEntryStatus::InProgress, String::new()),
        State::Ended { outcome, .. } => {
            let end = match outcome {
                Outcome::Completed => String::new(),
                Outcome::Failed { why } => format!(" (failed: {why})"),
                Outcome::Cancelled => " (cancelled)".to_owned(),
            };
            (PlanEntryStatus::Completed, end)
        }
    };
    let below = "↳ ".repeat(task.place.depth.saturating_sub(1).min(8) as usize);
    let content = format!("{below}background: {}{end}", task.brief.description);
    PlanEntry::new(content, PlanEntryPriority::Medium, status)
}
