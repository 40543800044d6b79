//! Markdown as it arrives, piece by piece: headings, bold words, code and the marks of lists get
//! a tone. Nothing is taken away or moved, so what is shown is what was said, and a mistake in
//! the Markdown costs a colour.

use crate::color::{Paint, Tone};

/// How long the marks at the beginning of a line can be: a list in lists, with a number.
const MOST_MARKS: usize = 24;

/// Marks up an answer while it comes. What it is given must hold no control characters but line
/// breaks and tabs.
#[derive(Debug)]
pub(crate) struct Markdown {
    paint: Paint,
    /// Marks whose meaning depends on what comes next.
    held: String,
    /// The line has begun, and its marks are known.
    line: Option<Line>,
    /// Inside of ``` or ~~~.
    fence: Option<char>,
}

/// A line that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// All of it is of one kind: a heading, a line of code.
    Whole(Tone),
    /// Words, of which some are bold or code.
    Words { bold: bool, code: bool },
}

impl Markdown {
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            held: String::new(),
            line: None,
            fence: None,
        }
    }

    /// What can be shown after this piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if !self.paint.is_on() {
            return piece.to_owned();
        }
        let pending = std::mem::take(&mut self.held) + piece;
        let mut shown = String::new();
        for line in pending.split_inclusive('\n') {
            let complete = line.ends_with('\n');
            self.show_line(line, complete, &mut shown);
            if complete {
                self.line = None;
            }
        }
        shown
    }

    /// The rest, when the answer is complete.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let mut shown = String::new();
        self.show_line(&held, true, &mut shown);
        (self.line, self.fence) = (None, None);
        shown
    }

    /// Shows what is known of a line, and holds the rest back unless the line is complete.
    fn show_line(&mut self, text: &str, complete: bool, shown: &mut String) {
        let mut rest = text;
        if self.line.is_none() {
            let marks = text.chars().take_while(|c| is_mark(*c)).count();
            if !complete && marks == text.chars().count() && marks < MOST_MARKS {
                self.held = text.to_owned();
                return;
            }
            rest = self.begin_line(text, shown);
        }
        match self.line {
            Some(Line::Words { bold, code }) => self.words(rest, bold, code, complete, shown),
            Some(Line::Whole(tone)) => shown.push_str(&self.paint.over(tone, rest)),
            None => {}
        }
    }

    /// Finds the kind of a line by its beginning, and returns what comes after its marks.
    fn begin_line<'a>(&mut self, text: &'a str, shown: &mut String) -> &'a str {
        let words = text.trim_start_matches([' ', '\t']);
        let fence = ["```", "~~~"]
            .into_iter()
            .find(|fence| words.starts_with(fence));
        let fence = fence.and_then(|fence| fence.chars().next());
        if fence.is_some() && (self.fence.is_none() || self.fence == fence) {
            self.fence = fence.filter(|_| self.fence.is_none());
            self.line = Some(Line::Whole(Tone::Quiet));
            return text;
        }
        if self.fence.is_some() {
            self.line = Some(Line::Whole(Tone::Code));
            return text;
        }
        if is_heading(words) {
            self.line = Some(Line::Whole(Tone::Strong));
            return text;
        }
        self.line = Some(Line::Words {
            bold: false,
            code: false,
        });
        let indent = text.len() - words.len();
        let marks = indent + list_mark(words);
        let (marks, rest) = text.split_at(marks);
        shown.push_str(&self.paint.over(Tone::Strong, marks));
        rest
    }

    /// Words with `**` and backticks among them, in runs of one tone.
    fn words(
        &mut self,
        text: &str,
        mut bold: bool,
        mut code: bool,
        complete: bool,
        shown: &mut String,
    ) {
        // What comes next says whether a star is one of two.
        let known = if complete {
            text.len()
        } else {
            text.trim_end_matches('*').len()
        };
        let (text, unknown) = text.split_at(known);
        self.held = unknown.to_owned();
        let mut rest = text;
        let mut run = String::new();
        while let Some(c) = rest.chars().next() {
            let stars = !code && rest.starts_with("**");
            let (mark, after) = rest.split_at(if stars { 2 } else { c.len_utf8() });
            rest = after;
            let opens = !after.starts_with(|c: char| c.is_whitespace() || c == '*' || c == '/');
            let is_on = match mark {
                "`" => &mut code,
                "**" if bold || opens => &mut bold,
                _ => {
                    run.push_str(mark);
                    continue;
                }
            };
            // A mark has the tone of what is between it and the other one.
            let closes = std::mem::replace(is_on, !*is_on);
            if closes {
                run.push_str(mark);
                let tone = if mark == "`" {
                    Tone::Code
                } else {
                    Tone::Strong
                };
                shown.push_str(&self.paint.over(tone, &run));
                run.clear();
            } else {
                let before = tone(bold && mark != "**", false);
                shown.push_str(&self.paint.over(before, &run));
                run = mark.to_owned();
            }
        }
        shown.push_str(&self.paint.over(tone(bold, code), &run));
        self.line = Some(Line::Words { bold, code });
    }
}

fn tone(bold: bool, code: bool) -> Tone {
    if code {
        Tone::Code
    } else if bold {
        Tone::Strong
    } else {
        Tone::Plain
    }
}

fn is_mark(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '#' | '`' | '~' | '*' | '-' | '+' | '.' | ')' | '0'..='9'
    )
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && rest.starts_with(' ')
}

/// How long the mark of a list is at the beginning of a line: `- `, `* `, `+ `, `12. `.
fn list_mark(line: &str) -> usize {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = line.get(digits..).unwrap_or_default();
    let is_mark = match digits {
        0 => ["- ", "* ", "+ "]
            .iter()
            .any(|mark| after.starts_with(mark)),
        _ => [". ", ") "].iter().any(|mark| after.starts_with(mark)),
    };
    if is_mark { digits + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::Markdown;
    use crate::color::Paint;

    const ANSWER: &str = "# What I found\n\nThe **slow** query is in `src/db.rs`, see **/*.rs.\n\
        - first `a**b`\n  1. second **bold\nplain again\n```rust\nlet x = \"**\"; # no heading\n```\n\
        done `open\n~~~\n```\n~~~\n2 * 3 ** 4\n#hash\n12";

    fn in_pieces(text: &str, length: usize) -> String {
        let mut markdown = Markdown::new(Paint::COLORS);
        let letters: Vec<char> = text.chars().collect();
        let pieces = letters.chunks(length);
        let mut shown: String = pieces
            .map(|piece| markdown.push(&piece.iter().collect::<String>()))
            .collect();
        shown.push_str(&markdown.finish());
        shown
    }

    /// The text without what colours it.
    fn plain(shown: &str) -> String {
        let mut plain = String::new();
        let mut rest = shown;
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = after.split_once('m').map_or("", |(_, rest)| rest);
        }
        plain + rest
    }

    #[test]
    fn what_is_marked_is_seen() {
        assert_snapshot!(in_pieces(ANSWER, 1_000).replace('\u{1b}', "␛"));
    }

    /// What a terminal would show of each character: its tone, and the character.
    fn cells(shown: &str) -> Vec<(String, char)> {
        let (mut tone, mut cells) = (String::new(), Vec::new());
        let mut rest = shown.chars();
        while let Some(c) = rest.next() {
            if c != '\u{1b}' {
                cells.push((tone.clone(), c));
                continue;
            }
            let code: String = rest.by_ref().take_while(|c| *c != 'm').collect();
            match code.as_str() {
                "[0" => tone.clear(),
                code => tone.push_str(code),
            }
        }
        cells
    }

    #[test]
    fn however_it_is_cut_it_is_shown_alike_and_nothing_is_lost() {
        let whole = cells(&in_pieces(ANSWER, 1_000));
        for length in 1..40 {
            let shown = in_pieces(ANSWER, length);
            assert_eq!(plain(&shown), ANSWER, "{length}");
            assert_eq!(cells(&shown), whole, "{length}");
        }
    }

    #[test]
    fn without_colours_nothing_is_held_back() {
        let mut markdown = Markdown::new(Paint::NONE);
        assert_eq!(markdown.push("# a *"), "# a *");
        assert_eq!(markdown.finish(), "");
    }

    #[test]
    fn marks_without_end_are_shown() {
        let mut markdown = Markdown::new(Paint::COLORS);
        let shown = plain(&markdown.push(&"#".repeat(100_000)));
        assert_eq!(shown.len(), 100_000);
        let stars = plain(&markdown.push(&"*".repeat(100_000)));
        assert_eq!(stars.len() + plain(&markdown.finish()).len(), 100_000);
    }
}
