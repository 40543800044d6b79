//! One call of a tool, from its arguments to its answer.

use std::sync::atomic::Ordering;

use asyncagents_core::{
    agent::ToolOutcome,
    tool_set::{self, Prepared, ToolRequest},
};
use asyncagents_runtime::{About, Answered, Asking, TakenNotice};
use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult},
    service::RequestContext,
};

use super::{
    Answers, ToolCaller,
    answer::{answer, done, failed},
    call, protocol_tasks,
    server::Server,
    structured::structured,
};

impl Server {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut arguments = request.arguments.unwrap_or_default();
        let source = call::source(context, &mut arguments);
        let input = serde_json::Value::Object(arguments).to_string();
        let Prepared { mut request, .. } = match tool_set::prepare("", &request.name, &input) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error.to_string()).into(),
        };
        if let Err(why) = self.who.check(&request).await {
            return failed(why).into();
        }
        let caller = match self.who.who(source).await {
            Ok(caller) => caller,
            Err(why) => return failed(why).into(),
        };
        self.sessions.add(&caller);
        if let Err(why) = check_fork(&caller, &request) {
            return failed(why).into();
        }
        let follows_tasks = protocol_tasks::is_spoken_by(context);
        if follows_tasks {
            do_not_wait(&mut request);
        }
        let changes = !request.only_looks();
        let call = caller.call.clone();
        let answered = caller.door.call_from(&caller.session, call, request).await;
        if changes {
            self.who.changed().await;
        }
        match &answered {
            Answered {
                outcome: ToolOutcome::Done(text),
                about: About::Launched(shown),
            } if follows_tasks => {
                let waits = self.manager.will_ask(&caller.session, &shown.task.id);
                if let Err(problem) = waits.await {
                    tracing::warn!(%problem, "a client that follows a task may be told of its end too");
                }
                let text = answer(text.clone(), &[], self.remark(&caller));
                protocol_tasks::handle(shown, text, self.manager.now()).into()
            }
            _ => self.answer(&caller, answered).await.into(),
        }
    }

    async fn answer(&self, caller: &ToolCaller, answered: Answered) -> CallToolResult {
        let taken = self.untold(caller).await;
        let (text, result): (String, fn(String) -> CallToolResult) = match answered.outcome {
            ToolOutcome::Done(text) => (text, done),
            ToolOutcome::Failed(why) => (why, failed),
            ToolOutcome::Unknown => ("what came of it is not known".to_owned(), failed),
        };
        let text = answer(text, &taken, self.remark(caller));
        let value = match self.answers {
            Answers::Text => None,
            Answers::Structured => Some(structured(&text, answered.about, self.manager.now())),
        };
        let mut result = result(text);
        result.structured_content = value;
        result
    }

    /// What the caller should know, with the first answer.
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

/// A client that follows tasks itself is given one instead of being kept waiting.
fn do_not_wait(request: &mut ToolRequest) {
    if let ToolRequest::Skill(call) = request {
        call.background = Some(true);
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
