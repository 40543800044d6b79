//! Questions whether a call may be run.

use agent_client_protocol::v1::schema::{
    CancelNotification, Diff, PermissionOptionKind, RequestPermissionOutcome, SessionUpdate,
    StopReason, ToolCallContent, ToolCallStatus,
};
use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::{
    editor::{Editor, ended, is_done},
    home::Home,
};

fn writes() -> Script {
    let write = json!({"path": "a.txt", "content": "written"});
    Script::new()
        .rule(
            When::turn(0),
            Reply::text("I write it.").and_call("write", write),
        )
        .rule(When::always(), Reply::text("Ok."))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_is_done_and_was_shown_before() {
    let home = Home::new(writes()).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    let question = editor.question().await;
    assert_eq!(home.read("a.txt"), "", "nothing is done before the answer");
    assert_eq!(
        editor.said(&session),
        "I write it.",
        "what came before is shown"
    );
    let asked = &question.request.tool_call;
    assert_eq!(asked.fields.title.as_deref(), Some("write a.txt"));
    let diff = ToolCallContent::Diff(Diff::new(home.path("a.txt"), "written"));
    assert_eq!(asked.fields.content, Some(vec![diff]));
    let pending = editor.call(&session, "write");
    assert_eq!(pending.tool_call_id, asked.tool_call_id);
    assert_eq!(pending.status, ToolCallStatus::Pending);
    let options = question.request.options.iter();
    let names: Vec<&str> = options.map(|option| option.name.as_str()).collect();
    assert_eq!(
        names,
        ["Allow", "Always allow (every write in this run)", "Reject"]
    );
    question.answer(PermissionOptionKind::AllowOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("a.txt"), "written");
    assert!(is_done(&editor.call(&session, "write")));
}

#[rstest]
#[case::said_no(true)]
#[case::dismissed(false)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_not_done(#[case] says_no: bool) {
    let home = Home::new(writes()).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    let question = editor.question().await;
    if says_no {
        question.answer(PermissionOptionKind::RejectOnce);
    } else {
        question.respond(RequestPermissionOutcome::Cancelled);
    }
    let answer = ended(turn).await.expect("an answer");
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(home.read("a.txt"), "");
    assert_eq!(
        editor.call(&session, "write").status,
        ToolCallStatus::Failed
    );
    assert!(
        home.newest().contains("not permitted: the user"),
        "{}",
        home.newest()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn always_is_not_asked_again() {
    let write = |name: &str| Reply::call("write", json!({"path": name, "content": "x"}));
    let script = Script::new()
        .rule(When::turn(0), write("a.txt"))
        .rule(When::turn(1), write("b.txt"))
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    let question = editor.question().await;
    question.answer(PermissionOptionKind::AllowAlways);
    ended(turn).await.expect("an answer");
    assert!(!editor.has_question());
    assert_eq!(home.read("b.txt"), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_at_a_question_ends_the_turn_and_does_nothing() {
    let home = Home::new(writes()).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    let question = editor.question().await;
    let cancel = CancelNotification::new(session.clone());
    editor.agent.send_notification(cancel).expect("sent");
    // As the protocol wants it of clients.
    question.respond(RequestPermissionOutcome::Cancelled);
    let answer = ended(turn).await.expect("an answer");
    assert_eq!(answer.stop_reason, StopReason::Cancelled);
    assert_eq!(home.read("a.txt"), "");
    assert_eq!(
        home.model.requests().len(),
        1,
        "the model is not asked again"
    );
    let failed = |update: &SessionUpdate| {
        matches!(update, SessionUpdate::ToolCallUpdate(update)
            if update.fields.status == Some(ToolCallStatus::Failed))
    };
    assert!(editor.updates(&session).iter().any(failed));
}

/// To close an editor is not to say no: the model hears only that it was stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_at_which_the_editor_is_closed_was_not_answered() {
    let writes = || Reply::call("write", json!({"path": "a.txt", "content": "written"}));
    let script = Script::new()
        .rule(When::turn(0), writes())
        .rule(When::always().last("Go on"), writes())
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    let question = editor.question().await;
    drop(turn);
    assert_eq!(editor.close().await.code(), Some(0));
    // Not before: that would be an answer.
    drop(question);
    let mut editor = Editor::start_with(home.asking()).await;
    editor.load(&session, &home).await.expect("loaded");
    let turn = editor.begin(&session, "Go on");
    let question = editor.question().await;
    let told = home.newest();
    assert!(told.contains("Stopped: the run was ended"), "{told}");
    question.answer(PermissionOptionKind::AllowOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("a.txt"), "written");
}

/// It would answer its own questions.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_plays_the_editor_is_not_asked() {
    let home = Home::new(writes()).await;
    let mut command = home.asking();
    command.env("CLAUDECODE", "1");
    let mut editor = Editor::start_with(command).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Write").await;
    assert!(!editor.has_question());
    assert_eq!(home.read("a.txt"), "");
    assert!(
        home.newest().contains("nobody can be asked"),
        "{}",
        home.newest()
    );
}
