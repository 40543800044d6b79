//! What is made of streams, and of conversations that are sent back.

use asyncagents_core::{
    agent::{Block, Stop, ToolOutcome, ToolSpec, Turn},
    budget::Cost,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    provider_error::ProviderError,
    wire::{
        Question, StreamError,
        Wire::Chat,
        testing::{answered, call, folded, play, question, raw, request, sent},
    },
};

use super::{body, request::name};

fn delta(delta: Value) -> Value {
    json!({"choices": [{"delta": delta}]})
}

fn done() -> Value {
    json!("[DONE]")
}

#[rstest]
#[case::as_openai(&[
    json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": ""}}]),
    json!([{"index": 0, "function": {"arguments": "{\"x\":"}}]),
    json!([{"index": 1, "id": "b", "function": {"name": "see", "arguments": "{}"}}]),
    json!([{"index": 0, "function": {"arguments": "1}"}}]),
], &[("a", "run", "{\"x\":1}"), ("b", "see", "{}")])]
#[case::whole_without_index(&[
    json!([{"id": "a", "function": {"name": "run", "arguments": "{}"}}, {"id": "b", "function": {"name": "run", "arguments": "{}"}}]),
], &[("a", "run", "{}"), ("b", "run", "{}")])]
#[case::without_ids(&[
    json!([{"function": {"name": "run", "arguments": "{"}}]),
    json!([{"function": {"arguments": "}"}}]),
    json!([{"function": {"name": "see", "arguments": "{}"}}]),
], &[("call_0_1", "run", "{}"), ("call_0_2", "see", "{}")])]
#[case::all_the_same_index(&[
    json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": "{}"}}]),
    json!([{"index": 0, "id": "b", "function": {"name": "see", "arguments": "{}"}}]),
], &[("a", "run", "{}"), ("b", "see", "{}")])]
#[case::arguments_as_an_object(&[
    json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": {"x": 1}}}]),
], &[("a", "run", "{\"x\":1}")])]
#[case::one_id_twice(&[
    json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": "{}"}}]),
    json!([{"index": 1, "id": "a", "function": {"name": "run", "arguments": null}}]),
], &[("a", "run", "{}"), ("call_0_2", "run", "")])]
fn calls_in_many_dialects(#[case] pieces: &[Value], #[case] calls: &[(&str, &str, &str)]) {
    let pieces = pieces
        .iter()
        .map(|calls| delta(json!({"tool_calls": calls})));
    let answer = folded(Chat, &pieces.chain([done()]).collect::<Vec<_>>());
    let calls = calls
        .iter()
        .map(|(id, name, input)| Block::Call(call(id, name, input)));
    assert_eq!(answer.blocks, calls.collect::<Vec<_>>());
    assert_eq!(answer.stop, Stop::Tools);
}

#[rstest]
#[case::deepseek(
    &[json!({"reasoning_content": "h"}), json!({"reasoning_content": "m"})],
    r#"{"reasoning_content":"hm"}"#
)]
#[case::ollama(&[json!({"reasoning": "h"}), json!({"reasoning": "m"})], r#"{"reasoning":"hm"}"#)]
#[case::openrouter(
    &[
        json!({"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]}),
        json!({"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}]}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "e"}]}),
    ],
    r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"e"}]}"#
)]
fn thoughts_go_back_under_the_name_they_came_with(#[case] pieces: &[Value], #[case] json: &str) {
    let mut events: Vec<Value> = pieces.iter().cloned().map(delta).collect();
    events.extend([delta(json!({"content": "hi"})), done()]);
    let answer = folded(Chat, &events);
    let thought = Block::Reasoning {
        text: "hm".to_owned(),
        raw: Some(raw("here@house/m", json)),
    };
    assert_eq!(answer.blocks, [thought, Block::Text("hi".to_owned())]);
    let sent = sent(
        Chat,
        &[Turn::Said("go".to_owned()), answered(answer.blocks)],
    );
    let mut expected: Value = serde_json::from_str(json).unwrap_or_default();
    expected["role"] = json!("assistant");
    expected["content"] = json!("hi");
    assert_eq!(sent[1], expected);
}

#[test]
fn tokens_are_counted_or_guessed() {
    let text = delta(json!({"content": "x".repeat(41)}));
    let guessed = folded(Chat, &[text.clone(), done()]).usage;
    assert_eq!((guessed.input, guessed.output), (100, 11));
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 50, "completion_tokens": 5, "cost": 0.0123456,
        "prompt_tokens_details": {"cached_tokens": 40},
    }});
    let counted = folded(Chat, &[text, usage, done()]);
    assert_eq!((counted.usage.input, counted.usage.cache_read), (10, 40));
    assert_eq!(counted.cost, Some(Cost(12_346)));
}

#[test]
fn a_finish_reason_is_an_end_too() {
    let finish = json!({"choices": [{"delta": {"content": [{"type": "text", "text": "hi"}]}, "finish_reason": "length"}]});
    let answer = folded(Chat, &[finish]);
    assert_eq!(
        (answer.stop, answer.blocks),
        (Stop::Length, vec![Block::Text("hi".to_owned())])
    );
    let cut = play(Chat, &[delta(json!({"content": "hi"}))]).ok();
    assert_eq!(cut.map(|fold| fold.is_whole()), Some(false));
}

#[test]
fn an_error_inside_the_stream_is_a_complaint() {
    let error = json!({"error": {"code": 502, "message": "upstream"}, "choices": []});
    let expected = ProviderError {
        status: Some(502),
        message: "upstream".to_owned(),
        ..ProviderError::default()
    };
    assert_eq!(
        play(Chat, &[error]).err(),
        Some(StreamError::Provider(expected))
    );
}

#[rstest]
#[case::both(json!({"choices": [{"delta": {"content": "hi"}, "message": {"content": "hi"}}]}))]
#[case::message(json!({"choices": [{"message": {"content": "hi"}}]}))]
#[case::cost(json!({"choices": [{"delta": {"content": "hi"}}], "usage": {"prompt_tokens": 100, "cost": {"total": 1}}}))]
#[case::usage(json!({"choices": [{"delta": {"content": "hi"}}], "usage": "much"}))]
#[case::details(delta(json!({"content": "hi", "reasoning_details": ["hm"]})))]
#[case::no_details(delta(json!({"content": "hi", "reasoning_details": {"a": 1}})))]
#[case::refusal(delta(json!({"content": "hi", "refusal": false})))]
#[case::thoughts(delta(json!({"content": "hi", "reasoning": {"a": 1}})))]
fn an_odd_field_is_as_good_as_none(#[case] chunk: Value) {
    let answer = folded(Chat, &[chunk, done()]);
    assert_eq!(answer.blocks, [Block::Text("hi".to_owned())]);
    let counted = (answer.stop, answer.usage.input, answer.cost);
    assert_eq!(counted, (Stop::Finished, 100, None));
}

/// An answer with this call, and its result.
fn called(model: &str, blocks: Vec<Block>) -> Vec<Turn> {
    let mut turn = answered(blocks);
    if let Turn::Answered(answer) = &mut turn {
        answer.model = model.into();
    }
    let Turn::Answered(answer) = &turn else {
        return Vec::new();
    };
    let call = answer.calls().next().cloned().expect("a call");
    let outcome = ToolOutcome::Done("ok".to_owned());
    vec![turn, Turn::Result { call, outcome }]
}

#[rstest]
#[case::its_own("house/m", "functions.run:0")]
#[case::of_another_model("house/n", "functions_run_0")]
fn an_id_goes_back_to_where_it_was_made(#[case] model: &str, #[case] id: &str) {
    let run = call("functions.run:0", "run it", "{}");
    let sent = sent(Chat, &called(model, vec![Block::Call(run)]));
    assert_eq!(sent[0]["tool_calls"][0]["id"], json!(id));
    assert_eq!(sent[1]["tool_call_id"], json!(id));
    // Nobody has declared it, so nobody knows whether it would be accepted.
    assert_eq!(
        sent[0]["tool_calls"][0]["function"]["name"],
        json!("run_it")
    );
}

#[test]
fn a_name_that_was_declared_is_good() {
    let tools = [ToolSpec {
        name: "files.read".to_owned(),
        description: String::new(),
        schema: "{}".to_owned(),
    }];
    assert_eq!(name(&call("a", "files.read", "{}"), &tools), "files.read");
}

#[test]
fn what_is_not_known_of_a_call_goes_back_with_it() {
    let signed = json!([
        {"index": 0, "id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"},
         "extra_content": {"google": {"thought_signature": "s1"}}, "odd": null},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "run", "arguments": "{}"}},
    ]);
    let answer = folded(Chat, &[delta(json!({"tool_calls": signed})), done()]);
    assert_eq!(answer.blocks.len(), 3, "{answer:?}");
    let function = json!({"name": "run", "arguments": "{}"});
    let plain = |id: &str| json!({"id": id, "type": "function", "function": function});
    let mut first = plain("a");
    first["extra_content"] = json!({"google": {"thought_signature": "s1"}});
    let back = sent(Chat, &[answered(answer.blocks.clone())]);
    assert_eq!(back[0]["tool_calls"], json!([first, plain("b")]));
    let elsewhere = answer.blocks.into_iter().map(|block| match block {
        Block::Other(mark) => Block::Other(raw("elsewhere@house/m", &mark.json)),
        other => other,
    });
    let there = sent(Chat, &[answered(elsewhere.collect())]);
    assert_eq!(there[0]["tool_calls"], json!([plain("a"), plain("b")]));
}

#[rstest]
#[case("Devstral-small", &["assistant", "tool", "assistant", "user"])]
#[case("mistralai/mixtral", &["assistant", "tool", "assistant", "user"])]
#[case("m", &["assistant", "tool", "user"])]
fn some_want_a_word_of_the_model_between_a_tool_and_the_user(
    #[case] model: &str,
    #[case] roles: &[&str],
) {
    let mut turns = called("house/m", vec![Block::Call(call("a", "run", "{}"))]);
    let body = |turns: &[Turn]| {
        let request = request(turns);
        let question = Question {
            model,
            ..question(&request)
        };
        body(&question).expect("a body")
    };
    let before = body(&turns);
    turns.push(Turn::Said("hurry".to_owned()));
    let after = body(&turns);
    assert!(
        after.starts_with(before.trim_end_matches(['}', ']'])),
        "{after}"
    );
    let json: Value = serde_json::from_str(&after).expect("JSON");
    let messages = json["messages"].as_array().expect("messages");
    let sent: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(sent, roles);
    if roles.len() == 4 {
        assert_eq!(messages[2]["content"], json!("Understood."));
    }
}

#[test]
fn the_sides_take_turns() {
    let run = call("a", "run", "{oops");
    let turns = [
        Turn::Said("one".to_owned()),
        Turn::Said("two".to_owned()),
        answered(vec![Block::Call(run.clone())]),
        Turn::Result {
            call: run,
            outcome: ToolOutcome::Done("ok".to_owned()),
        },
        Turn::Said("three".to_owned()),
    ];
    assert_eq!(
        sent(Chat, &turns),
        json!([
            {"role": "user", "content": "one\n\ntwo"},
            {"role": "assistant", "content": null, "tool_calls": [{
                "id": "a", "type": "function",
                "function": {"name": "run", "arguments": "{\"invalid\":\"{oops\"}"},
            }]},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
            {"role": "user", "content": "three"},
        ])
    );
}

/// Claude's cache has only what ends with a marker; others want plain text.
#[rstest]
#[case::claude("openrouter", "anthropic/claude-sonnet-4.5", json!([
    {"role": "system", "content": [{"type": "text", "text": "terse", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": [
        {"type": "text", "text": "inherited", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "task\n\nhint"},
    ]},
]))]
#[case::another_model("openrouter", "deepseek/deepseek-chat", json!([
    {"role": "system", "content": "terse"},
    {"role": "user", "content": "inherited\n\ntask\n\nhint"},
]))]
fn what_is_inherited_ends_with_a_marker_where_that_is_wanted(
    #[case] provider: &str,
    #[case] model: &str,
    #[case] expected: Value,
) {
    let turns = ["inherited", "task", "hint"].map(|text| Turn::Said(text.to_owned()));
    let request = crate::request::Request {
        system: "terse",
        inherited: 1,
        ..request(&turns)
    };
    let question = Question {
        provider,
        model,
        ..question(&request)
    };
    let body = body(&question).unwrap_or_default();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    assert_eq!(body["messages"], expected);
}
