//! For the tests of the protocols.

use asyncagents_core::{
    agent::{Answer, Block, Call, Raw, Stop, Turn, Usage},
    budget::Cost,
};
use serde_json::Value;

use crate::{
    answer_limits::AnswerLimits,
    price::Prices,
    request::{AnswerEvent, Request},
    unwanted::Unwanted,
};

use super::{Fold, Folded, Question, StreamError, Wire};

/// Far more than the tests say, except for those that say too much.
pub(crate) const LIMITS: AnswerLimits = AnswerLimits {
    answer: 100_000,
    arguments: 50_000,
};

/// A fold with nothing in it.
pub(crate) fn empty(wire: Wire) -> Box<dyn Fold> {
    let request = request(&[]);
    wire.fold(&question(&request), 400, LIMITS)
}

/// Plays events into a fold.
pub(crate) fn play(wire: Wire, events: &[Value]) -> Result<Box<dyn Fold>, StreamError> {
    let mut fold = empty(wire);
    for event in events {
        let data = match event {
            Value::String(bare) => bare.clone(),
            json => json.to_string(),
        };
        fold.event(&data, &mut |_: AnswerEvent<'_>| {})?;
    }
    Ok(fold)
}

/// The answer that these events make.
pub(crate) fn folded(wire: Wire, events: &[Value]) -> Folded {
    let fold = play(wire, events).expect("no trouble");
    assert!(fold.is_whole(), "the stream has ended");
    fold.folded().with_distinct_ids(0)
}

/// The messages (or the input) of a request with these turns.
pub(crate) fn sent(wire: Wire, turns: &[Turn]) -> Value {
    let request = request(turns);
    let body = wire.body(&question(&request)).expect("a body");
    let mut body: Value = serde_json::from_str(&body).expect("JSON");
    let name = if wire == Wire::Responses {
        "input"
    } else {
        "messages"
    };
    body[name].take()
}

pub(crate) fn request(turns: &[Turn]) -> Request<'_> {
    Request {
        system: "",
        tools: &[],
        turns,
        inherited: 0,
        no_tools: false,
        max_output: None,
        cache_key: "",
        effort: None,
    }
}

pub(crate) fn question<'a>(request: &'a Request<'a>) -> Question<'a> {
    let prices = Prices::with(None).expect("the table");
    Question {
        provider: "house",
        model: "m",
        origin: "here@house/m",
        figures: prices.figures("house", "m", false),
        unwanted: Unwanted::default(),
        request,
    }
}

pub(crate) fn answered(blocks: Vec<Block>) -> Turn {
    Turn::Answered(Answer {
        model: "house/m".into(),
        blocks,
        stop: Stop::Tools,
        usage: Usage::default(),
        cost: Some(Cost(0)),
    })
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> Call {
    Call {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.to_owned(),
    }
}

pub(crate) fn raw(wire: &str, json: &str) -> Raw {
    Raw {
        wire: wire.to_owned(),
        json: json.to_owned(),
    }
}
