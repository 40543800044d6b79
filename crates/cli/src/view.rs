//! A task as JSON. The names here are read by other people's programs.

use std::collections::BTreeMap;

use asyncagents_core::{
    answer::{Report, Shown},
    moment::Moment,
    task::{Context, Outcome, State, Task},
    transcript::{Message, Outcome as CallOutcome, Part, Role},
};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
pub(crate) struct TaskView<'a> {
    id: &'a str,
    short_id: &'a str,
    status: String,
    description: &'a str,
    agent: &'a str,
    model: Option<&'a str>,
    host: String,
    parent_session: &'a str,
    session: Option<&'a str>,
    depth: u32,
    forked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<&'a str>,
    chain_id: Option<&'a str>,
    resume_count: u32,
    launched_at: String,
    ended_at: Option<String>,
    duration_ms: u64,
    progress: ProgressView<'a>,
    budget: BudgetView,
    error: Option<&'a str>,
    retrieved_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<Vec<MessageView<'a>>>,
}

#[derive(Serialize)]
struct MessageView<'a> {
    id: Option<&'a str>,
    role: &'static str,
    parts: Vec<PartView<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PartView<'a> {
    Text {
        text: &'a str,
    },
    Tool {
        name: &'a str,
        input: &'a str,
        result: Option<&'a str>,
        error: Option<&'a str>,
    },
}

#[derive(Serialize)]
struct ProgressView<'a> {
    tool_calls: u64,
    by_tool: &'a BTreeMap<String, u64>,
    recent_tools: Vec<&'a str>,
    turns: u64,
    tokens: u64,
    cost_usd: Option<f64>,
    unpriced_tokens: u64,
    last_activity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asking: Vec<&'a str>,
}

#[derive(Serialize)]
struct BudgetView {
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    time_ms: Option<u64>,
    turns: Option<u64>,
    tool_calls: Option<u64>,
}

pub(crate) fn task(shown: &Shown, now: Moment) -> TaskView<'_> {
    let task: &Task = &shown.task;
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let dollars = |millionths: u64| millionths as f64 / 1e6;
    let (ended_at, error) = match &task.state {
        State::Queued { .. } | State::Running { .. } => (None, None),
        State::Ended { at, outcome, .. } => match outcome {
            Outcome::Failed { why } => (Some(*at), Some(why.as_str())),
            Outcome::Completed | Outcome::Cancelled => (Some(*at), None),
        },
    };
    let progress = &task.progress;
    TaskView {
        id: task.id.as_str(),
        short_id: &shown.id,
        status: task.status().to_string(),
        description: &task.brief.description,
        agent: task.brief.agent.as_str(),
        model: task.brief.model.as_ref().map(|model| model.as_str()),
        host: task.brief.host.host.label(),
        parent_session: task.place.parent.as_str(),
        session: task.session.as_ref().map(|session| session.as_str()),
        depth: task.place.depth,
        forked: task.brief.context == Context::Forked,
        skill: task.skill.as_ref().map(|terms| terms.skill.as_str()),
        chain_id: task.chain.as_ref().map(|chain| chain.as_str()),
        resume_count: task.run,
        launched_at: time(task.launched_at),
        ended_at: ended_at.map(time),
        duration_ms: millis(task.ran(now)),
        progress: ProgressView {
            tool_calls: progress.spent.tool_calls,
            by_tool: &progress.by_tool,
            recent_tools: progress.recent.iter().map(String::as_str).collect(),
            turns: progress.spent.turns,
            tokens: progress.spent.tokens,
            cost_usd: progress.spent.price().dollars(),
            unpriced_tokens: progress.spent.unpriced,
            last_activity: progress.last_activity.map(time),
            phase: task.phase().map(|phase| phase.to_string()),
            asking: progress.asking.values().map(String::as_str).collect(),
        },
        budget: BudgetView {
            tokens: task.budget.tokens,
            cost_usd: task.budget.cost.map(|cost| dollars(cost.0)),
            time_ms: task.budget.time.map(millis),
            turns: task.budget.turns,
            tool_calls: task.budget.tool_calls,
        },
        error,
        retrieved_at: task.retrieved_at.map(time),
        answer: None,
        conversation: None,
    }
}

pub(crate) fn report(report: &Report, now: Moment) -> TaskView<'_> {
    TaskView {
        answer: report.answer.as_deref(),
        conversation: report
            .conversation
            .as_ref()
            .map(|messages| messages.iter().map(message).collect()),
        ..task(&report.shown, now)
    }
}

fn message<'a>(message: &'a Message) -> MessageView<'a> {
    MessageView {
        id: message.id.as_ref().map(|id| id.as_str()),
        role: match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        parts: message.parts.iter().map(part).collect(),
    }
}

fn part<'a>(part: &'a Part) -> PartView<'a> {
    match part {
        Part::Text(text) => PartView::Text {
            text: text.as_str(),
        },
        Part::Tool(call) => {
            let (result, error) = match &call.outcome {
                CallOutcome::Pending => (None, None),
                CallOutcome::Completed(text) => (Some(text.as_str()), None),
                CallOutcome::Failed(text) => (None, Some(text.as_str())),
                CallOutcome::Cleared => (Some(CallOutcome::CLEARED), None),
            };
            PartView::Tool {
                name: call.name.as_str(),
                input: call.input.as_str(),
                result,
                error,
            }
        }
    }
}

/// A call's parameters, as JSON if the model wrote JSON.
pub(crate) fn arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()))
}

pub(crate) fn time(moment: Moment) -> String {
    let stamp = jiff::Timestamp::from_millisecond(moment.as_millis());
    stamp.map_or_else(
        |_| moment.as_millis().to_string(),
        |stamp| stamp.to_string(),
    )
}
