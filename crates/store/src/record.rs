//! How an event is written. The names here are on people's disks: a core type may be
//! renamed, these may not.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    budget::{Budget, Cost, Spent},
    event::{Event, Launched},
    fork::{Limits, Mode, Plan},
    host_ref::LaunchSettings,
    progress::{Observation, Totals},
    skill::Role,
    task::{Brief, Context, Outcome, Place},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use crate::{host_setup::HostRecord, terms::TermsRecord};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum EventRecord {
    Launched(Box<LaunchedRecord>),
    Owned {
        by: Option<String>,
    },
    Started,
    SessionMade {
        session: String,
    },
    Prompted,
    ToolCalled {
        tool: String,
        call: u64,
    },
    Turned {
        tokens: u64,
        cost: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpriced: Option<u64>,
    },
    AskedBeside {
        tokens: u64,
        cost: u64,
        unpriced: u64,
    },
    Asked {
        id: String,
        question: String,
    },
    Answered {
        id: String,
    },
    Counted {
        tokens: u64,
        cost: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpriced: Option<u64>,
        turns: u64,
        by_tool: BTreeMap<String, u64>,
    },
    SpentBelow {
        tokens: u64,
        cost: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpriced: Option<u64>,
        turns: u64,
        tool_calls: u64,
    },
    SummingUp {
        why: String,
    },
    Ended {
        outcome: OutcomeRecord,
        error: Option<String>,
        answer: Option<String>,
        stop: bool,
    },
    Stopped,
    Resumed {
        prompt: String,
        batch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chain: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    ClockMoved {
        by: i64,
    },
    Moved {
        host: HostRecord,
    },
    Retrieved,
    Cleared,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchedRecord {
    parent: String,
    above: Option<String>,
    root: String,
    depth: u32,
    description: String,
    agent: String,
    model: Option<String>,
    forked: bool,
    host: HostRecord,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    settings: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    seal: Box<str>,
    prompt: String,
    /// Its keys are those of the settings.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "saved_limits"
    )]
    fork: Option<Limits>,
    /// What is not said is the mode of old: a transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fork_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_in: Option<String>,
    budget: BudgetRecord,
    batch: u64,
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<TermsRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeRecord {
    Completed,
    /// As it was called before the fifth format.
    #[serde(rename = "error", alias = "failed")]
    Failed,
    Cancelled,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BudgetRecord {
    tokens: Option<u64>,
    cost: Option<u64>,
    time_ms: Option<u64>,
    turns: Option<u64>,
    tool_calls: Option<u64>,
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> Self {
        match event {
            Event::Launched(launched) => EventRecord::Launched(Box::new((&**launched).into())),
            Event::Owned { by } => EventRecord::Owned {
                by: written(by.as_ref()),
            },
            Event::Started => EventRecord::Started,
            Event::SessionMade { session } => EventRecord::SessionMade {
                session: session.to_string(),
            },
            Event::Prompted => EventRecord::Prompted,
            Event::Observed(Observation::ToolCalled { tool, call }) => EventRecord::ToolCalled {
                tool: tool.clone(),
                call: *call,
            },
            Event::Observed(Observation::Turned {
                tokens,
                cost,
                unpriced,
            }) => EventRecord::Turned {
                tokens: *tokens,
                cost: cost.0,
                unpriced: Some(*unpriced),
            },
            Event::Observed(Observation::AskedBeside {
                tokens,
                cost,
                unpriced,
            }) => EventRecord::AskedBeside {
                tokens: *tokens,
                cost: cost.0,
                unpriced: *unpriced,
            },
            Event::Observed(Observation::Asked { id, question }) => EventRecord::Asked {
                id: id.clone(),
                question: question.clone(),
            },
            Event::Observed(Observation::Answered { id }) => {
                EventRecord::Answered { id: id.clone() }
            }
            Event::Observed(Observation::Counted(totals)) => EventRecord::Counted {
                tokens: totals.tokens,
                cost: totals.cost.0,
                unpriced: Some(totals.unpriced),
                turns: totals.turns,
                by_tool: totals.by_tool.clone(),
            },
            Event::SpentBelow(spent) => EventRecord::SpentBelow {
                tokens: spent.tokens,
                cost: spent.cost.0,
                unpriced: Some(spent.unpriced),
                turns: spent.turns,
                tool_calls: spent.tool_calls,
            },
            Event::SummingUp { why } => EventRecord::SummingUp { why: why.clone() },
            Event::Ended {
                outcome,
                answer,
                stop,
            } => EventRecord::Ended {
                outcome: match outcome {
                    Outcome::Completed => OutcomeRecord::Completed,
                    Outcome::Failed { .. } => OutcomeRecord::Failed,
                    Outcome::Cancelled => OutcomeRecord::Cancelled,
                },
                error: match outcome {
                    Outcome::Failed { why } => Some(why.clone()),
                    Outcome::Completed | Outcome::Cancelled => None,
                },
                answer: answer.clone(),
                stop: *stop,
            },
            Event::Stopped => EventRecord::Stopped,
            Event::Resumed {
                prompt,
                batch,
                chain,
                from,
            } => EventRecord::Resumed {
                prompt: prompt.clone(),
                batch: *batch,
                chain: written(chain.as_ref()),
                from: written(from.as_ref()),
            },
            Event::ClockMoved { by } => EventRecord::ClockMoved { by: *by },
            Event::Moved { host } => EventRecord::Moved {
                host: HostRecord(host.clone().into()),
            },
            Event::Retrieved => EventRecord::Retrieved,
            Event::Cleared => EventRecord::Cleared,
        }
    }
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

impl From<&Launched> for LaunchedRecord {
    fn from(launched: &Launched) -> Self {
        let Launched { place, brief, .. } = launched;
        let fork = launched.fork.as_ref();
        Self {
            parent: place.parent.to_string(),
            above: written(place.above.as_ref()),
            root: place.root.to_string(),
            depth: place.depth,
            description: brief.description.clone(),
            agent: brief.agent.to_string(),
            model: written(brief.model.as_ref()),
            forked: brief.context == Context::Forked,
            host: HostRecord(brief.host.clone()),
            settings: brief.host.settings.json.clone(),
            seal: brief.host.settings.seal.clone(),
            prompt: launched.prompt.clone(),
            fork: fork.map(|plan| plan.limits.clone()),
            fork_mode: fork
                .filter(|plan| plan.mode != Mode::default())
                .map(|plan| plan.mode.to_string()),
            asked_in: fork.and_then(|plan| plan.asked_in.clone()),
            budget: (&launched.budget).into(),
            batch: launched.batch,
            owner: written(launched.owner.as_ref()),
            chain: written(launched.chain.as_ref()),
            from: written(launched.from.as_ref()),
            skill: launched.role.as_ref().map(|role| (&role.terms).into()),
            instructions: launched.role.as_ref().map(|role| role.instructions.clone()),
        }
    }
}

impl TryFrom<LaunchedRecord> for Launched {
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
        Ok(Self {
            place: Place {
                parent: record.parent.into(),
                above: record.above.map(Into::into),
                root: record.root.into(),
                depth: record.depth,
            },
            brief: Brief {
                description: record.description,
                agent: record.agent.into(),
                model: record.model.map(Into::into),
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
            budget: record.budget.into(),
            batch: record.batch,
            owner: record.owner.map(Into::into),
            chain: record.chain.map(Into::into),
            from: record.from.map(Into::into),
            role,
        })
    }
}

fn written(name: Option<&impl ToString>) -> Option<String> {
    name.map(ToString::to_string)
}

impl TryFrom<EventRecord> for Event {
    type Error = String;

    fn try_from(record: EventRecord) -> Result<Self, String> {
        Ok(match record {
            EventRecord::Launched(record) => Event::Launched(Box::new((*record).try_into()?)),
            EventRecord::Owned { by } => Event::Owned {
                by: by.map(Into::into),
            },
            EventRecord::Started => Event::Started,
            EventRecord::SessionMade { session } => Event::SessionMade {
                session: session.into(),
            },
            EventRecord::Prompted => Event::Prompted,
            EventRecord::ToolCalled { tool, call } => {
                Event::Observed(Observation::ToolCalled { tool, call })
            }
            EventRecord::Turned {
                tokens,
                cost,
                unpriced,
            } => Event::Observed(Observation::Turned {
                tokens,
                cost: Cost(cost),
                unpriced: unpriced_of(unpriced, tokens, cost),
            }),
            EventRecord::AskedBeside {
                tokens,
                cost,
                unpriced,
            } => Event::Observed(Observation::AskedBeside {
                tokens,
                cost: Cost(cost),
                unpriced,
            }),
            EventRecord::Asked { id, question } => {
                Event::Observed(Observation::Asked { id, question })
            }
            EventRecord::Answered { id } => Event::Observed(Observation::Answered { id }),
            EventRecord::Counted {
                tokens,
                cost,
                unpriced,
                turns,
                by_tool,
            } => Event::Observed(Observation::Counted(Totals {
                tokens,
                cost: Cost(cost),
                unpriced: unpriced_of(unpriced, tokens, cost),
                turns,
                by_tool,
            })),
            EventRecord::SpentBelow {
                tokens,
                cost,
                unpriced,
                turns,
                tool_calls,
            } => Event::SpentBelow(Spent {
                tokens,
                cost: Cost(cost),
                unpriced: unpriced_of(unpriced, tokens, cost),
                turns,
                tool_calls,
            }),
            EventRecord::SummingUp { why } => Event::SummingUp { why },
            EventRecord::Ended {
                outcome,
                error,
                answer,
                stop,
            } => Event::Ended {
                outcome: match outcome {
                    OutcomeRecord::Completed => Outcome::Completed,
                    OutcomeRecord::Failed => Outcome::Failed {
                        why: error.unwrap_or_default(),
                    },
                    OutcomeRecord::Cancelled => Outcome::Cancelled,
                },
                answer,
                stop,
            },
            EventRecord::Stopped => Event::Stopped,
            EventRecord::Resumed {
                prompt,
                batch,
                chain,
                from,
            } => Event::Resumed {
                prompt,
                batch,
                chain: chain.map(Into::into),
                from: from.map(Into::into),
            },
            EventRecord::ClockMoved { by } => Event::ClockMoved { by },
            EventRecord::Moved { host } => Event::Moved { host: host.0.host },
            EventRecord::Retrieved => Event::Retrieved,
            EventRecord::Cleared => Event::Cleared,
        })
    }
}

/// Older versions did not say; theirs was always the same.
fn mode(word: Option<String>) -> Result<Mode, String> {
    let Some(word) = word else {
        return Ok(Mode::default());
    };
    word.parse()
        .map_err(|known| format!("unknown fork_mode `{word}`, not {known}"))
}

impl From<&Budget> for BudgetRecord {
    fn from(budget: &Budget) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            tokens: budget.tokens,
            cost: budget.cost.map(|cost| cost.0),
            time_ms: budget.time.map(millis),
            turns: budget.turns,
            tool_calls: budget.tool_calls,
        }
    }
}

impl From<BudgetRecord> for Budget {
    fn from(record: BudgetRecord) -> Self {
        Self {
            tokens: record.tokens,
            cost: record.cost.map(Cost),
            time: record.time_ms.map(Duration::from_millis),
            turns: record.turns,
            tool_calls: record.tool_calls,
        }
    }
}

/// Older versions did not say which tokens have no known price, and took it for nothing.
pub(crate) fn unpriced_of(said: Option<u64>, tokens: u64, cost: u64) -> u64 {
    said.unwrap_or(if cost == 0 { tokens } else { 0 })
}

#[cfg(test)]
mod tests {
    use asyncagents_core::{
        budget::Cost,
        event::Event,
        fork::{Limits, Preset},
        progress::Observation,
    };
    use rstest::rstest;

    use super::EventRecord;

    #[rstest]
    #[case::unknown(r#"{"kind":"turned","tokens":5,"cost":0}"#, 0, 5)]
    #[case::known(r#"{"kind":"turned","tokens":5,"cost":7}"#, 7, 0)]
    #[case::free(r#"{"kind":"turned","tokens":5,"cost":0,"unpriced":0}"#, 0, 0)]
    fn what_an_older_version_took_for_free_has_no_known_price(
        #[case] json: &str,
        #[case] cost: u64,
        #[case] unpriced: u64,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let event = Event::try_from(serde_json::from_str::<EventRecord>(json)?)?;
        let turned = Observation::Turned {
            tokens: 5,
            cost: Cost(cost),
            unpriced,
        };
        assert_eq!(event, Event::Observed(turned));
        Ok(())
    }

    /// A fork as it was saved before repeated reads were marked, and as it is saved now.
    #[rstest]
    #[case::before(None, false)]
    #[case::on(Some(true), true)]
    #[case::off(Some(false), false)]
    fn a_plan_marks_repeated_reads_only_if_it_says_so(
        #[case] said: Option<bool>,
        #[case] marks: bool,
    ) -> serde_json::Result<()> {
        let mut limits = serde_json::to_value(Limits::default())?;
        let now = limits["mark_repeated_reads"].take();
        assert_eq!(now, true, "it is on by default");
        match (said, limits.as_object_mut()) {
            (Some(said), _) => limits["mark_repeated_reads"] = said.into(),
            (None, Some(limits)) => drop(limits.remove("mark_repeated_reads")),
            (None, None) => unreachable!("limits are an object"),
        }
        let launched = serde_json::json!({
            "kind": "launched", "parent": "p", "above": null, "root": "p", "depth": 1,
            "description": "d", "agent": "a", "model": null, "forked": true, "host": "scripted",
            "prompt": "go", "fork": limits, "budget": {"tokens": null, "cost": null, "time_ms": null,
            "turns": null, "tool_calls": null}, "batch": 1, "owner": null,
        });
        let event = Event::try_from(serde_json::from_value::<EventRecord>(launched)?);
        let Ok(Event::Launched(launched)) = event else {
            unreachable!("it was launched");
        };
        let plan = launched.fork.map(|plan| plan.limits);
        let mut expected = Preset::Graduated.limits();
        let set = expected.set("mark_repeated_reads", marks.to_string().as_str());
        assert_eq!((set, plan), (Ok(()), Some(expected)));
        Ok(())
    }
}
