//! Content that is a text, or a list of pieces with texts.

use serde::{Deserialize, de};
use serde_json::value::RawValue;

use super::lossy::{JsonText, Lenient};
use crate::transcript::{Outcome, Text};

/// A piece as hosts write it. Most of a file is in such texts, so that it matters how often each is
/// looked through.
#[derive(Deserialize)]
struct StrictPiece<'a> {
    #[serde(borrow)]
    text: Option<JsonText<'a>>,
}

#[derive(Deserialize)]
struct WirePiece<'a> {
    #[serde(borrow, default)]
    text: Lenient<JsonText<'a>>,
}

/// The texts of some content. Pieces without one, such as images, are passed over.
pub(super) fn texts(content: &RawValue) -> Result<Vec<Text<'_>>, serde_json::Error> {
    let json = content.get();
    match json.as_bytes().first() {
        Some(b'"') => Ok(vec![JsonText::of(content)?.0]),
        Some(b'[') => {
            // A derived reader would take a list for a struct's fields.
            let is_of_objects = json[1..].trim_ascii_start().starts_with('{');
            let strict = is_of_objects.then(|| serde_json::from_str::<Vec<StrictPiece>>(json));
            if let Some(Ok(strict)) = strict {
                let texts = strict.into_iter().filter_map(|piece| piece.text);
                return Ok(texts.map(|text| text.0).collect());
            }
            let pieces: Vec<&RawValue> = serde_json::from_str(json)?;
            let pieces = pieces.into_iter().filter_map(piece);
            Ok(pieces.map(|text| text.0).collect())
        }
        Some(b'n') => Ok(Vec::new()),
        _ => Err(de::Error::custom("content is neither text nor a list")),
    }
}

/// All of some content, one text below the other. A single one, the usual case, is not copied.
pub(super) fn text(content: &RawValue) -> Result<Text<'_>, serde_json::Error> {
    Ok(joined(texts(content)?))
}

/// A result that came, or that came and was thrown away.
pub(super) fn completed(text: Text<'_>) -> Outcome<'_> {
    if text.is(Outcome::CLEARED) {
        Outcome::Cleared
    } else {
        Outcome::Completed(text)
    }
}

fn piece(piece: &RawValue) -> Option<JsonText<'_>> {
    let json = piece.get();
    match json.as_bytes().first() {
        Some(b'"') => JsonText::of(piece).ok(),
        Some(b'{') => serde_json::from_str::<WirePiece>(json).ok()?.text.0,
        _ => None,
    }
}

pub(super) fn joined(mut texts: Vec<Text<'_>>) -> Text<'_> {
    match texts.len() {
        0 => Text::new(""),
        1 => texts.swap_remove(0),
        _ => {
            let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
            Text::new(texts.join("\n"))
        }
    }
}
