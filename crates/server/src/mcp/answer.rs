//! What a call is answered: text, for hosts that are given structured content show their model
//! nothing else. It is never longer than they show.

use asyncagents_core::request::TextPart;
use asyncagents_runtime::TakenNotice;
use rmcp::model::{CallToolResult, ContentBlock};

const MOST: usize = TextPart::MOST;
const BETWEEN: &str = "\n\n";

/// An answer, with what the session has not been told. If that is long, both are cut: the answer can be
/// asked for again, and the results of a notice too.
pub(super) fn answer(text: String, taken: &[TakenNotice], remark: Option<String>) -> String {
    let mut rest: Vec<String> = remark.into_iter().collect();
    let most_of_each = MOST / 2 / taken.len().max(1);
    let notices: Vec<String> = taken.iter().map(TakenNotice::text).collect();
    let is_long = notices.iter().map(|notice| length(notice)).sum::<usize>() > MOST / 2;
    rest.extend(notices.into_iter().map(|notice| {
        if is_long {
            cut_notice(&notice, most_of_each)
        } else {
            notice
        }
    }));
    if rest.is_empty() {
        return text;
    }
    let rest = rest.join(BETWEEN);
    let room = MOST.saturating_sub(length(&rest) + length(BETWEEN));
    format!("{}{BETWEEN}{rest}", cut_text(text, room))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The beginning of an answer that has to make room for a notice.
fn cut_text(text: String, most: usize) -> String {
    let all = length(&text);
    if all <= most {
        return text;
    }
    let note = "[cut here to make room for a notice; the same call again returns all of it]";
    let kept = most.saturating_sub(length(note) + 1);
    let kept: String = text.chars().take(kept).collect();
    format!("{kept}\n{note}")
}

/// A notice without its middle. Its last line stays, for it is recognised by that.
fn cut_notice(notice: &str, most: usize) -> String {
    if length(notice) <= most {
        return notice.to_owned();
    }
    let (body, name) = notice.rsplit_once('\n').unwrap_or(("", notice));
    let note = "[cut here; output(task_id=…) returns a result whole]";
    let kept = most.saturating_sub(length(note) + length(name) + 2);
    let kept: String = body.chars().take(kept).collect();
    format!("{kept}\n{note}\n{name}")
}

pub(super) fn done(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(super) fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
