//! What a Claude Code says that is not as it should be, and records of a real one.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::agent::ToolOutcome;
use asyncagents_hosts::{
    agent::{
        Connection, ErrorTail, EventReceiver, OpenSession, Program, Programs, ToolNews, ToolsFor,
        TurnStop, Which, Wire, WireError, WireEvent, events,
    },
    claude_stream::ClaudeStream,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::Mutex,
};

use crate::world::message;

/// Gives the one end of a pipe as a process.
struct Fake {
    end: Mutex<Option<DuplexStream>>,
    said_last: &'static [u8],
}

#[async_trait]
impl Programs for Fake {
    async fn start(&self, _: &[String], _: ToolsFor) -> Result<Program, WireError> {
        let end = self
            .end
            .lock()
            .await
            .take()
            .ok_or_else(|| WireError::NotStarted("there is only one".to_owned()))?;
        let (output, input) = tokio::io::split(end);
        Ok(Program {
            input: Box::new(input),
            output: Box::new(output),
            errors: ErrorTail::read(self.said_last),
            process: None,
            tools: None,
            hook: None,
            end: Box::new(()),
        })
    }
}

/// The other end: what is written to the process, and what it writes.
struct Claude {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Claude {
    async fn reads(&mut self) -> Value {
        let line = self.input.next_line().await.expect("read");
        serde_json::from_str(&line.expect("a line")).expect("a record")
    }

    async fn writes(&mut self, lines: impl AsRef<[u8]>) {
        self.output.write_all(lines.as_ref()).await.expect("read");
        self.output.write_all(b"\n").await.expect("read");
    }
}

fn fake(said_last: &'static [u8]) -> (ClaudeStream, Claude, OpenSession) {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let (input, output) = tokio::io::split(theirs);
    let claude = Claude {
        input: BufReader::new(input).lines(),
        output,
    };
    let folder = std::env::temp_dir().join("asyncagents-no-such-folder");
    let programs = Fake {
        end: Mutex::new(Some(ours)),
        said_last,
    };
    let wire = ClaudeStream::new(Arc::new(programs), folder.clone(), false);
    let open = OpenSession {
        ours: "ses_1".into(),
        which: Which::New,
        folder,
        model: None,
        instructions: None,
        reads_only: false,
        may_delegate: false,
        has_answered: false,
        ends: None,
        look_for: Vec::new(),
    };
    (wire, claude, open)
}

type Events = EventReceiver;

/// A session with a Claude Code that is ready.
async fn started() -> (Box<dyn Connection>, Claude, Events) {
    let (wire, mut claude, open) = fake(b"");
    let (sender, events) = events();
    let ready = async {
        let asked = claude.reads().await;
        assert_eq!(asked["request"]["subtype"], "initialize");
        let id = &asked["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": {}});
        let response = json!({"type": "control_response", "response": response});
        claude.writes(response.to_string()).await;
    };
    let (connection, ()) = tokio::join!(wire.start(&open, sender), ready);
    (connection.expect("a session"), claude, events)
}

fn all(mut events: Events) -> Vec<WireEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.try_recv() {
        all.push(event);
    }
    all
}

fn text(text: &str) -> WireEvent {
    WireEvent::Text(text.to_owned())
}

/// Records of 2.1.325, without what is not looked at: a turn with a tool, in which a sub-agent works,
/// too.
#[tokio::test]
async fn the_records_of_a_turn_are_told_in_order() {
    let (connection, mut claude, events) = started().await;
    let said = message("p1", "Go");
    let turn = async {
        let line = claude.reads().await;
        assert_eq!(line["message"]["content"][0]["text"], "Go");
        let uuid = &line["uuid"];
        let usage = json!({"input_tokens": 100, "output_tokens": 20,
            "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4});
        let answer = |id: &str, block: Value, parent: Value| {
            json!({"type": "assistant", "parent_tool_use_id": parent, "message": {
                "id": id, "model": "claude-opus-5-5", "role": "assistant", "content": [block],
                "usage": usage}})
        };
        let tool = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash",
            "input": {"command": "ls"}});
        let outcome = |content: Value, is_error: bool| {
            json!({"type": "user", "parent_tool_use_id": null, "uuid": "u1", "message": {
                "role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                    "content": content, "is_error": is_error}]}})
        };
        let lifecycle = |state: &str| json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
        for record in [
            lifecycle("queued"),
            lifecycle("started"),
            json!({"type": "system", "subtype": "init", "model": "claude-opus-5-5"}),
            json!({"type": "user", "uuid": uuid, "isReplay": true, "timestamp": "t",
                "message": line["message"]}),
            answer(
                "m1",
                json!({"type": "thinking", "thinking": "Hm."}),
                Value::Null,
            ),
            answer(
                "m1",
                json!({"type": "text", "text": "I look."}),
                Value::Null,
            ),
            answer("m1", tool, Value::Null),
            answer(
                "m2",
                json!({"type": "text", "text": "Not I."}),
                json!("toolu_9"),
            ),
            outcome(
                json!([{"type": "text", "text": "a"}, {"type": "image"}]),
                false,
            ),
            outcome(json!("no such file"), true),
            json!({"type": "assistant", "parent_tool_use_id": null, "message": {
                "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}}),
            json!({"type": "result", "subtype": "success", "is_error": false, "result": "I look.",
                "total_cost_usd": 0.5, "usage": usage, "user_message_uuids": [uuid],
                "model_usage_since_last_result": {"a": {"costUSD": 0.25}, "b": {"costUSD": 0.125}}}),
            lifecycle("completed"),
        ] {
            claude.writes(record.to_string()).await;
        }
    };
    let (end, ()) = tokio::join!(connection.prompt(&said), turn);
    let end = end.expect("an end");
    assert_eq!(end.stop, TurnStop::Finished);
    assert_eq!(end.usage.map(|usage| usage.context()), Some(127));
    let tool = |name: Option<&str>, outcome: Option<ToolOutcome>| {
        WireEvent::Tool(ToolNews {
            id: "toolu_1".to_owned(),
            name: name.map(str::to_owned),
            input: name.map(|_| r#"{"command":"ls"}"#.to_owned()),
            began: name.is_some(),
            outcome,
            ..ToolNews::default()
        })
    };
    assert_eq!(
        all(events),
        [
            WireEvent::Model("claude-opus-5-5".to_owned()),
            WireEvent::Thought("Hm.".to_owned()),
            WireEvent::Context(127),
            text("I look."),
            tool(Some("Bash"), None),
            WireEvent::Alive,
            tool(None, Some(ToolOutcome::Done("a\n[image]".to_owned()))),
            tool(None, Some(ToolOutcome::Failed("no such file".to_owned()))),
            WireEvent::Alive,
            WireEvent::Spent(asyncagents_core::budget::Cost(375_000)),
        ]
    );
}

#[tokio::test]
async fn lines_that_are_no_records_are_passed_over() {
    let (connection, mut claude, events) = started().await;
    let said = message("p1", "Go");
    let turn = async {
        let line = claude.reads().await;
        for junk in [
            "not JSON",
            "{",
            "[]",
            "null",
            "7",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"assistant","message":{"content":"text"}}"#,
            r#"{"type":"assistant","message":{"content":[7,{"type":"new"},{"type":"text"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#,
            r#"{"type":"command_lifecycle","command_uuid":"x","state":"melted"}"#,
            r#"{"type":"control_response","response":{"request_id":"unknown"}}"#,
            r#"{"type":"control_cancel_request","request_id":"unknown"}"#,
            r#"{"type":"result","usage":"none"}"#,
        ] {
            claude.writes(junk).await;
        }
        claude.writes([0xff, 0xfe, b'{']).await;
        let uuid = &line["uuid"];
        let started =
            json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "started"});
        claude.writes(started.to_string()).await;
        let answer = json!({"type": "assistant", "message": {
            "content": [{"type": "surprise"}, {"type": "text", "text": "Done."}]}});
        claude.writes(answer.to_string()).await;
        // Nobody here can answer such a thing, and it must not wait.
        let request = json!({"type": "control_request", "request_id": "r1",
            "request": {"subtype": "hook_callback"}});
        claude.writes(request.to_string()).await;
        let answer = claude.reads().await;
        assert_eq!(answer["response"]["subtype"], "error");
        assert_eq!(answer["response"]["request_id"], "r1");
        // A result that cannot be read ends the turn, too.
        claude.writes(r#"{"type":"result","usage":7}"#).await;
    };
    let (end, ()) = tokio::join!(connection.prompt(&said), turn);
    assert_eq!(end.expect("an end").stop, TurnStop::Finished);
    let said: Vec<WireEvent> = all(events)
        .into_iter()
        .filter(|event| *event != WireEvent::Alive)
        .collect();
    assert_eq!(said, [text("Done.")]);
}

#[tokio::test]
async fn a_process_that_does_not_start_says_why() {
    let (wire, claude, open) = fake(b"Invalid API key\n");
    drop(claude);
    let (sender, _events) = events();
    let error = wire.start(&open, sender).await.err().expect("an error");
    let WireError::Gone(why) = error else {
        panic!("{error:?}")
    };
    assert_eq!(why, "Claude Code has ended; it said last: Invalid API key");
}

#[tokio::test]
async fn a_turn_that_fails_says_what_went_wrong() {
    for (result, why) in [
        (
            json!({"subtype": "success", "is_error": true, "result": "Invalid API key"}),
            "Invalid API key",
        ),
        (
            json!({"subtype": "error_max_turns", "is_error": true,
                "errors": ["Reached maximum number of turns (3)"]}),
            "Reached maximum number of turns (3)",
        ),
        // Nobody has stopped it, so that is no cancelled one.
        (
            json!({"subtype": "error_during_execution", "is_error": true}),
            "Claude Code has failed: error_during_execution",
        ),
    ] {
        let (connection, mut claude, _events) = started().await;
        let turn = async {
            let uuid = claude.reads().await["uuid"].clone();
            let mut result = result.clone();
            result["type"] = json!("result");
            result["user_message_uuids"] = json!([uuid]);
            claude.writes(result.to_string()).await;
        };
        let said = message("p1", "Go");
        let (end, ()) = tokio::join!(connection.prompt(&said), turn);
        let stop = end.expect("an end").stop;
        assert_eq!(stop, TurnStop::Failed(why.to_owned()));
    }
}
