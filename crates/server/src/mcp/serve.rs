//! Serves one client, on standard input and output.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use asyncagents_core::{
    agent::ToolOutcome,
    arguments::CallError,
    tool_set::{self, ToolRequest},
};
use asyncagents_runtime::{Asking, Manager, TakenNotice};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode,
        GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{RequestContext, ServerInitializeError, SubscriptionContext},
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};
use serde_json::json;
use thiserror::Error;

use super::{
    ToolCaller, WhoCalls,
    answer::{answer, done, failed},
    call,
    changes::Lists,
    connection::{Connection, Gone},
    instructions::INSTRUCTIONS,
    progress::with_progress,
    prompts,
    resources::{self, Address},
    sessions::Sessions,
    tools::tools,
};

/// Why a client could not be served.
#[derive(Debug, Error)]
#[error("the MCP client could not be served: {0}")]
pub struct ServeError(String);

/// Serves one client until it closes the connection.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve_stdio(manager: Manager, who: Arc<dyn WhoCalls>) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    let (connection, gone) = Connection::new(AsyncRwTransport::new_server(input, output));
    let server = Server::new(manager, who.clone(), gone);
    let lists = server.lists.clone();
    let failed = |error: &dyn std::fmt::Display| ServeError(error.to_string());
    let running = match server.serve(connection).await {
        Ok(running) => running,
        // It was only tried whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    let peer = running.peer().clone();
    // A client of the newer era subscribes to changes.
    let has_initialized = peer.peer_info().is_some();
    tokio::select! {
        ended = running.waiting() => ended.map(drop).map_err(|error| failed(&error)),
        () = lists.tell(&who, &peer), if has_initialized => Ok(()),
    }
}

struct Server {
    manager: Manager,
    who: Arc<dyn WhoCalls>,
    gone: Gone,
    sessions: Sessions,
    lists: Arc<Lists>,
    /// Whether the caller has been told what it should know.
    remarked: AtomicBool,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .build();
        let name = Implementation::new("asyncagents", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools().await))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancelled = context.ct.clone();
        let called = with_progress(&context, self.call(request, &context));
        tokio::select! {
            answer = called => answer.map(Into::into),
            // A wait that is given up is known to the journal: the session is told of the end.
            () = cancelled.cancelled() => Ok(failed("cancelled".to_owned()).into()),
            () = self.gone.wait() => Ok(failed("the connection is closed".to_owned()).into()),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let who = self.who.clone();
        let skills = tokio::task::spawn_blocking(move || who.user_skills()).await;
        let skills = skills.unwrap_or_default();
        self.lists.show_prompts(&skills);
        Ok(ListPromptsResult::with_all_items(prompts::prompts(skills)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let typed = prompts::typed(&request);
        let text = self.who.skill_text(&request.name, &typed).await;
        let text = text.map_err(|why| ErrorData::invalid_params(why, None))?;
        Ok(prompts::message(text).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.add_caller(&context).await;
        let tasks = self.sessions.tasks(&self.manager).await;
        let tasks =
            tasks.map_err(|problem| ErrorData::internal_error(problem.to_string(), None))?;
        let resources = tasks.iter().flat_map(resources::resources).collect();
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.add_caller(&context).await;
        let uri = request.uri;
        let (text, kind) = match Address::parse(&uri) {
            Some(Address::Task(task)) => (self.sessions.output(task).await, "text/markdown"),
            Some(Address::Trace(chain)) => {
                let trace = self.sessions.trace(&self.manager, chain).await;
                (trace, "application/json")
            }
            None => (Err(format!("{uri} is no resource of asyncagents")), ""),
        };
        let data = json!({"uri": uri});
        let text = text.map_err(|why| ErrorData::resource_not_found(why, Some(data)))?;
        let contents = ResourceContents::text(text, uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    /// The SDK would answer with an empty list, although nothing says that there are completions.
    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let filter = SubscriptionFilter::builder();
        Some(filter.tools_list_changed().prompts_list_changed().build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = self.lists.tell_subscription(&self.who, &subscription) => {}
            () = subscription.cancelled() => {}
            () = self.gone.wait() => {}
        }
        Ok(())
    }

    /// Requests that could not be read as what their method says come here too.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "tools/call: the parameters must be {\"name\": TOOL, \"arguments\": {…}}",
                None,
            ),
            "prompts/get" => ErrorData::invalid_params(
                "prompts/get: the parameters must be {\"name\": SKILL, \"arguments\": {…}}",
                None,
            ),
            "resources/read" => ErrorData::invalid_params(
                "resources/read: the parameters must be {\"uri\": \"asyncagents://tasks/ID\"}",
                None,
            ),
            _ => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {method}"),
                None,
            ),
        })
    }
}

impl Server {
    fn new(manager: Manager, who: Arc<dyn WhoCalls>, gone: Gone) -> Self {
        Self {
            manager,
            who,
            gone,
            sessions: Sessions::default(),
            lists: Arc::default(),
            remarked: AtomicBool::new(false),
        }
    }

    /// Knows the session of a client that has called nothing yet, if it is known without a call.
    async fn add_caller(&self, context: &RequestContext<RoleServer>) {
        let source = call::source(context, &mut JsonObject::new());
        if let Ok(caller) = self.who.who(source).await {
            self.sessions.add(&caller);
        }
    }

    async fn tools(&self) -> Vec<Tool> {
        let who = self.who.clone();
        let disclosed = tokio::task::spawn_blocking(move || who.disclosed()).await;
        let disclosed = disclosed.ok().flatten();
        let agents = self.who.agents().await;
        self.lists.show_tools(disclosed.as_deref(), &agents);
        tools(disclosed.as_deref(), &agents)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let mut arguments = request.arguments.unwrap_or_default();
        let source = call::source(context, &mut arguments);
        let input = serde_json::Value::Object(arguments).to_string();
        let prepared = match tool_set::prepare("", &request.name, &input) {
            Ok(prepared) => prepared,
            // No model does that: a client shows it the tools there are.
            Err(CallError::NoTool(why)) => return Err(ErrorData::invalid_params(why, None)),
            Err(error) => return Ok(failed(error.to_string())),
        };
        if let Err(why) = self.who.check(&prepared.request).await {
            return Ok(failed(why));
        }
        let caller = match self.who.who(source).await {
            Ok(caller) => caller,
            Err(why) => return Ok(failed(why)),
        };
        self.sessions.add(&caller);
        if let Err(why) = check_fork(&caller, &prepared.request) {
            return Ok(failed(why));
        }
        let changes = !prepared.request.only_looks();
        let outcome = caller
            .door
            .call_from(&caller.session, caller.call.clone(), prepared.request);
        let outcome = outcome.await;
        if changes {
            self.who.changed().await;
        }
        let taken = self.untold(&caller).await;
        let first = !self.remarked.swap(true, Ordering::Relaxed);
        let remark = caller.remark.filter(|_| first);
        Ok(match outcome {
            ToolOutcome::Done(text) => done(answer(text, &taken, remark)),
            ToolOutcome::Failed(why) => failed(answer(why, &taken, remark)),
            ToolOutcome::Unknown => failed("what came of it is not known".to_owned()),
        })
    }

    /// What the session has not been told and can be told with this answer.
    async fn untold(&self, caller: &ToolCaller) -> Vec<TakenNotice> {
        if !caller.is_told_by_answers {
            return Vec::new();
        }
        let taken = self.manager.take_notices(&caller.session, Asking::Running);
        let taken = match taken.await {
            Ok(taken) => taken,
            Err(problem) => {
                tracing::warn!(%problem, "cannot read notices");
                return Vec::new();
            }
        };
        if caller.answers_arrive
            && let Err(problem) = self.manager.notices_told(&taken).await
        {
            tracing::warn!(%problem, "cannot settle notices");
        }
        taken
    }
}

/// A client whose conversation cannot be read has nothing that a fork could inherit.
fn check_fork(caller: &ToolCaller, request: &ToolRequest) -> Result<(), String> {
    let forks = matches!(request, ToolRequest::Task(args) if args.fork && args.resume.is_none());
    if caller.has_history || !forks {
        return Ok(());
    }
    Err("`fork` is not possible here: this client's conversation cannot be read. Leave it out, and \
         say in the prompt what the task has to know"
        .to_owned())
}
