//! Text split into pieces: no token reaches from one into the next.
//!
//! By hand what this regular expression of o200k says, which takes longer to compile than most texts
//! to count. The first alternative that matches counts, and in it what a backtracking matcher
//! finds first.
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}
//!  ?[^\s\p{L}\p{N}]+[\r\n/]*
//! \s*[\r\n]+
//! \s+(?!\S)
//! \s+
//! ```

use crate::character::{self, Kind};

/// The pieces of a text, in order.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = end_of_piece(text, start)?;
        let piece = text.as_bytes().get(start..end);
        start = end;
        piece
    })
}

fn end_of_piece(text: &str, start: usize) -> Option<usize> {
    let (kind, next) = character::at(text, start)?;
    let end = word(text, start, kind, next)
        .or_else(|| (kind == Kind::Number).then(|| number(text, next)))
        .or_else(|| punctuation(text, start, kind, next))
        .unwrap_or_else(|| white_space(text, start));
    Some(end)
}

/// A word with what stands before it and a contraction after it. One that has an end counts
/// before one that has only a beginning, such as `HTTP`.
fn word(text: &str, start: usize, kind: Kind, next: usize) -> Option<usize> {
    let led = kind.leads_words().then_some(next);
    let letters = || led.into_iter().chain([start]);
    let end = letters()
        .find_map(|from| letters_with_end(text, from))
        .or_else(|| letters().find_map(|from| beginning(text, from)))?;
    Some(end + contraction(text.as_bytes().get(end..)?))
}

/// As many letters as may begin a word, then at least one that may end it. Where none follows,
/// the last one that can be both is the end, and what comes after it is another word.
fn letters_with_end(text: &str, from: usize) -> Option<usize> {
    let mut both = None;
    let mut at = from;
    while let Some((kind, next)) = character::at(text, at) {
        if kind.ends_words() && !kind.begins_words() {
            return Some(run(text, next, Kind::ends_words));
        }
        if !kind.begins_words() {
            break;
        }
        at = next;
        if kind.ends_words() {
            both = Some(at);
        }
    }
    both
}

fn beginning(text: &str, from: usize) -> Option<usize> {
    let end = run(text, from, Kind::begins_words);
    (end > from).then_some(end)
}

/// The length of the contraction that comes first, such as `'ll`.
fn contraction(text: &[u8]) -> usize {
    let [b'\'', after @ ..] = text else { return 0 };
    match after {
        // The long s, which without case is the same letter.
        [0xC5, 0xBF, ..] => 3,
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => 2,
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] => 3,
        _ => 0,
    }
}

/// Up to three digits, of which one has been seen.
fn number(text: &str, second: usize) -> usize {
    let digit = |at: usize| match character::at(text, at) {
        Some((Kind::Number, next)) => next,
        _ => at,
    };
    let third = digit(second);
    if third == second {
        second
    } else {
        digit(third)
    }
}

fn punctuation(text: &str, start: usize, kind: Kind, next: usize) -> Option<usize> {
    let from = match text.as_bytes().get(start) {
        Some(b' ') => next,
        _ if kind.is_punctuation() => start,
        _ => return None,
    };
    let end = run(text, from, Kind::is_punctuation);
    let line_ends = text.as_bytes().get(end..)?.iter();
    let line_ends = line_ends.take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
    (end > from).then(|| end + line_ends.count())
}

/// White space up to its last line end; without one, all but what belongs to the next word.
fn white_space(text: &str, start: usize) -> usize {
    let (mut at, mut last, mut after_line_end) = (start, start, None);
    while let Some((kind, next)) = character::at(text, at).filter(|(kind, _)| kind.is_white()) {
        last = at;
        at = next;
        if kind == Kind::LineEnd {
            after_line_end = Some(at);
        }
    }
    let is_all = at == text.len() || last == start;
    after_line_end.unwrap_or(if is_all { at } else { last })
}

/// Where a run of such characters ends.
fn run(text: &str, from: usize, belongs: fn(Kind) -> bool) -> usize {
    let mut at = from;
    while let Some((_, next)) = character::at(text, at).filter(|(kind, _)| belongs(*kind)) {
        at = next;
    }
    at
}
