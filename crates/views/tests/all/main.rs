//! Every view in its main variants, byte for byte: programs read these.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

mod made_up;
mod others;
mod tasks;
mod traces;

use serde::Serialize;

/// Views as they are printed, but for line breaks and blanks.
fn printed<V: Serialize>(views: impl IntoIterator<Item = V>) -> String {
    let views = views.into_iter();
    let views = views.map(|view| serde_json::to_string_pretty(&view).expect("it can be printed"));
    views.collect::<Vec<_>>().join("\n")
}
