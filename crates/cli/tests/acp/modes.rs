//! What the agent may do without asking, as the editor sets it.

use agent_client_protocol::v1::schema::{NewSessionRequest, PermissionOptionKind, ToolCallStatus};
use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::json;

use crate::{
    editor::{Editor, ended},
    home::Home,
};

/// In each turn a file is written, named by the prompt.
fn writes() -> Script {
    let write = |name: &str| Reply::call("write", json!({"path": name, "content": name}));
    Script::new()
        .rule(When::always().last("Write a"), write("a"))
        .rule(When::always().last("Write b"), write("b"))
        .rule(When::always().last("Write c"), write("c"))
        .rule(When::always(), Reply::text("Ok."))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_modes_are_offered_and_the_usual_one_is_set() {
    let home = Home::new(Script::new()).await;
    let editor = Editor::start_with(home.asking()).await;
    let request = NewSessionRequest::new(home.work());
    let opened = editor.agent.send_request(request).block_task().await;
    let modes = serde_json::to_value(opened.expect("opened").modes).expect("JSON");
    let shown = serde_json::to_string_pretty(&modes).expect("JSON");
    insta::assert_snapshot!(shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mode_allows_what_it_says() {
    let home = Home::new(writes()).await;
    let mut editor = Editor::start_with(home.asking()).await;
    let session = editor.session(&home).await;
    editor.set_mode(&session, "auto-edit").await.expect("set");
    editor.prompt(&session, "Write a").await;
    assert_eq!(home.read("a"), "a");
    editor.set_mode(&session, "plan").await.expect("set");
    editor.prompt(&session, "Write b").await;
    assert_eq!(home.read("b"), "");
    assert!(
        home.newest().contains("the agent plan may not use write"),
        "{}",
        home.newest()
    );
    let calls = editor.calls(&session);
    assert_eq!(
        calls.last().map(|call| call.status),
        Some(ToolCallStatus::Failed)
    );
    assert!(!editor.has_question());
    editor.set_mode(&session, "ask").await.expect("set");
    let turn = editor.begin(&session, "Write c");
    editor
        .question()
        .await
        .answer(PermissionOptionKind::AllowOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("c"), "c");
    let unknown = editor.set_mode(&session, "reckless").await;
    let why = unknown.expect_err("no such mode").message;
    assert_eq!(
        why,
        "there is no mode `reckless`; there are ask, auto-edit, yolo, plan"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stricter_mode_holds_at_once_in_a_turn_that_runs() {
    let gate = Gate::closed();
    let write = json!({"path": "a", "content": "a"});
    let script = Script::new()
        .rule(When::turn(0), Reply::call("write", write).behind(&gate))
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Write");
    home.wait_for(|requests| requests.len() == 1).await;
    editor.set_mode(&session, "ask").await.expect("set");
    gate.open();
    let question = editor.question().await;
    assert_eq!(home.read("a"), "");
    question.answer(PermissionOptionKind::RejectOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("a"), "");
}

/// What a session launches has the session's mode, and not the process's.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_has_the_mode_of_its_session() {
    let task = json!({"description": "Write", "prompt": "Child: write", "agent": "general"});
    let write = json!({"path": "a", "content": "a"});
    let script = Script::new()
        .rule(When::turn(0).first("Child:"), Reply::call("write", write))
        .rule(When::turn(0), Reply::call("asyncagents_task", task))
        .rule(When::always(), Reply::text("Ok."));
    let home = Home::new(script).await;
    let mut editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.set_mode(&session, "ask").await.expect("set");
    let turn = editor.begin(&session, "Delegate");
    let question = editor.question().await;
    assert_eq!(home.read("a"), "");
    question.answer(PermissionOptionKind::RejectOnce);
    ended(turn).await.expect("an answer");
    assert_eq!(home.read("a"), "");
}
