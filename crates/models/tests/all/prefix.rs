//! Each request of a conversation repeats the bytes of the one before it: that is what the
//! caches of providers live on.

use asyncagents_core::agent::{ToolOutcome, Turn};
use asyncagents_models::{Request, Wire};
use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use super::{ask, said, scripted, tools};

#[rstest]
#[tokio::test]
async fn requests_share_all_bytes_up_to_the_closing_brackets(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"z": 1, "a": "ü\n"}))
                .and_call("run", json!({}))
                .reasoning("Look first."),
        )
        .rule(
            When::turn(1),
            Reply::text("half").raw_call("run", "{\"z\" : 1.0,\n \"a\":2 }"),
        )
        .rule(When::turn(2), Reply::call("run", json!([1])))
        .rule(When::always(), Reply::text("done"));
    let (server, model) = scripted(wire, script).await;
    let mut turns = vec![said("go")];
    for _ in 0..3 {
        let answer = ask(&model, &turns).await.expect("an answer");
        let calls: Vec<_> = answer.calls().cloned().collect();
        turns.push(Turn::Answered(answer));
        for (number, call) in calls.into_iter().enumerate() {
            let outcome = match number {
                0 => ToolOutcome::Done("{\"fine\": true}".to_owned()),
                _ => ToolOutcome::Unknown,
            };
            turns.push(Turn::Result { call, outcome });
        }
        turns.push(said("and a hint"));
    }
    let last = ask(&model, &turns).await.expect("an end");
    turns.extend([Turn::Answered(last), said("sum up")]);
    let (tools, turns) = (tools(), turns);
    let without_tools = Request {
        system: "You are terse.",
        tools: &tools,
        turns: &turns,
        inherited: 0,
        no_tools: true,
        max_output: None,
        cache_key: "session-1",
        effort: None,
    };
    model
        .ask(&without_tools, &mut |_| {})
        .await
        .expect("a summary");

    let bodies: Vec<String> = server.requests().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies.len(), 5);
    for pair in bodies.windows(2) {
        let shared = pair[0].trim_end_matches(['}', ']', '"']);
        assert!(pair[1].starts_with(shared), "\n{}\n{}", pair[0], pair[1]);
    }
    assert!(bodies[2].contains(r#"{"z" : 1.0,"#) || bodies[2].contains(r#"{\"z\" : 1.0,"#));
}

#[rstest]
#[case(Wire::Anthropic, r#"{"model":"claude-sonnet-4-5","max_tokens":32000,"stream":true,"tools":["#,
    r#"],"system":[{"type":"text","text":"You are terse.","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":[{"type":"text","text":"go"}]}]}"#)]
#[case(Wire::Responses, r#"{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"session-1","max_output_tokens":32000,"tools":["#,
    r#"],"instructions":"You are terse.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}]}"#)]
#[case(Wire::Chat, r#"{"model":"deepseek-chat","stream":true,"stream_options":{"include_usage":true},"max_tokens":8192,"tools":["#,
    r#"],"messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"go"}]}"#)]
#[tokio::test]
async fn the_bytes_of_a_request(#[case] wire: Wire, #[case] head: &str, #[case] tail: &str) {
    let script = Script::new().rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(wire, script).await;
    ask(&model, &[said("go")]).await.expect("an answer");
    let body = server.requests().pop().expect("a request").body;
    assert!(body.starts_with(head), "{body}");
    assert!(body.ends_with(tail), "{body}");
    // The schema is not sorted or shortened.
    assert!(
        body.contains(r#"{"z":{"type":"string"},"a":{"type":"string"}}"#),
        "{body}"
    );
}
