//! What options of several verbs are read with.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A key and a value.
pub(crate) type Assignment = (String, String);

/// A setting that has an option of its own, if that was given.
pub(crate) fn given(key: &str, value: &Option<String>) -> Option<Assignment> {
    let value = value.clone()?;
    Some((key.to_owned(), value))
}

/// One of a list of names, each standing for a value.
pub(crate) fn named<T: Copy + Send + Sync + PartialEq + 'static>(
    all: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|(name, _)| *name));
    names.try_map(|typed| {
        let known = all.iter().find(|(name, _)| *name == typed);
        known.map(|(_, value)| *value).ok_or("not in the list")
    })
}

/// `KEY=VALUE`, without blanks around either.
pub(crate) fn key_value(text: &str) -> Option<Assignment> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim().to_owned(), value.trim().to_owned()))
}
