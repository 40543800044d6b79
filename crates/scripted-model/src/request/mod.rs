//! A request, whichever protocol it came in.

mod anthropic;
mod chat;
mod content;
mod gemini;
mod responses;

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use crate::{failure::Failure, protocol::Wire};

/// What a request says, as rules see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) model: String,
    /// How many assistant messages it has.
    pub(crate) turn: usize,
    pub(crate) wants: Wants,
    /// Its HTTP headers, with their names in small letters.
    headers: Vec<(String, String)>,
    /// How many were being answered when it came, itself included.
    pub(crate) in_flight: usize,
    /// Tools, system prompt and conversation one after the other. Requests that share a
    /// beginning share the beginning of this.
    prompt: String,
    tools: Range<usize>,
    system: Range<usize>,
    conversation: usize,
    first: Range<usize>,
    last: usize,
}

/// What the address of a request says where its body does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) model: String,
    pub(crate) stream: bool,
}

/// How the answer is to be given.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wants {
    /// As a stream of events.
    pub(crate) stream: bool,
    /// With a last chunk that has the token counts (Chat Completions).
    pub(crate) usage_chunk: bool,
    /// With reasoning that can be sent back (Responses).
    pub(crate) encrypted_reasoning: bool,
    /// With the prompt kept for later (Anthropic).
    pub(crate) cache: bool,
}

/// A request as its protocol has it, in order.
#[derive(Default)]
struct RequestParts<'a> {
    model: String,
    wants: Wants,
    tools: &'a str,
    system: Vec<String>,
    messages: Vec<Message>,
}

impl RequestParts<'_> {
    /// Whether the model has said something already.
    fn has_answers(&self) -> bool {
        let is_answer = |message: &Message| message.by == Speaker::Assistant;
        self.messages.iter().any(is_answer)
    }
}

/// One message, or one part of it.
struct Message {
    by: Speaker,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    /// A message of its own.
    Assistant,
    /// More of the assistant message before.
    AssistantToo,
    Tool,
}

impl Request {
    pub(crate) fn read(wire: Wire, body: &str) -> Result<Self, Failure> {
        let parts = match wire {
            Wire::Anthropic => anthropic::read(body)?,
            Wire::Responses => responses::read(body)?,
            Wire::Chat => chat::read(body)?,
            Wire::Gemini => gemini::read(body)?,
        };
        Ok(Self::from_parts(parts))
    }

    /// A request whose tokens are to be counted: nothing will be said.
    pub(crate) fn read_to_count(wire: Wire, body: &str) -> Result<Self, Failure> {
        let parts = match wire {
            Wire::Anthropic => anthropic::read_to_count(body)?,
            Wire::Gemini => gemini::read_to_count(body)?,
            Wire::Responses | Wire::Chat => return Self::read(wire, body),
        };
        Ok(Self::from_parts(parts))
    }

    /// The same, where its address says which model is asked, and whether for a stream.
    pub(crate) fn with_address(mut self, address: Option<Address>) -> Self {
        if let Some(address) = address {
            self.model = address.model;
            self.wants.stream = address.stream;
        }
        self
    }

    /// The same, with these HTTP headers.
    pub(crate) fn with_headers(mut self, headers: &HeaderMap) -> Self {
        self.headers = readable(headers);
        self
    }

    /// The same, as one of so many.
    pub(crate) fn with_in_flight(mut self, in_flight: usize) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Its HTTP headers, with their names in small letters.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Whether it came with such an HTTP header.
    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Everything the model would read.
    pub(crate) fn prompt(&self) -> &str {
        &self.prompt
    }

    pub(crate) fn system(&self) -> &str {
        self.part(self.system.clone())
    }

    pub(crate) fn text(&self) -> &str {
        self.part(self.conversation..self.prompt.len())
    }

    pub(crate) fn first(&self) -> &str {
        self.part(self.first.clone())
    }

    /// Everything after the last assistant message.
    pub(crate) fn last(&self) -> &str {
        self.part(self.last..self.prompt.len())
    }

    pub(crate) fn has_tools(&self) -> bool {
        let tools = self.part(self.tools.clone());
        tools
            .chars()
            .filter(|c| !c.is_whitespace())
            .nth(2)
            .is_some()
            && tools != "null"
    }

    /// The names of the tools offered.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool {
            name: Option<String>,
            function: Option<Function>,
            #[serde(default)]
            function_declarations: Vec<Function>,
        }
        #[derive(Deserialize)]
        struct Function {
            name: String,
        }
        let tools: Vec<Tool> =
            serde_json::from_str(self.part(self.tools.clone())).unwrap_or_default();
        let names = |tool: Tool| {
            let declared = tool.function.into_iter().chain(tool.function_declarations);
            tool.name
                .into_iter()
                .chain(declared.map(|function| function.name))
        };
        tools.into_iter().flat_map(names).collect()
    }

    fn part(&self, range: Range<usize>) -> &str {
        let text = self.prompt.get(range).unwrap_or_default();
        text.strip_suffix('\n').unwrap_or(text)
    }

    fn from_parts(parts: RequestParts<'_>) -> Self {
        let mut prompt = String::new();
        let tools = push_line(&mut prompt, parts.tools);
        let system = push_line(&mut prompt, &parts.system.join("\n"));
        let conversation = prompt.len();
        let (mut turn, mut first, mut last) = (0, None, conversation);
        for message in parts.messages {
            let range = push_line(&mut prompt, &message.text);
            match message.by {
                Speaker::Assistant => (turn, last) = (turn + 1, range.end),
                Speaker::AssistantToo => last = range.end,
                Speaker::User if first.is_none() => first = Some(range),
                Speaker::User | Speaker::Tool => {}
            }
        }
        Self {
            model: parts.model,
            turn,
            wants: parts.wants,
            headers: Vec::new(),
            in_flight: 0,
            first: first.unwrap_or(conversation..conversation),
            prompt,
            tools,
            system,
            conversation,
            last,
        }
    }
}

/// Headers as text.
pub(crate) fn readable(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    };
    headers.iter().map(pair).collect()
}

fn push_line(prompt: &mut String, text: &str) -> Range<usize> {
    let start = prompt.len();
    if !text.is_empty() {
        prompt.push_str(text);
        prompt.push('\n');
    }
    start..prompt.len()
}

#[cfg(test)]
mod tests;
