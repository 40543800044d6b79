//! What is made of streams, and of conversations that are sent back.

use asyncagents_core::agent::{Block, Effort, Stop, ToolOutcome, Turn, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    price::Prices,
    wire::{
        Question,
        Wire::Anthropic,
        testing::{answered, call, folded, play, question, raw, request, sent},
    },
};

use super::body;

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn blocks_that_nobody_knows_are_kept_as_they_came() {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}}}),
        json!({"type": "a_new_event", "index": 0, "delta": [1]}),
        begin(0, json!({"type": "redacted_thinking", "data": "x1"})),
        begin(1, json!({"type": "hologram", "beam": 2.50})),
        begin(
            2,
            json!({"type": "server_tool_use", "id": "s1", "name": "web", "input": {}}),
        ),
        delta(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"q\":"}),
        ),
        delta(2, json!({"type": "input_json_delta", "partial_json": "1}"})),
        begin(3, json!({"type": "summary", "content": null})),
        delta(3, json!({"type": "summary_delta", "content": "so "})),
        delta(3, json!({"type": "summary_delta", "content": "far"})),
        begin(4, json!({"type": "text", "text": ""})),
        delta(4, json!({"type": "text_delta", "text": "hi"})),
        delta(4, json!({"type": "citations_delta", "citation": {}})),
    ];
    events.extend(end("end_turn"));
    let here = "here@house/m";
    let answer = folded(Anthropic, &events);
    assert_eq!(
        answer.blocks,
        [
            Block::Reasoning {
                text: String::new(),
                raw: Some(raw(here, r#"{"type":"redacted_thinking","data":"x1"}"#)),
            },
            Block::Other(raw(here, r#"{"type":"hologram","beam":2.5}"#)),
            Block::Other(raw(
                here,
                r#"{"type":"server_tool_use","id":"s1","name":"web","input":{"q":1}}"#
            )),
            Block::Other(raw(here, r#"{"type":"summary","content":"so far"}"#)),
            Block::Text("hi".to_owned()),
        ]
    );
    let usage = Usage {
        input: 3,
        cache_read: 4,
        cache_write: 5,
        output: 7,
    };
    assert_eq!((answer.stop, answer.usage), (Stop::Finished, usage));
    let turns = [Turn::Said("go".to_owned()), answered(answer.blocks)];
    assert_eq!(
        sent(Anthropic, &turns)[1]["content"][1],
        json!({"type": "hologram", "beam": 2.5})
    );
}

#[rstest]
#[case("end_turn", Stop::Finished)]
#[case("pause_turn", Stop::Finished)]
#[case("tool_use", Stop::Finished)]
#[case("max_tokens", Stop::Length)]
#[case("model_context_window_exceeded", Stop::Length)]
#[case("refusal", Stop::Refused)]
#[case("something_new", Stop::Finished)]
fn reasons_to_stop(#[case] reason: &str, #[case] stop: Stop) {
    assert_eq!(folded(Anthropic, &end(reason)).stop, stop);
}

#[test]
fn a_stream_without_its_end_is_not_whole() {
    let [delta, _] = end("end_turn");
    let fold = play(Anthropic, &[delta]).ok();
    assert_eq!(fold.map(|fold| fold.is_whole()), Some(false));
}

#[test]
fn a_conversation_is_always_acceptable() {
    let thought = |wire: &str| Block::Reasoning {
        text: "hm".to_owned(),
        raw: Some(raw(
            wire,
            r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
        )),
    };
    let (one, two) = (
        call("a.b:1", "read file", "{\"x\": 1 }"),
        call("c2", "run", "{oops"),
    );
    let turns = [
        Turn::Said("do".to_owned()),
        Turn::Said("  ".to_owned()),
        // Nothing of this can be sent, so the user's messages meet.
        answered(vec![Block::Text(" ".to_owned()), thought("here@house/m")]),
        Turn::Said("it".to_owned()),
        answered(vec![
            thought("elsewhere@house/m"),
            thought("here@house/m"),
            Block::Call(one.clone()),
            Block::Call(two.clone()),
        ]),
        Turn::Result {
            call: one,
            outcome: ToolOutcome::Done(String::new()),
        },
        Turn::Result {
            call: two,
            outcome: ToolOutcome::Failed("no".to_owned()),
        },
        Turn::Said("hurry".to_owned()),
    ];
    assert_eq!(
        sent(Anthropic, &turns),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "do"}, {"type": "text", "text": "it"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "a_b_1", "name": "read_file", "input": {"x": 1}},
                {"type": "tool_use", "id": "c2", "name": "run", "input": {"invalid": "{oops"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a_b_1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": true},
                {"type": "text", "text": "hurry"},
            ]},
        ])
    );
    assert_eq!(
        sent(Anthropic, &[Turn::Said(String::new())]),
        json!([{"role": "user", "content": [{"type": "text", "text": "(no text)"}]}])
    );
}

#[rstest]
#[case("claude-sonnet-4-5", Effort::High, json!({"type": "enabled", "budget_tokens": 24_000}), Value::Null)]
#[case("claude-sonnet-5-5", Effort::Low, json!({"type": "adaptive"}), json!({"effort": "low"}))]
#[case("unknown", Effort::High, json!({"type": "enabled", "budget_tokens": 6_144}), Value::Null)]
fn effort_in_both_dialects(
    #[case] model: &str,
    #[case] effort: Effort,
    #[case] thinking: Value,
    #[case] output: Value,
) {
    let request = crate::request::Request {
        effort: Some(effort),
        ..request(&[])
    };
    let prices = Prices::with(None).unwrap_or_default();
    let question = Question {
        figures: prices.figures("anthropic", model, false),
        ..question(&request)
    };
    let body = body(&question).unwrap_or_default();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    assert_eq!(
        (&body["thinking"], &body["output_config"]),
        (&thinking, &output)
    );
}

/// Where the children of one fork part, so that they share what comes before.
#[test]
fn what_is_inherited_ends_with_a_marker() {
    let turns = ["inherited", "task"].map(|text| Turn::Said(text.to_owned()));
    let request = crate::request::Request {
        system: "terse",
        inherited: 1,
        ..request(&turns)
    };
    let body = body(&question(&request)).unwrap_or_default();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let marker = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "inherited", "cache_control": marker},
            {"type": "text", "text": "task"},
        ]}])
    );
}
