//! What a parent is told of runs that have ended: one message for each, or for several.

use std::time::Duration;

use crate::{
    foreign_tags::without_tag,
    notify::{Batch, Message, Wording, headline},
    shorten::shorten,
    sub_agent_report::SubAgentReport,
    task::{State, Task},
    wording::counted,
};

/// The end of a run, kept until its parent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndNotice {
    /// The task's ID as people see it.
    pub shown: String,
    /// How it ended, in a line.
    pub headline: String,
    /// How many messages to the child came too late for it.
    pub undelivered: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
    pub result: ToldResult,
}

/// What is told of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToldResult {
    /// Of a skill: a summary for everybody, and where the whole is.
    Skill {
        summary: String,
        trace: String,
        /// Whether the summary is all there is.
        whole: bool,
    },
    /// Of other tasks: its beginning, for the model.
    Text {
        text: String,
        /// How many characters the whole has.
        chars: usize,
    },
}

/// A message about some ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndMessage {
    pub message: Message,
    /// For each of the ends, whether its whole result is in the message.
    pub whole: Vec<bool>,
}

/// How many characters of results and errors one message has at most, however many ends it tells of.
const MOST_CHARS: usize = 30_000;
/// How many characters of an error are told.
const ERROR_CHARS: usize = 2_000;
/// How many ends one message tells of at most.
pub const MOST_TOGETHER: usize = 200;

/// How often the window doubles before it is as long as it may be.
const DOUBLINGS: u32 = 4;

/// How long an end waits for others of its batch, after so many messages about that batch. `longest`
/// is how long it may be.
pub fn window(longest: Duration, messages: u32) -> Duration {
    longest / 2_u32.pow(DOUBLINGS.saturating_sub(messages))
}

/// After how many messages the window has its full length.
pub const MESSAGES_THAT_COUNT: u32 = DOUBLINGS;

impl EndNotice {
    /// What is told of a task that has just ended; nothing if it has not. `shown` is its ID as people
    /// see it.
    pub fn new(
        task: &Task,
        shown: &str,
        answer: Option<&str>,
        undelivered: u64,
        wording: &Wording,
    ) -> Option<Self> {
        let State::Ended { outcome, .. } = &task.state else {
            return None;
        };
        let (mark, headline) = headline(task)?;
        let answer = answer.unwrap_or_default();
        let result = match &task.skill {
            Some(_) => {
                let report = SubAgentReport::new(outcome, Some(answer), task.chain.as_ref());
                ToldResult::Skill {
                    summary: not_ours(report.headline()),
                    trace: report.trace(),
                    whole: report.summary == answer.trim(),
                }
            }
            None => ToldResult::Text {
                text: shorten(answer, wording.result_chars, ""),
                chars: answer.chars().count(),
            },
        };
        Some(Self {
            shown: shown.to_owned(),
            headline: format!("{mark} **{headline}**"),
            undelivered,
            error: outcome
                .why()
                .map(|why| not_ours(shorten(why, ERROR_CHARS, "…"))),
            result,
        })
    }
}

impl EndNotice {
    /// The end without its result, for a parent that has read that. What a skill has to say is short,
    /// and for people.
    #[must_use]
    pub fn without_result(mut self) -> Self {
        if let ToldResult::Text { text, chars } = &mut self.result {
            (*text, *chars) = (String::new(), 0);
        }
        self
    }
}

/// The message that tells of some ends of one batch, oldest first.
pub fn end_message(ends: &[EndNotice], batch: Batch, wording: &Wording) -> EndMessage {
    let room = room_for_each(ends);
    let (results, whole) = results(ends, room, wording);
    let before = ends.iter().map(|end| before_hints(end, ends.len(), room));
    let hidden = before.chain([hints(ends, batch, &wording.prefix), results]);
    EndMessage {
        message: Message {
            visible: visible(ends, batch, wording),
            hidden: hidden.collect::<String>().trim_end().to_owned(),
        },
        whole,
    }
}

fn visible(ends: &[EndNotice], batch: Batch, wording: &Wording) -> String {
    let mut text = String::new();
    for end in ends {
        text.push_str(&end.headline);
        text.push('\n');
        text.push_str(&too_late(end.undelivered));
    }
    let Batch { ended, total } = batch;
    text.push_str(&format!("Task Progress: {ended}/{total}{}", wording.hint()));
    for end in ends {
        if let ToldResult::Skill { summary, .. } = &end.result {
            text.push_str(&format!("\n\n{summary}"));
        }
    }
    text
}

fn too_late(undelivered: u64) -> String {
    match undelivered {
        0 => String::new(),
        some => format!(
            "{} to it came too late and did not reach it.\n",
            counted(some, "message", "messages")
        ),
    }
}

/// Where the trace of a skill is, and why a task failed.
fn before_hints(end: &EndNotice, ends: usize, room: usize) -> String {
    let mut text = String::new();
    let shown = &end.shown;
    if let ToldResult::Skill { trace, .. } = &end.result {
        let whose = if ends > 1 {
            format!("{shown}: ")
        } else {
            String::new()
        };
        text.push_str(&format!("{whose}{trace}\n"));
    }
    if let Some(why) = &end.error {
        text.push_str(&format!("Error of {shown}: {}\n", shorten(why, room, "…")));
    }
    text
}

fn hints(ends: &[EndNotice], batch: Batch, prefix: &str) -> String {
    if batch.ended < batch.total {
        let shown = ends.first().map_or("", |end| &end.shown);
        format!(
            "If you need results immediately, use {prefix}output(task_id=\"{shown}\").\n\
             You can continue working or just say 'waiting' and halt.\n\
             WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete.\n"
        )
    } else {
        format!(
            "All {} tasks finished.\nUse {prefix}output tools to see agent responses.\n",
            batch.total
        )
    }
}

const RESULT_TAG: &str = "result";

/// The words of another model, a provider or a command: nothing in them passes for a result.
fn not_ours(text: String) -> String {
    without_tag(text, RESULT_TAG)
}

/// The results, and whether each is there as a whole.
fn results(ends: &[EndNotice], room: usize, wording: &Wording) -> (String, Vec<bool>) {
    let mut blocks = String::new();
    let mut whole = Vec::new();
    let mut any_cut = false;
    for end in ends {
        let (text, chars) = match &end.result {
            ToldResult::Text { text, chars } => (text, *chars),
            ToldResult::Skill { whole: all, .. } => {
                whole.push(*all);
                continue;
            }
        };
        // Who kept the end may have kept less of it than may be told here.
        let kept = text.chars().count();
        let told = kept.min(room).min(wording.result_chars);
        let error = end.error.as_ref().map_or(0, |why| why.chars().count());
        whole.push(told == chars && error <= room.min(ERROR_CHARS));
        if told == 0 {
            continue;
        }
        let (shown, prefix) = (&end.shown, &wording.prefix);
        let text = not_ours(shorten(text, told, ""));
        blocks.push_str(&format!(
            "<{RESULT_TAG} task_id=\"{shown}\">\n{}\n</{RESULT_TAG}>\n",
            text.trim_end()
        ));
        if told < chars {
            any_cut = true;
            blocks.push_str(&format!(
                "That is the beginning: {told} of {chars} characters. \
                 {prefix}output(task_id=\"{shown}\") has all of them.\n"
            ));
        }
    }
    let heading = match (blocks.is_empty(), any_cut) {
        (true, _) => "",
        (false, false) => "The whole results are below; no further call is needed:\n",
        (false, true) => "The results are below:\n",
    };
    (format!("{heading}{blocks}"), whole)
}

/// How many characters of each result and error are told, so that all of them together fit: short ones
/// are told whole, and long ones share what is left.
fn room_for_each(ends: &[EndNotice]) -> usize {
    let mut lengths: Vec<usize> = Vec::new();
    for end in ends {
        if let ToldResult::Text { text, .. } = &end.result {
            lengths.push(text.chars().count());
        }
        lengths.extend(end.error.iter().map(|why| why.chars().count()));
    }
    lengths.sort_unstable();
    let mut left = MOST_CHARS;
    for (at, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - at);
        if *length > share {
            return share;
        }
        left -= length;
    }
    MOST_CHARS
}
