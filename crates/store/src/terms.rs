//! How the terms of a skill are written. The names here are on people's disks.

use std::time::Duration;

use asyncagents_core::{
    agent::{Effort, Rule, Tools},
    skill::Terms,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TermsRecord {
    skill: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not: Vec<String>,
    iterations: u64,
    retries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iteration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
}

impl From<&Terms> for TermsRecord {
    fn from(terms: &Terms) -> Self {
        let written = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            skill: terms.skill.clone(),
            only: terms.tools.only.as_deref().map(written),
            not: written(&terms.tools.not),
            iterations: terms.iterations,
            retries: terms.retries,
            iteration_ms: terms.iteration_time.map(millis),
            model: terms.model.as_ref().map(ToString::to_string),
            effort: terms.effort.map(|effort| effort.word().to_owned()),
        }
    }
}

impl TryFrom<TermsRecord> for Terms {
    type Error = String;

    fn try_from(record: TermsRecord) -> Result<Self, String> {
        let effort =
            |word: String| Effort::named(&word).ok_or_else(|| format!("unknown effort `{word}`"));
        Ok(Self {
            skill: record.skill,
            tools: Tools {
                only: record.only.map(rules).transpose()?,
                not: rules(record.not)?,
                within: Vec::new(),
            },
            iterations: record.iterations,
            retries: record.retries,
            iteration_time: record.iteration_ms.map(Duration::from_millis),
            model: record.model.map(Into::into),
            effort: record.effort.map(effort).transpose()?,
        })
    }
}

/// A rule that is left out would allow what it forbids.
fn rules(written: Vec<String>) -> Result<Vec<Rule>, String> {
    let read = |rule: String| {
        rule.parse()
            .map_err(|error| format!("`{rule}` is no rule: {error}"))
    };
    written.into_iter().map(read).collect()
}
