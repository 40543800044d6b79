//! Skills of the built-in agent: as sub-agents of their own, and in the conversation.

use std::time::Duration;

use asyncagents_core::{
    host_ref::HostRef,
    id::{SessionId, TaskId},
    request::Caller,
    skill_event::{ErrorCode, SkillEvent},
    task::{Outcome, Status, Task},
    trace::{Step, StepKind, ToolResult, Trace, TraceState},
};
use asyncagents_runtime::{Invocation, Invoker, SkillRun};
use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::harness::{Harness, Plan};

pub(crate) const FORK: &str = "description: Analyzes code.\ncontext: fork";

pub(crate) fn caller(session: &SessionId) -> Caller {
    Caller::Session {
        session: session.clone(),
        host: HostRef::engine("test").into(),
        outside: None,
        message: None,
    }
}

/// A skill that a user runs from a session.
pub(crate) fn run_skill(
    harness: &Harness,
    session: &SessionId,
    name: &str,
    request: &str,
) -> SkillRun {
    let invocation = Invocation {
        name: name.to_owned(),
        arguments: request.to_owned(),
        by: Invoker::User,
        session: session.clone(),
        model: None,
    };
    SkillRun::new(
        &harness.manager,
        &harness.skills,
        caller(session),
        invocation,
    )
}

pub(crate) async fn all(mut run: SkillRun) -> Vec<SkillEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    events
}

/// The events of a skill that a user runs.
pub(crate) async fn events(harness: &Harness, name: &str, request: &str) -> Vec<SkillEvent> {
    let session = harness.begin("general").await;
    all(run_skill(harness, &session, name, request)).await
}

/// Events in short, without IDs.
pub(crate) fn short(events: &[SkillEvent]) -> Vec<String> {
    let one = |event: &SkillEvent| match event {
        SkillEvent::Status { message, .. } => format!("status RUNNING {message}"),
        SkillEvent::Message { parts, .. } => {
            let [summary, trace] = parts;
            assert!(trace.starts_with("Full trace: "), "{trace}");
            format!("message {summary}")
        }
        SkillEvent::Error { code, message, .. } => format!("error {} {message}", code.name()),
        SkillEvent::Done {
            completed: true, ..
        } => "done COMPLETED".to_owned(),
        SkillEvent::Done { .. } => "done FAILED".to_owned(),
        SkillEvent::SubAgent { sub_task, .. } => format!("sub-agent {sub_task}"),
    };
    events.iter().map(one).collect()
}

fn chain(events: &[SkillEvent]) -> String {
    let found = events.iter().find_map(|event| match event {
        SkillEvent::Message { parts, .. } => parts[1].strip_prefix("Full trace: "),
        _ => None,
    });
    found.expect("a message").to_owned()
}

/// A run that is over, which is the same summed up, and followed from its beginning.
async fn trace(harness: &Harness, asked: &str) -> Trace {
    let trace = harness.manager.trace(asked).await.expect("a trace");
    let mut follower = harness.manager.follow_trace(asked).await.expect("a run");
    let (runs, head) = follower.next().await.expect("read");
    let mut steps = Vec::new();
    collect_steps(&trace, &mut steps);
    let followed: Vec<Step> = runs.into_iter().flat_map(|run| run.steps).collect();
    assert_eq!(followed, steps);
    assert_eq!(head, without_steps(trace.clone()));
    let (again, _) = follower.next().await.expect("read");
    assert!(again.iter().all(|run| run.steps.is_empty()), "{again:?}");
    let newest = harness.manager.newest_traces(100).await.expect("traces");
    if let Some(summary) = newest.into_iter().find(|run| run.chain == trace.chain) {
        assert_eq!(summary, without_steps(trace.clone()));
    }
    trace
}

fn collect_steps(trace: &Trace, steps: &mut Vec<Step>) {
    steps.extend(trace.steps.iter().cloned());
    let children = trace.children.iter();
    children.for_each(|child| collect_steps(child, steps));
}

fn without_steps(trace: Trace) -> Trace {
    let children = trace.children.into_iter().map(without_steps).collect();
    Trace {
        steps: Vec::new(),
        children,
        ..trace
    }
}

async fn task(harness: &Harness, id: &TaskId) -> Task {
    let all = harness.all_tasks().await;
    let mut tasks = all.into_iter().map(|shown| shown.task);
    tasks.find(|task| task.id == *id).expect("the task")
}

/// The criterion "Skills with `context: fork` create sub-agent", and the test
/// `test_forked_context_spawns_sub_agent`.
#[tokio::test]
async fn seed_004_forked_context_spawns_sub_agent() {
    let script = Script::new().rule(When::always(), Reply::text("All is well."));
    let harness = Harness::new(script).await;
    harness.skill("fork-skill", FORK, "Perform deep analysis.");
    let events = events(&harness, "fork-skill", "analyze code").await;
    assert_eq!(
        short(&events),
        [
            "status RUNNING Spawning sub-agent for skill: fork-skill",
            "message Sub-agent completed: All is well.",
            "done COMPLETED",
        ]
    );
    let request = harness.model.requests().remove(0);
    assert_eq!(request.last(), "analyze code");
    harness.close().await;
}

/// The criterion "Sub-agent runs in isolation (no parent context)", and the test
/// `test_sub_agent_isolation`: not a byte of the parent's conversation is on the wire.
#[tokio::test]
async fn seed_004_sub_agent_isolation() {
    let script = Script::new()
        .rule(
            When::always().system("executing the 'look' skill"),
            Reply::text("Looked."),
        )
        .rule(
            When::turn(0).first("XYZZY-USER-SECRET"),
            Reply::call("read", json!({"path": "secret.txt"})).and_text("XYZZY-SAID"),
        )
        .rule(
            When::turn(1),
            Reply::call("skill", json!({"name": "look", "arguments": "the code"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.write("secret.txt", "XYZZY-READ\n");
    harness.skill("look", FORK, "Look around.");
    harness.run("XYZZY-USER-SECRET: look around").await.said();
    let requests = harness.model.requests();
    let child: Vec<_> = requests
        .iter()
        .filter(|request| request.system().contains("executing the 'look' skill"))
        .collect();
    assert_eq!(child.len(), 1);
    assert!(!child[0].body.contains("XYZZY"), "{}", child[0].body);
    assert!(
        child[0]
            .system()
            .contains("SKILL INSTRUCTIONS:\nLook around.")
    );
    assert!(child[0].system().contains("AVAILABLE TOOLS:\n- read"));
    assert!(
        child[0]
            .system()
            .contains("Execute the task autonomously and report results")
    );
    assert_eq!(child[0].last(), "the code");
    harness.close().await;
}

/// The criterion "Depth limit respected (error if exceeded)": a fork in a fork in a fork.
#[tokio::test]
async fn seed_004_depth_limit_respected() {
    let deeper = |reply: &str| Reply::call("skill", json!({"name": "nest", "arguments": reply}));
    let script = Script::new()
        .rule(When::turn(0).first("level 1"), deeper("level 2"))
        .rule(When::turn(0).first("level 2"), deeper("level 3"))
        .rule(When::turn(1).first("level 2"), Reply::text("No deeper."))
        .rule(When::always(), Reply::text("Back."));
    let harness = Harness::new(script).await;
    harness.skill("nest", FORK, "Call yourself.");
    let session = harness.begin("general").await;
    let events = all(run_skill(&harness, &session, "nest", "level 1")).await;
    assert_eq!(
        short(&events).last().map(String::as_str),
        Some("done COMPLETED")
    );
    let refused = harness.bodies("MAX_DEPTH_EXCEEDED: Maximum sub-agent depth (2) exceeded");
    assert_eq!(refused.len(), 1, "the second level is told, once");
    assert_eq!(harness.all_tasks().await.len(), 2);
    harness.close().await;
}

/// The same as events: an error with its code, then the end, and nothing else.
#[tokio::test]
async fn a_sub_agent_too_deep_is_an_error_event_and_the_end() {
    let plan = Plan {
        runtime: {
            let mut runtime = asyncagents_runtime::Settings::default();
            runtime.limits.depth = 0;
            runtime
        },
        ..Plan::default()
    };
    let harness = Harness::with(Script::new(), plan).await;
    harness.skill("nest", FORK, "!`echo never`");
    let events = events(&harness, "nest", "").await;
    assert_eq!(
        short(&events),
        [
            "error MAX_DEPTH_EXCEEDED Maximum sub-agent depth (0) exceeded",
            "done FAILED",
        ]
    );
    assert!(harness.commands.all().is_empty());
    harness.close().await;
}

/// The criterion "Iteration budget reduced for sub-agents", and the test
/// `test_sub_agent_reduced_budget`: 20 → 10 → 5 and 15 → 7 → 3.
#[rstest]
#[case("max-iterations: 20", 10, 5)]
#[case("license: none", 7, 3)]
#[tokio::test]
async fn seed_004_sub_agent_reduced_budget(
    #[case] head: &str,
    #[case] first: u64,
    #[case] second: u64,
) {
    let script = Script::new()
        .rule(
            When::turn(0).first("outer"),
            Reply::call("skill", json!({"name": "deep", "arguments": "inner"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.skill("deep", &format!("{FORK}\n{head}"), "Go on.");
    let session = harness.begin("general").await;
    all(run_skill(&harness, &session, "deep", "outer")).await;
    let tasks = harness.all_tasks().await;
    let mut budgets: Vec<(u32, u64)> = tasks
        .iter()
        .filter_map(|shown| {
            let terms = shown.task.skill.as_ref()?;
            Some((shown.task.place.depth, terms.iterations))
        })
        .collect();
    budgets.sort_unstable();
    assert_eq!(budgets, [(1, first), (2, second)]);
    harness.close().await;
}

/// The budget is kept: the model is told when it has one answer left, and then it is over.
#[tokio::test]
async fn a_sub_agent_that_does_not_stop_is_stopped_after_its_iterations() {
    let script = Script::new().rule(
        When::always(),
        Reply::call("glob", json!({"pattern": "*"})).and_text("Once more."),
    );
    let harness = Harness::new(script).await;
    harness.skill("deep", &format!("{FORK}\nmax-iterations: 4"), "Go on.");
    let events = events(&harness, "deep", "").await;
    assert_eq!(
        short(&events),
        [
            "status RUNNING Spawning sub-agent for skill: deep",
            "message Sub-agent completed: Failed: the limit of 3 answers is reached",
            "done FAILED",
        ]
    );
    assert_eq!(harness.model.requests().len(), 3);
    harness.close().await;
}

/// The criterion "Parent receives summary (not full output)", and the test
/// `test_sub_agent_result_summarized`.
#[rstest]
#[case(500)]
#[case(501)]
#[tokio::test]
async fn seed_004_sub_agent_result_summarized(#[case] length: usize) {
    let answer = "ü".repeat(length);
    let script = Script::new()
        .rule(
            When::turn(0).system("executing the 'talk' skill"),
            Reply::call("glob", json!({"pattern": "*"}))
                .and_text("PROGRESS LINE")
                .reasoning("A THOUGHT"),
        )
        .rule(
            When::turn(1).system("executing the 'talk' skill"),
            Reply::text(answer.clone()),
        )
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "talk", "background": false})),
        )
        .rule(When::always(), Reply::text("Thank you."));
    let harness = Harness::new(script).await;
    harness.skill("talk", FORK, "Talk a lot.");
    harness.run("Let it talk").await.said();
    let last = harness.model.requests().pop().expect("a request").last();
    let (summary, rest) = last.split_once('\n').expect("two parts");
    let cut = if length > 500 { "... (truncated)" } else { "" };
    let expected = format!("Sub-agent completed: {}{cut}", "ü".repeat(500));
    assert_eq!(summary, expected);
    let chain = rest.strip_prefix("Full trace: ").expect("a reference");
    assert!(
        !last.contains("PROGRESS") && !last.contains("THOUGHT"),
        "{last}"
    );
    assert_eq!(trace(&harness, chain).await.answer, Some(answer));
    harness.close().await;
}

/// The criterion "Full trace available via chain_id reference".
#[tokio::test]
async fn seed_004_full_trace_available_via_chain_id() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"path": "a.txt"})).reasoning("Where is it?"),
        )
        .rule(When::turn(1), Reply::text("It is 7.").usage(100, 40, 9));
    let harness = Harness::new(script).await;
    harness.write("a.txt", "7\n");
    harness.skill("find", FORK, "Find the number.");
    let events = events(&harness, "find", "").await;
    let harness = harness.killed().await;
    let trace = trace(&harness, &chain(&events)).await;
    assert_eq!(trace.state.status(), Status::Completed);
    assert_eq!(trace.skill.as_deref(), Some("find"));
    assert_eq!(trace.request, "Execute the skill 'find'.");
    let kinds: Vec<String> = trace
        .steps
        .iter()
        .map(|step| match &step.what {
            StepKind::Thought { text } => format!("thought {text}"),
            StepKind::Model { text, .. } => format!("model {text}"),
            StepKind::Tool {
                name,
                input,
                result: ToolResult::Done(text),
                ..
            } => format!("tool {name} {input} {}", text.trim()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "thought Where is it?",
            "model ",
            "tool read {\"path\":\"a.txt\"} 1\t7",
            "model It is 7.",
        ]
    );
    assert_eq!(trace.own.spent.turns, 2);
    assert_eq!(trace.own.spent.tool_calls, 1);
    assert_eq!(trace.own.usage.cache_read, 40);
    harness.close().await;
}

/// The criterion "Sub-agent uses skill's allowed_tools": the complete set, and no model-related
/// entry is needed for it to run. A refused tool is an error that the model sees.
#[tokio::test]
async fn seed_004_sub_agent_uses_allowed_tools() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "x", "content": "y"}))
                .and_call("read", json!({"path": "a.txt"}))
                .and_call("bash", json!({"command": "rm -rf /"})),
        )
        .rule(When::turn(1), Reply::text("Only read worked."));
    let harness = Harness::new(script).await;
    harness.write("a.txt", "hello\n");
    let head = format!("{FORK}\nallowed-tools: READ Bash(git log *)");
    harness.skill("careful", &head, "Be careful.");
    let events = events(&harness, "careful", "").await;
    assert_eq!(
        short(&events)[1],
        "message Sub-agent completed: Only read worked."
    );
    let requests = harness.model.requests();
    assert_eq!(requests[0].tool_names(), ["read", "bash"]);
    let seen = requests[1].text();
    assert!(
        seen.contains("there is no tool `write` here; there are read, bash"),
        "{seen}"
    );
    assert!(seen.contains("hello"), "{seen}");
    let refused = "the skill careful may not use bash for this: its tools do not allow it";
    assert!(seen.contains(refused), "{seen}");
    assert!(!seen.contains("tries left"), "a refusal is final: {seen}");
    assert!(!harness.path("x").exists());
    harness.close().await;
}

/// The criterion "Error handling for sub-agent failures": a child that dies in the middle.
#[tokio::test]
async fn seed_004_error_handling_for_sub_agent_failures() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("glob", json!({"pattern": "*"})))
        .rule(
            When::turn(1),
            Reply::status(400).message("the model is gone"),
        );
    let harness = Harness::new(script).await;
    harness.skill("fragile", FORK, "Try.");
    let session = harness.begin("general").await;
    let run = run_skill(&harness, &session, "fragile", "");
    let id = run.task().clone();
    let events = all(run).await;
    let [status, error, done] = &short(&events)[..] else {
        panic!("{events:?}");
    };
    assert_eq!(
        status,
        "status RUNNING Spawning sub-agent for skill: fragile"
    );
    assert!(error.starts_with("error SUBAGENT_ERROR "), "{error}");
    assert!(error.contains("the model is gone"), "{error}");
    assert!(error.contains("(Full trace: "), "{error}");
    assert_eq!(done, "done FAILED");
    let trace = trace(&harness, id.as_str()).await;
    assert!(
        matches!(
            trace.state,
            TraceState::Ended {
                outcome: Outcome::Failed { .. },
                own: false
            }
        ),
        "{:?}",
        trace.state
    );
    assert_eq!(trace.steps.len(), 2, "what it did is there");
    harness.close().await;
}

/// A sub-agent whose process dies goes on in another and is told once, as every task.
#[tokio::test]
async fn a_sub_agent_survives_a_crash() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(When::turn(0), Reply::call("glob", json!({"pattern": "*"})))
        .rule(When::turn(1).times(1), Reply::text("Lost.").behind(&gate))
        .rule(When::turn(1), Reply::text("Here I am."));
    let harness = Harness::with(
        script,
        Plan {
            runtime: asyncagents_runtime::Settings {
                lease: Duration::from_millis(300),
                ..asyncagents_runtime::Settings::default()
            },
            ..Plan::default()
        },
    )
    .await;
    harness.skill("long", FORK, "Take your time.");
    let session = harness.begin("general").await;
    let mut run = run_skill(&harness, &session, "long", "");
    run.next().await.expect("a status");
    while harness.model.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let id = run.task().clone();
    drop(run);
    let harness = harness.killed().await;
    gate.open();
    let ended = async {
        while task(&harness, &id).await.is_live() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("an end");
    assert_eq!(task(&harness, &id).await.status(), Status::Completed);
    assert_eq!(
        trace(&harness, id.as_str()).await.answer.as_deref(),
        Some("Here I am.")
    );
    harness.close().await;
}

/// Forked skills are ordinary tasks: listed, and cancelled by their ID or their sub-agent's.
#[tokio::test]
async fn a_sub_agent_is_cancelled_as_any_task() {
    let gate = Gate::closed();
    let script = Script::new().rule(When::always(), Reply::text("Late.").behind(&gate));
    let harness = Harness::new(script).await;
    harness.skill("slow", FORK, "Be slow.");
    let session = harness.begin("general").await;
    let mut run = run_skill(&harness, &session, "slow", "");
    run.next().await.expect("a status");
    let [listed] = &harness.tasks(&session).await[..] else {
        panic!("one task");
    };
    assert_eq!(listed.brief.description, "skill slow");
    let sub_agent = format!("{}-subagent-1", run.task());
    let cancelled = harness.manager.cancel(&caller(&session), &sub_agent).await;
    cancelled.expect("cancelled");
    let events = all(run).await;
    let [error, done] = &short(&events)[..] else {
        panic!("{events:?}");
    };
    assert!(error.starts_with("error SUBAGENT_ERROR it was cancelled (Full trace: "));
    assert_eq!(done, "done FAILED");
    harness.close().await;
}

/// Two runs of one skill at the same time share nothing.
#[tokio::test]
async fn two_runs_of_one_skill_at_once_do_not_mix() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::turn(0).first("one"),
            Reply::text("One.").behind(&gate),
        )
        .rule(
            When::turn(0).first("two"),
            Reply::text("Two.").behind(&gate),
        );
    let harness = Harness::new(script).await;
    harness.skill("both", FORK, "Say $ARGUMENTS.");
    let session = harness.begin("general").await;
    let (one, two) = (
        run_skill(&harness, &session, "both", "one"),
        run_skill(&harness, &session, "both", "two"),
    );
    let opened = async {
        while harness.model.in_flight() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gate.open();
    };
    let (one, two, ()) = tokio::join!(all(one), all(two), opened);
    assert_eq!(short(&one)[1], "message Sub-agent completed: One.");
    assert_eq!(short(&two)[1], "message Sub-agent completed: Two.");
    assert_ne!(chain(&one), chain(&two));
    for (said, other) in [("one", "two"), ("two", "one")] {
        let body = harness.bodies(&format!("Say {said}.")).remove(0);
        assert!(!body.contains(&format!("Say {other}.")));
    }
    harness.close().await;
}

/// Failures are counted for each call; when no tries are left, it is not run again.
#[tokio::test]
async fn the_same_failing_call_is_tried_as_often_as_the_skill_allows() {
    let read = || Reply::call("read", json!({"path": "missing.txt"}));
    let script = Script::new()
        .rule(When::turn(0), read())
        .rule(When::turn(1), read())
        .rule(When::turn(2), read())
        .rule(When::turn(3), Reply::text("I go another way."));
    let harness = Harness::new(script).await;
    let head = format!("{FORK}\nmax-retries-per-tool: 1");
    harness.skill("stubborn", &head, "Read it.");
    let events = events(&harness, "stubborn", "").await;
    assert_eq!(
        short(&events)[1],
        "message Sub-agent completed: I go another way."
    );
    let requests = harness.model.requests();
    assert!(requests[1].last().ends_with("[1 try left for this call]"));
    assert!(
        requests[2]
            .last()
            .ends_with("[no tries left for this call: go another way]")
    );
    let third = requests[3].last();
    assert!(
        third.starts_with("this call has failed 2 times and was not run again"),
        "{third}"
    );
    let trace = trace(&harness, &chain(&events)).await;
    let retries: Vec<u32> = trace
        .steps
        .iter()
        .filter_map(|step| match &step.what {
            StepKind::Tool { retries, .. } => Some(*retries),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [0, 1, 2]);
    harness.close().await;
}

/// What a skill says about time is kept.
#[tokio::test]
async fn an_iteration_that_takes_too_long_ends_the_run() {
    let gate = Gate::closed();
    let script = Script::new().rule(When::always(), Reply::text("Late.").behind(&gate));
    let harness = Harness::new(script).await;
    let head = format!("{FORK}\ntimeout-per-iteration: 100ms");
    harness.skill("hasty", &head, "Hurry.");
    let events = events(&harness, "hasty", "").await;
    assert_eq!(
        short(&events)[1],
        "message Sub-agent completed: Failed: an iteration took longer than 100ms"
    );
    harness.close().await;
}

/// `timeout` is the task's budget of time.
#[tokio::test]
async fn a_skill_that_takes_too_long_is_ended() {
    let gate = Gate::closed();
    let script = Script::new().rule(When::always(), Reply::text("Late.").behind(&gate));
    let harness = Harness::new(script).await;
    harness.skill("long", &format!("{FORK}\ntimeout: 300ms"), "Wait.");
    let events = events(&harness, "long", "").await;
    let error = &short(&events)[1];
    assert!(
        error.starts_with("error SUBAGENT_ERROR the time limit of 300ms is reached"),
        "{error}"
    );
    harness.close().await;
}

/// The agent profile that a skill names runs it, whatever the case of its letters.
#[tokio::test]
async fn a_skill_names_its_agent_and_unknown_agents_are_listed() {
    let script = Script::new().rule(When::always(), Reply::text("Explored."));
    let harness = Harness::new(script).await;
    harness.skill("look", &format!("{FORK}\nagent: Explore"), "Look.");
    harness.skill("odd", &format!("{FORK}\nagent: Wizard"), "Look.");
    let looked = events(&harness, "look", "").await;
    assert_eq!(short(&looked)[1], "message Sub-agent completed: Explored.");
    let request = harness.model.requests().remove(0);
    assert!(request.system().starts_with("You find things out"));
    assert_eq!(request.tool_names(), ["read", "glob", "grep", "todo"]);
    let odd = events(&harness, "odd", "").await;
    assert_eq!(
        short(&odd),
        [
            "error SUBAGENT_ERROR there is no agent `Wizard`; there are explore, general and plan",
            "done FAILED",
        ]
    );
    harness.close().await;
}

/// In the background the model gets a task ID at once, and is told later: summary and trace.
#[tokio::test]
async fn a_model_that_forks_a_skill_goes_on_and_is_told() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().system("executing the 'count' skill"),
            Reply::text("There are 3.").behind(&gate),
        )
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "count", "arguments": "files"})),
        )
        .rule(When::turn(1), Reply::text("I wait."))
        .rule(When::turn(2), Reply::text("There are 3, I hear."));
    let harness = Harness::new(script).await;
    harness.skill("count", FORK, "Count.");
    harness.skill(
        "secret",
        "description: Hidden.\ndisable-model-invocation: true",
        "x",
    );
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Count the files").await;
    while harness.model.requests().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gate.open();
    harness.ended(&session, &prompt).await.said();
    let requests = harness.model.requests();
    let offered = &requests[0].body;
    assert!(offered.contains("- count: Analyzes code."), "{offered}");
    assert!(!offered.contains("secret"), "{offered}");
    let told = harness.bodies("Sub-agent completed: There are 3.");
    assert_eq!(told.len(), 1);
    let launched = harness.bodies("a sub-agent executes the skill count");
    assert!(!launched.is_empty());
    let last = requests.last().expect("one").last();
    assert!(
        last.contains("✓ **Agent \"skill count: files\" finished in "),
        "{last}"
    );
    assert!(last.contains("\nFull trace: "), "{last}");
    harness.close().await;
}

/// `context: inherit`: the body joins the conversation, with what it asks for filled in.
#[tokio::test]
async fn an_inherited_skill_is_text_for_the_model_that_called_it() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "style", "arguments": "tests docs"})),
        )
        .rule(When::turn(1), Reply::text("I follow it."));
    let harness = Harness::new(script).await;
    let head = "description: How we write.\nallowed-tools: Bash(git status *)";
    harness.skill(
        "style",
        head,
        "Look at $1.\n!`git status --short`\nIn ${CLAUDE_SKILL_DIR}.",
    );
    harness.run("Write").await.said();
    let seen = harness.model.requests()[1].last();
    let folder = harness.path(".asyncagents/skills/style");
    let folder = folder.canonicalize().expect("there");
    let folder = folder.display();
    assert_eq!(
        seen,
        format!(
            "Skill style (its files are in {folder}):\n\n\
             Look at docs.\n<printed by git status --short>\nIn {folder}."
        )
    );
    assert_eq!(harness.commands.all(), ["git status --short"]);
    harness.close().await;
}

/// Commands that nobody has allowed do not run, whatever is tried.
#[rstest]
#[case::not_listed("allowed-tools: Read", "!`id`", "")]
#[case::no_list("license: none", "!`git status`", "")]
#[case::semicolon("allowed-tools: Bash(git *)", "!`git status; id`", "")]
#[case::and("allowed-tools: Bash(git *)", "!`git status && id`", "")]
#[case::background("allowed-tools: Bash(git *)", "!`git status & id`", "")]
#[case::pipe("allowed-tools: Bash(git *)", "!`git status | sh`", "")]
#[case::substitution("allowed-tools: Bash(git *)", "!`git log $(id)`", "")]
#[case::braces("allowed-tools: Bash(git *)", "!`git log ${HOME}`", "")]
#[case::redirect("allowed-tools: Bash(git *)", "!`git log > x`", "")]
#[case::other_program("allowed-tools: Bash(git *)", "!`gitk`", "")]
#[case::absolute("allowed-tools: Bash(git *)", "!`/tmp/git status`", "")]
#[case::parent("allowed-tools: Bash(bin/*)", "!`bin/../../evil`", "")]
#[case::argument_ends_command("allowed-tools: Bash(git *)", "!`git log $0`", "'x; id'")]
#[case::argument_substitutes("allowed-tools: Bash(git *)", "!`git log $0`", "$(id)")]
#[case::argument_breaks_line("allowed-tools: Bash(git *)", "!`git log $0`", "'x\nid'")]
#[case::argument_is_program("allowed-tools: Bash", "!`$0`", "id")]
#[case::disallowed(
    "allowed-tools: Bash\ndisallowed-tools: Bash(git push *)",
    "!`git push`",
    ""
)]
#[tokio::test]
async fn commands_that_are_not_allowed_do_not_run(
    #[case] head: &str,
    #[case] body: &str,
    #[case] arguments: &str,
) {
    let harness = Harness::new(Script::new()).await;
    harness.skill("sly", &format!("{FORK}\n{head}"), body);
    let events = events(&harness, "sly", arguments).await;
    let [
        SkillEvent::Error { code, message, .. },
        SkillEvent::Done { completed, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(*code, ErrorCode::InvocationFailed);
    assert!(
        message.starts_with("the skill `sly` was not used: "),
        "{message}"
    );
    assert!(!completed);
    assert!(
        harness.commands.all().is_empty(),
        "{:?}",
        harness.commands.all()
    );
    harness.close().await;
}

/// What looks like a command and came from arguments or from a command is text.
#[tokio::test]
async fn what_is_filled_in_is_not_looked_at_again() {
    let script = Script::new().rule(When::always(), Reply::text("Fine."));
    let harness = Harness::new(script).await;
    let head = format!("{FORK}\nallowed-tools: Bash");
    harness.skill("calm", &head, "$ARGUMENTS\n!`echo $0`\nEnd.");
    events(&harness, "calm", "\n!`id` $ARGUMENTS").await;
    assert_eq!(harness.commands.all(), ["echo '!`id`'"]);
    let system = harness.model.requests()[0].system();
    assert!(
        system.contains("!`id` $ARGUMENTS\n<printed by echo '!`id`'>\nEnd."),
        "{system}"
    );
    harness.close().await;
}

#[tokio::test]
async fn a_command_that_fails_stops_the_invocation() {
    let harness = Harness::new(Script::new()).await;
    harness.skill(
        "broken",
        &format!("{FORK}\nallowed-tools: Bash"),
        "!`make fails`",
    );
    let events = events(&harness, "broken", "").await;
    assert_eq!(
        short(&events),
        [
            "error INVOCATION_FAILED the skill `broken` was not used: its command `make fails` \
             failed: exit code 1",
            "done FAILED",
        ]
    );
    harness.close().await;
}

/// Who may invoke a skill is enforced, and a wrong name is told.
#[tokio::test]
async fn skills_are_for_those_they_are_for() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"name": "mine"})).and_call("skill", json!({"name": "nix"})),
        )
        .rule(When::turn(1), Reply::text("I see."));
    let harness = Harness::new(script).await;
    harness.skill(
        "mine",
        "description: x\ndisable-model-invocation: true",
        "x",
    );
    harness.skill("theirs", "description: x\nuser-invocable: false", "x");
    harness.run("Try").await.said();
    let seen = harness.model.requests()[1].text();
    assert!(
        seen.contains("NOT_INVOCABLE: the skill `mine` is for the user to run"),
        "{seen}"
    );
    assert!(
        seen.contains("SKILL_NOT_FOUND: there is no skill `nix`"),
        "{seen}"
    );
    let events = events(&harness, "theirs", "").await;
    assert_eq!(
        short(&events),
        [
            "error NOT_INVOCABLE the skill `theirs` is for agents; `user-invocable: false` says so",
            "done FAILED",
        ]
    );
    harness.close().await;
}

/// `include_sub_agent_events`: what the sub-agent does is told too, under its own name.
#[tokio::test]
async fn the_steps_of_a_sub_agent_are_told_to_those_who_want_them() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("glob", json!({"pattern": "*"})))
        .rule(When::turn(1), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.skill("look", FORK, "Look.");
    let session = harness.begin("general").await;
    let invocation = Invocation {
        name: "look".to_owned(),
        arguments: String::new(),
        by: Invoker::User,
        session: session.clone(),
        model: None,
    };
    let (manager, skills) = (&harness.manager, &harness.skills);
    let run = SkillRun::new(manager, skills, caller(&session), invocation).with_sub_agent_events();
    let sub_task = format!("sub-agent {}-subagent-1", run.task());
    let told = short(&all(run).await);
    let steps = told.iter().filter(|event| **event == sub_task).count();
    assert_eq!(steps, 3, "two answers and a tool: {told:?}");
    assert_eq!(told.last().map(String::as_str), Some("done COMPLETED"));
    harness.close().await;
}

/// Costs are the run's own and roll up the tree.
#[tokio::test]
async fn costs_roll_up_from_nested_skills() {
    let prices = r#"{"test/model": {"input": 1.0, "output": 2.0}}"#;
    let script = Script::new()
        .rule(
            When::turn(0).first("outer"),
            Reply::call(
                "skill",
                json!({"name": "deep", "arguments": "inner", "background": false}),
            )
            .usage(100, 0, 10),
        )
        .rule(
            When::turn(0).first("inner"),
            Reply::text("Inner.").usage(1_000, 0, 100),
        )
        .rule(
            When::turn(1).first("outer"),
            Reply::text("Outer.").usage(100, 0, 10),
        );
    let plan = Plan {
        prices: Some(prices.to_owned()),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    harness.skill("deep", FORK, "Go.");
    let events = events(&harness, "deep", "outer").await;
    let trace = trace(&harness, &chain(&events)).await;
    assert_eq!(trace.own.spent.tokens, 220);
    assert_eq!(trace.children.len(), 1);
    let child = &trace.children[0];
    assert_eq!(child.own.spent.tokens, 1_100);
    assert_eq!(child.parent, trace.chain);
    assert_eq!(trace.all.spent.tokens, 1_320);
    assert_eq!(
        trace.all.spent.cost.0,
        trace.own.spent.cost.0 + child.own.spent.cost.0
    );
    harness.close().await;
}

/// Which skills a skill may use is kept, however they are called.
#[rstest]
#[case(json!({"name": "deploy"}))]
#[case(json!({"skill": "deploy"}))]
#[case(json!({"name": "/Deploy", "description": "review"}))]
#[case(json!({"skill": "deploy", "status": "review"}))]
#[tokio::test]
async fn a_skill_uses_only_the_skills_it_may(#[case] call: Value) {
    let script = Script::new()
        .rule(When::turn(0).first("go"), Reply::call("skill", call))
        .rule(
            When::turn(1).first("go"),
            Reply::call("skill", json!({"name": "review"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.skill("deploy", "description: Deploys.", "DEPLOY IT");
    harness.skill("review", "description: Reviews.", "REVIEW IT");
    harness.skill(
        "outer",
        &format!("{FORK}\nallowed-tools: Skill(review)"),
        "Go.",
    );
    events(&harness, "outer", "go").await;
    let requests = harness.model.requests();
    let refused = requests[1].last();
    assert!(refused.contains("may not use skill for this"), "{refused}");
    assert!(
        requests[2].last().ends_with("REVIEW IT"),
        "{}",
        requests[2].last()
    );
    assert!(harness.bodies("DEPLOY IT").is_empty());
    harness.close().await;
}

/// A user's rule about a skill is kept too.
#[tokio::test]
async fn a_rule_about_a_skill_is_kept_however_it_is_called() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("skill", json!({"skill": "/Deploy"})),
        )
        .rule(When::turn(1), Reply::text("I may not."));
    let plan = Plan {
        settings: Box::new(|settings| {
            settings.permissions.deny = vec!["skill(deploy)".parse().expect("a rule")];
        }),
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    harness.skill("deploy", "description: Deploys.", "DEPLOY IT");
    harness.run("Deploy").await.said();
    assert!(harness.bodies("DEPLOY IT").is_empty());
    harness.close().await;
}

/// A skill may want less than its user grants, and not more.
#[tokio::test]
async fn a_skill_does_not_raise_its_users_limits() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let plan = Plan {
        runtime: {
            let mut runtime = asyncagents_runtime::Settings::default();
            runtime.limits.budget.time = Some(Duration::from_secs(60));
            runtime
        },
        ..Plan::default()
    };
    let harness = Harness::with(script, plan).await;
    harness.skill("long", &format!("{FORK}\ntimeout: 24h"), "Wait.");
    harness.skill("short", &format!("{FORK}\ntimeout: 5s"), "Wait.");
    let session = harness.begin("general").await;
    for (name, seconds) in [("long", 60), ("short", 5)] {
        let run = run_skill(&harness, &session, name, "");
        let id = run.task().clone();
        all(run).await;
        let budget = task(&harness, &id).await.budget;
        assert_eq!(budget.time, Some(Duration::from_secs(seconds)), "{name}");
    }
    harness.close().await;
}

/// The time of an iteration is no reason to lose, and repeat, a sub-agent that is waited for.
#[tokio::test]
async fn waiting_for_a_sub_agent_takes_no_time_of_an_iteration() {
    let script = Script::new()
        .rule(
            When::turn(0).first("outer"),
            Reply::call(
                "skill",
                json!({"name": "inner", "arguments": "in", "background": false}),
            ),
        )
        .rule(
            When::turn(0).first("in"),
            Reply::text("Slow.").delay(Duration::from_millis(900)),
        )
        .rule(When::turn(1).first("outer"), Reply::text("Heard."));
    let harness = Harness::new(script).await;
    harness.skill(
        "outer",
        &format!("{FORK}\ntimeout-per-iteration: 400ms"),
        "Go.",
    );
    harness.skill("inner", FORK, "Go.");
    let events = events(&harness, "outer", "outer").await;
    assert_eq!(short(&events)[1], "message Sub-agent completed: Heard.");
    let last = harness.model.requests().pop().expect("one").last();
    assert!(last.starts_with("Sub-agent completed: Slow."), "{last}");
    assert_eq!(harness.all_tasks().await.len(), 2);
    harness.close().await;
}

/// What failed before may work after something has changed.
#[tokio::test]
async fn a_change_gives_a_failing_call_its_tries_back() {
    let read = || Reply::call("read", json!({"path": "later.txt"}));
    let script = Script::new()
        .rule(When::turn(0), read())
        .rule(
            When::turn(1),
            Reply::call("write", json!({"path": "later.txt", "content": "here"})),
        )
        .rule(When::turn(2), read())
        .rule(When::turn(3), Reply::text("Read."));
    let harness = Harness::new(script).await;
    harness.skill(
        "patient",
        &format!("{FORK}\nmax-retries-per-tool: 0"),
        "Read it.",
    );
    let events = events(&harness, "patient", "").await;
    assert_eq!(short(&events)[1], "message Sub-agent completed: Read.");
    let requests = harness.model.requests();
    assert!(
        requests[1]
            .last()
            .ends_with("[no tries left for this call: go another way]")
    );
    assert!(
        requests[3].last().contains("here"),
        "{}",
        requests[3].last()
    );
    harness.close().await;
}

/// A model that a skill names and nobody has here is no reason to fail: its author has others.
#[tokio::test]
async fn a_skill_whose_model_is_not_there_runs_with_its_callers() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    harness.skill("elsewhere", &format!("{FORK}\nmodel: sonnet"), "Go.");
    let events = events(&harness, "elsewhere", "").await;
    assert_eq!(short(&events)[1], "message Sub-agent completed: Done.");
    harness.close().await;
}

/// A model is not told of skills that are hidden from it, not even when it asks for others.
#[tokio::test]
async fn hidden_skills_are_not_named_to_a_model() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("skill", json!({"name": "nix"})))
        .rule(When::turn(1), Reply::text("I see."));
    let harness = Harness::new(script).await;
    harness.skill("open", "description: x", "x");
    harness.skill(
        "hidden",
        "description: x\ndisable-model-invocation: true",
        "x",
    );
    harness.run("Try").await.said();
    let seen = harness.model.requests()[1].last();
    assert_eq!(
        seen,
        "SKILL_NOT_FOUND: there is no skill `nix`; there is open"
    );
    harness.close().await;
}
