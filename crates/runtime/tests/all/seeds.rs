//! The scenarios of the original requirements that speak of tasks. The name says which seed
//! and scenario.

use asyncagents_core::port::Host;
use asyncagents_core::{
    answer,
    refusal::Refusal,
    request::TaskArgs,
    task::{Context, Status},
};
use asyncagents_runtime::Problem;
use asyncagents_testkit::opencode::{Session, result, text};
use asyncagents_testkit::scripted_host::{Line, Script, ScriptedHost};

use super::{
    harness::{Harness, asks, seconds, takes, usual},
    refusals::refused_resume,
};

fn forked(prompt: &str) -> TaskArgs {
    TaskArgs {
        fork: true,
        ..asks(prompt)
    }
}

/// A parent that has read twenty long files and talked about them.
fn with_conversation(script: Script) -> Script {
    let mut session = Session::new()
        .user("Why is the login slow?")
        .agent(vec![text("I read the files.")]);
    for n in 0..20 {
        // Each is another text: what is repeated is not cut.
        session = session.agent(vec![result(&format!("{n:04000}"))]);
    }
    let session = session.agent(vec![result("fn login() { wait() }")]);
    Script {
        conversation: Some(session.json()),
        ..script
    }
}

#[tokio::test(start_paused = true)]
async fn seed_003_retrieve_completed_task_results() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("the slow query").await;
    process.settled().await;
    let report = process.output(&task).await;
    assert_eq!(report.answer.as_deref(), Some("Found: the slow query"));
    let first = process.look(&task).await.retrieved_at;
    assert!(first.is_some(), "marked with the time");
    tokio::time::sleep(seconds(5)).await;
    process.output(&task).await;
    assert_eq!(process.look(&task).await.retrieved_at, first, "set once");
}

#[tokio::test(start_paused = true)]
async fn seed_003_check_running_task_status() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("the slow query").await;
    process.until_status(&task, Status::Running).await;
    tokio::time::sleep(seconds(2)).await;
    let begun = tokio::time::Instant::now();
    let report = process.output(&task).await;
    assert!(begun.elapsed() < seconds(1), "it does not wait");
    assert_eq!(report.shown.task.status(), Status::Running);
    assert_eq!(report.answer, None);
    let said = answer::output(&report, process.manager.now(), answer::Reader::Person);
    assert!(said.contains("tool call"), "{said}");
    assert!(said.contains("grep 1"), "{said}");
    assert!(said.contains("last activity"), "{said}");
    assert_eq!(
        report.shown.task.retrieved_at, None,
        "there is no result yet"
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_task_persistence_until_cleared() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("something").await;
    process.settled().await;
    tokio::time::sleep(seconds(1_800)).await;
    assert_eq!(process.output(&task).await.shown.task.id, task);
    process
        .manager
        .clear(&"main".into())
        .await
        .expect("cleared");
    assert_eq!(process.list("main").await, "No background tasks found");
}

#[tokio::test(start_paused = true)]
async fn seed_003_task_persistence_until_the_parent_session_is_deleted() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let process = harness.start().await;
    let task = process.launch("something").await;
    process.until_prompted(&task).await;
    let parent = "main".into();
    harness.host.delete(&parent).await.expect("deleted");
    process.settled().await;
    assert_eq!(process.list("main").await, "No background tasks found");
    let aborted = |line: &Line| matches!(line, Line::Aborted { .. });
    assert!(
        harness.child(&task).iter().any(aborted),
        "the child is stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_resume_completed_task_with_follow_up_prompt() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("the slow query").await;
    process.settled().await;
    let accepted = process
        .resume(&task, "and the fast one?")
        .await
        .expect("resumed");
    assert_eq!(accepted.shown.task.id, task);
    assert_eq!(accepted.shown.task.run, 1);
    let said = accepted.text("asyncagents_");
    assert!(said.contains("resume #1"), "{said}");
    process.until_status(&task, Status::Resumed).await;
    process.until_status(&task, Status::Completed).await;
    let session = ScriptedHost::session_of(&task);
    assert_eq!(process.look(&task).await.session, Some(session), "the same");
    assert_eq!(
        harness.prompts(&task),
        ["the slow query", "and the fast one?"],
        "with the whole conversation before it"
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_wait_for_resume_response() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("the slow query").await;
    process.settled().await;
    process
        .resume(&task, "and the fast one?")
        .await
        .expect("resumed");
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some("Found: and the fast one?"));
}

#[tokio::test(start_paused = true)]
async fn seed_003_handle_expired_session_on_resume() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("the slow query").await;
    process.settled().await;
    let session = ScriptedHost::session_of(&task);
    harness.host.delete(&session).await.expect("deleted");
    let said = refused_resume(&process, &task).await;
    assert!(said.contains("no longer exists"), "{said}");
    assert!(said.contains("start a new asyncagents_task"), "{said}");
    assert_eq!(process.status(&task).await, Status::Completed, "as it was");
}

#[tokio::test(start_paused = true)]
async fn seed_003_show_resumed_indicator() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    process.resume(&task, "go on").await.expect("resumed");
    let list = process.list("main").await;
    assert!(
        list.contains(&format!("{} (resumed) |", &task.as_str()[..13])),
        "{list}"
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_show_forked_indicator() {
    let harness = Harness::new(with_conversation(usual()));
    let process = harness.start().await;
    let task = process.launch_args(forked("one")).await;
    let list = process.list("main").await;
    assert!(
        list.contains(&format!("{} (forked) |", &task.as_str()[..13])),
        "{list}"
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_no_indicator_for_new_tasks() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    let list = process.list("main").await;
    assert!(
        list.contains(&format!("| {} |", &task.as_str()[..13])),
        "{list}"
    );
    assert!(!list.contains('('), "{list}");
}

#[tokio::test(start_paused = true)]
async fn seed_003_launch_forked_background_task() {
    launch_forked_background_task().await;
}

#[tokio::test(start_paused = true)]
async fn seed_001_launch_forked_background_task() {
    launch_forked_background_task().await;
}

#[tokio::test(start_paused = true)]
async fn seed_000_launch_forked_background_task() {
    launch_forked_background_task().await;
}

async fn launch_forked_background_task() {
    let harness = Harness::new(with_conversation(usual()));
    harness.host.faults().slow = seconds(3);
    let process = harness.start().await;
    // The host was asked for its agents; from here on it is slow for the task alone.
    process.launch("warm up").await;
    let begun = tokio::time::Instant::now();
    let task = process.launch_args(forked("use it")).await;
    assert!(begun.elapsed() < seconds(1), "the ID comes at once");
    assert_eq!(process.look(&task).await.brief.context, Context::Forked);
    process.settled().await;
    let lines = harness.child(&task);
    let inherited = lines.iter().find_map(|line| match line {
        Line::Inherited {
            preamble, context, ..
        } => Some((preamble, context)),
        _ => None,
    });
    let (preamble, context) = inherited.expect("inherited");
    assert!(context.contains("Why is the login slow?"));
    assert!(
        context.contains("fn login() { wait() }"),
        "the tool's output"
    );
    assert!(preamble.contains("belongs to your parent agent"));
    // Five newest whole, ten cut to 3,000 characters, six to 500.
    assert_eq!(
        context
            .matches("...[truncated 1000 of 4000 chars]...")
            .count(),
        10
    );
    assert_eq!(
        context
            .matches("...[truncated 3500 of 4000 chars]...")
            .count(),
        6
    );
    assert!(
        preamble.contains("10 cut to 3,000 characters"),
        "{preamble}"
    );
    assert!(preamble.contains("6 cut to 500 characters"), "{preamble}");
    let at = |wanted: fn(&Line) -> bool| lines.iter().position(wanted);
    let injected = at(|line| matches!(line, Line::Inherited { .. }));
    let prompted = at(|line| matches!(line, Line::Prompted { .. }));
    assert!(injected < prompted, "known before it is asked");
}

#[tokio::test(start_paused = true)]
async fn seed_003_reject_fork_with_resume() {
    reject_fork_with_resume().await;
}

#[tokio::test(start_paused = true)]
async fn seed_001_reject_fork_with_resume() {
    reject_fork_with_resume().await;
}

#[tokio::test(start_paused = true)]
async fn seed_000_reject_fork_with_resume() {
    reject_fork_with_resume().await;
}

async fn reject_fork_with_resume() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.settled().await;
    let both = TaskArgs {
        resume: Some(task.to_string()),
        ..forked("both")
    };
    let refused = process.try_task(both).await.expect_err("refused");
    assert_eq!(refused, Problem::Refused(Refusal::ForkWithResume));
    assert!(refused.to_string().contains("exclude each other"));
    assert_eq!(process.look(&task).await.run, 0, "not resumed");
    let list = process.list("main").await;
    assert!(list.contains("1 task:"), "none was created: {list}");
}

#[tokio::test(start_paused = true)]
async fn seed_003_fork_indicator_in_task_list() {
    fork_indicator_in_task_list().await;
}

#[tokio::test(start_paused = true)]
async fn seed_001_fork_indicator_in_task_list() {
    fork_indicator_in_task_list().await;
}

#[tokio::test(start_paused = true)]
async fn seed_000_fork_indicator_in_task_list() {
    fork_indicator_in_task_list().await;
}

async fn fork_indicator_in_task_list() {
    let harness = Harness::new(with_conversation(usual()));
    let process = harness.start().await;
    let fresh = process.launch("fresh").await;
    let task = process.launch_args(forked("forked")).await;
    process.settled().await;
    process.resume(&task, "more").await.expect("resumed");
    let list = process.list("main").await;
    let shown = |id: &asyncagents_core::id::TaskId| id.as_str()[..13].to_owned();
    assert!(
        list.contains(&format!("{} (forked) (resumed) |", shown(&task))),
        "{list}"
    );
    assert!(!list.contains(&format!("{} (", shown(&fresh))), "{list}");
}

#[tokio::test(start_paused = true)]
async fn seed_003_filter_by_parent_session() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    process.launch("mine").await;
    process.launch_from("other", "theirs").await;
    let list = process.list("main").await;
    assert!(list.contains("mine") && !list.contains("theirs"), "{list}");
    let list = process.list("other").await;
    assert!(list.contains("theirs") && !list.contains("mine"), "{list}");
}

#[tokio::test(start_paused = true)]
async fn seed_003_filter_by_parent_session_shows_direct_children_only() {
    let harness = Harness::new(Script::of(takes(seconds(60))));
    let process = harness.start().await;
    let child = process.launch("child").await;
    process.until_prompted(&child).await;
    let inside = ScriptedHost::session_of(&child);
    process.launch_from(inside.as_str(), "grandchild").await;
    let list = process.list("main").await;
    assert!(!list.contains("grandchild"), "{list}");
    assert!(process.list(inside.as_str()).await.contains("grandchild"));
}

#[tokio::test(start_paused = true)]
async fn seed_003_empty_list_for_no_children() {
    let harness = Harness::new(usual());
    let process = harness.start().await;
    process.launch_from("other", "theirs").await;
    assert_eq!(process.list("main").await, "No background tasks found");
}

#[tokio::test(start_paused = true)]
async fn seed_003_hidden_hint_when_tasks_still_running() {
    let script = Script::of(takes(seconds(60))).when("quick", takes(seconds(1)));
    let harness = Harness::new(script);
    let process = harness.start().await;
    let quick = process.launch("quick").await;
    process.launch("long").await;
    process.launch("longer").await;
    tokio::time::sleep(seconds(10)).await;
    let told = harness.told("main");
    let [(visible, hidden)] = told.as_slice() else {
        panic!("one notice: {told:?}");
    };
    assert_eq!(
        visible,
        "✓ **Agent \"quick\" finished in 1.0s.**\nTask Progress: 1/3"
    );
    let shown = &quick.as_str()[..13];
    assert_eq!(
        *hidden,
        format!(
            "If you need results immediately, use asyncagents_output(task_id=\"{shown}\").\n\
             You can continue working or just say 'waiting' and halt.\n\
             WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete.\n\
             The whole results are below; no further call is needed:\n\
             <result task_id=\"{shown}\">\nok: quick\n</result>"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn seed_003_hidden_hint_when_all_tasks_complete() {
    let harness = Harness::new(Script::of(takes(seconds(1))));
    let process = harness.start().await;
    process.launch("one").await;
    process.launch("two").await;
    process.settled().await;
    let told = harness.told("main");
    assert_eq!(harness.ends_told("main").len(), 2);
    let (visible, hidden) = told.last().expect("told");
    assert!(visible.ends_with("\nTask Progress: 2/2"), "{visible}");
    let hint = "All 2 tasks finished.\nUse asyncagents_output tools to see agent responses.\n";
    assert!(hidden.starts_with(hint), "{hidden}");
}
