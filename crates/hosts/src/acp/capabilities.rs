//! What an agent says that it can do.

use serde_json::Value;

/// What an agent can do, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) loads: bool,
    pub(super) forks: bool,
    pub(super) closes: bool,
    /// It can be told something in the middle of its work.
    pub(super) steers: bool,
    /// It takes texts with a prompt that are no part of it.
    pub(super) embeds_context: bool,
    /// It takes instructions beside its own.
    pub(super) takes_instructions: bool,
}

impl Capabilities {
    /// Reads the answer to `initialize`.
    pub(super) fn read(answer: &Value) -> Self {
        let said = |path: &str| answer.pointer(path).is_some_and(is_offered);
        let session = |name: &str| said(&format!("/agentCapabilities/sessionCapabilities/{name}"));
        Self {
            loads: said("/agentCapabilities/loadSession"),
            forks: session("fork"),
            closes: session("close"),
            steers: said("/_meta/steering/supported"),
            embeds_context: said("/agentCapabilities/promptCapabilities/embeddedContext"),
            takes_instructions: session("systemPrompt"),
        }
    }
}

/// `true`, or an object of details.
fn is_offered(value: &Value) -> bool {
    value.as_bool().unwrap_or(value.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_can_do_what_it_says() {
        let answer = json!({
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"embeddedContext": false},
                "sessionCapabilities": {"fork": {}, "close": null, "systemPrompt": {"mode": {}}},
            },
            "_meta": {"steering": {"supported": true}},
        });
        let expected = Capabilities {
            loads: true,
            forks: true,
            steers: true,
            takes_instructions: true,
            ..Capabilities::default()
        };
        assert_eq!(Capabilities::read(&answer), expected);
        assert_eq!(Capabilities::read(&json!(null)), Capabilities::default());
    }
}
