//! The command line of the MCP inspector, as people try a server with it. Each of its commands is a
//! connection of its own.

use std::path::PathBuf;

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::{
    client::{Answer, Home, answer},
    npm,
};

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// The exit code of a tool that says it failed.
const TOOL_FAILED: i32 = 5;

/// The inspector, with a file that says how the server is started.
struct Inspector<'h> {
    home: &'h Home,
    config: PathBuf,
    era: &'h str,
}

impl<'h> Inspector<'h> {
    /// Nothing if there is no inspector here.
    fn new(home: &'h Home, era: &'h str, args: &[&str]) -> Option<Self> {
        npm::node(INSPECTOR)?;
        let command = home.command(&[&["mcp"], args].concat());
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let args: Vec<_> = command.get_args().map(text).collect();
        let variables = command.get_envs();
        let variables =
            variables.filter_map(|(name, value)| Some((text(name), json!(text(value?)))));
        let server = json!({
            "type": "stdio",
            "command": text(command.get_program()),
            "args": args,
            "env": variables.collect::<Map<_, _>>(),
        });
        let config = json!({"mcpServers": {"asyncagents": server}});
        home.write("servers.json", &config.to_string());
        Some(Self {
            home,
            config: home.path("servers.json"),
            era,
        })
    }

    /// What the inspector prints for a method, and its exit code.
    fn run(&self, method: &str, args: &[&str]) -> (Value, i32) {
        let mut command = npm::node(INSPECTOR).expect("it was here before");
        command.arg("--cli").arg("--config").arg(&self.config);
        command.args(["--server", "asyncagents", "--format", "json", "--quiet"]);
        command.args(["--protocol-era", self.era, "--method", method]);
        let done = command.args(args).current_dir(self.home.path(""));
        let done = done.env("HOME", self.home.path("")).output();
        let done = done.expect("the inspector runs");
        assert!(!done.stdout.is_empty(), "{method} {args:?}: {done:?}");
        let printed = serde_json::Deserializer::from_slice(&done.stdout).into_iter();
        let printed: Vec<Value> = printed.map(|printed| printed.expect("JSON")).collect();
        let code = done.status.code().expect("an exit code");
        match <[Value; 1]>::try_from(printed) {
            Ok([printed]) => (printed["result"].clone(), code),
            // What it has verified it prints one by one.
            Err(printed) => (Value::from(printed), code),
        }
    }

    fn ask(&self, method: &str, args: &[&str]) -> Value {
        let (result, code) = self.run(method, args);
        assert_eq!(code, 0, "{method}: {result}");
        result
    }

    fn call(&self, tool: &str, arguments: &Value) -> (Answer, i32) {
        let arguments = arguments.to_string();
        let args = ["--tool-name", tool, "--tool-args-json", &arguments];
        let (result, code) = self.run("tools/call", &args);
        (answer(&result), code)
    }

    fn done(&self, tool: &str, arguments: &Value) -> Answer {
        let (answer, code) = self.call(tool, arguments);
        assert_eq!(code, 0, "{tool}: {}", answer.text);
        answer
    }
}

#[rstest]
fn the_tools_are_listed_and_every_client_can_read_their_schemas(
    #[values("legacy", "modern")] era: &str,
) {
    let home = Home::new(Script::new());
    let Some(inspector) = Inspector::new(&home, era, &[]) else {
        return;
    };
    // `--strict` fails for a schema that some clients cannot read.
    let listed = inspector.ask("tools/list", &["--strict"]);
    let tools = listed["tools"].as_array().expect("tools");
    let names: Vec<_> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let all = [
        "task", "output", "list", "cancel", "message", "answer", "clear", "skill",
    ];
    assert_eq!(names, all);
}

#[rstest]
fn a_task_is_launched_listed_waited_for_and_read_from_one_connection_after_the_other(
    #[values("legacy", "modern")] era: &str,
) {
    let gate = Gate::closed();
    let result = Reply::text("Nine tests, all green.").behind(&gate);
    let home = Home::new(Script::new().rule(When::always(), result));
    let Some(inspector) = Inspector::new(&home, era, &["--session", "desk"]) else {
        return;
    };
    let launch =
        json!({"description": "Run the tests", "prompt": "Run all tests", "agent": "general"});
    let task = inspector.done("task", &launch).task();
    home.wait_for(|requests| requests.len() == 1);
    let list = inspector.done("list", &json!({"status": "running"}));
    assert!(list.text.contains(&task), "{}", list.text);
    // In the newer era the inspector follows a handle, and in the older one it waits for the answer.
    let waits = json!({"task_id": task, "block": true, "timeout": 1});
    let waited = inspector.done("output", &waits);
    assert!(waited.text.contains("is running"), "{}", waited.text);
    gate.open();
    let output = inspector.done("output", &json!({"task_id": task, "block": true}));
    assert!(
        output.text.contains("Nine tests, all green."),
        "{}",
        output.text
    );

    let listed = inspector.ask("resources/list", &[]);
    let listed = listed["resources"].as_array().expect("resources").clone();
    let addresses = listed.iter().filter_map(|one| one["uri"].as_str());
    // It knows what skills are, so they are listed too.
    let ours = addresses.filter(|address| !address.starts_with("skill://"));
    let addresses: Vec<_> = ours.collect();
    assert_eq!(addresses.len(), 2, "{listed:?}");
    assert_eq!(addresses[0], format!("asyncagents://tasks/{task}"));
    for address in addresses {
        let read = inspector.ask("resources/read", &["--uri", address]);
        let text = read["contents"][0]["text"].as_str().expect("a text");
        assert!(text.contains("Nine tests, all green."), "{address}: {text}");
    }
}

#[rstest]
fn what_is_refused_is_seen_as_a_failure(#[values("legacy", "modern")] era: &str) {
    let home = Home::new(Script::new());
    let Some(inspector) = Inspector::new(&home, era, &["--session", "desk"]) else {
        return;
    };
    let (refused, code) = inspector.call("output", &json!({"task_id": "task_0123"}));
    assert_eq!(code, TOOL_FAILED);
    assert!(refused.is_error);
    assert!(
        refused.text.contains("there is no task"),
        "{}",
        refused.text
    );
}

#[rstest]
fn skills_are_listed_with_digests_that_are_right(#[values("legacy", "modern")] era: &str) {
    let home = Home::new(Script::new());
    home.write(
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Write release notes\nlicense: MIT\n---\nWrite them.",
    );
    home.write(".claude/skills/release/references/a list.md", "One\n");
    let Some(inspector) = Inspector::new(&home, era, &[]) else {
        return;
    };
    // `--verify` reads every file, and fails if one is not as it was listed.
    let verified = inspector.ask("skills/list", &["--verify"]);
    let verified = verified.as_array().expect("skills");
    let names: Vec<_> = verified.iter().map(|skill| &skill["name"]).collect();
    assert_eq!(names, ["delegate", "release"], "{verified:?}");
    assert_eq!(verified[1]["files"].as_array().map(Vec::len), Some(2));
}

#[rstest]
fn a_skill_is_a_prompt(#[values("legacy", "modern")] era: &str) {
    let home = Home::new(Script::new());
    home.write(
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Write release notes\n---\nWrite them for $ARGUMENTS.",
    );
    let Some(inspector) = Inspector::new(&home, era, &[]) else {
        return;
    };
    let listed = inspector.ask("prompts/list", &[]);
    assert_eq!(listed["prompts"][0]["name"], json!("release"), "{listed}");
    let args = ["--prompt-name", "release", "--prompt-args", "arguments=1.2"];
    let got = inspector.ask("prompts/get", &args);
    let text = got["messages"][0]["content"]["text"]
        .as_str()
        .expect("a text");
    assert!(text.contains("Write them for 1.2."), "{text}");
}

#[test]
fn without_a_session_the_next_connection_has_no_tasks_and_the_answer_says_so() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    let Some(inspector) = Inspector::new(&home, "legacy", &[]) else {
        return;
    };
    let launch = json!({"description": "Work", "prompt": "Work", "agent": "general"});
    let launched = inspector.done("task", &launch);
    let says = "Your tasks belong to this connection";
    assert!(launched.text.contains(says), "{}", launched.text);
    let list = inspector.done("list", &json!({}));
    assert!(
        list.text.contains("No background tasks found"),
        "{}",
        list.text
    );
}
