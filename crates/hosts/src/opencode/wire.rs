//! What OpenCode writes, as far as we read it. Unknown fields are left alone.

use std::collections::BTreeMap;

use asyncagents_core::{
    budget::Spent,
    fallback::is_about_model,
    id::{ModelName, PostId, SessionId, TaskId},
    lifecycle::{Standing, Unavailable},
    moment::Moment,
    progress::Totals,
    task::Outcome,
};
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{Value, json};

use crate::both::{
    json::{moment, or_default},
    long_wait::long_wait,
    metadata,
    run::RunMessage,
    session_model::SessionModel,
    usage::{self, Tokens},
};

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) directory: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) model: Option<SessionModel>,
    pub(super) metadata: Option<Value>,
    pub(super) permission: Option<Vec<Rule>>,
}

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) permission: String,
    pub(crate) pattern: String,
    pub(crate) action: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) hidden: bool,
    /// The agent's own model, if it has one.
    pub(super) model: Option<Value>,
    /// What the agent may do; nothing if OpenCode writes it in a way that is not known here.
    #[serde(default, deserialize_with = "rules_or_none")]
    pub(super) permission: Vec<Rule>,
}

/// Rules, or none if they are written in another way.
fn rules_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    let rules = Value::deserialize(from)?;
    Ok(serde_json::from_value(rules).unwrap_or_default())
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub(super) info: Info,
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Info {
    pub(super) role: String,
    pub(super) time: Time,
    /// True for the summary of a compaction; a user's message has something else there.
    pub(super) summary: Option<Value>,
    pub(super) finish: Option<String>,
    pub(super) error: Option<Problem>,
    pub(super) cost: Option<f64>,
    pub(super) tokens: Option<Tokens>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
    #[serde(rename = "modelID")]
    model: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Time {
    pub(super) created: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Problem {
    pub(super) name: String,
    pub(super) data: Option<Value>,
}

/// A part of a message, whatever its kind.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Part {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) synthetic: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) ignored: bool,
    pub(super) metadata: Option<Value>,
    pub(super) tool: Option<String>,
    pub(super) state: Option<ToolState>,
    pub(super) cost: Option<f64>,
    pub(super) tokens: Option<Tokens>,
}

/// How far a tool call has come.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ToolState {
    pub(super) status: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) input: Value,
    pub(super) error: Option<String>,
}

impl Info {
    /// When the message was begun.
    pub(super) fn created(&self) -> Moment {
        moment(self.time.created)
    }

    /// The model that wrote the message, or was to.
    pub(super) fn model(&self) -> Option<ModelName> {
        let (provider, model) = (self.provider.as_ref()?, self.model.as_ref()?);
        Some(format!("{provider}/{model}").into())
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunEnd {
    pub(super) outcome: Outcome,
    /// Whether that was because its model cannot be asked.
    pub(super) by_model: bool,
}

impl RunEnd {
    /// What became of the prompt, by a model.
    pub(super) fn standing(self, model: Option<ModelName>, answer: Option<String>) -> Standing {
        match self.outcome {
            Outcome::Failed { why } if self.by_model => Standing::ModelUnavailable(Unavailable {
                model,
                why,
                answer,
                retrying: false,
            }),
            outcome => Standing::Done { outcome, answer },
        }
    }
}

impl From<Outcome> for RunEnd {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            by_model: false,
        }
    }
}

/// The session among these that was made for a task.
pub(super) fn made_for(task: &TaskId, sessions: Vec<Session>) -> Option<SessionId> {
    let mut sessions = sessions.into_iter();
    let made = sessions.find(|session| session.task() == Some(task.as_str()))?;
    Some(made.id.into())
}

impl Rule {
    pub(super) fn new(permission: &str, pattern: &str, action: &str) -> Self {
        Self {
            permission: permission.to_owned(),
            pattern: pattern.to_owned(),
            action: action.to_owned(),
        }
    }
}

impl Session {
    /// The task that the session was made for.
    pub(super) fn task(&self) -> Option<&str> {
        metadata::task(self.metadata.as_ref())
    }

    /// What the sub-agent that runs a skill here is told with every message.
    pub(super) fn system(&self) -> Option<&str> {
        metadata::system(self.metadata.as_ref())
    }

    /// How many of the session's rules are not those of a skill, if it runs one.
    pub(super) fn inherited_rules(&self) -> Option<usize> {
        metadata::inherited_rules(self.metadata.as_ref())
    }
}

impl Message {
    /// Whether the agent wrote the message. The summary of a compaction does not count, unless it
    /// failed: then that is how the run ended.
    pub(super) fn is_of_agent(&self) -> bool {
        self.info.role == "assistant" && (!self.is_summary() || self.info.error.is_some())
    }

    fn is_summary(&self) -> bool {
        self.info.summary == Some(Value::Bool(true))
    }

    /// Our name for the message, if we sent it.
    pub(super) fn post<'a>(&'a self) -> Option<&'a str> {
        let name = |part: &'a Part| metadata::post(part.metadata.as_ref());
        self.parts.iter().find_map(name)
    }

    /// The text in it that is meant for people.
    pub(super) fn text(&self) -> Option<String> {
        if self.is_summary() {
            return None;
        }
        let texts = self.parts.iter().filter(|part| part.kind == "text");
        let texts = texts.filter(|part| !part.ignored && !part.synthetic);
        let texts: Vec<&str> = texts.filter_map(|part| part.text.as_deref()).collect();
        let text = texts.join("\n\n");
        (!text.trim().is_empty()).then_some(text)
    }

    /// What the user refused, if that is how one of the message's calls ended.
    pub(super) fn refusal(&self) -> Option<&str> {
        let calls = self.parts.iter().filter_map(|part| part.state.as_ref());
        let mut errors = calls.filter_map(|state| state.error.as_deref());
        let refusals = ["The user rejected", "The user dismissed"];
        errors.rfind(|error| refusals.iter().any(|refusal| error.starts_with(refusal)))
    }
}

impl RunMessage for Message {
    fn name_of(post: &PostId) -> String {
        post.as_str().to_owned()
    }

    fn name(&self) -> Option<&str> {
        self.post()
    }

    fn add_to(&self, totals: &mut Totals) {
        for part in &self.parts {
            let begun = part.state.as_ref().is_some_and(ToolState::has_begun);
            if let Some(tool) = part.tool.as_ref().filter(|_| begun) {
                *totals.by_tool.entry(tool.clone()).or_default() += 1;
            }
            if part.kind == "step-finish" {
                totals.turns += 1;
            }
        }
        // Its steps are counted above.
        totals.add(Spent {
            turns: 0,
            ..usage::answer(self.info.tokens, self.info.cost)
        });
    }
}

impl ToolState {
    /// A call whose parameters are still being written is none yet.
    pub(super) fn has_begun(&self) -> bool {
        self.status != "pending"
    }
}

impl Problem {
    /// How a run ended that stopped because of it: a user's abort is a problem, too.
    pub(super) fn end(&self) -> RunEnd {
        if self.name == "MessageAbortedError" {
            return Outcome::Cancelled.into();
        }
        let message = self.data.as_ref().and_then(|data| data["message"].as_str());
        let why = message.filter(|message| !message.is_empty());
        let why = why.unwrap_or(&self.name).to_owned();
        RunEnd {
            by_model: self.is_about_model(&why),
            outcome: Outcome::Failed { why },
        }
    }

    /// Whether the model cannot be asked, whatever it is asked. OpenCode has made its retries then.
    fn is_about_model(&self, why: &str) -> bool {
        let data = self.data.as_ref();
        let status = data.and_then(|data| u16::try_from(data["statusCode"].as_u64()?).ok());
        match self.name.as_str() {
            "ProviderAuthError" => true,
            "APIError" => {
                let retried = data.is_some_and(|data| data["isRetryable"] == true);
                retried || is_about_model(status.unwrap_or_default(), why)
            }
            _ => why.contains("Model not found:"),
        }
    }
}

/// A text part under a name of ours.
pub(super) fn text(text: &str, post: &PostId, synthetic: bool) -> Value {
    let mut part = json!({
        "type": "text",
        "text": text,
        "metadata": metadata::posted(post),
    });
    if synthetic {
        part["synthetic"] = json!(true);
    }
    part
}

/// An event: its kind, and what it is about.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) properties: Properties,
}

/// What events are about, as far as we read it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Properties {
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
    pub(super) info: Option<EventInfo>,
    pub(super) part: Option<EventPart>,
    pub(super) status: Option<Status>,
    pub(super) error: Option<Problem>,
    /// Of a question.
    pub(super) id: Option<String>,
    #[serde(rename = "requestID")]
    pub(super) request: Option<String>,
    pub(super) permission: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) patterns: Vec<String>,
    /// What would be permitted by `always`.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) always: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) questions: Vec<Question>,
    pub(super) metadata: Option<Value>,
}

impl Properties {
    /// Whether they are about this session.
    pub(super) fn is_of(&self, session: &SessionId) -> bool {
        self.session.as_deref() == Some(session.as_str())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct EventInfo {
    pub(super) id: Option<String>,
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventPart {
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
    #[serde(flatten)]
    pub(super) part: Part,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// What the provider says, if the model is asked again later.
    message: Option<String>,
    /// When that is.
    next: Option<f64>,
}

impl Status {
    /// What the provider says, if it does not want to be asked again for a long time.
    pub(super) fn long_wait(&self, now: Moment) -> Option<String> {
        let next = moment(self.next.filter(|_| self.kind == "retry")?);
        long_wait(self.message.as_deref(), next, now)
    }
}

/// The providers that can be used, with their models. There are keys beside what is read.
#[derive(Deserialize)]
pub(super) struct Providers {
    pub(super) providers: Vec<Provider>,
}

#[derive(Deserialize)]
pub(super) struct Provider {
    pub(super) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
pub(super) struct Model {
    /// By name: what each of them changes is not for us.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) variants: BTreeMap<String, IgnoredAny>,
}

/// What OpenCode is configured with, as far as we read it.
#[derive(Deserialize)]
pub(super) struct Configured {
    /// The model of sessions that have no other.
    pub(super) model: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) question: Option<String>,
    /// A short name.
    pub(super) header: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) options: Vec<QuestionOption>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) multiple: bool,
    /// Whether it may be answered with something else.
    pub(super) custom: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct QuestionOption {
    pub(super) label: Option<String>,
}

/// Which sessions work, by their IDs; those that do not are absent.
pub(super) type Statuses = BTreeMap<String, Status>;
