//! A provider that is of no use for a long time: it does not want to be asked again so soon, or nobody
//! pays for it. OpenCode waits as long as it is told to and asks again; whether another model is asked
//! meanwhile is for the runtime to say.

use std::time::Duration;

use asyncagents_core::{fallback::is_out_of_credit, moment::Moment};

/// A provider that asks for a longer wait is unavailable.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// What the provider says, if its model is asked again only at a moment that is far away, or in vain.
pub(crate) fn long_wait(said: Option<&str>, next: Moment, now: Moment) -> Option<String> {
    let wait = next.since(now);
    let said = said.unwrap_or("no reason given");
    if wait > LONGEST {
        let wait = wait.as_secs();
        return Some(format!("{said}; it asks for a wait of {wait} s"));
    }
    // Limits per minute are worded like a quota, with when to ask again.
    let is_soon_over = said.to_lowercase().contains("retry in");
    (is_out_of_credit(said) && !is_soon_over).then(|| said.to_owned())
}
