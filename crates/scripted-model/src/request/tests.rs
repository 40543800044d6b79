use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// The same conversation in each protocol.
fn body(wire: Wire) -> Value {
    let arguments = r#"{"path":"a.rs"}"#;
    match wire {
        Wire::Anthropic => json!({
            "model": "m", "max_tokens": 1, "stream": true, "system": "be brief",
            "tools": [{"name": "read", "input_schema": {}}, {"name": "bash", "input_schema": {}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "reading"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.rs"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "fn main"},
                ]},
            ],
        }),
        Wire::Responses => json!({
            "model": "m", "stream": true, "instructions": "be brief",
            "tools": [{"type": "function", "name": "read"}, {"type": "function", "name": "bash"}],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "message", "role": "assistant",
                 "content": [{"type": "output_text", "text": "reading"}]},
                {"type": "function_call", "call_id": "c1", "name": "read", "arguments": arguments},
                {"type": "function_call_output", "call_id": "c1", "output": "fn main"},
            ],
        }),
        Wire::Chat => json!({
            "model": "m", "stream": true,
            "tools": [
                {"type": "function", "function": {"name": "read"}},
                {"type": "function", "function": {"name": "bash"}},
            ],
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "reading", "reasoning_content": "hm",
                 "tool_calls": [{"id": "c1", "type": "function",
                                 "function": {"name": "read", "arguments": arguments}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "fn main"},
            ],
        }),
        Wire::Gemini => json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "bash"}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "hello"}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true},
                    {"text": "reading"},
                    {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a.rs"}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "read",
                                          "response": {"output": "fn main"}}},
                ]},
            ],
        }),
    }
}

/// What its address says.
fn address(wire: Wire) -> Option<Address> {
    (wire == Wire::Gemini).then(|| Address {
        model: "m".to_owned(),
        stream: true,
    })
}

#[rstest]
fn one_conversation_reads_the_same_in_every_protocol(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let request = Request::read(wire, &body(wire).to_string()).expect("a request");
    let request = request.with_address(address(wire));
    assert_eq!(request.model, "m");
    assert_eq!(request.system(), "be brief");
    assert_eq!(
        request.text(),
        "hello\nreading\nread {\"path\":\"a.rs\"}\nfn main"
    );
    assert_eq!(request.first(), "hello");
    assert_eq!(request.last(), "fn main");
    assert_eq!(request.turn, 1);
    assert_eq!(request.tool_names(), ["read", "bash"]);
    assert!(request.has_tools());
    assert!(request.wants.stream);
}

#[rstest]
#[case::absent(None)]
#[case::null(Some(Value::Null))]
#[case::empty(Some(json!([])))]
fn no_tools_are_no_tools(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
    #[case] tools: Option<Value>,
) {
    let mut body = body(wire);
    body["tools"] = tools.unwrap_or_default();
    let request = Request::read(wire, &body.to_string()).expect("a request");
    assert!(!request.has_tools());
    assert!(request.tool_names().is_empty());
}

#[rstest]
#[case::not_json(Wire::Chat, "hello", 400, "the body is not a request")]
#[case::no_model(Wire::Chat, r#"{"messages": []}"#, 400, "'model'")]
#[case::no_messages(Wire::Chat, r#"{"model": "m"}"#, 400, "'messages'")]
#[case::no_input(Wire::Responses, r#"{"model": "m"}"#, 400, "'input'")]
#[case::nothing_is_stored(
    Wire::Responses,
    r#"{"model": "m", "input": "hi", "previous_response_id": "resp_1"}"#,
    400,
    "'resp_1' not found"
)]
#[case::no_item_is_stored(
    Wire::Responses,
    r#"{"model": "m", "input": [{"type": "item_reference", "id": "rs_1"}]}"#,
    404,
    "'rs_1' not found"
)]
#[case::no_max_tokens(
    Wire::Anthropic,
    r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#,
    400,
    "max_tokens: Field required"
)]
#[case::no_message(
    Wire::Anthropic,
    r#"{"model": "m", "max_tokens": 1, "messages": []}"#,
    400,
    "at least one message"
)]
#[case::no_contents(Wire::Gemini, r#"{"contents": []}"#, 400, "contents is not specified")]
fn a_wrong_request_is_refused(
    #[case] wire: Wire,
    #[case] body: &str,
    #[case] status: u16,
    #[case] message: &str,
) {
    let complaint = Request::read(wire, body).expect_err("it is wrong");
    assert_eq!(complaint.status, status);
    assert!(complaint.message.contains(message), "{complaint:?}");
}
