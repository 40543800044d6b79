//! A child that inherits the conversation.

use asyncagents_scripted_model::{Recorded, Reply, Script, When};
use serde_json::json;

use crate::harness::{
    Opencode, Session, Setup, Speaker, World, asked, child, command, forked, launch, root, story,
    task_id,
};
use crate::told::told;

told!(v1, v2_background:
    seed_001_a_forked_child_knows_what_its_parent_read_and_ran,
    a_fresh_child_knows_nothing_but_its_prompt,
    seed_001_older_tool_results_are_cut_in_three_tiers,
    seed_000_the_flat_preset_cuts_every_long_result,
    seed_001_after_a_compaction_only_the_summary_and_what_follows_is_inherited,
    with_messages_as_the_mode_the_child_has_the_conversation_as_it_was,
);

/// How long what a command prints is, in [`printed`].
const LENGTH: usize = 4_008;

/// How long its whole result is: OpenCode 2 adds a line about how the command ended.
fn result_length(opencode: Opencode) -> usize {
    let end = "\nCommand exited with code 0.";
    LENGTH + if opencode.is_v2() { end.len() } else { 0 }
}

/// A command that prints so much, and what it is called.
fn printed(name: &str) -> String {
    format!("printf '{name}<%04000d>{name}' 0")
}

/// A world in which a child gets the conversation as one text.
fn with_transcripts(opencode: Opencode, script: Script) -> World {
    let setup = Setup::new(opencode, script);
    // It is the default of OpenCode 1.
    if opencode.is_v2() {
        setup.settings("[fork]\nmode = \"transcript\"\n").world()
    } else {
        setup.world()
    }
}

/// What the child had before its first answer, as it came to the model.
fn inherited(parent: &Session<'_>) -> Recorded {
    parent.until_told(1);
    let requests = parent.child().requests();
    requests.into_iter().next().expect("a request")
}

fn seed_001_a_forked_child_knows_what_its_parent_read_and_ran(opencode: Opencode) {
    let world = with_transcripts(
        opencode,
        story().rule(child("Explain it"), Reply::text("It is a poem.")),
    );
    std::fs::write(world.project("poem.txt"), "Roses are red\n").expect("written");
    let server = world.serve();
    let parent = server.session();
    parent.asks("What is in this folder?");
    let (read, poem) = opencode.read(&world.project("poem.txt"));
    parent.uses(read, poem);
    parent.runs("echo violets; echo are blue");
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
        "[Tool: read] {\"",
        "Roses are red",
        &format!("[Tool: {}] {{", opencode.shell()),
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
    let speakers: Vec<Speaker> = messages.iter().map(|message| message.by).collect();
    assert!(
        speakers.starts_with(&[Speaker::User, Speaker::User, Speaker::Agent]),
        "{speakers:?}"
    );
    assert_eq!(parent.child().requests().len(), 1);
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("(forked)"), "{list}");
}

fn a_fresh_child_knows_nothing_but_its_prompt(opencode: Opencode) {
    let world = with_transcripts(
        opencode,
        story().rule(child("Explain it"), Reply::text("What?")),
    );
    let server = world.serve();
    let parent = server.session();
    parent.runs("echo violets");
    parent.uses("asyncagents_task", launch("explain", "Explain it"));
    let request = inherited(&parent);
    assert!(!request.text().contains("violets"), "{}", request.text());
    assert!(!request.text().contains("<inherited_context>"));
}

fn seed_001_older_tool_results_are_cut_in_three_tiers(opencode: Opencode) {
    let mut everything = Reply::text("Seventeen commands.");
    for number in 1..=17 {
        let line = printed(&format!("r{number:02}"));
        everything = everything.and_call(opencode.shell(), command(&line));
    }
    let world = with_transcripts(
        opencode,
        story()
            .rule(child("Explain it"), Reply::text("Zeros."))
            .rule(asked("Run everything"), everything),
    );
    let server = world.serve();
    let parent = server.session();
    parent.asks("Run everything");
    let results = parent.results(opencode.shell());
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
        let length = result_length(opencode);
        let marker = format!("...[truncated {} of {length} chars]...", length - kept);
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

fn seed_000_the_flat_preset_cuts_every_long_result(opencode: Opencode) {
    let script = story().rule(child("Explain it"), Reply::text("Zeros."));
    let world = Setup::new(opencode, script)
        .settings("[fork]\nmode = \"transcript\"\npreset = \"flat\"\n")
        .world();
    let server = world.serve();
    let parent = server.session();
    parent.runs(&printed("r01"));
    parent.uses("asyncagents_task", forked("explain", "Explain it"));
    let context = inherited(&parent).text();
    let marker = format!("of {} chars]", result_length(opencode));
    assert!(context.contains(&marker), "{context}");
    let call = format!("[Tool: {}] {{\"command\":", opencode.shell());
    assert!(context.contains(&call), "{context}");
}

/// The request by which OpenCode has a conversation summed up: it has no tools, and it is not
/// the one for a title.
fn summing_up() -> When {
    root().tools(false)
}

fn seed_001_after_a_compaction_only_the_summary_and_what_follows_is_inherited(opencode: Opencode) {
    let world = with_transcripts(
        opencode,
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
    let server = world.serve();
    let parent = server.session();
    let say = |what: &str| {
        parent.runs(&format!("echo {what}"));
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

fn with_messages_as_the_mode_the_child_has_the_conversation_as_it_was(opencode: Opencode) {
    // Such a child is a copy, and OpenCode makes copies sessions without a parent.
    let copy = When::always().last("Explain it");
    let task =
        Reply::text("I launch it.").and_call("asyncagents_task", forked("explain", "Explain it"));
    let script = story()
        .rule(copy, Reply::text("Flowers."))
        .rule(asked("Launch it"), task);
    let world = Setup::new(opencode, script)
        .settings("[fork]\nmode = \"messages\"\n")
        .world();
    let server = world.serve();
    let parent = server.session();
    parent.asks("What grows here?");
    for number in 1..=6 {
        parent.runs(&printed(&format!("r{number:02}")));
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
    let length = result_length(opencode);
    let marker = format!("...[truncated {} of {length} chars]...", length - 3_000);
    has("tool", &marker);
    let newest = messages.last().expect("a message");
    assert_eq!(newest["role"], "user");
    assert!(newest.to_string().contains("Explain it"), "{newest}");
    let all = request["messages"].to_string();
    assert!(!all.contains("<inherited_context>"), "{all}");
    // Nothing of the call itself; in OpenCode 2 the words beside it are kept.
    let call = if opencode.is_v2() {
        r#""name":"asyncagents_task""#
    } else {
        "I launch it."
    };
    assert!(!all.contains(call), "{call}: {all}");

    // The parent's own conversation is as it was.
    let whole = parent.results(opencode.shell());
    assert!(whole.iter().all(|result| result.len() == LENGTH));
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("(forked)"), "{list}");
    let result = parent.uses("asyncagents_output", json!({"task_id": task_id(&list)}));
    assert!(result.contains("Flowers."), "{result}");
}
