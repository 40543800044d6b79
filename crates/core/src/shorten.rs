//! Texts made short enough to be shown.

/// A text, or its first so many characters with a mark behind them.
pub fn shorten(text: &str, most: usize, mark: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{mark}", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text, or so many characters of it, from both of its ends, and how many are left out between
/// them. For what somebody has to judge: a beginning alone hides what a command does at its end.
pub fn both_ends(text: &str, most: usize) -> String {
    let left_out = text.chars().count().saturating_sub(most);
    if left_out == 0 {
        return text.to_owned();
    }
    let head = most.div_ceil(2);
    let beginning: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(head + left_out).collect();
    format!("{beginning} [… {left_out} characters are left out here …] {end}")
}

/// The words of a text in one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text in one line, or the beginning of that.
pub fn short_line(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{both_ends, short_line, shorten};

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(shorten("äöü", 3, "…"), "äöü");
        assert_eq!(shorten("äöü!", 3, "…"), "äöü…");
        assert_eq!(short_line(" ä\n öü ", 4), "ä öü");
        assert_eq!(short_line("ä öü", 2), "ä…");
    }

    #[test]
    fn the_end_of_what_is_judged_is_shown() {
        assert_eq!(both_ends("äöü", 3), "äöü");
        let cut = both_ends("list ä; remove ö", 5);
        assert_eq!(cut, "lis [… 11 characters are left out here …]  ö");
        assert_eq!(both_ends("äö", 0), " [… 2 characters are left out here …] ");
    }
}
