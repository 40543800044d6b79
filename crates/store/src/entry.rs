//! How an entry of a session is written. The names here are on people's disks: a core type
//! may be renamed, these may not.

use asyncagents_core::{
    agent::{Answer, Block, Call, End, Entry, Raw, Stop, ToolOutcome, Usage},
    budget::Cost,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum EntryRecord {
    Inherited {
        post: String,
        preamble: String,
        context: String,
    },
    Prompted {
        post: String,
        text: String,
        agent: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chain: Option<String>,
    },
    Told {
        post: String,
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
    Answered {
        seen: u64,
        answer: AnswerRecord,
    },
    ToolBegan {
        call: String,
    },
    ToolEnded {
        call: String,
        outcome: ToolRecord,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    Compacted {
        seen: u64,
        answer: AnswerRecord,
    },
    Ended {
        prompt: String,
        end: EndRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerRecord {
    model: String,
    blocks: Vec<BlockRecord>,
    stop: StopRecord,
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    cost: u64,
    /// Older versions did not say; nothing was what they took an unknown price for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priced: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
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
    Call {
        id: String,
        name: String,
        input: String,
    },
    Other {
        raw: RawRecord,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct RawRecord {
    wire: String,
    json: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopRecord {
    Finished,
    Tools,
    Length,
    Refused,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolRecord {
    Done,
    Failed,
    Unknown,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndRecord {
    Answered,
    Failed,
    Broken,
    Aborted,
}

impl From<&Entry> for EntryRecord {
    fn from(entry: &Entry) -> Self {
        match entry {
            Entry::Inherited {
                post,
                preamble,
                context,
            } => EntryRecord::Inherited {
                post: post.to_string(),
                preamble: preamble.clone(),
                context: context.clone(),
            },
            Entry::Prompted {
                post,
                text,
                agent,
                model,
                chain,
            } => EntryRecord::Prompted {
                post: post.to_string(),
                text: text.clone(),
                agent: agent.to_string(),
                model: model.as_ref().map(ToString::to_string),
                chain: chain.as_ref().map(ToString::to_string),
            },
            Entry::Told {
                post,
                visible,
                hidden,
            } => EntryRecord::Told {
                post: post.to_string(),
                visible: visible.clone(),
                hidden: hidden.clone(),
            },
            Entry::Nudged { text } => EntryRecord::Nudged { text: text.clone() },
            Entry::LastTurn { why, fails } => EntryRecord::LastTurn {
                why: why.clone(),
                fails: *fails,
            },
            Entry::Answered { seen, answer } => EntryRecord::Answered {
                seen: *seen,
                answer: answer.into(),
            },
            Entry::ToolBegan { call } => EntryRecord::ToolBegan { call: call.clone() },
            Entry::ToolEnded { call, outcome } => {
                let (outcome, text) = match outcome {
                    ToolOutcome::Done(text) => (ToolRecord::Done, text.clone()),
                    ToolOutcome::Failed(text) => (ToolRecord::Failed, text.clone()),
                    ToolOutcome::Unknown => (ToolRecord::Unknown, String::new()),
                };
                EntryRecord::ToolEnded {
                    call: call.clone(),
                    outcome,
                    text,
                }
            }
            Entry::Compacted { seen, answer } => EntryRecord::Compacted {
                seen: *seen,
                answer: answer.into(),
            },
            Entry::Ended {
                prompt,
                end,
                answer,
            } => {
                let (end, error) = match end {
                    End::Answered => (EndRecord::Answered, None),
                    End::Failed { why } => (EndRecord::Failed, Some(why.clone())),
                    End::Broken { why } => (EndRecord::Broken, Some(why.clone())),
                    End::Aborted => (EndRecord::Aborted, None),
                };
                EntryRecord::Ended {
                    prompt: prompt.to_string(),
                    end,
                    error,
                    answer: answer.clone(),
                }
            }
        }
    }
}

impl From<EntryRecord> for Entry {
    fn from(record: EntryRecord) -> Self {
        match record {
            EntryRecord::Inherited {
                post,
                preamble,
                context,
            } => Entry::Inherited {
                post: post.into(),
                preamble,
                context,
            },
            EntryRecord::Prompted {
                post,
                text,
                agent,
                model,
                chain,
            } => Entry::Prompted {
                post: post.into(),
                text,
                agent: agent.into(),
                model: model.map(Into::into),
                chain: chain.map(Into::into),
            },
            EntryRecord::Told {
                post,
                visible,
                hidden,
            } => Entry::Told {
                post: post.into(),
                visible,
                hidden,
            },
            EntryRecord::Nudged { text } => Entry::Nudged { text },
            EntryRecord::LastTurn { why, fails } => Entry::LastTurn { why, fails },
            EntryRecord::Answered { seen, answer } => Entry::Answered {
                seen,
                answer: answer.into(),
            },
            EntryRecord::ToolBegan { call } => Entry::ToolBegan { call },
            EntryRecord::ToolEnded {
                call,
                outcome,
                text,
            } => Entry::ToolEnded {
                call,
                outcome: match outcome {
                    ToolRecord::Done => ToolOutcome::Done(text),
                    ToolRecord::Failed => ToolOutcome::Failed(text),
                    ToolRecord::Unknown => ToolOutcome::Unknown,
                },
            },
            EntryRecord::Compacted { seen, answer } => Entry::Compacted {
                seen,
                answer: answer.into(),
            },
            EntryRecord::Ended {
                prompt,
                end,
                error,
                answer,
            } => Entry::Ended {
                answer,
                prompt: prompt.into(),
                end: match end {
                    EndRecord::Answered => End::Answered,
                    EndRecord::Failed => End::Failed {
                        why: error.unwrap_or_default(),
                    },
                    EndRecord::Broken => End::Broken {
                        why: error.unwrap_or_default(),
                    },
                    EndRecord::Aborted => End::Aborted,
                },
            },
        }
    }
}

impl From<&Answer> for AnswerRecord {
    fn from(answer: &Answer) -> Self {
        let raw = |raw: &Raw| RawRecord {
            wire: raw.wire.clone(),
            json: raw.json.clone(),
        };
        let block = |block: &Block| match block {
            Block::Text(text) => BlockRecord::Text { text: text.clone() },
            Block::Reasoning { text, raw: kept } => BlockRecord::Reasoning {
                text: text.clone(),
                raw: kept.as_ref().map(raw),
            },
            Block::Call(call) => BlockRecord::Call {
                id: call.id.clone(),
                name: call.name.clone(),
                input: call.input.clone(),
            },
            Block::Other(kept) => BlockRecord::Other { raw: raw(kept) },
        };
        AnswerRecord {
            model: answer.model.to_string(),
            blocks: answer.blocks.iter().map(block).collect(),
            stop: match answer.stop {
                Stop::Finished => StopRecord::Finished,
                Stop::Tools => StopRecord::Tools,
                Stop::Length => StopRecord::Length,
                Stop::Refused => StopRecord::Refused,
            },
            input: answer.usage.input,
            cache_read: answer.usage.cache_read,
            cache_write: answer.usage.cache_write,
            output: answer.usage.output,
            cost: answer.cost.unwrap_or_default().0,
            priced: Some(answer.cost.is_some()),
        }
    }
}

impl From<AnswerRecord> for Answer {
    fn from(record: AnswerRecord) -> Self {
        let raw = |raw: RawRecord| Raw {
            wire: raw.wire,
            json: raw.json,
        };
        let block = |block| match block {
            BlockRecord::Text { text } => Block::Text(text),
            BlockRecord::Reasoning { text, raw: kept } => Block::Reasoning {
                text,
                raw: kept.map(raw),
            },
            BlockRecord::Call { id, name, input } => Block::Call(Call { id, name, input }),
            BlockRecord::Other { raw: kept } => Block::Other(raw(kept)),
        };
        Answer {
            model: record.model.into(),
            blocks: record.blocks.into_iter().map(block).collect(),
            stop: match record.stop {
                StopRecord::Finished => Stop::Finished,
                StopRecord::Tools => Stop::Tools,
                StopRecord::Length => Stop::Length,
                StopRecord::Refused => Stop::Refused,
            },
            usage: Usage {
                input: record.input,
                cache_read: record.cache_read,
                cache_write: record.cache_write,
                output: record.output,
            },
            cost: record
                .priced
                .unwrap_or(record.cost > 0)
                .then_some(Cost(record.cost)),
        }
    }
}
