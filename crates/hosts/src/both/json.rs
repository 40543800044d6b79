//! Values as a program in another language writes them.

use asyncagents_core::moment::Moment;
use serde::{Deserialize, Deserializer};

/// A field that is null is like one that is left out.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A time that was kept as a float.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
pub(crate) fn moment(millis: f64) -> Moment {
    Moment::from_millis(millis as i64)
}
