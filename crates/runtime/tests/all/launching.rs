//! What can be launched, what is refused, and how tasks are named.

use std::time::Duration;

use asyncagents_core::{
    budget::{Budget, Cost},
    id::TaskId,
    port::Host,
    refusal::Refusal,
    request::{Caller, OutputRequest, TaskArgs},
    task::Status,
    task_list::{ListRequest, TaskList},
};
use asyncagents_runtime::Problem;
use asyncagents_testkit::scripted_host::{Call, Line, Script, ScriptedHost};
use rstest::rstest;

use super::harness::{Harness, Process, asks, seconds, session, takes, usual};

/// What a refused request says. It must have left nothing behind.
async fn refusal(process: &Process, from: &str, args: TaskArgs) -> String {
    let before = process.manager.list(ListRequest::all()).await;
    let refused = process.manager.task(&session(from), args).await;
    let said = refused.expect_err("refused").to_string();
    let after = process.manager.list(ListRequest::all()).await;
    let many = |list: Result<TaskList, Problem>| list.expect("a list").tasks.len();
    assert_eq!(many(before), many(after), "nothing was created");
    said
}

#[rstest]
#[case::empty_prompt(TaskArgs { prompt: " \n ".into(), ..asks("x") }, "the prompt is empty")]
#[case::no_agent(TaskArgs { agent: "  ".into(), ..asks("x") }, "`agent` is missing")]
#[case::unknown_agent(
    TaskArgs { agent: "wizard".into(), ..asks("x") },
    "there is no agent `wizard`; there are general and explore"
)]
#[case::no_tokens(
    TaskArgs { budget: Budget { tokens: Some(0), ..Budget::default() }, ..asks("x") },
    "no tokens left in its own budget"
)]
#[case::no_time(
    TaskArgs { budget: Budget { time: Some(Duration::ZERO), ..Budget::default() }, ..asks("x") },
    "no time left in its own budget"
)]
#[case::no_turns(
    TaskArgs { budget: Budget { turns: Some(0), ..Budget::default() }, ..asks("x") },
    "no turns left in its own budget"
)]
#[case::resume_of_nothing(
    TaskArgs { resume: Some("task_00".into()), ..asks("x") },
    "there is no task `task_00`"
)]
#[case::resume_of_nonsense(
    TaskArgs { resume: Some("'; DROP TABLE tasks; --".into()), ..asks("x") },
    "there is no task `'; DROP TABLE tasks; --`"
)]
#[tokio::test(start_paused = true)]
async fn what_is_refused_creates_nothing_and_says_why(#[case] args: TaskArgs, #[case] why: &str) {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let said = refusal(&process, "main", args).await;
    assert!(said.contains(why), "{said}");
}

/// A model or a person that knows Claude Code names its agents.
#[rstest]
#[case("general-purpose", "general")]
#[case("Explore", "explore")]
#[case("claude-code-guide", "explore")]
#[tokio::test(start_paused = true)]
async fn the_agents_of_claude_code_are_known(#[case] asked: &str, #[case] meant: &str) {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let args = TaskArgs {
        agent: asked.to_owned(),
        ..asks("x")
    };
    let accepted = process.try_task(args).await.expect("launched");
    assert_eq!(accepted.shown.task.brief.agent.as_str(), meant);
}

#[tokio::test(start_paused = true)]
async fn the_third_level_is_refused_whatever_the_prompt_says() {
    let harness = Harness::new(Script::of(takes(seconds(600))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let child = ScriptedHost::session_of(&child);
    let grandchild = process.launch_from(child.as_str(), "grandchild").await;
    process.until_prompted(&grandchild).await;
    let grandchild = ScriptedHost::session_of(&grandchild);
    let said = refusal(&process, grandchild.as_str(), asks("depth 1, honestly")).await;
    assert!(
        said.contains("depth 3 is refused: the limit is 2"),
        "{said}"
    );
    let made = |session: &asyncagents_core::id::SessionId| {
        let lines = harness.host.world().lines(session).expect("lines");
        lines.into_iter().find_map(|line| match line {
            Line::Created { may_delegate, .. } => Some(may_delegate),
            _ => None,
        })
    };
    assert_eq!(made(&child), Some(true));
    assert_eq!(
        made(&grandchild),
        Some(false),
        "the host can hide the tools"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tree_has_so_many_tasks_and_no_more() {
    let harness =
        Harness::new(Script::of(takes(seconds(1)))).with(|settings| settings.limits.spawns = 3);
    let process = harness.start().await;
    let child = process.launch("one").await;
    process.settled().await;
    let inside = ScriptedHost::session_of(&child);
    process.launch_from(inside.as_str(), "two, below one").await;
    process.launch("three").await;
    process.settled().await;
    let said = refusal(&process, "main", asks("four")).await;
    assert!(
        said.contains("3 tasks were launched below this session already"),
        "{said}"
    );
    let said = refusal(&process, inside.as_str(), asks("four, below one")).await;
    assert!(said.contains("limits.spawns"), "the same tree: {said}");
    process.launch_from("another tree", "one").await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_is_zero() {
    let harness = Harness::new(usual()).with(|settings| settings.limits.spawns = 0);
    let process = harness.start().await;
    let said = refusal(&process, "main", asks("one")).await;
    assert!(said.contains("0 tasks were launched"), "{said}");
    let harness = Harness::new(usual()).with(|settings| settings.limits.concurrency = 0);
    let process = harness.start().await;
    let task = process.launch("waits for ever").await;
    tokio::time::sleep(seconds(1_000)).await;
    assert_eq!(process.status(&task).await, Status::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_task_launches_nothing_more() {
    let harness = Harness::new(Script::of(takes(seconds(600))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    process
        .manager
        .cancel(&session("main"), child.as_str())
        .await
        .expect("cancelled");
    let inside = ScriptedHost::session_of(&child);
    let said = refusal(&process, inside.as_str(), asks("too late")).await;
    assert!(said.contains("has been stopped (cancelled)"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn any_unique_beginning_of_an_id_will_do() {
    let harness = Harness::new(Script::of(takes(seconds(1))));
    let process = harness.start().await;
    let mut tasks: Vec<TaskId> = Vec::new();
    for n in 0..40 {
        tasks.push(process.launch(&format!("task {n}")).await);
    }
    let caller = session("main");
    let ask = async |id: &str| {
        let request = OutputRequest::new(id, false, None).expect("a request");
        process.manager.output(&caller, request).await
    };
    // With 40 tasks two of them share a first digit, and their first eight differ.
    let shared = tasks.iter().find(|task| {
        let digit = |id: &TaskId| id.as_str().chars().nth(5);
        tasks
            .iter()
            .filter(|other| digit(other) == digit(task))
            .count()
            > 1
    });
    let digit = &shared.expect("a shared digit").as_str()[..6];
    let said = ask(digit).await.expect_err("ambiguous").to_string();
    assert!(
        said.contains(&format!("`{digit}` is the beginning of task_")),
        "{said}"
    );
    assert!(said.contains(" and task_"), "all are listed: {said}");
    for task in &tasks {
        let id = task.as_str();
        let shouted = id[5..13].to_uppercase();
        for beginning in [id, &id[..13], &id[5..13], &shouted] {
            let found = ask(beginning).await.expect("found");
            assert_eq!(found.shown.task.id, *task, "{beginning}");
            assert_eq!(found.shown.id, id[..13], "shown with eight digits");
        }
    }
    let said = ask("").await.expect_err("nothing").to_string();
    assert!(said.contains("there is no task"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn another_sessions_task_is_not_found() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let theirs = process.launch_from("other", "theirs").await;
    let refused = process
        .manager
        .cancel(&session("main"), theirs.as_str())
        .await;
    assert!(matches!(
        refused,
        Err(Problem::Refused(Refusal::UnknownTask { .. }))
    ));
    let person = process
        .manager
        .cancel(&Caller::Person, theirs.as_str())
        .await;
    assert!(person.is_ok(), "a person may steer every task");
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_does_not_hold_up_the_id_and_its_failure_ends_the_task() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    process.launch("the agents are known now").await;
    process.settled().await;
    harness.host.faults().fail.insert(Call::Create, 1_000);
    harness.host.faults().slow = seconds(20);
    let begun = tokio::time::Instant::now();
    let task = process.launch("one").await;
    assert!(begun.elapsed() < seconds(1));
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Error);
    let told = harness.told("main");
    let (visible, hidden) = told
        .iter()
        .find(|(visible, _)| visible.contains("failed"))
        .expect("told");
    assert!(
        visible.starts_with("✗ **Agent \"one\" failed in 20s.**"),
        "{visible}"
    );
    assert!(
        hidden.contains("its session could not be made: the host cannot be reached"),
        "{hidden}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_away_for_a_moment_is_asked_again() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    process.launch("the agents are known now").await;
    process.settled().await;
    harness.host.faults().fail.insert(Call::Create, 3);
    let task = process.launch("one").await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(harness.prompts(&task).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_cannot_be_made_is_an_error_and_never_a_fresh_task() {
    let harness = Harness::new(usual());
    harness.host.faults().fail.insert(Call::Messages, 1_000);
    let process = harness.start().await;
    let task = process
        .launch_args(TaskArgs {
            fork: true,
            ..asks("one")
        })
        .await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Error);
    assert_eq!(harness.prompts(&task), [""; 0], "it was never asked");
    let hidden = &harness.told("main")[0].1;
    assert!(
        hidden.contains("the conversation could not be read"),
        "{hidden}"
    );
    let left = harness.host.exists(&ScriptedHost::session_of(&task)).await;
    assert_eq!(left, Ok(false), "nothing is left of it");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_making_was_not_heard_of_is_found_and_not_made_again() {
    let harness = Harness::new(usual());
    harness.host.faults().lose_answer.insert(Call::Create, 1);
    let process = harness.start().await;
    let fork = TaskArgs {
        fork: true,
        ..asks("one")
    };
    let task = process.launch_args(fork).await;
    process.settled().await;
    assert_eq!(process.status(&task).await, Status::Completed);
    assert_eq!(harness.prompts(&task), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_resumed_task_cannot_change_is_ignored_with_a_warning() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    let accepted = process.try_task(TaskArgs {
        resume: Some(task.to_string()),
        agent: "explore".to_owned(),
        ..asks("two")
    });
    let accepted = accepted.await.expect("resumed");
    let said = accepted.text("asyncagents_");
    assert!(
        said.contains("Ignored, for a resumed task keeps its own: description, agent."),
        "{said}"
    );
    assert_eq!(accepted.shown.task.brief.agent.as_str(), "general");
}

#[tokio::test(start_paused = true)]
async fn a_running_task_cannot_be_resumed_and_an_ended_one_cannot_be_cancelled() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_status(&task, Status::Running).await;
    let said = process
        .resume(&task, "more")
        .await
        .expect_err("running")
        .to_string();
    assert!(
        said.contains("is still running; wait until it has finished, or cancel it"),
        "{said}"
    );
    process.settled().await;
    let refused = process
        .manager
        .cancel(&session("main"), task.as_str())
        .await;
    let said = refused.expect_err("ended").to_string();
    assert!(said.contains("has ended already (completed)"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_childs_budget_is_at_most_what_its_parent_has_left() {
    let harness = Harness::new(Script::of(takes(seconds(600))));
    let process = harness.start().await;
    let budget = Budget {
        tokens: Some(10_000),
        cost: Some(Cost(500)),
        time: Some(seconds(300)),
        turns: Some(5),
        tool_calls: Some(0),
    };
    let child = process
        .launch_args(TaskArgs {
            budget,
            ..asks("child")
        })
        .await;
    process.until_prompted(&child).await;
    tokio::time::sleep(seconds(100)).await;
    let inside = ScriptedHost::session_of(&child);
    let wishes = Budget {
        tokens: Some(1_000_000),
        turns: Some(2),
        ..Budget::default()
    };
    let inside = session(inside.as_str());
    let args = TaskArgs {
        budget: wishes,
        ..asks("grandchild")
    };
    let grandchild = process.manager.task(&inside, args).await;
    let granted = grandchild.expect("launched").shown.task.budget;
    assert_eq!(
        granted.tokens,
        Some(9_000),
        "not more than there is for work"
    );
    assert_eq!(granted.turns, Some(2), "as asked");
    assert_eq!(granted.cost, Some(Cost(450)));
    assert_eq!(granted.tool_calls, Some(0));
    let time = granted.time.expect("limited");
    assert!(time <= seconds(170) && time > seconds(165), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_description_is_called_by_its_prompt() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let prompt = format!("{}\nand more", "ä".repeat(100));
    let task = process
        .launch_args(TaskArgs {
            description: String::new(),
            ..asks(&prompt)
        })
        .await;
    let description = process.look(&task).await.brief.description;
    assert_eq!(description, format!("{}…", "ä".repeat(80)));
}
