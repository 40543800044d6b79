//! What the server remembers, and how it lives.

use std::time::{Duration, Instant};

use asyncagents_scripted_model::{Fault, Gate, ModelServer, Reply, Script, When, Wire};
use futures_util::future::join_all;
use rstest::rstest;
use serde_json::json;

use crate::client::{ask, body, document, joined, post, request, serving, start, stream};

#[tokio::test]
async fn a_story_over_three_turns_is_told_and_remembered() {
    let script = r#"
        [[rule]]
        turn = 0
        calls = [{ name = "spawn", args = { prompt = "look" }, id = "call_a" }]

        [[rule]]
        turn = 1
        capture.task = "started (task-[0-9]+)"
        text = "Waiting for {{task}}."
        calls = [{ name = "wait", args = { task = "{{task}}" } }]

        [[rule]]
        last = "nothing found"
        text = "Nothing was found."
    "#;
    let server = start(Script::parse(script).expect("a script")).await;
    let mut messages = vec![json!({"role": "user", "content": "find it"})];
    let mut said = Vec::new();
    for result in ["started task-12", "nothing found", ""] {
        let body = json!({
            "model": "m",
            "messages": messages,
            "tools": [{"type": "function", "function": {"name": "spawn"}}],
        });
        let (_, completion) = document(post(&server, Wire::Chat, &body).await).await;
        let message = completion["choices"][0]["message"].clone();
        let call = message["tool_calls"][0].clone();
        said.push((
            message["content"].clone(),
            call["function"]["arguments"].clone(),
        ));
        messages.push(message);
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
    }
    let expected = [
        (json!(null), json!(r#"{"prompt":"look"}"#)),
        (
            json!("Waiting for task-12."),
            json!(r#"{"task":"task-12"}"#),
        ),
        (json!("Nothing was found."), json!(null)),
    ];
    assert_eq!(said, expected);

    let requests = server.requests();
    let turns: Vec<usize> = requests.iter().map(|request| request.turn()).collect();
    assert_eq!(turns, [0, 1, 2]);
    let last = &requests[2];
    assert_eq!((last.wire, last.status), (Wire::Chat, 200));
    assert_eq!(
        (last.model().as_str(), last.last().as_str()),
        ("m", "nothing found")
    );
    assert_eq!(last.tool_names(), ["spawn"]);
    assert!(last.text().contains("find it\nspawn"));
    assert_eq!(last.json()["messages"][1]["tool_calls"][0]["id"], "call_a");
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    assert!(last.headers.contains(&kind));
}

#[tokio::test]
async fn a_request_without_a_rule_is_refused_and_kept() {
    let server = start(Script::new().rule(When::turn(3), Reply::text("late"))).await;
    let (status, error) = ask(&server, Wire::Anthropic).await;
    assert_eq!(status, 400);
    assert_eq!(
        error["error"]["message"],
        "the script has no reply for turn 0, whose newest message is: hello"
    );
    assert_eq!(server.unanswered().len(), 1);
    assert_eq!(server.unanswered()[0].status, 400);
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_kept_as_it_came() {
    let server = serving(Reply::text("ok")).await;
    let sent = request(&server, Wire::Chat, &json!({}))
        .body("{oops")
        .send();
    assert_eq!(sent.await.expect("a response").status(), 400);
    let requests = server.requests();
    assert_eq!(requests[0].body, "{oops");
    assert!(requests[0].json().is_null());
    assert!(server.unanswered().is_empty());
}

#[tokio::test]
async fn waiting_ends_with_the_arrival_that_was_waited_for() {
    let server = serving(Reply::text("ok")).await;
    let asking = async {
        for _ in 0..3 {
            ask(&server, Wire::Responses).await;
        }
    };
    let waiting = server.wait_for(|requests| requests.len() == 3);
    tokio::join!(waiting, asking);
    server
        .wait_for(|requests| requests.iter().all(|request| request.status == 200))
        .await;
}

#[tokio::test]
async fn the_peak_counts_requests_until_their_stream_ends() {
    let server = serving(Reply::fault(Fault::Hang)).await;
    let question = body(Wire::Chat, "hello", true);
    let open = join_all((0..20).map(|_| post(&server, Wire::Chat, &question))).await;
    assert_eq!(server.in_flight_peak(), 20);
    drop(open);
}

#[tokio::test]
async fn a_server_that_forgets_still_counts() {
    let script = Script::new().rule(When::always().times(2), Reply::text("ok"));
    let server = start(script.forget_bodies()).await;
    for _ in 0..3 {
        ask(&server, Wire::Chat).await;
    }
    assert!(server.requests().is_empty());
    assert_eq!(server.counts().requests, 3);
    assert_eq!(server.counts().unanswered, 1);
}

#[tokio::test]
async fn hundreds_of_clients_are_answered_at_once() {
    let server = serving(Reply::text("hello to all of you")).await;
    let answers = join_all((0..300).map(|_| stream(&server, Wire::Anthropic))).await;
    let complete = answers
        .iter()
        .filter(|events| joined(events, "/delta/text") == "hello to all of you");
    assert_eq!(complete.count(), 300);
}

#[tokio::test]
async fn pauses_are_kept() {
    let pause = Duration::from_millis(10);
    let server = serving(Reply::text("a b c d").chunk(2).delay(pause).pace(pause)).await;
    let began = Instant::now();
    let events = stream(&server, Wire::Chat).await;
    let pauses = u32::try_from(events.len()).expect("few events");
    assert!(began.elapsed() >= pause * pauses);
}

#[tokio::test]
async fn a_reply_behind_a_gate_waits_until_it_is_opened() {
    let gate = Gate::closed();
    let server = serving(Reply::text("at last").behind(&gate)).await;
    let opening = async {
        server.wait_for(|requests| requests.len() == 1).await;
        assert_eq!(server.requests()[0].status, 0);
        gate.open();
    };
    let ((status, _), ()) = tokio::join!(ask(&server, Wire::Chat), opening);
    assert_eq!(status, 200);
    assert_eq!(ask(&server, Wire::Chat).await.0, 200, "it stays open");
}

#[rstest]
#[case::before_the_answer(Reply::text("never").behind(&Gate::closed()))]
#[case::in_the_middle_of_it(Reply::fault(Fault::Hang))]
#[tokio::test]
async fn a_request_that_its_client_gives_up_is_in_flight_no_more(#[case] reply: Reply) {
    let server = serving(reply).await;
    tokio::select! {
        _ = stream(&server, Wire::Chat) => unreachable!("nobody answers"),
        () = server.wait_for(|requests| requests.len() == 1) => {}
    }
    let gone = async {
        while server.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(10);
    tokio::time::timeout(patience, gone).await.expect("it goes");
}

#[tokio::test]
async fn a_stopped_server_gives_its_port_back_also_while_a_request_hangs() {
    let server = serving(Reply::fault(Fault::Hang)).await;
    let port = server.url().rsplit(':').next().map(str::parse::<u16>);
    let port = port.expect("a port").expect("a number");
    let open = post(&server, Wire::Chat, &body(Wire::Chat, "hello", true)).await;
    server.stop().await;
    let script = Script::new().rule(When::always(), Reply::text("again"));
    let again = ModelServer::start_on(script, port).await.expect("the port");
    assert_eq!(ask(&again, Wire::Chat).await.0, 200);
    drop(open);
}

#[tokio::test]
async fn a_dropped_server_breaks_its_connections() {
    let server = serving(Reply::fault(Fault::Hang)).await;
    let mut open = post(&server, Wire::Chat, &body(Wire::Chat, "hello", true)).await;
    open.chunk().await.expect("a chunk");
    drop(server);
    open.chunk().await.expect_err("a break");
}

#[tokio::test]
async fn a_capture_that_is_no_expression_keeps_the_server_from_starting() {
    let when = When::always().capture("id", "(");
    let started = ModelServer::start(Script::new().rule(when, Reply::text("ok"))).await;
    let error = started.err().expect("it does not start").to_string();
    assert!(error.contains("`capture.id`"), "{error}");
}
