//! What a task was told, and what became of it.

use asyncagents_core::{
    answer::{MessageState, ToldMessage},
    port::{Fate, Journal, Messaged, Posted},
    task::{Outcome, State, Task},
};

use crate::{Problem, outbox::RUN_ENDED};

/// What a task was told in its newest run, and what became of it.
pub(super) fn messages(
    journal: &mut dyn Journal,
    task: &Task,
) -> Result<Vec<ToldMessage>, Problem> {
    let told = journal.messages(&task.id)?;
    if told.is_empty() {
        return Ok(Vec::new());
    }
    let posts = journal.posts(&task.id)?;
    let told = told.into_iter().map(|told| {
        let post = posts.iter().find(|post| post.id == told.id);
        ToldMessage {
            state: state(task, &told, post),
            id: told.id,
            from: told.from,
            text: told.text,
            at: told.at,
        }
    });
    Ok(told.collect())
}

fn state(task: &Task, told: &Messaged, post: Option<&Posted>) -> MessageState {
    // A task that has completed had its prompt, whether or not that was saved.
    let no_more = match &task.state {
        State::Queued { .. } | State::Running { .. } => false,
        State::Ended { outcome, .. } => !told.prompted && *outcome != Outcome::Completed,
    };
    match post.map(|post| &post.fate) {
        Some(Fate::Pending) => MessageState::Pending,
        Some(Fate::Delivered) => MessageState::Delivered,
        Some(Fate::Undelivered(why)) => MessageState::Undelivered(why.clone()),
        None if told.with_prompt && !no_more => MessageState::WithPrompt,
        None if task.is_live() => MessageState::Pending,
        None => MessageState::Undelivered(RUN_ENDED.to_owned()),
    }
}
