//! What a session does next. The driver does it, saves what came of it, and asks again.

use super::{Call, Conversation, End, Stop};

/// What is known beyond the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the model.
    Ask,
    /// Run these tools.
    Run(Vec<Call>),
    /// These were running when the process ended; what came of them is unknown.
    Lost(Vec<Call>),
    /// Summarise first, the window is nearly full.
    Compact,
    /// Say this to the model, in the user's place.
    Nudge(String),
    /// Wait for background tasks.
    Wait,
    /// The run is over.
    Finish(End),
    /// There is nothing to do.
    Rest,
}

/// How many answers in a row may be cut.
const MOST_CUTS: u32 = 4;

/// How often a model that gives no useful answer is asked again.
const MOST_NUDGES: u32 = 2;

/// What the model is told before its last answer.
pub const LAST_TURN: &str = "This is your last turn: the limit of answers is reached. Do not \
    call tools. Say what you have found and done so far, and what is left.";

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
        return Next::Run(calls(waiting));
    }
    if conversation.has_news() {
        return ask(conversation, around);
    }
    let Some(last) = conversation.last() else {
        return ask(conversation, around);
    };
    match last.stop {
        Stop::Finished | Stop::Tools | Stop::Length | Stop::Refused if !last.useful => {
            match run.nudges < MOST_NUDGES {
                true => Next::Nudge(EMPTY.to_owned()),
                false => failed("the model answered nothing, three times in a row"),
            }
        }
        Stop::Length if run.nudges < MOST_NUDGES => Next::Nudge(CUT.to_owned()),
        Stop::Finished | Stop::Tools | Stop::Length | Stop::Refused => {
            match around.tasks && around.wait {
                true => Next::Wait,
                false => Next::Finish(End::Answered),
            }
        }
    }
}

fn ask(conversation: &Conversation, around: &Around) -> Next {
    let Some(run) = conversation.run() else {
        return Next::Rest;
    };
    if let Some(most) = around.most_answers {
        if run.answers >= most && has_answered(conversation) {
            return Next::Finish(End::Answered);
        }
        if run.answers >= most {
            return failed(&format!("the limit of {most} answers is reached"));
        }
        if run.answers + 1 == most && most > 1 && !run.last_turn {
            return Next::Nudge(LAST_TURN.to_owned());
        }
    }
    if run.same_calls >= around.most_same_calls {
        let times = run.same_calls;
        return failed(&format!("the same tool call came {times} times in a row"));
    }
    if run.cuts >= MOST_CUTS {
        return failed("the model's answers are cut at its greatest length, again and again");
    }
    match conversation.weight() >= around.compact_from && conversation.can_compact() {
        true => Next::Compact,
        false => Next::Ask,
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
