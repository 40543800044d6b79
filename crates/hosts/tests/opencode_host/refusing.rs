//! What goes wrong, and who is told what about it.

use asyncagents_core::{
    id::SessionId,
    lifecycle::Standing,
    port::{Delivery, Host, HostError},
};
use asyncagents_hosts::Method;

use crate::world::{World, as_messages, inheritance, new_session, notice, plan, prompt, task};

#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_knows_is_refused_before_anything_is_done() {
    for (version, why, what) in [
        ("1.17.9", "1.17.9 is too old", "update OpenCode"),
        (
            "2.0.0",
            "2.0.0 is not the OpenCode 1 that it was",
            "launch it anew",
        ),
        ("", "does not say its version", "1.18"),
    ] {
        let world = World::new();
        let parent = world.opencode.parent();
        world.opencode.is_version(version);
        let refusals = [
            world.host.agents().await.err(),
            world.host.create(new_session(&parent)).await.err(),
            world
                .host
                .branch(new_session(&parent), &as_messages(None, &[]))
                .await
                .err(),
            world.host.folder_of(&parent).await.err(),
        ];
        for refusal in &refusals {
            assert!(
                matches!(refusal, Some(HostError::Refused(_))),
                "{refusal:?}"
            );
        }
        // A notice waits for another version.
        let waits = world.host.deliver(&parent, notice()).await.err();
        assert!(
            matches!(waits, Some(HostError::Unreachable(_))),
            "{waits:?}"
        );
        for refusal in refusals.into_iter().chain([waits]) {
            let refusal = refusal.expect("a refusal");
            let said = refusal.to_string();
            assert!(said.contains(why) && said.contains(what), "{said}");
            assert!(said.contains("1.18 and later, below 3.0"), "{said}");
        }
        let asked = world.opencode.asked();
        let only_that = asked.iter().all(|asked| asked == "GET /global/health");
        assert!(only_that, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn something_else_at_the_address_is_no_opencode() {
    for (status, body) in [(404, "not found"), (200, "<html>Hello</html>"), (200, "[]")] {
        let world = World::new();
        let path = "/global/health";
        world.opencode.fails(Method::Get, path, status, body);
        let refusal = world.host.agents().await.err();
        let Some(HostError::Refused(why)) = refusal else {
            panic!("{refusal:?}");
        };
        assert!(why.contains("this is no OpenCode"), "{why}");
        assert!(why.contains("1.18 and later"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_version_is_asked_for_once() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.is_silent(Method::Get, "/global/health");
    let error = world.host.agents().await.unwrap_err();
    assert!(matches!(error, HostError::Unreachable(_)), "{error:?}");
    for _ in 0..3 {
        world.host.agents().await.unwrap();
        world.host.create(new_session(&parent)).await.unwrap();
    }
    let asked = world.opencode.asked().into_iter();
    let checks = asked.filter(|asked| asked == "GET /global/health");
    assert_eq!(checks.count(), 2, "once in vain");
}

/// Names of other things, and what somebody might try.
const NO_SESSIONS: &[&str] = &[
    "terminal-1",
    "task_00000007",
    "",
    "ses",
    "ses_",
    "ses_1/../../global/dispose",
    "ses_1?directory=/",
    "ses_1%2f",
    "ses_é",
    "session",
];

#[tokio::test(start_paused = true)]
async fn what_is_no_session_is_never_sent_to_opencode() {
    for name in NO_SESSIONS {
        let world = World::new();
        let host = &world.host;
        let id: SessionId = (*name).into();
        let no_session = || HostError::NoSession(id.clone());
        assert_eq!(host.exists(&id).await, Ok(false), "{name}");
        assert_eq!(host.abort(&id).await, Ok(()), "{name}");
        assert_eq!(host.delete(&id).await, Ok(()), "{name}");
        let told = host.deliver(&id, notice()).await;
        assert_eq!(told, Ok(Delivery::Gone), "{name}");
        let prompted = host.prompt(&id, prompt()).await;
        assert_eq!(prompted, Err(no_session()), "{name}");
        let inspection = host.inspect(&id, &task().prompt(0)).await.unwrap();
        assert_eq!(inspection.standing, Standing::Gone, "{name}");
        let recent = host.recent(&id, &plan(None)).await;
        assert!(matches!(recent, Err(HostError::Refused(_))), "{name}");
        let branched = host.branch(new_session(&id), &as_messages(None, &[])).await;
        assert_eq!(branched, Ok(None), "{name}");
        let folder = host.folder_of(&id).await;
        assert_eq!(folder, Err(no_session()), "{name}");
        assert_nothing_is_about_it(&world, name);
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_of_what_is_no_session_is_not_asked_for() {
    for name in NO_SESSIONS {
        let world = World::new();
        let host = &world.host;
        let id: SessionId = (*name).into();
        let no_session = HostError::NoSession(id.clone());
        let confirmed = host.confirm(&id, &notice().id).await;
        assert_eq!(confirmed, Ok(false), "{name}");
        let messages = host.messages(&id).await;
        assert_eq!(messages.err(), Some(no_session.clone()), "{name}");
        let injected = host.inject(&id, inheritance()).await;
        assert_eq!(injected, Err(no_session), "{name}");
        assert_nothing_is_about_it(&world, name);
    }
}

fn assert_nothing_is_about_it(world: &World, name: &str) {
    let known = ["GET /global/health", "GET /session/status", "GET /session"];
    for asked in world.opencode.asked() {
        assert!(known.contains(&asked.as_str()), "{name}: {asked}");
    }
    assert_eq!(world.opencode.changes(), 0, "{name}");
}

/// What comes of asking for messages, if OpenCode answers that.
async fn after(status: u16, body: &str) -> HostError {
    let world = World::new();
    let session = world.opencode.parent();
    world.opencode.fails(Method::Get, "/message", status, body);
    let answer = world.host.messages(&session).await;
    answer.expect_err("an error")
}

#[tokio::test(start_paused = true)]
async fn what_may_be_done_later_is_not_refused() {
    let busy = r#"{"name":"SessionBusyError","data":{"message":"Session is busy"}}"#;
    for status in [409, 429, 500, 502, 503] {
        let error = after(status, busy).await;
        assert!(matches!(error, HostError::Unreachable(_)), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(&status.to_string()), "{said}");
        assert!(said.contains("Session is busy"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_never_be_done_is_refused_with_what_opencode_said() {
    for (status, body, said) in [
        (
            400,
            r#"{"name":"BadRequest","data":{"message":"bad cursor"}}"#,
            "bad cursor",
        ),
        (401, "", "401"),
        (403, r#"{"message":"not yours"}"#, "not yours"),
        (422, "plain words", "plain words"),
    ] {
        let error = after(status, body).await;
        assert!(matches!(error, HostError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_html_is_not_quoted_to_its_end() {
    let page = format!("<html>{}", "ä".repeat(100_000));
    let error = after(502, &page).await.to_string();
    assert!(error.chars().count() < 400, "{}", error.len());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_is_refused() {
    for body in ["<html>", "", "{}", "7", r#"[{"info":"#] {
        let error = after(200, body).await;
        assert!(matches!(error, HostError::Refused(_)), "{body}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_called_by_its_name() {
    let world = World::new();
    let session = world.opencode.parent();
    world.opencode.remove(&session);
    let error = world.host.messages(&session).await.unwrap_err();
    let said = error.to_string();
    assert_eq!(error, HostError::NoSession(session.clone()));
    assert_eq!(said, format!("the host has no session {session}"));
}

#[tokio::test(start_paused = true)]
async fn nobody_at_the_other_end_is_no_answer() {
    let world = World::new();
    let (session, id) = (world.opencode.parent(), task().prompt(0));
    world.opencode.is_silent(Method::Get, "/session/status");
    let inspection = world.host.inspect(&session, &id).await;
    assert!(
        matches!(inspection, Err(HostError::Unreachable(_))),
        "nobody knows how it stands: {inspection:?}"
    );
    world.opencode.is_silent(Method::Get, session.as_str());
    let exists = world.host.exists(&session).await;
    assert!(matches!(exists, Err(HostError::Unreachable(_))));
    world.opencode.is_silent(Method::Get, "/message");
    let confirmed = world.host.confirm(&session, &notice().id).await;
    assert!(matches!(confirmed, Err(HostError::Unreachable(_))));
}
