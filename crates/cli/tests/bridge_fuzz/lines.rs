//! Lines that no plugin would write.

use fastrand::Rng;
use serde_json::{Value, json};

/// The kinds of events that the bridge reads, and some that it does not.
const KINDS: &[&str] = &[
    "session.status",
    "session.idle",
    "session.error",
    "message.updated",
    "message.part.updated",
    "message.part.delta",
    "permission.asked",
    "permission.replied",
    "question.asked",
    "question.replied",
    "question.rejected",
    "session.created",
    "",
    "\u{0}",
    "session.deleted",
];

/// One of several.
pub(crate) fn one<'l, T: ?Sized>(rng: &mut Rng, of: &[&'l T]) -> &'l T {
    of[rng.usize(..of.len())]
}

/// An event of any kind about one of these sessions, or about one that nobody knows.
pub(crate) fn event(rng: &mut Rng, folder: &str, sessions: &[String]) -> Value {
    let unknown = format!("ses_{:x}", rng.u64(..));
    let session = match rng.u8(..3) {
        0 => unknown,
        1 => "nonsense/../x".to_owned(),
        _ => rng.choice(sessions).cloned().unwrap_or(unknown),
    };
    let mut kind = one(rng, KINDS);
    // A parent that is deleted takes its tasks along, which is right, and a pity here.
    if kind == "session.deleted" && sessions.first() == Some(&session) {
        kind = "session.idle";
    }
    let part = json!({
        "id": format!("prt_{}", rng.u8(..)), "sessionID": session, "messageID": "msg_1",
        "type": one(rng, &["text", "tool", "step-finish", "step-start", "x"]),
        "text": "x", "tool": "bash", "cost": rng.f64() * 1e3,
        "state": {"status": one(rng, &["pending", "running", "completed", "error", "x"]), "input": {"a": 1}},
        "tokens": {"input": rng.u32(..), "output": -1, "cache": {"read": null, "write": 1e300}},
    });
    let properties = json!({
        "sessionID": session, "part": part, "info": {"id": session, "sessionID": session},
        "status": {"type": one(rng, &["busy", "idle", "retry", "x"])},
        "error": {"name": one(rng, &["MessageAbortedError", "UnknownError"]), "data": {"message": "x"}},
        "id": "per_1", "requestID": "per_1", "permission": "bash", "patterns": ["*"],
        "questions": [{"question": "x"}], "delta": "x",
    });
    let happened = json!({"directory": folder, "event": {"type": kind, "properties": properties}});
    json!({"method": "event", "params": happened})
}

/// A value where something else is expected.
pub(crate) fn odd(rng: &mut Rng) -> Value {
    match rng.u8(..10) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(-1),
        4 => json!(1e308),
        5 => json!(""),
        6 => json!("\u{0}\u{202e}\u{feff}x\n\r"),
        7 => json!([]),
        8 => json!({}),
        _ => json!("x".repeat(rng.usize(..3000))),
    }
}

/// Changes one value somewhere inside, or takes it away.
pub(crate) fn warp(rng: &mut Rng, value: &mut Value) {
    let deeper = rng.u8(..4) > 0;
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let key = fields.keys().nth(rng.usize(..fields.len())).cloned();
            let key = key.unwrap_or_default();
            match rng.u8(..6) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert(format!("{key}{}", rng.u8(..)), odd(rng))),
                _ => warp(rng, &mut fields[&key]),
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = rng.usize(..items.len());
            warp(rng, &mut items[at]);
        }
        other => *other = odd(rng),
    }
}

/// Changes the bytes of a line.
pub(crate) fn damage(rng: &mut Rng, line: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..=line.len());
        match rng.u8(..6) {
            0 => line.truncate(at),
            1 => line.insert(at, rng.u8(..)),
            2 | 3 => line.extend_from_within(at..),
            4 => drop(line.drain(..at)),
            _ => {
                if let Some(byte) = line.get_mut(at) {
                    *byte ^= 1 << rng.u8(..8);
                }
            }
        }
    }
    // The last byte ends it; others would make more lines of it, which is fine too.
    line.truncate(1 << 20);
}

/// Bytes that are no message at all.
pub(crate) fn garbage(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..7) {
        0 => (0..rng.usize(..2000)).map(|_| rng.u8(..)).collect(),
        1 => "[".repeat(rng.usize(1..100_000)).into_bytes(),
        2 => r#"{"params":"#.repeat(rng.usize(1..20_000)).into_bytes(),
        3 => vec![0xff; rng.usize(1..100)],
        4 => vec![b' '; rng.usize(..5000)],
        5 => odd(rng).to_string().into_bytes(),
        _ => br#"{"id":1,"id":2,"method":"hello","method":"call","params":null}"#.to_vec(),
    }
}
