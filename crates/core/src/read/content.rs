//! Content that is a text, or a list of pieces with texts.

use serde::{Deserialize, de};
use serde_json::value::RawValue;

use super::lossy::{JsonText, Lenient};
use crate::transcript::{Outcome, Text};

#[derive(Deserialize)]
struct WirePiece<'a> {
    #[serde(borrow, default)]
    text: Lenient<JsonText<'a>>,
}

/// The texts of some content. Pieces without one, such as images, are passed over.
pub(super) fn texts(content: &RawValue) -> Result<Vec<Text<'_>>, serde_json::Error> {
    let json = content.get();
    match json.as_bytes().first() {
        Some(b'"') => {
            let text: JsonText = serde_json::from_str(json)?;
            Ok(vec![text.0])
        }
        Some(b'[') => {
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
        Some(b'"') => serde_json::from_str(json).ok(),
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
