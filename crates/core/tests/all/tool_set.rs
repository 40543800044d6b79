//! The tools for tasks as a model calls them, well and badly.

use std::time::Duration;

use asyncagents_core::{
    request::{ConversationRequest, OutputRequest, TaskArgs},
    task::Status,
    tool_set::{ToolRequest, only_looks, parse, specs},
};
use rstest::rstest;

const PREFIX: &str = "asyncagents_";

#[test]
fn the_tools_are_the_five_of_every_host() {
    let names: Vec<String> = specs(PREFIX).into_iter().map(|spec| spec.name).collect();
    assert_eq!(
        names,
        [
            "asyncagents_task",
            "asyncagents_output",
            "asyncagents_list",
            "asyncagents_cancel",
            "asyncagents_clear"
        ]
    );
    for spec in specs("background_") {
        let schema: serde_json::Value = serde_json::from_str(&spec.schema).expect("JSON");
        assert_eq!(schema["type"], "object", "{}", spec.name);
    }
}

#[rstest]
#[case::launch("task", r#"{"description":"d","prompt":"p","agent":"a","fork":true}"#, ToolRequest::Task(TaskArgs { description: "d".into(), prompt: "p".into(), agent: "a".into(), fork: true, ..TaskArgs::default() }))]
#[case::text_for_a_switch("task", r#"{"prompt":"p","agent":"a","fork":"true","resume":""}"#, ToolRequest::Task(TaskArgs { prompt: "p".into(), agent: "a".into(), fork: true, ..TaskArgs::default() }))]
#[case::null("task", r#"{"prompt":"p","agent":"a","fork":null,"resume":null}"#, ToolRequest::Task(TaskArgs { prompt: "p".into(), agent: "a".into(), ..TaskArgs::default() }))]
#[case::output("output", r#"{"task_id":" x "}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: None, conversation: None }))]
#[case::block("output", r#"{"task_id":"x","block":true,"timeout":"60"}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: Some(Duration::from_secs(60)), conversation: None }))]
#[case::float("output", r#"{"task_id":"x","block":true,"timeout":60.0}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: Some(Duration::from_secs(60)), conversation: None }))]
#[case::conversation("output", r#"{"task_id":"x","full_session":true,"include_tool_results":true,"message_limit":3}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: None, conversation: Some(ConversationRequest { since: None, limit: Some(3), tool_results: true }) }))]
#[case::list("list", "", ToolRequest::List(None))]
#[case::list_of(
    "list",
    r#"{"status":"running"}"#,
    ToolRequest::List(Some(Status::Running))
)]
#[case::cancel("cancel", r#"{"task_id":"x"}"#, ToolRequest::Cancel("x".into()))]
#[case::clear("clear", "{}", ToolRequest::Clear)]
fn a_call_means(#[case] tool: &str, #[case] input: &str, #[case] means: ToolRequest) {
    assert_eq!(parse(PREFIX, &format!("{PREFIX}{tool}"), input), Ok(means));
}

#[rstest]
#[case(
    "asyncagents_output",
    "{}",
    "asyncagents_output: the parameters do not fit: missing field `task_id`"
)]
#[case(
    "asyncagents_output",
    r#"{"task_id":"x","block":true,"timeout":601}"#,
    "asyncagents_output: `timeout`: 601 is refused; allowed: 0 to 600 seconds"
)]
#[case(
    "asyncagents_task",
    "{broken",
    "asyncagents_task: the parameters do not fit: key must be a string"
)]
#[case(
    "asyncagents_task",
    r#"{"fork":"perhaps"}"#,
    "asyncagents_task: the parameters do not fit: a switch is true or false"
)]
#[case(
    "asyncagents_list",
    r#"{"status":"busy"}"#,
    "asyncagents_list: `busy` is no status; there are queued"
)]
#[case(
    "asyncagents_fly",
    "{}",
    "there is no tool asyncagents_fly; there are asyncagents_task, "
)]
fn a_call_that_does_not_fit_is_told_why(
    #[case] tool: &str,
    #[case] input: &str,
    #[case] beginning: &str,
) {
    let why = parse(PREFIX, tool, input).expect_err("refused");
    assert!(why.starts_with(beginning), "{why}");
}

#[test]
fn only_what_looks_may_be_called_again() {
    let looks = |name: &str| only_looks(PREFIX, &format!("{PREFIX}{name}"));
    assert!(looks("list") && looks("output"));
    assert!(!looks("task") && !looks("cancel") && !looks("clear"));
    assert!(!only_looks(PREFIX, "bash"));
}
