//! An agent that speaks ACP on the pipes of a "process" and plays the script of the contract. What it
//! keeps of its sessions outlives its processes; a session is kept from its first prompt on.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_hosts::agent::{ErrorTail, HookCall, Program, Programs, ToolsFor, WireError};
use asyncagents_testkit::host_contract::{Does, SCRIPT, TOOL};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
    },
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
    time,
};

/// On this it asks for a permission.
pub(crate) const ASKS: &str = "Make the program";
/// On this it asks its user to choose.
pub(crate) const CHOOSES: &str = "Choose a colour";
/// On this it asks whether it may change the file that is named behind it.
pub(crate) const CHANGES: &str = "Change the file";
/// On this it asks for a permission, and needs no answer any more.
pub(crate) const TAKES_BACK: &str = "Ask and think better of it";
/// With this, too, another call of the same answer ends before it is answered.
pub(crate) const BESIDE: &str = "and read beside it";
/// On this its answer is cut.
pub(crate) const CUT: &str = "Recite the alphabet";
/// On this its process ends, in the middle of a tool.
pub(crate) const DIES: &str = "Cut the power";
/// On this it reads and launches a task, and tells of both when it is told something more.
pub(crate) const LAUNCHES: &str = "Launch a task";
/// On this it works until it is told something more.
pub(crate) const LISTENS: &str = "Wait for my word";
/// How long an agent that is slow may need to say that it was told something.
const LATE: Duration = Duration::from_secs(6);
/// How the words begin by which an agent is told that it was interrupted.
const INTERRUPTED: &str = "You were interrupted";

/// The agent, whichever of its processes runs.
#[derive(Clone, Default)]
pub(crate) struct FakeAgent(Arc<World>);

#[derive(Default)]
struct World {
    kept: Mutex<BTreeMap<String, Vec<Said>>>,
    /// Every request that came, with its parameters.
    requests: Mutex<Vec<(String, Value)>>,
    started: Mutex<u64>,
    ended: Mutex<Vec<String>>,
    sessions: Mutex<u64>,
    /// What its prompts have cost, in dollars, and how many there were.
    spent: Mutex<(f64, usize)>,
    settings: Mutex<Abilities>,
    /// Where the hook of its newest process asks.
    hook: Mutex<Option<mpsc::UnboundedSender<HookCall>>>,
}

/// What this agent can do.
#[derive(Clone)]
pub(crate) struct Abilities {
    pub(crate) steers: bool,
    /// It says whether it was told something at work.
    pub(crate) says_that_it_was_told: Says,
    pub(crate) loads: bool,
    pub(crate) forks: bool,
    /// It has loaded a session before it has told what is in it.
    pub(crate) replays_late: bool,
    /// After its first death it works.
    pub(crate) dies_always: bool,
    pub(crate) hook: Hook,
    /// It says what its session has cost.
    pub(crate) sums: Option<Sums>,
}

/// How it asks before a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// By the protocol.
    None,
    Runs,
    /// It has one, and makes its calls without it.
    IsIgnored,
}

/// When an agent says that it was told something at work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    AtOnce,
    /// Long after the turn in which it was told that.
    Late,
    Never,
}

/// Where the sum of what a session has cost begins in a new process.
#[derive(Clone, Copy)]
pub(crate) enum Sums {
    AtZero,
    WhereItWas,
}

/// What the first prompts cost, in dollars.
const COSTS: [f64; 2] = [0.10, 0.12];

impl Default for Abilities {
    fn default() -> Self {
        Self {
            steers: true,
            says_that_it_was_told: Says::AtOnce,
            loads: true,
            forks: true,
            replays_late: false,
            dies_always: false,
            hook: Hook::None,
            sums: None,
        }
    }
}

#[derive(Clone)]
enum Said {
    User(String),
    Agent(String),
    /// A call that has an end.
    Tool,
}

impl FakeAgent {
    pub(crate) fn with(abilities: Abilities) -> Self {
        let agent = Self::default();
        *agent.0.settings.lock().expect("not poisoned") = abilities;
        agent
    }

    /// All that was said to its model in the session that has a word in it.
    pub(crate) fn shown(&self, word: &str) -> String {
        let kept = self.0.kept.lock().expect("not poisoned");
        let text = |said: &Vec<Said>| {
            let texts = said.iter().filter_map(|said| match said {
                Said::User(text) | Said::Agent(text) => Some(text.as_str()),
                Said::Tool => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        };
        let texts = kept.values().map(text);
        let mut texts = texts.filter(|text| text.contains(word));
        texts.next().unwrap_or_default()
    }

    pub(crate) fn asked(&self, method: &str) -> Vec<Value> {
        let requests = self.0.requests.lock().expect("not poisoned");
        let asked = requests.iter().filter(|(asked, _)| asked == method);
        asked.map(|(_, params)| params.clone()).collect()
    }

    /// What it was asked and told, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        let requests = self.0.requests.lock().expect("not poisoned");
        requests.iter().map(|(method, _)| method.clone()).collect()
    }

    pub(crate) fn starts(&self) -> u64 {
        *self.0.started.lock().expect("not poisoned")
    }

    pub(crate) fn ended(&self) -> Vec<String> {
        self.0.ended.lock().expect("not poisoned").clone()
    }
}

struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Programs for FakeAgent {
    async fn start(&self, _: &[String], _: ToolsFor) -> Result<Program, WireError> {
        let (ours, theirs) = duplex(1 << 20);
        let (output, input) = split(ours);
        let number = {
            let mut started = self.0.started.lock().expect("not poisoned");
            *started += 1;
            *started
        };
        let hook = self.0.settings.lock().expect("not poisoned").hook;
        let (hooks, asked) = mpsc::unbounded_channel();
        *self.0.hook.lock().expect("not poisoned") = Some(hooks);
        let running = tokio::spawn(Process::run(self.clone(), theirs));
        Ok(Program {
            input: Box::new(input),
            output: Box::new(output),
            errors: ErrorTail::read(&b"the last words\n"[..]),
            process: Some(format!("process-{number}")),
            tools: None,
            hook: (hook != Hook::None).then_some(asked),
            end: Box::new(EndOnDrop(running.abort_handle())),
        })
    }

    async fn end(&self, process: &str) {
        self.0
            .ended
            .lock()
            .expect("not poisoned")
            .push(process.to_owned());
    }
}

/// One process.
struct Process {
    agent: FakeAgent,
    output: mpsc::UnboundedSender<Value>,
    cancels: watch::Sender<u64>,
    steered: watch::Sender<Vec<String>>,
    answers: Arc<Mutex<BTreeMap<u64, mpsc::UnboundedSender<Value>>>>,
    asks: Mutex<u64>,
    /// The sum of what its session had cost when it began.
    sum_before: f64,
    /// What it has yet to tell of a session: a piece behind each answer.
    late: Mutex<VecDeque<Value>>,
}

impl Process {
    async fn run(agent: FakeAgent, pipe: DuplexStream) {
        let (input, output) = split(pipe);
        let (sender, receiver) = mpsc::unbounded_channel();
        let sums = agent.0.settings.lock().expect("not poisoned").sums;
        let spent = agent.0.spent.lock().expect("not poisoned").0;
        let process = Arc::new(Self {
            sum_before: match sums {
                Some(Sums::AtZero) => spent,
                Some(Sums::WhereItWas) | None => 0.0,
            },
            agent,
            output: sender,
            cancels: watch::Sender::new(0),
            steered: watch::Sender::default(),
            answers: Arc::default(),
            asks: Mutex::default(),
            late: Mutex::default(),
        });
        tokio::select! {
            () = write(receiver, output) => {}
            () = process.read(input) => {}
        }
    }

    async fn read(self: &Arc<Self>, input: ReadHalf<DuplexStream>) {
        let mut lines = BufReader::new(input).lines();
        let mut prompts: JoinSet<bool> = JoinSet::new();
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line,
                Some(died) = prompts.join_next() => {
                    if died.unwrap_or(false) {
                        let _ = self.output.send(LAST);
                    }
                    continue;
                }
            };
            let Ok(Some(line)) = line else { return };
            let message: Value = serde_json::from_str(&line).expect("JSON");
            let id = message["id"].clone();
            let Some(method) = message["method"].as_str() else {
                let asked = id.as_u64().expect("a number");
                let answers = self.answers.lock().expect("not poisoned");
                let _ = answers[&asked].send(message["result"].clone());
                continue;
            };
            let params = message["params"].clone();
            let heard = (method.to_owned(), params.clone());
            self.agent
                .0
                .requests
                .lock()
                .expect("not poisoned")
                .push(heard);
            match method {
                "session/prompt" => {
                    let process = self.clone();
                    let mut cancels = self.cancels.subscribe();
                    cancels.mark_unchanged();
                    prompts.spawn(async move { process.prompt(id, params, cancels).await });
                }
                "_session/steering" if self.says_that_it_was_told() != Says::AtOnce => {
                    let answer = self.answer(method, &params);
                    if self.says_that_it_was_told() == Says::Late {
                        let process = self.clone();
                        prompts.spawn(async move {
                            time::sleep(LATE).await;
                            process.respond(&id, answer);
                            false
                        });
                    }
                }
                "session/cancel" => self.cancels.send_modify(|cancels| *cancels += 1),
                _ => {
                    let answer = self.answer(method, &params);
                    self.respond(&id, answer);
                    let late = self.late.lock().expect("not poisoned").pop_front();
                    if let Some(piece) = late {
                        let _ = self.output.send(piece);
                    }
                }
            }
        }
    }

    fn says_that_it_was_told(&self) -> Says {
        let settings = self.agent.0.settings.lock().expect("not poisoned");
        settings.says_that_it_was_told
    }

    fn respond(&self, id: &Value, answer: Result<Value, (i64, String)>) {
        let message = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, why)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
            }
        };
        let _ = self.output.send(message);
    }

    fn update(&self, session: &str, update: Value) {
        let _ = self.output.send(update_of(session, update));
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let abilities = self.agent.0.settings.lock().expect("not poisoned").clone();
        let session = params["sessionId"].as_str().unwrap_or_default();
        let mut kept = self.agent.0.kept.lock().expect("not poisoned");
        let opened = |id: &str| {
            json!({"sessionId": id, "modes": {"currentModeId": "auto", "availableModes":
                [{"id": "auto", "name": "Auto"}, {"id": "ask", "name": "Ask"},
                 {"id": "look", "name": "Look"}]}})
        };
        let new_id = || {
            let mut sessions = self.agent.0.sessions.lock().expect("not poisoned");
            *sessions += 1;
            format!("theirs-{sessions}")
        };
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": abilities.loads,
                    "promptCapabilities": {"embeddedContext": true},
                    "sessionCapabilities": {"fork": abilities.forks, "close": {}, "systemPrompt": {}},
                },
                "_meta": {"steering": {"supported": abilities.steers}},
            })),
            "session/new" => Ok(opened(&new_id())),
            "session/load" => {
                let Some(said) = kept.get(session) else {
                    return Err((-32002, "Resource not found".to_owned()));
                };
                for said in said.clone() {
                    let chunk = |kind: &str, text: String| {
                        let content = json!({"type": "text", "text": text});
                        json!({"sessionUpdate": kind, "content": content})
                    };
                    let piece = match said {
                        Said::User(text) => chunk("user_message_chunk", text),
                        Said::Agent(text) => chunk("agent_message_chunk", text),
                        Said::Tool => continue,
                    };
                    if abilities.replays_late {
                        let mut late = self.late.lock().expect("not poisoned");
                        late.push_back(update_of(session, piece));
                    } else {
                        self.update(session, piece);
                    }
                }
                Ok(opened(session))
            }
            "session/fork" => {
                let id = new_id();
                let said = kept.get(session).cloned().unwrap_or_default();
                kept.insert(id.clone(), said);
                Ok(opened(&id))
            }
            "_session/steering" => {
                let text = said(&params["prompt"]);
                kept.entry(session.to_owned())
                    .or_default()
                    .push(Said::User(text.clone()));
                self.steered.send_modify(|steered| steered.push(text));
                Ok(json!({"outcome": "injected"}))
            }
            "session/set_mode" | "session/close" => Ok(json!({})),
            _ => Err((-32601, "Method not found".to_owned())),
        }
    }

    /// Says what the session has cost with one more prompt.
    fn tell_sum(&self, session: &str) {
        let sums = self.agent.0.settings.lock().expect("not poisoned").sums;
        if sums.is_none() {
            return;
        }
        let mut spent = self.agent.0.spent.lock().expect("not poisoned");
        spent.0 += COSTS.get(spent.1).copied().unwrap_or_default();
        spent.1 += 1;
        let cost = json!({"amount": spent.0 - self.sum_before, "currency": "USD"});
        let used =
            json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000, "cost": cost});
        self.update(session, used);
    }

    /// Plays what the script says. True if the process dies of it.
    async fn prompt(&self, id: Value, params: Value, mut cancels: watch::Receiver<u64>) -> bool {
        let session = params["sessionId"].as_str().expect("a session").to_owned();
        let text = said(&params["prompt"]);
        let task = {
            let mut kept = self.agent.0.kept.lock().expect("not poisoned");
            let history = kept.entry(session.clone()).or_default();
            history.push(Said::User(text.clone()));
            let users = history.iter().rev().filter_map(|said| match said {
                Said::User(text) if !text.contains(INTERRUPTED) => Some(text.clone()),
                _ => None,
            });
            // Of one that was interrupted, the task is the one before.
            users.into_iter().next().unwrap_or_default()
        };
        let keep = |said: Said| {
            let mut kept = self.agent.0.kept.lock().expect("not poisoned");
            kept.entry(session.clone()).or_default().push(said);
        };
        let say = |text: &str| {
            let used = json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000});
            self.update(&session, used);
            let content = json!({"type": "text", "text": text});
            let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
            self.update(&session, chunk);
            keep(Said::Agent(text.to_owned()));
        };
        let call = |status: &str| {
            self.update(
                &session,
                json!({"sessionUpdate": "tool_call", "toolCallId": "call-1", "name": TOOL,
                    "title": "notes.md", "kind": "execute", "status": status,
                    "rawInput": {"command": "make it"}}),
            );
        };
        let has_called = || {
            let content = json!([{"type": "content", "content": {"type": "text", "text": "dry"}}]);
            let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-1",
                "status": "completed", "content": content});
            self.update(&session, update);
            keep(Said::Tool);
        };
        let done = |tokens: u64| {
            let usage =
                json!({"inputTokens": tokens - 10, "outputTokens": 10, "totalTokens": tokens});
            Ok(json!({"stopReason": "end_turn", "usage": usage}))
        };
        let used = json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000});
        let was_interrupted = text.contains(INTERRUPTED);
        let dies_always = self
            .agent
            .0
            .settings
            .lock()
            .expect("not poisoned")
            .dies_always;
        if task.contains(DIES) {
            if was_interrupted && !dies_always {
                say("the light is on again");
                self.respond(&id, done(100));
                return false;
            }
            self.update(&session, used);
            call("in_progress");
            return true;
        }
        let hook = self.agent.0.settings.lock().expect("not poisoned").hook;
        if task.contains(ASKS) && hook != Hook::None {
            self.update(&session, used);
            let answer = match hook {
                Hook::Runs => self.ask_by_hook().await,
                _ => String::new(),
            };
            if answer.contains("deny") {
                say(&answer);
                self.respond(&id, done(200));
                return false;
            }
            call("in_progress");
            if hook == Hook::IsIgnored {
                // It does not end by itself.
                let _ = cancels.changed().await;
            }
            has_called();
            say("made");
            self.respond(&id, done(200));
            return false;
        }
        if task.contains(ASKS) || task.contains(CHANGES) {
            self.update(&session, used);
            if task.contains(CHANGES) {
                let file = task.split_whitespace().nth(3).expect("a file");
                let input = json!({"file_path": file, "content": "new"});
                let update = json!({"sessionUpdate": "tool_call", "toolCallId": "call-1",
                    "name": "write", "title": file, "kind": "edit", "rawInput": input});
                self.update(&session, update);
            } else {
                call("pending");
            }
            let options = json!([
                {"optionId": "always", "name": "Always", "kind": "allow_always"},
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "no", "name": "No", "kind": "reject_once"}]);
            let asked = json!({"sessionId": session, "toolCall": {"toolCallId": "call-1"},
                "options": options});
            let beside = |status: &str| {
                if task.contains(BESIDE) {
                    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-2",
                        "name": "read", "kind": "read", "rawInput": {"path": "a"}, "status": status});
                    self.update(&session, update);
                }
            };
            beside("in_progress");
            let (_, mut answer) = self.begin_to_ask("session/request_permission", asked);
            beside("completed");
            let answer = answer.recv().await.unwrap_or_default();
            if answer["outcome"]["outcome"] == "cancelled" {
                self.respond(&id, Ok(json!({"stopReason": "cancelled"})));
                return false;
            }
            has_called();
            let is_allowed = answer["outcome"]["optionId"] == "yes";
            say(if is_allowed { "made" } else { "I may not" });
            self.respond(&id, done(200));
            return false;
        }
        if task.contains(TAKES_BACK) {
            call("pending");
            let asked = json!({"sessionId": session, "toolCall": {"toolCallId": "call-1"},
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]});
            let answer = self.begin_to_ask("session/request_permission", asked);
            let (number, mut answer) = answer;
            let no_more = json!({"jsonrpc": "2.0", "method": "$/cancel_request",
                "params": {"requestId": number}});
            let _ = self.output.send(no_more);
            let _ = answer.recv().await;
            say("I did without");
            self.respond(&id, done(100));
            return false;
        }
        if task.contains(LAUNCHES) {
            let mut steered = self.steered.subscribe();
            let _ = steered.wait_for(|steered| !steered.is_empty()).await;
            let call = |id: &str, name: &str, status: &str| {
                let read = json!([{"type": "content", "content": {"type": "text", "text": "dry"}}]);
                let update = json!({"sessionUpdate": "tool_call", "toolCallId": id, "name": name,
                    "rawInput": {"of": id}, "status": status, "content": read});
                self.update(&session, update);
            };
            call("call-1", "read", "completed");
            call("call-2", "asyncagents_task", "in_progress");
            let _ = cancels.changed().await;
            self.respond(&id, Ok(json!({"stopReason": "cancelled"})));
            return false;
        }
        if text.contains(LISTENS) {
            let mut steered = self.steered.subscribe();
            let heard = steered.wait_for(|steered| !steered.is_empty()).await;
            let is_blue = heard.is_ok_and(|heard| heard[0].contains("blue"));
            say(if is_blue { "blue it is" } else { "what?" });
            self.respond(&id, done(100));
            return false;
        }
        if task.contains(CUT) {
            say("a, b, c,");
            self.respond(&id, Ok(json!({"stopReason": "max_tokens"})));
            return false;
        }
        if task.contains(CHOOSES) {
            let schema = json!({"type": "object", "properties":
                {"colour": {"type": "string", "enum": ["red", "blue"]}}});
            let asked = json!({"mode": "form", "sessionId": session, "message": "Which colour?",
                "requestedSchema": schema});
            let answer = self.ask("elicitation/create", asked).await;
            say(&format!(
                "It is {}",
                answer["content"]["colour"].as_str().unwrap_or("none")
            ));
            self.respond(&id, done(100));
            return false;
        }
        let mut script = SCRIPT.iter();
        let found = script.find(|(words, _)| task.contains(words));
        match found.expect("a prompt of the script").1 {
            Does::Answer(text) => {
                say(text);
                self.tell_sum(&session);
                self.respond(&id, done(100));
            }
            Does::AnswerAfter(after, text) => {
                tokio::select! {
                    () = time::sleep(after) => {
                        say(text);
                        self.respond(&id, done(100));
                    }
                    _ = cancels.changed() => {
                        self.respond(&id, Ok(json!({"stopReason": "cancelled"})));
                    }
                }
            }
            Does::Fail(why) => self.respond(&id, Err((-32603, why.to_owned()))),
            Does::CallAndAnswer(text) => {
                self.update(&session, used);
                call("in_progress");
                has_called();
                say(text);
                self.tell_sum(&session);
                self.respond(&id, done(200));
            }
            Does::CallAndHang => {
                self.update(&session, used);
                call("in_progress");
                let _ = cancels.changed().await;
                self.respond(&id, Ok(json!({"stopReason": "cancelled"})));
            }
        }
        false
    }

    /// What the hook prints.
    async fn ask_by_hook(&self) -> String {
        let input = json!({"tool_name": "Bash", "tool_input": {"command": "make it"},
            "tool_use_id": "call-1"});
        let (answer, answered) = oneshot::channel();
        let call = HookCall {
            input: input.to_string().into_bytes(),
            answer,
        };
        let hook = self.agent.0.hook.lock().expect("not poisoned").clone();
        let _ = hook.expect("a process").send(call);
        answered.await.expect("an answer")
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let (_, mut answer) = self.begin_to_ask(method, params);
        answer.recv().await.unwrap_or_default()
    }

    fn begin_to_ask(&self, method: &str, params: Value) -> (u64, mpsc::UnboundedReceiver<Value>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let id = {
            let mut asks = self.asks.lock().expect("not poisoned");
            *asks += 1;
            *asks
        };
        self.answers
            .lock()
            .expect("not poisoned")
            .insert(id, sender);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let _ = self.output.send(request);
        (id, receiver)
    }
}

/// Behind this a process writes nothing more: it dies.
const LAST: Value = Value::Null;

async fn write(mut from: mpsc::UnboundedReceiver<Value>, mut to: WriteHalf<DuplexStream>) {
    while let Some(message) = from.recv().await {
        if message == LAST
            || to
                .write_all(format!("{message}\n").as_bytes())
                .await
                .is_err()
        {
            return;
        }
    }
}

/// The texts of a prompt.
fn said(blocks: &Value) -> String {
    let blocks = blocks.as_array().expect("blocks").iter();
    let text = |block: &Value| {
        let text = block["text"]
            .as_str()
            .or(block["resource"]["text"].as_str());
        text.unwrap_or_default().to_owned()
    };
    blocks.map(text).collect::<Vec<_>>().join("\n")
}

fn update_of(session: &str, update: Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}
