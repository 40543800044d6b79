//! One process of Claude Code with one session: what is written to it and what it says.

use std::{
    any::Any,
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{id::PostId, lock::lock, question::Reply};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot, watch},
    task::{JoinSet, spawn_blocking},
    time::{self, Instant},
};
use tracing::debug;
use uuid::Uuid;

use super::{
    ask::{self, OpenAsk},
    cost::Costs,
    history,
    news::{self, News},
    record::Record,
    turns::{Sent, Turns},
};
use crate::agent::{
    Connection, ErrorTail, EventSender, Message, MessagePart, Messages, Program, SessionOpened,
    ToolServer, TurnEnd, TurnStop, Unsent, WireError, WireEvent,
};

/// How long it may take to answer what is asked beside the conversation. Two things are, before it begins.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to say that it stops, and to end after its input has.
const STOPPING: Duration = Duration::from_secs(3);
/// How many questions can be open, and how many bytes of them.
const MOST_ASKED: usize = 100;
const MOST_OF_ASKED: usize = 16 << 20;
/// How often the beginning of an answer is a sign of life.
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// What a connection is to know of its session.
pub(super) struct SessionFacts {
    pub(super) opened: SessionOpened,
    /// Whether nothing was paid for it before.
    pub(super) is_new: bool,
    /// Claude Code's configuration folder.
    pub(super) config: PathBuf,
}

/// A process with a session.
pub(super) struct StreamConnection {
    opened: SessionOpened,
    config: PathBuf,
    shared: Arc<Shared>,
    errors: ErrorTail,
    /// Read from and written to, until this goes.
    _tasks: JoinSet<()>,
    /// Ends the process, when this goes.
    _end: Box<dyn Any + Send + Sync>,
}

struct Shared {
    state: Mutex<State>,
    /// Says that the state may have changed.
    changed: watch::Sender<()>,
    /// The lines for its input; nothing when that is closed.
    lines: Mutex<Option<mpsc::UnboundedSender<String>>>,
    events: EventSender,
    /// What it has not read of our answers.
    unsent: Unsent,
    /// The name of the server of our tools.
    ours: Option<String>,
}

struct State {
    turns: Turns,
    news: News,
    costs: Costs,
    asks: HashMap<String, OpenAsk>,
    /// Who waits for an answer of its.
    requests: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    has_ended: bool,
    /// What it has said went wrong, while it had nothing to do.
    complaint: Option<String>,
    said_alive: Option<Instant>,
}

impl StreamConnection {
    /// Connects to a process that was just started.
    pub(super) fn new(program: Program, facts: SessionFacts, events: EventSender) -> Self {
        let (lines, to_write) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                turns: Turns::default(),
                news: News::default(),
                costs: Costs::new(facts.is_new),
                asks: HashMap::new(),
                requests: HashMap::new(),
                has_ended: false,
                complaint: None,
                said_alive: None,
            }),
            changed: watch::Sender::new(()),
            lines: Mutex::new(Some(lines)),
            events,
            unsent: Unsent::new(),
            ours: program.tools.as_ref().map(|tools| tools.name.clone()),
        });
        let mut tasks = JoinSet::new();
        let (events, unsent) = (shared.events.clone(), shared.unsent.clone());
        tasks.spawn(write(program.input, to_write, unsent.clone()));
        let messages = Messages::new(program.output, events, unsent, program.errors.clone());
        tasks.spawn(read(messages, shared.clone()));
        Self {
            opened: facts.opened,
            config: facts.config,
            shared,
            errors: program.errors,
            _tasks: tasks,
            _end: program.end,
        }
    }

    /// Waits until it is there, and gives it its instructions and the server of our tools: not on its
    /// command line, which every user of the machine can read.
    pub(super) async fn prepare(
        &self,
        instructions: &str,
        tools: Option<&ToolServer>,
    ) -> Result<(), WireError> {
        let mut initialize = json!({"subtype": "initialize"});
        if !instructions.is_empty() {
            initialize["appendSystemPrompt"] = json!(instructions);
        }
        self.request(initialize, PATIENCE).await?;
        let Some(tools) = tools else { return Ok(()) };
        let environment: HashMap<_, _> = tools.environment.iter().cloned().collect();
        let server = json!({
            "type": "stdio", "command": tools.command, "args": tools.arguments,
            "env": environment, "alwaysLoad": true,
        });
        let name = tools.name.as_str();
        let servers = json!({"subtype": "mcp_set_servers", "servers": {name: server}});
        let answer = self.request(servers, PATIENCE).await?;
        match &answer["errors"][name] {
            Value::Null => Ok(()),
            why => {
                let why = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
                let why = format!("it cannot start the server of our tools: {why}");
                Err(WireError::NotStarted(why))
            }
        }
    }

    /// Asks something beside the conversation.
    async fn request(&self, request: Value, patience: Duration) -> Result<Value, WireError> {
        let id = Uuid::new_v4().to_string();
        let what = request["subtype"].as_str().unwrap_or_default().to_owned();
        let (sender, answer) = oneshot::channel();
        {
            let mut state = lock(&self.shared.state);
            if state.has_ended {
                drop(state);
                return Err(self.gone());
            }
            state.requests.insert(id.clone(), sender);
        }
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        self.shared.send(&line);
        match time::timeout(patience, answer).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(why))) => Err(WireError::Failed(why)),
            Ok(Err(_)) => Err(self.gone()),
            Err(_) => {
                lock(&self.shared.state).requests.remove(&id);
                let seconds = patience.as_secs();
                let why = format!("Claude Code has not answered `{what}` within {seconds} seconds");
                Err(WireError::Failed(self.errors.explain(&why)))
            }
        }
    }

    fn gone(&self) -> WireError {
        let complaint = lock(&self.shared.state).complaint.clone();
        let what = match complaint {
            Some(complaint) => format!("Claude Code has ended: {complaint}"),
            None => self.errors.explain("Claude Code has ended"),
        };
        WireError::Gone(what)
    }

    /// Whether it has the message from an earlier process. It would run one again that it has not
    /// begun to answer.
    fn was_told(&self, message: &Message) -> bool {
        let post = message.id.as_ref();
        post.is_some_and(|post| self.opened.found.contains(post))
    }

    /// Sends again what was taken back before it was told.
    async fn send_untold(&self, untold: Vec<Sent>) {
        if untold.is_empty() {
            return;
        }
        let uuids: Vec<String> = untold.iter().map(|sent| sent.uuid.clone()).collect();
        let (config, session) = (self.config.clone(), self.opened.id.clone());
        let told = spawn_blocking(move || history::has(&config, &session, &uuids));
        let told = match told.await {
            Ok(Ok(told)) => told,
            _ => return,
        };
        for sent in untold.iter().filter(|sent| !told.contains(&sent.uuid)) {
            self.shared.say(&sent.message);
        }
    }
}

#[async_trait]
impl Connection for StreamConnection {
    fn session(&self) -> &SessionOpened {
        &self.opened
    }

    async fn prompt(&self, message: &Message) -> Result<TurnEnd, WireError> {
        if self.was_told(message) {
            let (stop, usage) = (TurnStop::Finished, None);
            return Ok(TurnEnd { stop, usage });
        }
        let mut changed = self.shared.changed.subscribe();
        let untold = {
            let mut state = lock(&self.shared.state);
            state.turns.begin();
            state.turns.take_untold()
        };
        self.send_untold(untold).await;
        self.shared.say(message);
        loop {
            changed.borrow_and_update();
            {
                let state = lock(&self.shared.state);
                if let Some(end) = state.turns.end() {
                    return Ok(end);
                }
                if state.has_ended {
                    drop(state);
                    return Err(self.gone());
                }
            }
            if changed.changed().await.is_err() {
                return Err(self.gone());
            }
        }
    }

    /// It is told beside the next result of a tool, or else in a turn of its own; the prompt waits
    /// for that.
    async fn steer(&self, message: &Message) -> Result<bool, WireError> {
        if lock(&self.shared.state).has_ended {
            return Err(self.gone());
        }
        Ok(self.was_told(message) || self.shared.say_if_busy(message))
    }

    async fn cancel(&self) {
        if !lock(&self.shared.state).turns.stop() {
            return;
        }
        // What waits to be told would begin a turn of its own.
        let interrupt = json!({"subtype": "interrupt", "cancel_queued": true});
        // What is said next must not be stopped by it, so its answer is waited for.
        if let Err(error) = self.request(interrupt, STOPPING).await {
            debug!(%error, "Claude Code was told to stop");
        }
    }

    fn take_untold(&self) -> Vec<PostId> {
        let untold = lock(&self.shared.state).turns.take_untold();
        untold
            .into_iter()
            .filter_map(|sent| sent.message.id)
            .collect()
    }

    fn reply(&self, question: &str, reply: &Reply) -> bool {
        let answer = {
            let mut state = lock(&self.shared.state);
            state.asks.remove(question).map(|ask| ask.answer(reply))
        };
        if let Some(answer) = answer {
            self.shared.respond(question, answer);
        }
        true
    }

    async fn close(&self) {
        let mut changed = self.shared.changed.subscribe();
        drop(lock(&self.shared.lines).take());
        let ended = async {
            while !lock(&self.shared.state).has_ended {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = time::timeout(STOPPING, ended).await;
    }
}

impl Shared {
    /// Writes a record to it. What cannot be written any more is not missed: its end is noticed.
    fn send(&self, record: &Value) {
        if let Some(lines) = &*lock(&self.lines) {
            self.unsent.add();
            let _ = lines.send(format!("{record}\n"));
        }
    }

    fn respond(&self, request: &str, answer: Value) {
        let response = json!({"subtype": "success", "request_id": request, "response": answer});
        self.send(&json!({"type": "control_response", "response": response}));
    }

    fn say(&self, message: &Message) {
        let mut state = lock(&self.state);
        self.send(&user_line(&state.turns.send(message), message));
    }

    /// The same in the middle of work. False if there is none.
    fn say_if_busy(&self, message: &Message) -> bool {
        let mut state = lock(&self.state);
        let is_busy = state.turns.is_busy();
        if is_busy {
            self.send(&user_line(&state.turns.send(message), message));
        }
        is_busy
    }

    fn tell(&self, events: impl IntoIterator<Item = WireEvent>) {
        for event in events {
            self.events.send(event);
        }
    }

    /// Takes in a record. What it tells is told before anybody who waits goes on.
    fn take(&self, record: Record) {
        let mut state = lock(&self.state);
        match record {
            Record::Init(init) => self.tell(state.news.of_model(init.model)),
            Record::Assistant(answer) => self.tell(state.news.of_answer(answer)),
            Record::User(user) => match &user.uuid {
                Some(uuid) if user.is_replay => state.turns.shown(uuid),
                _ => self.tell(news::of_results(user)),
            },
            Record::Lifecycle(heard) => state.turns.heard(&heard.command_uuid, heard.state),
            Record::Result(result) => {
                let spent = (state.costs).spent(result.total_cost_usd, result.new_cost());
                self.tell((spent.0 > 0).then_some(WireEvent::Spent(spent)));
                if !state.turns.is_busy() {
                    state.complaint = result.failure();
                }
                state.turns.ended(&result);
            }
            Record::Request(request) => self.asked(&mut state, request.request_id, request.request),
            Record::Cancelled(cancelled) => {
                if state.asks.remove(&cancelled.request_id).is_some() {
                    self.tell([WireEvent::Withdrawn(cancelled.request_id)]);
                }
            }
            Record::Response(answered) => {
                let answered = answered.response;
                if let Some(waiting) = state.requests.remove(&answered.request_id) {
                    let _ = waiting.send(match answered.error {
                        Some(error) => Err(error),
                        None => Ok(answered.response),
                    });
                }
            }
            Record::Other => {
                let since = state.said_alive.map(|then| then.elapsed());
                if since.is_none_or(|since| since >= ALIVE_EVERY) {
                    state.said_alive = Some(Instant::now());
                    self.tell([WireEvent::Alive]);
                }
            }
        }
        drop(state);
        self.changed.send_replace(());
    }

    fn asked(&self, state: &mut State, id: String, request: Value) {
        let kept: usize = state.asks.values().map(|open| open.size).sum();
        let read = ask::read(&id, request, self.ours.as_deref());
        let is_new = !state.asks.contains_key(&id);
        let has_room = |open: &OpenAsk| {
            is_new && state.asks.len() < MOST_ASKED && kept + open.size <= MOST_OF_ASKED
        };
        if let Some((ask, open)) = read.filter(|(_, open)| has_room(open)) {
            state.asks.insert(id, open);
            self.tell([WireEvent::Asked(ask)]);
        } else {
            // It would wait for ever.
            let error = "this is not offered here";
            let response = json!({"subtype": "error", "request_id": id, "error": error});
            self.send(&json!({"type": "control_response", "response": response}));
        }
    }

    fn ended(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        state.requests.clear();
        drop(state);
        self.changed.send_replace(());
    }
}

fn user_line(uuid: &str, message: &Message) -> Value {
    let blocks = message.parts.iter().map(|part| match part {
        MessagePart::Text(text) | MessagePart::Context(text) => {
            json!({"type": "text", "text": text})
        }
    });
    let content: Vec<Value> = blocks.collect();
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}})
}

async fn write(
    mut to: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::UnboundedReceiver<String>,
    unsent: Unsent,
) {
    while let Some(line) = lines.recv().await {
        let written = async {
            to.write_all(line.as_bytes()).await?;
            to.flush().await
        };
        let written: io::Result<()> = written.await;
        if written.is_err() {
            unsent.close();
            return;
        }
        unsent.written();
    }
    // Its input ends, and so will it.
    let _ = to.shutdown().await;
}

async fn read<R: AsyncRead + Unpin>(mut messages: Messages<R>, shared: Arc<Shared>) {
    let record = |line: &str| Record::parse(line.as_bytes());
    while let Ok(Some(record)) = messages.next(record).await {
        shared.take(record);
    }
    shared.ended();
}
