//! What a child asks is answered.

use asyncagents_core::{
    id::SessionId,
    port::{Host, HostError},
    question::{Answered, Reply},
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::world::World;

fn permission(session: &str) -> Value {
    json!({"id": "per_1", "sessionID": session, "permission": "bash",
        "patterns": ["make"], "metadata": {}, "always": ["make *"]})
}

fn form(session: &str) -> Value {
    json!({"id": "que_1", "sessionID": session, "questions": [
        {"question": "Which one?", "header": "Colour", "custom": false,
            "options": [{"label": "Red", "description": ""}, {"label": "Blue", "description": ""}]},
        {"question": "And why?", "header": "Why", "options": []},
    ]})
}

fn rejected(text: Option<&str>) -> Reply {
    let text = text.map(str::to_owned);
    Reply::Reject { text }
}

fn values(values: &[(&str, &str)]) -> Reply {
    let given = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
    Reply::Values(given.collect())
}

#[tokio::test(start_paused = true)]
async fn a_permission_is_answered_once() {
    for (reply, sent) in [
        (Reply::Once, json!({"reply": "once"})),
        (Reply::Always, json!({"reply": "always"})),
        (rejected(None), json!({"reply": "reject"})),
        (
            rejected(Some("use ninja")),
            json!({"reply": "reject", "message": "use ninja"}),
        ),
    ] {
        let world = World::new();
        let child = SessionId::from("ses_child");
        world.opencode.asks(permission("ses_child"));
        let answered = world.host.answer(&child, "per_1", reply.clone()).await;
        assert_eq!(answered, Ok(Answered::Taken));
        let path = "/permission/per_1/reply";
        assert_eq!(world.opencode.sent_once(Method::Post, path), sent);
        let again = world.host.answer(&child, "per_1", reply).await;
        assert_eq!(again, Ok(Answered::NotAsked));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_in_the_order_of_its_fields() {
    for (reply, path, sent) in [
        (
            values(&[("Why", "the sea"), ("Colour", "Red")]),
            "/question/que_1/reply",
            json!({"answers": [["Red"], ["the sea"]]}),
        ),
        (
            values(&[("Why", "so")]),
            "/question/que_1/reply",
            json!({"answers": [[], ["so"]]}),
        ),
        (
            rejected(Some("later")),
            "/question/que_1/reply",
            json!({"answers": [[], ["later"]]}),
        ),
        (rejected(None), "/question/que_1/reject", json!({})),
    ] {
        let world = World::new();
        world.opencode.asks(form("ses_child"));
        let answered = world.host.answer(&"ses_child".into(), "que_1", reply).await;
        assert_eq!(answered, Ok(Answered::Taken));
        assert_eq!(world.opencode.sent_once(Method::Post, path), sent);
    }
}

/// The dialog was closed between the question and the answer.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_not_taken() {
    let world = World::new();
    world.opencode.asks(permission("ses_child"));
    let gone = r#"{"_tag": "PermissionNotFoundError"}"#;
    world
        .opencode
        .fails(Method::Post, "/permission/per_1/reply", 404, gone);
    let late = world
        .host
        .answer(&"ses_child".into(), "per_1", Reply::Once)
        .await;
    assert_eq!(late, Ok(Answered::NotAsked));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_wrong_kind_is_refused() {
    let child = "ses_child";
    for (asked, id, reply, why) in [
        (
            permission(child),
            "per_1",
            values(&[("Why", "so")]),
            "permission",
        ),
        (form(child), "que_1", Reply::Once, "values"),
        (form(child), "que_1", Reply::Always, "values"),
        (
            form(child),
            "que_1",
            values(&[("Size", "9")]),
            "asked is: Colour, Why",
        ),
    ] {
        let world = World::new();
        world.opencode.asks(asked);
        match world.host.answer(&child.into(), id, reply).await {
            Err(HostError::Refused(text)) => assert!(text.contains(why), "{text}"),
            other => panic!("{other:?}"),
        }
        assert!(world.opencode.sent(Method::Post, "/reply").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_question_of_another_session_is_not_answered() {
    let world = World::new();
    world.opencode.asks(permission("ses_other"));
    let answered = world
        .host
        .answer(&"ses_child".into(), "per_1", Reply::Once)
        .await;
    assert_eq!(answered, Ok(Answered::NotAsked));
    assert!(world.opencode.sent(Method::Post, "/reply").is_empty());
}
