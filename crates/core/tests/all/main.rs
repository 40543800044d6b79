//! What a user of the fork pipeline would notice, as stories.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

mod agent;
mod asking;
mod configuring;
mod excerpting;
mod forking;
mod generations;
mod hard_sessions;
mod host_names;
mod last_turn;
mod launching;
mod lifecycle;
mod properties;
mod reaching;
mod reading;
mod reading2;
mod reading_claude_code;
mod reading_codex;
mod reading_ends;
mod recorded;
mod rereading;
mod rule_tricks;
mod scheduling;
mod seeds;
mod shown_notices;
mod shown_refusals;
mod shown_tools;
mod similar;
mod skill_loading;
mod skill_tools;
mod skills;
mod spending;
mod tool_set;

use std::error::Error;

use asyncagents_core::{
    fork::{Fork, Limits, Parent, Preset, fork},
    read::{Format, ReadError},
    tokens,
};
use asyncagents_testkit::opencode::{Session, result};
use serde_json::Value;

/// What a child of this session would inherit.
fn forked(session: &Session, limits: &Limits) -> Fork {
    let json = session.json();
    let parent = Parent::new(Format::OpenCode.read(&json).expect("a session"));
    fork(&parent, limits, tokens::o200k).expect("a fork")
}

/// Why something is no saved conversation.
fn refusal(format: Format, json: &str) -> String {
    let error = format.read(json).expect_err("not a session");
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Wherever a saved conversation is cut off, that is what is said of it.
fn assert_truncated_anywhere(format: Format, json: &str) {
    for end in 1..json.len() {
        let error = format.read(&json[..end]).expect_err("cut off");
        assert!(
            matches!(error, ReadError::Truncated { .. }),
            "cut at {end}: {error}"
        );
    }
}

/// Puts fields into an object, in place of those it has.
fn put(object: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().expect("fields") {
        object[key] = value.clone();
    }
}

fn graduated(session: &Session) -> Fork {
    forked(session, &Preset::Graduated.limits())
}

fn flat(session: &Session) -> Fork {
    forked(session, &Preset::Flat.limits())
}

fn with(preset: Preset, settings: &[(&str, usize)]) -> Limits {
    let mut limits = preset.limits();
    for (key, value) in settings {
        limits.set(key, *value).expect("an allowed value");
    }
    limits
}

/// One question, and as many answers as there are results, oldest first.
fn with_results(results: impl IntoIterator<Item = Value>) -> Session {
    results
        .into_iter()
        .fold(Session::new().user("go"), |session, result| {
            session.agent(vec![result])
        })
}

/// `count` reads of `chars` characters each, every one different.
fn reads(count: usize, chars: usize) -> Vec<Value> {
    (0..count).map(|n| result(&filler(n, chars))).collect()
}

/// Text of an exact length that tells which one it is.
fn filler(n: usize, chars: usize) -> String {
    let words = "some words of plain text, naïve 漢, and a line
"
    .chars()
    .cycle();
    let text: String = format!("#{n}# ").chars().chain(words).take(chars).collect();
    assert_eq!(text.chars().count(), chars);
    text
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn first(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

fn last(text: &str, chars: usize) -> String {
    let skip = text.chars().count() - chars;
    text.chars().skip(skip).collect()
}
