//! Stories of real agents as children, through the program as users run it: sandbox, proxy, worker and
//! all. Only the model is scripted. They run as a user that is not root, where that can be arranged.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

/// A test of each story for each agent, or for some of them.
macro_rules! told {
    (@ $story:ident ($($name:ident $agent:ident),+)) => {
        mod $story {
            $(
                #[test]
                fn $name() {
                    super::tell::$story(crate::agent::Agent::$agent);
                }
            )+
        }
    };
    (for $agents:tt: $($story:ident)+) => {
        $( told! { @ $story $agents } )+
    };
    ($($story:ident)+) => {
        told! {
            for (claude Claude, claude_alone ClaudeAlone, codex Codex, gemini Gemini, goose Goose,
                opencode OpenCode):
            $($story)+
        }
    };
}

#[path = "../../../hosts/tests/real_agents/agent.rs"]
#[allow(dead_code, reason = "the tests of hosts need more of it")]
mod agent;
#[path = "../../../hosts/tests/real_agents/home.rs"]
mod home;
#[path = "../../../hosts/tests/real_agents/processes.rs"]
mod processes;
mod story_of_children;
mod story_of_delegating;
mod story_of_kills;
mod story_of_paying;
mod story_of_questions;
mod story_of_rules;
mod world;
