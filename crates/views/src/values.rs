//! Times, lengths and parameters as programs read them.

use std::time::Duration;

use asyncagents_core::moment::Moment;
use serde_json::Value;

/// A call's parameters, as JSON if the model wrote JSON.
pub fn arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()))
}

/// `2026-03-01T12:30:05.123Z`.
pub fn time(moment: Moment) -> String {
    let stamp = jiff::Timestamp::from_millisecond(moment.as_millis());
    stamp.map_or_else(
        |_| moment.as_millis().to_string(),
        |stamp| stamp.to_string(),
    )
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
