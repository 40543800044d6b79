//! Answers: text, thoughts, calls, tokens and money.

use asyncagents_core::{
    agent::{Block, Stop, ToolOutcome, Turn, Usage},
    budget::Cost,
};
use asyncagents_models::{Models, Request, Wire};
use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use super::{ask, house, listen, said, scripted, tools};

#[rstest]
// In dollars per million: 3 in, 0.30 cached, 15 out; 1.25, 0.125, 10; 0.28, 0.028, 0.42,
// which is 56 + 22.4 + 42.
#[case(Wire::Anthropic, Cost(600 + 240 + 1_500))]
#[case(Wire::Responses, Cost(250 + 100 + 1_000))]
#[case(Wire::Chat, Cost(120))]
#[tokio::test]
async fn an_answer_with_its_bill(#[case] wire: Wire, #[case] cost: Cost) {
    let reply = Reply::text("Hello there, how are you today?")
        .chunk(9)
        .usage(1_000, 800, 100);
    let (_server, model) = scripted(wire, Script::new().rule(When::turn(0), reply)).await;
    let (answer, heard) = listen(&model, &[said("hi")]).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.text(), "Hello there, how are you today?");
    assert_eq!((answer.stop, &answer.model), (Stop::Finished, model.name()));
    assert!(heard.len() > 2, "it comes piece by piece: {heard:?}");
    let usage = Usage {
        input: 200,
        cache_read: 800,
        cache_write: 0,
        output: 100,
    };
    assert_eq!((answer.usage, answer.cost), (usage, Some(cost)));
}

#[rstest]
#[tokio::test]
async fn more_tokens_than_there_can_be_are_not_believed(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let reply = Reply::text("ok").usage(u64::MAX / 4, 0, u64::MAX / 4);
    let (_server, model) = scripted(wire, Script::new().rule(When::turn(0), reply)).await;
    let answer = ask(&model, &[said("hi")]).await.expect("an answer");
    let most = model.window();
    assert_eq!((answer.usage.input, answer.usage.output), (most, most));
}

#[rstest]
#[tokio::test]
async fn two_calls_at_once_and_their_results(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"z": "last", "a": "first"})).and_call("run", json!({})),
        )
        .rule(When::turn(1).last("twice"), Reply::text("done"));
    let (server, model) = scripted(wire, script).await;
    let mut turns = vec![said("go")];
    let (answer, heard) = listen(&model, &turns).await;
    let answer = answer.expect("calls");
    assert_eq!(answer.stop, Stop::Tools);
    assert_eq!(heard, ["call read", "call run"]);
    let calls: Vec<_> = answer.calls().cloned().collect();
    assert_eq!(calls.len(), 2);
    turns.push(Turn::Answered(answer));
    for call in calls {
        let outcome = ToolOutcome::Done("twice".to_owned());
        turns.push(Turn::Result { call, outcome });
    }
    assert_eq!(ask(&model, &turns).await.expect("an end").text(), "done");
    assert!(server.unanswered().is_empty());
}

#[rstest]
#[tokio::test]
async fn a_thought_goes_back_as_it_came(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let thought = "First \"this\",\nthen — that.";
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("run", json!({})).reasoning(thought),
        )
        .rule(When::turn(1), Reply::text("done"));
    let (server, model) = scripted(wire, script).await;
    let mut turns = vec![said("go")];
    let (answer, heard) = listen(&model, &turns).await;
    let answer = answer.expect("a call");
    assert!(
        heard.iter().any(|what| what.starts_with("thought First")),
        "{heard:?}"
    );
    let Some(Block::Reasoning {
        text,
        raw: Some(raw),
    }) = answer.blocks.first().cloned()
    else {
        panic!("no thought in {answer:?}");
    };
    assert_eq!(text, thought);
    let call = answer.calls().next().cloned().expect("a call");
    turns.push(Turn::Answered(answer));
    let outcome = ToolOutcome::Done("ok".to_owned());
    turns.push(Turn::Result { call, outcome });
    ask(&model, &turns).await.expect("an end");
    let body = server.requests().pop().expect("a request").body;
    let json = match wire {
        Wire::Anthropic | Wire::Responses => raw.json.as_str(),
        // There it is a field of the message.
        Wire::Chat => raw.json.trim_start_matches('{').trim_end_matches('}'),
    };
    assert!(body.contains(json), "{json} is not in {body}");
}

#[tokio::test]
async fn another_model_does_not_see_the_thoughts_of_this_one() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("so").reasoning("a secret thought"),
        )
        .rule(When::turn(1), Reply::text("done"));
    let server = ModelServer::start(script).await.expect("a server");
    let (settings, name) = house(Wire::Anthropic, &server.url());
    let models = Models::new(settings).expect("models");
    let one = models.resolve(name).expect("a model");
    let other = models.resolve("opus").expect("another");
    let answer = ask(&one, &[said("go")]).await.expect("an answer");
    let turns = [said("go"), Turn::Answered(answer), said("on")];
    ask(&other, &turns).await.expect("an end");
    let body = server.requests().pop().expect("a request").body;
    assert!(
        !body.contains("a secret thought") && body.contains("so"),
        "{body}"
    );
}

#[rstest]
#[tokio::test]
async fn an_answer_without_content_is_an_answer(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let script = Script::new().rule(When::always(), Reply::fault(Fault::Empty));
    let (_server, model) = scripted(wire, script).await;
    let answer = ask(&model, &[said("hi")]).await.expect("an answer");
    assert_eq!((answer.text().as_str(), answer.stop), ("", Stop::Finished));
}

#[rstest]
#[case("max_tokens", Stop::Length)]
#[case("refusal", Stop::Refused)]
#[tokio::test]
async fn an_answer_may_end_otherwise(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
    #[case] reason: &str,
    #[case] stop: Stop,
) {
    let script = Script::new().rule(When::always(), Reply::text("I").stop(reason));
    let (_server, model) = scripted(wire, script).await;
    assert_eq!(
        ask(&model, &[said("hi")]).await.expect("an answer").stop,
        stop
    );
}

#[rstest]
#[case(Wire::Anthropic, json!({"type": "none"}))]
#[case(Wire::Responses, json!("none"))]
#[case(Wire::Chat, json!("none"))]
#[tokio::test]
async fn tools_that_must_not_be_used_stay_declared(
    #[case] wire: Wire,
    #[case] choice: serde_json::Value,
) {
    let script = Script::new().rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(wire, script).await;
    let (tools, turns) = (tools(), [said("hi")]);
    let request = Request {
        system: "",
        tools: &tools,
        turns: &turns,
        inherited: 0,
        no_tools: true,
        max_output: None,
        cache_key: "k",
        effort: None,
    };
    model.ask(&request, &mut |_| {}).await.expect("an answer");
    let request = server.requests().pop().expect("a request");
    assert_eq!(request.tool_names(), ["read", "run"]);
    assert_eq!(request.json()["tool_choice"], choice);
}
