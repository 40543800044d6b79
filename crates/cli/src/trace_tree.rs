//! A trace as a tree, for people.

use std::time::Duration;

use asyncagents_core::{
    agent::Usage,
    budget::Price,
    shorten::shorten,
    task::Status,
    trace::{Step, StepKind, ToolResult, Trace, TraceTotals},
};

use crate::{
    make_visible::make_visible,
    screen::{counted, dollars},
};

/// How many characters of a text are shown in a line.
const PREVIEW: usize = 80;

pub(crate) fn tree(trace: &Trace) -> String {
    let mut lines = Vec::new();
    draw(trace, "", "", &mut lines);
    lines.join("\n")
}

/// A run, its steps, and the runs below it, each after the step that began it. `first` stands
/// before the run's own line and `rest` before all others.
fn draw(trace: &Trace, first: &str, rest: &str, lines: &mut Vec<String>) {
    lines.push(format!("{first}{}", headline(trace)));
    let mut items = Vec::new();
    let mut children = trace.children.iter().peekable();
    for step in &trace.steps {
        while let Some(child) = children.next_if(|child| child.begun < step.at) {
            items.push(Item::Child(child));
        }
        items.push(Item::Step(step));
    }
    items.extend(children.map(Item::Child));
    items.extend(end(trace).map(Item::End));
    let last = items.len().saturating_sub(1);
    for (at, item) in items.iter().enumerate() {
        let (branch, below) = if at == last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        match item {
            Item::Step(step) => lines.push(format!("{rest}{branch}{}", step_line(step))),
            Item::End(line) => lines.push(format!("{rest}{branch}{line}")),
            Item::Child(child) => {
                let (first, rest) = (format!("{rest}{branch}"), format!("{rest}{below}"));
                draw(child, &first, &rest, lines);
            }
        }
    }
}

enum Item<'a> {
    Step(&'a Step),
    Child(&'a Trace),
    End(String),
}

/// What a run is, how it stands, and what it has used: itself, and all below it.
pub(crate) fn headline(trace: &Trace) -> String {
    let mark = match trace.state.status() {
        Status::Queued => "…",
        Status::Running | Status::Resumed => "▸",
        Status::Completed => "✓",
        Status::Error => "✗",
        Status::Cancelled => "⊘",
    };
    let title = preview(&trace.title);
    let agent = trace.agent.iter().map(|agent| format!(" · {agent}"));
    let agent: String = agent.collect();
    let chain = trace.chain.as_ref();
    let chain = chain.map_or("no name", |chain| chain.as_str());
    let used = |totals: &TraceTotals| {
        format!(
            "{}, {}, {}, {}",
            counted(totals.spent.turns, "answer"),
            counted(totals.spent.tool_calls, "tool call"),
            counted(totals.spent.tokens, "token"),
            dollars(totals.spent.price())
        )
    };
    let mut line = format!(
        "{mark} {title}{agent} · {} · {} · {} [{chain}]",
        trace.state.status(),
        seconds(trace.took),
        used(&trace.own),
    );
    if !trace.children.is_empty() {
        line.push_str(&format!(" · with sub-agents {}", used(&trace.all)));
    }
    line
}

/// The last line of a run: its answer, or why there is none.
fn end(trace: &Trace) -> Option<String> {
    if let Some(why) = trace.state.why() {
        return Some(format!("error: {}", preview(why)));
    }
    let answer = preview(trace.answer.as_deref()?);
    (!answer.is_empty()).then(|| format!("answer: {answer}"))
}

/// One step in a line.
pub(crate) fn step_line(step: &Step) -> String {
    let took = step.took.map_or(String::new(), seconds);
    let what = match &step.what {
        StepKind::Thought { text } => format!("thought  {}", preview(text)),
        StepKind::Model {
            model,
            usage,
            unsplit,
            cost,
            text,
        } => {
            let model = model.as_ref().map_or("", |model| model.as_str());
            let used = match unsplit {
                0 => used(*usage, (*cost).into()),
                tokens => format!("{}, {}", counted(*tokens, "token"), dollars((*cost).into())),
            };
            format!("model    {model} {used} {}", preview(text))
        }
        StepKind::Compacted { model, usage, cost } => {
            format!("summary  {model} {}", used(*usage, (*cost).into()))
        }
        StepKind::Tool {
            name,
            input,
            result,
            retries,
        } => {
            let again = match retries {
                0 => String::new(),
                times => format!(" (try {})", times + 1),
            };
            let result = match result {
                ToolResult::Open => " …".to_owned(),
                ToolResult::Done(text) => format!(" → {}", preview(text)),
                ToolResult::Failed(text) => format!(" ✗ {}", preview(text)),
                ToolResult::Unknown => " ✗ interrupted".to_owned(),
                ToolResult::NotReported => String::new(),
            };
            let input = make_visible(&preview(input));
            format!("tool     {name}{again} {input}{result}")
        }
        StepKind::Notice { text } => format!("notice   {}", preview(text)),
        StepKind::Message { from, text } => {
            let by = from.map_or(String::new(), |from| format!("by {}: ", from.to_others()));
            format!("told     {by}{}", preview(text))
        }
        StepKind::Reply { text } => format!("answered {}", preview(text)),
        StepKind::FellBack(fallback) => format!("model    {}", preview(&fallback.to_string())),
        StepKind::Nudged { text } => format!("host     {}", preview(text)),
    };
    format!("{took:>7}  {}", what.trim_end())
}

fn used(usage: Usage, price: Price) -> String {
    let read = usage.context().saturating_sub(usage.output);
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    format!(
        "{read}{cached} in, {} out, {}",
        usage.output,
        dollars(price)
    )
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        seconds => format!("{}m {:02}s", seconds / 60, seconds % 60),
    }
}

/// The beginning of a text, in one line.
fn preview(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() > PREVIEW {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    shorten(&line, PREVIEW, "…")
}
