//! What a call is answered: text, for hosts that are given structured content show their model
//! nothing else.

use asyncagents_runtime::TakenNotice;
use rmcp::model::{CallToolResult, ContentBlock};

/// An answer, with what the session has not been told.
pub(super) fn answer(text: String, taken: &[TakenNotice], remark: Option<String>) -> String {
    let notices = taken.iter().map(TakenNotice::text);
    let parts = [text].into_iter().chain(remark).chain(notices);
    parts.collect::<Vec<_>>().join("\n\n")
}

pub(super) fn done(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(super) fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
