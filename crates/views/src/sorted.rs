//! Views with their keys in alphabetical order, wherever serde would put a tag or a flattened
//! part. Programs have read them in this order from the beginning.

use serde::{Serialize, Serializer, ser::Error};

use crate::{RunEvent, SkillDetails, SkillEventView, StepView, TraceEvent};

/// `#[serde(remote = "Self")]` derives a function of each type; this makes it the type's
/// `Serialize`, by way of a map that is sorted.
macro_rules! sorted {
    ($($view:ident),*) => {$(
        impl Serialize for $view<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let value = $view::serialize(self, serde_json::value::Serializer);
                value.map_err(S::Error::custom)?.serialize(serializer)
            }
        }
    )*};
}

sorted!(RunEvent, SkillDetails, SkillEventView, StepView, TraceEvent);
