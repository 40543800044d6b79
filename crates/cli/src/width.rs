//! How much room text takes in a terminal, and text that fits.

use std::{env, io};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for the rest of a text.
const REST: &str = "…";

/// Width for answers: `COLUMNS`, or else the terminal's. In a file there is no limit.
pub(crate) fn of_answers() -> Option<usize> {
    from_variable().or_else(|| of(terminal_size::terminal_size_of(io::stdout())))
}

/// Width of the terminal that live lines are drawn on.
pub(crate) fn of_live_lines() -> usize {
    of(terminal_size::terminal_size_of(io::stderr()))
        .or_else(from_variable)
        .unwrap_or(80)
}

/// Height of that terminal, in lines.
pub(crate) fn lines() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(24, |(_, height)| usize::from(height.0))
}

fn of(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let columns = size.map(|(width, _)| usize::from(width.0));
    columns.filter(|columns| *columns > 0)
}

fn from_variable() -> Option<usize> {
    let columns = env::var("COLUMNS").ok()?.trim().parse().ok()?;
    Some(columns).filter(|columns| *columns > 0)
}

/// How many columns a text takes. Terminals differ over emoji that are made of several
/// characters, so the widest that any of them draws counts.
pub(crate) fn width(text: &str) -> usize {
    let one_by_one: usize = text.chars().map(width_of).sum();
    one_by_one.max(text.width())
}

fn width_of(c: char) -> usize {
    // A tab is as wide as the terminal likes, up to eight.
    if c == '\t' { 8 } else { c.width().unwrap_or(0) }
}

/// As much of the beginning as fits, with a sign if something is left out.
pub(crate) fn fitting(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept) + width(REST) > columns {
            kept.pop();
            break;
        }
    }
    match columns {
        0 => String::new(),
        _ => format!("{}{REST}", kept.trim_end()),
    }
}

/// A line of several parts without the last ones that do not fit: half of a figure would be
/// another figure.
pub(crate) fn fitting_parts(line: &str, between: &str, columns: usize) -> String {
    let mut kept = line;
    while width(kept) > columns {
        match kept.rsplit_once(between) {
            Some((before, _)) => kept = before,
            None => return fitting(kept, columns),
        }
    }
    kept.to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{fitting, fitting_parts, width};

    #[rstest]
    #[case::plain("abc", 3)]
    #[case::wide("日本", 4)]
    #[case::combining("e\u{301}", 1)]
    #[case::joined("👨\u{200d}👩\u{200d}👧", 6)]
    #[case::made_wide("❤\u{fe0f}", 2)]
    #[case::nothing("", 0)]
    fn a_width_is_counted_in_columns(#[case] text: &str, #[case] columns: usize) {
        assert_eq!(width(text), columns);
    }

    #[rstest]
    #[case("abcdef", 6, "abcdef")]
    #[case("abcdef", 5, "abcd…")]
    #[case("日本語", 6, "日本語")]
    #[case("日本語", 5, "日本…")]
    #[case("日本語", 4, "日…")]
    #[case("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…")]
    #[case("ab", 1, "…")]
    #[case("ab", 0, "")]
    fn no_more_than_fits(#[case] text: &str, #[case] columns: usize, #[case] fits: &str) {
        assert_eq!(fitting(text, columns), fits);
    }

    #[rstest]
    #[case(40, "3 tool calls; 2,541 tokens; $0.0123")]
    #[case(30, "3 tool calls; 2,541 tokens")]
    #[case(20, "3 tool calls")]
    #[case(8, "3 tool…")]
    fn no_figure_is_cut(#[case] columns: usize, #[case] fits: &str) {
        let line = "3 tool calls; 2,541 tokens; $0.0123";
        assert_eq!(fitting_parts(line, "; ", columns), fits);
    }
}
