//! The real Claude Code, Codex and OpenCode as children: only the model is scripted. They run as a user
//! that is not root, as those programs want it, where that can be arranged.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "real_agents/agent.rs"]
mod agent;
#[path = "real_agents/home.rs"]
mod home;
#[path = "real_agents/processes.rs"]
mod processes;
#[path = "real_agents/script.rs"]
mod script;
#[path = "real_agents/site.rs"]
mod site;
#[path = "real_agents/story_of_promises.rs"]
mod story_of_promises;
