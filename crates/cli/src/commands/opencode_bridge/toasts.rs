//! What begins and what ends, on the screen of an OpenCode 1. OpenCode 2 has no toasts.

use std::{collections::HashSet, sync::Arc, time::Duration};

use asyncagents_core::{
    answer::Shown,
    id::TaskId,
    moment::Moment,
    notify,
    task::{Outcome, State, Task},
};
use asyncagents_runtime::Manager;
use tokio::time;

use crate::hosts::Bridges;

/// Shows on OpenCode's screen what begins and what ends, each once.
pub(super) async fn toast(manager: Manager, bridges: Arc<Bridges>) {
    let begun = manager.now();
    let mut shown: HashSet<(TaskId, u32, bool)> = HashSet::new();
    let mut position = None;
    loop {
        let changed = manager.changed(position, Duration::from_secs(3600)).await;
        let (tasks, newest) = match changed {
            Ok(changed) => changed,
            Err(problem) => {
                tracing::warn!(%problem, "cannot read the tasks, retrying");
                time::sleep(Duration::from_secs(5)).await;
                continue;
            }
        };
        position = Some(newest);
        for Shown { task, .. } in tasks {
            // Only tasks that a person's session launched are shown.
            let Some(host) = bridges
                .named(&task.brief.host.host)
                .filter(|_| task.place.depth == 1)
            else {
                continue;
            };
            let Some((message, variant)) = toast_of(&task, begun) else {
                continue;
            };
            if shown.insert((task.id.clone(), task.run, task.is_live()))
                && let Err(error) = host.toast(&message, variant).await
            {
                tracing::debug!(%error, "a toast was not shown");
            }
        }
    }
}

/// The toast about what happened to a task since a moment, and its colour.
fn toast_of(task: &Task, since: Moment) -> Option<(String, &'static str)> {
    match &task.state {
        State::Running { since: at, .. } if *at >= since => {
            let (description, agent) = (&task.brief.description, &task.brief.agent);
            Some((
                format!("Agent \"{description}\" started (@{agent})."),
                "info",
            ))
        }
        State::Ended { at, outcome, .. } if *at >= since => {
            let (mark, headline) = notify::headline(task)?;
            let variant = match outcome {
                Outcome::Completed => "success",
                Outcome::Failed { .. } => "error",
                Outcome::Cancelled => "warning",
            };
            Some((format!("{mark} {headline}"), variant))
        }
        State::Queued { .. } | State::Running { .. } | State::Ended { .. } => None,
    }
}
