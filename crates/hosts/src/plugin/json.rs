//! JSON from outside, which may be anything.

use serde_json::Value;

/// A field of an object; null if there is none, or it is no object. Indexing for a change would
/// panic there.
pub(super) fn take(object: &mut Value, key: &str) -> Value {
    object.get_mut(key).map(Value::take).unwrap_or_default()
}
