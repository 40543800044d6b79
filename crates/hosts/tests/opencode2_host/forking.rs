//! What a child inherits: its parent's conversation as it is read, or as messages of its own.

use asyncagents_core::{
    agent::Tools,
    fork::{Limits, Mode, Parent, Plan, Preset, fork},
    id::SessionId,
    port::{Host, HostError, NewSession, Recent},
    tokens,
    transcript::Transcript,
};
use asyncagents_testkit::opencode2::{Session, result, text, tool, tool_error, tool_running};
use serde_json::{Value, json};

use crate::{
    build::Build,
    world::{World, prompt, task},
};

/// A text that tells which one it is, and nothing of a failure.
fn filler(n: usize, chars: usize) -> String {
    let words = "some words and a line\n".chars().cycle();
    format!("#{n}# ").chars().chain(words).take(chars).collect()
}

/// A question and so many reads of so many characters, oldest first.
fn reads(session: Session, count: usize, chars: usize) -> Session {
    (0..count).fold(session.user("read them all"), |session, n| {
        let path = json!({"path": format!("{n}.rs")});
        session.agent(vec![tool("read", path, &filler(n, chars))])
    })
}

/// The message that launches the task, and what came after it.
fn launched(session: Session) -> (Session, String) {
    let asked_in = session.next_id();
    let launching = session.agent_in_flight(vec![
        json!({"type": "reasoning", "text": "I think", "state": {"encrypted": "…"}}),
        text("I launch one."),
        tool("glob", json!({}), "a.rs"),
        tool("asyncagents_task", json!({"prompt": "x"}), "launched"),
        tool_running("shell", json!({"command": "make"})),
    ]);
    (launching.user("and now something else"), asked_in)
}

/// A world whose parent has said all this.
fn world(build: Build, session: &Session) -> World {
    let world = World::new(build);
    let messages = session.messages().to_vec();
    let parent = world.parent.as_str();
    world.opencode.with(parent, |it| it.messages = messages);
    world
}

fn as_messages(asked_in: Option<&str>, limits: &[(&str, usize)]) -> Plan {
    let mut plan = Plan {
        mode: Mode::Messages,
        asked_in: asked_in.map(str::to_owned),
        ..Plan::default()
    };
    for (key, value) in limits {
        plan.limits.set(key, *value).expect("an allowed value");
    }
    plan
}

async fn branch(world: &World, plan: &Plan) -> SessionId {
    let branched = world.host.branch(world.new_session(), plan).await;
    branched.expect("no problem").expect("a branch")
}

fn messages_of(world: &World, session: &SessionId) -> Vec<Value> {
    let messages = world
        .opencode
        .with(session.as_str(), |it| it.messages.clone());
    messages.expect("a session")
}

/// What the child has of its parent, without what it is told about it.
fn inherited(world: &World, child: &SessionId) -> Vec<Value> {
    let mut messages = messages_of(world, child);
    let preamble = messages.pop().expect("a preamble");
    assert_eq!(preamble["type"], "synthetic");
    let preamble = preamble["text"].as_str().expect("a text");
    assert!(preamble.starts_with("You are a background agent. The conversation above"));
    messages
}

fn context(recent: Recent, limits: &Limits) -> String {
    let parent = if recent.unread {
        Parent::end_of(recent.transcript)
    } else {
        Parent::new(recent.transcript)
    };
    let made = fork(&parent, limits, tokens::o200k);
    made.expect("a fork").context
}

/// What a session would say as a text, whole, but for its last message.
async fn without_last(world: &World, session: &SessionId) -> String {
    let all = world.host.messages(session).await.expect("messages");
    let (_, but_last) = all.messages().split_last().expect("a message");
    let recent = Recent {
        transcript: Transcript::new(but_last.to_vec(), all.skipped()),
        unread: false,
    };
    context(recent, &Preset::Exact.limits())
}

#[tokio::test(start_paused = true)]
async fn a_branch_is_one_call_in_every_build() {
    for (build, path) in [
        (Build::measured(), "/api/session/import"),
        (Build::v2_0_18(), "/api/session/import"),
        (Build::release(), "/api/experimental/session/import"),
    ] {
        let (session, asked_in) = launched(reads(Session::new(), 3, 50));
        let world = world(build, &session);
        let child = branch(&world, &as_messages(Some(&asked_in), &[])).await;
        let requests = world.opencode.requests();
        let changes: Vec<&String> = requests
            .iter()
            .filter(|it| !it.starts_with("GET"))
            .collect();
        assert_eq!(changes, [&format!("POST {path}")]);
        let about = world.opencode.with(child.as_str(), |it| it.info.clone());
        let about = about.expect("a session");
        assert_eq!(about["title"], "look around (@general in the background)");
        assert_eq!(about["agent"], "general");
        assert_eq!(
            about["model"],
            json!({"providerID": "fake", "id": "fake-1"})
        );
        assert_eq!(about["location"]["directory"], "/home/user/project");
        if world.opencode.build.keeps_parent {
            assert_eq!(about["parentID"], world.parent.as_str());
            assert_eq!(about["metadata"]["asyncagents"]["task"], task().as_str());
        }
        world
            .host
            .prompt(&child, prompt("count"))
            .await
            .expect("taken");
    }
}

#[tokio::test(start_paused = true)]
async fn the_message_that_launches_is_inherited_without_its_open_calls() {
    let (session, asked_in) = launched(Session::new().user("go"));
    let world = world(Build::measured(), &session);
    let child = branch(&world, &as_messages(Some(&asked_in), &[])).await;
    let inherited = inherited(&world, &child);
    let [question, launching] = &inherited[..] else {
        panic!("two messages: {inherited:?}");
    };
    assert_eq!(question["text"], "go");
    let content = launching["content"].as_array().expect("parts");
    let kinds: Vec<&Value> = content.iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["text", "tool"]);
    assert_eq!(content[1]["name"], "glob");
}

#[tokio::test(start_paused = true)]
async fn what_a_branch_shows_is_what_a_text_would_say() {
    let interrupted = Session::new()
        .user("first")
        .agent_in_flight(vec![tool_running("shell", json!({"command": "make"}))])
        .shell("make test", &filler(7, 3_000))
        .agent(vec![tool_error("read", json!({}), &filler(8, 3_000))]);
    let with_summary = Session::new()
        .user("forgotten")
        .compacted("all of it", "[User]: forgotten");
    let limits = [
        ("whole_results", 3),
        ("middle_results", 2),
        ("middle_result_chars", 900),
        ("old_result_chars", 90),
    ];
    for (begun, max_chars) in [
        (Session::new(), 20_000),
        (interrupted, 20_000),
        (with_summary.clone(), 20_000),
        (with_summary, 4_000),
    ] {
        let (session, asked_in) = launched(reads(begun, 20, 1_500));
        let world = world(Build::measured(), &session);
        let mut plan = as_messages(Some(&asked_in), &limits);
        plan.limits.set("max_chars", max_chars).expect("allowed");
        let recent = world
            .host
            .recent(&world.parent, &plan)
            .await
            .expect("a parent");
        let as_text = context(recent, &plan.limits);
        let child = branch(&world, &plan).await;
        let as_messages = without_last(&world, &child).await;
        // What is interrupted has no result in a text, and says so in a message.
        let said = "[Tool error]\nTool execution interrupted\n";
        assert_eq!(as_messages.replace(said, ""), as_text);
        for message in inherited(&world, &child) {
            let parts = message["content"].as_array().cloned().unwrap_or_default();
            let states = parts.iter().map(|part| part["state"]["status"].clone());
            let open = |state: &Value| state == "running" || state == "streaming";
            assert!(!states.into_iter().any(|state| open(&state)), "{message}");
            assert!(message["tokens"].is_null(), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_thousands_of_messages_only_the_newest_are_fetched_and_copied() {
    let session = (0..3_000).fold(Session::new(), |session, n| {
        session.agent(vec![result(&filler(n, 300))])
    });
    let world = world(Build::measured(), &session);
    let child = branch(&world, &as_messages(None, &[("max_chars", 10_000)])).await;
    let pages = world.opencode.requests();
    let pages = pages.iter().filter(|it| it.ends_with("/message")).count();
    assert!((1..=5).contains(&pages), "{pages}");
    let inherited = inherited(&world, &child);
    let (head, copies) = inherited.split_first().expect("messages");
    assert_eq!(head["text"], "[What came before was left out.]");
    assert!((20..40).contains(&copies.len()), "{}", copies.len());
    let newest = &copies.last().expect("a copy")["content"][0]["state"]["content"][0]["text"];
    assert_eq!(newest, &json!(filler(2_999, 300)));
    let told = world.texts(&child).pop().expect("a preamble");
    assert!(told.contains("Removed: everything before"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_branch_of_a_compacted_parent_begins_with_the_compaction() {
    let long = (0..500).fold(Session::new(), |session, n| session.user(&filler(n, 200)));
    let session = long
        .user("what made it full")
        .compacted("so far so good", "[User]: what made it full")
        .agent(vec![text("on I go")]);
    let world = world(Build::measured(), &session);
    let child = branch(&world, &as_messages(None, &[])).await;
    let inherited = inherited(&world, &child);
    let [compaction, answer] = &inherited[..] else {
        panic!("two messages: {inherited:?}");
    };
    assert_eq!(compaction["type"], "compaction");
    assert_eq!(compaction["status"], "completed");
    assert_eq!(compaction["summary"], "so far so good");
    assert_eq!(compaction["recent"], "[User]: what made it full");
    assert_eq!(answer["content"][0]["text"], "on I go");
    let pages = world.opencode.requests();
    let pages = pages.iter().filter(|it| it.ends_with("/message")).count();
    assert_eq!(pages, 1);
}

#[tokio::test(start_paused = true)]
async fn branching_twice_is_branching_once() {
    let (session, asked_in) = launched(reads(Session::new(), 20, 700));
    let world = world(Build::measured(), &session);
    let plan = as_messages(Some(&asked_in), &[("max_chars", 6_000)]);
    let first = branch(&world, &plan).await;
    let before = messages_of(&world, &first);
    let second = branch(&world, &plan).await;
    let world = world.restarted();
    let third = branch(&world, &plan).await;
    assert_eq!((&second, &third), (&first, &first));
    assert_eq!(messages_of(&world, &first), before);
    assert_eq!(world.opencode.lock().sessions.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_branch_whose_answers_are_lost_is_made_once_and_whole() {
    let (session, asked_in) = launched(reads(Session::new(), 5, 700));
    let plan = as_messages(Some(&asked_in), &[]);
    let calm = world(Build::measured(), &session);
    let child = branch(&calm, &plan).await;
    let expected = messages_of(&calm, &child);
    for (requests, answers) in [(40, 0), (0, 40), (25, 25)] {
        let world = world(Build::measured(), &session);
        world.opencode.lock().faults.requests = requests;
        world.opencode.lock().faults.answers = answers;
        let child = loop {
            match world.host.branch(world.new_session(), &plan).await {
                Ok(child) => break child.expect("a branch"),
                Err(HostError::Unreachable(_)) => {}
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(messages_of(&world, &child), expected);
        assert_eq!(world.opencode.lock().sessions.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn where_it_cannot_be_imported_it_is_a_text() {
    let session = reads(Session::new(), 3, 50);
    let without_import = Build {
        is_described: false,
        ..Build::measured()
    };
    let silent = world(without_import, &session);
    let plan = as_messages(None, &[]);
    let branched = silent.host.branch(silent.new_session(), &plan).await;
    assert_eq!(branched, Ok(None));

    // Its names are used in another session, for whatever reason.
    let taken = world(Build::measured(), &session);
    let child = branch(&taken, &plan).await;
    let copied = messages_of(&taken, &child);
    taken
        .opencode
        .with(taken.parent.as_str(), |it| it.messages.extend(copied));
    taken.host.delete(&child).await.expect("deleted");
    let branched = taken
        .host
        .branch(taken.new_session(), &as_messages(Some("msg_3"), &[]))
        .await;
    assert_eq!(branched, Ok(None));
    assert!(!taken.host.exists(&child).await.expect("known"));
}

#[tokio::test(start_paused = true)]
async fn who_wants_a_text_gets_one_without_a_question() {
    let world = world(Build::measured(), &reads(Session::new(), 3, 50));
    let plan = Plan::default();
    let branched = world.host.branch(world.new_session(), &plan).await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.requests(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_bound_is_no_branch_where_an_import_keeps_no_rules() {
    let world = world(Build::measured(), &reads(Session::new(), 3, 50));
    let new = NewSession {
        within: vec![Tools {
            only: Some(Vec::new()),
            ..Tools::default()
        }],
        ..world.new_session()
    };
    let plan = as_messages(None, &[]);
    let branched = world.host.branch(new.clone(), &plan).await;
    assert_eq!(branched, Ok(None));
    assert_eq!(world.opencode.lock().sessions.len(), 1, "none is left");

    // An attempt that ended before it could look.
    let unbound = branch(&world, &plan).await;
    let world = world.restarted();
    let branched = world.host.branch(new, &plan).await;
    assert_eq!(branched, Ok(None));
    assert!(!world.host.exists(&unbound).await.expect("known"));
}

#[tokio::test(start_paused = true)]
async fn what_came_after_the_launch_is_not_read_and_its_calls_are_open() {
    let (session, asked_in) = launched(reads(Session::new(), 3, 50));
    let world = world(Build::measured(), &session);
    let plan = Plan {
        asked_in: Some(asked_in),
        ..Plan::default()
    };
    let recent = world
        .host
        .recent(&world.parent, &plan)
        .await
        .expect("a parent");
    let context = context(recent, &plan.limits);
    assert!(context.contains("I launch one.\n[Tool: glob]"), "{context}");
    assert!(!context.contains("asyncagents_task") && !context.contains("something else"));
    let gone = Plan {
        asked_in: Some("msg_gone".to_owned()),
        ..Plan::default()
    };
    let recent = world
        .host
        .recent(&world.parent, &gone)
        .await
        .expect("a parent");
    assert_eq!(recent.transcript.messages().len(), session.messages().len());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_read_whole_over_its_pages() {
    let session = reads(Session::new(), 450, 20);
    let world = world(Build::measured(), &session);
    let all = world.host.messages(&world.parent).await.expect("messages");
    let ids: Vec<&str> = all
        .messages()
        .iter()
        .filter_map(|message| Some(message.id.as_ref()?.as_str()))
        .collect();
    let expected: Vec<String> = (0..451).map(|n| format!("msg_{n}")).collect();
    assert_eq!(ids, expected);
    let none = world.host.messages(&"ses_none".into()).await;
    assert_eq!(none, Err(HostError::NoSession("ses_none".into())));
}
