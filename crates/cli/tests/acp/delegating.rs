//! Background tasks, as an editor sees them.

use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ForkSessionRequest, PermissionOptionKind,
    PlanEntryStatus, StopReason, ToolCallStatus,
};
use asyncagents_scripted_model::{Fault, Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::{
    editor::{Editor, content_of, ended, is_done},
    home::{Home, until},
};

fn launch() -> Reply {
    let task = json!({"description": "Count", "prompt": "Child: count", "agent": "general"});
    Reply::call("asyncagents_task", task)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_in_the_plan_and_its_result_reaches_the_model_in_the_same_turn() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().first("Child:"),
            Reply::text("There are nine.").behind(&gate),
        )
        .rule(When::turn(0), launch())
        .rule(When::turn(1), Reply::text("I wait for it."))
        .rule(When::always(), Reply::text("Nine it is."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Count the tests");
    let (running, done) = (PlanEntryStatus::InProgress, PlanEntryStatus::Completed);
    editor
        .until_planned(&session, "background: Count", running)
        .await;
    until("it waits", || editor.said(&session) == "I wait for it.").await;
    let call = editor.call(&session, "asyncagents_task");
    assert_eq!(call.title, "asyncagents_task Count");
    assert_eq!(call.status, ToolCallStatus::InProgress);
    assert!(!turn.is_finished(), "the turn waits for its tasks");
    gate.open();
    let answer = ended(turn).await.expect("an answer");
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(editor.said(&session), "I wait for it.\n\nNine it is.");
    assert!(
        home.newest().contains("There are nine."),
        "{}",
        home.newest()
    );
    assert_eq!(
        editor.plan(&session),
        [("background: Count".to_owned(), done)].into()
    );
    let call = editor.call(&session, "asyncagents_task");
    assert!(is_done(&call), "{call:?}");
    assert_eq!(content_of(&call), "There are nine.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_child_may_not_do_unasked_is_asked_in_the_editor() {
    let write = json!({"path": "a.txt", "content": "by a child"});
    let script = Script::new()
        .rule(When::turn(0).first("Child:"), Reply::call("write", write))
        .rule(When::always().first("Child:"), Reply::text("Written."))
        .rule(When::turn(0), launch())
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Delegate");
    let question = editor.question().await;
    let asked = &question.request.tool_call;
    let title = asked.fields.title.as_deref();
    assert_eq!(title, Some("background task \"Count\" asks"));
    let about = serde_json::to_string(&asked.fields.content).expect("JSON");
    assert!(
        about.contains("a.txt") && about.contains("by a child"),
        "{about}"
    );
    // It is a call of its own, which was shown before it was asked about.
    let id = asked.tool_call_id.clone();
    let shown = |editor: &Editor| {
        let mut calls = editor.calls(&session).into_iter();
        calls.find(|call| call.tool_call_id == id)
    };
    let pending = shown(&editor).expect("it is shown");
    assert_eq!(pending.status, ToolCallStatus::Pending);
    assert_eq!(home.read("a.txt"), "");
    question.answer(PermissionOptionKind::AllowOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("a.txt"), "by a child");
    assert!(!editor.has_question(), "it was asked once");
    assert!(is_done(&shown(&editor).expect("it is shown")));
    let call = editor.call(&session, "asyncagents_task");
    assert_eq!(call.title, "asyncagents_task Count");
}

/// To close an editor is not to say no.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_child_asks_when_the_editor_is_closed_is_asked_in_the_next_one() {
    let write = json!({"path": "a.txt", "content": "by a child"});
    let script = Script::new()
        .rule(When::turn(0).first("Child:"), Reply::call("write", write))
        .rule(When::always().first("Child:"), Reply::text("Written."))
        .rule(When::turn(0), launch())
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Delegate");
    let question = editor.question().await;
    drop(turn);
    assert_eq!(editor.close().await.code(), Some(0));
    // Not before: that would be an answer.
    drop(question);
    let mut editor = Editor::start_with(home.asking()).await;
    editor.load(&session, &home).await.expect("loaded");
    let question = editor.question().await;
    question.answer(PermissionOptionKind::AllowOnce);
    until("it is written", || home.read("a.txt") == "by a child").await;
}

/// A task belongs to the session that has launched it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_shows_its_parents_launch_as_over() {
    let script = Script::new()
        .rule(
            When::always().first("Child:"),
            Reply::text("There are nine."),
        )
        .rule(When::turn(0), launch())
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Count the tests").await;
    let fork = ForkSessionRequest::new(session, home.work());
    let forked = editor.agent.send_request(fork).block_task().await;
    let fork = forked.expect("forked").session_id;
    editor.load(&fork, &home).await.expect("loaded");
    let call = editor.call(&fork, "asyncagents_task");
    assert!(is_done(&call), "{call:?}");
    assert!(
        content_of(&call).contains("not one of this session"),
        "{call:?}"
    );
}

/// There may be no turn that could be cancelled: the editor was closed in the middle of one.
#[rstest]
#[case::cancelled(false)]
#[case::closed(true)]
#[tokio::test(flavor = "multi_thread")]
async fn tasks_without_a_turn_are_stopped_too(#[case] is_closed: bool) {
    let script = Script::new()
        .rule(When::always().first("Child:"), Reply::fault(Fault::Hang))
        .rule(When::turn(0), launch())
        .rule(When::always(), Reply::text("I wait for it."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Count the tests");
    home.wait_for(|requests| requests.len() == 3).await;
    drop(turn);
    assert_eq!(editor.close().await.code(), Some(0));
    let editor = Editor::start(&home).await;
    editor.load(&session, &home).await.expect("loaded");
    let running = PlanEntryStatus::InProgress;
    editor
        .until_planned(&session, "background: Count", running)
        .await;
    if is_closed {
        let close = CloseSessionRequest::new(session.clone());
        let closed = editor.agent.send_request(close).block_task().await;
        closed.expect("closed");
    } else {
        let cancel = CancelNotification::new(session.clone());
        editor.agent.send_notification(cancel).expect("sent");
    }
    until("the child's request is given up", || {
        home.model.in_flight() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_goes_on_when_the_editor_is_killed_and_the_next_one_hears_of_it() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().first("Child:"),
            Reply::text("There are nine.").behind(&gate),
        )
        .rule(When::turn(0), launch())
        .rule(When::turn(1), Reply::text("I wait for it."))
        .rule(When::always(), Reply::text("Nine it is."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Count the tests");
    home.wait_for(|requests| requests.len() == 3).await;
    until("it waits", || editor.said(&session) == "I wait for it.").await;
    drop(turn);
    editor.kill().await;
    let editor = Editor::start(&home).await;
    editor.load(&session, &home).await.expect("loaded");
    let running = PlanEntryStatus::InProgress;
    editor
        .until_planned(&session, "background: Count", running)
        .await;
    gate.open();
    let done = PlanEntryStatus::Completed;
    editor
        .until_planned(&session, "background: Count", done)
        .await;
    until("its call has ended", || {
        is_done(&editor.call(&session, "asyncagents_task"))
    })
    .await;
    editor.prompt(&session, "And?").await;
    assert!(
        home.newest().contains("There are nine."),
        "{}",
        home.newest()
    );
}
