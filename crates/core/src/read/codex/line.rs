//! One line of a rollout, as Codex writes it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::read::lossy::{Fields, JsonText, LossyStr};

#[derive(Deserialize)]
pub(super) struct WireLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LossyStr<'a>,
    #[serde(borrow)]
    pub(super) payload: Option<&'a RawValue>,
}
#[derive(Deserialize)]
pub(super) struct WireCompacted<'a> {
    #[serde(borrow)]
    pub(super) message: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub(super) replacement_history: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LossyStr<'a>,
    pub(super) num_turns: Option<u64>,
}

impl<'a> WireLine<'a> {
    /// Reads a line: at once if all of it is in order, else field by field.
    pub(super) fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        // A derived reader would take a list for a struct's fields.
        let is_object = line.trim_ascii_start().starts_with('{');
        if is_object && let Ok(wire) = serde_json::from_str(line) {
            return Ok(wire);
        }
        let line: Fields = serde_json::from_str(line)?;
        Ok(Self {
            kind: line.required("type")?,
            payload: line.lenient("payload").0,
        })
    }
}
