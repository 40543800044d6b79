//! What the splitting rules want to know of a character.

/// For each 256 characters, which block of `KINDS` is theirs; many share one.
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/blocks"));
/// The number of each character's kind.
static KINDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds"));

/// The kinds of characters that the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None of the others: punctuation, symbols, control characters.
    Other,
    /// A letter in upper case or title case.
    Upper,
    Lower,
    /// A letter without case.
    Caseless,
    /// What changes the character before it.
    Mark,
    Number,
    /// White space that does not end a line.
    Space,
    LineEnd,
}

impl Kind {
    /// As `build.rs` numbers them.
    fn numbered(number: u8) -> Self {
        match number {
            1 => Kind::Upper,
            2 => Kind::Lower,
            3 => Kind::Caseless,
            4 => Kind::Mark,
            5 => Kind::Number,
            6 => Kind::Space,
            7 => Kind::LineEnd,
            _ => Kind::Other,
        }
    }

    fn of(character: char) -> Self {
        let code = character as usize;
        let block = BLOCKS.get(code >> 8).map_or(0, |block| usize::from(*block));
        Kind::listed(block << 8 | code & 0xFF)
    }

    fn listed(at: usize) -> Self {
        Kind::numbered(KINDS.get(at).copied().unwrap_or_default())
    }

    /// Whether it can be among the first letters of a word.
    pub(crate) fn begins_words(self) -> bool {
        matches!(self, Kind::Upper | Kind::Caseless | Kind::Mark)
    }

    /// Whether it can be among the last letters of a word.
    pub(crate) fn ends_words(self) -> bool {
        matches!(self, Kind::Lower | Kind::Caseless | Kind::Mark)
    }

    /// Whether one can stand before a word, as a part of it.
    pub(crate) fn leads_words(self) -> bool {
        matches!(self, Kind::Other | Kind::Mark | Kind::Space)
    }

    pub(crate) fn is_punctuation(self) -> bool {
        matches!(self, Kind::Other | Kind::Mark)
    }

    pub(crate) fn is_white(self) -> bool {
        matches!(self, Kind::Space | Kind::LineEnd)
    }
}

/// The kind of the character at a place, and where the next one is. `None` at the end.
pub(crate) fn at(text: &str, place: usize) -> Option<(Kind, usize)> {
    let first = *text.as_bytes().get(place)?;
    if first.is_ascii() {
        // The first block is the first characters'.
        return Some((Kind::listed(first.into()), place + 1));
    }
    let character = text.get(place..)?.chars().next()?;
    Some((Kind::of(character), place + character.len_utf8()))
}
