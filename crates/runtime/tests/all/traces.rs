//! Skills and traces where the host is not the built-in agent: what its reports and its own
//! sums say.

use std::{fs, sync::Arc, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{
    agent::ToolOutcome,
    id::{SessionId, TaskId},
    port::Commands,
    request::{LaunchTask, ResumeTask},
    skill::{Skill, UsualTerms},
    task::{Outcome, State, Status},
    tool_set,
    trace::TraceState,
};
use asyncagents_runtime::{SkillAround, SkillDirs, SkillPlaces, Skills, ToolDoor};
use asyncagents_testkit::scripted_host::{Child, Script, Step};
use rstest::rstest;

use super::harness::{Harness, Process, key, seconds, session, tool, turn};

fn skill(head: &str) -> LaunchTask {
    let text = format!("---\n{head}\n---\nLook.");
    let skill = Skill::parse("look", &text).expect("a skill");
    let body = skill.body.clone();
    LaunchTask::of_skill(&skill.manifest, "", body, UsualTerms::default())
}

async fn launch(process: &Process, task: LaunchTask) -> TaskId {
    let launched = process.manager.launch(&session("main"), task).await;
    launched.expect("launched").shown.task.id
}

fn child(when: &str, steps: Vec<Step>) -> Child {
    Child {
        when: Some(when.to_owned()),
        steps,
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_is_ended_after_its_iterations_where_its_host_counts_none() {
    let turns = (0..9).flat_map(|_| [turn(10), Step::Wait(seconds(1))]);
    let harness = Harness::new(Script::of(turns.collect::<Vec<_>>()));
    let process = harness.start().await;
    let id = launch(&process, skill("max-iterations: 8")).await;
    process.until_status(&id, Status::Error).await;
    let why = "the limit of 4 iterations is reached".to_owned();
    let trace = process.manager.trace(id.as_str()).await.expect("a trace");
    let outcome = Outcome::Failed { why };
    assert_eq!(trace.state, TraceState::Ended { outcome, own: true });
    assert_eq!(trace.own.spent.turns, 5);
    assert_eq!(trace.own.spent.tokens, 50);
    let other = launch(&process, skill("max-iterations: 18")).await;
    process.until_status(&other, Status::Completed).await;
    process.settled().await;
}

/// What it may do is in its launch, so without that it does nothing at all, and its parent knows.
#[rstest]
#[case::no_json("UPDATE events SET body = 'torn' WHERE kind = 'launched'")]
#[case::no_skill("UPDATE events SET body = json_remove(body, '$.skill') WHERE kind = 'launched'")]
#[tokio::test(start_paused = true)]
async fn a_skill_whose_launch_is_damaged_ends_before_it_begins(#[case] damage: &str) {
    let harness = Harness::new(Script::of([Step::Answer("Done.".to_owned())]));
    let manager = harness.manager();
    let launched = manager
        .launch(&session("main"), skill("context: fork"))
        .await;
    let id = launched.expect("launched").shown.task.id;
    harness.damage(damage);
    let process = harness.start().await;
    process.until_status(&id, Status::Error).await;
    process.settled().await;
    assert_eq!(harness.prompts(&id).len(), 0);
    assert_eq!(harness.told("main").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_trace_has_the_sums_of_the_host_also_of_what_nobody_heard() {
    let steps = vec![turn(70), tool("read"), Step::Wait(seconds(3)), turn(30)];
    let harness = Harness::new(Script::of(steps));
    harness.host.faults().mute = true;
    let process = harness.start().await;
    let id = process.launch("count").await;
    process.until_status(&id, Status::Completed).await;
    let trace = process.manager.trace(id.as_str()).await.expect("a trace");
    assert!(trace.steps.is_empty(), "{:?}", trace.steps);
    assert_eq!(trace.own.spent.tokens, 100);
    assert_eq!((trace.own.spent.turns, trace.own.spent.tool_calls), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_is_below_whoever_asked_for_it_and_has_its_own_costs() {
    let script = Script {
        children: vec![
            child("lead", vec![turn(1), Step::Hang]),
            child("work", vec![turn(100)]),
        ],
        ..Script::of([])
    };
    let harness = Harness::new(script).with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    let lead = process.launch("lead").await;
    process.until_prompted(&lead).await;
    let inside = process.look(&lead).await.session.expect("a session");
    let work = process.launch_from(inside.as_str(), "work").await;
    process.until_status(&work, Status::Completed).await;
    let caller = session(inside.as_str());
    for _ in 0..2 {
        let resume = ResumeTask {
            task: work.to_string(),
            prompt: "more work".to_owned(),
            ignored: Vec::new(),
        };
        process
            .manager
            .resume(&caller, resume)
            .await
            .expect("resumed");
        process.until_status(&work, Status::Completed).await;
    }
    let trace = process.manager.trace(lead.as_str()).await.expect("a trace");
    assert_eq!(trace.children.len(), 3, "the launch and two follow-ups");
    assert!(
        trace
            .children
            .iter()
            .all(|child| child.parent == trace.chain)
    );
    assert!(
        trace
            .children
            .iter()
            .all(|child| child.own.spent.tokens == 100)
    );
    assert_eq!(trace.all.spent.tokens, 301);
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_that_has_not_begun_has_cost_nothing() {
    let script = Script {
        children: vec![
            child("block", vec![Step::Hang]),
            child("work", vec![turn(100)]),
        ],
        ..Script::of([])
    };
    let harness = Harness::new(script).with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    let work = process.launch("work").await;
    process.until_status(&work, Status::Completed).await;
    let block = process.launch("block").await;
    process.until_prompted(&block).await;
    process.resume(&work, "more work").await.expect("resumed");
    let queued = process.look(&work).await.state;
    assert!(matches!(queued, State::Queued { .. }), "{queued:?}");
    let trace = process.manager.trace(work.as_str()).await.expect("a trace");
    assert_eq!(trace.state, TraceState::Queued);
    assert_eq!(trace.own.spent.tokens, 0);
}

struct NoCommands;

#[async_trait]
impl Commands for NoCommands {
    async fn run(&self, command: &str) -> Result<String, String> {
        Err(format!("nothing runs {command}"))
    }
}

/// A sub-agent that is waited for may end before its caller has got as far as waiting.
#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_skill_from_its_launch_on_is_not_also_told() {
    let harness = Harness::new(Script::of([Step::Answer("At once.".to_owned())]))
        .looking_every(Duration::from_millis(50));
    // The worker of another process has done all before the caller's next write.
    let process = harness.start().await;
    let caller = harness.slow_manager(Duration::from_millis(500));
    let folder = tempfile::tempdir().expect("a folder");
    let skills = folder.path().join(".claude/skills/quick");
    fs::create_dir_all(&skills).expect("made");
    let text = "---\ncontext: fork\nbackground: false\n---\nBe quick.";
    fs::write(skills.join("SKILL.md"), text).expect("written");
    let places = SkillPlaces::usual(&SkillAround {
        workspace: Some(folder.path()),
        ..SkillAround::default()
    });
    let found = Skills::new(
        SkillDirs::new(places),
        Arc::new(NoCommands),
        folder.path().to_owned(),
    );
    let main = SessionId::from("main");
    let door = ToolDoor::new(&caller, key().into()).with_skills(found);
    for _ in 0..5 {
        let input = r#"{"name": "quick"}"#;
        let call = tool_set::prepare("asyncagents_", "asyncagents_skill", input);
        let used = door.call_from(&main, None, call.expect("a call").request);
        let ToolOutcome::Done(said) = used.await.outcome else {
            panic!("a summary");
        };
        assert!(
            said.starts_with("Sub-agent completed: At once.\n"),
            "{said}"
        );
    }
    process.settled().await;
    assert_eq!(harness.told("main").len(), 0);
}
