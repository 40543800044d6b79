//! What a session does next. The driver does it, saves what came of it, and asks again.

use super::{Call, Conversation, End, LastTurn, Stop};
use crate::wording::counted;

/// What is known beyond the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// Background tasks of the session are unfinished, or it has not been told of all that
    /// have ended.
    pub tasks: bool,
    /// Wait for them before the run ends.
    pub wait: bool,
    /// From this many tokens on the conversation is compacted.
    pub compact_from: u64,
    /// How often the model may answer in one run.
    pub most_answers: Option<u64>,
    /// The same call this often in a row ends a run.
    pub most_same_calls: u64,
    /// What of the budget is used up, if there is one.
    pub used_up: UsedUp,
}

/// What of a budget is used up: why the run has to come to its end, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsedUp {
    /// The time for work is.
    pub time: Option<String>,
    /// One more answer would take what is kept back for the last turn.
    pub answers: Option<String>,
    /// More tools are called than may be.
    pub tool_calls: Option<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Ask,
    Run(Vec<Call>),
    /// These were running when the process ended; what came of them is unknown.
    Lost(Vec<Call>),
    /// Summarise first, the window is nearly full.
    Compact,
    /// Say this to the model, in the user's place.
    Nudge(String),
    LastTurn {
        /// The limit that is reached, in words.
        why: String,
        /// Whether the run has failed with that, whatever the model says.
        fails: bool,
    },
    Wait,
    Finish(End),
    /// There is nothing to do.
    Rest,
}

/// How many answers in a row may be cut.
const MOST_CUTS: u32 = 4;

/// How often a model that gives no useful answer is asked again.
const MOST_NUDGES: u32 = 2;

const EMPTY: &str = "Your answer was empty. Go on with the task, or say that it is done and \
    what came of it.";

const CUT: &str = "Your answer was cut because it was too long. Go on where it ends, in \
    smaller steps.";

/// Decides what to do next. Tools that began and have no result are not running: the driver
/// asks only when it has nothing under way.
pub fn next(conversation: &Conversation, around: &Around) -> Next {
    let Some(run) = conversation.run() else {
        return Next::Rest;
    };
    if let Some(last) = run.last_turn.as_ref().filter(|last| last.over) {
        return after_last_turn(conversation, last, around);
    }
    if conversation
        .last()
        .is_some_and(|last| last.stop == Stop::Refused)
    {
        return failed("the model refused to answer");
    }
    let (lost, waiting): (Vec<_>, Vec<_>) =
        conversation.open_calls().partition(|(_, began)| *began);
    let calls = |open: Vec<(&Call, bool)>| open.into_iter().map(|(call, _)| call.clone()).collect();
    if !lost.is_empty() {
        return Next::Lost(calls(lost));
    }
    if !waiting.is_empty() {
        let over = [&around.used_up.tool_calls, &around.used_up.time];
        return match over.into_iter().flatten().next() {
            Some(why) => budget_used_up(why),
            None => Next::Run(calls(waiting)),
        };
    }
    if conversation.has_news() {
        return ask(conversation, around);
    }
    let Some(last) = conversation.last() else {
        return ask(conversation, around);
    };
    match last.stop {
        Stop::Finished | Stop::Tools | Stop::Length | Stop::Refused if !last.useful => {
            if run.nudges < MOST_NUDGES {
                Next::Nudge(EMPTY.to_owned())
            } else {
                failed("the model answered nothing, three times in a row")
            }
        }
        Stop::Length if run.nudges < MOST_NUDGES => Next::Nudge(CUT.to_owned()),
        Stop::Finished | Stop::Tools | Stop::Length | Stop::Refused => {
            match (around.tasks && around.wait, &around.used_up.time) {
                (true, Some(why)) => budget_used_up(why),
                (true, None) => Next::Wait,
                (false, _) => Next::Finish(End::Answered),
            }
        }
    }
}

fn ask(conversation: &Conversation, around: &Around) -> Next {
    let Some(run) = conversation.run() else {
        return Next::Rest;
    };
    let full = conversation.weight() >= around.compact_from && conversation.can_compact();
    let compact_or_ask = if full { Next::Compact } else { Next::Ask };
    // It has been announced and is not over: nothing else counts any more.
    match &run.last_turn {
        Some(last) if last.fails => return Next::Ask,
        Some(_) => return compact_or_ask,
        None => {}
    }
    if let Some(most) = around.most_answers {
        if run.answers >= most && has_answered(conversation) {
            return Next::Finish(End::Answered);
        }
        if run.answers >= most {
            return failed(&limit_of_answers(most));
        }
        if run.answers + 1 == most && most > 1 {
            let why = limit_of_answers(most);
            return Next::LastTurn { why, fails: false };
        }
    }
    let used_up = &around.used_up;
    // Without a single answer there is nothing to sum up.
    let over = used_up.answers.as_ref().or(used_up.time.as_ref());
    if let Some(why) = over.filter(|_| run.answers > 0) {
        return budget_used_up(why);
    }
    if run.same_calls >= around.most_same_calls {
        let times = run.same_calls;
        return failed(&format!("the same tool call came {times} times in a row"));
    }
    if run.cuts >= MOST_CUTS {
        return failed("the model's answers are cut at its greatest length, again and again");
    }
    compact_or_ask
}

fn limit_of_answers(most: u64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let most = counted(most, "answer", "answers");
    format!("the limit of {most} is reached")
}

fn budget_used_up(why: &str) -> Next {
    let why = why.to_owned();
    Next::LastTurn { why, fails: true }
}

/// A last turn that says something ends a run well, unless it has failed anyway. What it calls is
/// not run.
fn after_last_turn(conversation: &Conversation, last: &LastTurn, around: &Around) -> Next {
    let newest = conversation.last();
    let refused = newest.is_some_and(|newest| newest.stop == Stop::Refused);
    // A model that calls a tool wanted to go on.
    let answered = newest.is_some_and(|newest| newest.says && !newest.calls);
    match (last.fails, refused) {
        (true, _) => failed(&last.why),
        (false, true) => failed("the model refused to answer"),
        (false, false) if answered && around.tasks && around.wait => Next::Wait,
        (false, false) if answered => Next::Finish(End::Answered),
        (false, false) => failed(&last.why),
    }
}

/// The newest answer was one to end with; what came since are notices.
fn has_answered(conversation: &Conversation) -> bool {
    let last = conversation.last();
    last.is_some_and(|last| last.stop == Stop::Finished && last.useful && !last.calls)
}

fn failed(why: &str) -> Next {
    Next::Finish(End::Failed {
        why: why.to_owned(),
    })
}
