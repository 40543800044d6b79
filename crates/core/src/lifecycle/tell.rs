//! What a task is told while it is queued or runs, what it asks, and what it is answered.

use std::time::Duration;

use super::{Decision, Effect};
use crate::{
    event::Event,
    moment::Moment,
    question::Reply,
    refusal::Refusal,
    speaker::Speaker,
    task::{Stage, State, Task},
    task_limits::TaskLimits,
};

/// A message to a task. Before the prompt is sent it goes with it, or right after it; while the
/// task works it is sent at once. Afterwards there is nobody to read it.
pub(super) fn told(task: &Task, from: Speaker, text: String) -> Result<Decision, Refusal> {
    let effects = match &task.state {
        State::Queued { .. } => Vec::new(),
        State::Running { stage, .. } => match stage {
            Stage::Creating | Stage::Prompting => Vec::new(),
            Stage::Working => vec![Effect::SendMessages],
            Stage::SummingUp { .. } => {
                let task = task.id.clone();
                return Err(Refusal::SummingUp { task });
            }
        },
        State::Ended { .. } => {
            let (task, status) = (task.id.clone(), task.status());
            return Err(Refusal::TooLateToTell { task, status });
        }
    };
    let id = task.id.message(task.seq + 1);
    Ok(Decision {
        events: vec![Event::Messaged {
            id,
            from: Some(from),
            text,
        }],
        effects,
    })
}

/// The answer to a question that is open.
pub(super) fn answered(task: &Task, question: String, reply: Reply) -> Result<Decision, Refusal> {
    if !task.progress.asking.contains_key(&question) {
        return Err(Refusal::NotAsking {
            task: task.id.clone(),
        });
    }
    let id = task.id.answer(task.seq + 1);
    let effect = Effect::SendAnswer {
        id: id.clone(),
        question: question.clone(),
        reply: reply.clone(),
    };
    Ok(Decision {
        events: vec![Event::Replied {
            id,
            question,
            reply,
        }],
        effects: vec![effect],
    })
}

/// Tells the parent of every question that has been open for too long and that it was not told of.
pub(super) fn questions_told(task: &Task, now: Moment, limits: &TaskLimits) -> Decision {
    let mut decision = Decision::default();
    for (question, open) in &task.progress.asking {
        if open.told || now.since(open.since) < limits.ask {
            continue;
        }
        let told = u64::try_from(decision.events.len()).unwrap_or(u64::MAX);
        decision.effects.push(Effect::TellQuestion {
            id: task.id.asked(task.seq.saturating_add(told + 1)),
            question: question.clone(),
        });
        let question = question.clone();
        decision.events.push(Event::QuestionTold { question });
    }
    decision
}

/// How long until the parent is to be told what a task asks, if it asks something that the parent
/// was not told of.
pub fn until_question_told(task: &Task, now: Moment, limits: &TaskLimits) -> Option<Duration> {
    let open = task.progress.asking.values().filter(|open| !open.told);
    let left = open.map(|open| limits.ask.saturating_sub(now.since(open.since)));
    left.min()
}

/// Why a task ends whose budget is used up: for a task that asks, that nobody has answered.
pub fn unanswered(task: &Task, why: String) -> String {
    match task.progress.oldest_question() {
        Some((_, open)) => format!(
            "nobody answered what it asked: {} ({why})",
            open.question.in_line()
        ),
        None => why,
    }
}
