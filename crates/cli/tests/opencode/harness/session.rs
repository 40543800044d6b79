//! A session of OpenCode, as a user and the API see it.

use asyncagents_scripted_model::Recorded;
use serde_json::Value;

use super::{
    api::{Api, Child, Prompt},
    message::{Message, Notice, Speaker, is_notice},
    opencode::command,
    playbook::{SECOND_MODEL, using},
    serve::Serve,
    world::header,
};

/// A session.
pub(crate) struct Session<'s> {
    serve: &'s Serve<'s>,
    pub(crate) id: String,
    /// Whom the user has chosen for it, if not the default.
    agent: Option<&'static str>,
    model: Option<&'static str>,
}

impl<'s> Session<'s> {
    pub(super) fn new(serve: &'s Serve<'s>, id: &str) -> Self {
        Self {
            serve,
            id: id.to_owned(),
            agent: None,
            model: None,
        }
    }

    /// The same, in which the user speaks to this agent.
    pub(crate) fn with_agent(mut self, agent: &'static str) -> Self {
        self.agent = Some(agent);
        self
    }

    /// The same, in which the user has chosen the second model.
    pub(crate) fn with_second_model(mut self) -> Self {
        self.model = Some(SECOND_MODEL);
        self
    }

    /// Says something, and waits until the session has nothing more to do. Returns the answer.
    pub(crate) fn asks(&self, prompt: &str) -> String {
        self.api().ask(self.serve, &self.id, &self.prompt(prompt))
    }

    /// Says something, and does not wait.
    pub(crate) fn begins(&self, prompt: &str) {
        let prompt = self.prompt(prompt);
        self.api().prompt(self.serve, &self.id, &prompt);
    }

    /// Has the session's model use a tool, and waits until the session has nothing more to
    /// do. Returns what the tool answered.
    pub(crate) fn uses(&self, tool: &str, parameters: Value) -> String {
        let before = self.results(tool).len();
        self.asks(&format!("{} {parameters}", using(tool)));
        let results = self.results(tool);
        assert_eq!(
            results.len(),
            before + 1,
            "{tool} was used once: {results:?}"
        );
        results.last().expect("one").clone()
    }

    /// Has the session's model run a command. Returns what it printed.
    pub(crate) fn runs(&self, line: &str) -> String {
        self.uses(self.serve.world.opencode.shell(), command(line))
    }

    /// Has the session's model use a tool, and does not wait.
    pub(crate) fn begins_to_use(&self, tool: &str, parameters: &Value) {
        self.begins(&format!("{} {parameters}", using(tool)));
    }

    /// Has the session's model run a command, and waits until it runs.
    pub(crate) fn begins_to_run(&self, line: &str) {
        let shell = self.serve.world.opencode.shell();
        self.begins_to_use(shell, &command(line));
        self.until_using(shell);
    }

    fn prompt<'p>(&self, text: &'p str) -> Prompt<'p> {
        Prompt {
            text,
            agent: self.agent,
            model: self.model,
        }
    }

    /// All messages, oldest first.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.api().messages(self.serve, &self.id)
    }

    /// The messages that the model has read or said, oldest first.
    pub(crate) fn history(&self) -> Vec<Message> {
        self.api().history(self.serve, &self.id)
    }

    /// What a tool answered or failed with, each time it was used to the end, oldest first.
    pub(crate) fn results(&self, tool: &str) -> Vec<String> {
        let messages = self.messages().into_iter();
        let calls = messages.flat_map(|message| message.calls);
        let calls = calls.filter(|call| call.tool == tool);
        calls.filter_map(|call| call.said).collect()
    }

    /// What the session was told about its tasks, oldest first.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.messages().iter().filter_map(Message::notice).collect()
    }

    /// Of how many ends it was told: one message may tell of several.
    pub(crate) fn ends_told(&self) -> usize {
        ends_of(&self.notices())
    }

    /// Waits until the session was told of so many ends, has answered the last message and is
    /// idle. Returns all it was told, which may be more.
    pub(crate) fn until_told(&self, ends: usize) -> Vec<Notice> {
        let what = format!("{} was told of {ends} ends and has answered", self.id);
        self.serve.world.until(&what, || {
            let notices = self.notices();
            let enough = ends_of(&notices) >= ends;
            (enough && self.has_answered() && self.is_idle()).then_some(notices)
        })
    }

    /// Waits until so many ends are told in the session, answered or not.
    pub(crate) fn until_notices(&self, ends: usize) -> Vec<Notice> {
        let what = format!("{ends} ends are told in the history of {}", self.id);
        self.serve.world.until(&what, || {
            let notices = self.notices();
            (ends_of(&notices) >= ends).then_some(notices)
        })
    }

    /// Waits until a tool is running in this session.
    pub(crate) fn until_using(&self, tool: &str) {
        let what = format!("{tool} is running in {}", self.id);
        self.serve.world.until(&what, || {
            let messages = self.messages();
            let mut calls = messages.iter().flat_map(|message| &message.calls);
            calls
                .any(|call| call.tool == tool && call.is_running())
                .then_some(())
        });
    }

    /// Waits until the session has nothing to do.
    pub(crate) fn until_idle(&self) {
        let what = format!("{} is idle", self.id);
        self.serve
            .world
            .until(&what, || self.is_idle().then_some(()));
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.api().is_idle(self.serve, &self.id)
    }

    /// Whether the newest message is a finished answer.
    pub(crate) fn has_answered(&self) -> bool {
        let messages = self.messages();
        messages
            .last()
            .is_some_and(|newest| newest.by == Speaker::Agent && newest.is_complete)
    }

    /// The sessions below this one.
    pub(crate) fn children(&self) -> Vec<Child> {
        self.api().children(self.serve, &self.id)
    }

    /// The only session below this one.
    pub(crate) fn child(&self) -> Session<'s> {
        let what = format!("{} has a child", self.id);
        let children = self.serve.world.until(&what, || {
            let children = self.children();
            (!children.is_empty()).then_some(children)
        });
        assert_eq!(children.len(), 1, "{children:?}");
        Session::new(self.serve, &children[0].id)
    }

    /// What the user does with Escape.
    pub(crate) fn abort(&self) {
        self.api().abort(self.serve, &self.id);
    }

    pub(crate) fn delete(&self) {
        self.api().delete(self.serve, &self.id);
    }

    /// Whether OpenCode has such a session.
    pub(crate) fn exists(&self) -> bool {
        self.api().exists(self.serve, &self.id)
    }

    /// Has OpenCode replace the conversation by a summary.
    pub(crate) fn summarize(&self) {
        self.api().summarize(self.serve, &self.id);
        self.until_idle();
    }

    /// Waits until it asks for a permission, and answers in the user's place.
    pub(crate) fn permit(&self, reply: &str) {
        let what = format!("{} asks for a permission", self.id);
        let question = self.serve.world.until(&what, || {
            let asked = self.api().permissions(self.serve, &self.id);
            asked.into_iter().next()
        });
        self.api().permit(self.serve, &self.id, &question, reply);
    }

    /// The model's requests of this session, oldest first.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.serve.world.model.requests();
        requests.retain(|request| header(request, "x-session-id") == Some(&self.id));
        requests
    }

    fn api(&self) -> &'static dyn Api {
        self.serve.world.opencode.api()
    }
}

fn ends_of(notices: &[Notice]) -> usize {
    let lines = notices.iter().flat_map(|notice| notice.visible.lines());
    lines.filter(|line| is_notice(line)).count()
}
