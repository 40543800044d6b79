//! A session of OpenCode, as a user and the API see it.

use asyncagents_scripted_model::Recorded;
use serde_json::{Value, json};

use super::{
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

/// What a parent was told about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What people see.
    pub(crate) visible: String,
    /// What only the model sees.
    pub(crate) hidden: String,
    /// The agent that it is addressed to.
    pub(crate) agent: String,
    /// The model that it is addressed to.
    pub(crate) model: String,
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
        let answer = self.serve.post(&self.path("message"), self.prompt(prompt));
        assert_eq!(answer.status, 200, "{prompt}: {answer:?}");
        text_of(&answer.body)
    }

    /// Says something, and does not wait.
    pub(crate) fn begins(&self, prompt: &str) {
        let path = self.path("prompt_async");
        let answer = self.serve.post(&path, self.prompt(prompt));
        assert_eq!(answer.status, 204, "{prompt}: {answer:?}");
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

    /// Has the session's model use a tool, and does not wait.
    pub(crate) fn begins_to_use(&self, tool: &str, parameters: &Value) {
        self.begins(&format!("{} {parameters}", using(tool)));
    }

    fn prompt(&self, text: &str) -> Value {
        let mut body = json!({"parts": [{"type": "text", "text": text}]});
        if let Some(agent) = self.agent {
            body["agent"] = json!(agent);
        }
        if let Some(model) = self.model {
            body["model"] = json!({"providerID": "scripted", "modelID": model});
        }
        body
    }

    /// All messages, oldest first.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let answer = self.serve.get(&self.path("message"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body.as_array().expect("messages").clone()
    }

    /// What a tool answered or failed with, each time it was used to the end, oldest first.
    pub(crate) fn results(&self, tool: &str) -> Vec<String> {
        let messages = self.messages();
        let parts = messages.iter().flat_map(parts_of);
        let ended = parts
            .filter(|part| part["tool"] == tool)
            .filter_map(|part| {
                let state = &part["state"];
                let said = state["output"].as_str().or(state["error"].as_str());
                said.map(str::to_owned)
            });
        ended.collect()
    }

    /// What the session was told about its tasks, oldest first.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.messages().iter().filter_map(notice_of).collect()
    }

    /// Waits until the session was told so many things, has answered the last of them and is
    /// idle. Returns all it was told, which may be more.
    pub(crate) fn until_told(&self, times: usize) -> Vec<Notice> {
        let what = format!("{} was told {times} times and has answered", self.id);
        self.serve.world.until(&what, || {
            let notices = self.notices();
            let enough = notices.len() >= times;
            (enough && self.has_answered() && self.is_idle()).then_some(notices)
        })
    }

    /// Waits until there are so many notices in the history, answered or not.
    pub(crate) fn until_notices(&self, times: usize) -> Vec<Notice> {
        let what = format!("{} notices are in the history of {}", times, self.id);
        self.serve.world.until(&what, || {
            let notices = self.notices();
            (notices.len() >= times).then_some(notices)
        })
    }

    /// Waits until a tool is running in this session.
    pub(crate) fn until_using(&self, tool: &str) {
        let what = format!("{tool} is running in {}", self.id);
        self.serve.world.until(&what, || {
            let messages = self.messages();
            let mut parts = messages.iter().flat_map(parts_of);
            parts
                .any(|part| part["tool"] == tool && part["state"]["status"] == "running")
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
        self.serve
            .get("/session/status")
            .body
            .get(&self.id)
            .is_none()
    }

    /// Whether the newest message is a finished answer.
    fn has_answered(&self) -> bool {
        let messages = self.messages();
        let newest = messages.last().map(|message| &message["info"]);
        newest.is_some_and(|info| {
            info["role"] == "assistant" && info["time"]["completed"].is_number()
        })
    }

    /// The sessions below this one.
    pub(crate) fn children(&self) -> Vec<Value> {
        let answer = self.serve.get(&self.path("children"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body.as_array().expect("sessions").clone()
    }

    /// The only session below this one.
    pub(crate) fn child(&self) -> Session<'s> {
        let what = format!("{} has a child", self.id);
        let children = self.serve.world.until(&what, || {
            let children = self.children();
            (!children.is_empty()).then_some(children)
        });
        assert_eq!(children.len(), 1, "{children:?}");
        Session::new(self.serve, children[0]["id"].as_str().expect("an ID"))
    }

    /// What the user does with Escape.
    pub(crate) fn abort(&self) {
        let answer = self.serve.post(&self.path("abort"), json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    pub(crate) fn delete(&self) {
        let answer = self.serve.delete(&format!("/session/{}", self.id));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Whether OpenCode has such a session.
    pub(crate) fn exists(&self) -> bool {
        self.serve.get(&format!("/session/{}", self.id)).status == 200
    }

    /// Has OpenCode replace the conversation by a summary.
    pub(crate) fn summarize(&self) {
        let model = json!({"providerID": "scripted", "modelID": super::FIRST_MODEL});
        let answer = self.serve.post(&self.path("summarize"), model);
        assert_eq!(answer.status, 200, "{answer:?}");
        self.until_idle();
    }

    /// The model's requests of this session, oldest first.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.serve.world.model.requests();
        requests.retain(|request| header(request, "x-session-id") == Some(&self.id));
        requests
    }

    fn path(&self, what: &str) -> String {
        format!("/session/{}/{what}", self.id)
    }
}

/// A notice, if a message is one: what a user would see, and a part that only the model sees.
fn notice_of(message: &Value) -> Option<Notice> {
    let info = &message["info"];
    let text = |synthetic: bool| {
        let mut parts = parts_of(message).filter(|part| part["type"] == "text");
        let part = parts.find(|part| (part["synthetic"] == true) == synthetic)?;
        part["text"].as_str().map(str::to_owned)
    };
    let visible = text(false)?;
    let told = info["role"] == "user" && is_notice(&visible);
    told.then(|| Notice {
        visible,
        hidden: text(true).unwrap_or_default(),
        agent: info["agent"].as_str().unwrap_or_default().to_owned(),
        model: info["model"]["modelID"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    })
}

/// Five children have each counted a shelf, and each end was told once.
pub(crate) fn each_shelf_told_once(notices: &[Notice]) {
    for number in 1..=5 {
        let told = format!("✓ **Agent \"shelf {number}\" finished in ");
        let times = notices
            .iter()
            .filter(|notice| notice.visible.starts_with(&told));
        assert_eq!(times.count(), 1, "{told}: {notices:#?}");
    }
}

/// Whether a text tells of the end of a task.
pub(super) fn is_notice(text: &str) -> bool {
    text.starts_with(['✓', '✗', '⊘'])
}

fn parts_of(message: &Value) -> impl Iterator<Item = &Value> {
    message["parts"].as_array().into_iter().flatten()
}

fn text_of(message: &Value) -> String {
    let texts = parts_of(message).filter(|part| part["type"] == "text");
    let texts = texts.filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
