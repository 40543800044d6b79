//! What a child asks is heard, and answered.

use std::collections::BTreeMap;

use asyncagents_core::{
    lifecycle::Standing,
    port::{Host, HostError},
    question::{Answered, Field, QuestionKind, Reply},
    task::Outcome,
};
use serde_json::json;

use crate::{
    build::{Build, PermissionKey},
    working::{ASK_FORM, ASK_PERMISSION},
    world::World,
};

#[tokio::test(start_paused = true)]
async fn a_permission_is_asked_for_and_given_once() {
    let key = |permission_key| Build {
        permission_key,
        ..Build::measured()
    };
    for build in [
        key(PermissionKey::Reply),
        key(PermissionKey::Decision),
        key(PermissionKey::DecisionOnly),
    ] {
        let mut world = World::new(build);
        let session = world.at_work(ASK_PERMISSION).await;
        let (asked, question) = world.until_asked().await;
        assert_eq!(
            question.text,
            "permission for shell ls\n(always: shell ls *)"
        );
        assert_eq!(question.kind, QuestionKind::Permission);
        let reply = world.host.answer(&session, &asked, Reply::Once).await;
        assert_eq!(reply, Ok(Answered::Taken));
        world.until_idle().await;
        assert_eq!(world.outcome(&session).await, Outcome::Completed);
        let again = world.host.answer(&session, &asked, Reply::Once).await;
        assert_eq!(again, Ok(Answered::NotAsked));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_permits_something_sees_it_or_that_there_is_more() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(ASK_PERMISSION).await;
    world.until_asked().await;
    let harmless: Vec<String> = (0..60)
        .map(|number| format!("touch file{number}"))
        .collect();
    let shown = format!("{}, rm -rf ~", harmless.join(", "));
    let long = "x".repeat(5_000);
    let patch = "--- a.txt\n+++ a.txt\n-two\n+TWO\n";
    for (action, resources, metadata, expected) in [
        (
            "shell",
            json!([harmless.join(", "), "rm -rf ~"]),
            json!(null),
            format!("permission for shell {shown}"),
        ),
        (
            "shell",
            json!([format!("echo {long}; rm -rf ~")]),
            json!(null),
            format!(
                "permission for shell echo {} [… 1015 characters are left out here …] {}; rm -rf ~",
                "x".repeat(1_995),
                "x".repeat(1_990),
            ),
        ),
        (
            "edit",
            json!(["a.txt"]),
            json!({"files": [{"file": "a.txt", "patch": patch}]}),
            format!("permission for edit a.txt\n{}", patch.trim_end()),
        ),
        (
            "edit",
            json!(["a.txt"]),
            json!({"files": 3}),
            "permission for edit a.txt".to_owned(),
        ),
    ] {
        let asked = json!({"id": "per_9", "sessionID": session.as_str(), "action": action,
            "resources": resources, "metadata": metadata});
        world.opencode.emit("permission.asked", asked);
        assert_eq!(world.until_asked().await.1.text, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_missed_is_found() {
    for text in [ASK_PERMISSION, ASK_FORM] {
        let mut world = World::new(Build::measured());
        let session = world.at_work(text).await;
        let (id, question) = world.until_asked().await;
        let world = world.restarted();
        let seen = world.inspect(&session).await;
        assert_eq!(seen.standing, Standing::Working);
        assert_eq!(seen.asking, Some(BTreeMap::from([(id, question)])));
    }
}

#[tokio::test(start_paused = true)]
async fn refused_with_a_text_the_turn_goes_on() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(ASK_PERMISSION).await;
    let (asked, _) = world.until_asked().await;
    let text = Some("use the glob tool".to_owned());
    let reply = world
        .host
        .answer(&session, &asked, Reply::Reject { text })
        .await;
    assert_eq!(reply, Ok(Answered::Taken));
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
    let sent = &world.opencode.sent_to("/reply")[0];
    assert_eq!(sent["message"], json!("use the glob tool"));
}

#[tokio::test(start_paused = true)]
async fn a_form_is_answered_with_values_of_the_kinds_it_wants() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(ASK_FORM).await;
    let (asked, question) = world.until_asked().await;
    let QuestionKind::Form(fields) = question.kind else {
        panic!("a form");
    };
    let colour = Field {
        key: "q0".to_owned(),
        text: "Which colour?".to_owned(),
        options: vec!["red".to_owned(), "blue".to_owned()],
        custom: true,
        multiple: false,
    };
    assert_eq!(fields[0], colour);
    assert!(fields[1].multiple && !fields[1].custom);
    assert!(fields[2].custom && fields[2].options.is_empty());
    assert_eq!(fields[3].options, ["true", "false"]);

    let wrong = [("q9", "red"), ("q2", "many"), ("q3", "perhaps")];
    for (key, value) in wrong {
        let values = Reply::Values(values(&[(key, &[value])]));
        let refused = world.host.answer(&session, &asked, values).await;
        assert!(matches!(refused, Err(HostError::Refused(_))), "{refused:?}");
    }
    let two = Reply::Values(values(&[("q0", &["red", "blue"])]));
    let refused = world.host.answer(&session, &asked, two).await;
    let why = refused.expect_err("one value").to_string();
    assert!(why.contains("`q0` wants one value"), "{why}");

    let given = values(&[
        ("q0", &["green"]),
        ("q1", &["s", "l"]),
        ("q2", &["3"]),
        ("q3", &["true"]),
    ]);
    let reply = world
        .host
        .answer(&session, &asked, Reply::Values(given))
        .await;
    assert_eq!(reply, Ok(Answered::Taken));
    let sent = world.opencode.sent_to("/reply").pop().expect("an answer");
    let expected = json!({"q0": "green", "q1": ["s", "l"], "q2": 3, "q3": true});
    assert_eq!(sent, json!({"answer": expected}));
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_form_that_is_refused_ends_the_turn_unless_a_text_will_do() {
    for build in [Build::measured(), Build::release()] {
        let mut world = World::new(build);
        let session = world.at_work(ASK_FORM).await;
        let (asked, _) = world.until_asked().await;
        let reply = Reply::Reject { text: None };
        let reply = world.host.answer(&session, &asked, reply).await;
        assert_eq!(reply, Ok(Answered::Taken));
        world.until_idle().await;
        let why = "The user dismissed this question".to_owned();
        assert_eq!(world.outcome(&session).await, Outcome::Failed { why });
    }
    let mut world = World::new(Build::measured());
    let session = world.at_work(ASK_FORM).await;
    let (asked, _) = world.until_asked().await;
    let text = Some("decide yourself".to_owned());
    let reply = world
        .host
        .answer(&session, &asked, Reply::Reject { text })
        .await;
    assert_eq!(reply, Ok(Answered::Taken));
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_wrong_kind_is_refused_and_the_question_stays() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(ASK_FORM).await;
    let (asked, _) = world.until_asked().await;
    let refused = world.host.answer(&session, &asked, Reply::Always).await;
    assert!(matches!(refused, Err(HostError::Refused(_))), "{refused:?}");
    let world = world.restarted();
    assert!(
        world
            .inspect(&session)
            .await
            .asking
            .is_some_and(|it| !it.is_empty())
    );
    for unknown in ["per_none", "../x", ""] {
        let answered = world.host.answer(&session, unknown, Reply::Once).await;
        assert_eq!(answered, Ok(Answered::NotAsked), "{unknown}");
    }
}

fn values(given: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let pairs = given.iter();
    pairs
        .map(|(key, values)| ((*key).to_owned(), owned(values)))
        .collect()
}
