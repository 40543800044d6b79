//! How the launch of a task is written. The names here are on people's disks.

use std::time::Duration;

use asyncagents_core::{
    agent::Effort,
    budget::{Budget, Cost},
    event::Launched,
    fork::{Limits, Mode, Plan},
    host_ref::{HostRef, LaunchSettings},
    id::{AgentName, ChainId, ModelName, OwnerId, SessionId, TaskId},
    skill::Role,
    task::{Brief, Context, Place},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::{host_setup::HostRecord, terms::TermsRecord};

#[derive(Serialize, Deserialize)]
pub(crate) struct LaunchedRecord {
    #[serde(flatten, with = "PlaceRecord")]
    place: Place,
    description: String,
    agent: AgentName,
    model: Option<ModelName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    forked: bool,
    host: HostRecord,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    settings: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    seal: Box<str>,
    prompt: String,
    /// The keys are those of the settings.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "saved_limits"
    )]
    fork: Option<Limits>,
    /// Missing for a transcript, the only mode of old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fork_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_in: Option<String>,
    #[serde(with = "BudgetRecord")]
    budget: Budget,
    batch: u64,
    owner: Option<OwnerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain: Option<ChainId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<ChainId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<TermsRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Place")]
struct PlaceRecord {
    parent: SessionId,
    above: Option<TaskId>,
    root: SessionId,
    depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "outside")]
    outside: Option<HostRef>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "outside")]
    above_in: Option<HostRef>,
}

/// A host as its text.
mod outside {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        host: &Option<HostRef>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        host.as_ref().map(HostRef::to_string).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<HostRef>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.as_deref().map(HostRef::from))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Budget")]
struct BudgetRecord {
    tokens: Option<u64>,
    cost: Option<Cost>,
    #[serde(default, rename = "time_ms", with = "millis")]
    time: Option<Duration>,
    turns: Option<u64>,
    tool_calls: Option<u64>,
}

/// A limit that a plan does not have was unknown to the version that saved it: it did nothing then.
fn saved_limits<'de, D: Deserializer<'de>>(saved: D) -> Result<Option<Limits>, D::Error> {
    let Some(mut saved) = Option::<Map<String, Value>>::deserialize(saved)? else {
        return Ok(None);
    };
    let switch = saved.entry("mark_repeated_reads");
    switch.or_insert(Value::Bool(false));
    Limits::deserialize(saved)
        .map(Some)
        .map_err(de::Error::custom)
}

/// A time as whole milliseconds.
mod millis {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        time.map(millis).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let millis = Option::deserialize(deserializer)?;
        Ok(millis.map(Duration::from_millis))
    }
}

impl From<Box<Launched>> for LaunchedRecord {
    fn from(launched: Box<Launched>) -> Self {
        let launched = *launched;
        let (brief, fork) = (launched.brief, launched.fork);
        let mode = fork.as_ref().map(|plan| plan.mode);
        let (limits, asked_in) = fork.map(|plan| (plan.limits, plan.asked_in)).unzip();
        let role = launched.role.map(|role| (role.terms, role.instructions));
        let (terms, instructions) = role.unzip();
        Self {
            place: launched.place,
            description: brief.description,
            agent: brief.agent,
            model: brief.model,
            effort: brief.effort.map(|effort| effort.word().to_owned()),
            forked: brief.context == Context::Forked,
            settings: brief.host.settings.json.clone(),
            seal: brief.host.settings.seal.clone(),
            host: HostRecord(brief.host),
            prompt: launched.prompt,
            fork: limits,
            fork_mode: mode
                .filter(|mode| *mode != Mode::default())
                .map(|mode| mode.to_string()),
            asked_in: asked_in.flatten(),
            budget: launched.budget,
            batch: launched.batch,
            owner: launched.owner,
            chain: launched.chain,
            from: launched.from,
            skill: terms.as_ref().map(TermsRecord::from),
            instructions: instructions.filter(|text| !text.is_empty()),
        }
    }
}

impl TryFrom<LaunchedRecord> for Box<Launched> {
    type Error = String;

    fn try_from(record: LaunchedRecord) -> Result<Self, String> {
        let (mode, asked_in) = (mode(record.fork_mode)?, record.asked_in);
        let role = match record.skill {
            Some(terms) => Some(Role {
                terms: terms.try_into()?,
                instructions: record.instructions.unwrap_or_default(),
            }),
            None => None,
        };
        let context = if record.forked {
            Context::Forked
        } else {
            Context::Fresh
        };
        Ok(Box::new(Launched {
            place: record.place,
            brief: Brief {
                description: record.description,
                agent: record.agent,
                model: record.model,
                effort: effort(record.effort.as_deref())?,
                context,
                host: record.host.with(LaunchSettings {
                    json: record.settings,
                    seal: record.seal,
                }),
            },
            prompt: record.prompt,
            fork: record.fork.map(|limits| Plan {
                limits,
                mode,
                asked_in,
            }),
            budget: record.budget,
            batch: record.batch,
            owner: record.owner,
            chain: record.chain,
            from: record.from,
            role,
        }))
    }
}

/// How hard a model thinks, by its word.
pub(crate) fn effort(word: Option<&str>) -> Result<Option<Effort>, String> {
    let known = |word| Effort::of_word(word).ok_or_else(|| format!("unknown effort `{word}`"));
    word.map(known).transpose()
}

/// Older versions had only one mode and did not write it.
fn mode(word: Option<String>) -> Result<Mode, String> {
    let Some(word) = word else {
        return Ok(Mode::default());
    };
    Mode::of_word(&word)
        .ok_or_else(|| format!("unknown fork_mode `{word}`, not transcript or messages"))
}
