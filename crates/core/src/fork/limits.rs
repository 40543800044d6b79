//! Every limit of the pipeline, the presets, and what each value may be.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive};

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::LimitError;
use crate::{
    wording::{grouped, listed},
    words::words,
};

/// The longest context that can be asked for. No token has more than 128 characters, so
/// 100,000 tokens never have this many.
const MOST_CHARS: usize = 20_000_000;
/// More than any text has, so a limit of this size never cuts.
const ALL_CHARS: usize = 1_000_000_000;

/// The limits of a fork. A preset is a named set of them.
///
/// As configuration: any of the keys below, on top of `preset` (`graduated` if absent).
/// Lengths are in characters. Zero means zero, never "no limit".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// How many of the newest tool results are kept whole.
    pub(super) whole_results: usize,
    /// How many of the results before those are in the middle tier.
    pub(super) middle_results: usize,
    /// What is kept of a result in the middle tier.
    pub(super) middle_result_chars: usize,
    /// What is kept of an older result.
    pub(super) old_result_chars: usize,
    /// What is kept of the parameters of a call whose result is whole.
    pub(super) whole_param_chars: usize,
    /// What is kept of the parameters of a call in the middle tier.
    pub(super) middle_param_chars: usize,
    /// What is kept of the parameters of an older call.
    pub(super) old_param_chars: usize,
    /// How much of what is kept comes from the head when head and tail are kept, in percent.
    pub(super) head_percent: usize,
    /// The context is never longer than this.
    pub(super) max_chars: usize,
    /// The context never has more tokens than this.
    pub(super) max_tokens: usize,
    /// What happens to a conversation that is over one of these two.
    pub(super) when_over: OverBudget,
    /// Whether a result says the ID of its call.
    pub(super) call_ids: bool,
    /// Whether an older result that the same call gave again later becomes a line that says so.
    pub(super) mark_repeated_reads: bool,
    /// Tools whose results are the user's own words: never cut.
    pub(super) uncut_tools: Vec<String>,
    /// A tool whose name contains one of these is cut in the middle: its end matters.
    pub(super) head_tail_tools: Vec<String>,
    /// A result that contains one of these is cut in the middle too.
    pub(super) head_tail_words: Vec<String>,
}

/// What happens to a conversation that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverBudget {
    /// The oldest messages go.
    Remove,
    /// There is no fork, and an error says how large it would have been.
    Refuse,
}

/// A named set of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Newest results whole, older ones shorter.
    #[default]
    Graduated,
    /// Every result cut at the same length.
    Flat,
    /// Nothing cut; refused when it does not fit.
    Exact,
}

words! {
    OverBudget { Remove = "remove", Refuse = "refuse" }
    Preset { Graduated = "graduated", Flat = "flat", Exact = "exact" }
}

impl Preset {
    /// The limits it stands for.
    pub fn limits(self) -> Limits {
        match self {
            Preset::Graduated => graduated(),
            Preset::Flat => flat(),
            Preset::Exact => exact(),
        }
    }
}

impl Limits {
    /// Whether nothing is cut and nothing removed: a host that can do so passes on the
    /// messages themselves then.
    pub fn are_exact(&self) -> bool {
        let lengths = [
            self.middle_result_chars,
            self.old_result_chars,
            self.whole_param_chars,
            self.middle_param_chars,
            self.old_param_chars,
        ];
        self.when_over == OverBudget::Refuse
            && !self.mark_repeated_reads
            && lengths.iter().all(|most| *most == ALL_CHARS)
    }

    /// Whether a tool's results are the user's own words.
    pub(super) fn is_uncut(&self, tool: &str) -> bool {
        self.uncut_tools.iter().any(|name| name == tool)
    }
}

impl Default for Limits {
    fn default() -> Self {
        graduated()
    }
}

fn graduated() -> Limits {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Limits {
        whole_results: 5,
        middle_results: 10,
        middle_result_chars: 3_000,
        old_result_chars: 500,
        whole_param_chars: 500,
        middle_param_chars: 200,
        old_param_chars: 100,
        head_percent: 80,
        max_chars: 200_000,
        max_tokens: 100_000,
        when_over: OverBudget::Remove,
        call_ids: false,
        mark_repeated_reads: true,
        uncut_tools: words(&["question", "ask_user_questions"]),
        head_tail_tools: words(&["bash", "pty", "exec", "shell"]),
        head_tail_words: words(&[
            "error",
            "Error",
            "ERROR",
            "failed",
            "FAILED",
            "exception",
            "traceback",
        ]),
    }
}

fn flat() -> Limits {
    Limits {
        whole_results: 0,
        middle_results: 0,
        middle_result_chars: 1_500,
        old_result_chars: 1_500,
        whole_param_chars: 200,
        middle_param_chars: 200,
        old_param_chars: 200,
        // Tokens are the limit.
        max_chars: MOST_CHARS,
        call_ids: true,
        mark_repeated_reads: false,
        uncut_tools: Vec::new(),
        ..graduated()
    }
}

fn exact() -> Limits {
    Limits {
        middle_result_chars: ALL_CHARS,
        old_result_chars: ALL_CHARS,
        whole_param_chars: ALL_CHARS,
        middle_param_chars: ALL_CHARS,
        old_param_chars: ALL_CHARS,
        when_over: OverBudget::Refuse,
        mark_repeated_reads: false,
        ..graduated()
    }
}

/// A value as written in a file or on the command line, before a limit has judged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A number, a word, or a list as `a,b`.
    One(String),
    List(Vec<String>),
}

/// Where the value of one key lives, and what it may be.
enum Slot<'a> {
    Number(&'a mut usize, RangeInclusive<usize>),
    Switch(&'a mut bool),
    WhenOver(&'a mut OverBudget),
    Words(&'a mut Vec<String>),
}

impl Limits {
    /// Sets one limit by its key.
    ///
    /// # Errors
    /// For an unknown key, or a value outside what is allowed; nothing is changed then.
    pub fn set(&mut self, key: &str, value: impl Into<Setting>) -> Result<(), LimitError> {
        let value = value.into();
        let mut slots = self.slots();
        let Some((key, slot)) = slots.iter_mut().find(|(known, _)| *known == key) else {
            return Err(LimitError::UnknownKey {
                key: key.to_owned(),
                known: listed(slots.iter().map(|(known, _)| *known), "and"),
            });
        };
        slot.fill(&value)
            .ok_or_else(|| refused(key, &value.to_string(), slot.allowed()))
    }

    /// What happens to a conversation that does not fit.
    pub fn when_over(&self) -> OverBudget {
        self.when_over
    }

    /// Every key, its value, and what it may be.
    pub fn describe(&self) -> Vec<(&'static str, String, String)> {
        let mut limits = self.clone();
        let slots = limits.slots();
        let describe = |(key, slot): (_, Slot)| (key, slot.value(), slot.allowed());
        slots.into_iter().map(describe).collect()
    }

    /// The one list of keys and allowed values.
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        use Slot::{Number, Switch, WhenOver, Words};
        let results = || 0..=1_000_000;
        let chars = || 0..=ALL_CHARS;
        // A thousand of each leaves room for the wrapper, a summary and a message.
        let all = || 1_000..=MOST_CHARS;
        vec![
            ("whole_results", Number(&mut self.whole_results, results())),
            (
                "middle_results",
                Number(&mut self.middle_results, results()),
            ),
            (
                "middle_result_chars",
                Number(&mut self.middle_result_chars, chars()),
            ),
            (
                "old_result_chars",
                Number(&mut self.old_result_chars, chars()),
            ),
            (
                "whole_param_chars",
                Number(&mut self.whole_param_chars, chars()),
            ),
            (
                "middle_param_chars",
                Number(&mut self.middle_param_chars, chars()),
            ),
            (
                "old_param_chars",
                Number(&mut self.old_param_chars, chars()),
            ),
            ("head_percent", Number(&mut self.head_percent, 0..=100)),
            ("max_chars", Number(&mut self.max_chars, all())),
            ("max_tokens", Number(&mut self.max_tokens, all())),
            ("when_over", WhenOver(&mut self.when_over)),
            ("call_ids", Switch(&mut self.call_ids)),
            ("mark_repeated_reads", Switch(&mut self.mark_repeated_reads)),
            ("uncut_tools", Words(&mut self.uncut_tools)),
            ("head_tail_tools", Words(&mut self.head_tail_tools)),
            ("head_tail_words", Words(&mut self.head_tail_words)),
        ]
    }
}

impl Slot<'_> {
    /// Takes the value, or leaves everything as it is.
    fn fill(&mut self, value: &Setting) -> Option<()> {
        match (self, value) {
            (Slot::Words(words), value) => **words = value.words()?,
            (Slot::Number(number, allowed), Setting::One(value)) => {
                let value = value.replace('_', "").parse().ok()?;
                **number = Some(value).filter(|value| allowed.contains(value))?;
            }
            (Slot::Switch(switch), Setting::One(value)) => **switch = value.parse().ok()?,
            (Slot::WhenOver(policy), Setting::One(value)) => {
                **policy = OverBudget::of_word(value)?;
            }
            (_, Setting::List(_)) => return None,
        }
        Some(())
    }

    fn value(&self) -> String {
        match self {
            Slot::Number(number, _) => number.to_string(),
            Slot::Switch(switch) => switch.to_string(),
            Slot::WhenOver(policy) => policy.to_string(),
            Slot::Words(words) => words.join(","),
        }
    }

    fn allowed(&self) -> String {
        match self {
            Slot::Number(_, range) => {
                format!("{} to {}", grouped(*range.start()), grouped(*range.end()))
            }
            Slot::Switch(_) => "true or false".to_owned(),
            Slot::WhenOver(_) => "remove or refuse".to_owned(),
            Slot::Words(_) => "up to 64 words, separated by commas".to_owned(),
        }
    }
}

impl Setting {
    fn words(&self) -> Option<Vec<String>> {
        let words: Vec<String> = match self {
            Setting::One(text) if text.is_empty() => Vec::new(),
            Setting::One(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
            Setting::List(words) => words.clone(),
        };
        let fine = words.len() <= 64 && words.iter().all(|word| !word.is_empty());
        fine.then_some(words)
    }
}

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Self::One(value.to_owned())
    }
}

impl From<usize> for Setting {
    fn from(value: usize) -> Self {
        Self::One(value.to_string())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Setting::One(value) => f.write_str(value),
            Setting::List(values) => f.write_str(&values.join(",")),
        }
    }
}

fn refused(key: &'static str, value: &str, allowed: String) -> LimitError {
    LimitError::Refused {
        key,
        value: value.to_owned(),
        allowed,
    }
}

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut settings = BTreeMap::<String, Setting>::deserialize(deserializer)?;
        let preset = match settings.remove("preset").map(|name| name.to_string()) {
            Some(name) => Preset::of_word(&name).ok_or_else(|| {
                let names = Preset::ALL.iter().map(|(name, _)| *name);
                de::Error::custom(refused("preset", &name, listed(names, "or")))
            })?,
            None => Preset::default(),
        };
        let mut limits = preset.limits();
        for (key, value) in settings {
            limits.set(&key, value).map_err(de::Error::custom)?;
        }
        Ok(limits)
    }
}

impl<'de> Deserialize<'de> for Setting {
    /// Takes any simple value; the limit it is for knows what it has to be.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Setting::try_from(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl TryFrom<Value> for Setting {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        Ok(match value {
            Value::Null => Setting::One(String::new()),
            Value::Bool(switch) => Setting::One(switch.to_string()),
            Value::Number(number) => Setting::One(match number.as_f64() {
                // `3.0` is three, as everywhere else.
                Some(fraction) if number.is_f64() => fraction.to_string(),
                _ => number.to_string(),
            }),
            Value::String(text) => Setting::One(text),
            Value::Array(list) => {
                let word = |value| Ok(Setting::try_from(value)?.to_string());
                Setting::List(
                    list.into_iter()
                        .map(word)
                        .collect::<Result<_, Self::Error>>()?,
                )
            }
            Value::Object(_) => {
                return Err("expected a number, a word, true, false or a list of words");
            }
        })
    }
}
