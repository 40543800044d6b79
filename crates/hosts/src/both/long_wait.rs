//! A provider that does not want to be asked again for a long time. OpenCode waits as long as it is
//! told to; whether another model is asked meanwhile is for the runtime to say.

use std::time::Duration;

use asyncagents_core::moment::Moment;

/// A provider that asks for a longer wait is unavailable.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// What the provider says, if its model is asked again only at a moment that is far away.
pub(crate) fn long_wait(said: Option<&str>, next: Moment, now: Moment) -> Option<String> {
    let wait = next.since(now);
    let said = said.unwrap_or("no reason given");
    (wait > LONGEST).then(|| format!("{said}; it asks for a wait of {} s", wait.as_secs()))
}
