//! How much of one answer is kept in memory.

use serde_json::Value;

/// How long one answer may get, in bytes of UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerLimits {
    /// Text, reasoning, calls and whatever else is kept of it, together.
    pub(crate) answer: usize,
    /// The arguments of one call.
    pub(crate) arguments: usize,
}

/// What a block or a call counts for besides what is in it. Without this an answer of nothing
/// but empty blocks would never end.
pub(crate) const BLOCK: usize = 1_000;

/// Which limit an answer has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// The answer as a whole is too long.
    Answer { limit: usize },
    /// The arguments of one of its calls are.
    Arguments { limit: usize },
}

/// Counts what an answer takes while it is received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    limits: AnswerLimits,
    bytes: usize,
}

impl Size {
    pub(crate) fn within(limits: AnswerLimits) -> Self {
        Self { limits, bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts what is about to be kept. Nothing is kept of what exceeds the limit.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.limits.answer {
            limit if self.bytes > limit => Err(Exceeded::Answer { limit }),
            _ => Ok(()),
        }
    }

    /// A new block or call, with what is in it from the beginning.
    pub(crate) fn grow_block(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.grow(BLOCK.saturating_add(bytes))
    }

    /// More arguments for a call that has some already.
    pub(crate) fn grow_arguments(&mut self, before: usize, more: usize) -> Result<(), Exceeded> {
        self.check_arguments(before.saturating_add(more))?;
        self.grow(more)
    }

    /// Whether a call may have so many arguments.
    pub(crate) fn check_arguments(&self, bytes: usize) -> Result<(), Exceeded> {
        match self.limits.arguments {
            limit if bytes > limit => Err(Exceeded::Arguments { limit }),
            _ => Ok(()),
        }
    }
}

/// About what a value takes in memory, which can be many times its JSON.
pub(crate) fn memory_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(memory_of).sum(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| field(name, value))
                .sum::<usize>(),
        }
}

/// The same for a value with its name.
pub(crate) fn field(name: &str, value: &Value) -> usize {
    size_of::<String>() + name.len() + memory_of(value)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{
        request::AnswerEvent,
        wire::{
            Fold, StreamError,
            Wire::{self, Anthropic, Chat, Responses},
            testing::{LIMITS, empty},
        },
    };

    /// The n-th event of an answer without end.
    type Endless = fn(u64) -> Value;

    fn block(index: u64, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn piece(delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    }

    fn chat(delta: Value) -> Value {
        json!({"choices": [{"delta": delta}]})
    }

    fn take(fold: &mut dyn Fold, event: &Value) -> Result<(), StreamError> {
        let heard = fold.event(&event.to_string(), &mut |_: AnswerEvent<'_>| {});
        heard.map(drop)
    }

    const ANSWER: Exceeded = Exceeded::Answer {
        limit: LIMITS.answer,
    };
    const ARGUMENTS: Exceeded = Exceeded::Arguments {
        limit: LIMITS.arguments,
    };
    const TEXT: &str = "0123456789";

    #[rstest]
    #[case::text(Anthropic, |n| match n {
        0 => block(0, json!({"type": "text", "text": ""})),
        _ => piece(json!({"type": "text_delta", "text": TEXT})),
    }, ANSWER)]
    #[case::thinking(Anthropic, |n| match n {
        0 => block(0, json!({"type": "thinking", "thinking": ""})),
        _ => piece(json!({"type": "thinking_delta", "thinking": TEXT})),
    }, ANSWER)]
    #[case::signature(Anthropic, |n| match n {
        0 => block(0, json!({"type": "thinking", "thinking": ""})),
        _ => piece(json!({"type": "signature_delta", "signature": TEXT})),
    }, ANSWER)]
    #[case::arguments(Anthropic, |n| match n {
        0 => block(0, json!({"type": "tool_use", "id": "a", "name": "run", "input": {}})),
        _ => piece(json!({"type": "input_json_delta", "partial_json": TEXT})),
    }, ARGUMENTS)]
    #[case::arguments_at_once(Anthropic, |_| {
        let input = json!({"x": "x".repeat(LIMITS.arguments)});
        block(0, json!({"type": "tool_use", "id": "a", "name": "run", "input": input}))
    }, ARGUMENTS)]
    #[case::calls(Anthropic, |n| {
        block(n, json!({"type": "tool_use", "id": "", "name": "", "input": {}}))
    }, ANSWER)]
    #[case::empty_blocks(Anthropic, |n| block(n, json!({})), ANSWER)]
    #[case::unknown_pieces(Anthropic, |n| match n {
        0 => block(0, json!({"type": "hologram"})),
        _ => piece(json!({"type": "beam", "beam": TEXT})),
    }, ANSWER)]
    #[case::unknown_fields(Anthropic, |n| match n {
        0 => block(0, json!({"type": "hologram"})),
        _ => piece(json!({(n.to_string()): ""})),
    }, ANSWER)]
    #[case::text(Responses, |_| {
        json!({"type": "response.output_text.delta", "delta": TEXT})
    }, ANSWER)]
    #[case::reasoning(Responses, |_| {
        json!({"type": "response.reasoning_summary_text.delta", "delta": TEXT})
    }, ANSWER)]
    #[case::arguments(Responses, |_| {
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": TEXT})
    }, ARGUMENTS)]
    #[case::arguments_at_once(Responses, |_| {
        let arguments = "x".repeat(LIMITS.arguments + 1);
        let call = json!({"type": "function_call", "name": "run", "arguments": arguments});
        json!({"type": "response.output_item.done", "item": call})
    }, ARGUMENTS)]
    #[case::arguments_of_many(Responses, |n| {
        json!({"type": "response.function_call_arguments.delta", "output_index": n, "delta": ""})
    }, ANSWER)]
    #[case::calls(Responses, |n| {
        let call = json!({"type": "function_call"});
        json!({"type": "response.output_item.done", "output_index": n, "item": call})
    }, ANSWER)]
    #[case::beginnings(Responses, |n| {
        let call = json!({"type": "function_call"});
        json!({"type": "response.output_item.added", "output_index": n, "item": call})
    }, ANSWER)]
    #[case::unknown_pieces(Responses, |_| {
        json!({"type": "response.hologram.delta", "delta": TEXT})
    }, ANSWER)]
    #[case::all_at_the_end(Responses, |_| {
        let output = vec![json!({"type": "message", "content": []}); LIMITS.answer / BLOCK];
        json!({"type": "response.completed", "response": {"output": output}})
    }, ANSWER)]
    #[case::text(Chat, |_| chat(json!({"content": TEXT})), ANSWER)]
    #[case::text_in_parts(Chat, |_| {
        chat(json!({"content": [{"type": "text", "text": TEXT}]}))
    }, ANSWER)]
    #[case::refusal(Chat, |_| chat(json!({"refusal": TEXT})), ANSWER)]
    #[case::reasoning(Chat, |_| chat(json!({"reasoning_content": TEXT})), ANSWER)]
    #[case::details(Chat, |_| {
        chat(json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": TEXT}]}))
    }, ANSWER)]
    #[case::many_details(Chat, |n| chat(json!({"reasoning_details": [{"index": n}]})), ANSWER)]
    #[case::arguments(Chat, |_| {
        chat(json!({"tool_calls": [{"index": 0, "function": {"arguments": TEXT}}]}))
    }, ARGUMENTS)]
    #[case::calls(Chat, |n| chat(json!({"tool_calls": [{"index": n}]})), ANSWER)]
    #[case::fields_of_a_call(Chat, |n| {
        chat(json!({"tool_calls": [{"index": 0, (format!("x{n}")): 1}]}))
    }, ANSWER)]
    fn an_answer_without_end_is_dropped(
        #[case] wire: Wire,
        #[case] endless: Endless,
        #[case] exceeded: Exceeded,
    ) {
        let mut fold = empty(wire);
        let trouble = (0..20_000).find_map(|n| take(&mut *fold, &endless(n)).err());
        assert_eq!(trouble, Some(StreamError::TooLong(exceeded)));
    }

    /// A router says the same of each piece of a thought; only the text grows.
    #[test]
    fn what_is_repeated_counts_once() {
        let mut fold = empty(Chat);
        for _ in 0..5_000 {
            let format = "the-name-of-a-format";
            let detail = json!({"type": "reasoning.text", "format": format, "text": "hm"});
            let taken = take(&mut *fold, &chat(json!({"reasoning_details": [detail]})));
            assert_eq!(taken, Ok(()));
        }
    }

    #[rstest]
    #[case::ping(Anthropic, json!({"type": "ping"}))]
    #[case::start(Anthropic, json!({"type": "message_start", "message": {"usage": {}}}))]
    #[case::usage(Anthropic, json!({"type": "message_delta", "usage": {"output_tokens": 1}}))]
    #[case::no_text(Responses, json!({"type": "response.output_text.delta", "delta": ""}))]
    #[case::in_progress(Responses, json!({"type": "response.in_progress", "response": {}}))]
    #[case::keepalive(Responses, json!({"type": "keepalive", "sequence_number": 7}))]
    #[case::no_choice(Chat, json!({"choices": []}))]
    #[case::no_delta(Chat, chat(json!({})))]
    #[case::no_text(Chat, chat(json!({"role": "assistant", "content": ""})))]
    #[case::no_thought(Chat, chat(json!({"content": "", "reasoning": null})))]
    #[case::usage(Chat, json!({"choices": [], "usage": {"completion_tokens": 3}}))]
    fn a_sign_of_life_is_no_progress(#[case] wire: Wire, #[case] event: Value) {
        let mut fold = empty(wire);
        assert_eq!(take(&mut *fold, &event), Ok(()));
        assert_eq!(fold.size(), 0);
    }

    #[rstest]
    #[case(json!({"type": "text"}), json!({"text": ""}))]
    #[case(json!({"type": "thinking"}), json!({"thinking": "", "signature": ""}))]
    #[case(json!({"type": "tool_use"}), json!({"partial_json": ""}))]
    fn an_empty_piece_of_a_block_is_no_progress(#[case] start: Value, #[case] delta: Value) {
        let mut fold = empty(Anthropic);
        assert_eq!(take(&mut *fold, &block(0, start)), Ok(()));
        let size = fold.size();
        assert_eq!(take(&mut *fold, &piece(delta)), Ok(()));
        assert_eq!(fold.size(), size);
    }
}
