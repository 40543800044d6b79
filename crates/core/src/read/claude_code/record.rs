//! One line of a transcript, as Claude Code writes it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::read::lossy::{Fields, Lenient, LossyStr, Object};

/// A line that takes part in the chain of records.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) uuid: Cow<'a, str>,
    /// The record that it follows.
    pub(super) parent: Option<Cow<'a, str>>,
    /// Of a sub-agent.
    pub(super) is_sidechain: bool,
}

/// What a record is.
#[derive(Debug)]
pub(super) enum Kind<'a> {
    User {
        message: Said<'a>,
        /// Put there by the host, and not shown to its user.
        is_meta: bool,
        /// The summary of a compaction.
        is_summary: bool,
    },
    /// One piece of an answer.
    Assistant { message: Said<'a> },
    /// What the host adds for the model.
    Attachment { attachment: &'a RawValue },
    /// Before it is what a compaction has left out, and what it has kept.
    Boundary {
        /// The record before it in time; it follows none.
        after: Option<Cow<'a, str>>,
        kept: Kept<'a>,
    },
    /// Only a link of the chain.
    Other,
}

/// A message, if it can be read.
pub(super) type Said<'a> = Result<WireMessage<'a>, serde_json::Error>;

/// A message as a model's API has it.
#[derive(Debug, Deserialize)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Option<LossyStr<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<LossyStr<'a>>,
    #[serde(borrow)]
    pub(super) content: &'a RawValue,
}

/// What a compaction keeps beside its summary, by the names of records.
#[derive(Debug, Default)]
pub(super) struct Kept<'a> {
    /// All of it, if all are named.
    pub(super) all: Vec<Cow<'a, str>>,
    /// Else the first and the last.
    pub(super) ends: Option<(Cow<'a, str>, Cow<'a, str>)>,
}

/// What a line is.
pub(super) struct Line<'a> {
    /// Whether it is Claude Code's, of whatever kind.
    pub(super) is_known: bool,
    pub(super) record: Option<Record<'a>>,
}

/// Its message is read together with it: looking through long texts once more would take longer
/// than anything else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    uuid: Option<LossyStr<'a>>,
    #[serde(borrow)]
    parent_uuid: Option<LossyStr<'a>>,
    #[serde(borrow)]
    logical_parent_uuid: Option<LossyStr<'a>>,
    #[serde(borrow)]
    session_id: Option<LossyStr<'a>>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    subtype: Option<LossyStr<'a>>,
    #[serde(borrow, default, deserialize_with = "in_order")]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    compact_metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCompaction<'a> {
    #[serde(borrow, default)]
    preserved_messages: Lenient<WireKept<'a>>,
    #[serde(borrow, default)]
    preserved_segment: Lenient<WireSegment<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireKept<'a> {
    #[serde(borrow)]
    uuids: Option<Vec<LossyStr<'a>>>,
    #[serde(borrow)]
    all_uuids: Option<Vec<LossyStr<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSegment<'a> {
    #[serde(borrow)]
    head_uuid: LossyStr<'a>,
    #[serde(borrow)]
    tail_uuid: LossyStr<'a>,
}

impl<'a> Record<'a> {
    /// Reads a line: at once if all of it is in order, else field by field.
    pub(super) fn read(line: &'a str) -> Result<Line<'a>, serde_json::Error> {
        let wire = match serde_json::from_str::<Object<Wire>>(line) {
            Ok(wire) => wire.0,
            Err(_) => Wire::leniently(&serde_json::from_str(line)?)?,
        };
        Ok(wire.line())
    }

    /// Whether it is something that was said or done.
    pub(super) fn is_conversation(&self) -> bool {
        matches!(self.kind, Kind::User { .. } | Kind::Assistant { .. })
    }
}

impl<'a> WireMessage<'a> {
    fn leniently(message: &'a RawValue) -> Said<'a> {
        let message: Fields = serde_json::from_str(message.get())?;
        Ok(Self {
            id: message.lenient("id").0,
            model: message.lenient("model").0,
            content: message.required("content")?,
        })
    }
}

fn in_order<'de: 'a, 'a, D: Deserializer<'de>>(message: D) -> Result<Option<Said<'a>>, D::Error> {
    let message: Option<Object<WireMessage>> = Option::deserialize(message)?;
    Ok(message.map(|message| Ok(message.0)))
}

impl<'a> Wire<'a> {
    fn leniently(line: &Fields<'a>) -> Result<Self, serde_json::Error> {
        let message: Lenient<&RawValue> = line.lenient("message");
        Ok(Self {
            kind: line.required("type")?,
            uuid: line.lenient("uuid").0,
            parent_uuid: line.lenient("parentUuid").0,
            logical_parent_uuid: line.lenient("logicalParentUuid").0,
            session_id: line.lenient("sessionId").0,
            is_sidechain: line.lenient("isSidechain").0,
            is_meta: line.lenient("isMeta").0,
            is_compact_summary: line.lenient("isCompactSummary").0,
            subtype: line.lenient("subtype").0,
            message: message.0.map(WireMessage::leniently),
            attachment: line.lenient("attachment").0,
            compact_metadata: line.lenient("compactMetadata").0,
        })
    }

    fn line(self) -> Line<'a> {
        let is_known = self.uuid.is_some() || self.session_id.is_some();
        let is_boundary = self.kind.0 == "system"
            && self
                .subtype
                .is_some_and(|kind| kind.0 == "compact_boundary");
        let kind = match (&*self.kind.0, self.message, self.attachment) {
            ("user", Some(message), _) => Kind::User {
                message,
                is_meta: self.is_meta.unwrap_or_default(),
                is_summary: self.is_compact_summary.unwrap_or_default(),
            },
            ("assistant", Some(message), _) => Kind::Assistant { message },
            ("attachment", _, Some(attachment)) => Kind::Attachment { attachment },
            _ if is_boundary => Kind::Boundary {
                after: self.logical_parent_uuid.map(|uuid| uuid.0),
                kept: self.compact_metadata.map(kept).unwrap_or_default(),
            },
            _ => Kind::Other,
        };
        let record = self.uuid.map(|uuid| Record {
            kind,
            uuid: uuid.0,
            parent: self.parent_uuid.map(|uuid| uuid.0),
            is_sidechain: self.is_sidechain.unwrap_or_default(),
        });
        Line { is_known, record }
    }
}

fn kept(metadata: &RawValue) -> Kept<'_> {
    let Ok(metadata) = serde_json::from_str::<WireCompaction>(metadata.get()) else {
        return Kept::default();
    };
    let named = metadata.preserved_messages.0;
    let named = named.and_then(|named| named.all_uuids.or(named.uuids));
    let segment = metadata.preserved_segment.0;
    Kept {
        all: named.into_iter().flatten().map(|uuid| uuid.0).collect(),
        ends: segment.map(|segment| (segment.head_uuid.0, segment.tail_uuid.0)),
    }
}
