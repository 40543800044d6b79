//! One setting: its key, its description, who may set it, and where its value is.

use serde_json::Value as Json;

use super::{
    settings::Config,
    value::{Amount, Value},
};

/// One setting.
pub(crate) struct Setting {
    /// What it is called in a file, after `-c`, and (in capitals) in the environment.
    pub(crate) key: &'static str,
    /// Shown by `config` and in the schema.
    pub(crate) about: &'static str,
    /// What a project's file may say about it.
    pub(super) project: FromProject,
    pub(super) field: &'static dyn Field,
}

/// A table of settings. A row is a key, where in [`Config`] the value is and how it is checked,
/// what a project may say, and what it is for.
macro_rules! settings {
    ($(
        $key:literal, $($place:ident).+ $(: $check:ident($($with:expr),+))*, $project:expr,
            $about:literal;
    )+) => {
        &[$(Setting {
            key: $key,
            about: $about,
            project: $project,
            field: &at(|config| &config.$($place).+, |config| &mut config.$($place).+)
                $(.$check($($with),+))*,
        }),+]
    };
}
pub(super) use settings;

/// What a project's file may say about a setting. A project may come from another person: it may
/// narrow what its user allows, never widen it, and never decide what runs where with whose keys.
pub(super) enum FromProject {
    /// Nothing. A new setting begins here.
    Refused,
    /// Anything.
    Free,
    /// More, which is added to what the user says by this.
    Added(fn(&mut Config, Config)),
    /// Less than the user says.
    Lowered,
}

impl Setting {
    /// The environment variable that sets it.
    pub(super) fn variable(&self) -> String {
        let name = self.key.replace('.', "_").to_uppercase();
        format!("ASYNCAGENTS_{name}")
    }

    pub(crate) fn show(&self, config: &Config) -> String {
        self.field.show(config)
    }

    /// Whether it is no more than in another configuration.
    pub(super) fn is_at_most(&self, config: &Config, most: &Config) -> bool {
        let amount = self.field.amount(config);
        amount.is_at_most(self.field.amount(most))
    }

    /// What a file may say about it, as JSON Schema.
    pub(super) fn schema(&self, defaults: &Config) -> Json {
        let mut schema = self.field.schema();
        schema["description"] = self.about.into();
        let default = self.show(defaults);
        if !default.is_empty() {
            schema["default"] = super::schema::default(&default);
        }
        schema
    }
}

/// A value somewhere in the configuration.
pub(super) trait Field: Sync {
    fn show(&self, config: &Config) -> String;
    /// Sets it, or says what is allowed.
    fn set(&self, config: &mut Config, text: &str) -> Result<(), String>;
    fn amount(&self, config: &Config) -> Amount;
    fn schema(&self) -> Json;
}

/// Where a value is, how it is read, and between which bounds.
pub(super) struct At<T: 'static> {
    get: fn(&Config) -> &T,
    get_mut: fn(&mut Config) -> &mut T,
    parse: fn(&str) -> Result<T, String>,
    /// Replaces the words of the type for what is allowed.
    allowed: Option<&'static str>,
    /// Minimum, maximum, and what is allowed in words.
    range: (u64, u64, &'static str),
}

/// The value that these lend.
pub(super) const fn at<T: Value>(
    get: fn(&Config) -> &T,
    get_mut: fn(&mut Config) -> &mut T,
) -> At<T> {
    At {
        get,
        get_mut,
        parse: T::parse,
        allowed: None,
        range: (0, u64::MAX, ""),
    }
}

impl<T: Value> At<T> {
    /// Reads it with this function instead of its type's.
    pub(super) const fn parsed(mut self, parse: fn(&str) -> Result<T, String>) -> Self {
        self.parse = parse;
        self
    }

    /// Says what is allowed in these words instead of its type's.
    pub(super) const fn allowed(mut self, allowed: &'static str) -> Self {
        self.allowed = Some(allowed);
        self
    }

    /// No less and no more than this; `allowed` says so.
    pub(super) const fn within(mut self, least: u64, most: u64, allowed: &'static str) -> Self {
        self.range = (least, most, allowed);
        self
    }
}

impl<T: Value> Field for At<T> {
    fn show(&self, config: &Config) -> String {
        (self.get)(config).show()
    }

    fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        let own_words = |allowed| self.allowed.map_or(allowed, str::to_owned);
        let value = (self.parse)(text).map_err(own_words)?;
        let (least, most, allowed) = self.range;
        if let Amount::Of(amount) = value.amount()
            && !(least..=most).contains(&amount)
        {
            return Err(allowed.to_owned());
        }
        *(self.get_mut)(config) = value;
        Ok(())
    }

    fn amount(&self, config: &Config) -> Amount {
        (self.get)(config).amount()
    }

    fn schema(&self) -> Json {
        let mut schema = T::SHAPE.schema();
        let (least, most, _) = self.range;
        if least > 0 {
            schema["minimum"] = least.into();
        }
        if most < u64::MAX {
            schema["maximum"] = most.into();
        }
        schema
    }
}
