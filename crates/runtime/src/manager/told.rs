//! What a task was told, and what became of it.

use std::collections::HashMap;

use asyncagents_core::{
    answer::{MessageState, NotTaken, ToldMessage},
    event::Event,
    id::PostId,
    port::{Fate, Journal, Messaged, PostKind, Posted},
    progress::Observation,
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

/// What a task was answered in its newest run, and did not get.
pub(super) fn not_taken(journal: &mut dyn Journal, task: &Task) -> Result<Vec<NotTaken>, Problem> {
    let posts = journal.posts(&task.id)?;
    let own = |post: &Posted| post.run == task.run && post.kind == PostKind::Answer;
    let lost = posts.into_iter().filter(own).filter_map(|post| {
        let Fate::Undelivered(why) = post.fate else {
            return None;
        };
        Some((post.id, why))
    });
    let lost: Vec<(PostId, String)> = lost.collect();
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let mut asked = HashMap::new();
    let mut not_taken = Vec::new();
    for saved in journal.events(&task.id)? {
        match saved.event {
            Event::Observed(Observation::Asked { id, question }) => {
                asked.insert(id, question.text);
            }
            Event::Replied {
                id,
                question,
                reply,
            } => {
                let why = lost.iter().find(|(post, _)| *post == id);
                not_taken.extend(why.map(|(_, why)| NotTaken {
                    reply,
                    asked: asked.get(&question).cloned().unwrap_or_default(),
                    why: why.clone(),
                }));
            }
            _ => {}
        }
    }
    Ok(not_taken)
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
