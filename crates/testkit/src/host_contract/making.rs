//! Sessions are made.

use asyncagents_core::{
    fork::{Mode, Plan},
    port::NewSession,
    transcript::Role,
};

use super::{
    scene::{Scene, task, texts, times},
    script::{COUNT, COUNTED, MEASURE},
};

pub(super) async fn a_task_can_be_given_to_each_agent_that_is_named(scene: Scene) {
    let agents = scene.host.agents().await.expect("agents");
    assert!(agents.contains(&"general".into()), "{agents:?}");
    for (number, agent) in agents.into_iter().enumerate() {
        let new = NewSession {
            agent,
            ..scene.new_session(&task(number as u128))
        };
        let made = scene.host.create(new).await.expect("a session");
        assert_eq!(scene.host.exists(&made).await, Ok(true));
    }
}

pub(super) async fn a_task_has_one_session(mut scene: Scene) {
    let task = task(1);
    let made = scene.child(&task).await;
    assert_eq!(scene.child(&task).await, made);
    scene.restart().await;
    assert_eq!(scene.child(&task).await, made);
    assert_eq!(scene.host.exists(&made).await, Ok(true));
}

pub(super) async fn two_tasks_have_two_sessions(scene: Scene) {
    let (one, other) = (scene.child(&task(1)).await, scene.child(&task(2)).await);
    assert_ne!(one, other);
    assert!(one != scene.parent && other != scene.parent);
    assert_eq!(texts(&scene.messages(&one).await, Role::User), [""; 0]);
}

pub(super) async fn a_branch_begins_with_the_messages_of_the_parent(scene: Scene) {
    let task = task(1);
    let plan = scene.site.abilities().branches;
    let asked = plan.clone().unwrap_or(Plan {
        mode: Mode::Messages,
        ..Plan::default()
    });
    let before = scene.messages(&scene.parent).await;
    let new = scene.new_session(&task);
    let branched = scene.host.branch(new.clone(), &asked).await;
    let branched = branched.expect("it is answered");
    assert_eq!(branched.is_some(), plan.is_some());
    let Some(session) = branched else { return };
    let again = scene.host.branch(new, &asked).await;
    assert_eq!(again, Ok(Some(session.clone())), "one task, one session");
    let prompt = scene.prompt(&session, (&task, 0), MEASURE).await;
    scene.ended(&session, &prompt).await;
    let shown = scene.site.shown(&session).await;
    for words in [COUNT, COUNTED, MEASURE] {
        assert_eq!(times(&shown, words), 1, "{words}: {shown}");
    }
    assert_eq!(scene.messages(&scene.parent).await, before);
}
