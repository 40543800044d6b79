//! A fork as messages: a child that has its parent's own conversation.

use asyncagents_core::{
    fork::{Parent, Plan, fork},
    id::SessionId,
    port::{Host, HostError, NewSession},
    tokens,
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::{
    message::{agent, agent_with, call_failed, called, calling, id, output, said, text, user},
    world::{World, as_messages, for_agent, new_session, plan, prompt, task},
};

/// A text that tells which one it is, and nothing of a failure.
fn filler(n: usize, chars: usize) -> String {
    let words = "some words and a line\n".chars().cycle();
    format!("#{n}# ").chars().chain(words).take(chars).collect()
}

/// A question and so many reads of so many characters, oldest first.
fn reads(world: &World, parent: &SessionId, count: usize, chars: usize) {
    world.opencode.add(parent, user("read them all"));
    for n in 0..count {
        let part = called(&format!("call_{n}"), "read", &filler(n, chars));
        let step = agent_with(json!({"finish": "tool-calls"}), vec![part]);
        world.opencode.add(parent, step);
    }
}

/// The message that launches the task.
fn launch(world: &World, parent: &SessionId) -> String {
    let parts = vec![text("I launch one."), calling("call_x", "asyncagents_task")];
    let step = agent_with(json!({"finish": null, "time": {}}), parts);
    world.opencode.add(parent, step)
}

async fn branch(world: &World, parent: &SessionId, plan: &Plan) -> SessionId {
    let branched = world.host.branch(new_session(parent), plan).await;
    branched.expect("no problem").expect("a branch")
}

/// What is said and found in messages, whatever they are called.
fn contents(messages: &[Value]) -> Vec<String> {
    let content = |message: &Value| {
        let parts = message["parts"].as_array().expect("parts").iter();
        let parts = parts.map(|part| json!([part["type"], part["text"], part["state"]]));
        let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
        format!("{}: {}", message["info"]["role"], parts.join(" "))
    };
    messages.iter().map(content).collect()
}

/// Compares messages, and says where they differ without writing all of them down.
fn assert_same(these: &[Value], those: &[Value], when: &str) {
    let brief = |messages: &[Value]| {
        let brief = contents(messages).into_iter();
        let brief = brief.map(|message| message.chars().take(120).collect::<String>());
        brief.collect::<Vec<_>>().join("\n")
    };
    assert!(
        contents(these) == contents(those),
        "{when}\n{}\n\nis not\n\n{}",
        brief(these),
        brief(those),
    );
}

/// What the parent has, and what of it the child has, without what it is told about it.
fn both(world: &World, parent: &SessionId, child: &SessionId) -> [Vec<Value>; 2] {
    let mut inherited = world.opencode.messages_of(child);
    let preamble = inherited.pop().expect("a preamble");
    assert!(said(&preamble).starts_with("You are a background agent."));
    [world.opencode.messages_of(parent), inherited]
}

#[tokio::test(start_paused = true)]
async fn a_branch_has_its_parents_messages_up_to_the_launch() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 3, 50);
    let asked_in = launch(&world, &parent);
    world.opencode.add(&parent, user("and now something else"));
    let child = branch(&world, &parent, &as_messages(Some(&asked_in), &[])).await;
    let body = world.opencode.sent_once(Method::Post, "/fork");
    assert_eq!(body, json!({"messageID": asked_in}));
    let [all, inherited] = both(&world, &parent, &child);
    assert_same(&inherited, &all[..4], "all before");
    assert_ne!(id(&inherited[0]), id(&all[0]), "a copy");
    assert_eq!(world.opencode.sent(Method::Post, "/session").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_branch_of_the_whole_conversation_where_nobody_says_which_message_asked() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 3, 50);
    let child = branch(&world, &parent, &as_messages(None, &[])).await;
    let [all, inherited] = both(&world, &parent, &child);
    assert_same(&inherited, &all, "all of them");
}

#[tokio::test(start_paused = true)]
async fn a_branch_says_what_it_is_and_what_it_may() {
    let world = World::new();
    let rule = json!({"permission": "bash", "pattern": "rm *", "action": "deny"});
    let parent = world.opencode.session(json!({
        "title": "parent", "agent": "build", "permission": [rule],
        "model": {"id": "fake-1", "providerID": "fake", "variant": "high"},
    }));
    reads(&world, &parent, 3, 50);
    let asked_in = launch(&world, &parent);
    let new = NewSession {
        may_delegate: false,
        ..new_session(&parent)
    };
    let plan = as_messages(Some(&asked_in), &[]);
    let child = world.host.branch(new, &plan).await.unwrap().unwrap();
    let after = world.opencode.look_at(&child);
    assert_eq!(after["title"], "look around (@general in the background)");
    let ours = json!({"task": task().as_str(), "parent": parent.as_str()});
    assert_eq!(after["metadata"], json!({"asyncagents": ours}));
    let denied = |what: &str| json!({"permission": what, "pattern": "*", "action": "deny"});
    let rules = [rule, denied("task"), denied("asyncagents_*")];
    assert_eq!(after["permission"], json!(rules));
    assert_eq!(after["agent"], "general");
    let model = json!({"providerID": "fake", "id": "fake-1", "variant": "high"});
    assert_eq!(after["model"], model);
}

#[tokio::test(start_paused = true)]
async fn a_branch_for_an_agent_with_a_model_of_its_own_works_with_that() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 3, 50);
    let explorer = for_agent("explore", &parent);
    let branched = world.host.branch(explorer, &as_messages(None, &[])).await;
    let child = branched.unwrap().unwrap();
    assert_eq!(world.opencode.look_at(&child)["model"]["id"], "small-1");
}

#[tokio::test(start_paused = true)]
async fn old_results_of_a_branch_are_cut_as_in_a_text() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 20, 10_000);
    let asked_in = launch(&world, &parent);
    let child = branch(&world, &parent, &as_messages(Some(&asked_in), &[])).await;
    let [_, inherited] = both(&world, &parent, &child);
    for (n, message) in inherited[1..].iter().enumerate() {
        let whole = filler(n, 10_000);
        let first = |chars: usize| {
            let kept: String = whole.chars().take(chars).collect();
            let gone = 10_000 - chars;
            format!("{kept}\n...[truncated {gone} of 10000 chars]...\n")
        };
        let expected = match n {
            0..5 => first(500),
            5..15 => first(3_000),
            _ => whole.clone(),
        };
        assert_eq!(output(message, 0), expected, "{n}");
    }
    let untouched = world.opencode.messages_of(&parent);
    assert_eq!(output(&untouched[1], 0), filler(0, 10_000));
}

#[tokio::test(start_paused = true)]
async fn a_cut_in_a_branch_leaves_the_rest_of_its_message_alone() {
    let world = World::new();
    let parent = world.opencode.parent();
    let parts = vec![
        text("Two at once."),
        call_failed("call_1", "bash", &filler(1, 900)),
        called("call_2", "read", "short"),
    ];
    world.opencode.add(&parent, agent(parts));
    let limits = [
        ("whole_results", 0),
        ("middle_results", 0),
        ("old_result_chars", 100),
    ];
    let child = branch(&world, &parent, &as_messages(None, &limits)).await;
    let [all, inherited] = both(&world, &parent, &child);
    let mut expected = all[0]["parts"].clone();
    let cut = output(&inherited[0], 1).to_owned();
    assert!(cut.contains("...[truncated 800 of 900 chars]..."), "{cut}");
    expected[1]["state"]["error"] = json!(cut);
    let expected = json!({"info": all[0]["info"], "parts": expected});
    assert_same(&inherited, &[expected], "but for the cut");
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_name_keep_each_its_own_result() {
    // Not every provider has names for calls that it uses once.
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..20 {
        let part = called("call_0", "read", &filler(n, 1_000));
        world.opencode.add(&parent, agent(vec![part]));
    }
    let plan = as_messages(None, &[]);
    let branched = world.host.branch(new_session(&parent), &plan).await;
    // Or a text, where names say nothing.
    let Some(child) = branched.unwrap() else {
        return;
    };
    let [_, inherited] = both(&world, &parent, &child);
    for (n, message) in inherited.iter().enumerate() {
        let own = format!("#{n}# ");
        assert!(output(message, 0).starts_with(&own), "{n}");
        let cut = output(message, 0).contains("...[truncated");
        assert_eq!(cut, n < 5, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_messages_go_where_a_branch_would_be_too_long() {
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..250 {
        world.opencode.add(&parent, user(&filler(n, 100)));
    }
    let asked_in = launch(&world, &parent);
    let plan = as_messages(Some(&asked_in), &[("max_chars", 5_000)]);
    let child = branch(&world, &parent, &plan).await;
    let [all, inherited] = both(&world, &parent, &child);
    let kept = inherited.len();
    assert!((40..50).contains(&kept), "{kept}");
    assert_same(&inherited, &all[250 - kept..250], "the newest");
    let told = said(&world.opencode.messages_of(&child)[kept]);
    let gone = format!("Removed: {} messages, the oldest,", 250 - kept);
    assert!(told.contains(&gone), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_told_what_its_messages_are_and_then_what_to_do() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 3, 50);
    let asked_in = launch(&world, &parent);
    let child = branch(&world, &parent, &as_messages(Some(&asked_in), &[])).await;
    let body = world.opencode.sent_once(Method::Post, "/message");
    assert_eq!(body["noReply"], true);
    assert_eq!(body["agent"], "general");
    assert_eq!(body["model"]["modelID"], "fake-1");
    let parts = body["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0]["synthetic"], true);
    let preamble = parts[0]["text"].as_str().unwrap();
    assert!(preamble.contains("The conversation above"), "{preamble}");
    assert!(!preamble.contains("inherited_context"), "{preamble}");
    world.host.prompt(&child, prompt()).await.unwrap();
    let messages = world.opencode.messages_of(&child);
    assert_eq!(said(messages.last().unwrap()), "count the files");
}

#[tokio::test(start_paused = true)]
async fn branching_twice_is_branching_once() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 20, 700);
    let asked_in = launch(&world, &parent);
    let plan = as_messages(Some(&asked_in), &[("max_chars", 6_000)]);
    let first = branch(&world, &parent, &plan).await;
    let before = world.opencode.messages_of(&first);
    assert!(before.len() < 20, "some were removed");
    let second = branch(&world, &parent, &plan).await;
    let world = world.restarted();
    let third = branch(&world, &parent, &plan).await;
    assert_eq!((&second, &third), (&first, &first));
    assert_eq!(world.opencode.number_of_sessions(), 2);
    let after = world.opencode.messages_of(&first);
    assert_same(&after, &before, "after the third time");
}

/// A branch that breaks off at any of its changes, before or after it is done, and is made
/// again, is as if nothing had happened.
async fn survives_accidents(prepare: impl Fn(&World, &SessionId) -> Plan) {
    let calm = World::new();
    let parent = calm.opencode.parent();
    let plan = prepare(&calm, &parent);
    calm.opencode.forget_requests();
    let child = branch(&calm, &parent, &plan).await;
    let expected = calm.opencode.messages_of(&child);
    let requests = calm.opencode.requests().into_iter();
    let changes = requests.filter(|request| request.method != Method::Get);
    for (change, done) in changes.flat_map(|change| [(change.clone(), false), (change, true)]) {
        let world = World::new();
        let parent = world.opencode.parent();
        let plan = prepare(&world, &parent);
        if done {
            world.opencode.loses_answer(change.method, &change.path)
        } else {
            world.opencode.is_silent(change.method, &change.path)
        }
        let broken = world.host.branch(new_session(&parent), &plan).await;
        let when = format!("{} {}, done: {done}", change.method.as_str(), change.path);
        assert!(matches!(broken, Err(HostError::Unreachable(_))), "{when}");
        let world = world.restarted();
        let child = branch(&world, &parent, &plan).await;
        assert_same(&world.opencode.messages_of(&child), &expected, &when);
    }
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_broke_off_goes_on_where_it_was() {
    survives_accidents(|world, parent| {
        reads(world, parent, 12, 700);
        let asked_in = launch(world, parent);
        let limits = [
            ("whole_results", 2),
            ("middle_results", 0),
            ("max_chars", 4_000),
        ];
        as_messages(Some(&asked_in), &limits)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_with_a_summary_that_broke_off_goes_on_where_it_was() {
    survives_accidents(|world, parent| {
        reads(world, parent, 5, 50);
        world.opencode.compact(parent, None, "five were read");
        reads(world, parent, 12, 700);
        let asked_in = launch(world, parent);
        as_messages(Some(&asked_in), &[("max_chars", 4_000)])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_of_a_compacted_parent_begins_with_the_summary() {
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..2_000 {
        world.opencode.add(&parent, user(&filler(n, 200)));
    }
    world.opencode.compact(&parent, None, "so far so good");
    reads(&world, &parent, 3, 50);
    let asked_in = launch(&world, &parent);
    let child = branch(&world, &parent, &as_messages(Some(&asked_in), &[])).await;
    let seen = world.opencode.model_sees(&child);
    // The request, the summary, what came since, and what it is told about it.
    assert_eq!(said(&seen[1]), "so far so good");
    assert_eq!(seen.len(), 2 + 4 + 1);
    let told = said(seen.last().unwrap());
    assert!(told.contains("stands for everything before it"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_was_compacted_away_does_not_come_back_with_the_tail() {
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..20 {
        world.opencode.add(&parent, user(&filler(n, 300)));
    }
    let tail = world.opencode.add(&parent, user(&filler(20, 300)));
    world.opencode.add(&parent, user(&filler(21, 300)));
    world
        .opencode
        .compact(&parent, Some(&tail), "so far so good");
    for n in 22..26 {
        world.opencode.add(&parent, user(&filler(n, 300)));
    }
    let asked_in = launch(&world, &parent);
    // All of it. Without the tail's first message OpenCode would show all that came before it
    // too, so then it is a text.
    for (max_chars, numbers) in [(9_000, Some(20..26)), (1_750, None), (1_400, None)] {
        let plan = as_messages(Some(&asked_in), &[("max_chars", max_chars)]);
        let new = NewSession {
            task: format!("task_{max_chars}").as_str().into(),
            ..new_session(&parent)
        };
        let branched = world.host.branch(new, &plan).await.unwrap();
        let shown = branched.map(|child| {
            let seen = world.opencode.model_sees(&child);
            let texts: Vec<String> = seen.iter().map(said).collect();
            assert!(texts.iter().any(|text| text == "so far so good"));
            let shown = texts.iter().filter_map(|text| text.strip_prefix('#'));
            let shown = shown.filter_map(|text| text.split('#').next()?.parse().ok());
            shown.collect::<Vec<usize>>()
        });
        assert_eq!(shown, numbers.map(Iterator::collect), "{max_chars}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_branch_shows_is_what_a_text_would_say() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 40, 2_000);
    let asked_in = launch(&world, &parent);
    let limits = [
        ("max_chars", 20_000),
        ("whole_results", 3),
        ("middle_result_chars", 900),
    ];
    let plan = as_messages(Some(&asked_in), &limits);
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    let as_text = fork(&Parent::new(recent.transcript), &plan.limits, tokens::o200k);
    let as_text = as_text.unwrap().context;
    let child = branch(&world, &parent, &plan).await;
    let [_, inherited] = both(&world, &parent, &child);
    for message in &inherited {
        let shown = output(message, 0);
        assert!(as_text.contains(shown), "{shown}");
    }
    // The launching message itself is in a text only.
    assert_eq!(as_text.matches("[Tool: read]").count(), inherited.len());
}

#[tokio::test(start_paused = true)]
async fn a_branch_whose_launching_message_is_gone_has_everything_as_a_text_would() {
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..10 {
        world.opencode.add(&parent, user(&filler(n, 200)));
    }
    let asked_in = launch(&world, &parent);
    for n in 10..13 {
        world.opencode.add(&parent, user(&filler(n, 200)));
    }
    world.opencode.remove_message(&parent, &asked_in);
    let plan = as_messages(Some(&asked_in), &[("max_chars", 1_500)]);
    let child = branch(&world, &parent, &plan).await;
    let [all, inherited] = both(&world, &parent, &child);
    let kept = inherited.len();
    assert!((5..8).contains(&kept), "{kept}");
    assert_same(&inherited, &all[13 - kept..], "the newest");
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_a_text_gets_no_branch() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 3, 50);
    let asked_in = launch(&world, &parent);
    let branched = world
        .host
        .branch(new_session(&parent), &plan(Some(&asked_in)))
        .await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.number_of_sessions(), 1);
    assert_eq!(world.opencode.changes(), 0);
    assert_eq!(world.opencode.served(), 0, "nothing is read in vain");
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_would_take_too_long_becomes_a_text() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 530, 600);
    let asked_in = launch(&world, &parent);
    let plan = as_messages(Some(&asked_in), &[]);
    let branched = world.host.branch(new_session(&parent), &plan).await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.changes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_too_long_to_be_copied_becomes_a_text() {
    let world = World::new();
    let parent = world.opencode.parent();
    for n in 0..5_000 {
        world.opencode.add(&parent, user(&filler(n, 500)));
    }
    let plan = as_messages(None, &[]);
    let branched = world.host.branch(new_session(&parent), &plan).await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.changes(), 0);
    let served = world.opencode.served();
    assert!(served <= 1_100, "{served}");
}

#[tokio::test(start_paused = true)]
async fn a_message_too_long_by_itself_becomes_a_text() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.add(&parent, user(&filler(1, 5_000)));
    let plan = as_messages(None, &[("max_chars", 2_000)]);
    let branched = world.host.branch(new_session(&parent), &plan).await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.changes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_cut_is_refused_and_not_copied() {
    let world = World::new();
    let parent = world.opencode.parent();
    reads(&world, &parent, 10, 1_000);
    let mut plan = as_messages(None, &[("max_chars", 2_000)]);
    plan.limits.set("when_over", "refuse").unwrap();
    let branched = world.host.branch(new_session(&parent), &plan).await;
    let error = branched.unwrap_err();
    assert!(matches!(error, HostError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("the limit is 2,000"), "{error}");
    assert_eq!(world.opencode.changes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_gone_has_no_branch() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.remove(&parent);
    let plan = as_messages(None, &[]);
    let branched = world.host.branch(new_session(&parent), &plan).await;
    assert_eq!(branched, Err(HostError::NoSession(parent)));
}
