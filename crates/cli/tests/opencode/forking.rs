//! A child that inherits the conversation.

use asyncagents_scripted_model::{Recorded, Reply, When};
use serde_json::{Value, json};

use crate::harness::{Session, Setup, World, asked, child, forked, root, story, task_id};

/// How long what a command prints is, in [`printed`].
const LENGTH: usize = 4_008;

/// A command that prints so much, and what it is called.
fn printed(name: &str) -> Value {
    let command = format!("printf '{name}<%04000d>{name}' 0");
    json!({"command": command, "description": name})
}

/// What the child had before its first answer, as it came to the model.
fn inherited(parent: &Session<'_>) -> Recorded {
    parent.until_told(1);
    let requests = parent.child().requests();
    requests.into_iter().next().expect("a request")
}

#[test]
fn seed_001_a_forked_child_knows_what_its_parent_read_and_ran() {
    let world = World::new(story().rule(child("Explain it"), Reply::text("It is a poem.")));
    std::fs::write(world.project("poem.txt"), "Roses are red\n").expect("written");
    let opencode = world.serve();
    let parent = opencode.session();
    parent.asks("What is in this folder?");
    let path = world.project("poem.txt");
    parent.uses("read", json!({"filePath": path}));
    let run = json!({"command": "echo violets; echo are blue", "description": "say"});
    parent.uses("bash", run);
    let launched = parent.uses("asyncagents_task", forked("explain", "Explain it"));
    assert!(launched.contains("(forked)"), "{launched}");

    let request = inherited(&parent);
    let said = request.text();
    let (before, rest) = said.split_once("<inherited_context>\n").expect("a context");
    let (context, after) = rest.split_once("</inherited_context>").expect("its end");
    // Seed 000: who said what, and which tools were used.
    for words in [
        "User:\nWhat is in this folder?",
        "Agent:\nNoted.",
        "[Tool: read] {\"filePath\":",
        "Roses are red",
        "[Tool: bash] {",
        "violets\nare blue",
    ] {
        assert!(context.contains(words), "{words}: {context}");
    }
    assert!(!context.contains("[Tool: asyncagents_task]"), "{context}");
    assert!(after.contains("Explain it"), "the task comes last: {after}");
    // The preamble says what the child has.
    let preamble = format!("{before}{after}");
    for words in [
        "background agent",
        "Compaction: none was found.",
        "2 whole",
        "Read a file again",
    ] {
        assert!(preamble.contains(words), "{words}: {preamble}");
    }
    assert!(!preamble.contains("Removed:"), "{preamble}");

    // It was put there without a reply: the first answer is the answer to the task.
    let messages = parent.child().messages();
    let roles: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["info"]["role"].as_str())
        .collect();
    assert!(
        roles.starts_with(&["user", "user", "assistant"]),
        "{roles:?}"
    );
    assert_eq!(parent.child().requests().len(), 1);
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("(forked)"), "{list}");
}

#[test]
fn a_fresh_child_knows_nothing_but_its_prompt() {
    let world = World::new(story().rule(child("Explain it"), Reply::text("What?")));
    let opencode = world.serve();
    let parent = opencode.session();
    parent.uses(
        "bash",
        json!({"command": "echo violets", "description": "say"}),
    );
    parent.uses(
        "asyncagents_task",
        crate::harness::launch("explain", "Explain it"),
    );
    let request = inherited(&parent);
    assert!(!request.text().contains("violets"), "{}", request.text());
    assert!(!request.text().contains("<inherited_context>"));
}

#[test]
fn seed_001_older_tool_results_are_cut_in_three_tiers() {
    let mut everything = Reply::text("Seventeen commands.");
    for number in 1..=17 {
        everything = everything.and_call("bash", printed(&format!("r{number:02}")));
    }
    let world = World::new(
        story()
            .rule(child("Explain it"), Reply::text("Zeros."))
            .rule(asked("Run everything"), everything),
    );
    let opencode = world.serve();
    let parent = opencode.session();
    parent.asks("Run everything");
    let results = parent.results("bash");
    assert_eq!(results.len(), 17);
    assert!(results.iter().all(|result| result.len() == LENGTH));
    parent.uses("asyncagents_task", forked("explain", "Explain it"));

    let request = inherited(&parent);
    let context = request.text();
    let has = |number: usize, whole: bool| {
        let result = format!("r{number:02}<{}>r{number:02}", "0".repeat(4_000));
        assert_eq!(context.contains(&result), whole, "result {number}");
    };
    // Newest to oldest: five whole, ten cut to 3,000 characters, the rest to 500.
    (13..=17).for_each(|number| has(number, true));
    (1..=12).for_each(|number| has(number, false));
    let cut = |kept: usize| {
        let marker = format!("...[truncated {} of {LENGTH} chars]...", LENGTH - kept);
        context.matches(&marker).count()
    };
    assert_eq!(cut(3_000), 10);
    assert_eq!(cut(500), 2);
    // A command's output keeps its end as well.
    for ends in ["r12<", ">r12", "r02<", ">r02"] {
        assert!(context.contains(ends), "{ends}");
    }
    let facts = "5 whole, 10 cut to 3,000 characters and 2 cut to 500 characters";
    assert!(context.contains(facts), "{context}");
}

#[test]
fn seed_000_the_flat_preset_cuts_every_long_result() {
    let script = story().rule(child("Explain it"), Reply::text("Zeros."));
    let world = Setup::new(script)
        .settings("[fork]\npreset = \"flat\"\n")
        .world();
    let opencode = world.serve();
    let parent = opencode.session();
    parent.uses("bash", printed("r01"));
    parent.uses("asyncagents_task", forked("explain", "Explain it"));
    let context = inherited(&parent).text();
    let marker = format!("of {LENGTH} chars]");
    assert!(context.contains(&marker), "{context}");
    assert!(context.contains("[Tool: bash] {\"command\":"), "{context}");
}

/// The request by which OpenCode has a conversation summed up: it has no tools, and it is not
/// the one for a title.
fn summing_up() -> When {
    root().tools(false)
}

#[test]
fn seed_001_after_a_compaction_only_the_summary_and_what_follows_is_inherited() {
    let world = World::new(
        story()
            .rule(child("Explain it"), Reply::text("Flowers."))
            .rule(
                summing_up().last("violets").times(1),
                Reply::text("FIRST SUMMARY: flowers were named."),
            )
            .rule(
                summing_up(),
                Reply::text("SECOND SUMMARY: flowers and trees were named."),
            ),
    );
    let opencode = world.serve();
    let parent = opencode.session();
    let say = |what: &str| {
        let command = format!("echo {what}");
        parent.uses("bash", json!({"command": command, "description": "say"}));
    };
    say("violets");
    parent.summarize();
    say("oaks");
    parent.summarize();
    say("moss");
    parent.uses("asyncagents_task", forked("explain", "Explain it"));

    let request = inherited(&parent);
    let said = request.text();
    for words in ["SECOND SUMMARY", "moss", "Compaction: found"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    for words in ["violets", "oaks", "FIRST SUMMARY"] {
        assert!(!said.contains(words), "{words}: {said}");
    }
}

#[test]
fn with_messages_as_the_mode_the_child_has_the_conversation_as_it_was() {
    // Such a child is a copy, and OpenCode makes copies sessions without a parent.
    let copy = When::always().last("Explain it");
    let task =
        Reply::text("I launch it.").and_call("asyncagents_task", forked("explain", "Explain it"));
    let script = story()
        .rule(copy, Reply::text("Flowers."))
        .rule(asked("Launch it"), task);
    let world = Setup::new(script)
        .settings("[fork]\nmode = \"messages\"\n")
        .world();
    let opencode = world.serve();
    let parent = opencode.session();
    parent.asks("What grows here?");
    for number in 1..=6 {
        parent.uses("bash", printed(&format!("r{number:02}")));
    }
    parent.asks("Launch it");
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"explain\" finished"),
        "{notices:?}"
    );

    let mut requests = world.requests_with("Explain it");
    let request = requests.pop().expect("a request of the child");
    assert!(requests.is_empty(), "{requests:?}");
    let request = request.json();
    let messages = request["messages"].as_array().expect("messages");
    let has = |role: &str, words: &str| {
        let found = messages
            .iter()
            .filter(|message| message["role"] == role)
            .any(|message| message.to_string().contains(words));
        assert!(found, "{role}: {words}: {messages:#?}");
    };
    has("user", "What grows here?");
    has("assistant", "Noted.");
    has("assistant", "\"tool_calls\"");
    has("user", "background agent");
    // The same limits hold: the sixth newest result is cut.
    for number in 2..=6 {
        has("tool", &format!("r{number:02}<{}", "0".repeat(4_000)));
    }
    has("tool", &format!("...[truncated 1008 of {LENGTH} chars]..."));
    let newest = messages.last().expect("a message");
    assert_eq!(newest["role"], "user");
    assert!(newest.to_string().contains("Explain it"), "{newest}");
    let all = request["messages"].to_string();
    assert!(!all.contains("<inherited_context>"), "{all}");
    assert!(
        !all.contains("I launch it."),
        "nothing of the call itself: {all}"
    );

    // The parent's own conversation is as it was.
    let whole = parent.results("bash");
    assert!(whole.iter().all(|result| result.len() == LENGTH));
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("(forked)"), "{list}");
    let result = parent.uses("asyncagents_output", json!({"task_id": task_id(&list)}));
    assert!(result.contains("Flowers."), "{result}");
}
