//! The variables of an agent.

use std::ffi::OsString;

use crate::{
    sandbox::SESSION_VARIABLE,
    settings::Settings,
    variables::{WORKERS_MEMORY, passes_sandbox},
};

/// They would lead past the agent's own proxy.
const OF_PROXIES: [&str; 4] = ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// Which of these variables an agent gets: what commands in the sandbox get, and its own, which are
/// named (`EXAMPLE_API_KEY`) or given by their beginning (`EXAMPLE_*`, without those that look like
/// secrets). None that names a proxy.
pub fn agent_environment(
    settings: &Settings,
    own: &[&str],
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let listed = own.iter().map(|name| (*name).to_owned());
    let listed: Vec<String> = listed.chain(settings.variables.iter().cloned()).collect();
    let is_passed_on = |(name, value): &(OsString, OsString)| {
        let Some(name) = name.to_str() else {
            return false;
        };
        let value = value.to_string_lossy();
        let is_kept = settings.secret_variables.iter().any(|kept| kept == name);
        name != SESSION_VARIABLE
            && (name, &*value) != WORKERS_MEMORY
            && !OF_PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name))
            // A key of ours may be the agent's too.
            && (!is_kept || own.contains(&name))
            && passes_sandbox(name, &value, &listed)
    };
    let mut passed: Vec<_> = variables.into_iter().filter(is_passed_on).collect();
    let fixed = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    passed.retain(|(name, _)| fixed.iter().all(|(fixed, _)| name != fixed));
    passed.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    passed
}
