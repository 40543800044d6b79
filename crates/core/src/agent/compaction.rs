//! Summarising a conversation whose window is nearly full.

/// What the model is asked for.
pub const SUMMARISE: &str = "The window of this conversation is nearly full. Summarise it, so \
    that the work can go on from your summary alone: everything before it will be gone. Do not \
    call tools. Write down: what the user asked for, in their words; what was found out, with \
    file names, lines, commands and exact values; what was changed; what was decided and why; \
    which background tasks were launched, with their IDs, and what came of them; what is left \
    to do and what comes next.";

/// How a summary is shown to the model that goes on from it.
pub(super) fn summary_shown(summary: &str) -> String {
    format!(
        "The conversation so far was summarised to save room. Go on from here; do not repeat \
         what is done.\n\n<summary>\n{summary}\n</summary>"
    )
}
