//! Stories in the real Claude Code and the real Codex: only the model is scripted. They run as a user
//! that is not root, as those programs want it, where that can be arranged.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]
#![expect(clippy::print_stderr, reason = "what was skipped is said")]

mod harness;
mod story_after_compaction;
mod story_in_both;
mod story_in_claude_code;
mod story_in_codex;
mod story_in_our_sandbox;
mod story_of_blocked_calls;
mod story_of_codex_daemon;
mod story_of_continuing;
mod story_of_five_tasks;
mod story_of_frozen_processes;
mod story_of_setting_up;
mod story_of_waiters;
