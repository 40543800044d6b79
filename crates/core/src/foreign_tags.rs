//! Texts of others between tags of ours: nothing in them can be taken for the tag.

/// A text in which the `<` of anything that looks like the tag is `‹`. One character for one, so no
/// length changes.
pub(crate) fn without_tag(text: String, tag: &str) -> String {
    let mut safe = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        if opens_tag(&text[at + 1..], tag) {
            safe.push_str(&text[copied..at]);
            safe.push('‹');
            copied = at + 1;
        }
    }
    if copied == 0 {
        return text;
    }
    safe.push_str(&text[copied..]);
    safe
}

/// Whether what follows a `<` reads as the tag, as a lenient reader would.
fn opens_tag(rest: &str, tag: &str) -> bool {
    let name = rest.trim_start();
    let name = name.strip_prefix('/').unwrap_or(name).trim_start();
    let name = name.as_bytes().get(..tag.len());
    name.is_some_and(|name| name.eq_ignore_ascii_case(tag.as_bytes()))
}
