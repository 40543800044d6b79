//! What a setting can hold: how each type is shown and read, and what a file may say.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use asyncagents_core::{
    agent::{Effort, Mode, Rule},
    budget::Cost,
    fork::{self, Limits, Preset},
    id::ModelName,
    model_choice::AllowedModels,
};
use asyncagents_engine::{CommandLimit, Unanswered};
use asyncagents_tools::{Bytes, MemoryLimit, SandboxMode};

use super::schema::Shape;
use crate::color::Color;

/// The value of a setting.
pub(super) trait Value: Sized + 'static {
    /// What it looks like in a file.
    const SHAPE: Shape;

    /// What is added to the allowed values where there may also be none.
    const OR_NONE: &'static str = ", or none";

    /// As a user would write it.
    fn show(&self) -> String;

    /// Reads it, or says what would be allowed.
    fn parse(text: &str) -> Result<Self, String>;

    /// How much it is, for values that can be compared.
    fn amount(&self) -> Amount {
        Amount::NotANumber
    }
}

/// How much a value is.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    NotANumber,
    Unlimited,
    Of(u64),
}

impl Amount {
    /// Whether it is no more than this. What cannot be compared is not.
    pub(super) fn is_at_most(self, most: Amount) -> bool {
        match (self, most) {
            (Amount::Unlimited | Amount::Of(_), Amount::Unlimited) => true,
            (Amount::Of(amount), Amount::Of(most)) => amount <= most,
            _ => false,
        }
    }
}

macro_rules! whole_number {
    ($($number:ty)*) => {$(
        impl Value for $number {
            const SHAPE: Shape = Shape::Integer;

            fn show(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Result<Self, String> {
                let number = text.replace('_', "").parse();
                number.map_err(|_| "a whole number from 0 on".to_owned())
            }

            fn amount(&self) -> Amount {
                Amount::Of(*self as u64)
            }
        }
    )*};
}

whole_number!(u32 u64 usize);

/// Words that stand for values.
type Words<T> = &'static [(&'static str, T)];

macro_rules! one_of {
    ($($type:ty: $words:expr;)*) => {$(
        impl Value for $type {
            const SHAPE: Shape = Shape::OneOf(|| names($words));

            fn show(&self) -> String {
                let known = $words.iter().find(|(_, value)| value == self);
                known.map_or("", |(word, _)| word).to_owned()
            }

            fn parse(text: &str) -> Result<Self, String> {
                find($words, text)
            }
        }
    )*};
}

one_of! {
    Color: &Color::ALL;
    Mode: Mode::ALL;
    fork::Mode: fork::Mode::ALL;
    SandboxMode: &[
        ("auto", SandboxMode::Auto),
        ("required", SandboxMode::Required),
        ("off", SandboxMode::Off),
    ];
    Option<Unanswered>: &[
        ("auto", None),
        ("wait", Some(Unanswered::Wait)),
        ("refuse", Some(Unanswered::Refuse)),
    ];
    Option<Effort>: &[
        ("none", None),
        ("low", Some(Effort::Low)),
        ("medium", Some(Effort::Medium)),
        ("high", Some(Effort::High)),
    ];
}

fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

fn find<T: Copy>(words: Words<T>, text: &str) -> Result<T, String> {
    let known = words.iter().find(|(word, _)| *word == text.trim());
    known.map(|(_, value)| *value).ok_or_else(|| {
        let names = names(words);
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("{} or {last}", others.join(", "))
    })
}

/// Of the limits of a fork, the preset: each of them is a setting of the fork itself.
impl Value for Limits {
    const SHAPE: Shape = Shape::OneOf(|| names(Preset::ALL));

    fn show(&self) -> String {
        let known = Preset::ALL
            .iter()
            .find(|(_, preset)| preset.limits() == *self);
        known.map_or("changed", |(name, _)| name).to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        find(Preset::ALL, text).map(Preset::limits)
    }
}

impl<T: Value> Value for Option<T> {
    const SHAPE: Shape = Shape::OrNone(&T::SHAPE);

    fn show(&self) -> String {
        self.as_ref().map_or("none".to_owned(), T::show)
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(None);
        }
        let value = T::parse(text);
        value.map(Some).map_err(|allowed| allowed + T::OR_NONE)
    }

    fn amount(&self) -> Amount {
        self.as_ref().map_or(Amount::Unlimited, T::amount)
    }
}

impl Value for bool {
    const SHAPE: Shape = Shape::Boolean;

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" | "" => Ok(false),
            _ => Err("true or false".to_owned()),
        }
    }
}

/// Not blank.
impl Value for String {
    const SHAPE: Shape = Shape::Text;

    fn show(&self) -> String {
        self.clone()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let filled = (!text.trim().is_empty()).then(|| text.to_owned());
        filled.ok_or_else(|| "a text".to_owned())
    }
}

impl Value for PathBuf {
    const SHAPE: Shape = Shape::Text;

    fn show(&self) -> String {
        self.display().to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
}

/// As people write it: `90s`, `10m`, `1h 30m`.
impl Value for Duration {
    const SHAPE: Shape = Shape::Duration;
    const OR_NONE: &'static str = "";

    fn show(&self) -> String {
        let time = jiff::SignedDuration::try_from(*self).unwrap_or(jiff::SignedDuration::MAX);
        format!("{time:#}")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let time = with_days(text.trim());
        time.ok_or_else(|| "a duration like 500ms, 90s, 10m, 1h 30m or 30d".to_owned())
    }

    fn amount(&self) -> Amount {
        Amount::Of(u64::try_from(self.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A duration that may begin with days, which a clock's own durations have not: with each change of
/// the clocks one is longer or shorter. Here it is 24 hours.
fn with_days(text: &str) -> Option<Duration> {
    let time = |text: &str| {
        let parsed = text.parse::<jiff::SignedDuration>().ok()?;
        Duration::try_from(parsed).ok()
    };
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let after = |unit: &str| {
        let rest = rest.strip_prefix(unit)?;
        (!rest.starts_with(char::is_alphabetic)).then_some(rest.trim_start())
    };
    let Some(rest) = ["days", "day", "d"].into_iter().find_map(after) else {
        return time(text);
    };
    let seconds = number.parse::<u64>().ok()?.checked_mul(86_400)?;
    let days = Duration::from_secs(seconds);
    match rest {
        "" => Some(days),
        rest => days.checked_add(time(rest)?),
    }
}

/// Dollars as people write them: `0.50`, `$2`.
impl Value for Cost {
    const SHAPE: Shape = Shape::Dollars;
    const OR_NONE: &'static str = "";

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let amount = text.trim().trim_start_matches('$').parse::<f64>();
        let amount = amount.ok().filter(|amount| (0.0..=1e9).contains(amount));
        let amount = amount.ok_or_else(|| "an amount of dollars like 0.50".to_owned())?;
        Ok(Cost((amount * 1e6).round() as u64))
    }

    fn amount(&self) -> Amount {
        Amount::Of(self.0)
    }
}

impl Value for CommandLimit {
    const SHAPE: Shape = Shape::OrWord(&Shape::Integer, CORES);

    fn show(&self) -> String {
        match self {
            Self::Cores => CORES.to_owned(),
            Self::Of(number) => number.to_string(),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == CORES {
            return Ok(Self::Cores);
        }
        let number = text.replace('_', "").parse();
        number
            .map(Self::Of)
            .map_err(|_| "a whole number from 1 on, or cores".to_owned())
    }
}

const CORES: &str = "cores";

macro_rules! size {
    ($($type:ty)*) => {$(
        impl Value for $type {
            const SHAPE: Shape = Shape::Size;

            fn show(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Result<Self, String> {
                text.parse()
            }
        }
    )*};
}

size!(Bytes MemoryLimit);

/// How many for each, as `a=1,b=2`.
impl Value for BTreeMap<ModelName, u64> {
    const SHAPE: Shape = Shape::Counts;

    fn show(&self) -> String {
        let limits = self.iter().map(|(model, limit)| format!("{model}={limit}"));
        limits.collect::<Vec<_>>().join(",")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let pair = |pair: &str| {
            let (model, limit) = pair.rsplit_once('=')?;
            Some((ModelName::from(model.trim()), limit.trim().parse().ok()?))
        };
        let limits: Option<Self> = items(text).map(pair).collect();
        limits.ok_or_else(|| "MODEL=N,MODEL=N".to_owned())
    }
}

impl Value for Vec<Rule> {
    const SHAPE: Shape = Shape::List;

    fn show(&self) -> String {
        let rules: Vec<String> = self.iter().map(ToString::to_string).collect();
        let is_closed = |rule: &String| rule.matches('(').count() == rule.matches(')').count();
        // A comma behind an open bracket would not end the rule.
        let between = if rules.iter().all(is_closed) {
            ","
        } else {
            "\n"
        };
        rules.join(between)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Rule::list(text).map_err(|error| error.to_string())
    }
}

/// Names of variables, or their beginnings with a `*` behind them.
impl Value for Vec<String> {
    const SHAPE: Shape = Shape::List;

    fn show(&self) -> String {
        self.join(",")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let is_name = |name: &String| {
            let beginning = name.strip_suffix('*').unwrap_or(name);
            beginning.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let names: Vec<String> = items(text).map(str::to_owned).collect();
        let fine = names.iter().all(is_name).then_some(names);
        fine.ok_or_else(|| "names like STAGE or MY_*, separated by commas".to_owned())
    }
}

/// Models as patterns, in which `*` stands for any text.
impl Value for AllowedModels {
    const SHAPE: Shape = Shape::List;

    fn show(&self) -> String {
        self.patterns().join(",")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let patterns: Vec<String> = items(text).map(str::to_owned).collect();
        let filled = (!patterns.is_empty()).then(|| AllowedModels::new(patterns));
        filled.ok_or_else(|| "models like anthropic/*, separated by commas, or *".to_owned())
    }
}

impl Value for Vec<ModelName> {
    const SHAPE: Shape = Shape::List;

    fn show(&self) -> String {
        let names: Vec<&str> = self.iter().map(ModelName::as_str).collect();
        names.join(",")
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(items(text).map(ModelName::from).collect())
    }
}

impl Value for Vec<PathBuf> {
    const SHAPE: Shape = Shape::List;

    fn show(&self) -> String {
        let paths: Vec<String> = self.iter().map(PathBuf::show).collect();
        paths.join(",")
    }

    fn parse(text: &str) -> Result<Self, String> {
        let paths: Vec<PathBuf> = items(text).map(PathBuf::from).collect();
        let fine = paths.iter().all(|path| path.is_absolute()).then_some(paths);
        fine.ok_or_else(|| "absolute paths, separated by commas".to_owned())
    }
}

/// What is between commas.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let items = text.split(',').map(str::trim);
    items.filter(|item| !item.is_empty())
}
