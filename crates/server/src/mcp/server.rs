//! What a client can ask for, one method each.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use asyncagents_core::{answer::Shown, lock::lock};
use asyncagents_runtime::Manager;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, GetPromptRequestParams,
        GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, JsonObject,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, SubscriptionFilter,
        Tool, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;

use super::{
    Answers, WhoCalls,
    answer::failed,
    call,
    changes::Lists,
    connection::Gone,
    custom,
    instructions::INSTRUCTIONS,
    progress::with_progress,
    prompts,
    protocol_tasks::{self, Wait},
    resources::{self, Address},
    sessions::Sessions,
    skills::{self, ServedSkills},
    tools::tools,
};

/// How many handles of waits that were given up are remembered.
const MOST_GIVEN_UP: usize = 1_000;

/// One client's server.
pub(super) struct Server {
    pub(super) manager: Manager,
    pub(super) who: Arc<dyn WhoCalls>,
    pub(super) answers: Answers,
    pub(super) gone: Gone,
    pub(super) sessions: Sessions,
    pub(super) lists: Arc<Lists>,
    /// Whether the caller has been told what it should know.
    pub(super) remarked: AtomicBool,
    /// The handles of waits that the client has given up.
    given_up: Mutex<HashSet<String>>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_extensions_with(skills::extension())
            .enable_tasks()
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
            answer = called => answer,
            // A wait that is given up is known to the journal: the session is told of the end.
            () = cancelled.cancelled() => Ok(failed("cancelled".to_owned()).into()),
            () = self.gone.wait() => Ok(failed("the connection is closed".to_owned()).into()),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let (wait, shown) = self.wait(&request.task_id, &context).await?;
        let now = self.manager.now();
        if lock(&self.given_up).contains(&request.task_id) {
            return Ok(GetTaskResult::new(wait.given_up(&shown, now)));
        }
        let awaited = self.sessions.awaited(&wait.task, wait.is_over(now));
        let (shown, said) = awaited.await.map_err(protocol_tasks::unknown)?;
        Ok(GetTaskResult::new(wait.detailed(&shown, said, now)?))
    }

    /// Nothing is ever asked for here.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.wait(&request.task_id, &context).await.map(drop)
    }

    /// The wait is given up. The task that was waited for goes on, as with any other call.
    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.wait(&request.task_id, &context).await?;
        let mut given_up = lock(&self.given_up);
        // A client that gives up so many follows none of them any more.
        if given_up.len() >= MOST_GIVEN_UP {
            given_up.clear();
        }
        given_up.insert(request.task_id);
        Ok(())
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
        let mut resources: Vec<_> = tasks.iter().flat_map(resources::resources).collect();
        // Others would show their user each file.
        if skills::is_spoken_by(&context) {
            resources.extend(self.skills(ServedSkills::resources).await);
        }
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
        let uri = request.uri;
        if skills::is_address(&uri) {
            let (address, data) = (uri.clone(), json!({"uri": uri}));
            let file = self.skills(move |skills| skills.read(&address)).await;
            let missing = || ErrorData::resource_not_found(skills::no_file(&uri), Some(data));
            return Ok(ReadResourceResult::new(vec![file.ok_or_else(missing)?]).into());
        }
        self.add_caller(&context).await;
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

    /// The library would answer with an empty list, although nothing says that there are completions.
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

    /// Methods that the library does not know, and requests that it could not read as what their
    /// method says.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let text = |name: &str| {
            let value = request.params.as_ref()?.get(name)?.as_str()?;
            Some(value.to_owned())
        };
        match (request.method.as_str(), text("uri")) {
            (skills::LIST, _) => {
                let after = text("cursor");
                let list = self
                    .skills(move |skills| skills.list(after.as_deref()))
                    .await;
                Ok(CustomResult::new(list))
            }
            (skills::GET, Some(uri)) => {
                let address = uri.clone();
                let found = self.skills(move |skills| skills.get(&address)).await;
                let missing = || ErrorData::invalid_params(skills::no_skill(&uri), None);
                found.map(CustomResult::new).ok_or_else(missing)
            }
            (method, _) => Err(custom::refused(method)),
        }
    }
}

impl Server {
    pub(super) fn new(
        manager: Manager,
        who: Arc<dyn WhoCalls>,
        answers: Answers,
        gone: Gone,
    ) -> Self {
        Self {
            manager,
            who,
            answers,
            gone,
            sessions: Sessions::default(),
            lists: Arc::default(),
            remarked: AtomicBool::new(false),
            given_up: Mutex::default(),
        }
    }

    /// Knows the session of a client that has called nothing yet, if it is known without a call.
    async fn add_caller(&self, context: &RequestContext<RoleServer>) {
        let source = call::source(context, &mut JsonObject::new());
        if let Ok(caller) = self.who.who(source).await {
            self.sessions.add(&caller);
        }
    }

    /// The wait that a handle stands for, and its task, if that is one of this client.
    async fn wait(
        &self,
        handle: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Wait, Shown), ErrorData> {
        let unknown = || protocol_tasks::unknown(format!("there is no task {handle}"));
        let wait = Wait::parse(handle).ok_or_else(unknown)?;
        self.add_caller(context).await;
        let (_, _, shown) = self
            .sessions
            .owner(&wait.task)
            .await
            .map_err(protocol_tasks::unknown)?;
        Ok((wait, shown))
    }

    async fn tools(&self) -> Vec<Tool> {
        let who = self.who.clone();
        let disclosed = tokio::task::spawn_blocking(move || who.disclosed()).await;
        let disclosed = disclosed.ok().flatten();
        let agents = self.who.agents().await;
        self.lists.show_tools(disclosed.as_deref(), &agents);
        tools(disclosed.as_deref(), &agents)
    }

    /// Asks about the skills that clients are given, whose files are read now.
    async fn skills<T: Default + Send + 'static>(
        &self,
        ask: impl FnOnce(ServedSkills) -> T + Send + 'static,
    ) -> T {
        let who = self.who.clone();
        let asked =
            tokio::task::spawn_blocking(move || ask(ServedSkills::new(who.served_skills())));
        asked.await.unwrap_or_default()
    }
}
