//! An editor: the protocol's own client, and what it has seen.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use agent_client_protocol::{
    Agent, Client, Error, Lines, Responder, V1, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, InitializeRequest, InitializeResponse, LoadSessionRequest,
            NewSessionRequest, PermissionOptionKind, PlanEntry, PlanEntryStatus, PromptRequest,
            PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
            RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
            SessionUpdate, SetSessionModeRequest, ToolCall, ToolCallContent, ToolCallStatus,
        },
    },
};
use futures_util::{sink, stream};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use crate::home::{Home, PATIENCE, until};

pub(crate) struct Editor {
    child: Child,
    pub(crate) agent: ConnectionTo<Agent>,
    pub(crate) initialized: InitializeResponse,
    seen: Seen,
    questions: mpsc::UnboundedReceiver<Question>,
    connection: JoinHandle<Result<(), Error>>,
}

/// A question that waits for its answer.
pub(crate) struct Question {
    pub(crate) request: RequestPermissionRequest,
    responder: Responder<RequestPermissionResponse, V1>,
}

impl Question {
    /// Chooses the option of this kind.
    pub(crate) fn answer(self, kind: PermissionOptionKind) {
        let mut options = self.request.options.iter();
        let chosen = options.find(|option| option.kind == kind);
        let chosen = chosen.expect("such an option").option_id.clone();
        let outcome = SelectedPermissionOutcome::new(chosen);
        self.respond(RequestPermissionOutcome::Selected(outcome));
    }

    pub(crate) fn respond(self, outcome: RequestPermissionOutcome) {
        let answer = RequestPermissionResponse::new(outcome);
        self.responder.respond(answer).expect("answered");
    }
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<SessionNotification>>>);

impl Seen {
    fn of(&self, session: &SessionId) -> Vec<SessionUpdate> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = seen.iter().filter(|seen| seen.session_id == *session);
        own.map(|seen| seen.update.clone()).collect()
    }
}

impl Editor {
    pub(crate) async fn start(home: &Home) -> Self {
        Self::start_with(home.command(&["acp"])).await
    }

    pub(crate) async fn start_with(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let output = child.stdout.take().expect("an output");
        let input = child.stdin.take().expect("an input");
        let lines = stream::unfold(BufReader::new(output).lines(), |mut lines| async {
            lines
                .next_line()
                .await
                .transpose()
                .map(|line| (line, lines))
        });
        let written = sink::unfold(input, |mut input, line: String| async move {
            input.write_all(format!("{line}\n").as_bytes()).await?;
            Ok::<_, io::Error>(input)
        });
        let (asked, questions) = mpsc::unbounded_channel();
        let (connected, agent) = oneshot::channel();
        let seen = Seen::default();
        let sees = seen.clone();
        let connection = tokio::spawn(
            Client
                .v1()
                .on_receive_notification(
                    async move |seen: SessionNotification, _| {
                        let mut all = sees.0.lock().unwrap_or_else(PoisonError::into_inner);
                        all.push(seen);
                        Ok(())
                    },
                    on_receive_notification!(),
                )
                .on_receive_request(
                    async move |request: RequestPermissionRequest, responder, _| {
                        let _ = asked.send(Question { request, responder });
                        Ok(())
                    },
                    on_receive_request!(),
                )
                .connect_with(
                    Lines::new(Box::pin(written), Box::pin(lines)),
                    move |agent: ConnectionTo<Agent>| async move {
                        let _ = connected.send(agent.clone());
                        agent.incoming_closed().await;
                        Ok(())
                    },
                ),
        );
        let agent = agent.await.expect("connected");
        let initialize = InitializeRequest::new(ProtocolVersion::V1);
        let initialized = agent.send_request(initialize).block_task().await;
        Self {
            child,
            agent,
            initialized: initialized.expect("initialized"),
            seen,
            questions,
            connection,
        }
    }

    pub(crate) async fn new_session(&self, folder: &Path) -> Result<SessionId, Error> {
        let request = NewSessionRequest::new(folder);
        let opened = self.agent.send_request(request).block_task().await;
        opened.map(|opened| opened.session_id)
    }

    /// A session in the folder of a home.
    pub(crate) async fn session(&self, home: &Home) -> SessionId {
        self.new_session(&home.work()).await.expect("a session")
    }

    pub(crate) async fn load(&self, session: &SessionId, home: &Home) -> Result<(), Error> {
        let request = LoadSessionRequest::new(session.clone(), home.work());
        let loaded = self.agent.send_request(request).block_task().await;
        loaded.map(drop)
    }

    pub(crate) async fn set_mode(&self, session: &SessionId, mode: &str) -> Result<(), Error> {
        let request = SetSessionModeRequest::new(session.clone(), mode.to_owned());
        let set = self.agent.send_request(request).block_task().await;
        set.map(drop)
    }

    /// Sends a prompt, and does not wait for its end.
    pub(crate) fn begin(
        &self,
        session: &SessionId,
        text: &str,
    ) -> JoinHandle<Result<PromptResponse, Error>> {
        let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
        let sent = self.agent.send_request(request);
        tokio::spawn(async move { sent.block_task().await })
    }

    /// Sends a prompt and waits for its end.
    pub(crate) async fn prompt(&self, session: &SessionId, text: &str) -> PromptResponse {
        ended(self.begin(session, text)).await.expect("no error")
    }

    /// The next question.
    pub(crate) async fn question(&mut self) -> Question {
        let asked = timeout(PATIENCE, self.questions.recv()).await;
        asked.expect("it is never asked").expect("connected")
    }

    /// Whether something was asked that nobody has looked at.
    pub(crate) fn has_question(&mut self) -> bool {
        self.questions.try_recv().is_ok()
    }

    pub(crate) fn updates(&self, session: &SessionId) -> Vec<SessionUpdate> {
        self.seen.of(session)
    }

    /// What the agent has said in a session.
    pub(crate) fn said(&self, session: &SessionId) -> String {
        let updates = self.updates(session).into_iter();
        let texts = updates.filter_map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => Some(text_of(&chunk.content)),
            _ => None,
        });
        texts.collect()
    }

    /// The calls of a session as they are now, in their order.
    pub(crate) fn calls(&self, session: &SessionId) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for update in self.updates(session) {
            match update {
                SessionUpdate::ToolCall(call) => {
                    let known = calls
                        .iter()
                        .any(|one| one.tool_call_id == call.tool_call_id);
                    assert!(!known, "two calls have one name: {call:?}");
                    calls.push(call);
                }
                SessionUpdate::ToolCallUpdate(update) => {
                    let mut known = calls.iter_mut();
                    let call = known.find(|call| call.tool_call_id == update.tool_call_id);
                    call.expect("a call that began").update(update.fields);
                }
                _ => {}
            }
        }
        calls
    }

    /// The only call of a tool.
    pub(crate) fn call(&self, session: &SessionId, tool: &str) -> ToolCall {
        let mut calls = self.calls(session);
        calls.retain(|call| call.name.as_deref() == Some(tool));
        assert_eq!(calls.len(), 1, "{tool}: {calls:?}");
        calls.remove(0)
    }

    /// The plan as it is now.
    pub(crate) fn plan(&self, session: &SessionId) -> BTreeMap<String, PlanEntryStatus> {
        let updates = self.updates(session).into_iter().rev();
        let plan = updates.into_iter().find_map(|update| match update {
            SessionUpdate::Plan(plan) => Some(plan),
            _ => None,
        });
        let entries = plan.map(|plan| plan.entries).unwrap_or_default();
        let entry = |entry: PlanEntry| (entry.content, entry.status);
        entries.into_iter().map(entry).collect()
    }

    /// Waits until the plan has an entry with this status.
    pub(crate) async fn until_planned(
        &self,
        session: &SessionId,
        content: &str,
        status: PlanEntryStatus,
    ) {
        let what = format!("{content} is {status:?}");
        until(&what, || self.plan(session).get(content) == Some(&status)).await;
    }

    /// Closes the connection and waits for the end of the program.
    pub(crate) async fn close(mut self) -> std::process::ExitStatus {
        self.connection.abort();
        let _ = (&mut self.connection).await;
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends").expect("a status")
    }

    /// Ends the program as no process can prevent.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

/// How a prompt ended.
pub(crate) async fn ended(
    prompt: JoinHandle<Result<PromptResponse, Error>>,
) -> Result<PromptResponse, Error> {
    let ended = timeout(PATIENCE, prompt).await;
    ended.expect("the turn ends").expect("no panic")
}

pub(crate) fn text_of(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The text in a call.
pub(crate) fn content_of(call: &ToolCall) -> String {
    let texts = call.content.iter().map(|content| match content {
        ToolCallContent::Content(content) => text_of(&content.content),
        other => panic!("{other:?}"),
    });
    texts.collect()
}

pub(crate) fn is_done(call: &ToolCall) -> bool {
    call.status == ToolCallStatus::Completed
}
