//! Sessions of tasks are made, and set to work as their tasks want it.

use asyncagents_core::{
    agent::Tools,
    id::TaskId,
    port::{Host, HostError, Inheritance, NewSession, Prompt},
    skill::{Role, Terms},
};
use asyncagents_hosts::opencode2::{Settings, child_session, message};
use serde_json::json;

use crate::{
    build::Build,
    world::{FOLDER, World, prompt, task},
};

#[tokio::test(start_paused = true)]
async fn a_child_is_found_by_the_name_of_its_task() {
    let world = World::new(Build::measured());
    let session = world.child().await;
    assert_eq!(session, child_session(&task()));
    assert_eq!(world.child().await, session);
    assert_eq!(world.opencode.sent_to("/api/session").len(), 1, "made once");
    let folder = world.host.folder_of(&session).await;
    assert_eq!(folder, Ok(Some(FOLDER.to_owned())), "that of its parent");
}

#[tokio::test(start_paused = true)]
async fn a_child_without_a_parent_is_in_the_folder_of_its_launch() {
    let world = World::new(Build::measured()).with_settings(Settings {
        folder: Some("/home/user/other".to_owned()),
        ..Settings::default()
    });
    let orphan = NewSession {
        parent: "shell-4711".into(),
        ..world.new_session()
    };
    let session = world.host.create(orphan).await.expect("a session");
    let folder = world.host.folder_of(&session).await;
    assert_eq!(folder, Ok(Some("/home/user/other".to_owned())));
    let gone = NewSession {
        task: TaskId::from_random(2),
        parent: "ses_gone".into(),
        ..world.new_session()
    };
    let refused = world.host.create(gone).await;
    assert_eq!(refused, Err(HostError::NoSession("ses_gone".into())));
}

#[tokio::test(start_paused = true)]
async fn what_a_child_inherits_is_kept_once_though_its_parent_went_on_meanwhile() {
    let world = World::new(Build::measured());
    let session = world.child().await;
    for context in ["one message", "one message, and another"] {
        let inherited = Inheritance {
            id: task().inheritance(),
            preamble: "Inherited:".to_owned(),
            context: context.to_owned(),
        };
        assert_eq!(world.host.inject(&session, inherited).await, Ok(()));
    }
    let inbox = world.opencode.sent_to("/synthetic");
    assert_eq!(
        inbox.len(),
        2,
        "the second was refused, and the first counts"
    );
}

#[tokio::test(start_paused = true)]
async fn agents_are_asked_for_until_the_folder_is_loaded() {
    let world = World::new(Build::measured());
    let agents = world.host.agents().await.expect("agents");
    let agents: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
    assert_eq!(agents, ["build", "general", "explore"], "none is hidden");
    let notes = world.host.agent_notes(Some("/another")).await;
    assert_eq!(notes.expect("agents").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_release_knows_whose_child_a_session_is() {
    for (build, keeps, notes) in [
        (Build::measured(), false, false),
        (Build::v2_0_18(), false, true),
        (Build::release(), true, true),
    ] {
        let world = World::new(build);
        let session = world.child().await;
        let info = world
            .opencode
            .with(session.as_str(), |it| it.info.clone())
            .expect("a session");
        let parent = json!(world.parent.as_str());
        assert_eq!(info["parentID"] == parent, keeps);
        let ours = &info["metadata"]["asyncagents"];
        assert_eq!(ours["task"] == json!(task().as_str()), notes);
    }
}

#[tokio::test(start_paused = true)]
async fn agent_and_model_are_set_only_if_they_differ() {
    let world = World::new(Build::measured());
    let session = world.at_work("Count the files").await;
    assert!(world.opencode.sent_to("/agent").is_empty());
    assert!(world.opencode.sent_to("/model").is_empty(), "its parent's");
    let next = Prompt {
        id: task().prompt(1),
        agent: "build".into(),
        model: Some("fake/fake-2#high".into()),
        ..prompt("Measure the folder")
    };
    world
        .host
        .prompt(&session, next)
        .await
        .expect("it is taken");
    assert_eq!(
        world.opencode.sent_to("/agent"),
        [json!({"agent": "build"})]
    );
    let model = json!({"providerID": "fake", "id": "fake-2", "variant": "high"});
    assert_eq!(world.opencode.sent_to("/model"), [json!({"model": model})]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_model_of_its_own_keeps_it() {
    let world = World::new(Build::measured());
    let new = NewSession {
        agent: "explore".into(),
        ..world.new_session()
    };
    world.host.create(new).await.expect("a session");
    let sent = &world.opencode.sent_to("/api/session")[0];
    assert!(sent["model"].is_null(), "{sent}");
    let refused = Prompt {
        model: Some("nonsense".into()),
        ..prompt("Count the files")
    };
    let refused = world.host.prompt(&child_session(&task()), refused).await;
    let why = refused.expect_err("no model").to_string();
    assert!(why.contains("provider/model"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_instructions_of_a_skill_are_in_the_system_prompt() {
    for build in [Build::measured(), Build::v2_0_18(), Build::release()] {
        let world = World::new(build);
        let session = world.child().await;
        let prompted = world.host.prompt(&session, of_skill("Be kind.")).await;
        assert_eq!(prompted, Ok(()));
        let system = world
            .opencode
            .with(session.as_str(), |it| {
                it.instructions["asyncagents"].clone()
            })
            .expect("a session");
        let system = system.as_str().expect("a text").to_owned();
        assert!(system.contains("Be kind."), "{system}");
        assert_eq!(world.opencode.sent_to("/synthetic").len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_that_are_no_system_prompt_come_before_the_prompt() {
    let undescribed = Build {
        is_described: false,
        ..Build::measured()
    };
    let long = "Be kind. ".repeat(2_000);
    for (build, text) in [
        (undescribed, "Be kind."),
        (Build::measured(), long.as_str()),
    ] {
        let mut world = World::new(build);
        let session = world.child().await;
        for _ in 0..2 {
            let prompted = world.host.prompt(&session, of_skill(text)).await;
            assert_eq!(prompted, Ok(()));
        }
        world.until_idle().await;
        let texts = world.texts(&session);
        assert_eq!(texts.len(), 2, "each once");
        assert!(texts[0].contains("Be kind."));
        assert!(texts[1].contains("Count the files"));
        let named = world.opencode.sent_to("/prompt")[0]["id"].clone();
        assert_eq!(named, json!(message(&task().prompt(0))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_is_bound_by_rules_or_by_the_plugin_or_not_run() {
    let bound = |world: &World| NewSession {
        role: of_skill("").role,
        ..world.new_session()
    };
    let world = World::new(Build::measured());
    let refused = world.host.create(bound(&world)).await;
    let why = refused.expect_err("nothing binds it").to_string();
    assert!(why.contains("tools of its skill"), "{why}");
    assert_eq!(world.host.exists(&child_session(&task())).await, Ok(false));

    let world = world.with_settings(Settings {
        plugin_binds: true,
        ..Settings::default()
    });
    assert!(world.host.create(bound(&world)).await.is_ok());

    for build in [Build::v2_0_18(), Build::release()] {
        let world = World::new(build);
        let session = world.host.create(bound(&world)).await.expect("a session");
        let info = world
            .opencode
            .with(session.as_str(), |it| it.info.clone())
            .expect("a session");
        let rules = info["permissions"].as_array().expect("rules");
        let all = json!({"action": "*", "resource": "*", "effect": "deny"});
        assert!(rules.contains(&all), "{rules:?}");
        let shell = json!({"action": "shell", "resource": "git *", "effect": "ask"});
        assert_eq!(rules.last(), Some(&shell), "as its agent may, no more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_left_without_its_rules_is_not_used() {
    let world = World::new(Build::measured());
    let leftover = world.child().await;
    let bound = NewSession {
        role: of_skill("").role,
        ..world.new_session()
    };
    let refused = world.host.create(bound).await;
    let why = refused.expect_err("nothing binds it").to_string();
    assert!(why.contains("tools of its skill"), "{why}");
    assert_eq!(world.host.exists(&leftover).await, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn at_the_depth_limit_our_tools_are_forbidden_where_that_can_be() {
    for build in [Build::measured(), Build::release()] {
        let world = World::new(build);
        let deepest = NewSession {
            may_delegate: false,
            ..world.new_session()
        };
        assert!(world.host.create(deepest).await.is_ok());
        let sent = &world.opencode.sent_to("/api/session")[0];
        let denied = |action: &str| json!({"action": action, "resource": "*", "effect": "deny"});
        let rules = ["subagent", "asyncagents_*"].map(denied);
        assert_eq!(sent["permissions"], json!(rules));
    }
}

/// A prompt of a skill that has `read` and some commands.
fn of_skill(instructions: &str) -> Prompt {
    let only = ["Read", "Bash(git:*)"].map(|tool| tool.parse().expect("a tool"));
    let terms = Terms {
        skill: "kindness".to_owned(),
        tools: Tools {
            only: Some(only.to_vec()),
            ..Tools::default()
        },
        iterations: 5,
        retries: 0,
        iteration_time: None,
        model: None,
        effort: None,
    };
    Prompt {
        role: Some(Role {
            terms,
            instructions: instructions.to_owned(),
        }),
        ..prompt("Count the files")
    }
}
