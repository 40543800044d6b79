use asyncagents_core::{
    answer::{MessageState, NotTaken, Report, ToldMessage},
    id::TaskId,
    question::Reply,
    speaker::Speaker,
    task::Outcome,
    task_list::{LeftOut, TaskList},
    transcript::{Message, MessageId, Outcome as CallOutcome, Part, Role, Text, ToolCall},
};
use asyncagents_views::TaskView;

use crate::{made_up, printed};

#[test]
fn a_task_in_each_state() {
    let why = "the disk is full".to_owned();
    let tasks = [
        made_up::queued(),
        made_up::running(),
        made_up::ended(Outcome::Completed),
        made_up::ended(Outcome::Failed { why }),
        made_up::ended(Outcome::Cancelled),
        made_up::forked_and_resumed(),
        made_up::of_skill(),
    ];
    let now = made_up::later(5);
    let views = tasks.iter().map(|shown| TaskView::new(shown, now));
    insta::assert_snapshot!(printed(views));
}

#[test]
fn a_list_that_is_not_all() {
    let list = TaskList {
        tasks: vec![made_up::queued(), made_up::ended(Outcome::Completed)],
        left_out: LeftOut::counted(2_000),
    };
    let views = TaskView::list(&list, made_up::later(5));
    insta::assert_snapshot!(printed(views));
}

#[test]
fn a_result_with_its_conversation() {
    let report = report();
    let view = TaskView::of_report(&report, made_up::later(5));
    insta::assert_snapshot!(printed([view]));
}

pub(crate) fn report() -> Report {
    let call = |outcome| {
        Part::Tool(ToolCall {
            id: None,
            name: Text::new("bash"),
            input: Text::new(r#"{"command":"ls"}"#),
            outcome,
        })
    };
    let message = |id: Option<&'static str>, role, parts| Message {
        id: id.map(MessageId::new),
        role,
        finished: true,
        compaction: None,
        parts,
    };
    let outcomes = [
        CallOutcome::Pending,
        CallOutcome::Completed(Text::new("a.txt")),
        CallOutcome::Failed(Text::new("no such folder")),
        CallOutcome::Cleared,
    ];
    Report {
        shown: made_up::ended(Outcome::Completed),
        messages: told(),
        not_taken: vec![NotTaken {
            reply: Reply::Once,
            asked: "permission for bash make".to_owned(),
            why: "it had been answered meanwhile".to_owned(),
        }],
        answer: Some("There is one file.".to_owned()),
        conversation: Some(vec![
            message(None, Role::User, vec![Part::Text(Text::new("Look."))]),
            message(
                Some("msg_2"),
                Role::Assistant,
                outcomes.map(call).into_iter().collect(),
            ),
        ]),
    }
}

/// What the task was told, with every fate that a message can have.
fn told() -> Vec<ToldMessage> {
    let states = [
        MessageState::WithPrompt,
        MessageState::Delivered,
        MessageState::Pending,
        MessageState::Undelivered("the run ended before it was delivered".to_owned()),
        MessageState::Delivered,
    ];
    // The last is of an older version, which did not say.
    let speakers = Speaker::ALL.iter().map(|(_, speaker)| Some(*speaker));
    let told = states.into_iter().zip(speakers.chain([None]));
    let told = (1..).zip(told).map(|(number, (state, from))| ToldMessage {
        id: TaskId::from_random(7).message(number),
        from,
        text: "Leave the tests alone.".to_owned(),
        at: made_up::later(number),
        state,
    });
    told.collect()
}
