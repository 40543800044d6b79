//! Conversations are read.

use asyncagents_core::{
    fork::Plan,
    transcript::{Outcome, Part, Role},
};

use super::{
    scene::{Scene, inheritance, task, texts},
    script::{COUNT, COUNTED, HAS_READ, MEASURE, MEASURED, READ},
};

pub(super) async fn messages_are_whole_and_oldest_first(scene: Scene) {
    let task = task(1);
    let session = scene.child(&task).await;
    let inheritance = inheritance(&task);
    let injected = scene.host.inject(&session, inheritance.clone()).await;
    assert_eq!(injected, Ok(()));
    for (run, text) in [COUNT, MEASURE].into_iter().enumerate() {
        let prompt = scene.prompt(&session, (&task, run as u32), text).await;
        scene.ended(&session, &prompt).await;
    }
    let messages = scene.messages(&session).await;
    let asked = texts(&messages, Role::User);
    let [inherited, rest @ ..] = &asked[..] else {
        panic!("nothing is inherited");
    };
    assert!(inherited.contains(&inheritance.preamble), "{inherited}");
    assert!(inherited.contains(&inheritance.context), "{inherited}");
    assert_eq!(rest, [COUNT, MEASURE]);
    assert_eq!(texts(&messages, Role::Assistant), [COUNTED, MEASURED]);
    let roles: Vec<Role> = messages.messages().iter().map(|one| one.role).collect();
    let (user, agent) = (Role::User, Role::Assistant);
    assert_eq!(roles, [user, user, agent, user, agent]);
}

pub(super) async fn messages_show_tool_calls(scene: Scene) {
    let (session, _) = scene.answered(1, READ).await;
    let messages = scene.messages(&session).await;
    let parts = messages.messages().iter().flat_map(|one| &one.parts);
    let calls: Vec<_> = parts
        .filter_map(|part| match part {
            Part::Tool(call) => Some(call),
            Part::Text(_) => None,
        })
        .collect();
    let [call] = calls[..] else {
        panic!("one call: {calls:?}");
    };
    assert_eq!(call.name.as_str(), scene.site.tool());
    assert!(matches!(call.outcome, Outcome::Completed(_)), "{call:?}");
    assert_eq!(texts(&messages, Role::Assistant), [HAS_READ]);
}

pub(super) async fn what_is_recent_is_the_end_of_all_messages(scene: Scene) {
    let (session, _) = scene.answered(1, READ).await;
    let all = scene.messages(&session).await;
    let recent = scene.host.recent(&session, &Plan::default()).await;
    let recent = recent.expect("its end");
    assert!(!recent.unread, "a short conversation is read whole");
    assert_eq!(recent.transcript, all);
}
