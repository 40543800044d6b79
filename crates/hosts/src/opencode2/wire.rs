//! What OpenCode 2 writes, as far as we read it. Unknown fields are left alone.

use std::collections::BTreeMap;

use asyncagents_core::{
    agent::Effort,
    fallback::is_about_model,
    id::{ModelName, PostId},
    moment::Moment,
    progress::Totals,
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::both::{
    json::{moment, or_default},
    metadata,
    run::RunMessage,
    session_model::SessionModel,
    usage::{self, Tokens},
};

use super::id;

/// Every answer has what was asked for in `data`.
#[derive(Debug, Deserialize)]
pub(super) struct Data<T> {
    pub(super) data: T,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) agent: Option<String>,
    pub(super) model: Option<SessionModel>,
    pub(super) location: Option<Location>,
    /// What the session may do beside its agent's rules; nothing where OpenCode keeps none.
    #[serde(default, deserialize_with = "known_or_none")]
    pub(super) permissions: Option<Vec<Rule>>,
    pub(super) metadata: Option<Value>,
    /// How its last turn ended, where OpenCode keeps that.
    #[serde(default, deserialize_with = "known_or_none")]
    pub(super) outcome: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Location {
    pub(super) directory: Option<String>,
}

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) action: String,
    pub(super) resource: String,
    pub(super) effect: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) hidden: bool,
    /// The agent's own model, if it has one.
    pub(super) model: Option<Value>,
    /// What the agent may do; nothing if OpenCode writes it in a way that is not known here.
    #[serde(default, deserialize_with = "known_or_none")]
    pub(super) permissions: Option<Vec<Rule>>,
}

/// A model of a provider. Its settings may hold keys and are not read.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Model {
    pub(super) id: String,
    #[serde(rename = "providerID")]
    pub(super) provider: String,
    #[serde(default, deserialize_with = "or_default")]
    variants: Vec<Variant>,
}

#[derive(Debug, Clone, Deserialize)]
struct Variant {
    id: String,
}

impl Model {
    /// How hard it can be told to think: an effort is the variant of its name.
    pub(super) fn efforts(&self) -> Vec<Effort> {
        let all = [Effort::Low, Effort::Medium, Effort::High];
        let has = |effort: &Effort| self.has_variant(effort.word());
        all.into_iter().filter(has).collect()
    }

    pub(super) fn has_variant(&self, name: &str) -> bool {
        self.variants.iter().any(|variant| variant.id == name)
    }
}

/// What a model said without a session.
#[derive(Debug, Deserialize)]
pub(super) struct Generated {
    pub(super) text: String,
}

/// A message of a session, whatever its kind.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) time: Option<Time>,
    text: Option<String>,
    pub(super) finish: Option<String>,
    pub(super) error: Option<Problem>,
    /// The model that wrote it, or was to.
    model: Option<SessionModel>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) content: Vec<Content>,
    pub(super) cost: Option<f64>,
    pub(super) tokens: Option<Tokens>,
    /// Of a message that says how a turn ended.
    #[serde(default, deserialize_with = "known_or_none")]
    outcome: Option<String>,
    /// Of a compaction.
    status: Option<String>,
    /// While the model is to be asked again.
    pub(super) retry: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Time {
    pub(super) created: Option<f64>,
}

/// A piece of what an agent wrote.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Content {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) name: Option<String>,
    pub(super) state: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<String>,
    /// What the provider answered with.
    status: Option<u16>,
}

/// Something that was admitted and is not delivered yet.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct InboxItem {
    pub(super) id: String,
}

/// Which sessions work, by their IDs; those that do not are absent.
pub(super) type Active = BTreeMap<String, serde::de::IgnoredAny>;

/// A permission that a session wants of its user.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Permission {
    pub(super) id: String,
    pub(super) action: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) resources: Vec<String>,
    /// What would be permitted by `always`.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) save: Vec<String>,
    /// What would be changed is here.
    pub(super) metadata: Option<Value>,
}

/// Questions that a session has for its user.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Form {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) fields: Vec<FormField>,
}

/// One question of a form.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FormField {
    pub(super) key: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) options: Vec<FormOption>,
    /// Whether something else than the options will do.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) custom: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct FormOption {
    pub(super) value: String,
}

impl FormField {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("string")
    }
}

impl Session {
    pub(super) fn folder(&self) -> Option<&str> {
        self.location.as_ref()?.directory.as_deref()
    }

    /// How many of the session's rules are not those of a skill, if it runs one.
    pub(super) fn inherited_rules(&self) -> Option<usize> {
        metadata::inherited_rules(self.metadata.as_ref())
    }
}

/// How a turn ended that did not go well, by the message that some releases write then.
pub(super) enum Said {
    Failed {
        why: String,
        /// Because its model cannot be asked.
        by_model: bool,
    },
    /// By whom is not said.
    Interrupted,
}

impl Message {
    /// When the message was begun.
    pub(super) fn created(&self) -> Option<Moment> {
        self.time.as_ref()?.created.map(moment)
    }

    /// Whether the agent wrote the message. A compaction that failed is how a run may end.
    pub(super) fn is_of_agent(&self) -> bool {
        match self.kind.as_str() {
            "assistant" => true,
            "compaction" => self.status.as_deref() == Some("failed"),
            _ => false,
        }
    }

    /// Whether it is something that the agent is to answer.
    pub(super) fn is_input(&self) -> bool {
        matches!(self.kind.as_str(), "user" | "synthetic")
    }

    /// Whether a server that has started writes that it goes on with what it was doing.
    pub(super) fn announces_resumption(&self) -> bool {
        let text = self.text.as_deref().unwrap_or_default();
        self.kind == "synthetic" && text.starts_with("The server restarted while you were working")
    }

    /// What the agent said in it.
    pub(super) fn text(&self) -> Option<String> {
        if self.kind != "assistant" {
            return None;
        }
        let texts = self.content.iter().filter(|piece| piece.kind == "text");
        let texts: Vec<&str> = texts.filter_map(|piece| piece.text.as_deref()).collect();
        let text = texts.join("\n\n");
        (!text.trim().is_empty()).then_some(text)
    }

    /// Whether the agent had nothing more to do. It goes on after calls.
    pub(super) fn has_completed(&self) -> bool {
        let goes_on = ["tool-calls", "unknown", "error"];
        let finish = self.finish.as_deref();
        self.error.is_none() && finish.is_some_and(|finish| !goes_on.contains(&finish))
    }

    /// What went wrong, unless it was only interrupted.
    pub(super) fn problem(&self) -> Option<String> {
        if self.is_aborted() {
            return None;
        }
        let problem = self.error.as_ref();
        let failed = problem.is_some() || self.finish.as_deref() == Some("error");
        failed.then(|| reason(problem))
    }

    /// The model that wrote the message, or was to.
    pub(super) fn model(&self) -> Option<ModelName> {
        self.model.as_ref().map(SessionModel::name)
    }

    /// Whether it failed because its model cannot be asked.
    pub(super) fn failed_by_model(&self) -> bool {
        self.error.as_ref().is_some_and(Problem::is_about_model)
    }

    pub(super) fn is_aborted(&self) -> bool {
        let kind = self.error.as_ref().and_then(|error| error.kind.as_deref());
        kind == Some("aborted")
    }

    /// What the user refused, if that is how one of the message's calls ended. The turn is over
    /// then, and looks like one of a server that was stopped.
    pub(super) fn refusal(&self) -> Option<&str> {
        if !self.is_aborted() {
            return None;
        }
        let states = self.content.iter().filter_map(|piece| piece.state.as_ref());
        let mut errors = states.filter_map(|state| state["error"]["message"].as_str());
        let refusals = ["The user declined", "The user dismissed"];
        errors.rfind(|error| refusals.iter().any(|refusal| error.starts_with(refusal)))
    }

    /// How a turn ended that did not go well, if the message says that.
    pub(super) fn said_end(&self) -> Option<Said> {
        match (self.kind.as_str(), self.outcome.as_deref()?) {
            ("idle", "failed") => Some(Said::Failed {
                why: reason(self.error.as_ref()),
                by_model: self.failed_by_model(),
            }),
            ("idle", "interrupted") => Some(Said::Interrupted),
            _ => None,
        }
    }
}

impl RunMessage for Message {
    fn name_of(post: &PostId) -> String {
        id::message(post)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn add_to(&self, totals: &mut Totals) {
        if self.kind != "assistant" {
            return;
        }
        for piece in self.content.iter().filter(|piece| piece.has_begun()) {
            if let Some(tool) = &piece.name {
                *totals.by_tool.entry(tool.clone()).or_default() += 1;
            }
        }
        let answer = usage::answer(self.tokens, self.cost);
        let has_answered = self
            .finish
            .as_deref()
            .is_some_and(|finish| finish != "error");
        if has_answered || answer.tokens > 0 {
            totals.add(answer);
        }
    }
}

impl Content {
    /// A call whose parameters are still being written is none yet.
    fn has_begun(&self) -> bool {
        let status = self
            .state
            .as_ref()
            .and_then(|state| state["status"].as_str());
        self.kind == "tool" && status != Some("streaming")
    }
}

impl Rule {
    pub(super) fn new(action: &str, resource: &str, effect: &str) -> Self {
        Self {
            action: action.to_owned(),
            resource: resource.to_owned(),
            effect: effect.to_owned(),
        }
    }
}

/// What is written as we know it, or nothing.
pub(super) fn known_or_none<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let written = Value::deserialize(from)?;
    Ok(serde_json::from_value(written).ok())
}

impl Problem {
    /// Whether the model cannot be asked, whatever it is asked. OpenCode has made its retries then.
    pub(super) fn is_about_model(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        let message = self.message.as_deref().unwrap_or_default();
        let of_model = MODEL_PROBLEMS.contains(&kind);
        let status = self.status.unwrap_or_default();
        of_model || (kind.starts_with("provider.") && is_about_model(status, message))
    }
}

/// What OpenCode calls what is wrong with a model, or with who pays for it.
const MODEL_PROBLEMS: [&str; 5] = [
    "provider.no-route",
    "provider.auth",
    "provider.quota",
    "provider.rate-limit",
    "provider.internal",
];

/// What went wrong, in OpenCode's words.
pub(super) fn reason(problem: Option<&Problem>) -> String {
    let message = problem.and_then(|problem| problem.message.clone());
    let kind = problem.and_then(|problem| problem.kind.clone());
    let words = [message, kind].into_iter().flatten();
    let mut words = words.filter(|words| !words.is_empty());
    words
        .next()
        .unwrap_or_else(|| "OpenCode does not say why".to_owned())
}
