//! Telling a parent about its tasks.

use asyncagents_core::{
    id::SessionId,
    port::{Delivery, Host, HostError},
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::{
    message::{agent, text, user},
    world::{World, notice, task},
};

/// In seconds.
const DAY: i64 = 24 * 60 * 60;

/// A session with agent and model of its own choice.
fn planner(world: &World) -> SessionId {
    world.opencode.session(json!({
        "agent": "plan",
        "model": {"id": "fake-2", "providerID": "fake", "variant": "high"},
    }))
}

#[tokio::test(start_paused = true)]
async fn a_notice_sets_the_parent_to_work_and_leaves_it_as_it_is() {
    let world = World::new();
    let parent = planner(&world);
    let before = world.opencode.look_at(&parent);
    let told = world.host.deliver(&parent, notice()).await;
    assert_eq!(told, Ok(Delivery::Taken));
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    assert_eq!(body["agent"], "plan");
    let model = json!({"providerID": "fake", "modelID": "fake-2"});
    assert_eq!(body["model"], model);
    assert_eq!(body["variant"], "high");
    let after = world.opencode.look_at(&parent);
    assert_eq!(after["agent"], before["agent"]);
    assert_eq!(after["model"], before["model"]);
}

#[tokio::test(start_paused = true)]
async fn a_notice_has_a_part_for_people_and_a_part_for_the_model() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.host.deliver(&parent, notice()).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    let ours = json!({"asyncagents": {"post": task().notice(0).as_str()}});
    let visible = json!({"type": "text", "text": "Agent finished.", "metadata": ours});
    let hidden = json!({
        "type": "text", "text": "Use asyncagents_output.", "metadata": ours, "synthetic": true,
    });
    assert_eq!(body["parts"], json!([visible, hidden]));
    assert_eq!(body.get("variant"), None, "`default` is none");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_nobody_works_in_is_told_without_being_set_to_work() {
    let world = World::letting_sleep();
    let parent = planner(&world);
    let told = world.host.deliver(&parent, notice()).await;
    assert_eq!(told, Ok(Delivery::Taken));
    let body = world.opencode.sent_once(Method::Post, "/message");
    assert_eq!(body["noReply"], true);
    assert!(
        world
            .opencode
            .sent(Method::Post, "/prompt_async")
            .is_empty()
    );
    let after = world.opencode.look_at(&parent);
    assert_eq!(after["agent"], "plan");
    assert_eq!(after["model"]["id"], "fake-2");
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(true));
}

/// How a session was told: whether it was set to work by it.
async fn sets_to_work(world: &World, parent: &SessionId) -> bool {
    world.opencode.forget_requests();
    let told = world.host.deliver(parent, notice()).await;
    assert_eq!(told, Ok(Delivery::Taken));
    let [stored, prompted] =
        ["/message", "/prompt_async"].map(|path| world.opencode.sent(Method::Post, path).len());
    assert_eq!(stored + prompted, 1);
    prompted == 1
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_somebody_works_in_is_set_to_work() {
    let mut world = World::letting_sleep();
    let [by_event, by_call, by_nobody] = [(); 3].map(|()| planner(&world));
    world.hears_busy(&by_event).await;
    world.hears_idle(&by_event).await;
    world.host.wake(&by_call);
    assert!(sets_to_work(&world, &by_event).await);
    assert!(sets_to_work(&world, &by_call).await);
    assert!(!sets_to_work(&world, &by_nobody).await);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_somebody_worked_in_before_we_came_is_set_to_work() {
    let world = World::letting_sleep();
    let parent = planner(&world);
    world.opencode.add(&parent, user("go on"));
    world.opencode.add(&parent, agent(vec![text("I go on.")]));
    let world = world.restarted();
    assert!(sets_to_work(&world, &parent).await);
}

#[tokio::test(start_paused = true)]
async fn whoever_opens_opencode_the_next_day_does_not_pay_for_it() {
    let world = World::letting_sleep();
    let parent = planner(&world);
    world.opencode.add(&parent, user("go on"));
    world.opencode.add(&parent, agent(vec![text("I go on.")]));
    assert!(sets_to_work(&world, &parent).await);
    let world = world.another_day();
    assert!(!sets_to_work(&world, &parent).await);
    // What we have told it since is nobody's work.
    let world = world.restarted();
    assert!(!sets_to_work(&world, &parent).await);
    world.opencode.add(&parent, user("what was that?"));
    assert!(sets_to_work(&world, &parent).await);
}

#[tokio::test(start_paused = true)]
async fn whether_a_parent_sleeps_is_seen_at_the_end_of_its_history() {
    let world = World::new();
    let parent = planner(&world);
    for _ in 0..20_000 {
        world.opencode.add(&parent, user("long ago"));
    }
    let world = world.another_day();
    assert!(!sets_to_work(&world, &parent).await);
    assert!(world.opencode.served() <= 20, "{}", world.opencode.served());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_we_have_set_to_work_ourselves_is_awake() {
    let mut world = World::letting_sleep();
    let (child, _) = world.working_child().await;
    world.opencode.forget_requests();
    world.host.deliver(&child, notice()).await.unwrap();
    world.opencode.sent_once(Method::Post, "/prompt_async");
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_found_where_it_arrived_and_nowhere_else() {
    let world = World::new();
    let [parent, other] = [world.opencode.parent(), world.opencode.parent()];
    let id = notice().id;
    assert_eq!(world.host.confirm(&parent, &id).await, Ok(false));
    world.host.deliver(&parent, notice()).await.unwrap();
    for _ in 0..150 {
        world.opencode.add(&parent, agent(vec![text("go on")]));
    }
    assert_eq!(world.host.confirm(&parent, &id).await, Ok(true));
    assert_eq!(world.host.confirm(&other, &id).await, Ok(false));
    let later = task().notice(1);
    assert_eq!(world.host.confirm(&parent, &later).await, Ok(false));
    let world = world.restarted();
    assert_eq!(world.host.confirm(&parent, &id).await, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_which_we_know_when_it_was_sent_is_not_looked_for_before() {
    let world = World::new();
    let parent = world.opencode.parent();
    for _ in 0..20_000 {
        world.opencode.add(&parent, user("long ago"));
    }
    world.clock.set_forward(DAY);
    // It was taken, and never came.
    world.opencode.fails(Method::Post, "/prompt_async", 204, "");
    world.host.deliver(&parent, notice()).await.unwrap();
    world.opencode.forget_requests();
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(false));
    assert_eq!(world.opencode.requests().len(), 1);
    assert!(world.opencode.served() <= 20, "{}", world.opencode.served());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_some_minutes_off_hides_no_notice() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.host.deliver(&parent, notice()).await.unwrap();
    for _ in 0..30 {
        // OpenCode's clock was behind ours, or ours was set back.
        let mut behind = user("meanwhile");
        behind["info"]["time"] = json!({"created": 1_800_000_000_000_i64 - 5 * 60 * 1000});
        world.opencode.add(&parent, behind);
    }
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn the_search_for_a_notice_of_another_process_ends_somewhere() {
    let world = World::new();
    let parent = world.opencode.parent();
    for _ in 0..20_000 {
        world.opencode.add(&parent, user("long ago"));
    }
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(false));
    assert!(
        world.opencode.served() <= 2_400,
        "{}",
        world.opencode.served()
    );
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_gone_is_told_nothing() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.remove(&parent);
    let told = world.host.deliver(&parent, notice()).await;
    assert_eq!(told, Ok(Delivery::Gone));
    assert_eq!(world.opencode.changes(), 0);
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_could_not_be_sent_is_not_taken() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.is_silent(Method::Post, "/prompt_async");
    let told = world.host.deliver(&parent, notice()).await;
    assert!(matches!(told, Err(HostError::Unreachable(_))), "{told:?}");
    world.host.deliver(&parent, notice()).await.unwrap();
    assert_eq!(world.opencode.messages_of(&parent).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_notice_whose_answer_was_lost_is_found() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.loses_answer(Method::Post, "/prompt_async");
    let told = world.host.deliver(&parent, notice()).await;
    assert!(matches!(told, Err(HostError::Unreachable(_))), "{told:?}");
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert_eq!(confirmed, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_is_refused_today_may_be_taken_tomorrow() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.fails(Method::Post, "/prompt_async", 401, "");
    let told = world.host.deliver(&parent, notice()).await;
    assert!(matches!(told, Err(HostError::Unreachable(_))), "{told:?}");
    world.opencode.fails(Method::Get, "/message", 401, "");
    let confirmed = world.host.confirm(&parent, &notice().id).await;
    assert!(
        matches!(confirmed, Err(HostError::Unreachable(_))),
        "{confirmed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_no_more_is_not_asked_for() {
    let world = World::new();
    let parent = world.opencode.session(json!({
        "agent": "of yesterday", "model": {"id": "fake-2", "providerID": "fake"},
    }));
    world.host.deliver(&parent, notice()).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    assert_eq!(body.get("agent"), None);
    assert_eq!(body["model"]["modelID"], "fake-2");
}

#[tokio::test(start_paused = true)]
async fn a_toast_says_who_shows_it() {
    let world = World::new();
    world.host.toast("a task ended", "info").await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/tui/show-toast");
    assert_eq!(body["title"], "asyncagents");
    assert_eq!(body["message"], "a task ended");
    assert_eq!(body["variant"], Value::from("info"));
}
