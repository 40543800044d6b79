//! What became of a child's prompt.

use std::collections::BTreeMap;

use asyncagents_core::{
    budget::Cost,
    id::{PostId, SessionId},
    lifecycle::{Next, Standing, after_asking},
    port::{Host, HostError, Prompt, Report, SessionEvent},
    progress::Totals,
    task::Outcome,
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::{
    message::{
        agent, agent_with, call_failed, called, calling, failed, step_finish, text, tokens,
        unfinished, user,
    },
    world::{World, busy, idle, new_session, notice, prompt, task},
};

/// In seconds.
const MINUTE: i64 = 60;

async fn standing(world: &World, child: &SessionId, prompt: &PostId) -> Standing {
    let inspection = world.host.inspect(child, prompt).await;
    inspection.expect("an answer").standing
}

async fn totals(world: &World, child: &SessionId, prompt: &PostId) -> Option<Totals> {
    let inspection = world.host.inspect(child, prompt).await;
    inspection.expect("an answer").totals
}

/// How it stands with a child that said all this and is idle now.
async fn after(messages: Vec<Value>) -> Standing {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    for message in messages {
        world.opencode.add(&child, message);
    }
    world.hears_idle(&child).await;
    standing(&world, &child, &prompt).await
}

fn done(outcome: Outcome, answer: Option<&str>) -> Standing {
    Standing::Done {
        outcome,
        answer: answer.map(str::to_owned),
    }
}

fn failure(why: &str) -> Outcome {
    Outcome::Failed {
        why: why.to_owned(),
    }
}

/// The task fails with this, unless another model goes on.
fn ends(why: &str) -> Next {
    Next::Finish {
        outcome: failure(why),
        answer: None,
    }
}

fn error(name: &str, message: &str) -> Value {
    json!({"name": name, "data": {"message": message}})
}

fn session_error(session: &SessionId, error: Value) -> Value {
    json!({"type": "session.error", "properties": {
        "sessionID": session.as_str(), "error": error,
    }})
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_heard_of_is_at_work_and_nobody_is_asked() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.forget_requests();
    for _ in 0..100 {
        world.clock.set_forward(10 * MINUTE);
        let alive = json!({"type": "message.part.delta", "properties": {
            "sessionID": child.as_str(), "field": "text", "delta": "la",
        }});
        world.hears(alive).await;
        assert_eq!(standing(&world, &child, &prompt).await, Standing::Working);
    }
    assert_eq!(world.opencode.asked(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_its_provider_is_at_work() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.forget_requests();
    let retry = json!({"type": "session.status", "properties": {
        "sessionID": child.as_str(),
        "status": {"type": "retry", "attempt": 2, "message": "overloaded", "next": 1},
    }});
    world.hears(retry).await;
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Working);
    assert!(world.opencode.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_a_long_silence_opencode_is_asked() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files")]));
    world.clock.set_forward(15 * MINUTE);
    let completed = done(Outcome::Completed, Some("12 files"));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn when_events_were_lost_opencode_is_asked() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files")]));
    world.opencode.loses_events();
    assert_eq!(world.next().await, Report::Missed);
    let completed = done(Outcome::Completed, Some("12 files"));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_another_process_is_at_work_when_opencode_says_so() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let world = world.restarted();
    world.opencode.is_busy(&child);
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Working);
    world.opencode.add(&child, agent(vec![text("12 files")]));
    world.opencode.is_idle(&child);
    let completed = done(Outcome::Completed, Some("12 files"));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_has_answered_is_done() {
    let steps = vec![
        agent_with(
            json!({"finish": "tool-calls"}),
            vec![text("I will look."), called("call_1", "bash", "12")],
        ),
        agent(vec![text("There are"), text("12 files.")]),
    ];
    let answer = Some("There are\n\n12 files.");
    assert_eq!(after(steps).await, done(Outcome::Completed, answer));
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_words_is_what_was_said_before() {
    let steps = vec![
        agent_with(
            json!({"finish": "tool-calls"}),
            vec![text("12 files."), called("call_1", "bash", "12")],
        ),
        agent(vec![text(" \n")]),
    ];
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(after(steps).await, completed);
    let silent = after(vec![agent(Vec::new())]).await;
    assert_eq!(silent, done(Outcome::Completed, None));
}

#[tokio::test(start_paused = true)]
async fn what_the_model_does_not_see_is_no_answer() {
    let mut ignored = text("a note of the host");
    ignored["ignored"] = json!(true);
    let mut synthetic = text("put there by a program");
    synthetic["synthetic"] = json!(true);
    let last = agent(vec![ignored, synthetic, text("12 files.")]);
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(after(vec![last]).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_model_failed_failed_with_its_sentence() {
    let overloaded = error("APIError", "the provider is overloaded");
    let steps = vec![
        agent_with(
            json!({"finish": "tool-calls"}),
            vec![text("So far 7."), called("call_1", "bash", "7")],
        ),
        failed(overloaded, Vec::new()),
    ];
    let why = failure("the provider is overloaded");
    assert_eq!(after(steps).await, done(why, Some("So far 7.")));
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_a_sentence_has_a_name() {
    let nameless = json!({"name": "MessageOutputLengthError", "data": {}});
    let standing = after(vec![failed(nameless, Vec::new())]).await;
    assert_eq!(standing, done(failure("MessageOutputLengthError"), None));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_somebody_stopped_is_cancelled() {
    let aborted = error("MessageAbortedError", "Aborted");
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let last = failed(aborted.clone(), vec![text("part one ")]);
    world.opencode.add(&child, last);
    let said = world.hears(session_error(&child, aborted)).await;
    assert_eq!(said, Report::Session(child.clone(), SessionEvent::Idle));
    world.hears_idle(&child).await;
    let cancelled = done(Outcome::Cancelled, Some("part one "));
    assert_eq!(standing(&world, &child, &prompt).await, cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_child_in_the_middle_of_a_message_was_interrupted() {
    let step = unfinished(vec![text("I w")]);
    assert_eq!(after(vec![step]).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_to_go_on_and_did_not_was_interrupted() {
    for finish in ["tool-calls", "unknown"] {
        let parts = vec![text("I will look."), called("call_1", "bash", "12")];
        let step = agent_with(json!({"finish": finish}), parts);
        assert_eq!(after(vec![step]).await, Standing::Interrupted, "{finish}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_user_refused_something_failed_with_that() {
    // OpenCode ends the turn then.
    for why in [
        "The user rejected permission to use this specific tool call.",
        "The user dismissed this question",
    ] {
        let parts = vec![text("May I?"), call_failed("call_1", "bash", why)];
        let step = agent_with(json!({"finish": "tool-calls"}), parts);
        let refused = done(failure(why), Some("May I?"));
        assert_eq!(after(vec![step]).await, refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_on_the_way_is_not_why_a_child_was_interrupted() {
    // OpenCode was killed; the child would have looked elsewhere.
    let parts = vec![
        called("call_1", "bash", "12"),
        call_failed("call_2", "read", "File not found: /a.rs"),
    ];
    let step = agent_with(json!({"finish": "tool-calls"}), parts);
    assert_eq!(after(vec![step]).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn why_a_child_stopped_is_known_before_its_message_says_so() {
    for (said, outcome) in [
        (error("MessageAbortedError", "Aborted"), Outcome::Cancelled),
        (error("APIError", "overloaded"), failure("overloaded")),
    ] {
        let mut world = World::new();
        let (child, prompt) = world.working_child().await;
        world.opencode.add(&child, unfinished(vec![text("I w")]));
        world.hears(session_error(&child, said)).await;
        world.hears_idle(&child).await;
        let judged = standing(&world, &child, &prompt).await;
        assert_eq!(judged, done(outcome, Some("I w")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_a_child_got_over_is_not_its_end() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let said = session_error(&child, error("APIError", "overloaded"));
    world.hears(said).await;
    world.hears_idle(&child).await;
    world.hears_busy(&child).await;
    world.opencode.add(&child, unfinished(vec![text("I w")]));
    world.hears_idle(&child).await;
    let judged = standing(&world, &child, &prompt).await;
    assert_eq!(judged, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_never_began_was_interrupted() {
    assert_eq!(after(Vec::new()).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_has_begun_again_meanwhile_is_at_work() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, unfinished(vec![text("I w")]));
    world.hears_idle(&child).await;
    // At the first question it was idle.
    world
        .opencode
        .fails(Method::Get, "/session/status", 200, "{}");
    world.opencode.is_busy(&child);
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Working);
}

#[tokio::test(start_paused = true)]
async fn the_summary_of_a_compaction_is_no_answer() {
    // OpenCode was killed before the child went on.
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let parts = vec![text("I will look."), called("call_1", "bash", "12")];
    let step = agent_with(json!({"finish": "tool-calls"}), parts);
    world.opencode.add(&child, step);
    world
        .opencode
        .compact(&child, None, "The task is to count.");
    world.hears_idle(&child).await;
    let judged = standing(&world, &child, &prompt).await;
    assert_eq!(judged, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_compacted_since_is_still_the_answer() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.opencode.compact(&child, None, "It has counted.");
    world.hears_idle(&child).await;
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_compacted_on_its_way_answers_after_it() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let step = agent_with(json!({"finish": "tool-calls"}), vec![text("I look.")]);
    world.opencode.add(&child, step);
    world.opencode.compact(&child, None, "so far");
    let mut go_on = text("Continue if you have next steps");
    go_on["synthetic"] = json!(true);
    world
        .opencode
        .add(&child, crate::message::user_of(vec![go_on]));
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_compaction_failed_failed_with_its_sentence() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let step = agent_with(json!({"finish": "tool-calls"}), vec![text("I look.")]);
    world.opencode.add(&child, step);
    let why = "Tool call not allowed while generating summary: bash";
    let broken = json!({"finish": null, "error": error("UnknownError", why)});
    world.opencode.summarize(&child, None, "half a", broken);
    world.hears_idle(&child).await;
    let judged = standing(&world, &child, &prompt).await;
    let Standing::Done { outcome, .. } = judged else {
        panic!("{judged:?}");
    };
    assert_eq!(outcome, failure(why));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_not_there_was_never_sent() {
    let world = World::new();
    let child = world.opencode.parent();
    world.opencode.add(&child, user("something else"));
    let judged = standing(&world, &child, &task().prompt(0)).await;
    assert_eq!(judged, Standing::Unprompted);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_gone() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.remove(&child);
    let deleted = json!({"type": "session.deleted", "properties": {
        "sessionID": child.as_str(), "info": {"id": child.as_str()},
    }});
    world.hears(deleted).await;
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Gone);
    let world = world.restarted();
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_just_prompted_is_at_work_though_nothing_shows_it_yet() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    // OpenCode takes a prompt before it has stored it.
    world.opencode.fails(Method::Post, "/prompt_async", 204, "");
    world.host.prompt(&child, prompt()).await.unwrap();
    let id = prompt().id;
    assert_eq!(standing(&world, &child, &id).await, Standing::Working);
    world.clock.set_forward(MINUTE);
    assert_eq!(standing(&world, &child, &id).await, Standing::Unprompted);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_stored_but_not_begun_is_at_work_for_a_moment() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    let id = prompt().id;
    assert_eq!(standing(&world, &child, &id).await, Standing::Working);
    world.clock.set_forward(MINUTE);
    assert_eq!(standing(&world, &child, &id).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_not_taken_was_never_sent() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.opencode.fails(Method::Post, "/prompt_async", 400, "");
    let sent = world.host.prompt(&child, prompt()).await;
    assert!(matches!(sent, Err(HostError::Refused(_))), "{sent:?}");
    let judged = standing(&world, &child, &prompt().id).await;
    assert_eq!(judged, Standing::Unprompted);
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_before_a_prompt_does_not_cancel_it() {
    let mut world = World::new();
    let (child, _) = world.working_child().await;
    let again = Prompt {
        id: task().prompt(1),
        ..prompt()
    };
    let id = again.id.clone();
    world.host.prompt(&child, again).await.unwrap();
    let aborted = error("MessageAbortedError", "Aborted");
    world.hears(session_error(&child, aborted)).await;
    assert_eq!(standing(&world, &child, &id).await, Standing::Working);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_just_told_something_is_at_work_again() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world
        .opencode
        .add(&child, agent(vec![text("I wait for two.")]));
    world.hears_idle(&child).await;
    world.host.deliver(&child, notice()).await.unwrap();
    assert_eq!(standing(&world, &child, &prompt).await, Standing::Working);
    world.hears_busy(&child).await;
    world
        .opencode
        .add(&child, agent(vec![text("Both are done.")]));
    world.hears_idle(&child).await;
    let completed = done(Outcome::Completed, Some("Both are done."));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_quick_answer_is_seen_though_its_events_were_lost() {
    let mut world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.opencode.loses_events();
    assert_eq!(world.next().await, Report::Missed);
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt().id).await, completed);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_exist_fails_the_task_with_its_sentence() {
    let why = "Model not found: fake/none-1.";
    // The prompt may have been stored before the model was looked for, or not.
    for stored in [true, false] {
        let mut world = World::new();
        let parent = world.opencode.parent();
        let child = world.host.create(new_session(&parent)).await.unwrap();
        if !stored {
            world.opencode.fails(Method::Post, "/prompt_async", 204, "");
        }
        world.host.prompt(&child, prompt()).await.unwrap();
        let unknown = session_error(&child, error("UnknownError", why));
        let said = world.hears(unknown).await;
        assert_eq!(said, Report::Session(child.clone(), SessionEvent::Idle));
        let judged = standing(&world, &child, &prompt().id).await;
        assert_eq!(after_asking(judged), ends(why), "stored: {stored}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_was_looked_for_while_busy_fails_the_task_too() {
    let why = "Model not found: fake/none-1.";
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let unknown = session_error(&child, error("UnknownError", why));
    world.hears(unknown).await;
    world.hears_idle(&child).await;
    let judged = standing(&world, &child, &prompt).await;
    assert_eq!(after_asking(judged), ends(why));
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_fail_by_the_error_of_the_run_before() {
    let mut world = World::new();
    let (child, _) = world.working_child().await;
    let unknown = session_error(&child, error("UnknownError", "no such model"));
    world.hears(unknown).await;
    world.hears_idle(&child).await;
    let again = Prompt {
        id: task().prompt(1),
        ..prompt()
    };
    let id = again.id.clone();
    world.host.prompt(&child, again).await.unwrap();
    assert_eq!(standing(&world, &child, &id).await, Standing::Working);
    world.clock.set_forward(MINUTE);
    assert_eq!(standing(&world, &child, &id).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_child_is_judged_by_what_came_after_it_was_resumed() {
    let mut world = World::new();
    let (child, first) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    let again = Prompt {
        id: task().prompt(1),
        ..prompt()
    };
    let second = again.id.clone();
    world.host.prompt(&child, again).await.unwrap();
    world.hears_busy(&child).await;
    world.hears_idle(&child).await;
    let judged = standing(&world, &child, &second).await;
    assert_eq!(judged, Standing::Interrupted);
    let overloaded = error("APIError", "overloaded");
    world.opencode.add(&child, failed(overloaded, Vec::new()));
    let judged = standing(&world, &child, &second).await;
    assert_eq!(judged, done(failure("overloaded"), None));
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_told_something_after_its_end_is_still_done() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    let world = world.another_day();
    world.host.deliver(&child, notice()).await.unwrap();
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn idle_twice_is_idle() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    let completed = done(Outcome::Completed, Some("12 files."));
    for _ in 0..2 {
        let said = world.hears(idle(&child)).await;
        assert_eq!(said, Report::Session(child.clone(), SessionEvent::Idle));
        assert_eq!(standing(&world, &child, &prompt).await, completed);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_while_nobody_listened_is_found() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.is_busy(&child);
    let name = child.as_str();
    world.opencode.asks(
        json!({"id": "per_1", "sessionID": name, "permission": "bash",
        "patterns": ["make"], "metadata": {}, "always": []}),
    );
    world.opencode.asks(json!({"id": "que_1", "sessionID": name,
        "questions": [{"question": "Which one?", "header": "one", "options": []}]}));
    world.opencode.asks(
        json!({"id": "per_2", "sessionID": "ses_other", "permission": "bash",
        "patterns": ["rm"], "metadata": {}, "always": []}),
    );
    let inspection = world.host.inspect(&child, &prompt).await.unwrap();
    assert_eq!(inspection.asking, None, "all was heard");
    world.opencode.loses_events();
    assert_eq!(world.next().await, Report::Missed);
    let inspection = world.host.inspect(&child, &prompt).await.unwrap();
    assert_eq!(inspection.standing, Standing::Working);
    let open = [
        ("per_1", "permission for bash make"),
        ("que_1", "Which one?"),
    ];
    let asking = inspection.asking.expect("it was asked for that too");
    let asking = asking
        .iter()
        .map(|(id, asked)| (id.as_str(), asked.text.as_str()));
    assert_eq!(asking.collect::<BTreeMap<_, _>>(), BTreeMap::from(open));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_late_makes_nobody_busy() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    let late = json!({"type": "message.updated", "properties": {
        "info": {"id": "msg_1", "sessionID": child.as_str(), "role": "assistant"},
    }});
    world.hears(late).await;
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt).await, completed);
}

#[tokio::test(start_paused = true)]
async fn only_what_was_used_since_the_first_prompt_counts() {
    let mut world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    // As a branch begins: with what its parent did.
    let expensive = agent_with(
        json!({"cost": 9.5, "tokens": tokens()}),
        vec![called("call_0", "read", "old"), step_finish()],
    );
    world.opencode.add(&child, expensive);
    let step = || {
        agent_with(
            json!({"cost": 0.25, "tokens": tokens()}),
            vec![
                called("call_1", "bash", "12"),
                called("call_2", "bash", "12"),
                calling("call_3", "read"),
                step_finish(),
            ],
        )
    };
    let of_one = |runs: u64| Totals {
        tokens: runs * 8_292,
        cost: Cost(runs * 250_000),
        unpriced: 0,
        turns: runs,
        by_tool: BTreeMap::from([("bash".to_owned(), runs * 2), ("read".to_owned(), runs)]),
    };
    for run in 0..2 {
        let prompt = Prompt {
            id: task().prompt(run),
            ..prompt()
        };
        let id = prompt.id.clone();
        world.host.prompt(&child, prompt).await.unwrap();
        world.hears(busy(&child)).await;
        world.opencode.add(&child, step());
        world.hears(idle(&child)).await;
        let runs = u64::from(run) + 1;
        assert_eq!(totals(&world, &child, &id).await, Some(of_one(runs)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_parameters_are_still_being_written_does_not_count() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let mut pending = calling("call_1", "bash");
    pending["state"] = json!({"status": "pending", "input": {}, "raw": ""});
    world.opencode.add(&child, unfinished(vec![pending]));
    world.hears_idle(&child).await;
    assert_eq!(totals(&world, &child, &prompt).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_long_history_before_the_first_prompt_is_not_read() {
    let mut world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    for _ in 0..20_000 {
        world.opencode.add(&child, user("of its parent"));
    }
    world.host.prompt(&child, prompt()).await.unwrap();
    world.hears_busy(&child).await;
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    world.opencode.forget_requests();
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(standing(&world, &child, &prompt().id).await, completed);
    assert_eq!(world.opencode.served(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_long_run_is_read_to_its_prompt() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    for _ in 0..450 {
        let step = agent_with(
            json!({"finish": "tool-calls"}),
            vec![called("call_1", "bash", "12"), step_finish()],
        );
        world.opencode.add(&child, step);
    }
    world.opencode.add(&child, agent(vec![text("12 files.")]));
    world.hears_idle(&child).await;
    let inspection = world.host.inspect(&child, &prompt).await.unwrap();
    let completed = done(Outcome::Completed, Some("12 files."));
    assert_eq!(inspection.standing, completed);
    let turns = inspection.totals.map(|totals| totals.turns);
    assert_eq!(turns, Some(450));
}
