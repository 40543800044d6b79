//! Every request begins with the one before it, byte for byte: that is what a provider's
//! cache pays for.

use std::time::Duration;

use asyncagents_models::Wire;
use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::harness::{Harness, Plan};

/// How many bytes two requests have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Each has all of the one before it but the brackets that close it.
fn assert_growing(bodies: &[String]) {
    for pair in bodies.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let shared = common(before, after);
        let closing = &before[shared..];
        assert!(
            closing.chars().all(|c| "]}".contains(c)),
            "shared {shared} of {} bytes; then\n{}\nbecame\n{}",
            before.len(),
            closing,
            &after[shared..(shared + 200).min(after.len())],
        );
    }
}

fn working() -> Script {
    Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"path": "a.txt"}))
                .and_call("glob", json!({"pattern": "*"}))
                .and_text("Let me look.")
                .reasoning("Two at once."),
        )
        .rule(
            When::turn(1),
            Reply::call("write", json!({"path": "b.txt", "content": "b\n"})),
        )
        .rule(
            When::turn(2),
            Reply::text("Done.").reasoning("That is all."),
        )
        .rule(When::turn(3), Reply::call("read", json!({"path": "b.txt"})))
        .rule(When::turn(4), Reply::text("b, as I said."))
}

#[rstest]
#[case(Wire::Anthropic)]
#[case(Wire::Responses)]
#[case(Wire::Chat)]
#[tokio::test]
async fn a_session_its_follow_up_and_another_process_share_the_prefix(#[case] wire: Wire) {
    let mut plan = Plan {
        wire,
        ..Plan::default()
    };
    plan.runtime.lease = Duration::from_millis(300);
    let harness = Harness::with(working(), plan).await;
    harness.write("a.txt", "what is in a\n");
    harness.write("AGENTS.md", "Be brief.");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Look at a").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Done.");
    assert_eq!(harness.read("b.txt"), "b\n");
    // The project changes; the session's beginning does not.
    harness.write("AGENTS.md", "Be verbose.");
    let harness = harness.killed().await;
    let prompt = harness.prompt(&session, "And b?").await;
    assert_eq!(
        harness.ended(&session, &prompt).await.said(),
        "b, as I said."
    );
    let bodies = harness.bodies("");
    assert_eq!(bodies.len(), 5);
    assert_growing(&bodies);
    let (_, usage) = harness.used(&session).await;
    assert!(
        usage.cache_read > usage.input + usage.cache_write,
        "{usage:?}"
    );
    harness.close().await;
}

#[tokio::test]
async fn an_exact_fork_begins_with_the_parents_own_messages() {
    let script = Script::new()
        .rule(
            When::always().last("First child").lacks("may not use write"),
            Reply::call("write", json!({"path": "by_explore.txt", "content": "no"})),
        )
        .rule(
            When::always().last("From here on you are a background agent"),
            Reply::text("I know: what is in a."),
        )
        .rule(
            When::always().last("the agent explore may not use write"),
            Reply::text("Then I only look."),
        )
        .rule(When::turn(0), Reply::call("read", json!({"path": "a.txt"})))
        .rule(
            When::turn(1),
            Reply::call(
                "asyncagents_task",
                json!({"description": "one", "prompt": "First child", "agent": "explore", "fork": true}),
            )
            .and_call(
                "asyncagents_task",
                json!({"description": "two", "prompt": "Second child", "agent": "general", "fork": true}),
            ),
        )
        .rule(When::always(), Reply::text("All done."));
    let mut plan = Plan::default();
    plan.runtime.fork = asyncagents_core::fork::Preset::Exact.limits();
    let harness = Harness::with(script, plan).await;
    harness.write("a.txt", "what is in a\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Look at a").await;
    harness.ended(&session, &prompt).await.said();
    let parent = harness.bodies("").swap_remove(1);
    let children = harness.bodies("From here on you are a background agent");
    assert_eq!(children.len(), 3, "explore was refused once");
    assert_eq!(
        harness.read("by_explore.txt"),
        "",
        "it has the tools, but may not use them"
    );
    for child in &children {
        let shared = common(&parent, child);
        let closing = &parent[shared..];
        assert!(closing.chars().all(|c| "]}".contains(c)), "{closing}");
        let body: Value = serde_json::from_str(child).expect("JSON");
        let parents: Value = serde_json::from_str(&parent).expect("JSON");
        for same in ["system", "tools", "model"] {
            assert_eq!(body[same], parents[same], "{same}");
        }
    }
    assert!(children.iter().any(|child| child.contains("First child")));
    harness.close().await;
}

#[tokio::test]
async fn an_exact_fork_that_does_not_fit_is_refused_with_its_size() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call(
                "asyncagents_task",
                json!({"description": "d", "prompt": "p", "agent": "general", "fork": true}),
            )
            .usage(900, 0, 50),
        )
        .rule(When::always(), Reply::text("So be it.").usage(900, 0, 50));
    let prices = r#"{"test/model":{"window":2500,"max_output":2000}}"#;
    let mut plan = Plan {
        prices: Some(prices.to_owned()),
        ..Plan::default()
    };
    plan.runtime.fork = asyncagents_core::fork::Preset::Exact.limits();
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    harness.ended(&session, &prompt).await.said();
    let task = harness.tasks(&session).await.pop().expect("a task");
    let asyncagents_core::task::State::Ended { outcome, .. } = &task.state else {
        panic!("{task:?}");
    };
    let said = format!("{outcome:?}");
    assert!(
        said.contains("tokens and an exact fork may have 500"),
        "{said}"
    );
    harness.close().await;
}

/// The key by which a request is led to a provider's cache.
fn cache_key(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("JSON");
    body["prompt_cache_key"].as_str().expect("a key").to_owned()
}

fn task(prompt: &str, agent: &str, fork: bool) -> Value {
    json!({"description": prompt, "prompt": prompt, "agent": agent, "fork": fork})
}

/// Two fresh children, two forked ones and one by another agent.
fn launching() -> Script {
    Script::new()
        .rule(When::always().last("Child:"), Reply::text("Done."))
        .rule(
            When::turn(0).last("Delegate"),
            Reply::call("asyncagents_task", task("Child: one", "general", false))
                .and_call("asyncagents_task", task("Child: two", "general", false))
                .and_call("asyncagents_task", task("Child: plan", "plan", false))
                .and_call("asyncagents_task", task("Child: three", "general", true))
                .and_call("asyncagents_task", task("Child: four", "general", true)),
        )
        .rule(When::always(), Reply::text("All done."))
}

#[tokio::test]
async fn children_that_begin_alike_share_a_cache_key() {
    let mut plan = Plan {
        wire: Wire::Responses,
        ..Plan::default()
    };
    // One after the other: the last one begins when its parent knows far more.
    plan.runtime.limits.concurrency = 1;
    plan.runtime.lease = Duration::from_millis(300);
    let harness = Harness::with(launching(), plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    harness.ended(&session, &prompt).await.said();
    // Another process, another session.
    let harness = harness.killed().await;
    let another = harness.begin("general").await;
    let prompt = harness.prompt(&another, "Say hello").await;
    harness.ended(&another, &prompt).await.said();

    let key = |words: &str| {
        let asked = |body: &String| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let turns = body["input"].as_array().expect("turns").clone();
            turns.last().expect("one")["content"][0]["text"] == words
        };
        let mut bodies = harness.bodies("").into_iter();
        cache_key(&bodies.find(asked).expect("a request"))
    };
    let parent = key("Delegate");
    assert_eq!(key("Say hello"), parent);
    let fresh = key("Child: one");
    assert_eq!(key("Child: two"), fresh);
    let forked = key("Child: three");
    assert_eq!(key("Child: four"), forked);
    assert_ne!(forked, fresh, "it has the parent's conversation before it");
    assert_ne!(key("Child: plan"), fresh, "it has another system prompt");
    let ours = parent.strip_prefix("asyncagents-").expect("our name");
    assert!(ours.len() == 16 && ours.chars().all(|c| c.is_ascii_hexdigit()));
    harness.close().await;
}

/// Anthropic's cache has what was written at a marker: the first child of a fork writes what the
/// others find.
#[tokio::test]
async fn children_of_one_fork_have_a_marker_where_they_part() {
    let harness = Harness::new(launching()).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    harness.ended(&session, &prompt).await.said();
    let [three, four] = ["Child: three", "Child: four"].map(|words| {
        let bodies = harness.bodies("<inherited_context>").into_iter();
        let mut own = bodies.filter(|body| body.ends_with(&format!("{words}\"}}]}}]}}")));
        own.next().expect("a request")
    });
    let shared = &three[..common(&three, &four)];
    let marker = r#""cache_control":{"type":"ephemeral"}},{"type":"text","text":"Child: "#;
    assert!(shared.ends_with(marker), "{shared}");
    let bodies = harness.bodies("Child: one\"}]}]}");
    let fresh = bodies.first().expect("a fresh one");
    assert_eq!(fresh.matches("cache_control").count(), 2, "{fresh}");
    harness.close().await;
}

/// What a model is told first has nothing that differs from run to run.
#[tokio::test]
async fn two_runs_begin_with_the_same_bytes() {
    let script = Script::new().rule(When::always(), Reply::text("Hello."));
    let mut harness = Harness::new(script).await;
    for _ in 0..2 {
        let session = harness.begin("general").await;
        let prompt = harness.prompt(&session, "Say hello").await;
        harness.ended(&session, &prompt).await.said();
        harness = harness.killed().await;
    }
    let bodies = harness.bodies("");
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    harness.close().await;
}
