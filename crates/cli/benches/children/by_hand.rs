//! An agent driven with as little as possible: started, opened and prompted.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{agent::Agent, home::Home};

/// A process of the agent. It is ended when this is dropped.
pub(crate) struct ByHand {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    asked: u64,
}

impl ByHand {
    /// Starts the agent and opens a session in a folder, in a mode.
    pub(crate) fn open(mut command: Command, folder: &Path, mode: Option<&str>) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().expect("starts");
        let mut program = Self {
            input: process.stdin.take().expect("a pipe"),
            output: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
            session: String::new(),
            asked: 0,
        };
        program.ask(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        let opened = program.ask("session/new", &json!({"cwd": folder, "mcpServers": []}));
        let id = opened["sessionId"].as_str();
        program.session = id.expect("a session").to_owned();
        if let Some(mode) = mode {
            let session = program.session.clone();
            program.ask(
                "session/set_mode",
                &json!({"sessionId": session, "modeId": mode}),
            );
        }
        program
    }

    /// Prompts it, and does not wait for the answer.
    pub(crate) fn saying(mut self, words: &str) -> Self {
        let prompt = json!([{"type": "text", "text": words}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.send("session/prompt", &params);
        self
    }

    fn send(&mut self, method: &str, params: &Value) {
        self.asked += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("sent");
        self.input.flush().expect("sent");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("read");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.asked && answer.get("method").is_none() {
                return answer["result"].clone();
            }
        }
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A real agent in a home.
pub(crate) fn real(agent: Agent, home: &Home) -> Command {
    let words = agent.command().expect("it is there");
    let mut command = home.command(&words[0]);
    command.args(&words[1..]);
    for (name, value) in agent.variables() {
        command.env(name, value);
    }
    command
}
