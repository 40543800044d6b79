//! The end of a run on disk, until its parent has been told.

use asyncagents_core::end_notice::{EndNotice, ToldResult};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(remote = "EndNotice")]
struct EndNoticeRecord {
    shown: String,
    headline: String,
    undelivered: u64,
    error: Option<String>,
    #[serde(with = "ToldResultRecord")]
    result: ToldResult,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToldResult", rename_all = "snake_case")]
enum ToldResultRecord {
    Skill {
        summary: String,
        trace: String,
        whole: bool,
    },
    Text {
        text: String,
        chars: usize,
    },
}

/// An end, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SavedEnd(#[serde(with = "EndNoticeRecord")] pub(crate) EndNotice);
