//! The plugin inside the real OpenCode, as `asyncagents setup opencode --project` installs it.
//! Only the model is not real. `scripts/opencode-for-tests` fetches OpenCode; the first test
//! runs it if need be.
//!
//! Which scenarios of the original requirements (`seeds`) are told here, inside real sessions.
//! The fork's rules by themselves are in `crates/core/tests`.
//!
//! | seed | scenario | story |
//! |---|---|---|
//! | 000, 001, 003 | launch forked background task | `forking::seed_001_a_forked_child_knows_what_its_parent_read_and_ran`, `running::a_forked_task_knows_the_conversation` |
//! | 000 | role labels; tool calls as `[Tool: name] params` | the same |
//! | 000, 002 | truncation at 1,500 characters with the original length | `forking::seed_000_the_flat_preset_cuts_every_long_result` |
//! | 002 | inherited context instead of a fresh start, fresh by default | `forking::a_fresh_child_knows_nothing_but_its_prompt` |
//! | 000, 001, 002, 003 | fork with resume is rejected | `launching::what_cannot_be_launched_says_why_and_creates_nothing` |
//! | 000, 001, 003 | fork indicator; no indicator for new tasks | `launching::seed_003_the_list_shows_the_tasks_of_its_own_session_only` |
//! | 001 | compaction boundaries, one and several, none | `forking::seed_001_after_a_compaction_only_the_summary_and_what_follows_is_inherited`, `forking::seed_001_a_forked_child_…` |
//! | 001 | three tiers; head and tail of commands | `forking::seed_001_older_tool_results_are_cut_in_three_tiers` |
//! | 001 | dynamic preamble, injected without a reply | `forking::seed_001_a_forked_child_…`, `…_three_tiers` |
//! | 003 | retrieve completed results; check a running task | `launching::seed_003_output_shows_progress_…` |
//! | 003 | task persistence until cleared or deleted | `launching::seed_003_the_result_stays_until_it_is_cleared`, `ending::a_parent_that_is_deleted_takes_its_children_along` |
//! | 003 | resume with a follow-up; resumed indicator | `resuming::seed_003_a_follow_up_is_answered_…` |
//! | 003 | wait for a resume's response | `resuming::seed_003_a_caller_can_wait_for_the_answer_to_a_follow_up` |
//! | 003 | expired session on resume | `resuming::seed_003_a_task_whose_session_is_gone_cannot_be_resumed` |
//! | 003 | list filtered by parent; empty list | `launching::seed_003_the_list_shows_…` |
//! | 003 | hidden hint, all done and some running | `launching::seed_003_a_launch_answers_at_once_…`, `telling::five_children_five_results_five_notices` |
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic and say why; its helpers too"
)]

mod answering;
mod chaos;
mod choosing;
mod connecting;
mod crashing;
mod ending;
mod forking;
mod harness;
mod launching;
mod other_agents;
mod permitting;
mod remote;
mod resting;
mod resuming;
mod running;
mod skilling;
mod smoke;
mod soaking;
mod surviving;
mod telling;
mod terminal;
mod told;
