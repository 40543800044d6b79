//! The answers to callers, in words a model and a person can read.

use unicode_width::UnicodeWidthStr;

pub use crate::wording::Reader;

use crate::{
    budget::Spent,
    id::PostId,
    moment::Moment,
    open_question::open_questions,
    question::Reply,
    request::TextPart,
    shorten::{both_ends, one_line, short_line},
    speaker::Speaker,
    task::{Brief, Context, Outcome, Phase, State, Status, Task},
    transcript::{self, Message, Part, Role, ToolCall},
    wording::{counted, duration},
};

/// A task with its ID as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The shortest form of the ID that is unique.
    pub id: String,
    pub task: Task,
}

/// A task and its child's last answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub shown: Shown,
    /// The child's last answer, if the task has ended.
    pub answer: Option<String>,
    /// The child's conversation, if it was asked for.
    pub conversation: Option<Vec<Message<'static>>>,
    /// What it was told in its newest run.
    pub messages: Vec<ToldMessage>,
    /// What it was answered in its newest run, and did not get.
    pub not_taken: Vec<NotTaken>,
}

/// An answer that did not reach its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    pub reply: Reply,
    /// What the task had asked.
    pub asked: String,
    pub why: String,
}

/// Something that a task was told, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldMessage {
    pub id: PostId,
    /// Who told it, if that was saved.
    pub from: Option<Speaker>,
    pub text: String,
    pub at: Moment,
    pub state: MessageState,
}

/// What became of something that a task was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageState {
    /// It goes with the prompt, or went with it.
    WithPrompt,
    /// It is on its way.
    Pending,
    Delivered,
    /// It did not reach the child, for this reason.
    Undelivered(String),
}

/// How long a description may be in a table.
const DESCRIPTION: usize = 50;

/// How much of a message is shown.
const TOLD: usize = 200;

/// How short a description may become to fit the table, in columns.
const SHORT: usize = 12;

/// A task was launched, or a sub-agent that runs a skill.
pub fn launched(shown: &Shown, prefix: &str) -> String {
    let Shown { id, task } = shown;
    let Brief {
        description,
        agent,
        context,
        ..
    } = &task.brief;
    let forked = match context {
        Context::Forked => " (forked)",
        Context::Fresh => "",
    };
    let (what, trace) = match (&task.skill, &task.chain) {
        (None, _) => (format!("\"{description}\" by {agent}"), String::new()),
        (Some(terms), chain) => (
            format!("a sub-agent executes the skill {}", terms.skill),
            chain
                .iter()
                .map(|chain| format!("\nFull trace: {chain}"))
                .collect(),
        ),
    };
    format!(
        "Task {id}{forked} is {}: {what}.\n\
         You will be told when it has finished. Until then go on with your work; \
         {prefix}output(task_id=\"{id}\") shows how far it has come.{trace}",
        task.status(),
    )
}

/// A task was resumed.
pub fn resumed(shown: &Shown, ignored: &[&str], prefix: &str) -> String {
    let Shown { id, task } = shown;
    let warning = match ignored {
        [] => String::new(),
        names => format!(
            "\nIgnored, for a resumed task keeps its own: {}.",
            names.join(", ")
        ),
    };
    format!(
        "Task {id} goes on with your follow-up (resume #{}).{warning}\n\
         You will be told when it has finished; \
         {prefix}output(task_id=\"{id}\", block=true) waits for the answer.",
        task.run,
    )
}

/// A task was cancelled, with so many below it.
pub fn cancelled(shown: &Shown, below: u64) -> String {
    let and_below = match below {
        0 => String::new(),
        below => format!(" and {} below it", counted(below, "task", "tasks")),
    };
    match shown.task.status() {
        Status::Cancelled => format!("Cancelled {}{and_below}.", shown.id),
        status => format!(
            "{} had ended already ({status}). Cancelled{}.",
            shown.id,
            and_below.replacen(" and", "", 1)
        ),
    }
}

/// A task was told something.
pub fn messaged(shown: &Shown, reader: Reader) -> String {
    let Shown { id, task } = shown;
    let when = match &task.state {
        State::Queued { .. } => "goes to it with its prompt, for it has not begun",
        State::Running { .. } | State::Ended { .. } => "is told to it before its next step",
    };
    let look = match reader {
        Reader::Person => format!("asyncagents output {id}"),
        Reader::Model { prefix } => format!("{prefix}output(task_id=\"{id}\")"),
    };
    format!("The message for {id} {when}. {look} shows whether it got there.")
}

/// What came of an answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerState {
    /// The worker has not confirmed it yet.
    OnItsWay,
    Taken,
    /// It was not taken, for this reason.
    NotTaken(String),
}

/// What a task asked was answered. `others` are the questions that are still open.
pub fn answered(
    shown: &Shown,
    asked: &str,
    reply: &Reply,
    state: &AnswerState,
    others: &[String],
) -> String {
    let (id, said) = (&shown.id, short_line(&reply.shown(), DESCRIPTION));
    let came = match state {
        AnswerState::Taken => "It was taken.".to_owned(),
        AnswerState::OnItsWay => "It is on its way.".to_owned(),
        AnswerState::NotTaken(why) => format!("It was not taken: {why}."),
    };
    let mut text = format!("Answered {id} ({said}), which asked: {asked}\n{came}");
    for other in others {
        text.push_str(&format!("\nStill open: {other}"));
    }
    text
}

/// Tasks were cleared, of which some were unfinished.
pub fn cleared(all: u64, stopped: u64) -> String {
    match all {
        0 => NO_TASKS.to_owned(),
        _ => format!(
            "Cleared {}; {} stopped.",
            counted(all, "task", "tasks"),
            counted(stopped, "was", "were"),
        ),
    }
}

const NO_TASKS: &str = "No background tasks found";

/// The tasks as a Markdown table and a line that sums up.
pub fn list(tasks: &[Shown], now: Moment, reader: Reader) -> String {
    list_within(tasks, now, reader, None)
}

/// The same as [`list`], in so many columns if descriptions can be short enough for that.
pub fn list_within(tasks: &[Shown], now: Moment, reader: Reader, columns: Option<usize>) -> String {
    if tasks.is_empty() {
        return NO_TASKS.to_owned();
    }
    let head = ["ID", "Description", "Agent", "Status", "Duration", "Tools"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(tasks.iter().map(|shown| row(shown, now)));
    let widths = |rows: &[[String; 6]]| -> Vec<usize> {
        let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
        (0..head.len()).map(|at| width(at).unwrap_or(0)).collect()
    };
    let wide: usize = widths(&rows).iter().map(|width| width + 3).sum::<usize>() + 1;
    let over = columns.map_or(0, |columns| wide.saturating_sub(columns));
    if over > 0 {
        let room = widths(&rows)[1].saturating_sub(over).max(SHORT);
        for row in &mut rows {
            row[1] = fitting(&row[1], room);
        }
    }
    let widths = widths(&rows);
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())))
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if at == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&format!("| {} |\n", rules.join(" | ")));
        }
    }
    text.push_str(&format!("\n{}", summary(tasks, reader)));
    text
}

fn row(shown: &Shown, now: Moment) -> [String; 6] {
    let Shown { id, task } = shown;
    [
        format!("{id}{}", indicators(task)),
        in_a_cell(&task.brief.description),
        in_a_cell(&task.worked_on_by()),
        status(task),
        duration(task.ran(now)),
        task.progress.spent.tool_calls.to_string(),
    ]
}

/// As much of a text as fits into so many columns.
fn fitting(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if kept.width() + 1 > columns {
            kept.pop();
            break;
        }
    }
    // No half of `\\|`.
    format!("{}…", kept.trim_end_matches([' ', '\\']))
}

fn status(task: &Task) -> String {
    let waits = match task.phase() {
        _ if !task.progress.asking.is_empty() => " (asks)",
        Some(Phase::CommandQueued) => " (command queued)",
        None if task.is_held() => " (held)",
        _ => "",
    };
    format!("{}{waits}", task.status())
}

/// Whether a task inherited a conversation, and whether it was resumed.
fn indicators(task: &Task) -> &'static str {
    match (task.brief.context, task.run) {
        (Context::Fresh, 0) => "",
        (Context::Fresh, _) => " (resumed)",
        (Context::Forked, 0) => " (forked)",
        (Context::Forked, _) => " (forked) (resumed)",
    }
}

fn in_a_cell(text: &str) -> String {
    short_line(text, DESCRIPTION).replace('|', "\\|")
}

fn summary(tasks: &[Shown], reader: Reader) -> String {
    let count = |status: Status| {
        let same = tasks.iter().filter(|shown| shown.task.status() == status);
        match same.count() {
            0 => None,
            some => Some(format!("{some} {status}")),
        }
    };
    let counts = Status::ALL.iter().filter_map(|(_, status)| count(*status));
    let mut text = format!(
        "{}: {}",
        counted(tasks.len(), "task", "tasks"),
        counts.collect::<Vec<_>>().join(", ")
    );
    let spent = tasks.iter().map(|shown| shown.task.progress.spent);
    let spent = spent.fold(Spent::default(), Spent::plus);
    if matches!(reader, Reader::Person) && spent.tokens > 0 {
        let tokens = counted(spent.tokens, "token", "tokens");
        text.push_str(&format!("; {tokens}, {}", spent.price()));
    }
    for shown in tasks {
        for asked in open_questions(&shown.id, &shown.task.progress, reader) {
            text.push_str(&format!("\n{} waits for {asked}", shown.id));
        }
    }
    text
}

/// The parameters that a model is told of where they can be used, not with every request.
const CHOICE: &str = "[include_tool_results, message_limit and since_message_id choose what of the \
    conversation is shown]\n";

/// Where a task stands, and its result if it has ended; then the child's conversation, if
/// it was asked for.
pub fn output(report: &Report, now: Moment, reader: Reader) -> String {
    let standing = standing(report, now, reader);
    match &report.conversation {
        Some(messages) => {
            let choice = match reader {
                Reader::Model { .. } => CHOICE,
                Reader::Person => "",
            };
            format!("{standing}\n\n{}{choice}", conversation(messages))
        }
        None => standing,
    }
}

/// A part of what [`output`] says: as much as an agent is answered at once, and how to get the rest.
pub fn output_part(text: String, part: TextPart, shown: &str, prefix: &str) -> String {
    let all = text.chars().count();
    let from = part.offset;
    if from == 0 && all <= part.max_chars {
        return text;
    }
    // What it says of the rest has to fit in too.
    let most = part.max_chars.min(TextPart::MOST - NOTE);
    let until = from.saturating_add(most).min(all);
    if from >= all {
        return format!("[there are {all} characters, and none after {from}]");
    }
    let shown_part: String = text.chars().skip(from).take(until - from).collect();
    let rest = if until == all {
        String::new()
    } else {
        format!("; {prefix}output(task_id=\"{shown}\", offset={until}) goes on")
    };
    format!(
        "{shown_part}\n[characters {} to {until} of {all}{rest}]",
        from + 1
    )
}

/// How many characters are kept for saying what was left out.
const NOTE: usize = 200;

/// An answer that is no longer than an agent is answered at once.
pub fn bounded(text: String) -> String {
    let most = TextPart::MOST;
    if text.len() <= most || text.chars().count() <= most {
        return text;
    }
    let (all, most) = (text.chars().count(), most - NOTE);
    let kept: String = text.chars().take(most).collect();
    format!("{kept}\n[the first {most} of {all} characters]")
}

fn standing(report: &Report, now: Moment, reader: Reader) -> String {
    let Shown { id, task } = &report.shown;
    let headline = format!(
        "Task {id}{} is {}: \"{}\" by {}",
        indicators(task),
        task.status(),
        task.brief.description,
        task.worked_on_by()
    );
    let lost = report.not_taken.iter().map(not_taken);
    let told: String = report.messages.iter().map(told).chain(lost).collect();
    match &task.state {
        State::Queued { since } => {
            let waited = duration(now.since(*since));
            let waits = match &task.progress.held {
                Some(why) => {
                    format!("held for {waited}: {why}. A worker that has it starts the task")
                }
                None => format!("waiting for a free slot for {waited}"),
            };
            format!("{headline}, {waits}.{told}")
        }
        State::Running { since, .. } => format!(
            "{headline}, for {}.{}\n{}{told}",
            duration(now.since(*since)),
            questions(&report.shown, reader),
            with_models(task, now)
        ),
        State::Ended { ran, outcome, .. } => {
            let mut text = format!("{headline}, after {}.\n", duration(*ran));
            text.push_str(&with_models(task, now));
            text.push_str(&told);
            if let Outcome::Failed { why } = outcome {
                text.push_str(&format!("\nError: {why}"));
            }
            match &report.answer {
                Some(answer) => text.push_str(&format!("\n\n{answer}")),
                None => text.push_str("\n\n(no answer)"),
            }
            text
        }
    }
}

/// How far a task has come, and which models took the place of which.
fn with_models(task: &Task, now: Moment) -> String {
    let mut text = progress(task, now);
    for line in models(task) {
        text.push_str(&format!("\n{line}"));
    }
    text
}

/// Which models took the place of which, a line each.
pub fn models(task: &Task) -> Vec<String> {
    let progress = &task.progress;
    let mut lines: Vec<String> = progress
        .fallbacks
        .iter()
        .map(|fallback| format!("Model: {fallback}."))
        .collect();
    // In an earlier run.
    if let Some(model) = progress.model.as_ref().filter(|_| lines.is_empty()) {
        lines.push(format!(
            "Model: {model}, which took over in an earlier run."
        ));
    }
    lines
}

/// The questions that a task waits for its user to answer, a line each.
pub fn questions(shown: &Shown, reader: Reader) -> String {
    let open = open_questions(&shown.id, &shown.task.progress, reader);
    let open = open.into_iter();
    open.map(|asked| format!("\nIt waits for {asked}"))
        .collect()
}

/// What a task was told, in a line of its own.
fn told(message: &ToldMessage) -> String {
    let text = short_line(&message.text, TOLD);
    let by = message
        .from
        .map_or(String::new(), |from| format!(" by {}", from.to_others()));
    match &message.state {
        MessageState::WithPrompt => format!("\nTold{by} with its prompt: {text}"),
        MessageState::Delivered => format!("\nTold{by}: {text}"),
        MessageState::Pending => format!("\nTo be told{by} before its next step: {text}"),
        MessageState::Undelivered(why) => format!("\nNot told{by} ({why}): {text}"),
    }
}

/// An answer that did not reach its question, in a line of its own.
fn not_taken(NotTaken { reply, asked, why }: &NotTaken) -> String {
    let reply = short_line(&reply.shown(), DESCRIPTION);
    let asked = both_ends(&one_line(asked), TOLD);
    format!("\nNot taken ({why}): the answer \"{reply}\" to: {asked}")
}

/// A conversation, each message with its ID.
fn conversation(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let who = match message.role {
            Role::User => "User",
            Role::Assistant => "Agent",
        };
        let id = message.id.as_ref().map_or("", |id| id.as_str());
        text.push_str(&format!("{who}: [{id}]\n"));
        for part in &message.parts {
            match part {
                Part::Text(part) => text.push_str(part.as_str()),
                Part::Tool(call) => text.push_str(&tool_call(call)),
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

fn tool_call(call: &ToolCall) -> String {
    let asked = format!("[Tool: {}] {}", call.name.as_str(), call.input.as_str());
    match &call.outcome {
        transcript::Outcome::Pending => asked,
        transcript::Outcome::Completed(text) => {
            format!("{asked}\n[Tool result]\n{}", text.as_str())
        }
        transcript::Outcome::Failed(text) => format!("{asked}\n[Tool error]\n{}", text.as_str()),
        transcript::Outcome::Cleared => format!("{asked}\n{}", transcript::Outcome::CLEARED),
    }
}

/// How far a task has come, in one line.
pub fn progress(task: &Task, now: Moment) -> String {
    let progress = &task.progress;
    let mut parts: Vec<String> = task.phase().iter().map(ToString::to_string).collect();
    let by_tool: Vec<String> = progress
        .by_tool
        .iter()
        .map(|(tool, times)| format!("{tool} {times}"))
        .collect();
    let mut tools = counted(progress.spent.tool_calls, "tool call", "tool calls");
    if !by_tool.is_empty() {
        tools.push_str(&format!(" ({})", by_tool.join(", ")));
    }
    parts.push(tools);
    if !progress.recent.is_empty() {
        let recent: Vec<&str> = progress.recent.iter().map(String::as_str).collect();
        parts.push(format!("last: {}", recent.join(", ")));
    }
    parts.push(counted(progress.spent.tokens, "token", "tokens"));
    parts.push(progress.spent.price().to_string());
    if let Some(most) = task.budget.cost.filter(|_| progress.spent.unpriced > 0) {
        parts.push(format!(
            "the budget of {most} cannot be kept: no price is known for its model"
        ));
    }
    if let Some(at) = progress.last_activity
        && task.is_live()
    {
        parts.push(format!("last activity {} ago", duration(now.since(at))));
    }
    format!("Progress: {}", parts.join("; "))
}
