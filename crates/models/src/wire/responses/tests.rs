//! What is made of streams, and of conversations that are sent back.

use asyncagents_core::agent::{Block, Stop, Turn, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::wire::{
    StreamError,
    Wire::Responses,
    testing::{answered, call, folded, play, raw, sent},
};

fn done(place: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"usage": {
        "input_tokens": 100, "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    }}})
}

#[test]
fn items_are_kept_in_order_and_unknown_ones_as_they_came() {
    let events = [
        json!({"type": "response.a_new_thing", "delta": {"x": 1}}),
        done(
            2,
            json!({"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"}),
        ),
        done(
            0,
            json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e"}),
        ),
        done(1, json!({"type": "hologram", "beam": 1})),
        completed(),
    ];
    let answer = folded(Responses, &events);
    let here = "here@house/m";
    assert_eq!(
        answer.blocks,
        [
            Block::Reasoning {
                text: "hm".to_owned(),
                raw: Some(raw(
                    here,
                    r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"}"#
                )),
            },
            Block::Other(raw(here, r#"{"type":"hologram","beam":1}"#)),
            Block::Call(call("c1", "run", "{}")),
        ]
    );
    let usage = Usage {
        input: 10,
        cache_read: 60,
        cache_write: 30,
        output: 9,
    };
    assert_eq!((answer.stop, answer.usage), (Stop::Tools, usage));
}

#[test]
fn a_thought_that_is_stored_nowhere_and_one_that_leads_nowhere_stay_here() {
    let bare = json!({"type": "reasoning", "id": "r", "summary": []});
    let answer = folded(Responses, &[done(0, bare), completed()]);
    let nothing = Block::Reasoning {
        text: String::new(),
        raw: None,
    };
    assert_eq!(answer.blocks, [nothing]);
    let thought = Block::Reasoning {
        text: String::new(),
        raw: Some(raw("here@house/m", r#"{"type":"reasoning"}"#)),
    };
    let turns = [Turn::Said("go".to_owned()), answered(vec![thought])];
    let go = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
    assert_eq!(sent(Responses, &turns), json!([go]));
}

#[test]
fn a_remark_on_the_way_stays_one() {
    let said = |text: &str| json!([{"type": "output_text", "text": text}]);
    let remark = json!({"type": "message", "phase": "commentary", "content": said("I look.")});
    let run = json!({"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"});
    let events = [done(0, remark), done(1, run.clone()), completed()];
    let answer = folded(Responses, &events);
    assert_eq!(answer.blocks.len(), 3);
    let sent = sent(Responses, &[answered(answer.blocks)]);
    let remark = json!({"type": "message", "role": "assistant", "phase": "commentary", "content": said("I look.")});
    assert_eq!(sent, json!([remark, run]));
}

#[rstest]
#[case::an_object(json!({"arguments": {"x": 1}}), "{\"x\":1}")]
#[case::nothing(json!({"arguments": null}), "")]
#[case::an_odd_neighbour(json!({"arguments": "{}", "id": 7, "summary": "hm"}), "{}")]
fn a_call_is_not_lost(#[case] mut item: Value, #[case] input: &str) {
    item["type"] = json!("function_call");
    item["call_id"] = json!("c");
    item["name"] = json!("run");
    let answer = folded(Responses, &[done(0, item), completed()]);
    assert_eq!(answer.blocks, [Block::Call(call("c", "run", input))]);
}

#[rstest]
#[case("response.incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}}), Stop::Length)]
#[case("response.incomplete", json!({"incomplete_details": {"reason": "content_filter"}}), Stop::Refused)]
#[case("response.completed", json!({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}), Stop::Refused)]
#[case("response.completed", json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "yes"}]}]}), Stop::Finished)]
fn reasons_to_stop(#[case] kind: &str, #[case] response: Value, #[case] stop: Stop) {
    let answer = folded(Responses, &[json!({"type": kind, "response": response})]);
    assert_eq!(answer.stop, stop);
}

#[test]
fn a_failed_response_is_a_complaint() {
    let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let failed = json!({"type": "response.failed", "response": {"error": error}});
    let trouble = play(Responses, &[failed]).err();
    let error = crate::provider_error::ProviderError {
        status: Some(429),
        code: "rate_limit_exceeded".to_owned(),
        message: "slow down".to_owned(),
        retry_delay: None,
    };
    assert_eq!(trouble, Some(StreamError::Provider(error)));
}
