//! Texts made short enough to be shown.

/// A text, or its first so many characters with a mark behind them.
pub fn shorten(text: &str, most: usize, mark: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{mark}", &text[..end]),
        None => text.to_owned(),
    }
}

/// The words of a text in one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text in one line, or the beginning of that.
pub(crate) fn short_line(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{short_line, shorten};

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(shorten("äöü", 3, "…"), "äöü");
        assert_eq!(shorten("äöü!", 3, "…"), "äöü…");
        assert_eq!(short_line(" ä\n öü ", 4), "ä öü");
        assert_eq!(short_line("ä öü", 2), "ä…");
    }
}
