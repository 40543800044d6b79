//! What cannot be done is answered in a sentence, and the program goes on.

use std::process::Stdio;

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

use crate::{
    editor::Editor,
    home::{Home, PATIENCE},
};

/// Sends lines one by one, and returns what each is answered.
async fn answers(home: &Home, lines: &[&[u8]]) -> Vec<Value> {
    let mut command = home.command(&["acp"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("an input");
    let output = child.stdout.take().expect("an output");
    let mut output = BufReader::new(output).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {}}});
    let initialize = initialize.to_string();
    let mut answers = Vec::new();
    for line in [&[initialize.as_bytes()], lines].concat() {
        input.write_all(line).await.expect("written");
        input.write_all(b"\n").await.expect("written");
        let answer = timeout(PATIENCE, output.next_line()).await;
        let answer = answer.expect("in time").expect("read").expect("a line");
        answers.push(serde_json::from_str(&answer).expect("only JSON is printed"));
    }
    drop(input);
    let status = timeout(PATIENCE, child.wait()).await;
    let status = status.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(0));
    answers.remove(0);
    answers
}

fn request(method: &str, params: Value) -> Vec<u8> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    request.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_answered_with_an_error_and_nothing_else_happens() {
    let home = Home::new(Script::new()).await;
    home.write("a.txt", "");
    let prompt = json!([{"type": "text", "text": "Hi"}]);
    let image = json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    let lines = [
        b"{oops".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[]".to_vec(),
        b"{\"jsonrpc\": \"2.0\", \"id\": 1}".to_vec(),
        request("session/fly", json!({})),
        request("session/new", json!({"cwd": "work", "mcpServers": []})),
        request(
            "session/new",
            json!({"cwd": "/no/such/folder", "mcpServers": []}),
        ),
        request(
            "session/new",
            json!({"cwd": home.path("a.txt"), "mcpServers": []}),
        ),
        request("session/new", json!({"cwd": 7})),
        request(
            "session/prompt",
            json!({"sessionId": "ses_none", "prompt": prompt}),
        ),
        request(
            "session/load",
            json!({"sessionId": "ses_none", "cwd": home.work(), "mcpServers": []}),
        ),
        request(
            "session/fork",
            json!({"sessionId": "ses_none", "cwd": home.work(), "mcpServers": []}),
        ),
        request(
            "session/set_mode",
            json!({"sessionId": "ses_none", "modeId": "ask"}),
        ),
        request("session/close", json!({"sessionId": "ses_none"})),
        request(
            "session/prompt",
            json!({"sessionId": "ses_none", "prompt": image}),
        ),
        request("authenticate", json!({"methodId": "oauth"})),
    ];
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let answers = answers(&home, &lines).await;
    let shown: Vec<String> = lines
        .iter()
        .zip(&answers)
        .map(|(line, answer)| {
            let (line, error) = (String::from_utf8_lossy(line), &answer["error"]);
            assert!(error.is_object(), "{line}: {answer}");
            let text = format!("{line}\n  {} {}", error["code"], error["message"]);
            text.replace(&home.work().display().to_string(), "WORK")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(home.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_a_session_is_refused_with_what_to_do() {
    let home = Home::new(Script::new()).await;
    let mut command = home.command(&["acp"]);
    command.env("ASYNCAGENTS_MODEL", "anthropic/claude-opus-4-5");
    let editor = Editor::start_with(command).await;
    let refused = editor.new_session(&home.work()).await;
    let why = refused.expect_err("no key").message;
    assert!(why.contains("ANTHROPIC_API_KEY"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_its_folder() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Yes."))).await;
    let editor = Editor::start(&home).await;
    let session = editor.session(&home).await;
    editor.prompt(&session, "Hello").await;
    let other = Home::new(Script::new()).await;
    let refused = editor.load(&session, &other).await;
    let why = refused.expect_err("another folder").message;
    assert!(why.contains("is a session of the folder"), "{why}");
}
