//! Values that are read as well as they can be.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use crate::transcript::Text;

/// A JSON string, borrowed from the input where it has no escapes.
///
/// JavaScript hosts cut strings at UTF-16 units, so half an emoji reaches us as a
/// lone `\ud83d`. Rust text cannot hold it; it becomes one U+FFFD instead of an error.
#[derive(Debug, Default)]
pub(super) struct LossyStr<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LossyStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes, because as a string the parser refuses a lone surrogate.
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

/// A long JSON string, which is unescaped when somebody reads it.
pub(super) struct JsonText<'a>(pub(super) Text<'a>);

impl<'a> From<LossyStr<'a>> for JsonText<'a> {
    fn from(text: LossyStr<'a>) -> Self {
        Self(Text::new(text.0))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&'a RawValue>::deserialize(deserializer)?;
        Self::of(json).map_err(de::Error::custom)
    }
}

impl<'a> JsonText<'a> {
    /// Reads a string whose end is known, so that it is not searched for again.
    pub(super) fn of(json: &'a RawValue) -> Result<Self, serde_json::Error> {
        let json = json.get();
        let between_quotes = json
            .strip_prefix('"')
            .and_then(|json| json.strip_suffix('"'));
        if let Some(text) = between_quotes.and_then(Text::escaped) {
            return Ok(Self(text));
        }
        let text: LossyStr = serde_json::from_str(json)?;
        Ok(text.into())
    }
}

/// A small value that is nice to have: absent if it is of another type than expected.
pub(super) struct Lenient<T>(pub(super) Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'a>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'a RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

/// A struct that is an object. A derived reader would take a list for its fields.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(Object)
    }
}

pub(super) fn missing(field: &'static str) -> serde_json::Error {
    de::Error::missing_field(field)
}

/// An object, at once, if all of it is in order.
pub(super) fn strict<'a, T: Deserialize<'a>>(object: &'a RawValue) -> Option<T> {
    // A derived reader would take a list for a struct's fields.
    let is_object = object.get().starts_with('{');
    is_object
        .then(|| serde_json::from_str(object.get()).ok())
        .flatten()
}

/// Reads the parts of a message one by one, and counts those that are broken. A message of which
/// nothing can be read is no message.
pub(super) fn readable<'a, T>(
    parts: Vec<&'a RawValue>,
    read: impl Fn(&'a RawValue) -> Result<T, serde_json::Error>,
) -> Result<(Vec<T>, usize), serde_json::Error> {
    let mut readable = Vec::new();
    let mut broken = Vec::new();
    for part in parts {
        match read(part) {
            Ok(part) => readable.push(part),
            Err(reason) => broken.push(reason),
        }
    }
    let count = broken.len();
    match broken.pop() {
        Some(reason) if readable.is_empty() => Err(reason),
        _ => Ok((readable, count)),
    }
}

/// An object whose values are not parsed yet.
pub(super) struct Fields<'a>(Vec<(LossyStr<'a>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// A value that has to be there and of its type.
    pub(super) fn required<T: Deserialize<'a>>(
        &self,
        key: &'static str,
    ) -> Result<T, serde_json::Error> {
        self.optional(key)?.ok_or_else(|| missing(key))
    }

    /// A value that has to be of its type if it is there.
    pub(super) fn optional<T: Deserialize<'a>>(
        &self,
        key: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        let value = self.0.iter().rfind(|(known, _)| known.0 == key);
        value.map_or(Ok(None), |(_, value)| serde_json::from_str(value.get()))
    }

    /// A value that is nice to have.
    pub(super) fn lenient<T: Deserialize<'a>>(&self, key: &str) -> Lenient<T> {
        Lenient(self.optional(key).ok().flatten())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> de::Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

struct LossyVisitor;

impl<'de> de::Visitor<'de> for LossyVisitor {
    type Value = LossyStr<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(LossyStr(lossy(bytes)))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(LossyStr(Cow::Owned(lossy(bytes).into_owned())))
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    let text = std::str::from_utf8(bytes);
    text.map_or_else(|_| Cow::Owned(replace_surrogates(bytes)), Cow::Borrowed)
}

/// The parser writes a lone surrogate as three bytes that begin with `ED` and are no
/// UTF-8: one replacement character for the three, where the standard library's lossy
/// conversion would put one for each.
fn replace_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if chunk.invalid().first() == Some(&0xED) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}
