//! The names of our notices, in texts of other programs.

/// Whether a text has this mark in it, and not only one that begins like it: names end with numbers.
pub(crate) fn has_mark(text: &str, mark: &str) -> bool {
    let ends = |at: usize| {
        let rest = &text[at + mark.len()..];
        !rest.starts_with(|c: char| c.is_ascii_digit())
    };
    !mark.is_empty() && text.match_indices(mark).any(|(at, _)| ends(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_notice_of_a_task_is_not_the_second() {
        let text = "[asyncagents notice task_1.notice.10]";
        assert!(!has_mark(text, "task_1.notice.1"));
        assert!(has_mark(text, "task_1.notice.10"));
        assert!(has_mark(
            &format!("{text} task_1.notice.1"),
            "task_1.notice.1"
        ));
        assert!(!has_mark(text, ""));
    }
}
