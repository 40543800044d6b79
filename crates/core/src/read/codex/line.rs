//! One line of a rollout, as Codex writes it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::item::WireItem;
use crate::read::lossy::{Fields, JsonText, LossyStr, Object, missing};

/// The kind of a compaction. What it says is read by itself.
pub(super) const COMPACTED: &str = "compacted";

/// What a line is.
pub(super) struct Line<'a> {
    pub(super) kind: LossyStr<'a>,
    pub(super) payload: Option<Payload<'a>>,
}

/// What a line says.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is not kept"
)]
pub(super) enum Payload<'a> {
    /// Read together with its line, as if all were items: looking through long texts once more
    /// would take longer than anything else.
    Read(WireItem<'a>),
    Unread(&'a RawValue),
}

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    payload: Option<Object<WireItem<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct WireCompacted<'a> {
    #[serde(borrow)]
    pub(super) message: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub(super) replacement_history: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LossyStr<'a>,
    pub(super) num_turns: Option<u64>,
}

impl<'a> Line<'a> {
    /// Reads a line: at once if all of it is in order, else field by field.
    pub(super) fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        if let Ok(Object(wire)) = serde_json::from_str::<Object<WireLine>>(line)
            && (wire.kind.0 != COMPACTED || wire.payload.is_none())
        {
            return Ok(Self {
                kind: wire.kind,
                payload: wire.payload.map(|payload| Payload::Read(payload.0)),
            });
        }
        let line: Fields = serde_json::from_str(line)?;
        let payload: Option<&RawValue> = line.lenient("payload").0;
        Ok(Self {
            kind: line.required("type")?,
            payload: payload.map(Payload::Unread),
        })
    }
}

impl<'a> Payload<'a> {
    pub(super) fn item(self) -> Result<WireItem<'a>, serde_json::Error> {
        match self {
            Self::Read(item) => Ok(item),
            Self::Unread(json) => WireItem::read(json),
        }
    }

    pub(super) fn event(self) -> Result<WireEvent<'a>, serde_json::Error> {
        match self {
            Self::Read(item) => Ok(WireEvent {
                kind: item.kind.ok_or_else(|| missing("type"))?,
                num_turns: item.num_turns,
            }),
            Self::Unread(json) => serde_json::from_str(json.get()),
        }
    }
}
