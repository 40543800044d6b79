//! What each server scenario of the conformance suite means for this server.

/// What a scenario has to come to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Passes,
    /// All its checks pass but these, each with the reason why it does not apply.
    PassesBut(&'static [(&'static str, &'static str)]),
    /// It does not apply, for this reason; if it passes, so much the better.
    NotOurs(&'static str),
}

use Expected::{NotOurs, Passes, PassesBut};

const TOOL: &str = "it calls a tool of the suite's reference server, whose tools are its own";
const ADDRESS: &str = "it reads an address of the suite's reference server, not a task or a trace";
const PROMPT: &str = "it wants more than text from a prompt; a skill is text";
const HTTP: &str =
    "it is about HTTP, which is the bridge's here: the server has standard input and output";
const LOGGING: &str = "the server does not say that it logs to its client";
const COMPLETION: &str = "the server does not say that it completes arguments";
const SUBSCRIBE: &str = "the server does not say that a resource can be subscribed to";
const ASKS_CLIENT: &str =
    "it wants a tool that asks the client for something; ours ask nothing of a client";
const CHANGE: &str =
    "it changes the list by a tool of the reference server; `changing.rs` changes a skill's file";
const DIRECTORIES: &str =
    "the server does not say that it lists folders: an entry has all files of a skill";
const NOT_LISTED: &str =
    "skills are among the resources of clients that declare the extension; the suite does not";

/// All server scenarios. One that is not here fails the test.
pub(crate) const SCENARIOS: &[(&str, Expected)] = &[
    // What every server has.
    ("server-initialize", Passes),
    ("ping", Passes),
    ("server-stateless", PassesBut(STATELESS)),
    ("caching", Passes),
    // Tools.
    ("tools-list", Passes),
    ("tools-call-simple-text", NotOurs(TOOL)),
    ("tools-call-image", NotOurs(TOOL)),
    ("tools-call-audio", NotOurs(TOOL)),
    ("tools-call-embedded-resource", NotOurs(TOOL)),
    ("tools-call-mixed-content", NotOurs(TOOL)),
    ("tools-call-error", NotOurs(TOOL)),
    ("tools-call-with-progress", NotOurs(TOOL)),
    ("json-schema-2020-12", NotOurs(TOOL)),
    // Resources.
    ("resources-list", Passes),
    ("sep-2164-resource-not-found", Passes),
    ("resources-read-text", NotOurs(ADDRESS)),
    ("resources-read-binary", NotOurs(ADDRESS)),
    ("resources-templates-read", NotOurs(ADDRESS)),
    ("resources-subscribe", NotOurs(SUBSCRIBE)),
    ("resources-unsubscribe", NotOurs(SUBSCRIBE)),
    // Prompts: the test has skills with the names that these want.
    ("prompts-list", Passes),
    ("prompts-get-simple", Passes),
    ("prompts-get-with-args", Passes),
    ("prompts-get-embedded-resource", NotOurs(PROMPT)),
    ("prompts-get-with-image", NotOurs(PROMPT)),
    // What a server may say that it can.
    ("logging-set-level", NotOurs(LOGGING)),
    ("tools-call-with-logging", NotOurs(LOGGING)),
    ("completion-complete", NotOurs(COMPLETION)),
    // What a server asks of its client, in the older eras and without a session.
    ("tools-call-sampling", NotOurs(ASKS_CLIENT)),
    ("tools-call-elicitation", NotOurs(ASKS_CLIENT)),
    ("elicitation-sep1034-defaults", NotOurs(ASKS_CLIENT)),
    ("elicitation-sep1330-enums", NotOurs(ASKS_CLIENT)),
    ("input-required-result-unsupported-methods", Passes),
    (
        "input-required-result-basic-elicitation",
        NotOurs(ASKS_CLIENT),
    ),
    ("input-required-result-basic-sampling", NotOurs(ASKS_CLIENT)),
    (
        "input-required-result-basic-list-roots",
        NotOurs(ASKS_CLIENT),
    ),
    ("input-required-result-request-state", NotOurs(ASKS_CLIENT)),
    (
        "input-required-result-multiple-input-requests",
        NotOurs(ASKS_CLIENT),
    ),
    ("input-required-result-multi-round", NotOurs(ASKS_CLIENT)),
    (
        "input-required-result-missing-input-response",
        NotOurs(ASKS_CLIENT),
    ),
    (
        "input-required-result-non-tool-request",
        NotOurs(ASKS_CLIENT),
    ),
    ("input-required-result-result-type", NotOurs(ASKS_CLIENT)),
    ("input-required-result-tampered-state", NotOurs(ASKS_CLIENT)),
    (
        "input-required-result-capability-check",
        NotOurs(ASKS_CLIENT),
    ),
    (
        "input-required-result-ignore-extra-params",
        NotOurs(ASKS_CLIENT),
    ),
    ("input-required-result-validate-input", NotOurs(ASKS_CLIENT)),
    // HTTP.
    ("server-session-lifecycle", NotOurs(HTTP)),
    ("server-sse-polling", NotOurs(HTTP)),
    ("server-sse-multiple-streams", NotOurs(HTTP)),
    ("dns-rebinding-protection", NotOurs(HTTP)),
    ("http-header-validation", NotOurs(HTTP)),
    ("http-custom-header-server-validation", NotOurs(HTTP)),
    // Extensions: a row changes when the server says that it has one.
    ("sep-2640-skills-directory", NotOurs(DIRECTORIES)),
    ("sep-2640-skills-enumeration", Passes),
    ("sep-2640-skills-manifest", PassesBut(MANIFEST)),
    ("tasks-lifecycle", NotOurs(TOOL)),
    ("tasks-capability-negotiation", PassesBut(NEGOTIATION)),
    ("tasks-wire-fields", NotOurs(TOOL)),
    ("tasks-request-state-removal", NotOurs(TOOL)),
    ("tasks-mrtr-input", NotOurs(TOOL)),
    ("tasks-request-headers", NotOurs(TOOL)),
    ("tasks-dispatch-and-envelope", PassesBut(DISPATCH)),
    ("tasks-status-notifications", NotOurs(TOOL)),
    ("tasks-required-task-error", NotOurs(TOOL)),
    ("tasks-mrtr-composition", NotOurs(TOOL)),
];

/// What `sep-2640-skills-manifest` checks that does not apply.
const MANIFEST: &[(&str, &str)] = &[
    ("sep-2640-skillmd-metadata-name", NOT_LISTED),
    ("sep-2640-skillmd-metadata-description", NOT_LISTED),
];

/// What `tasks-capability-negotiation` checks that does not apply; `following.rs` checks it with our tools.
const NEGOTIATION: &[(&str, &str)] = &[
    ("sep-2663-server-rejects-undeclared-client", TOOL),
    ("tasks-per-request-meta-opt-in", TOOL),
];

/// What `tasks-dispatch-and-envelope` checks that does not apply; `following.rs` checks most with our tools.
const DISPATCH: &[(&str, &str)] = &[
    ("tasks-server-directed-creation-no-hint", TOOL),
    ("sep-2663-legacy-task-param-ignored", TOOL),
    ("tasks-immediate-result-shortcut", TOOL),
    ("tasks-result-type-complete-on-non-task-responses", TOOL),
    ("sep-2663-durable-create-strong-consistency", TOOL),
];

/// What `server-stateless` checks that does not apply.
const STATELESS: &[(&str, &str)] = &[
    ("sep-2575-http-server-header-mismatch-400", HTTP),
    ("sep-2575-server-rejects-undeclared-capability", ASKS_CLIENT),
    ("sep-2575-missing-capability-http-400", ASKS_CLIENT),
    (
        "sep-2575-http-server-no-independent-requests-on-stream",
        ASKS_CLIENT,
    ),
    ("sep-2575-server-no-log-without-loglevel", LOGGING),
    (
        "sep-2575-server-sends-prompts-list-changed-on-subscription",
        CHANGE,
    ),
    (
        "sep-2575-server-sends-tools-list-changed-on-subscription",
        CHANGE,
    ),
];
