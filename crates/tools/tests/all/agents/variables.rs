//! Which variables an agent gets.

use std::ffi::OsString;

use asyncagents_tools::agent_environment;

use super::started::Site;

#[test]
fn it_gets_its_own_keys_and_nobody_elses() {
    let mut site = Site::new();
    site.settings.secret_variables = vec!["AGENT_API_KEY".into(), "OTHER_PLAIN".into()];
    site.settings.variables = vec!["OTHER_PLAIN".into()];
    let set: Vec<(OsString, OsString)> = [
        ("PATH", "/bin"),
        ("AGENT_API_KEY", "key"),
        ("AGENT_MODEL", "m"),
        ("AGENT_TOKEN", "hush"),
        ("OTHER_API_KEY", "hush"),
        ("OTHER_PLAIN", "hush"),
        ("SSH_AUTH_SOCK", "/run/x"),
        ("HTTPS_PROXY", "http://proxy"),
        ("no_proxy", "*"),
        ("TERM", "xterm"),
        ("ASYNCAGENTS_IN_SESSION", "ses_1"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    let passed = agent_environment(&site.settings, &["AGENT_API_KEY", "AGENT_*"], set);
    let passed: Vec<String> = passed
        .iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    let fixed = [
        "TERM=dumb",
        "PAGER=cat",
        "GIT_PAGER=cat",
        "GIT_TERMINAL_PROMPT=0",
    ];
    let own = ["PATH=/bin", "AGENT_API_KEY=key", "AGENT_MODEL=m"];
    assert_eq!(passed, [&own[..], &fixed].concat());
}
