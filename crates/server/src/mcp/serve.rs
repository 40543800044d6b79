//! Serves one client, on standard input and output.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use asyncagents_core::{agent::ToolOutcome, tool_set};
use asyncagents_runtime::{Asking, Manager, TakenNotice};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::stdio,
};
use thiserror::Error;

use super::{
    ToolCaller, WhoCalls,
    answer::{answer, done, failed},
    call,
    instructions::INSTRUCTIONS,
    progress::with_progress,
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
    let server = Server {
        manager,
        who,
        remarked: AtomicBool::new(false),
    };
    let failed = |error: &dyn std::fmt::Display| ServeError(error.to_string());
    let running = server.serve(stdio()).await;
    let running = running.map_err(|error| failed(&error))?;
    let ended = running.waiting().await;
    ended.map(drop).map_err(|error| failed(&error))
}

struct Server {
    manager: Manager,
    who: Arc<dyn WhoCalls>,
    /// Whether the caller has been told what it should know.
    remarked: AtomicBool,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
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
            answer = called => Ok(answer.into()),
            // A wait that is given up is known to the journal: the session is told of the end.
            () = cancelled.cancelled() => Ok(failed("cancelled".to_owned()).into()),
        }
    }
}

impl Server {
    async fn tools(&self) -> Vec<Tool> {
        let who = self.who.clone();
        let disclosed = tokio::task::spawn_blocking(move || who.disclosed()).await;
        let disclosed = disclosed.ok().flatten();
        tools(disclosed.as_deref(), &self.who.agents().await)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let mut arguments = request.arguments.unwrap_or_default();
        let source = call::source(context, &mut arguments);
        let input = serde_json::Value::Object(arguments).to_string();
        let prepared = match tool_set::prepare("", &request.name, &input) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error.to_string()),
        };
        if let Err(why) = self.who.check(&prepared.request).await {
            return failed(why);
        }
        let caller = match self.who.who(source).await {
            Ok(caller) => caller,
            Err(why) => return failed(why),
        };
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
        match outcome {
            ToolOutcome::Done(text) => done(answer(text, &taken, remark)),
            ToolOutcome::Failed(why) => failed(answer(why, &taken, remark)),
            ToolOutcome::Unknown => failed("what came of it is not known".to_owned()),
        }
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
