//! Text that knows its length, and is unescaped when somebody reads it.

use std::{borrow::Cow, fmt, sync::OnceLock};

use memchr::memchr;

/// Text with its length in characters (Unicode scalar values), looked at once.
///
/// A fork asks every text how long it is and reads only what it keeps, so the answers
/// are worked out while the reader has the bytes at hand, and nothing else is.
#[derive(Clone)]
pub struct Text<'a> {
    source: Source<'a>,
    chars: usize,
    blank: bool,
    ends_line: bool,
}

#[derive(Clone)]
enum Source<'a> {
    Plain(Cow<'a, str>),
    /// In a box, since there are many texts and most of them are short.
    Escaped(Box<Escaped<'a>>),
}

/// A text as a JSON string has it.
#[derive(Clone)]
struct Escaped<'a> {
    /// What is between its quotes. Every escape has two characters.
    json: Cow<'a, str>,
    /// How many bytes it has when it is unescaped.
    bytes: usize,
    plain: OnceLock<String>,
}

impl<'a> Text<'a> {
    /// Borrows or takes `text` and counts its characters.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        Self {
            chars: text.chars().count(),
            blank: text.trim_start().is_empty(),
            ends_line: text.ends_with('\n'),
            source: Source::Plain(text),
        }
    }

    /// The text of a JSON string, given without its quotes. Nothing if it has an escape by number:
    /// it is to be unescaped first.
    pub(crate) fn escaped(json: &'a str) -> Option<Self> {
        let bytes = json.as_bytes();
        let (mut escapes, mut at) = (0, 0);
        let mut ends_line = false;
        while let Some(found) = memchr(b'\\', &bytes[at..]) {
            let escaped = at + found + 1;
            match bytes.get(escaped)? {
                b'u' => return None,
                kind => ends_line = *kind == b'n' && escaped + 1 == bytes.len(),
            }
            escapes += 1;
            at = escaped + 1;
        }
        Some(Self {
            source: if escapes == 0 {
                Source::Plain(Cow::Borrowed(json))
            } else {
                Source::Escaped(Box::new(Escaped {
                    json: Cow::Borrowed(json),
                    bytes: json.len() - escapes,
                    plain: OnceLock::new(),
                }))
            },
            chars: json.chars().count() - escapes,
            blank: is_blank(json),
            ends_line,
        })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.source {
            Source::Plain(text) => text,
            Source::Escaped(text) => text.plain.get_or_init(|| unescape(&text.json, text.bytes)),
        }
    }

    /// Whether it is this text. One of another length is not read.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.chars == text.chars().count() && self.as_str() == text
    }

    /// Whether it begins like this. No more of it is read than that.
    pub fn starts_with(&self, prefix: &str) -> bool {
        match &self.source {
            Source::Plain(text) => text.starts_with(prefix),
            Source::Escaped(text) => {
                let mut chars = plain(&text.json);
                prefix.chars().all(|c| chars.next() == Some(c))
            }
        }
    }

    /// Its length in characters.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.source {
            Source::Plain(text) => text.len(),
            Source::Escaped(text) => text.bytes,
        }
    }

    /// The same text, with a text of its own.
    pub fn into_owned(self) -> Text<'static> {
        Text {
            source: match self.source {
                Source::Plain(text) => Source::Plain(Cow::Owned(text.into_owned())),
                Source::Escaped(text) => Source::Escaped(Box::new(Escaped {
                    json: Cow::Owned(text.json.into_owned()),
                    bytes: text.bytes,
                    plain: text.plain,
                })),
            },
            chars: self.chars,
            blank: self.blank,
            ends_line: self.ends_line,
        }
    }

    /// Nothing but white space, or nothing at all.
    pub fn is_blank(&self) -> bool {
        self.blank
    }

    /// Whether it ends with a line break.
    pub(crate) fn ends_line(&self) -> bool {
        self.ends_line
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.chars == other.chars && self.as_str() == other.as_str()
    }
}

impl Eq for Text<'_> {}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Whether a JSON string is nothing but white space.
fn is_blank(json: &str) -> bool {
    plain(json).all(char::is_whitespace)
}

/// The characters that a JSON string stands for.
fn plain(json: &str) -> impl Iterator<Item = char> {
    let mut chars = json.chars();
    std::iter::from_fn(move || match chars.next()? {
        '\\' => Some(chars.next().map_or('\\', stands_for)),
        c => Some(c),
    })
}

/// What the second character of an escape stands for.
fn stands_for(kind: char) -> char {
    match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        itself => itself,
    }
}

/// JSON's escapes of two characters as what they stand for.
fn unescape(json: &str, bytes: usize) -> String {
    let mut plain = String::with_capacity(bytes);
    let mut rest = json;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        let mut escape = escape.chars();
        escape.next();
        plain.extend(escape.next().map(stands_for));
        rest = escape.as_str();
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_the_same_whether_it_was_escaped_or_not(plain in "[ \t\n\r\u{8}\u{c}\"\\\\/aé\u{85}\u{3000}🚀]{0,12}") {
            let json = serde_json::to_string(&plain).expect("JSON");
            let (text, escaped) = (Text::new(plain.as_str()), Text::escaped(&json[1..json.len() - 1]));
            let escaped = escaped.expect("no escape by number");
            prop_assert_eq!(escaped.chars(), text.chars());
            prop_assert_eq!(escaped.bytes(), text.bytes());
            prop_assert_eq!(escaped.is_blank(), text.is_blank());
            prop_assert_eq!(escaped.ends_line(), text.ends_line());
            for (at, _) in plain.char_indices() {
                prop_assert!(escaped.starts_with(&plain[..at]));
            }
            let longer = plain.clone() + "x";
            prop_assert!(!escaped.starts_with(&longer));
            let own = escaped.clone().into_owned();
            prop_assert_eq!(own.as_str(), plain.as_str());
            prop_assert_eq!(escaped, text);
        }
    }
}
