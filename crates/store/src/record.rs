//! How an event is written. The names here are on people's disks: a core type may be
//! renamed, these may not.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use asyncagents_core::{
    budget::{Cost, Spent},
    event::{Event, Launched},
    fallback::Fallback,
    host_ref::HostRef,
    id::{ChainId, ModelName, OwnerId, PostId, SessionId},
    progress::{Observation, Totals},
    question::{Question, Reply},
    speaker::Speaker,
    task::Outcome,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::{
    host_setup::HostRecord,
    launched::LaunchedRecord,
    question::{QuestionRecord, ReplyRecord},
};

/// Writes and reads a field of a core type as the record `R`, for `#[serde(with)]`.
pub(crate) struct As<R>(PhantomData<R>);

impl<R> As<R> {
    pub(crate) fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Clone,
        R: From<T> + Serialize,
        S: Serializer,
    {
        R::from(value.clone()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        R: TryInto<T, Error: fmt::Display> + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let record = R::deserialize(deserializer)?;
        record.try_into().map_err(de::Error::custom)
    }
}

/// Writes an event.
pub(crate) fn serialize<S: Serializer>(event: &Event, serializer: S) -> Result<S::Ok, S::Error> {
    match event {
        Event::Observed(observation) => ObservationRecord::serialize(observation, serializer),
        event => EventRecord::serialize(event, serializer),
    }
}

/// Reads an event of this version or an earlier one.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
    let mut saved = deserializer.deserialize_map(Body)?;
    say_what_has_no_price(&mut saved);
    let kind = saved.get("kind").and_then(Value::as_str);
    let event = if kind.is_some_and(|kind| OBSERVATIONS.contains(&kind)) {
        ObservationRecord::deserialize(saved).map(Event::Observed)
    } else {
        EventRecord::deserialize(saved)
    };
    event.map_err(de::Error::custom)
}

/// The body of an event, in which no key is there twice.
struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut body = Map::new();
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            if body.contains_key(&key) {
                return Err(de::Error::custom(format!("duplicate field `{key}`")));
            }
            body.insert(key, value);
        }
        Ok(body)
    }
}

/// Older versions did not say which tokens have no known price, and took it for nothing.
fn say_what_has_no_price(saved: &mut Map<String, Value>) {
    let number = |key: &str| saved.get(key).and_then(Value::as_u64);
    if let (Some(tokens), Some(cost)) = (number("tokens"), number("cost")) {
        let unpriced = unpriced_of(None, tokens, Cost(cost));
        let known = saved.entry("unpriced").or_insert(Value::Null);
        if known.is_null() {
            *known = unpriced.into();
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Event", tag = "kind", rename_all = "snake_case")]
enum EventRecord {
    Launched(#[serde(with = "As::<LaunchedRecord>")] Box<Launched>),
    Owned {
        by: Option<OwnerId>,
    },
    Held {
        why: String,
    },
    Started,
    SessionMade {
        session: SessionId,
    },
    Prompted,
    /// Written by [`ObservationRecord`], with a kind of its own.
    #[serde(skip)]
    Observed(Observation),
    #[serde(rename = "model_replaced")]
    FellBack(#[serde(with = "FallbackRecord")] Fallback),
    SpentBelow(#[serde(with = "SpentRecord")] Spent),
    SummingUp {
        why: String,
    },
    Ended {
        #[serde(flatten, with = "As::<OutcomeRecord>")]
        outcome: Outcome,
        answer: Option<String>,
        stop: bool,
    },
    Stopped,
    Resumed {
        prompt: String,
        batch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chain: Option<ChainId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<ChainId>,
    },
    ClockMoved {
        by: i64,
    },
    Messaged {
        id: PostId,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "speaker")]
        from: Option<Speaker>,
        text: String,
    },
    Replied {
        id: PostId,
        question: String,
        #[serde(flatten, with = "As::<ReplyRecord>")]
        reply: Reply,
    },
    QuestionTold {
        question: String,
    },
    Moved {
        #[serde(with = "As::<HostRecord>")]
        host: HostRef,
    },
    Retrieved,
    Cleared,
}

/// The kinds of [`ObservationRecord`], which tell it from an [`EventRecord`].
const OBSERVATIONS: &[&str] = &[
    "tool_called",
    "command_queued",
    "command_started",
    "turned",
    "asked_beside",
    "asked",
    "answered",
    "fell_back",
    "counted",
];

#[derive(Serialize, Deserialize)]
#[serde(remote = "Observation", tag = "kind", rename_all = "snake_case")]
enum ObservationRecord {
    ToolCalled {
        tool: String,
        call: u64,
    },
    CommandQueued,
    CommandStarted,
    Turned(#[serde(with = "As::<AnswerRecord>")] Spent),
    AskedBeside(#[serde(with = "As::<AnswerRecord>")] Spent),
    Asked {
        id: String,
        #[serde(flatten, with = "As::<QuestionRecord>")]
        question: Question,
    },
    Answered {
        id: String,
    },
    FellBack(#[serde(with = "FallbackRecord")] Fallback),
    Counted(#[serde(with = "TotalsRecord")] Totals),
}

/// One model in the place of another, in events, entries and rows.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fallback")]
pub(crate) struct FallbackRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<ModelName>,
    to: ModelName,
    why: String,
}

#[derive(Serialize, Deserialize)]
struct AnswerRecord {
    tokens: u64,
    cost: Cost,
    unpriced: u64,
}

impl From<Spent> for AnswerRecord {
    fn from(answer: Spent) -> Self {
        let Spent {
            tokens,
            cost,
            unpriced,
            ..
        } = answer;
        Self {
            tokens,
            cost,
            unpriced,
        }
    }
}

impl From<AnswerRecord> for Spent {
    fn from(record: AnswerRecord) -> Self {
        Spent::answer(record.tokens, record.cost, record.unpriced)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Totals")]
struct TotalsRecord {
    tokens: u64,
    cost: Cost,
    unpriced: u64,
    turns: u64,
    by_tool: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Spent")]
struct SpentRecord {
    tokens: u64,
    cost: Cost,
    unpriced: u64,
    turns: u64,
    tool_calls: u64,
}

#[derive(Serialize, Deserialize)]
struct OutcomeRecord {
    outcome: OutcomeWord,
    error: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeWord {
    Completed,
    /// As it was called before the fifth format.
    #[serde(rename = "error", alias = "failed")]
    Failed,
    Cancelled,
}

impl From<Outcome> for OutcomeRecord {
    fn from(outcome: Outcome) -> Self {
        let (outcome, error) = match outcome {
            Outcome::Completed => (OutcomeWord::Completed, None),
            Outcome::Failed { why } => (OutcomeWord::Failed, Some(why)),
            Outcome::Cancelled => (OutcomeWord::Cancelled, None),
        };
        Self { outcome, error }
    }
}

impl From<OutcomeRecord> for Outcome {
    fn from(record: OutcomeRecord) -> Self {
        match record.outcome {
            OutcomeWord::Completed => Self::Completed,
            OutcomeWord::Failed => Self::Failed {
                why: record.error.unwrap_or_default(),
            },
            OutcomeWord::Cancelled => Self::Cancelled,
        }
    }
}

/// Who told a task something, by its word.
mod speaker {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        speaker: &Option<Speaker>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        speaker.map(Speaker::word).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Speaker>, D::Error> {
        let word = Option::<String>::deserialize(deserializer)?;
        let known = |word: String| {
            let unknown = || de::Error::custom(format!("unknown speaker `{word}`"));
            Speaker::of_word(&word).ok_or_else(unknown)
        };
        word.map(known).transpose()
    }
}

/// Older versions did not say which tokens have no known price, and took it for nothing.
pub(crate) fn unpriced_of(saved: Option<u64>, tokens: u64, cost: Cost) -> u64 {
    saved.unwrap_or(if cost == Cost(0) { tokens } else { 0 })
}

#[cfg(test)]
mod tests {
    use asyncagents_core::{
        budget::{Budget, Cost, Spent},
        event::Event,
        fork::{Limits, Preset},
        progress::Observation,
    };
    use rstest::rstest;

    /// Every kind of event, as files have it.
    #[test]
    fn an_event_on_disk_is_written_again_as_it_was() -> serde_json::Result<()> {
        for line in include_str!("../tests/on_disk/events.jsonl").lines() {
            let event = super::deserialize(&mut serde_json::Deserializer::from_str(line))?;
            let mut written = Vec::new();
            super::serialize(&event, &mut serde_json::Serializer::new(&mut written))?;
            assert_eq!(String::from_utf8_lossy(&written), line);
        }
        Ok(())
    }

    #[rstest]
    #[case::unknown(r#"{"kind":"turned","tokens":5,"cost":0}"#, 0, 5)]
    #[case::known(r#"{"kind":"turned","tokens":5,"cost":7}"#, 7, 0)]
    #[case::null(r#"{"kind":"turned","tokens":5,"cost":0,"unpriced":null}"#, 0, 5)]
    #[case::free(r#"{"kind":"turned","tokens":5,"cost":0,"unpriced":0}"#, 0, 0)]
    fn what_an_older_version_took_for_free_has_no_known_price(
        #[case] json: &str,
        #[case] cost: u64,
        #[case] unpriced: u64,
    ) -> serde_json::Result<()> {
        let event = super::deserialize(&mut serde_json::Deserializer::from_str(json))?;
        let turned = Observation::Turned(Spent::answer(5, Cost(cost), unpriced));
        assert_eq!(event, Event::Observed(turned));
        Ok(())
    }

    #[rstest]
    #[case::the_kind(r#"{"kind":"started","kind":"prompted"}"#)]
    #[case::a_field(r#"{"kind":"owned","by":"a","by":"b"}"#)]
    #[case::an_outcome(
        r#"{"kind":"ended","outcome":"error","error":null,"answer":null,"stop":false,"outcome":"completed"}"#
    )]
    fn an_event_that_says_something_twice_is_damaged(#[case] json: &str) {
        let event = super::deserialize(&mut serde_json::Deserializer::from_str(json));
        let why = event.expect_err("damaged").to_string();
        assert!(why.starts_with("duplicate field"), "{why}");
    }

    /// What may be nothing may be left out.
    #[test]
    fn a_launch_without_what_may_be_missing_is_read() -> serde_json::Result<()> {
        let launched = serde_json::json!({
            "kind": "launched", "parent": "p", "root": "p", "depth": 1, "description": "d",
            "agent": "a", "forked": false, "host": "scripted", "prompt": "go", "budget": {},
            "batch": 1, "skill": {"skill": "s", "iterations": 3, "retries": 0}, "instructions": null,
        });
        let Event::Launched(launched) = super::deserialize(launched)? else {
            unreachable!("it was launched");
        };
        assert_eq!(launched.budget, Budget::default());
        assert_eq!(
            launched.role.map(|role| role.instructions),
            Some(String::new())
        );
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
        let Event::Launched(launched) = super::deserialize(launched)? else {
            unreachable!("it was launched");
        };
        let plan = launched.fork.map(|plan| plan.limits);
        let mut expected = Preset::Graduated.limits();
        let set = expected.set("mark_repeated_reads", marks.to_string().as_str());
        assert_eq!((set, plan), (Ok(()), Some(expected)));
        Ok(())
    }
}
