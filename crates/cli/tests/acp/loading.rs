//! Sessions from earlier: listed, loaded, resumed, forked, closed.

use std::collections::BTreeSet;

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ContentChunk, ForkSessionRequest, ListSessionsRequest,
    ResumeSessionRequest, SessionId, SessionUpdate, StopReason, ToolCallStatus,
};
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use serde_json::json;

use crate::{
    editor::{Editor, content_of, text_of},
    home::Home,
};

/// What the user has said, as a session tells it.
fn asked(editor: &Editor, session: &SessionId) -> Vec<String> {
    let updates = editor.updates(session).into_iter();
    let texts = updates.filter_map(|update| match update {
        SessionUpdate::UserMessageChunk(chunk) => Some(text_of(&chunk.content)),
        _ => None,
    });
    texts.collect()
}

fn chunk_of(update: &mut SessionUpdate) -> Option<&mut ContentChunk> {
    match update {
        SessionUpdate::UserMessageChunk(chunk)
        | SessionUpdate::AgentMessageChunk(chunk)
        | SessionUpdate::AgentThoughtChunk(chunk) => Some(chunk),
        _ => None,
    }
}

fn names_of_messages(updates: &[SessionUpdate]) -> BTreeSet<String> {
    let names = updates.iter().cloned().filter_map(|mut update| {
        let name = chunk_of(&mut update)?.message_id.take();
        Some(name.expect("a name").0.to_string())
    });
    names.collect()
}

fn without_name(mut update: SessionUpdate) -> SessionUpdate {
    if let Some(chunk) = chunk_of(&mut update) {
        chunk.message_id = None;
    }
    update
}

async fn listed(editor: &Editor, home: &Home) -> Vec<(SessionId, Option<String>)> {
    let request = ListSessionsRequest::new().cwd(home.work());
    let listed = editor.agent.send_request(request).block_task().await;
    let sessions = listed.expect("a list").sessions.into_iter();
    sessions.map(|info| (info.session_id, info.title)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_from_its_beginning_after_the_program_was_killed() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("I look.").and_call("read", json!({"path": "a.txt"})),
        )
        .rule(When::turn(1), Reply::text("It says hello."))
        .rule(When::turn(2).times(1), Reply::fault(Fault::Hang))
        .rule(When::always(), Reply::text("As I said, hello."));
    let home = Home::new(script).await;
    home.write("a.txt", "hello\n");
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Read a.txt\nplease").await;
    let turn = editor.begin(&session, "Again?");
    home.wait_for(|requests| requests.len() == 3).await;
    drop(turn);
    editor.kill().await;

    let editor = Editor::start(&home).await;
    let title = Some("Read a.txt".to_owned());
    assert_eq!(listed(&editor, &home).await, [(session.clone(), title)]);
    editor.load(&session, &home).await.expect("loaded");
    assert_eq!(asked(&editor, &session), ["Read a.txt\nplease", "Again?"]);
    assert_eq!(editor.said(&session), "I look.It says hello.");
    let call = editor.call(&session, "read");
    assert_eq!(call.status, ToolCallStatus::Completed);
    assert!(content_of(&call).contains("hello"), "{call:?}");
    let before = editor.updates(&session);
    editor.load(&session, &home).await.expect("loaded again");
    let again = editor.updates(&session).split_off(before.len());
    // The editor may keep what it has by the names of messages.
    let names = |updates: &[SessionUpdate]| names_of_messages(updates);
    assert!(names(&before).is_disjoint(&names(&again)), "{again:?}");
    assert_eq!(names(&before).len(), 4, "{before:?}");
    let nameless = |updates: Vec<SessionUpdate>| -> Vec<SessionUpdate> {
        updates.into_iter().map(without_name).collect()
    };
    assert_eq!(nameless(again), nameless(before), "the same is told again");
    let editor = Editor::start(&home).await;
    editor
        .load(&session, &home)
        .await
        .expect("loaded in another window");
    let answer = editor.prompt(&session, "And now?").await;
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    let sent = home.newest();
    assert!(
        sent.contains("It says hello.") && sent.contains("And now?"),
        "{sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_the_history_and_a_future_of_its_own() {
    let script = Script::new()
        .rule(When::always().last("Begin"), Reply::text("Begun."))
        .rule(When::always().last("Left"), Reply::text("On the left."))
        .rule(When::always().last("Right"), Reply::text("On the right."));
    let home = Home::new(script).await;
    let editor = Editor::start(&home).await;
    let left = editor.session(&home).await;
    editor.prompt(&left, "Begin").await;
    let fork = ForkSessionRequest::new(left.clone(), home.work());
    let forked = editor.agent.send_request(fork).block_task().await;
    let right = forked.expect("forked").session_id;
    assert_ne!(left, right);
    editor.prompt(&left, "Left").await;
    editor.prompt(&right, "Right").await;
    let sent = home.newest();
    assert!(sent.contains("Begin") && sent.contains("Begun."), "{sent}");
    assert!(!sent.contains("Left"), "{sent}");
    assert_eq!(editor.said(&right), "On the right.");
    editor.kill().await;
    let editor = Editor::start(&home).await;
    editor.load(&right, &home).await.expect("loaded");
    assert_eq!(asked(&editor, &right), ["Begin", "Right"]);
    assert_eq!(editor.said(&right), "Begun.On the right.");
    assert_eq!(listed(&editor, &home).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_without_being_told_and_closed() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Yes."))).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "First").await;
    assert_eq!(editor.close().await.code(), Some(0));
    let editor = Editor::start(&home).await;
    let resume = ResumeSessionRequest::new(session.clone(), home.work());
    let resumed = editor.agent.send_request(resume).block_task().await;
    resumed.expect("resumed");
    assert_eq!(asked(&editor, &session), Vec::<String>::new());
    editor.prompt(&session, "Second").await;
    assert!(home.newest().contains("First"), "{}", home.newest());
    let close = CloseSessionRequest::new(session.clone());
    let closed = editor.agent.send_request(close).block_task().await;
    closed.expect("closed");
    let gone = editor.begin(&session, "Third").await.expect("no panic");
    let why = gone.expect_err("it is closed").message;
    assert!(why.contains("is not open here"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_which_nothing_was_said_is_not_kept() {
    let home = Home::new(Script::new()).await;
    let editor = Editor::start(&home).await;
    let empty = editor.session(&home).await;
    assert_eq!(listed(&editor, &home).await, []);
    editor.load(&empty, &home).await.expect("it is open");
    editor.kill().await;
    let editor = Editor::start(&home).await;
    let gone = editor.load(&empty, &home).await;
    let why = gone.expect_err("it is gone").message;
    assert!(why.contains("there is no session"), "{why}");
}
