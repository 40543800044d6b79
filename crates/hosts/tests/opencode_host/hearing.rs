//! What is reported of what happens in OpenCode.

use std::collections::BTreeSet;

use asyncagents_core::{
    budget::{Cost, Spent},
    id::SessionId,
    port::{Report, SessionEvent},
    progress::Observation,
    question::{Field, Question, QuestionKind},
};
use asyncagents_hosts::opencode::EVENTS;
use serde_json::{Value, json};

use crate::{
    message::step_finish,
    world::{World, idle},
};

fn child() -> SessionId {
    "ses_child".into()
}

fn about_child(event: SessionEvent) -> Report {
    Report::Session(child(), event)
}

fn observed(key: &str, what: Observation) -> Report {
    about_child(SessionEvent::Observed {
        key: key.to_owned(),
        what,
    })
}

fn event(kind: &str, properties: Value) -> Value {
    json!({"id": "evt_1", "type": kind, "properties": properties})
}

/// A part has changed.
fn part(mut part: Value) -> Value {
    part["sessionID"] = json!("ses_child");
    part["messageID"] = json!("msg_1");
    event(
        "message.part.updated",
        json!({"sessionID": "ses_child", "part": part, "time": 1}),
    )
}

fn tool(id: &str, status: &str, input: Value) -> Value {
    part(
        json!({"id": id, "type": "tool", "callID": "call_1", "tool": "bash", "state": {
            "status": status, "input": input, "time": {"start": 1},
        }}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_reported_as_it_goes_on_is_one_call() {
    let mut world = World::new();
    let input = json!({"command": "ls", "description": "look"});
    let pending = world.hears(tool("prt_1", "pending", json!({}))).await;
    assert_eq!(pending, about_child(SessionEvent::Alive));
    let mut keys = BTreeSet::new();
    let mut calls = BTreeSet::new();
    for status in ["running", "running", "completed"] {
        let report = world.hears(tool("prt_1", status, input.clone())).await;
        let Report::Session(_, SessionEvent::Observed { key, what }) = report else {
            panic!("{report:?}");
        };
        let Observation::ToolCalled { tool, call } = what else {
            panic!("{what:?}");
        };
        assert_eq!(tool, "bash");
        keys.insert(key);
        calls.insert(call);
    }
    assert_eq!((keys.len(), calls.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_call_again_is_another_call_of_the_same_kind() {
    let mut world = World::new();
    let mut heard = Vec::new();
    for (id, command) in [("prt_1", "ls"), ("prt_2", "ls"), ("prt_3", "pwd")] {
        let call = tool(id, "error", json!({"command": command}));
        let report = world.hears(call).await;
        let Report::Session(_, SessionEvent::Observed { key, what }) = report else {
            panic!("{report:?}");
        };
        let Observation::ToolCalled { call, .. } = what else {
            panic!("{what:?}");
        };
        heard.push((key, call));
    }
    assert_ne!(heard[0].0, heard[1].0);
    assert_eq!(heard[0].1, heard[1].1, "it repeats itself");
    assert_ne!(heard[0].1, heard[2].1);
}

#[tokio::test(start_paused = true)]
async fn what_a_step_used_is_told_at_its_end() {
    let mut world = World::new();
    let mut finish = step_finish();
    finish["id"] = json!("prt_9");
    let what = Observation::Turned(Spent::answer(8_292, Cost(250_000), 0));
    assert_eq!(world.hears(part(finish)).await, observed("prt_9", what));
}

#[tokio::test(start_paused = true)]
async fn words_and_thoughts_are_signs_of_life() {
    let mut world = World::new();
    for alive in [
        part(json!({"id": "prt_1", "type": "text", "text": "la"})),
        part(json!({"id": "prt_1", "type": "reasoning", "text": "hm"})),
        part(json!({"id": "prt_1", "type": "step-start"})),
        part(json!({"id": "prt_1", "type": "a kind of tomorrow", "of": {"any": "shape"}})),
        event(
            "message.updated",
            json!({"info": {"id": "msg_1", "sessionID": "ses_child", "role": "assistant"}}),
        ),
        event(
            "session.status",
            json!({"sessionID": "ses_child", "status": {"type": "busy"}}),
        ),
    ] {
        assert_eq!(world.hears(alive).await, about_child(SessionEvent::Alive));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_for_a_permission_is_heard_and_its_answer() {
    let mut world = World::new();
    let asked = event(
        "permission.asked",
        json!({
            "id": "per_1", "sessionID": "ses_child", "permission": "bash",
            "patterns": ["echo perm", "echo two"], "metadata": {"command": "echo perm"},
            "always": ["echo *"], "tool": {"messageID": "msg_1", "callID": "call_1"},
        }),
    );
    let question = Observation::Asked {
        id: "per_1".to_owned(),
        question: Question::permission(
            "permission for bash echo perm, echo two\n(always: bash echo *, for all sessions of the \
             project)",
        ),
    };
    assert_eq!(world.hears(asked).await, observed("per_1.asked", question));
    let replied = event(
        "permission.replied",
        json!({"sessionID": "ses_child", "requestID": "per_1", "reply": "once"}),
    );
    let answer = Observation::Answered {
        id: "per_1".to_owned(),
    };
    let said = world.hears(replied).await;
    assert_eq!(said, observed("per_1.answered", answer));
}

#[tokio::test(start_paused = true)]
async fn whoever_permits_something_sees_it_or_that_there_is_more() {
    let mut world = World::new();
    let long = format!("{}; rm -rf ~", "x".repeat(5_000));
    for (patterns, expected) in [
        (json!([]), "permission for doom_loop".to_owned()),
        (
            json!([long]),
            format!(
                "permission for doom_loop {} [… 1010 characters are left out here …] {}; rm -rf ~\n\
                 (always: doom_loop *, for all sessions of the project)",
                "x".repeat(2_000),
                "x".repeat(1_990),
            ),
        ),
    ] {
        let always = if patterns == json!([]) {
            json!([])
        } else {
            json!(["*"])
        };
        let asked = event(
            "permission.asked",
            json!({"id": "per_1", "sessionID": "ses_child", "permission": "doom_loop",
                "patterns": patterns, "always": always}),
        );
        let question = Observation::Asked {
            id: "per_1".to_owned(),
            question: Question::permission(expected),
        };
        assert_eq!(world.hears(asked).await, observed("per_1.asked", question));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_to_the_user_is_heard_however_it_ends() {
    let mut world = World::new();
    let asked = event(
        "question.asked",
        json!({
            "id": "que_1", "sessionID": "ses_child", "questions": [
                {"question": "Which one?", "header": "Choice", "custom": false, "options": [
                    {"label": "Red", "description": "as the sun"},
                    {"label": "Blue", "description": "as the sea"},
                ]},
                {"question": "And why?", "header": "Reason", "options": [], "multiple": true},
            ],
        }),
    );
    let question = Observation::Asked {
        id: "que_1".to_owned(),
        question: Question {
            text: "Which one? And why?".to_owned(),
            kind: QuestionKind::Form(vec![
                Field {
                    key: "Choice".to_owned(),
                    text: "Which one?".to_owned(),
                    options: vec!["Red".to_owned(), "Blue".to_owned()],
                    custom: false,
                    multiple: false,
                },
                Field {
                    key: "Reason".to_owned(),
                    text: "And why?".to_owned(),
                    options: Vec::new(),
                    custom: true,
                    multiple: true,
                },
            ]),
        },
    };
    assert_eq!(world.hears(asked).await, observed("que_1.asked", question));
    for end in ["question.replied", "question.rejected"] {
        let ended = event(
            end,
            json!({"sessionID": "ses_child", "requestID": "que_1", "answers": [["a"], ["b"]]}),
        );
        let answer = Observation::Answered {
            id: "que_1".to_owned(),
        };
        let said = world.hears(ended).await;
        assert_eq!(said, observed("que_1.answered", answer));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_deleted_is_reported() {
    let mut world = World::new();
    let info = json!({"id": "ses_child", "title": "child"});
    for properties in [
        json!({"sessionID": "ses_child", "info": info}),
        json!({"info": info}),
    ] {
        let report = world.hears(event("session.deleted", properties)).await;
        assert_eq!(report, about_child(SessionEvent::Deleted));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_or_broken_is_passed_over() {
    let mut world = World::new();
    let next = Report::Session("ses_next".into(), SessionEvent::Idle);
    for ignored in [
        r#"{"type":"server.heartbeat","properties":{}}"#,
        r#"{"type":"session.compacted","properties":{"sessionID":"ses_child"}}"#,
        r#"{"type":"an.event.of.tomorrow","properties":{"sessionID":"ses_child"}}"#,
        r#"{"type":"an.event.of.tomorrow"}"#,
        // What follows it says that it is idle.
        r#"{"type":"session.status","properties":{"sessionID":"ses_child","status":{"type":"idle"}}}"#,
        r#"{"type":"session.status","properties":{"sessionID":"ses_child"}}"#,
        r#"{"type":"session.idle","properties":{}}"#,
        r#"{"type":"session.idle"}"#,
        r#"{"type":"session.error","properties":{"error":{"name":"UnknownError"}}}"#,
        r#"{"type":"message.part.updated","properties":{"part":"no part"}}"#,
        r#"{"type":"message.part.updated","properties":{"part":{"sessionID":"ses_child"}}}"#,
        r#"{"type":"permission.asked","properties":{"sessionID":"ses_child"}}"#,
        r#"{"type":"permission.replied","properties":{"sessionID":"ses_child"}}"#,
        r#"{"properties":{"sessionID":"ses_child"}}"#,
        r#"{"type":7,"properties":{"sessionID":7}}"#,
        r#"["session.idle"]"#,
        r#""session.idle""#,
        "null",
        "7",
    ] {
        assert_eq!(world.hears_past(ignored).await, next, "{ignored}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_events_and_the_end_of_a_connection_are_reported() {
    let mut world = World::new();
    world.opencode.loses_events();
    assert_eq!(world.next().await, Report::Missed);
    world.opencode.emit(&idle(&child()).to_string());
    world.opencode.hangs_up();
    assert_eq!(world.next().await, about_child(SessionEvent::Idle));
    assert!(world.is_over().await);
}

/// The events of an evening with the real one, as they came.
fn recorded() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("events.sse").lines();
    lines.filter_map(|line| line.strip_prefix("data: "))
}

#[tokio::test(start_paused = true)]
async fn the_recorded_events_of_a_session_mean_what_happened() {
    let mut world = World::new();
    recorded().for_each(|event| world.opencode.emit(event));
    world.opencode.hangs_up();
    let asked = |id: &str, question: &str| SessionEvent::Observed {
        key: format!("{id}.asked"),
        what: Observation::Asked {
            id: id.to_owned(),
            question: Question::permission(question),
        },
    };
    let permission = |what: &str| {
        let always = "always: bash echo *, for all sessions of the project";
        format!("permission for bash {what}\n({always})")
    };
    let answered = |id: &str| SessionEvent::Observed {
        key: format!("{id}.answered"),
        what: Observation::Answered { id: id.to_owned() },
    };
    let [first, second] = [
        "per_1e079bc2d0016Fmgk6tVBojP6J",
        "per_1e079c84b001lorzu1pqcNOT3r",
    ];
    let (parent, child, other) = (
        "ses_e1f89098cffeyOhXrADvh1ZfMG",
        "ses_e1f864576ffeipYN5qYLNeO2nK",
        "ses_e1f861b6fffeimt4gcQAyAgB7P",
    );
    let expected = [
        // At work, then stopped by the user, then a compaction that failed.
        (parent, SessionEvent::Idle),
        (parent, SessionEvent::Idle),
        (parent, SessionEvent::Idle),
        (parent, SessionEvent::Idle),
        (child, asked(first, &permission("echo perm"))),
        (child, answered(first)),
        (child, asked(second, &permission("echo two"))),
        (child, answered(second)),
        (child, SessionEvent::Deleted),
        (other, SessionEvent::Deleted),
    ];
    let mut alive = 0;
    for (session, event) in expected {
        let expected = Report::Session(session.into(), event);
        loop {
            match world.next().await {
                Report::Session(_, SessionEvent::Alive) => alive += 1,
                report => break assert_eq!(report, expected),
            }
        }
    }
    assert!(world.is_over().await);
    assert!(alive > 5, "{alive} signs of life");
}

#[test]
fn every_event_that_is_understood_is_asked_for() {
    let known: BTreeSet<&str> = EVENTS.iter().copied().collect();
    for kind in [
        "session.status",
        "session.idle",
        "session.error",
        "session.deleted",
        "message.updated",
        "message.part.updated",
        "message.part.delta",
        "permission.asked",
        "permission.replied",
        "question.asked",
        "question.replied",
        "question.rejected",
    ] {
        assert!(known.contains(kind), "{kind}");
    }
}
