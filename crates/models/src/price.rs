//! Prices and limits of models, from a public table.

use std::collections::BTreeMap;

use asyncagents_core::{agent::Usage, budget::Cost};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ModelError;

/// Made by `scripts/prices`. One model per line: a model is found by searching for its name,
/// and only its line is parsed.
const TABLE: &str = include_str!("prices.json");
/// What is assumed of a model that is not in the table.
const UNKNOWN_WINDOW: u64 = 128_000;
const UNKNOWN_OUTPUT: u64 = 8_192;
/// Longer answers are possible, but agents do not need them.
const LONGEST_OUTPUT: u64 = 32_000;

/// The built-in table with the user's over it.
#[derive(Debug, Default)]
pub(crate) struct Prices {
    own: BTreeMap<String, Figures>,
}

/// What is known about one model: its line in a table.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    prices: PriceRow,
    window: Option<u64>,
    max_output: Option<u64>,
    above: Option<AboveRow>,
    /// Whether the model supports reasoning, if listed.
    reasoning: Option<bool>,
    /// Whether the model decides itself how long it reasons.
    adaptive: Option<bool>,
}

/// Above so many tokens of input, all tokens of the request have other prices.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct AboveRow {
    tokens: u64,
    #[serde(flatten)]
    prices: PriceRow,
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct PriceRow {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Prices {
    /// The built-in table, with a user's table over it, model by model.
    pub(crate) fn with(own: Option<&str>) -> Result<Self, ModelError> {
        let wrong = |why: String| ModelError::settings("the price table", why);
        let Some(text) = own else {
            return Ok(Self::default());
        };
        let rows: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let models = rows.into_iter().filter(|(name, _)| !name.starts_with('_'));
        let read = |(name, row): (String, Box<RawValue>)| {
            let row: Figures = serde_json::from_str(row.get())
                .map_err(|error| wrong(format!("{name}: {error}")))?;
            if row.prices.is_negative() || row.above.is_some_and(|above| above.prices.is_negative())
            {
                return Err(wrong(format!("{name}: a price must not be negative")));
            }
            Ok((name, row))
        };
        let own = models.map(read).collect::<Result<_, _>>()?;
        Ok(Self { own })
    }

    /// What is known about `provider/model`. Behind a router, the model's own name counts.
    pub(crate) fn figures(&self, provider: &str, model: &str, router: bool) -> Figures {
        let row = self.listed(provider, model);
        row.or_else(|| router.then(|| self.behind_router(model)).flatten())
            .unwrap_or_default()
    }

    /// The line of this model of this provider, with or without its date.
    pub(crate) fn listed(&self, provider: &str, model: &str) -> Option<Figures> {
        let full = format!("{provider}/{model}");
        self.exact(&full)
            .or_else(|| self.exact(without_date(&full)))
    }

    /// The models of a provider that are in a table, by their full names.
    pub(crate) fn names(&self, provider: &str) -> Vec<String> {
        let beginning = format!("{provider}/");
        let own = self.own.keys().cloned();
        let built_in = TABLE.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix('"')?.split_once('"')?;
            Some(name.to_owned())
        });
        let names = own.chain(built_in);
        names.filter(|name| name.starts_with(&beginning)).collect()
    }

    fn exact(&self, name: &str) -> Option<Figures> {
        let built_in = line(&format!("\n\"{name}\":"));
        match (self.own.get(name), built_in) {
            (Some(own), Some(built_in)) => Some(own.or(built_in)),
            (own, built_in) => own.copied().or(built_in),
        }
    }

    /// `anthropic/claude-sonnet-4.5:nitro` is the table's `claude-sonnet-4-5`.
    fn behind_router(&self, model: &str) -> Option<Figures> {
        let (path, variant) = model.split_once(':').unwrap_or((model, ""));
        let name = path.rsplit('/').next().unwrap_or(path);
        let dashed = name.replace('.', "-");
        let names = [name, without_date(name), &dashed, without_date(&dashed)];
        let found = self.exact(path).or_else(|| {
            names
                .into_iter()
                .find_map(|name| self.of_any_provider(name))
        })?;
        if variant != "free" {
            return Some(found);
        }
        Some(Figures {
            prices: PriceRow {
                input: Some(0.0),
                output: Some(0.0),
                ..PriceRow::default()
            },
            above: None,
            ..found
        })
    }

    fn of_any_provider(&self, name: &str) -> Option<Figures> {
        let suffix = format!("/{name}");
        let own = self.own.iter().find(|(full, _)| full.ends_with(&suffix));
        own.map(|(_, row)| *row)
            .or_else(|| line(&format!("{suffix}\":")))
    }
}

impl Figures {
    pub(crate) fn window(&self) -> u64 {
        self.window.unwrap_or(UNKNOWN_WINDOW)
    }

    pub(crate) fn max_output(&self) -> u64 {
        self.known_max_output().unwrap_or(UNKNOWN_OUTPUT)
    }

    pub(crate) fn known_max_output(&self) -> Option<u64> {
        self.max_output.map(|most| most.min(LONGEST_OUTPUT))
    }

    /// Whether the price is known; an unknown one is not nothing.
    pub(crate) fn has_price(&self) -> bool {
        self.prices.input.is_some() || self.prices.output.is_some()
    }

    /// Whether the model thinks before it answers. Of one that is not in the table that is not
    /// known, and it may.
    pub(crate) fn thinks(&self) -> bool {
        let unknown = self.known_max_output().is_none();
        self.reasoning.unwrap_or(unknown)
    }

    pub(crate) fn is_adaptive(&self) -> bool {
        self.adaptive.unwrap_or(false)
    }

    /// What these tokens cost, rounded once; none if the price is unknown.
    pub(crate) fn cost(&self, usage: Usage) -> Option<Cost> {
        if !self.has_price() {
            return None;
        }
        let read = usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write);
        let prices = match self.above {
            Some(above) if read > above.tokens => above.prices.or(self.prices),
            _ => self.prices,
        };
        let pico = [
            (usage.input, prices.input),
            (usage.output, prices.output),
            (usage.cache_read, prices.cache_read.or(prices.input)),
            (usage.cache_write, prices.cache_write.or(prices.input)),
        ]
        .map(|(tokens, price)| u128::from(tokens) * u128::from(price.map_or(0, picodollars)));
        let millionths = (pico.iter().sum::<u128>() + 500_000) / 1_000_000;
        Some(Cost(u64::try_from(millionths).unwrap_or(u64::MAX)))
    }
}

impl Figures {
    /// What is missing here comes from `other`.
    fn or(self, other: Figures) -> Figures {
        Figures {
            prices: self.prices.or(other.prices),
            window: self.window.or(other.window),
            max_output: self.max_output.or(other.max_output),
            // The user's own prices hold for requests of any length, unless they say more.
            above: self.above.or(match self.prices.input {
                Some(_) => None,
                None => other.above,
            }),
            reasoning: self.reasoning.or(other.reasoning),
            adaptive: self.adaptive.or(other.adaptive),
        }
    }
}

impl PriceRow {
    fn or(self, other: PriceRow) -> PriceRow {
        PriceRow {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            cache_read: self.cache_read.or(other.cache_read),
            cache_write: self.cache_write.or(other.cache_write),
        }
    }

    fn is_negative(&self) -> bool {
        let prices = [self.input, self.output, self.cache_read, self.cache_write];
        prices.into_iter().flatten().any(|price| price < 0.0)
    }
}

/// Per token, from dollars per million tokens.
fn picodollars(price: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest whole number; prices are far from its limits"
    )]
    let picodollars = (price * 1_000_000.0).round() as u64;
    picodollars
}

/// The built-in line that has `key`, without reading the others.
fn line(key: &str) -> Option<Figures> {
    let at = TABLE.find(key)? + key.len();
    let line = TABLE.get(at..)?.lines().next()?;
    serde_json::from_str(line.trim_end_matches(',')).ok()
}

/// `claude-haiku-4-5-20251001` and `gpt-5-2025-08-07` without their dates.
fn without_date(name: &str) -> &str {
    let is_date = |date: &str| {
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        let dashes = date.bytes().filter(|byte| *byte == b'-').count();
        digits == 8 && digits + dashes == date.len() && (dashes == 0 || dashes == 2)
    };
    let cut = |length: usize| {
        let at = name.len().checked_sub(length)?;
        let (rest, date) = name.split_at_checked(at)?;
        Some(rest.strip_suffix('-')?).filter(|_| is_date(date))
    };
    cut(10).or_else(|| cut(8)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rstest::rstest;

    use super::*;
    use crate::settings::catalog;

    fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
        Usage {
            input,
            cache_read,
            cache_write,
            output,
        }
    }

    fn cost(provider: &str, model: &str, usage: Usage) -> Option<Cost> {
        let prices = Prices::with(None).expect("the table");
        let router = provider == "openrouter";
        prices.figures(provider, model, router).cost(usage)
    }

    #[rstest]
    // 3 dollars in, 15 out, 0.30 from the cache, 3.75 into it.
    #[case("anthropic", "claude-sonnet-4-5", usage(1_000_000, 0, 0, 0), 3_000_000)]
    #[case("anthropic", "claude-sonnet-4-5", usage(10, 1_000, 2_000, 100), 30 + 300 + 7_500 + 1_500)]
    #[case(
        "anthropic",
        "claude-sonnet-4-5-20250929",
        usage(0, 0, 0, 1_000_000),
        15_000_000
    )]
    #[case("openai", "gpt-5-2025-08-07", usage(1_000_000, 0, 0, 0), 1_250_000)]
    #[case("openai", "gpt-5", usage(0, 1_000_000, 0, 0), 125_000)]
    #[case(
        "openrouter",
        "anthropic/claude-sonnet-4.5",
        usage(0, 0, 0, 1_000_000),
        15_000_000
    )]
    #[case(
        "openrouter",
        "openai/gpt-5:nitro",
        usage(1_000_000, 0, 0, 0),
        1_250_000
    )]
    #[case("openrouter", "openai/gpt-oss-120b:free", usage(1_000_000, 0, 0, 0), 0)]
    // A request above 100,000 tokens has its own prices, for all its tokens.
    #[case("anthropic", "claude-haiku-5-5", usage(100_000, 0, 0, 0), 10_000)]
    #[case("anthropic", "claude-haiku-5-5", usage(100_000, 1, 0, 0), 50_000)]
    // Half a millionth is rounded up, once: 0.075 per million from the cache.
    #[case("openai", "gpt-5.4-mini", usage(0, 6, 0, 0), 0)]
    #[case("openai", "gpt-5.4-mini", usage(0, 7, 0, 0), 1)]
    fn a_bill(
        #[case] provider: &str,
        #[case] model: &str,
        #[case] usage: Usage,
        #[case] millionths: u64,
    ) {
        assert_eq!(cost(provider, model, usage), Some(Cost(millionths)));
    }

    #[rstest]
    #[case("ollama", "gpt-5")]
    #[case("anthropic", "nobody-knows")]
    fn an_unknown_price_is_not_nothing(#[case] provider: &str, #[case] model: &str) {
        assert_eq!(cost(provider, model, usage(1_000_000, 0, 0, 1)), None);
        let own = format!(r#"{{"{provider}/{model}": {{"input": 0, "output": 0}}}}"#);
        let prices = Prices::with(Some(&own)).expect("a table");
        let figures = prices.figures(provider, model, false);
        assert_eq!(figures.cost(usage(1_000_000, 0, 0, 1)), Some(Cost(0)));
    }

    #[test]
    fn a_users_table_counts_model_by_model() {
        let own = r#"{"_date": "today",
            "anthropic/claude-sonnet-4-5": {"input": 1.5},
            "house/llama": {"input": 0.1, "output": 0.2, "window": 32000, "max_output": 4000}}"#;
        let prices = Prices::with(Some(own)).expect("a table");
        let sonnet = prices.figures("anthropic", "claude-sonnet-4-5", false);
        assert_eq!(
            sonnet.cost(usage(1_000_000, 0, 0, 0)),
            Some(Cost(1_500_000))
        );
        assert_eq!(
            sonnet.cost(usage(0, 0, 0, 1_000_000)),
            Some(Cost(15_000_000))
        );
        assert_eq!(sonnet.window(), 200_000);
        let llama = prices.figures("house", "llama", false);
        assert_eq!((llama.window(), llama.max_output()), (32_000, 4_000));
        assert_eq!(llama.cost(usage(0, 0, 0, 1_000_000)), Some(Cost(200_000)));
        let opus = prices.figures("anthropic", "claude-opus-4-5", false);
        assert_eq!(opus.cost(usage(1_000_000, 0, 0, 0)), Some(Cost(5_000_000)));
    }

    #[rstest]
    #[case(
        "[1]",
        "the price table: invalid type: sequence, expected a map at line 1 column 0"
    )]
    #[case(
        r#"{"a/b": {"input": "much"}}"#,
        "the price table: a/b: invalid type: string \"much\", expected f64"
    )]
    #[case(
        r#"{"a/b": {"input": -1}}"#,
        "the price table: a/b: a price must not be negative"
    )]
    fn a_broken_table_is_named(#[case] own: &str, #[case] text: &str) {
        let error = Prices::with(Some(own)).expect_err("an error");
        assert!(error.to_string().starts_with(text), "{error}");
    }

    #[rstest]
    #[case("anthropic", "claude-sonnet-4-5", 200_000, 32_000)]
    #[case("openai", "gpt-4o", 128_000, 16_384)]
    #[case("ollama", "qwen3", 128_000, 8_192)]
    fn windows(
        #[case] provider: &str,
        #[case] model: &str,
        #[case] window: u64,
        #[case] output: u64,
    ) {
        let prices = Prices::with(None).expect("the table");
        let figures = prices.figures(provider, model, false);
        assert_eq!((figures.window(), figures.max_output()), (window, output));
    }

    #[test]
    fn every_line_of_the_table_can_be_read_and_every_short_name_is_in_it() {
        let rows: BTreeMap<String, Box<RawValue>> = serde_json::from_str(TABLE).expect("JSON");
        let prices = Prices::with(None).expect("the table");
        for name in rows.keys().filter(|name| !name.starts_with('_')) {
            assert!(prices.exact(name).is_some(), "{name}");
        }
        for name in catalog::aliases().values() {
            assert!(prices.exact(name).is_some(), "{name}");
        }
        assert!(TABLE.len() < 80_000);
    }

    #[test]
    fn a_look_up_is_quick() {
        let prices = Prices::with(None).expect("the table");
        let time = |work: &dyn Fn()| {
            let start = Instant::now();
            (0..20).for_each(|_| work());
            start.elapsed()
        };
        let look_up = time(&|| {
            prices.figures("openrouter", "nobody/knows", true);
        });
        let read = time(&|| drop(serde_json::from_str::<serde_json::Value>(TABLE)));
        assert!(look_up < read, "{look_up:?} and {read:?}");
    }
}
