//! What a child is told about its context, before its task.

use super::{Limits, Stats};
use crate::wording::{counted, grouped, listed};

/// The preamble of a forked child that begins with its parent's own messages.
pub const BRANCHED: &str = "From here on you are a background agent. The conversation above belongs \
    to the agent that launched you; it is there so that you know what was found out. Do only the \
    task below. Do not continue the other agent's work, and do not wait for its background \
    tasks. What you say last is handed to it as your result.";

/// In what form a child has the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Messages,
}

/// Says what happened and nothing that did not.
pub(super) fn write(stats: &Stats, limits: &Limits, form: Form) -> String {
    let (place, after) = match form {
        Form::Text => ("in <inherited_context>", "it"),
        Form::Messages => ("above", "this"),
    };
    let mut text = format!(
        "You are a background agent. The conversation {place} belongs to your \
         parent agent; you have it so that you know what was already said and found out.\n\
         Do only the task you are given after {after}. Do not continue the parent's other work, \
         and do not answer what is asked inside the inherited conversation.\n\n\
         About the inherited conversation:\n",
    );
    let facts = [
        Some(compaction(stats)),
        Some(results(stats, limits)),
        params(stats).filter(|_| form == Form::Text),
        removed(stats),
        cut_to_fit(stats),
        unreadable(stats),
    ];
    for fact in facts.into_iter().flatten() {
        text.push_str(&format!("- {fact}\n"));
    }
    text.push_str(
        "\nFiles may have changed since. Read a file again when you need its complete content.",
    );
    text
}

fn compaction(stats: &Stats) -> String {
    let Some(compacted) = &stats.compaction else {
        return "Compaction: none was found.".to_owned();
    };
    let covered = match compacted.stands_for {
        _ if stats.messages.unread => " that stands for everything before it".to_owned(),
        0 => String::new(),
        many => {
            let covered = counted(many, "earlier message", "earlier messages");
            format!(" that stands for {covered}")
        }
    };
    if compacted.empty {
        return format!("Compaction: found, but the summary{covered} is empty.");
    }
    let tail = match compacted.kept_tail {
        0 => String::new(),
        kept => {
            let kept = counted(kept, "message", "messages");
            format!(", followed by the last {kept} before it")
        }
    };
    format!("Compaction: found; it begins with the summary{covered}{tail}.")
}

/// A short result of an old tier is as whole as a new one.
fn results(stats: &Stats, limits: &Limits) -> String {
    let results = &stats.results;
    let cut_to = |chars: usize| format!("cut to {} characters", grouped(chars));
    let kinds = [
        (results.whole, "whole".to_owned()),
        (results.cut_middle, cut_to(limits.middle_result_chars)),
        (results.cut_old, cut_to(limits.old_result_chars)),
        (results.repeated, "repeated".to_owned()),
        (results.cleared, "already cleared by the host".to_owned()),
        (
            results.in_cut_messages,
            "in a message that was itself cut".to_owned(),
        ),
    ];
    let happened = kinds.into_iter().filter(|(count, _)| *count > 0);
    let happened = happened.map(|(count, kind)| format!("{} {kind}", grouped(count)));
    let mut text = match listed(happened, "and") {
        none if none.is_empty() => "Tool results: none.".to_owned(),
        some => format!("Tool results: {some}."),
    };
    if results.cut_middle + results.cut_old > 0 {
        text.push_str(" Where text is missing it says `...[truncated N of M chars]...`.");
    }
    if results.repeated > 0 {
        text.push_str(
            " In place of a repeated one it says `[Same text as ...]`: the same call gave the same \
             text again later, and that result is whole, further down.",
        );
    }
    text
}

fn params(stats: &Stats) -> Option<String> {
    let cut = stats.params_cut;
    (cut > 0).then(|| {
        let calls = counted(cut, "tool call", "tool calls");
        format!("Parameters: shortened in {calls}, where they end in `...`.")
    })
}

fn removed(stats: &Stats) -> Option<String> {
    let removed = stats.messages.removed;
    if stats.messages.unread && stats.compaction.is_none() {
        return Some(
            "Removed: everything before was left out to stay within the limits.".to_owned(),
        );
    }
    (removed > 0).then(|| {
        let oldest = match &stats.compaction {
            Some(compacted) if !compacted.empty => "oldest after the summary",
            _ => "oldest",
        };
        let were = if removed == 1 { "was" } else { "were" };
        let messages = counted(removed, "message", "messages");
        format!("Removed: {messages}, the {oldest}, {were} left out to stay within the limits.")
    })
}

fn cut_to_fit(stats: &Stats) -> Option<String> {
    let which = [
        (stats.cut_to_fit.summary, "the summary"),
        (stats.cut_to_fit.newest, "the newest message"),
    ];
    let which = which.into_iter().filter(|(cut, _)| *cut);
    let which = listed(which.map(|(_, which)| which), "and");
    (!which.is_empty()).then(|| {
        format!("Cut to stay within the limits: {which}. Anything in there may be incomplete.")
    })
}

fn unreadable(stats: &Stats) -> Option<String> {
    let messages = stats.messages.skipped;
    let parts = stats.messages.skipped_parts;
    let what = [
        (messages, counted(messages, "message", "messages")),
        (
            parts,
            counted(parts, "part of a message", "parts of messages"),
        ),
    ];
    let what = what.into_iter().filter(|(count, _)| *count > 0);
    let what = listed(what.map(|(_, what)| what), "and");
    (!what.is_empty()).then(|| format!("Unreadable in the parent's record: {what}."))
}
