//! A trace as JSON. The names here are read by other people's programs.

use asyncagents_core::{
    agent::Usage,
    budget::Price,
    trace::{Step, StepKind, ToolResult, Trace, TraceTotals},
};
use serde_json::{Value, json};

use crate::view::{arguments, time};

/// A run with its steps and the runs below it.
pub(crate) fn trace(trace: &Trace) -> Value {
    let mut shown = head(trace);
    shown["steps"] = trace.steps.iter().map(step).collect();
    shown["children"] = trace.children.iter().map(self::trace).collect();
    shown
}

/// A run without what happened in it.
pub(crate) fn head(trace: &Trace) -> Value {
    json!({
        "chain_id": trace.chain.as_ref().map(|chain| chain.as_str()),
        "parent_chain_id": trace.parent.as_ref().map(|chain| chain.as_str()),
        "task_id": trace.task.as_ref().map(|task| task.as_str()),
        "title": trace.title,
        "skill": trace.skill,
        "agent": trace.agent.as_ref().map(|agent| agent.as_str()),
        "status": trace.state.status().to_string(),
        "error": trace.state.why(),
        "request": trace.request,
        "answer": trace.answer,
        "begun_at": time(trace.begun),
        "duration_ms": millis(trace.took),
        "own": totals(&trace.own),
        "total": totals(&trace.all),
    })
}

fn totals(totals: &TraceTotals) -> Value {
    let spent = totals.spent;
    let mut shown = usage(totals.usage, totals.untold(), spent.price());
    shown["unpriced_tokens"] = spent.unpriced.into();
    shown["turns"] = spent.turns.into();
    shown["tool_calls"] = spent.tool_calls.into();
    shown
}

/// Tokens by kind, as far as they are known; `tokens` are all.
fn usage(usage: Usage, untold: u64, price: Price) -> Value {
    json!({
        "tokens": usage.context().saturating_add(untold),
        "input_tokens": usage.input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "cost_usd": price.dollars(),
    })
}

/// One step.
pub(crate) fn step(step: &Step) -> Value {
    let mut shown = match &step.what {
        StepKind::Thought { text } => json!({"type": "thought", "text": text}),
        StepKind::Model {
            model,
            usage: used,
            untold,
            cost,
            said,
        } => json!({
            "type": "model_call",
            "model": model.as_ref().map(|model| model.as_str()),
            "usage": usage(*used, *untold, (*cost).into()),
            "text": said,
        }),
        StepKind::Compacted {
            model,
            usage: used,
            cost,
        } => json!({
            "type": "compaction",
            "model": model.as_str(),
            "usage": usage(*used, 0, (*cost).into()),
        }),
        StepKind::Tool {
            name,
            input,
            result,
            retries,
        } => {
            let (status, text) = match result {
                ToolResult::Open => ("running", None),
                ToolResult::Done(text) => ("completed", Some(text)),
                ToolResult::Failed(text) => ("error", Some(text)),
                ToolResult::Unknown => ("interrupted", None),
                ToolResult::Untold => ("unknown", None),
            };
            json!({
                "type": "tool_call",
                "tool": name,
                "arguments": arguments(input),
                "status": status,
                "result": text,
                "retries": retries,
            })
        }
        StepKind::Told { text } => json!({"type": "notice", "text": text}),
        StepKind::Nudged { text } => json!({"type": "nudge", "text": text}),
    };
    shown["seq"] = step.seq.into();
    shown["at"] = time(step.at).into();
    shown["duration_ms"] = step.took.map(millis).into();
    shown
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
