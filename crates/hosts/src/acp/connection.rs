//! One connection: what is sent to the agent, and what comes from it.

use std::{
    any::Any,
    collections::{BTreeSet, HashMap},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_client_protocol::{
    self as acp, Agent, Client, Lines as LineTransport, RequestCancellation, UntypedMessage,
    v1::{ConnectionTo, Responder},
};
use async_trait::async_trait;
use asyncagents_core::{agent::Usage, id::PostId, lock::lock, question::Reply, shorten::shorten};
use futures_util::{sink, stream};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time,
};

use super::{AcpSettings, ask, capabilities::Capabilities, hook, incoming, updates};
use crate::agent::{
    Connection, ErrorTail, EventSender, HookCall, Message, MessagePart, Messages, Program,
    SessionOpened, TurnEnd, TurnStop, Unsent, WireError, WireEvent, is_in,
};

/// Under this address an agent finds what a child inherits.
const CONTEXT: &str = "asyncagents://context";

/// How much is kept of why a model failed, in characters.
const LONGEST_FAILURE: usize = 2_000;

/// How many calls without a result are known, and how many questions can be open; how many bytes of
/// them. An agent may begin and ask without end.
const MOST_CALLS: usize = 1_000;
const MOST_OF_CALLS: usize = 16 << 20;
const MOST_ASKED: usize = 100;
/// How many calls a hook is allowed in one turn.
const MOST_ALLOWED: usize = 10_000;
const MOST_OF_ASKED: usize = 16 << 20;

/// A process that speaks the protocol.
pub(super) struct Peer {
    connection: ConnectionTo<Agent>,
    name: String,
    pub(super) errors: ErrorTail,
    /// What it was asked last.
    pub(super) asked: Arc<Mutex<String>>,
    pub(super) heard: Arc<Heard>,
    /// Reads what it says, and what its hook asks.
    _reading: JoinSet<()>,
    _end: Box<dyn Any + Send + Sync>,
}

/// What the agent says, between those who hear it.
pub(super) struct Heard {
    events: EventSender,
    state: Mutex<State>,
    /// What our server of tools is called.
    tools: Option<String>,
    /// Whether a hook asks before each call.
    is_hooked: bool,
    titles_are_commands: bool,
    /// The answers that it has not read.
    unsent: Unsent,
    /// What it may take back of what it has asked.
    revocable: mpsc::UnboundedSender<Revocable>,
}

/// Something that was asked, until it is answered or the agent takes it back.
struct Revocable {
    id: String,
    cancellation: RequestCancellation,
    answered: oneshot::Receiver<()>,
}

impl Revocable {
    /// Its name, if it was taken back.
    async fn taken_back(self) -> Option<String> {
        tokio::select! {
            () = self.cancellation.cancelled() => Some(self.id),
            _ = self.answered => None,
        }
    }
}

#[derive(Default)]
struct State {
    /// The session that is open. What is said of others, sub-agents for instance, is not its own.
    session: Option<String>,
    /// A prompt is under way: what is said now is news.
    prompted: bool,
    /// The agent's model has failed in it; why, as far as the agent has said.
    failure: Option<String>,
    /// Posts that are looked for in the history, and those that were found.
    look_for: Vec<PostId>,
    found: BTreeSet<PostId>,
    /// The end of what was replayed of the newest message: a name may be in two pieces of it.
    replayed_end: String,
    /// How much of the conversation was told beside a prompt.
    replayed: u64,
    /// The calls that have no result, as far as is known of them.
    calls: HashMap<String, KnownCall>,
    /// What waits for an answer.
    asked: HashMap<String, OpenAsk>,
    asks: u64,
    /// The calls that a hook has asked about and was allowed.
    allowed: BTreeSet<String>,
}

#[derive(Default)]
struct KnownCall {
    call: Value,
    /// How many bytes were said of it.
    size: usize,
}

/// What waits for an answer, and who.
enum OpenAsk {
    Permission(OpenRequest),
    Form(OpenRequest),
    Hook {
        call: String,
        answer: oneshot::Sender<String>,
    },
}

struct OpenRequest {
    request: Value,
    /// How many bytes that is.
    size: usize,
    responder: Responder<Value>,
    /// Goes with the request: it cannot be taken back any more.
    _open: oneshot::Sender<()>,
}

impl Peer {
    /// Connects to a process.
    pub(super) async fn connect(
        settings: &AcpSettings,
        program: Program,
        events: EventSender,
    ) -> Result<Self, WireError> {
        let name = &settings.name;
        let (revocable, mut asked) = mpsc::unbounded_channel::<Revocable>();
        let heard = Arc::new(Heard {
            events,
            state: Mutex::default(),
            tools: program.tools.as_ref().map(|tools| tools.name.clone()),
            is_hooked: program.hook.is_some(),
            titles_are_commands: settings.titles_are_commands,
            unsent: Unsent::new(),
            revocable,
        });
        let mut all_reading = JoinSet::new();
        let hearing = heard.clone();
        all_reading.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    Some(asked) = asked.recv() => {
                        open.spawn(asked.taken_back());
                    }
                    Some(ended) = open.join_next() => {
                        if let Ok(Some(id)) = ended {
                            hearing.taken_back(&id);
                        }
                    }
                    else => return,
                }
            }
        });
        if let Some(mut calls) = program.hook {
            let heard = heard.clone();
            all_reading.spawn(async move {
                while let Some(call) = calls.recv().await {
                    heard.hooked(call);
                }
            });
        }
        let unsent = heard.unsent.clone();
        let (events, errors) = (heard.events.clone(), program.errors.clone());
        let messages = Messages::new(program.output, events, unsent.clone(), errors);
        let incoming = stream::unfold(messages, async |mut messages| {
            let message = messages.next(incoming::message).await.transpose()?;
            Some((message, messages))
        });
        let output = (program.input, unsent);
        let outgoing = sink::unfold(output, async |(mut input, unsent), line: String| {
            input.write_all(line.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await?;
            if incoming::is_answer(&line) {
                unsent.written();
            }
            Ok::<_, io::Error>((input, unsent))
        });
        let (connected, connection) = oneshot::channel();
        let (requests, notices) = (heard.clone(), heard.clone());
        let reading = async move {
            let ended = Client
                .v1()
                .name("asyncagents")
                .on_receive_request(
                    async move |request: UntypedMessage, responder, _| {
                        requests.asked(&request, responder)
                    },
                    acp::on_receive_request!(),
                )
                .on_receive_notification(
                    async move |notice: UntypedMessage, _| {
                        notices.told(&notice);
                        Ok(())
                    },
                    acp::on_receive_notification!(),
                )
                .connect_with(
                    LineTransport::new(Box::pin(outgoing), Box::pin(incoming)),
                    async move |connection: ConnectionTo<Agent>| {
                        let _ = connected.send(connection.clone());
                        connection.incoming_closed().await;
                        Ok(())
                    },
                )
                .await;
            if let Err(error) = ended {
                tracing::debug!(%error, "the connection to an agent has ended");
            }
        };
        all_reading.spawn(reading);
        let gone = || WireError::Gone(program.errors.explain(&format!("{name} did not start")));
        Ok(Self {
            connection: connection.await.map_err(|_| gone())?,
            name: name.to_owned(),
            errors: program.errors.clone(),
            asked: Arc::default(),
            heard,
            _reading: all_reading,
            _end: program.end,
        })
    }

    /// Asks the agent something.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, WireError> {
        let request = UntypedMessage::new(method, params).map_err(|error| self.failed(&error))?;
        method.clone_into(&mut lock(&self.asked));
        let asked = self.connection.send_request(request).block_task().await;
        asked.map_err(|error| self.failed(&error))
    }

    /// Waits until the agent has told all of a session that it was to load. Some answer before that, and
    /// go on telling: then a piece comes before the next answer, whatever it is asked.
    pub(super) async fn hear_all(&self) -> Result<(), WireError> {
        loop {
            let before = self.heard.replayed();
            let asked = time::timeout(ANSWER_TIMEOUT, self.ask(UNKNOWN, json!({})));
            match asked.await {
                Ok(Err(WireError::Gone(why))) => return Err(WireError::Gone(why)),
                // It answers, though it cannot know what this is.
                Ok(_) if self.heard.replayed() != before => {}
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }

    fn tell(&self, method: &str, params: Value) {
        let told = UntypedMessage::new(method, params)
            .and_then(|notice| self.connection.send_notification(notice));
        if let Err(error) = told {
            tracing::debug!(%error, method, "an agent could not be told");
        }
    }

    fn failed(&self, error: &acp::Error) -> WireError {
        let name = &self.name;
        let is_over = error.message == TERMINATED;
        if is_over
            || self.connection.is_incoming_closed()
            || acp::is_incoming_transport_closed(error)
        {
            return WireError::Gone(self.errors.explain(&format!("{name} has ended")));
        }
        let details = error.data.as_ref().and_then(|data| {
            let text = data.as_str().or_else(|| data["details"].as_str());
            text.or_else(|| data["message"].as_str())
        });
        let details = details.map(|details| format!(": {details}"));
        let why = format!("{}{}", error.message, details.unwrap_or_default());
        let why = format!("{name}: {}", shorten(why.trim(), LONGEST_FAILURE, "…"));
        match i32::from(error.code) {
            AUTH_REQUIRED => {
                WireError::NotStarted(format!("{why}: log in to {name}, then resume the task"))
            }
            RESOURCE_NOT_FOUND => WireError::NoSession(why),
            _ => WireError::Failed(why),
        }
    }
}

/// A method that no agent has. The protocol says that it is answered all the same.
const UNKNOWN: &str = "_asyncagents/ping";

/// How long an agent may take to say that it does not know a method. One that says nothing at all is not
/// waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What the protocol's crate says when its connection is over for another reason than the agent's end.
const TERMINATED: &str = "Connection terminated";

/// The protocol's code for an agent that its user is not logged in to.
const AUTH_REQUIRED: i32 = -32000;

/// The protocol's code for something that is not there.
const RESOURCE_NOT_FOUND: i32 = -32002;

impl Heard {
    /// Looks for posts in what the agent replays.
    pub(super) fn look_for(&self, posts: &[PostId]) {
        lock(&self.state).look_for = posts.to_vec();
    }

    /// The session is open, and a model works in it.
    pub(super) fn opened(&self, session: &str, model: Option<&str>) {
        lock(&self.state).session = Some(session.to_owned());
        if let Some(model) = model {
            self.events.send(WireEvent::Model(model.to_owned()));
        }
    }

    /// How much of the conversation was told beside a prompt.
    pub(super) fn replayed(&self) -> u64 {
        lock(&self.state).replayed
    }

    /// What was found.
    pub(super) fn found(&self) -> BTreeSet<PostId> {
        let mut state = lock(&self.state);
        state.look_for.clear();
        state.replayed_end.clear();
        std::mem::take(&mut state.found)
    }

    fn told(&self, notice: &UntypedMessage) {
        if notice.method() != "session/update" {
            return;
        }
        let update = &notice.params()["update"];
        let mut state = lock(&self.state);
        let session = notice.params()["sessionId"].as_str();
        let is_another = state
            .session
            .as_deref()
            .is_some_and(|own| session != Some(own));
        // Its sub-agents are held to the hook, too.
        if self.is_hooked && state.prompted && state.is_unasked(update) {
            drop(state);
            let why = "it has made a call that it did not ask about, so it was stopped: this version \
                       does not run the hook by which it has to ask. `asyncagents setup agents` \
                       installs one that does";
            self.events.send(WireEvent::Disobeyed(why.to_owned()));
            return;
        }
        if is_another || updates::is_of_sub_agent(update) {
            let is_followed = state.prompted;
            drop(state);
            // Between turns nobody waits for it.
            if is_followed {
                self.events.send(WireEvent::Alive);
            }
            return;
        }
        state.find_posts(update);
        if !state.prompted {
            state.replayed += u64::from(updates::is_said_or_done(update));
            return;
        }
        if updates::is_failure(update) {
            state.failure.get_or_insert_default();
        } else if let Some(why) = updates::gooses_failure(update) {
            state.failure = Some(why.to_owned());
            return;
        } else if let (Some(why), Some(said)) = (&mut state.failure, updates::said(update)) {
            // The agent's words, not its model's.
            let room = (4 * LONGEST_FAILURE).saturating_sub(why.len());
            why.push_str(&said[..said.floor_char_boundary(room)]);
            return;
        }
        state.note_call(update);
        drop(state);
        for news in updates::news(update) {
            self.events.send(news);
        }
    }

    fn asked(
        &self,
        request: &UntypedMessage,
        responder: Responder<Value>,
    ) -> Result<(), acp::Error> {
        let (method, params) = (request.method(), request.params());
        let size = params.to_string().len();
        let mut state = lock(&self.state);
        if !state.has_room_to_ask(size) {
            self.unsent.add();
            let error = acp::Error::internal_error().data("too many questions are open");
            return responder.respond_with_error(error);
        }
        state.asks += 1;
        let id = state.asks.to_string();
        let open = |responder: Responder<Value>| {
            let (open, answered) = oneshot::channel();
            let cancellation = responder.cancellation();
            // Its receiver lives as long as the connection.
            let _ = self.revocable.send(Revocable {
                id: id.clone(),
                cancellation,
                answered,
            });
            OpenRequest {
                request: params.clone(),
                size,
                responder,
                _open: open,
            }
        };
        let (open, ask) = match method {
            "session/request_permission" => {
                let call = state.call(&params["toolCall"]);
                let mut ask = ask::permission(id.clone(), &call, self.tools.as_deref());
                if self.titles_are_commands {
                    ask::take_title_for_command(&mut ask);
                }
                (OpenAsk::Permission(open(responder)), ask)
            }
            "elicitation/create" => match ask::form(id.clone(), params) {
                Some(ask) => (OpenAsk::Form(open(responder)), ask),
                None => {
                    self.unsent.add();
                    return responder.respond(ask::declined());
                }
            },
            // It has files and terminals of its own.
            _ => {
                self.unsent.add();
                return responder.respond_with_error(acp::Error::method_not_found());
            }
        };
        state.asked.insert(ask.id.clone(), open);
        drop(state);
        self.events.send(WireEvent::Asked(ask));
        Ok(())
    }

    /// A hook asks. It forbids its call if it gets no answer.
    fn hooked(&self, asked: HookCall) {
        let mut state = lock(&self.state);
        state.asks += 1;
        let id = state.asks.to_string();
        let Some(read) = hook::read(id, &asked.input, self.tools.as_deref()) else {
            return;
        };
        let (call, answer) = (read.call, asked.answer);
        let Some(ask) = read.ask else {
            // A hook that was killed hears nothing.
            let _ = answer.send(hook::printed(&Reply::Once));
            return;
        };
        // Between prompts nobody hears it, and the agent has nothing to do. What it runs may ask, too.
        if !state.prompted || !state.has_room_to_ask(0) || state.allowed.len() >= MOST_ALLOWED {
            return;
        }
        let open = OpenAsk::Hook { call, answer };
        state.asked.insert(ask.id.clone(), open);
        drop(state);
        self.events.send(WireEvent::Asked(ask));
    }

    /// Answers a question. False if the words of a rejection could not be told with it.
    fn reply(&self, question: &str, reply: &Reply) -> bool {
        let mut state = lock(&self.state);
        let Some(open) = state.asked.remove(question) else {
            return true;
        };
        // The protocol has no place for words; a hook has.
        let tells = matches!(open, OpenAsk::Hook { .. });
        state.answer(open, reply, &self.unsent);
        tells || !matches!(reply, Reply::Reject { text: Some(_) })
    }

    /// Leaves everything unanswered that is open.
    fn withdraw_all(&self) {
        let open = std::mem::take(&mut lock(&self.state).asked);
        for (_, open) in open {
            let unsent = &self.unsent;
            match open {
                OpenAsk::Permission(open) => {
                    answer_to(open.responder, ask::cancelled(), unsent);
                }
                OpenAsk::Form(open) => answer_to(open.responder, ask::declined(), unsent),
                // Without an answer it forbids its call.
                OpenAsk::Hook { .. } => {}
            }
        }
    }

    /// The agent needs no answer any more. The protocol wants one all the same.
    fn taken_back(&self, question: &str) {
        let open = lock(&self.state).asked.remove(question);
        if let Some(OpenAsk::Permission(open) | OpenAsk::Form(open)) = open {
            self.unsent.add();
            let answered = open
                .responder
                .respond_with_error(acp::Error::request_cancelled());
            if let Err(error) = answered {
                tracing::debug!(%error, "an agent could not be answered");
            }
            self.events.send(WireEvent::Withdrawn(question.to_owned()));
        }
    }
}

fn answer_to(responder: Responder<Value>, answer: Value, unsent: &Unsent) {
    unsent.add();
    if let Err(error) = responder.respond(answer) {
        tracing::debug!(%error, "an agent could not be answered");
    }
}

/// No name of a post takes more, with what is around it.
const LONGEST_MARK: usize = 300;

impl State {
    /// Looks for posts in a piece of what was said to the agent before.
    fn find_posts(&mut self, update: &Value) {
        if self.look_for.is_empty() {
            return;
        }
        let Some(text) = updates::said_to_it(update) else {
            self.replayed_end.clear();
            return;
        };
        let text = format!("{}{text}", self.replayed_end);
        let found = self.look_for.iter().filter(|post| is_in(&text, post));
        self.found.extend(found.cloned());
        let end = text.floor_char_boundary(text.len().saturating_sub(LONGEST_MARK));
        self.replayed_end = text[end..].to_owned();
    }

    /// Whether a question of so many bytes can be open beside the others.
    fn has_room_to_ask(&self, size: usize) -> bool {
        let sizes = self.asked.values().map(|open| match open {
            OpenAsk::Permission(open) | OpenAsk::Form(open) => open.size,
            OpenAsk::Hook { .. } => 0,
        });
        self.asked.len() < MOST_ASKED && sizes.sum::<usize>() + size <= MOST_OF_ASKED
    }

    /// Answers what was asked.
    fn answer(&mut self, open: OpenAsk, reply: &Reply, unsent: &Unsent) {
        match open {
            OpenAsk::Permission(open) => {
                answer_to(open.responder, ask::permitted(&open.request, reply), unsent);
            }
            OpenAsk::Form(open) => {
                answer_to(open.responder, ask::filled(&open.request, reply), unsent);
            }
            OpenAsk::Hook { call, answer } => {
                if matches!(reply, Reply::Once | Reply::Always) {
                    self.allowed.insert(call);
                }
                // A hook that was killed hears nothing.
                let _ = answer.send(hook::printed(reply));
            }
        }
    }

    /// Whether a command is run or a file changed, and no hook was allowed that. Agents go on when a hook
    /// is missing, fails, or was killed.
    fn is_unasked(&self, update: &Value) -> bool {
        let is_asked_about = match update["kind"].as_str() {
            Some("execute" | "edit" | "delete" | "move") => true,
            // A command with which it reads has no input; a look at a picture or into the web has.
            Some("read" | "search") => update["rawInput"].is_null(),
            _ => false,
        };
        let call = updates::call_id(update).unwrap_or_default();
        is_asked_about && !self.allowed.contains(call)
    }

    /// Keeps what is known of a call: a question about it may not repeat it.
    fn note_call(&mut self, update: &Value) {
        let Some(id) = updates::call_id(update) else {
            return;
        };
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            self.calls.remove(id);
            return;
        }
        let size = update.to_string().len();
        let kept: usize = self.calls.values().map(|known| known.size).sum();
        let is_new = !self.calls.contains_key(id);
        if is_new && self.calls.len() >= MOST_CALLS || kept + size > MOST_OF_CALLS {
            return;
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        known.call = merged(&known.call, update);
        known.size += size;
    }

    /// A call that is asked about, with what was said of it before.
    fn call(&self, asked: &Value) -> Value {
        let id = asked["toolCallId"].as_str().unwrap_or_default();
        let known = self.calls.get(id);
        known.map_or_else(|| asked.clone(), |known| merged(&known.call, asked))
    }
}

/// The fields of both; those of the newer one count.
fn merged(known: &Value, newer: &Value) -> Value {
    let mut fields = known.as_object().cloned().unwrap_or_default();
    for (name, value) in newer.as_object().into_iter().flatten() {
        let is_empty = value.is_null() || value.as_object().is_some_and(|it| it.is_empty());
        if !is_empty {
            fields.insert(name.clone(), value.clone());
        }
    }
    Value::Object(fields)
}

/// A session that is open in a process.
pub(super) struct OpenConnection {
    pub(super) peer: Peer,
    pub(super) opened: SessionOpened,
    pub(super) capabilities: Capabilities,
    /// What is said before the first prompt, where the agent takes no instructions.
    pub(super) first: Mutex<Option<String>>,
}

impl OpenConnection {
    fn blocks(&self, message: &Message) -> Vec<Value> {
        let text = |text: &str| json!({"type": "text", "text": text});
        let first = lock(&self.first).take();
        let parts = message.parts.iter().map(|part| match part {
            MessagePart::Text(said) => text(said),
            MessagePart::Context(context) if self.capabilities.embeds_context => json!({
                "type": "resource",
                "resource": {"uri": CONTEXT, "mimeType": "text/markdown", "text": context},
            }),
            MessagePart::Context(context) => text(context),
        });
        first.iter().map(|said| text(said)).chain(parts).collect()
    }

    fn model_failed(&self, why: &str) -> TurnStop {
        let name = &self.peer.name;
        TurnStop::Failed(match why.trim() {
            "" => format!("{name}: its model failed"),
            why => format!("{name}: {}", shorten(why, LONGEST_FAILURE, "…")),
        })
    }
}

#[async_trait]
impl Connection for OpenConnection {
    fn session(&self) -> &SessionOpened {
        &self.opened
    }

    async fn prompt(&self, message: &Message) -> Result<TurnEnd, WireError> {
        lock(&self.peer.heard.state).prompted = true;
        let params = json!({"sessionId": self.opened.id, "prompt": self.blocks(message)});
        let asked = self.peer.ask("session/prompt", params).await;
        let failure = {
            let mut state = lock(&self.peer.heard.state);
            state.prompted = false;
            // No later turn asks about these.
            state.calls.clear();
            state.allowed.clear();
            state.failure.take()
        };
        self.peer.heard.withdraw_all();
        let answer = asked?;
        let models = answer.pointer("/_meta/quota/model_usage/0/model");
        if let Some(model) = models.and_then(Value::as_str) {
            let model = WireEvent::Model(model.to_owned());
            self.peer.heard.events.send(model);
        }
        Ok(TurnEnd {
            stop: failure.map_or_else(|| stop(&answer), |why| self.model_failed(&why)),
            usage: usage(&answer["usage"]).or_else(|| quota(&answer)),
        })
    }

    async fn steer(&self, message: &Message) -> Result<bool, WireError> {
        if !self.capabilities.steers {
            return Ok(false);
        }
        let params = json!({
            "sessionId": self.opened.id,
            "prompt": self.blocks(message),
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        });
        match self.peer.ask("_session/steering", params).await {
            Ok(answer) => Ok(answer["outcome"] == "injected"),
            Err(WireError::Gone(why)) => Err(WireError::Gone(why)),
            Err(_) => Ok(false),
        }
    }

    async fn cancel(&self) {
        self.peer
            .tell("session/cancel", json!({"sessionId": self.opened.id}));
        self.peer.heard.withdraw_all();
    }

    fn reply(&self, question: &str, reply: &Reply) -> bool {
        self.peer.heard.reply(question, reply)
    }

    async fn close(&self) {
        if self.capabilities.closes {
            let params = json!({"sessionId": self.opened.id});
            let _ = self.peer.ask("session/close", params).await;
        }
    }
}

fn stop(answer: &Value) -> TurnStop {
    let failed = |why: &str| TurnStop::Failed(why.to_owned());
    match answer["stopReason"].as_str() {
        Some("cancelled") => TurnStop::Cancelled,
        Some("refusal") => failed("the model refused to answer"),
        Some("max_tokens") => failed("the answer was cut at the model's greatest length"),
        Some("max_turn_requests") => failed("its agent's limit of requests in a turn is reached"),
        _ => TurnStop::Finished,
    }
}

/// The tokens of a turn. Some agents count what was cached as input, others beside it.
fn usage(usage: &Value) -> Option<Usage> {
    let most = updates::MOST_TOKENS;
    let tokens = |name: &str| usage[name].as_u64().unwrap_or_default().min(most);
    let total = usage["totalTokens"].as_u64()?;
    let (cache_read, cache_write) = (tokens("cachedReadTokens"), tokens("cachedWriteTokens"));
    let (input, output) = (tokens("inputTokens"), tokens("outputTokens"));
    let cached = cache_read.saturating_add(cache_write);
    let beside = input.saturating_add(output).saturating_add(cached) <= total;
    Some(Usage {
        input: if beside {
            input
        } else {
            input.saturating_sub(cached)
        },
        cache_read,
        cache_write,
        output,
    })
}

/// The tokens of a turn, as Gemini CLI has them. It does not say what was cached.
fn quota(answer: &Value) -> Option<Usage> {
    let counted = answer.pointer("/_meta/quota/token_count")?;
    Some(Usage {
        input: counted["input_tokens"].as_u64()?.min(updates::MOST_TOKENS),
        output: counted["output_tokens"].as_u64()?.min(updates::MOST_TOKENS),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent begins without end is not kept without end.
    #[test]
    fn calls_that_never_end_fill_no_memory() {
        let mut state = State::default();
        let input = "x".repeat(1 << 20);
        for id in 0..40 {
            let update = json!({"toolCallId": id.to_string(), "rawInput": {"command": input}});
            state.note_call(&update);
        }
        let kept: usize = state
            .calls
            .values()
            .map(|known| known.call.to_string().len())
            .sum();
        assert!(
            (MOST_OF_CALLS / 2..=MOST_OF_CALLS).contains(&kept),
            "{kept}"
        );
        let mut state = State::default();
        for id in 0..2 * MOST_CALLS {
            state.note_call(&json!({"toolCallId": id.to_string()}));
        }
        assert_eq!(state.calls.len(), MOST_CALLS);
        // One that was noted and has ended makes room.
        state.note_call(&json!({"toolCallId": "7", "status": "completed"}));
        state.note_call(&json!({"toolCallId": "new", "title": "ls"}));
        assert_eq!(state.call(&json!({"toolCallId": "new"}))["title"], "ls");
    }
}
