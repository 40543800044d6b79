//! Passing on what a child inherits, and setting it to work.

use std::time::Duration;

use asyncagents_core::port::{Host, HostError, Prompt};
use asyncagents_hosts::Method;
use serde_json::json;
use tokio::time::sleep;

use crate::world::{World, for_agent, inheritance, new_session, prompt, task};

#[tokio::test(start_paused = true)]
async fn what_a_child_inherits_is_not_answered_and_not_shown_to_people() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/message");
    assert_eq!(body["noReply"], true);
    let texts = ["You are a background agent.", "<inherited_context>"];
    let ours = json!({"asyncagents": {"post": task().inheritance().as_str()}});
    for (part, text) in body["parts"].as_array().unwrap().iter().zip(texts) {
        assert_eq!(part["type"], "text");
        assert_eq!(part["text"], text);
        assert_eq!(part["synthetic"], true);
        assert_eq!(part["metadata"], ours);
    }
    assert_eq!(body["parts"].as_array().unwrap().len(), texts.len());
    assert!(
        world
            .opencode
            .sent(Method::Post, "/prompt_async")
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_inherits_once() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    let world = world.restarted();
    world.host.inject(&child, inheritance()).await.unwrap();
    assert_eq!(world.opencode.messages_of(&child).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn inheriting_changes_neither_agent_nor_model() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    let after = world.opencode.look_at(&child);
    assert_eq!(after["agent"], "general");
    assert_eq!(after["model"]["id"], "fake-1");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_says_agent_and_model() {
    let world = World::new();
    let model = json!({"id": "fake-1", "providerID": "fake", "variant": "high"});
    let parent = world.opencode.session(json!({"model": model}));
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    assert_eq!(body["agent"], "general");
    let model = json!({"providerID": "fake", "modelID": "fake-1"});
    assert_eq!(body["model"], model);
    assert_eq!(body["variant"], "high");
    let ours = json!({"asyncagents": {"post": task().prompt(0).as_str()}});
    let part = json!({"type": "text", "text": "count the files", "metadata": ours});
    assert_eq!(body["parts"], json!([part]));
}

#[tokio::test(start_paused = true)]
async fn what_opencode_calls_the_default_variant_is_not_asked_for() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    for path in ["/message", "/prompt_async"] {
        let body = world.opencode.sent_once(Method::Post, path);
        assert_eq!(body["model"]["modelID"], "fake-1", "{path}");
        assert_eq!(body.get("variant"), None, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_works_with_its_own_model_to_the_end() {
    let world = World::new();
    let parent = world.opencode.parent();
    let explorer = for_agent("explore", &parent);
    let child = world.host.create(explorer).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    for run in 0..2 {
        let prompt = Prompt {
            id: task().prompt(run),
            agent: "explore".into(),
            ..prompt()
        };
        world.host.prompt(&child, prompt).await.unwrap();
        let after = world.opencode.look_at(&child);
        assert_eq!(after["agent"], "explore");
        assert_eq!(after["model"]["id"], "small-1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_names_the_model_that_was_asked_for() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    let prompt = Prompt {
        model: Some("fake/large-1".into()),
        ..prompt()
    };
    world.host.prompt(&child, prompt).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    let model = json!({"providerID": "fake", "modelID": "large-1"});
    assert_eq!(body["model"], model);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_takes_no_prompt() {
    let world = World::new();
    let child = world.opencode.parent();
    world.opencode.remove(&child);
    let gone = Err(HostError::NoSession(child.clone()));
    assert_eq!(world.host.prompt(&child, prompt()).await, gone);
    assert_eq!(world.host.inject(&child, inheritance()).await, gone);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_at_work_yet_is_stopped_when_it_is() {
    let mut world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    let (host, session) = (world.host.successor(), child.clone());
    let stopping = tokio::spawn(async move { host.abort(&session).await });
    sleep(Duration::from_secs(1)).await;
    assert!(world.opencode.sent(Method::Post, "/abort").is_empty());
    world.hears_busy(&child).await;
    stopping.await.expect("no panic").unwrap();
    world.opencode.sent_once(Method::Post, "/abort");

    // If it never begins, that is not waited for without end.
    world.opencode.forget_requests();
    world.host.prompt(&child, prompt()).await.unwrap();
    world.host.abort(&child).await.unwrap();
    world.opencode.sent_once(Method::Post, "/abort");
}

#[tokio::test(start_paused = true)]
async fn stopping_and_deleting_what_is_gone_is_done_already() {
    let world = World::new();
    let child = world.opencode.parent();
    world.host.abort(&child).await.unwrap();
    world.host.delete(&child).await.unwrap();
    assert!(!world.host.exists(&child).await.unwrap());
    world.host.abort(&child).await.unwrap();
    world.host.delete(&child).await.unwrap();
}
