//! One line of a transcript, as Claude Code writes it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::read::lossy::{Fields, Lenient, LossyStr};

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
        message: &'a RawValue,
        /// Put there by the host, and not shown to its user.
        is_meta: bool,
        /// The summary of a compaction.
        is_summary: bool,
    },
    /// One piece of an answer.
    Assistant { message: &'a RawValue },
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
    #[serde(borrow)]
    message: Option<&'a RawValue>,
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
        // A derived reader would take a list for a struct's fields.
        let is_object = line.trim_ascii_start().starts_with('{');
        let strict = is_object.then(|| serde_json::from_str(line));
        let wire: Wire = match strict {
            Some(Ok(wire)) => wire,
            _ => Wire::leniently(&serde_json::from_str(line)?)?,
        };
        Ok(wire.line())
    }

    /// Whether it is something that was said or done.
    pub(super) fn is_conversation(&self) -> bool {
        matches!(self.kind, Kind::User { .. } | Kind::Assistant { .. })
    }
}

impl<'a> Wire<'a> {
    fn leniently(line: &Fields<'a>) -> Result<Self, serde_json::Error> {
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
            message: line.lenient("message").0,
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
