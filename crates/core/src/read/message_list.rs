//! A list of messages as JSON, alone or wrapped in objects, read entry by entry.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, IgnoredAny},
};
use serde_json::value::RawValue;

use super::{ReadError, error, lossy::LossyStr};
use crate::transcript::{Message, Skipped};

/// What a format's list looks like.
pub(super) struct Shape {
    /// The list, as an error shows it.
    pub(super) list: &'static str,
    /// What a message has, as an error says it.
    pub(super) message: &'static str,
    /// The keys under which the list may be, the outer before the inner.
    pub(super) wrappers: &'static [&'static str],
}

/// What was found in a list.
pub(super) struct Listed<'a> {
    /// In the order of the list.
    pub(super) messages: Vec<Message<'a>>,
    pub(super) skipped: Skipped,
    /// Whether the list is a page of a longer one: there is a `cursor` beside it.
    pub(super) is_page: bool,
}

/// Reads a list. `read_message` reads one entry, adds to the number of its broken parts, and
/// answers nothing for an entry that is passed over.
pub(super) fn read<'a>(
    input: &'a str,
    shape: &'static Shape,
    read_message: impl FnMut(&'a RawValue, &mut usize) -> Result<Option<Message<'a>>, serde_json::Error>,
) -> Result<Listed<'a>, ReadError> {
    let input = input.trim_start_matches('\u{feff}');
    if input.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let mut found = Found {
        shape,
        read_message,
        listed: Listed {
            messages: Vec::new(),
            skipped: Skipped::default(),
            is_page: false,
        },
        passed_over: 0,
        not_a_list: None,
        first_reason: None,
    };
    let mut json = serde_json::Deserializer::from_str(input);
    let list = ListVisitor {
        found: &mut found,
        wrappers: shape.wrappers,
    };
    let parsed = json.deserialize_any(list).and_then(|()| json.end());
    match parsed {
        Ok(()) => found.into_listed(),
        Err(error) => Err(found.judge(error)),
    }
}

/// What has been read so far; it outlives a parse error, to say how far that came.
struct Found<'a, F> {
    shape: &'static Shape,
    read_message: F,
    listed: Listed<'a>,
    /// Entries that are none of the conversation.
    passed_over: usize,
    not_a_list: Option<String>,
    first_reason: Option<String>,
}

impl<'a, F> Found<'a, F>
where
    F: FnMut(&'a RawValue, &mut usize) -> Result<Option<Message<'a>>, serde_json::Error>,
{
    fn take(&mut self, entry: &'a RawValue) {
        let listed = &mut self.listed;
        match (self.read_message)(entry, &mut listed.skipped.parts) {
            Ok(Some(message)) => listed.messages.push(message),
            Ok(None) => self.passed_over += 1,
            Err(reason) => {
                listed.skipped.messages += 1;
                self.first_reason
                    .get_or_insert_with(|| error::reason(&reason));
            }
        }
    }

    fn into_listed(self) -> Result<Listed<'a>, ReadError> {
        match self.first_reason {
            Some(reason) if self.listed.messages.is_empty() && self.passed_over == 0 => {
                Err(ReadError::NoMessages {
                    expected: self.shape.message,
                    entries: self.listed.skipped.messages,
                    reason,
                })
            }
            _ => Ok(self.listed),
        }
    }

    fn judge(self, error: serde_json::Error) -> ReadError {
        if let Some(found) = self.not_a_list {
            let expected = self.shape.list;
            return ReadError::NotAList { expected, found };
        }
        if error.is_eof() {
            let read = self.listed.messages.len() + self.listed.skipped.messages;
            return ReadError::Truncated {
                messages: read + self.passed_over,
                line: error.line(),
                column: error.column(),
            };
        }
        ReadError::Syntax(error)
    }
}

/// The list itself, or an object that holds it.
struct ListVisitor<'f, 'a, F> {
    found: &'f mut Found<'a, F>,
    /// The keys under which it may be.
    wrappers: &'static [&'static str],
}

impl<F> ListVisitor<'_, '_, F> {
    fn refuse<E: de::Error>(self, found: impl Into<String>) -> Result<(), E> {
        self.found.not_a_list = Some(found.into());
        Err(E::custom("not a list of messages"))
    }
}

impl<'de, F> de::Visitor<'de> for ListVisitor<'_, 'de, F>
where
    F: FnMut(&'de RawValue, &mut usize) -> Result<Option<Message<'de>>, serde_json::Error>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element::<&'de RawValue>()? {
            self.found.take(entry);
        }
        Ok(())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        if self.wrappers.is_empty() {
            return self.refuse("an object");
        }
        let mut listed = false;
        while let Some(key) = object.next_key::<LossyStr>()? {
            let wrapper = self.wrappers.iter().position(|known| key.0 == *known);
            if let Some(at) = wrapper.filter(|_| !listed) {
                object.next_value_seed(ListVisitor {
                    found: &mut *self.found,
                    wrappers: &self.wrappers[at + 1..],
                })?;
                listed = true;
            } else {
                self.found.listed.is_page |= key.0 == "cursor";
                object.next_value::<IgnoredAny>()?;
            }
        }
        if listed {
            return Ok(());
        }
        let missing = self.wrappers.iter().map(|key| format!("`{key}`"));
        let missing = missing.collect::<Vec<_>>().join(" or ");
        self.refuse(format!("an object without {missing}"))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.refuse("a string")
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.refuse("true or false")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.refuse("null")
    }
}

impl<'de, F> de::DeserializeSeed<'de> for ListVisitor<'_, 'de, F>
where
    F: FnMut(&'de RawValue, &mut usize) -> Result<Option<Message<'de>>, serde_json::Error>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}
