//! The tools for tasks as a model calls them, well and badly.

use std::time::Duration;

use asyncagents_core::{
    agent::{CallInfo, Kind, Preview},
    arguments::CallError,
    request::{ConversationRequest, OutputRequest, TaskArgs, TextPart},
    task::Status,
    tool_set::{ToolRequest, prepare, specs},
};
use rstest::rstest;

const PREFIX: &str = "asyncagents_";

#[test]
fn the_tools_are_the_same_in_every_host() {
    let names: Vec<String> = specs(PREFIX).into_iter().map(|spec| spec.name).collect();
    assert_eq!(
        names,
        [
            "asyncagents_task",
            "asyncagents_output",
            "asyncagents_list",
            "asyncagents_cancel",
            "asyncagents_message",
            "asyncagents_answer",
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
#[case::model("task", r#"{"prompt":"p","agent":"a","model":"x/y","effort":"high"}"#, ToolRequest::Task(TaskArgs { prompt: "p".into(), agent: "a".into(), model: Some("x/y".into()), effort: Some("high".into()), ..TaskArgs::default() }))]
#[case::null("task", r#"{"prompt":"p","agent":"a","fork":null,"resume":null}"#, ToolRequest::Task(TaskArgs { prompt: "p".into(), agent: "a".into(), ..TaskArgs::default() }))]
#[case::output("output", r#"{"task_id":" x "}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: None, conversation: None, part: TextPart::default() }))]
#[case::block("output", r#"{"task_id":"x","block":true,"timeout":"60"}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: Some(Duration::from_secs(60)), conversation: None, part: TextPart::default() }))]
#[case::float("output", r#"{"task_id":"x","block":true,"timeout":60.0}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: Some(Duration::from_secs(60)), conversation: None, part: TextPart::default() }))]
#[case::conversation("output", r#"{"task_id":"x","full_session":true,"include_tool_results":true,"message_limit":3}"#, ToolRequest::Output(OutputRequest { task: "x".into(), wait: None, conversation: Some(ConversationRequest { since: None, limit: Some(3), tool_results: true }), part: TextPart::default() }))]
#[case::list("list", "", ToolRequest::List(None))]
#[case::list_of(
    "list",
    r#"{"status":"running"}"#,
    ToolRequest::List(Some(Status::Running))
)]
#[case::cancel("cancel", r#"{"task_id":"x"}"#, ToolRequest::Cancel("x".into()))]
#[case::clear("clear", "{}", ToolRequest::Clear)]
fn a_call_means(#[case] tool: &str, #[case] input: &str, #[case] means: ToolRequest) {
    let prepared = prepare(PREFIX, &format!("{PREFIX}{tool}"), input);
    assert_eq!(prepared.map(|prepared| prepared.request), Ok(means));
}

#[rstest]
#[case(
    "asyncagents_output",
    "{}",
    "asyncagents_output: `task_id` is missing: expected a string. Example: {\"task_id\": "
)]
#[case(
    "asyncagents_output",
    r#"{"task_id":"x","block":true,"timeout":601}"#,
    "asyncagents_output: `timeout`: 601 is refused; allowed: 0 to 600 seconds"
)]
#[case(
    "asyncagents_task",
    "{broken",
    "asyncagents_task: the arguments are not JSON (key must be a string at line 1 column 2)"
)]
#[case(
    "asyncagents_task",
    r#"{"fork":"perhaps"}"#,
    "asyncagents_task: `fork` must be true or false, not \"perhaps\". Example: "
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
    let why = prepare(PREFIX, tool, input)
        .expect_err("refused")
        .to_string();
    assert!(why.starts_with(beginning), "{why}");
}

#[test]
fn only_what_looks_may_be_called_again() {
    let looks = |name: &str, input: &str| {
        let prepared = prepare(PREFIX, &format!("{PREFIX}{name}"), input);
        prepared.expect("a call").request.only_looks()
    };
    let task = r#"{"task_id": "x"}"#;
    assert!(looks("list", "{}") && looks("output", task));
    assert!(!looks("task", "{}") && !looks("cancel", task) && !looks("clear", "{}"));
    assert!(!looks("skill", r#"{"name": "x"}"#));
}

/// What rules judge and people read.
#[rstest]
#[case("task", r#"{"description":"d","prompt":"p","agent":"a"}"#, "d", &[("prompt", "p"), ("agent", "a")])]
#[case("task", r#"{"description":"d","resume":"x","fork":"true"}"#, "resume x", &[("description", "d"), ("resume", "x"), ("fork", "true")])]
#[case("output", r#"{"task_id":"x","timeout":30.0}"#, "x", &[("timeout", "30.0")])]
#[case("list", r#"{"status":"running"}"#, "running", &[])]
#[case("cancel", r#"{"task_id":"x"}"#, "x", &[])]
#[case("clear", "", "", &[])]
#[case("skill", r#"{"skill":" /Deep-Analysis","args":{"a":1}}"#, "deep-analysis", &[("skill", " /Deep-Analysis"), ("args", "{\"a\":1}")])]
fn a_call_is_about(
    #[case] tool: &str,
    #[case] input: &str,
    #[case] target: &str,
    #[case] others: &[(&str, &str)],
) {
    let prepared = prepare(PREFIX, &format!("{PREFIX}{tool}"), input).expect("a call");
    let others = others.iter();
    let others = others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let info = CallInfo {
        kind: Kind::Note,
        target: target.to_owned(),
        title: target.to_owned(),
        preview: Preview::Arguments(others.collect()),
    };
    assert_eq!(prepared.info, info);
}

/// What a host of another kind shows beside the name of the tool.
#[rstest]
#[case("task", r#"{"description":"Look","prompt":"p","agent":"a"}"#, "Look")]
#[case(
    "task",
    r#"{"description":"Look","prompt":"p","resume":"task_1"}"#,
    "Look"
)]
#[case("output", r#"{"task_id":"task_1"}"#, "task_1")]
#[case("cancel", r#"{"task_id":"task_1"}"#, "task_1")]
#[case("list", r#"{"status":"running"}"#, "")]
#[case("clear", "", "")]
#[case("skill", r#"{"name":"deep-analysis"}"#, "deep-analysis")]
fn the_title_of_a_call_is(#[case] tool: &str, #[case] input: &str, #[case] title: &str) {
    let prepared = prepare(PREFIX, &format!("{PREFIX}{tool}"), input).expect("a call");
    assert_eq!(prepared.request.title(), title);
}

/// What was cut off is not JSON, which is told from an argument that does not fit.
#[rstest]
#[case(r#"{"prompt": "Wr"#, true)]
#[case(r#"{"prompt": 3}"#, false)]
#[case("[]", false)]
fn what_is_not_json_is_known(#[case] input: &str, #[case] not_json: bool) {
    let error = prepare(PREFIX, "asyncagents_task", input).expect_err("refused");
    assert_eq!(matches!(error, CallError::NotJson(_)), not_json, "{error}");
}
