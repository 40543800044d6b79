//! A task, with its result and conversation where they were asked for.

use std::collections::BTreeMap;

use asyncagents_core::{
    answer::{Report, Shown},
    budget::Cost,
    fallback::Fallback,
    moment::Moment,
    task::{Context, Outcome, State, Task},
    task_list::{LeftOut, TaskList},
    transcript::{Message, Outcome as CallOutcome, Part, Role},
};
use serde::Serialize;

use crate::{
    question::{NotTakenView, QuestionView, ToldView, asked, questions},
    values::{millis, time},
};

/// A task.
#[derive(Debug, Serialize)]
pub struct TaskView<'a> {
    id: &'a str,
    short_id: &'a str,
    status: String,
    description: &'a str,
    agent: &'a str,
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<ToldView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_taken: Vec<NotTakenView<'a>>,
    /// Of the last in a list: what would come after it, were the list longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOutView>,
}

#[derive(Debug, Serialize)]
struct LeftOutView {
    count: u64,
    /// Whether there are more than that.
    or_more: bool,
}

#[derive(Debug, Serialize)]
struct MessageView<'a> {
    id: Option<&'a str>,
    role: &'static str,
    parts: Vec<PartView<'a>>,
}

#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
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
    /// Why it is still queued, if something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asking: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionView<'a>>,
    /// The model that took the place of the task's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<FallbackView<'a>>,
}

#[derive(Debug, Serialize)]
struct FallbackView<'a> {
    from: Option<&'a str>,
    to: &'a str,
    why: &'a str,
}

#[derive(Debug, Serialize)]
struct BudgetView {
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    time_ms: Option<u64>,
    turns: Option<u64>,
    tool_calls: Option<u64>,
}

impl<'a> TaskView<'a> {
    /// A task as it stands now.
    pub fn new(shown: &'a Shown, now: Moment) -> Self {
        let task: &Task = &shown.task;
        let (ended_at, error) = match &task.state {
            State::Queued { .. } | State::Running { .. } => (None, None),
            State::Ended { at, outcome, .. } => match outcome {
                Outcome::Failed { why } => (Some(*at), Some(why.as_str())),
                Outcome::Completed | Outcome::Cancelled => (Some(*at), None),
            },
        };
        Self {
            id: task.id.as_str(),
            short_id: &shown.id,
            status: task.status().to_string(),
            description: &task.brief.description,
            agent: task.brief.agent.as_str(),
            model: task.brief.model.as_ref().map(|model| model.as_str()),
            effort: task.brief.effort.map(|effort| effort.word()),
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
            progress: ProgressView::new(task),
            budget: BudgetView {
                tokens: task.budget.tokens,
                cost_usd: task.budget.cost.map(Cost::dollars),
                time_ms: task.budget.time.map(millis),
                turns: task.budget.turns,
                tool_calls: task.budget.tool_calls,
            },
            error,
            retrieved_at: task.retrieved_at.map(time),
            answer: None,
            conversation: None,
            messages: Vec::new(),
            not_taken: Vec::new(),
            left_out: None,
        }
    }

    /// A list of tasks as they stand now.
    pub fn list(list: &'a TaskList, now: Moment) -> Vec<Self> {
        let LeftOut { count, or_more } = list.left_out;
        let tasks = list.tasks.iter().map(|shown| Self::new(shown, now));
        let mut tasks: Vec<Self> = tasks.collect();
        if let Some(last) = tasks.last_mut().filter(|_| count > 0) {
            last.left_out = Some(LeftOutView { count, or_more });
        }
        tasks
    }

    /// The same with the result, and with the conversation if it was asked for.
    pub fn of_report(report: &'a Report, now: Moment) -> Self {
        let conversation = report.conversation.as_ref();
        Self {
            answer: report.answer.as_deref(),
            conversation: conversation.map(|all| all.iter().map(MessageView::new).collect()),
            messages: report.messages.iter().map(ToldView::new).collect(),
            not_taken: report.not_taken.iter().map(NotTakenView::new).collect(),
            ..Self::new(&report.shown, now)
        }
    }
}

impl<'a> ProgressView<'a> {
    fn new(task: &'a Task) -> Self {
        let progress = &task.progress;
        Self {
            tool_calls: progress.spent.tool_calls,
            by_tool: &progress.by_tool,
            recent_tools: progress.recent.iter().map(String::as_str).collect(),
            turns: progress.spent.turns,
            tokens: progress.spent.tokens,
            cost_usd: progress.spent.price().dollars(),
            unpriced_tokens: progress.spent.unpriced,
            last_activity: progress.last_activity.map(time),
            phase: task.phase().map(|phase| phase.to_string()),
            held: progress.held.as_deref().filter(|_| task.is_held()),
            asking: asked(task),
            questions: questions(task),
            model: progress.model.as_ref().map(|model| model.as_str()),
            fallbacks: progress.fallbacks.iter().map(FallbackView::new).collect(),
        }
    }
}

impl<'a> FallbackView<'a> {
    fn new(fallback: &'a Fallback) -> Self {
        Self {
            from: fallback.from.as_ref().map(|model| model.as_str()),
            to: fallback.to.as_str(),
            why: &fallback.why,
        }
    }
}

impl<'a> MessageView<'a> {
    fn new(message: &'a Message) -> Self {
        Self {
            id: message.id.as_ref().map(|id| id.as_str()),
            role: match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            },
            parts: message.parts.iter().map(PartView::new).collect(),
        }
    }
}

impl<'a> PartView<'a> {
    fn new(part: &'a Part) -> Self {
        let call = match part {
            Part::Text(text) => {
                return Self::Text {
                    text: text.as_str(),
                };
            }
            Part::Tool(call) => call,
        };
        let (result, error) = match &call.outcome {
            CallOutcome::Pending => (None, None),
            CallOutcome::Completed(text) => (Some(text.as_str()), None),
            CallOutcome::Failed(text) => (None, Some(text.as_str())),
            CallOutcome::Cleared => (Some(CallOutcome::CLEARED), None),
        };
        Self::Tool {
            name: call.name.as_str(),
            input: call.input.as_str(),
            result,
            error,
        }
    }
}
