//! The notice to a parent about a task that has ended.

use crate::{
    shorten::one_line,
    sub_agent_report::SubAgentReport,
    task::{Outcome, State, Task},
    wording::duration,
};

/// One message of two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// For people and the model.
    pub visible: String,
    /// For the model only.
    pub hidden: String,
}

/// How many of the tasks that a parent waits for have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Ended, this one included.
    pub ended: u64,
    pub total: u64,
}

/// How messages are worded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The prefix of the tools' names.
    pub prefix: String,
    /// Whether people are told that there is a hidden part.
    pub show_hint: bool,
}

impl Default for Wording {
    fn default() -> Self {
        Self {
            prefix: "asyncagents_".to_owned(),
            show_hint: false,
        }
    }
}

/// The message about a task that has just ended; none if it has not. `shown` is its ID as people
/// see it.
pub fn message(task: &Task, shown: &str, batch: Batch, wording: &Wording) -> Option<Message> {
    let State::Ended { outcome, .. } = &task.state else {
        return None;
    };
    let (mark, headline) = headline(task)?;
    let Batch { ended, total } = batch;
    let hint = if wording.show_hint {
        "\n[hint attached]"
    } else {
        ""
    };
    Some(Message {
        visible: format!("{mark} **{headline}**\nTask Progress: {ended}/{total}{hint}"),
        hidden: hidden(outcome, shown, batch, &wording.prefix),
    })
}

/// The message about a task that ran a skill: a summary of the result, and where the whole is.
pub fn skill_message(
    task: &Task,
    shown: &str,
    answer: Option<&str>,
    batch: Batch,
    wording: &Wording,
) -> Option<Message> {
    let State::Ended { outcome, .. } = &task.state else {
        return None;
    };
    let notice = message(task, shown, batch, wording)?;
    let report = SubAgentReport::new(outcome, answer, task.chain.as_ref());
    Some(Message {
        visible: format!("{}\n\n{}", notice.visible, report.headline()),
        hidden: format!("{}\n{}", report.trace(), notice.hidden),
    })
}

/// How a task that has ended did so: a mark and a sentence.
pub fn headline(task: &Task) -> Option<(&'static str, String)> {
    let State::Ended { ran, outcome, .. } = &task.state else {
        return None;
    };
    let description = one_line(&task.brief.description);
    let took = duration(*ran);
    Some(match outcome {
        Outcome::Completed if task.run > 0 => {
            ("✓", format!("Resume #{} completed in {took}.", task.run))
        }
        Outcome::Completed => ("✓", format!("Agent \"{description}\" finished in {took}.")),
        Outcome::Failed { .. } => ("✗", format!("Agent \"{description}\" failed in {took}.")),
        Outcome::Cancelled => (
            "⊘",
            format!("Agent \"{description}\" cancelled after {took}."),
        ),
    })
}

fn hidden(outcome: &Outcome, shown: &str, batch: Batch, prefix: &str) -> String {
    let mut text = String::new();
    if let Outcome::Failed { why } = outcome {
        text.push_str(&format!("Error of {shown}: {why}\n"));
    }
    if batch.ended < batch.total {
        text.push_str(&format!(
            "If you need results immediately, use {prefix}output(task_id=\"{shown}\").\n\
             You can continue working or just say 'waiting' and halt.\n\
             WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete."
        ));
    } else {
        text.push_str(&format!(
            "All {} tasks finished.\nUse {prefix}output tools to see agent responses.",
            batch.total
        ));
    }
    text
}
