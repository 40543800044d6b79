//! A turn that the user stops.

use agent_client_protocol::v1::schema::{CancelNotification, StopReason, ToolCallStatus};
use asyncagents_scripted_model::{Fault, Gate, Reply, Script, When};
use serde_json::json;

use crate::{
    editor::{Editor, ended},
    home::{Home, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_stopped_and_the_session_goes_on() {
    let command = "echo begun > begun; sleep 300; echo late > late";
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": command})),
        )
        .rule(When::always(), Reply::text("I was stopped."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Take your time");
    until("the command runs", || home.read("begun") == "begun\n").await;
    let waiting = editor.begin(&session, "Never mind");
    editor.session(&home).await;
    let cancel = CancelNotification::new(session.clone());
    editor.agent.send_notification(cancel).expect("sent");
    for prompt in [turn, waiting] {
        let answer = ended(prompt).await.expect("an answer");
        assert_eq!(answer.stop_reason, StopReason::Cancelled);
    }
    assert_eq!(editor.call(&session, "bash").status, ToolCallStatus::Failed);
    let answer = editor.prompt(&session, "What happened?").await;
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(editor.said(&session), "I was stopped.");
    assert!(!home.newest().contains("Never mind"), "{}", home.newest());
    assert_eq!(home.read("late"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn background_tasks_are_stopped_too() {
    let launch = json!({"description": "Long one", "prompt": "Child: go", "agent": "general"});
    let script = Script::new()
        .rule(When::always().first("Child:"), Reply::fault(Fault::Hang))
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(When::always(), Reply::text("I wait."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Delegate");
    home.wait_for(|requests| requests.len() == 3).await;
    let cancel = CancelNotification::new(session.clone());
    editor.agent.send_notification(cancel).expect("sent");
    let answer = ended(turn).await.expect("an answer");
    assert_eq!(answer.stop_reason, StopReason::Cancelled);
    let call = editor.call(&session, "asyncagents_task");
    assert_eq!(call.status, ToolCallStatus::Failed, "{call:?}");
    let plan = editor.plan(&session);
    assert!(
        plan.contains_key("background: Long one (cancelled)"),
        "{plan:?}"
    );
    until("the child's request is given up", || {
        home.model.in_flight() == 0
    })
    .await;
}

/// The protocol's general way to give up a request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_stops_the_turn() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(When::always().last("Hello"), Reply::text("Hello."))
        .rule(When::always(), Reply::text("Late.").behind(&gate));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    let turn = editor.begin(&session, "Wait");
    home.wait_for(|requests| requests.len() == 1).await;
    turn.abort();
    until("the model's answer is given up", || {
        home.model.in_flight() == 0
    })
    .await;
    editor.prompt(&session, "Hello").await;
    assert_eq!(editor.said(&session), "Hello.");
}
