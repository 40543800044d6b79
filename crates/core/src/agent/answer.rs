//! What a model answers.

use crate::{
    budget::{Cost, Spent},
    id::ModelName,
};

/// One answer of a model, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Which model gave it, as `provider/model`.
    pub model: ModelName,
    /// What it consists of, in order.
    pub blocks: Vec<Block>,
    pub stop: Stop,
    pub usage: Usage,
    /// What that cost, if the price is known.
    pub cost: Option<Cost>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text(String),
    /// Something thought. It is sent back to the API it came from, as it came.
    Reasoning {
        /// What people may read of it.
        text: String,
        /// The block as the API wants it back.
        raw: Option<Raw>,
    },
    Call(Call),
    /// A kind of block that is not known here. It is sent back as it came.
    Other(Raw),
}

/// A block as an API wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// Which API understands it.
    pub wire: String,
    pub json: String,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The model's name for it.
    pub id: String,
    pub name: String,
    /// The parameters: JSON, unless the model made a mistake.
    pub input: String,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The model has said what it wanted to say.
    Finished,
    /// It wants tools to be run.
    Tools,
    /// It was cut at the greatest length of an answer.
    Length,
    /// The model, or its provider, refuses.
    Refused,
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Read anew and put into the cache, where that has a price of its own.
    pub cache_write: u64,
    /// Written, thoughts included.
    pub output: u64,
}

impl Usage {
    /// How much of the window the conversation fills after this answer.
    pub fn context(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }

    /// Both together.
    pub fn plus(self, more: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(more.input),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            output: self.output.saturating_add(more.output),
        }
    }
}

impl Answer {
    /// What it took.
    pub fn spent(&self) -> Spent {
        Spent::of_answer(self.usage.context(), self.cost)
    }

    /// The tools it wants to be run.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text(_) | Block::Reasoning { .. } | Block::Other(_) => None,
        })
    }

    /// What it says.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Reasoning { .. } | Block::Call(_) | Block::Other(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}
