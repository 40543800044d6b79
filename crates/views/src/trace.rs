//! A trace: a run with its steps and the runs below it.

use asyncagents_core::{
    agent::Usage,
    budget::Price,
    speaker::Speaker,
    trace::{Step, StepKind, ToolResult, Trace, TraceTotals},
};
use serde::Serialize;
use serde_json::Value;

use crate::values::{arguments, millis, time};

/// A run, with or without what happened in it.
#[derive(Debug, Serialize)]
pub struct TraceView<'a> {
    agent: Option<&'a str>,
    answer: Option<&'a str>,
    begun_at: String,
    chain_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<TraceView<'a>>>,
    duration_ms: u64,
    error: Option<&'a str>,
    own: TotalsView,
    parent_chain_id: Option<&'a str>,
    request: &'a str,
    skill: Option<&'a str>,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepView<'a>>>,
    task_id: Option<&'a str>,
    title: &'a str,
    total: TotalsView,
}

#[derive(Debug, Serialize)]
struct TotalsView {
    #[serde(flatten)]
    usage: UsageView,
    tool_calls: u64,
    turns: u64,
    unpriced_tokens: u64,
}

/// Tokens by kind, as far as they are known; `tokens` are all.
#[derive(Debug, Serialize)]
struct UsageView {
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    cost_usd: Option<f64>,
    input_tokens: u64,
    output_tokens: u64,
    tokens: u64,
}

/// One step of a run.
#[derive(Debug, Serialize)]
#[serde(remote = "Self")]
pub struct StepView<'a> {
    at: String,
    duration_ms: Option<u64>,
    seq: u64,
    #[serde(flatten)]
    what: StepKindView<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StepKindView<'a> {
    Thought {
        text: &'a str,
    },
    ModelCall {
        model: Option<&'a str>,
        text: &'a str,
        usage: UsageView,
    },
    Compaction {
        model: &'a str,
        usage: UsageView,
    },
    ToolCall {
        arguments: Value,
        result: Option<&'a str>,
        retries: u32,
        status: &'static str,
        tool: &'a str,
    },
    Notice {
        text: &'a str,
    },
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<&'static str>,
        text: &'a str,
    },
    Reply {
        text: &'a str,
    },
    Nudge {
        text: &'a str,
    },
    ModelFallback {
        from: Option<&'a str>,
        to: &'a str,
        why: &'a str,
    },
}

/// What a program that follows a run is sent.
#[derive(Debug, Serialize)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum TraceEvent<'a> {
    /// A step, in a run or one below it.
    Step {
        chain_id: &'a str,
        step: StepView<'a>,
    },
    /// The run has ended.
    End(Box<TraceView<'a>>),
}

impl<'a> TraceView<'a> {
    /// A run without what happened in it.
    pub fn head(trace: &'a Trace) -> Self {
        Self {
            agent: trace.agent.as_ref().map(|agent| agent.as_str()),
            answer: trace.answer.as_deref(),
            begun_at: time(trace.begun),
            chain_id: trace.chain.as_ref().map(|chain| chain.as_str()),
            children: None,
            duration_ms: millis(trace.took),
            error: trace.state.why(),
            own: TotalsView::new(&trace.own),
            parent_chain_id: trace.parent.as_ref().map(|chain| chain.as_str()),
            request: &trace.request,
            skill: trace.skill.as_deref(),
            status: trace.state.status().to_string(),
            steps: None,
            task_id: trace.task.as_ref().map(|task| task.as_str()),
            title: &trace.title,
            total: TotalsView::new(&trace.all),
        }
    }

    /// A run with its steps and the runs below it.
    pub fn whole(trace: &'a Trace) -> Self {
        Self {
            steps: Some(trace.steps.iter().map(StepView::new).collect()),
            children: Some(trace.children.iter().map(Self::whole).collect()),
            ..Self::head(trace)
        }
    }
}

impl TotalsView {
    fn new(totals: &TraceTotals) -> Self {
        let spent = totals.spent;
        Self {
            usage: UsageView::new(totals.usage, totals.unsplit(), spent.price()),
            tool_calls: spent.tool_calls,
            turns: spent.turns,
            unpriced_tokens: spent.unpriced,
        }
    }
}

impl UsageView {
    fn new(usage: Usage, unsplit: u64, price: Price) -> Self {
        Self {
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            cost_usd: price.dollars(),
            input_tokens: usage.input,
            output_tokens: usage.output,
            tokens: usage.context().saturating_add(unsplit),
        }
    }
}

impl<'a> StepView<'a> {
    /// A step as it stands now.
    pub fn new(step: &'a Step) -> Self {
        Self {
            at: time(step.at),
            duration_ms: step.took.map(millis),
            seq: step.seq,
            what: StepKindView::new(&step.what),
        }
    }
}

impl<'a> StepKindView<'a> {
    fn new(what: &'a StepKind) -> Self {
        match what {
            StepKind::Thought { text } => Self::Thought { text },
            StepKind::Model {
                model,
                usage,
                unsplit,
                cost,
                text,
            } => Self::ModelCall {
                model: model.as_ref().map(|model| model.as_str()),
                text,
                usage: UsageView::new(*usage, *unsplit, (*cost).into()),
            },
            StepKind::Compacted { model, usage, cost } => Self::Compaction {
                model: model.as_str(),
                usage: UsageView::new(*usage, 0, (*cost).into()),
            },
            StepKind::Tool {
                name,
                input,
                result,
                retries,
            } => {
                let (status, result) = match result {
                    ToolResult::Open => ("running", None),
                    ToolResult::Done(text) => ("completed", Some(text.as_str())),
                    ToolResult::Failed(text) => ("error", Some(text.as_str())),
                    ToolResult::Unknown => ("interrupted", None),
                    ToolResult::NotReported => ("unknown", None),
                };
                Self::ToolCall {
                    arguments: arguments(input),
                    result,
                    retries: *retries,
                    status,
                    tool: name,
                }
            }
            StepKind::Notice { text } => Self::Notice { text },
            StepKind::Message { from, text } => Self::Message {
                from: from.map(Speaker::word),
                text,
            },
            StepKind::Reply { text } => Self::Reply { text },
            StepKind::FellBack(fallback) => Self::ModelFallback {
                from: fallback.from.as_ref().map(|model| model.as_str()),
                to: fallback.to.as_str(),
                why: &fallback.why,
            },
            StepKind::Nudged { text } => Self::Nudge { text },
        }
    }
}
