//! What a model is told when a call is refused: what was wrong, and what to call instead.

use asyncagents_core::{
    agent::ToolOutcome,
    id::{SessionId, TaskId},
    port::{FileWork, HostError, StoreError, StoreErrorKind},
    refusal::{Refusal, RefusalKind},
    tool_set,
};
use asyncagents_runtime::{Problem, ProblemKind, ToolDoor};
use rstest::rstest;

use super::harness::{Harness, Process, key, usual};

/// What a model is told that resumes a task, and may not.
pub(crate) async fn refused_resume(process: &Process, task: &TaskId) -> String {
    let input = format!(r#"{{"prompt": "go on", "resume": "{task}"}}"#);
    refused(process, ("asyncagents_", "task"), &input).await
}

async fn refused(process: &Process, (prefix, tool): (&str, &str), input: &str) -> String {
    match called(process, (prefix, tool), input).await {
        ToolOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

async fn called(process: &Process, (prefix, tool): (&str, &str), input: &str) -> ToolOutcome {
    let door = ToolDoor::new(&process.manager, key().into());
    let main = SessionId::from("main");
    let call = tool_set::prepare(prefix, &format!("{prefix}{tool}"), input).expect("a call");
    door.call_from(&main, None, call.request).await.outcome
}

/// What a model is shown of very many tasks fits into its context, and says how to see others.
#[tokio::test(start_paused = true)]
async fn a_model_is_shown_a_bounded_list_and_told_how_to_narrow_it() {
    let harness = Harness::new(usual()).with(|settings| settings.limits.concurrency = 1);
    let process = harness.start().await;
    for n in 0..60 {
        process.launch(&format!("done {n}")).await;
    }
    process.settled().await;
    for n in 0..120 {
        process.launch(&format!("waits {n}")).await;
    }
    let list = |input: &'static str| {
        let called = called(&process, ("asyncagents_", "list"), input);
        async move {
            match called.await {
                ToolOutcome::Done(text) => text,
                other => panic!("{other:?}"),
            }
        }
    };
    let rows = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("| task_"))
            .count()
    };
    let all = list("{}").await;
    assert_eq!(rows(&all), 100, "{all}");
    let said = "80 more are not shown: older, all finished or beyond the limit; \
        `status` narrows it, and output takes their IDs";
    assert!(all.ends_with(said), "{all}");
    let completed = list(r#"{"status": "completed"}"#).await;
    assert_eq!(rows(&completed), 50, "{completed}");
    assert!(
        completed.contains("\n10 more are not shown: "),
        "{completed}"
    );
}

#[rstest]
#[case("asyncagents_")]
#[case("background_")]
#[tokio::test(start_paused = true)]
async fn the_tool_that_lists_tasks_is_named_as_it_is_configured(#[case] prefix: &str) {
    let harness =
        Harness::new(usual()).with(|settings| settings.wording.prefix = prefix.to_owned());
    let process = harness.start().await;
    let input = r#"{"task_id": "task_00"}"#;
    assert_eq!(
        refused(&process, (prefix, "output"), input).await,
        format!("there is no task `task_00`; call {prefix}list to see which there are")
    );
}

#[rstest]
#[case(Refusal::EmptyPrompt, ProblemKind::Refused(RefusalKind::BadRequest))]
#[case(
    HostError::Refused("no".to_owned()),
    ProblemKind::Refused(RefusalKind::BadRequest)
)]
#[case(
    HostError::NoSession("ses_1".into()),
    ProblemKind::Refused(RefusalKind::NotFound)
)]
#[case(HostError::Unreachable("no".to_owned()), ProblemKind::Unavailable)]
#[case(Problem::NotOurs, ProblemKind::Unavailable)]
#[case(store(StoreErrorKind::NotADatabase), ProblemKind::WrongDatabase)]
#[case(store(StoreErrorKind::CannotOpen), ProblemKind::WrongDatabase)]
#[case(store(StoreErrorKind::Locked), ProblemKind::Unavailable)]
#[case(store(StoreErrorKind::Full), ProblemKind::Failed)]
#[case(store(StoreErrorKind::Disk(FileWork::Write)), ProblemKind::Failed)]
#[case(store(StoreErrorKind::Damaged), ProblemKind::Failed)]
fn each_problem_has_a_kind(#[case] problem: impl Into<Problem>, #[case] kind: ProblemKind) {
    assert_eq!(problem.into().kind(), kind);
}

fn store(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "tasks.db", "a test")
}
