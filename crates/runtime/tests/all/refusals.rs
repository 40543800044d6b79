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
    let door = ToolDoor::new(&process.manager, key().into());
    let main = SessionId::from("main");
    let call = tool_set::prepare(prefix, &format!("{prefix}{tool}"), input).expect("a call");
    match door.call_from(&main, None, call.request).await {
        ToolOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
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
