//! Shortening one text, at characters and never inside one.

use crate::transcript::Text;

/// A text, or what is left of it. Slices of the original; only the marker is new.
#[derive(Debug, Clone)]
pub(super) struct Kept<'t> {
    /// The beginning, or all of it.
    pub(super) head: Slice<'t>,
    /// What stands for the part left out, in ASCII; empty if nothing was.
    pub(super) marker: String,
    /// The end, if it was worth keeping.
    pub(super) tail: Slice<'t>,
}

/// A slice, its length in characters, and whether it ends with a line break.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slice<'t> {
    source: Source<'t>,
    pub(super) chars: usize,
    pub(super) ends_line: bool,
}

/// A whole text is read when it is written, and not when it is only measured.
#[derive(Debug, Clone, Copy)]
enum Source<'t> {
    Whole(&'t Text<'t>),
    Part(&'t str),
}

impl Default for Source<'_> {
    fn default() -> Self {
        Self::Part("")
    }
}

impl<'t> Slice<'t> {
    /// All of a text.
    pub(super) fn all(text: &'t Text<'t>) -> Self {
        Self {
            source: Source::Whole(text),
            chars: text.chars(),
            ends_line: text.ends_line(),
        }
    }

    /// A short text, whose length is counted here.
    pub(super) fn counted(text: &'t str) -> Self {
        Self {
            source: Source::Part(text),
            chars: text.chars().count(),
            ends_line: text.ends_with('\n'),
        }
    }

    pub(super) fn text(self) -> &'t str {
        match self.source {
            Source::Whole(text) => text.as_str(),
            Source::Part(text) => text,
        }
    }

    /// Its length in bytes.
    pub(super) fn bytes(self) -> usize {
        match self.source {
            Source::Whole(text) => text.bytes(),
            Source::Part(text) => text.len(),
        }
    }

    /// The first `chars` characters.
    pub(super) fn first(self, chars: usize) -> Self {
        let text = self.text();
        let end = if self.is_ascii() {
            chars
        } else {
            text.len() - skip_chars(text, chars).len()
        };
        let text = &text[..end];
        Self {
            source: Source::Part(text),
            chars,
            ends_line: text.ends_with('\n'),
        }
    }

    /// The last `chars` characters.
    pub(super) fn last(self, chars: usize) -> Self {
        let text = self.text();
        let start = match chars.checked_sub(1) {
            None => text.len(),
            Some(_) if self.is_ascii() => text.len() - chars,
            Some(before) => {
                let first = text.char_indices().nth_back(before);
                first.map_or(0, |(start, _)| start)
            }
        };
        Self {
            source: Source::Part(&text[start..]),
            chars,
            ends_line: chars > 0 && self.ends_line,
        }
    }

    /// One byte to each character.
    fn is_ascii(self) -> bool {
        self.bytes() == self.chars
    }
}

fn skip_chars(text: &str, chars: usize) -> &str {
    let mut rest = text.chars();
    if let Some(before) = chars.checked_sub(1) {
        rest.nth(before);
    }
    rest.as_str()
}

impl<'t> Kept<'t> {
    /// All of it.
    pub(super) fn whole(text: Slice<'t>) -> Self {
        Self {
            head: text,
            marker: String::new(),
            tail: Slice::default(),
        }
    }

    /// Exactly `keep` characters, of which `head_percent` % from the head and the rest
    /// from the tail, and a marker on top.
    pub(super) fn cut(text: Slice<'t>, keep: usize, head_percent: usize) -> Self {
        let head = keep * head_percent / 100;
        Self {
            head: text.first(head),
            marker: marker(text.chars - keep, text.chars),
            tail: text.last(keep - head),
        }
    }

    /// Nothing of it, and a line instead.
    pub(super) fn replaced(line: String) -> Self {
        Self {
            head: Slice::default(),
            marker: line,
            tail: Slice::default(),
        }
    }

    /// How long it is, with its marker.
    pub(super) fn chars(&self) -> usize {
        self.head.chars + self.marker.len() + self.tail.chars
    }

    /// Whether anything was left out.
    pub(super) fn is_cut(&self) -> bool {
        !self.marker.is_empty()
    }

    /// What is kept, as one text.
    pub(super) fn to_text(&self) -> String {
        [self.head.text(), &self.marker, self.tail.text()].concat()
    }

    /// Whether a line break comes last, or there is nothing that would need one.
    pub(super) fn ends_line(&self) -> bool {
        if self.tail.chars > 0 {
            self.tail.ends_line
        } else if self.is_cut() {
            self.marker.ends_with('\n')
        } else {
            self.head.ends_line || self.head.chars == 0
        }
    }
}

/// What stands where text was left out.
pub(super) fn marker(left_out: usize, of: usize) -> String {
    format!("\n...[truncated {left_out} of {of} chars]...\n")
}
