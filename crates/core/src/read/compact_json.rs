//! JSON without white space, not parsed into a tree.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::lossy::LossyStr;

/// Parameters as every host would write them: no white space between tokens, and no
/// escapes but the needed ones, so that a cut splits no character. Nothing is parsed into
/// a tree, so depth costs nothing and the order of keys stays.
pub(super) fn compact(json: &RawValue) -> Cow<'_, str> {
    let json = json.get();
    let needs_work = |c: char| c.is_ascii_whitespace() || c == '\\';
    if !json.contains(needs_work) {
        return Cow::Borrowed(json);
    }
    let mut compacted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        let (between, from_quote) = rest.split_at(quote);
        let (string, after) = from_quote.split_at(string_length(from_quote));
        compacted.extend(between.chars().filter(|c| !c.is_ascii_whitespace()));
        push_string(&mut compacted, string);
        rest = after;
    }
    compacted.extend(rest.chars().filter(|c| !c.is_ascii_whitespace()));
    Cow::Owned(compacted)
}

/// The length of the JSON string that `json` begins with, quotes included.
fn string_length(json: &str) -> usize {
    let mut escaped = false;
    let closing = json.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(json.len(), |at| at + 2)
}

fn push_string(out: &mut String, string: &str) {
    let rewritten = string.contains('\\').then(|| {
        let text: LossyStr = serde_json::from_str(string).ok()?;
        serde_json::to_string(&text.0).ok()
    });
    out.push_str(rewritten.flatten().as_deref().unwrap_or(string));
}
