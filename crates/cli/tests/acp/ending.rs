//! How the program ends.

use asyncagents_scripted_model::{Fault, Gate, Reply, Script, When};
use serde_json::json;

use crate::{
    editor::Editor,
    home::{Home, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_goes_ends_the_program_and_not_its_background_tasks() {
    let task = json!({"description": "Write", "prompt": "Child: write", "agent": "general"});
    let write = json!({"command": "echo late > late"});
    let gate = Gate::closed();
    let write = Reply::call("bash", write).behind(&gate);
    let script = Script::new()
        .rule(When::turn(0).first("Child:"), write)
        .rule(When::always().first("Child:"), Reply::text("Written."))
        .rule(When::turn(0), Reply::call("asyncagents_task", task))
        .rule(When::always(), Reply::fault(Fault::Hang));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Delegate");
    home.wait_for(|requests| requests.len() == 3).await;
    drop(turn);
    assert_eq!(editor.close().await.code(), Some(0));
    gate.open();
    until("the child goes on", || home.read("late") == "late\n").await;
}
