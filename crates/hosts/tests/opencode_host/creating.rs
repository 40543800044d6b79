//! Making the session of a child.

use asyncagents_core::{
    agent::Tools,
    id::{SessionId, TaskId},
    port::{Delivery, Host, HostError, NewSession, Prompt},
    skill::{Role, Terms},
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::world::{World, for_agent, inheritance, new_session, notice, prompt, task};

#[tokio::test(start_paused = true)]
async fn a_child_knows_its_parent_its_agent_and_its_task() {
    let world = World::new();
    let parent = world.opencode.parent();
    let child = world.host.create(new_session(&parent)).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/session");
    assert_eq!(body["parentID"], parent.as_str());
    assert_eq!(body["title"], "look around (@general in the background)");
    assert_eq!(body["agent"], "general");
    let ours = json!({"task": task().as_str(), "parent": parent.as_str()});
    assert_eq!(body["metadata"], json!({"asyncagents": ours}));
    assert_eq!(world.opencode.look_at(&child)["parentID"], parent.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_asks_for_nothing_that_it_does_not_need() {
    let world = World::new();
    let parent = world.opencode.parent();
    // What is asked once: the version, and the agents.
    let other = NewSession {
        task: TaskId::from_random(8),
        ..new_session(&parent)
    };
    world.host.create(other).await.unwrap();
    world.opencode.forget_requests();
    let new = NewSession {
        first_attempt: true,
        ..new_session(&parent)
    };
    let child = world.host.create(new).await.unwrap();
    world.host.inject(&child, inheritance()).await.unwrap();
    world.host.prompt(&child, prompt()).await.unwrap();
    let asked = [
        format!("GET /session/{parent}"),
        "POST /session".to_owned(),
        format!("POST /session/{child}/message"),
        format!("POST /session/{child}/prompt_async"),
    ];
    assert_eq!(world.opencode.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_context_that_may_have_arrived_is_looked_for_before_it_is_sent_again() {
    let world = World::new();
    let parent = world.opencode.parent();
    let new = NewSession {
        first_attempt: true,
        ..new_session(&parent)
    };
    let child = world.host.create(new.clone()).await.unwrap();
    world.opencode.loses_answer(Method::Post, "/message");
    let lost = world.host.inject(&child, inheritance()).await;
    assert!(matches!(lost, Err(HostError::Unreachable(_))), "{lost:?}");
    // Another attempt finds the session, and what is in it.
    let again = NewSession {
        first_attempt: false,
        ..new
    };
    assert_eq!(world.host.create(again).await, Ok(child.clone()));
    world.host.inject(&child, inheritance()).await.unwrap();
    world.opencode.sent_once(Method::Post, "/message");
}

#[tokio::test(start_paused = true)]
async fn a_child_works_with_its_parents_model() {
    let world = World::new();
    let model = json!({"id": "fake-1", "providerID": "fake", "variant": "high"});
    let parent = world
        .opencode
        .session(json!({"agent": "plan", "model": model}));
    world.host.create(new_session(&parent)).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/session");
    assert_eq!(body["model"], model);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_model_of_its_own_keeps_it() {
    let world = World::new();
    let parent = world.opencode.parent();
    let explorer = for_agent("explore", &parent);
    world.host.create(explorer).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/session");
    assert_eq!(body.get("model"), None);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_was_asked_for_goes_before_all_others() {
    let world = World::new();
    let parent = world.opencode.parent();
    let asked = NewSession {
        model: Some("fake/vendor/large-1".into()),
        ..for_agent("explore", &parent)
    };
    world.host.create(asked).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/session");
    let model = json!({"providerID": "fake", "id": "vendor/large-1"});
    assert_eq!(body["model"], model);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_provider_is_refused_with_the_way_to_write_it() {
    let world = World::new();
    let parent = world.opencode.parent();
    for name in ["large-1", "/large-1", "fake/"] {
        let asked = NewSession {
            model: Some(name.into()),
            ..new_session(&parent)
        };
        let error = world.host.create(asked).await.unwrap_err();
        assert!(matches!(error, HostError::Refused(_)), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("provider/model"), "{said}");
    }
    assert_eq!(world.opencode.number_of_sessions(), 1);
}

/// What every child has among its rules: OpenCode's own sub-agents are beside all limits.
fn no_own_sub_agents() -> Value {
    json!({"permission": "task", "pattern": "*", "action": "deny"})
}

#[tokio::test(start_paused = true)]
async fn a_child_may_not_do_what_its_parent_may_not() {
    let world = World::new();
    let mut rules = vec![
        json!({"permission": "bash", "pattern": "rm *", "action": "deny"}),
        json!({"permission": "webfetch", "pattern": "*", "action": "ask"}),
    ];
    let parent = world.opencode.session(json!({"permission": rules}));
    let child = world.host.create(new_session(&parent)).await.unwrap();
    rules.push(no_own_sub_agents());
    assert_eq!(world.opencode.look_at(&child)["permission"], json!(rules));
    // Nor may its own child, and that is said once.
    let child = world.host.create(new_session(&child)).await.unwrap();
    assert_eq!(world.opencode.look_at(&child)["permission"], json!(rules));
}

#[tokio::test(start_paused = true)]
async fn only_at_the_depth_limit_may_a_child_launch_nothing() {
    let no_tasks = json!({"permission": "asyncagents_*", "pattern": "*", "action": "deny"});
    for may_delegate in [true, false] {
        let world = World::new();
        let rule = json!({"permission": "bash", "pattern": "*", "action": "deny"});
        let parent = world.opencode.session(json!({"permission": [rule]}));
        let new = NewSession {
            may_delegate,
            ..new_session(&parent)
        };
        let child = world.host.create(new).await.unwrap();
        let expected = if may_delegate {
            json!([rule, no_own_sub_agents()])
        } else {
            json!([rule, no_own_sub_agents(), no_tasks])
        };
        assert_eq!(world.opencode.look_at(&child)["permission"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn making_a_session_twice_finds_the_first() {
    let world = World::new();
    let parent = world.opencode.parent();
    let first = world.host.create(new_session(&parent)).await.unwrap();
    let second = world.host.create(new_session(&parent)).await.unwrap();
    let world = world.restarted();
    let third = world.host.create(new_session(&parent)).await.unwrap();
    assert_eq!((&second, &third), (&first, &first));
    assert_eq!(world.opencode.sent(Method::Post, "/session").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_answer_was_lost_is_found() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.loses_answer(Method::Post, "/session");
    let made = world.host.create(new_session(&parent)).await;
    assert!(matches!(made, Err(HostError::Unreachable(_))), "{made:?}");
    world.host.create(new_session(&parent)).await.unwrap();
    assert_eq!(world.opencode.number_of_sessions(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_tasks_of_one_parent_have_a_session_each() {
    let world = World::new();
    let parent = world.opencode.parent();
    let first = world.host.create(new_session(&parent)).await.unwrap();
    let other = NewSession {
        task: "task_other".into(),
        ..new_session(&parent)
    };
    let second = world.host.create(other).await.unwrap();
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_terminal_launched_is_a_session_of_its_own() {
    let world = World::new();
    let terminal: SessionId = "terminal-1".into();
    let first = world.host.create(new_session(&terminal)).await.unwrap();
    let second = world.host.create(new_session(&terminal)).await.unwrap();
    assert_eq!(first, second);
    let body = world.opencode.sent_once(Method::Post, "/session");
    assert_eq!(body.get("parentID"), None);
    assert_eq!(body["permission"], json!([no_own_sub_agents()]));
    let asked = world.opencode.asked();
    assert!(
        !asked.iter().any(|asked| asked.contains("terminal")),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_gone_gets_no_child() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.remove(&parent);
    let made = world.host.create(new_session(&parent)).await;
    assert_eq!(made, Err(HostError::NoSession(parent)));
    assert_eq!(world.opencode.number_of_sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_agents_for_a_task_are_those_that_are_shown() {
    let world = World::new();
    let agents = world.host.agents().await.unwrap();
    let names: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
    assert_eq!(names, ["build", "plan", "general", "explore"]);
    let notes = world.host.agent_notes().await.unwrap();
    assert_eq!(notes[2].about, "For anything.");
}

#[tokio::test(start_paused = true)]
async fn a_session_says_where_it_works() {
    let world = World::new();
    let parent = world.opencode.parent();
    let folder = world.host.folder_of(&parent).await.unwrap();
    assert_eq!(folder.as_deref(), Some("/home/user/project"));
}

/// A skill that has these tools.
fn role(tools: &[&str]) -> Role {
    Role {
        terms: Terms {
            skill: "look".to_owned(),
            tools: Tools {
                only: Some(tools.iter().filter_map(|tool| tool.parse().ok()).collect()),
                ..Tools::default()
            },
            iterations: 5,
            retries: 3,
            iteration_time: None,
            model: None,
            effort: None,
        },
        instructions: "Look around.".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_has_its_own_tools_and_says_so_with_every_prompt() {
    let world = World::new();
    let parent = world.opencode.parent();
    let role = role(&["read", "bash(git log *)"]);
    let new = NewSession {
        role: Some(role.clone()),
        ..new_session(&parent)
    };
    let child = world.host.create(new).await.unwrap();
    let body = world.opencode.sent_once(Method::Post, "/session");
    let rules = body["permission"].as_array().unwrap();
    let shown: Vec<String> = rules
        .iter()
        .map(|rule| format!("{} {}", rule["permission"], rule["pattern"]).replace('"', ""))
        .collect();
    let at = |rule: &str| shown.iter().position(|shown| shown == rule);
    let denied = at("* *").expect("all is forbidden first");
    assert!(at("read *") > Some(denied), "{shown:?}");
    assert!(at("bash git log *") > Some(denied), "{shown:?}");
    for run in 0..2 {
        let prompt = Prompt {
            id: task().prompt(run),
            role: Some(role.clone()),
            ..prompt()
        };
        world.host.prompt(&child, prompt).await.unwrap();
    }
    // OpenCode takes its system prompt from the newest message, whatever that is.
    let told = world.host.deliver(&child, notice()).await;
    assert_eq!(told, Ok(Delivery::Taken));
    let sent = world.opencode.sent(Method::Post, "/prompt_async");
    assert_eq!(sent.len(), 3);
    for body in sent {
        let system = body["system"].as_str().unwrap();
        assert!(
            system.contains("SKILL INSTRUCTIONS:\nLook around."),
            "{system}"
        );
        assert!(system.contains("- bash(git log *)\n"), "{system}");
    }
}

/// Whether a session may use something at all: the last rule that fits counts.
fn allows(rules: &Value, permission: &str) -> bool {
    let mut rules = rules.as_array().into_iter().flatten().rev();
    let fits = |rule: &&Value| {
        let named = &rule["permission"];
        rule["pattern"] == "*" && (named == "*" || named == permission)
    };
    rules
        .find(fits)
        .is_some_and(|rule| rule["action"] != "deny")
}

#[tokio::test(start_paused = true)]
async fn a_skill_within_a_skill_has_its_own_tools_as_far_as_the_outer_one_has_them() {
    let world = World::new();
    let parent = world.opencode.parent();
    let outer_role = role(&["read", "skill", "grep"]);
    let outer = NewSession {
        role: Some(outer_role.clone()),
        ..new_session(&parent)
    };
    let outer = world.host.create(outer).await.unwrap();
    let within = vec![outer_role.terms.tools];
    let inner = NewSession {
        task: TaskId::from_random(8),
        role: Some(role(&["read", "bash"])),
        within: within.clone(),
        ..new_session(&outer)
    };
    world.host.create(inner).await.unwrap();
    // A task without a skill is bound too.
    let plain = NewSession {
        task: TaskId::from_random(9),
        within,
        ..new_session(&outer)
    };
    world.host.create(plain).await.unwrap();
    let sent = world.opencode.sent(Method::Post, "/session");
    let shown = |at: usize| {
        let rules = &sent[at]["permission"];
        ["read", "grep", "bash", "asyncagents_skill"].map(|name| allows(rules, name))
    };
    assert_eq!(shown(0), [true, true, false, true]);
    assert_eq!(shown(1), [true, false, false, false]);
    assert_eq!(shown(2), [true, true, false, true]);
}
