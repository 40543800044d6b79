//! What a skill may use binds everything that it launches, in whatever way.

use std::time::Duration;

use asyncagents_core::{
    host_ref::HostRef,
    request::{Caller, ResumeTask},
    task::Status,
};
use asyncagents_models::Effort;
use asyncagents_runtime::Invoker;
use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    harness::{Harness, Plan},
    skills::{FORK, all, caller, events, run_skill, short},
};

fn launch(prompt: &str, fork: bool) -> Value {
    json!({"description": "x", "prompt": prompt, "agent": "general", "fork": fork})
}

/// A child that tries what its skill may not do.
fn trying(fork: bool) -> Script {
    let write = Reply::call("write", json!({"path": "x", "content": "y"}))
        .and_call("bash", json!({"command": "touch y"}));
    Script::new()
        .rule(When::always().last("try it"), write)
        .rule(When::always().last("no tool"), Reply::text("I could not."))
        .rule(
            When::always().last("does not allow it"),
            Reply::text("I could not."),
        )
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("try it", fork)),
        )
        .rule(When::always(), Reply::text("Launched."))
}

#[rstest]
#[case::not("disallowed-tools: Bash, Write", false)]
#[case::only("allowed-tools: Read, Task", false)]
#[case::not_in_a_fork("disallowed-tools: Bash, Write", true)]
#[tokio::test]
async fn a_task_of_a_skill_has_at_most_the_skills_tools(#[case] head: &str, #[case] fork: bool) {
    let harness = Harness::new(trying(fork)).await;
    harness.skill("narrow", &format!("{FORK}\n{head}"), "Launch a task.");
    let told = events(&harness, "narrow", "go").await;
    assert_eq!(
        short(&told).last().map(String::as_str),
        Some("done COMPLETED")
    );
    let tried = harness.bodies("try it");
    assert!(tried.len() > 1, "it was launched and has tried");
    for request in harness.model.requests() {
        let offered = request.tool_names();
        let may = |name: &str| offered.iter().any(|offered| offered == name);
        assert!(!may("bash") && !may("write"), "{offered:?}");
    }
    assert!(!harness.path("x").exists() && !harness.path("y").exists());
    harness.close().await;
}

/// Another process goes on with the task, and within the same limits.
#[tokio::test]
async fn a_task_of_a_skill_is_bound_after_a_crash() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().last("try it").times(1),
            Reply::text("Lost.").behind(&gate),
        )
        .rule(When::always().last("try it"), Reply::text("Done."))
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("try it", false)),
        )
        .rule(When::always(), Reply::text("Launched."));
    let plan = Plan {
        runtime: asyncagents_runtime::Settings {
            lease: Duration::from_millis(300),
            ..asyncagents_runtime::Settings::default()
        },
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let head = format!("{FORK}\nallowed-tools: Read, Task");
    harness.skill("narrow", &head, "Launch a task.");
    let session = harness.begin("general").await;
    let mut run = run_skill(&harness, &session, "narrow", "go");
    run.next().await.expect("a status");
    let asked = |harness: &Harness| {
        let requests = harness.model.requests();
        let asked = requests.into_iter();
        asked
            .filter(|request| request.last().contains("try it"))
            .collect::<Vec<_>>()
    };
    while asked(&harness).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(run);
    let harness = harness.killed().await;
    gate.open();
    let ended = async {
        while asked(&harness).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while harness
            .all_tasks()
            .await
            .iter()
            .any(|shown| shown.task.is_live())
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("an end");
    for request in asked(&harness) {
        let offered = request.tool_names();
        assert!(offered.contains(&"read".to_owned()), "{offered:?}");
        assert!(!offered.contains(&"bash".to_owned()), "{offered:?}");
    }
    harness.close().await;
}

/// A task with more tools is no way around either.
#[tokio::test]
async fn a_skill_does_not_go_on_with_a_task_that_may_do_more() {
    let script = Script::new()
        .rule(When::always().first("free task"), Reply::text("Free."))
        .rule(When::always().last("own task"), Reply::text("Own."))
        .rule(
            When::turn(0).first("go"),
            Reply::call("asyncagents_task", launch("own task", false)),
        )
        .rule(When::always(), Reply::text("Launched."));
    let harness = Harness::new(script).await;
    harness.skill(
        "narrow",
        &format!("{FORK}\nallowed-tools: Read, Task"),
        "Go.",
    );
    let session = harness.begin("general").await;
    let args = asyncagents_core::request::TaskArgs {
        prompt: "free task".to_owned(),
        agent: "general".to_owned(),
        ..asyncagents_core::request::TaskArgs::default()
    };
    let free = harness.manager.task(&caller(&session), args).await;
    let free = free.expect("launched").shown.task.id;
    let run = run_skill(&harness, &session, "narrow", "go");
    let skill = run.task().clone();
    all(run).await;
    let tasks = harness.all_tasks().await;
    assert!(
        tasks
            .iter()
            .all(|shown| shown.task.status() == Status::Completed)
    );
    let own = tasks
        .iter()
        .find(|shown| shown.task.place.above.as_ref() == Some(&skill));
    let own = own.expect("its task").task.id.clone();
    let inside = Caller::Session {
        session: skill.session(),
        host: HostRef::engine("test").into(),
        outside: None,
        message: None,
    };
    let resume = |task: &asyncagents_core::id::TaskId| {
        let resume = ResumeTask {
            task: task.to_string(),
            prompt: "again".to_owned(),
            ignored: Vec::new(),
        };
        harness.manager.resume(&inside, resume)
    };
    let refused = resume(&free).await.expect_err("refused").to_string();
    assert!(
        refused.contains("was not launched by the skill `narrow` and has other tools"),
        "{refused}"
    );
    resume(&own).await.expect("resumed");
    harness.close().await;
}

/// A skill within a skill has its own tools, as far as the outer one has them.
#[tokio::test]
async fn a_skill_within_a_skill_has_what_both_have() {
    let script = Script::new()
        .rule(
            When::always().system("executing the 'inner' skill"),
            Reply::text("Looked."),
        )
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "inner", "background": false})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    let outer = "allowed-tools: Read, Bash(git *), Skill";
    harness.skill("outer", &format!("{FORK}\n{outer}"), "Go.");
    let inner = "allowed-tools: Grep, Read, Bash(git log *)";
    harness.skill("inner", &format!("{FORK}\n{inner}"), "Look.");
    events(&harness, "outer", "go").await;
    let requests = harness.model.requests();
    let inner = requests
        .iter()
        .find(|request| request.system().contains("'inner'"));
    let inner = inner.expect("asked");
    assert_eq!(inner.tool_names(), ["read", "bash"]);
    let told = "(only `git log *`; only `git *`)";
    assert!(inner.system().contains(told), "{}", inner.system());
    harness.close().await;
}

/// Claude Code's usual agent, the skill's folder, and how hard the model thinks.
#[tokio::test]
async fn a_skill_of_claude_code_runs_and_finds_its_files() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let plan = Plan {
        settings: Box::new(|settings| settings.effort = Some(Effort::High)),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    let head =
        format!("{FORK}\nagent: general-purpose\neffort: low\nallowed-tools: Read Bash(git log *)");
    harness.skill("pdf", &head, "Read reference.md at ${CLAUDE_EFFORT}.");
    let told = events(&harness, "pdf", "merge").await;
    assert_eq!(short(&told)[1], "message Sub-agent completed: Done.");
    let request = harness.model.requests().remove(0);
    let system = request.system();
    let folder = harness.path(".asyncagents/skills/pdf");
    let folder = folder.canonicalize().expect("there");
    let files = format!("The files of this skill are in {};", folder.display());
    assert!(system.contains("Read reference.md at low.\n\n"), "{system}");
    assert!(system.contains(&files), "{system}");
    assert!(system.contains("(only `git log *`)"), "{system}");
    let thinking = &request.json()["thinking"]["budget_tokens"];
    let usual = harness.run("Think as ever").await;
    usual.said();
    let requests = harness.model.requests();
    let usual = &requests.last().expect("one").json()["thinking"]["budget_tokens"];
    assert_eq!(thinking.as_u64(), Some(4_000));
    assert!(usual.as_u64() > Some(4_000), "{usual}");
    // What a project may ask for is no more than its user has set.
    harness.skill("eager", "effort: max", "Think.");
    for (most, expected) in [(Some(Effort::Low), Effort::Low), (None, Effort::High)] {
        let skills = harness.skills.clone().with_effort(most);
        let found = skills.find("eager", Invoker::User).await.expect("found");
        assert_eq!(found.skill.manifest.effort, Some(expected));
    }
    harness.close().await;
}

/// A call that can never succeed is not to be tried again; a skill without tools is told so.
#[tokio::test]
async fn what_no_try_can_change_has_no_tries_left() {
    let script = Script::new()
        .rule(
            When::turn(0).system("'bare'"),
            Reply::call("read", json!({"path": "x"})),
        )
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "nosuch"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.skill("bare", &format!("{FORK}\nallowed-tools: []"), "Go.");
    harness.skill("broken", "timeout: soon", "Go.");
    harness.skill("asks", FORK, "Go.");
    events(&harness, "bare", "").await;
    let seen = harness.model.requests()[1].last();
    assert!(
        seen.contains("there is no tool `read` here; there are none"),
        "{seen}"
    );
    events(&harness, "asks", "").await;
    let seen = harness.model.requests()[3].last();
    assert!(seen.starts_with("SKILL_NOT_FOUND: "), "{seen}");
    assert!(!seen.contains("left"), "{seen}");
    let broken = events(&harness, "broken", "").await;
    assert!(
        short(&broken)[0].starts_with("error SKILL_BROKEN the skill `broken` cannot be used: "),
        "{broken:?}"
    );
    harness.close().await;
}
