//! What a model reads when its arguments do not fit.

use asyncagents_core::agent::{Kind, Preview};
use asyncagents_tools::specs;
use rstest::rstest;
use serde_json::json;

use crate::workbench::Workbench;

#[rstest]
#[case::unknown_tool(
    "cat",
    "{}",
    "there is no tool `cat`. The tools are: read, write, edit, glob, grep, bash, todo."
)]
#[case::not_json(
    "read",
    "{",
    "the arguments are not JSON (EOF while parsing an object at line 1 column 1). Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::not_an_object(
    "read",
    "[]",
    "the arguments must be a JSON object, not a list. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::missing(
    "read",
    "{}",
    "`path` is missing: expected a string. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::empty(
    "read",
    r#"{"path": " "}"#,
    "`path` is empty. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::wrong_kind(
    "read",
    r#"{"path": 3}"#,
    "`path` must be a string, not 3. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::not_a_number(
    "read",
    r#"{"path": "a", "limit": "many"}"#,
    "`limit` must be a whole number from 1, not \"many\". Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::too_small(
    "read",
    r#"{"path": "a", "limit": 0}"#,
    "`limit` must be a whole number from 1, not 0. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::a_list(
    "read",
    r#"{"path": "a", "limit": [1]}"#,
    "`limit` must be a whole number from 1, not a list. Example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}"
)]
#[case::no_content(
    "write",
    r#"{"path": "a"}"#,
    "`content` is missing: expected a string. Example: {\"path\": \"notes/plan.md\", \"content\": \"First line\\n\"}"
)]
#[case::empty_old(
    "edit",
    r#"{"path": "a", "old": "", "new": "b"}"#,
    "`old` is empty; to make or replace a whole file use `write`. Example: {\"path\": \"src/main.rs\", \"old\": \"let a = 1;\", \"new\": \"let a = 2;\"}"
)]
#[case::same(
    "edit",
    r#"{"path": "a", "old": "b", "new": "b"}"#,
    "`new` is the same as `old`, so nothing would change. Example: {\"path\": \"src/main.rs\", \"old\": \"let a = 1;\", \"new\": \"let a = 2;\"}"
)]
#[case::not_a_flag(
    "edit",
    r#"{"path": "a", "old": "b", "new": "c", "replace_all": "maybe"}"#,
    "`replace_all` must be true or false, not \"maybe\". Example: {\"path\": \"src/main.rs\", \"old\": \"let a = 1;\", \"new\": \"let a = 2;\"}"
)]
#[case::absolute_pattern(
    "glob",
    r#"{"pattern": "/etc/*"}"#,
    "`pattern` must be relative to `path`; put the folder there. Example: {\"pattern\": \"src/**/*.rs\"}"
)]
#[case::unknown_mode(
    "grep",
    r#"{"pattern": "a", "mode": "all"}"#,
    "`mode` must be \"content\" or \"files\" or \"count\", not \"all\". Example: {\"pattern\": \"fn main\", \"glob\": \"*.rs\", \"mode\": \"content\"}"
)]
#[case::no_command(
    "bash",
    r#"{"command": ""}"#,
    "`command` is empty. Example: {\"command\": \"cargo test\", \"timeout\": 300}"
)]
#[case::zero_byte(
    "bash",
    r#"{"command": "a\u0000b"}"#,
    "`command` contains a zero byte. Example: {\"command\": \"cargo test\", \"timeout\": 300}"
)]
#[case::no_items(
    "todo",
    "{}",
    "`items` is missing: expected a list of objects. Example: {\"items\": [{\"text\": \"Write the test\", \"status\": \"doing\"}]}"
)]
#[case::items_of_text(
    "todo",
    r#"{"items": ["a"]}"#,
    "`items` must be a list of objects, not \"a\". Example: {\"items\": [{\"text\": \"Write the test\", \"status\": \"doing\"}]}"
)]
#[case::unknown_status(
    "todo",
    r#"{"items": [{"text": "a", "status": "later"}]}"#,
    "`status` must be \"pending\" or \"doing\" or \"done\", not \"later\". Example: {\"items\": [{\"text\": \"Write the test\", \"status\": \"doing\"}]}"
)]
#[tokio::test]
async fn an_error_says_which_argument_and_shows_an_example(
    #[case] tool: &str,
    #[case] input: &str,
    #[case] expected: &str,
) {
    let bench = Workbench::new();
    let error = bench.toolbox.prepare(tool, input).err().expect("refused");
    assert_eq!(error.to_string(), expected);
    let outcome = bench.toolbox.call(tool, input, &|_| {}).await;
    assert!(outcome.is_error());
    assert_eq!(outcome.text(), expected);
}

#[tokio::test]
async fn a_command_too_long_for_the_kernel_is_refused() {
    let command = "x".repeat(200_000);
    let error = Workbench::new()
        .failed("bash", json!({"command": command}))
        .await;
    assert!(error.starts_with("`command` is longer than 128 kB: write it to a file and run that"));
}

#[tokio::test]
async fn numbers_and_flags_may_be_strings_and_unknown_fields_are_passed_over() {
    let bench = Workbench::new();
    bench.file("a", "1\n2\n3\n");
    let input = json!({"path": "a", "offset": "2", "limit": 1.0, "encoding": "utf-8"});
    let text = bench.done("read", input).await;
    assert!(text.starts_with("2\t2\n["), "{text}");
    let input = json!({"path": "a", "old": "1", "new": "x", "replace_all": "True", "more": null});
    bench.done("edit", input).await;
    let input = json!({"items": r#"[{"text": "a", "status": "done"}]"#});
    assert_eq!(bench.done("todo", input).await, "- [x] a");
}

#[rstest]
#[case::read("read", json!({"path": "src/../a"}), Kind::Read, "a", false)]
#[case::whole_workspace("glob", json!({"pattern": "*"}), Kind::Read, ".", false)]
#[case::grep("grep", json!({"pattern": "x", "path": "src"}), Kind::Read, "src", false)]
#[case::write("write", json!({"path": "new/file", "content": ""}), Kind::Edit, "new/file", false)]
#[case::edit("edit", json!({"path": "a", "old": "a", "new": "b"}), Kind::Edit, "a", false)]
#[case::run("bash", json!({"command": "rm -rf /"}), Kind::Run, "rm -rf /", false)]
#[case::note("todo", json!({"items": []}), Kind::Note, "", false)]
#[case::outside("read", json!({"path": "/etc/../etc/passwd"}), Kind::Read, "/etc/passwd", true)]
#[case::home("read", json!({"path": "~/.profile"}), Kind::Read, "{home}/.profile", true)]
#[tokio::test]
async fn what_a_call_needs(
    #[case] tool: &str,
    #[case] input: serde_json::Value,
    #[case] kind: Kind,
    #[case] target: &str,
    #[case] outside: bool,
) {
    let bench = Workbench::new();
    let prepared = bench.prepared(tool, &input);
    let info = prepared.info();
    let needed = (info.kind, info.target.as_str());
    assert_eq!(needed, (kind, bench.filled(target).as_str()));
    if matches!(kind, Kind::Read | Kind::Edit) {
        let outcome = bench.toolbox.call(tool, &input.to_string(), &|_| {}).await;
        let refused = outcome.text().contains("is outside of the workspace");
        assert_eq!(refused, outside, "{}", outcome.text());
    }
}

/// What a person reads of each tool who watches, and who is asked.
#[test]
fn each_tool_has_a_title_and_a_preview() {
    let arguments = |given: &[(&str, &str)]| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Preview::Arguments(given.iter().map(owned).collect())
    };
    let cases = [
        (
            "read",
            json!({"path": "a", "limit": 3}),
            "a",
            arguments(&[("limit", "3")]),
        ),
        (
            "write",
            json!({"path": "a", "content": "x"}),
            "a",
            Preview::Write {
                content: "x".to_owned(),
            },
        ),
        (
            "edit",
            json!({"path": "a", "old": "x", "new": "y", "replace_all": "TRUE"}),
            "a",
            Preview::Edit {
                old: "x".to_owned(),
                new: "y".to_owned(),
                everywhere: true,
            },
        ),
        (
            "glob",
            json!({"pattern": "*.rs", "path": "src"}),
            "*.rs",
            arguments(&[("pattern", "*.rs")]),
        ),
        (
            "grep",
            json!({"pattern": "fn", "path": "src"}),
            "fn",
            arguments(&[("pattern", "fn")]),
        ),
        (
            "bash",
            json!({"command": "true", "timeout": 3}),
            "true",
            Preview::Command("true".to_owned()),
        ),
        (
            "todo",
            json!({"items": []}),
            "",
            arguments(&[("items", "[]")]),
        ),
    ];
    let bench = Workbench::new();
    let mut tools = Vec::new();
    for (tool, input, title, preview) in cases {
        let prepared = bench.prepared(tool, &input);
        let info = prepared.info();
        assert_eq!((info.title.as_str(), &info.preview), (title, &preview));
        tools.push(tool.to_owned());
    }
    let all: Vec<String> = specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(tools, all, "no tool is left out");
}

#[test]
fn the_tools_are_always_described_in_the_same_bytes() {
    let [one, other] = [specs(), specs()];
    assert_eq!(one, other);
    for spec in one {
        let schema: serde_json::Value = serde_json::from_str(&spec.schema).expect("JSON");
        assert_eq!(schema["type"], "object", "{}", spec.name);
        assert_eq!(
            schema.to_string().len(),
            spec.schema.len(),
            "{}: compact",
            spec.name
        );
    }
}
