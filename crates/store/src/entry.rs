//! How an entry of a session is written. The names here are on people's disks: a core type
//! may be renamed, these may not.

use std::ops::Not;

use asyncagents_core::{
    agent::{Answer, Block, Call, End, Entry, Raw, Stop, ToolOutcome, Usage},
    budget::Cost,
    fallback::Fallback,
    id::{AgentName, ChainId, ModelName, PostId},
};
use serde::{Deserialize, Serialize};

use crate::record::{As, FallbackRecord};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Entry", tag = "kind", rename_all = "snake_case")]
pub(crate) enum EntryRecord {
    Inherited {
        post: PostId,
        preamble: String,
        context: String,
    },
    Prompted {
        post: PostId,
        text: String,
        agent: AgentName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chain: Option<ChainId>,
    },
    AgentSession {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<String>,
        #[serde(default, skip_serializing_if = "Not::not")]
        forks: bool,
    },
    #[serde(rename = "told")]
    Notice {
        post: PostId,
        visible: String,
        hidden: String,
    },
    Nudged {
        text: String,
    },
    LastTurn {
        why: String,
        fails: bool,
    },
    FellBack(#[serde(with = "FallbackRecord")] Fallback),
    Answered {
        seen: u64,
        #[serde(with = "As::<AnswerRecord>")]
        answer: Answer,
    },
    ToolBegan {
        call: String,
    },
    ToolEnded {
        call: String,
        #[serde(flatten, with = "As::<ToolRecord>")]
        outcome: ToolOutcome,
    },
    Compacted {
        seen: u64,
        #[serde(with = "As::<AnswerRecord>")]
        answer: Answer,
    },
    Ended {
        prompt: PostId,
        #[serde(flatten, with = "EndRecord")]
        end: End,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "End", tag = "end", rename_all = "snake_case")]
enum EndRecord {
    Answered,
    Failed {
        #[serde(rename = "error", default)]
        why: String,
    },
    Broken {
        #[serde(rename = "error", default)]
        why: String,
    },
    Aborted,
}

#[derive(Serialize, Deserialize)]
struct ToolRecord {
    outcome: ToolWord,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToolWord {
    Done,
    Failed,
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct AnswerRecord {
    model: ModelName,
    blocks: Vec<BlockRecord>,
    #[serde(with = "StopRecord")]
    stop: Stop,
    #[serde(flatten, with = "UsageRecord")]
    usage: Usage,
    cost: Cost,
    /// Older versions did not say; nothing was what they took an unknown price for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priced: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum BlockRecord {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<RawRecord>,
    },
    Call(#[serde(with = "CallRecord")] Call),
    Other {
        raw: RawRecord,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Call")]
struct CallRecord {
    id: String,
    name: String,
    input: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Raw")]
struct RawShape {
    wire: String,
    json: String,
}

#[derive(Serialize, Deserialize)]
struct RawRecord(#[serde(with = "RawShape")] Raw);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stop", rename_all = "snake_case")]
enum StopRecord {
    Finished,
    Tools,
    Length,
    Refused,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Usage")]
struct UsageRecord {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl From<ToolOutcome> for ToolRecord {
    fn from(outcome: ToolOutcome) -> Self {
        let (outcome, text) = match outcome {
            ToolOutcome::Done(text) => (ToolWord::Done, text),
            ToolOutcome::Failed(text) => (ToolWord::Failed, text),
            ToolOutcome::Unknown => (ToolWord::Unknown, String::new()),
        };
        Self { outcome, text }
    }
}

impl From<ToolRecord> for ToolOutcome {
    fn from(ToolRecord { outcome, text }: ToolRecord) -> Self {
        match outcome {
            ToolWord::Done => Self::Done(text),
            ToolWord::Failed => Self::Failed(text),
            ToolWord::Unknown => Self::Unknown,
        }
    }
}

impl From<Answer> for AnswerRecord {
    fn from(answer: Answer) -> Self {
        Self {
            model: answer.model,
            blocks: answer.blocks.into_iter().map(Into::into).collect(),
            stop: answer.stop,
            usage: answer.usage,
            cost: answer.cost.unwrap_or_default(),
            priced: Some(answer.cost.is_some()),
        }
    }
}

impl From<AnswerRecord> for Answer {
    fn from(record: AnswerRecord) -> Self {
        let priced = record.priced.unwrap_or(record.cost > Cost(0));
        Self {
            model: record.model,
            blocks: record.blocks.into_iter().map(Into::into).collect(),
            stop: record.stop,
            usage: record.usage,
            cost: priced.then_some(record.cost),
        }
    }
}

impl From<Block> for BlockRecord {
    fn from(block: Block) -> Self {
        match block {
            Block::Text(text) => Self::Text { text },
            Block::Reasoning { text, raw } => {
                let raw = raw.map(RawRecord);
                Self::Reasoning { text, raw }
            }
            Block::Call(call) => Self::Call(call),
            Block::Other(raw) => Self::Other {
                raw: RawRecord(raw),
            },
        }
    }
}

impl From<BlockRecord> for Block {
    fn from(record: BlockRecord) -> Self {
        match record {
            BlockRecord::Text { text } => Self::Text(text),
            BlockRecord::Reasoning { text, raw } => {
                let raw = raw.map(|RawRecord(raw)| raw);
                Self::Reasoning { text, raw }
            }
            BlockRecord::Call(call) => Self::Call(call),
            BlockRecord::Other {
                raw: RawRecord(raw),
            } => Self::Other(raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EntryRecord;

    /// Every kind of entry, as files have it.
    #[test]
    fn an_entry_on_disk_is_written_again_as_it_was() -> serde_json::Result<()> {
        for line in include_str!("../tests/on_disk/entries.jsonl").lines() {
            let entry = EntryRecord::deserialize(&mut serde_json::Deserializer::from_str(line))?;
            let mut written = Vec::new();
            EntryRecord::serialize(&entry, &mut serde_json::Serializer::new(&mut written))?;
            assert_eq!(String::from_utf8_lossy(&written), line);
        }
        Ok(())
    }
}
