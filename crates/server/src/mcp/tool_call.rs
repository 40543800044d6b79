//! One call of a tool, from its arguments to its answer.

use std::sync::atomic::Ordering;

use asyncagents_core::{
    agent::ToolOutcome,
    arguments::CallError,
    request::OutputRequest,
    tool_set::{self, Prepared, ToolRequest},
};
use asyncagents_runtime::{Answered, Asking, TakenNotice};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult},
    service::RequestContext,
};

use super::{
    Answers, ToolCaller,
    answer::{answer, done, failed},
    call,
    protocol_tasks::{self, Wait},
    server::Server,
    structured::structured,
};

impl Server {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = request.arguments.unwrap_or_default();
        let source = call::source(context, &mut arguments);
        let input = serde_json::Value::Object(arguments).to_string();
        let Prepared { request, .. } = match tool_set::prepare("", &request.name, &input) {
            Ok(prepared) => prepared,
            // No model does that: a client shows it the tools there are.
            Err(CallError::NoTool(why)) => return Err(ErrorData::invalid_params(why, None)),
            Err(error) => return Ok(failed(error.to_string()).into()),
        };
        if let Err(why) = self.who.check(&request).await {
            return Ok(failed(why).into());
        }
        let caller = match self.who.who(source).await {
            Ok(caller) => caller,
            Err(why) => return Ok(failed(why).into()),
        };
        self.sessions.add(&caller);
        if let Err(why) = check_fork(&caller, &request) {
            return Ok(failed(why).into());
        }
        if let ToolRequest::Output(output) = &request
            && protocol_tasks::is_spoken_by(context)
            && let Some(handle) = self.handle(&caller, output).await
        {
            return Ok(handle.into());
        }
        let changes = !request.only_looks();
        let call = caller.call.clone();
        let answered = caller.door.call_from(&caller.session, call, request).await;
        if changes {
            self.who.changed().await;
        }
        Ok(self.answer(&caller, answered).await.into())
    }

    /// A handle in the place of a call that would wait.
    async fn handle(
        &self,
        caller: &ToolCaller,
        request: &OutputRequest,
    ) -> Option<CreateTaskResult> {
        let lasts = protocol_tasks::waits(request)?;
        let shown = caller
            .door
            .look(&caller.session, &request.task)
            .await
            .ok()?;
        if !shown.task.is_live() {
            return None;
        }
        let task = &shown.task;
        // If it is told of the end all the same, it has only been told twice.
        if let Err(problem) = self
            .manager
            .will_ask(&caller.session, &task.id, lasts)
            .await
        {
            tracing::warn!(%problem, "a client that follows a task may be told of its end too");
        }
        let now = self.manager.now();
        Some(Wait::new(task, now, lasts).handle(&shown, now))
    }

    async fn answer(&self, caller: &ToolCaller, answered: Answered) -> CallToolResult {
        let taken = self.untold(caller).await;
        let is_done = matches!(answered.outcome, ToolOutcome::Done(_));
        let remark = is_done.then(|| self.remark(caller)).flatten();
        let (text, result): (String, fn(String) -> CallToolResult) = match answered.outcome {
            ToolOutcome::Done(text) => (text, done),
            ToolOutcome::Failed(why) => (why, failed),
            ToolOutcome::Unknown => ("what came of it is not known".to_owned(), failed),
        };
        let text = answer(text, &taken, remark);
        let value = match self.answers {
            Answers::Text => None,
            Answers::Structured => Some(structured(&text, answered.about, self.manager.now())),
        };
        let mut result = result(text);
        result.structured_content = value;
        result
    }

    /// What the caller should know, with the first answer to something that was done.
    fn remark(&self, caller: &ToolCaller) -> Option<String> {
        let first = !self.remarked.swap(true, Ordering::Relaxed);
        caller.remark.clone().filter(|_| first)
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
