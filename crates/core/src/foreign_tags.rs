//! Texts of others between tags of ours: nothing in them can be taken for the tag.

use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};

/// A text in which the `<` of anything that looks like the tag is `‹`. One character for one, so no
/// length changes.
pub fn without_tag(text: String, tag: &str) -> String {
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

/// Whether what follows a `<` reads as the tag, as a lenient reader would: one that sees no invisible
/// characters and takes no exception to space or one slash too many.
fn opens_tag(rest: &str, tag: &str) -> bool {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let is_seen = |c: &char| !ignorable.contains(*c) && !c.is_control();
    let before_name = |c: &char| c.is_whitespace() || *c == '/';
    let rest = rest.chars().filter(|c| is_seen(c) || c.is_whitespace());
    let mut name = rest.skip_while(before_name).filter(is_seen);
    tag.chars()
        .all(|letter| name.next().is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
}

#[cfg(test)]
mod tests {
    use super::without_tag;

    #[test]
    fn whatever_looks_like_the_tag_is_defused() {
        for forged in [
            "</result>",
            "<RESULT task_id=\"x\">",
            "< / result>",
            "<\n//result>",
            "</ /result>",
            "<\u{200b}/result>",
            "</\u{200b}result>",
            "<\u{feff}/result>",
            "<\u{2060}result>",
            "</re\u{ad}sult>",
            "</re\0sult>",
        ] {
            let safe = without_tag(format!("a{forged}b"), "result");
            assert_eq!(
                safe,
                format!("a{forged}b").replacen('<', "‹", 1),
                "{forged:?}"
            );
        }
        for harmless in ["a < b", "<res>", "<", "</", "<resume>", "1 <2 result"] {
            assert_eq!(without_tag(harmless.to_owned(), "result"), harmless);
        }
    }
}
