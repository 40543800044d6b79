//! Large sessions for benchmarks: the same shape, the same bytes, every time.

mod claude_code;
mod codex;

use std::fmt::Write;

pub use claude_code::transcript;
pub use codex::rollout;

use serde_json::{Value, json};

/// What a generated session looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Questions of the user; each gets one answer with one tool result.
    pub turns: usize,
    /// Shortest and longest result, in bytes (nearly).
    pub result_bytes: (usize, usize),
    /// Whether the conversation was compacted half way.
    pub compacted: bool,
}

/// The sessions of the benchmark: name and shape.
pub const BENCHMARK: [(&str, Shape); 4] = [
    (
        "a",
        Shape {
            turns: 100,
            result_bytes: (2_000, 20_000),
            compacted: false,
        },
    ),
    (
        "b",
        Shape {
            turns: 1_000,
            result_bytes: (2_000, 20_000),
            compacted: false,
        },
    ),
    (
        "c",
        Shape {
            turns: 10_000,
            result_bytes: (8_000, 12_000),
            compacted: true,
        },
    ),
    (
        "d",
        Shape {
            turns: 10_000,
            result_bytes: (8_000, 12_000),
            compacted: false,
        },
    ),
];

/// OpenCode's message list for a shape, as JSON text.
pub fn session(shape: Shape) -> String {
    let mut random = Random(42);
    let mut json = String::from("[");
    for turn in 0..shape.turns {
        if shape.compacted && turn == shape.turns / 2 {
            push(
                &mut json,
                &message(
                    format!("msg_{turn}c"),
                    "user",
                    json!([{"type": "compaction", "auto": true}]),
                ),
            );
            let mut summary = message(
                format!("msg_{turn}s"),
                "assistant",
                json!([{"type": "text", "text": prose(&mut random, 4_000)}]),
            );
            summary["info"]["parentID"] = json!(format!("msg_{turn}c"));
            summary["info"]["summary"] = json!(true);
            push(&mut json, &summary);
        }
        let question = prose(&mut random, 200);
        push(
            &mut json,
            &message(
                format!("msg_{turn}u"),
                "user",
                json!([{"id": "prt_1", "type": "text", "text": question}]),
            ),
        );
        push(&mut json, &answer(&mut random, shape, turn));
    }
    json.push(']');
    json
}

fn parameters(turn: usize) -> Value {
    json!({"filePath": format!("src/module_{turn}/handler.rs"), "offset": turn})
}

/// What a tool answers, and which tool it is.
fn result(random: &mut Random, shape: Shape) -> (&'static str, String) {
    let (shortest, longest) = shape.result_bytes;
    let bytes = shortest + random.below(longest - shortest + 1);
    match random.below(4) {
        0 => ("bash", log(random, bytes)),
        1 => ("webfetch", prose(random, bytes)),
        _ => ("read", code(random, bytes)),
    }
}

fn answer(random: &mut Random, shape: Shape, turn: usize) -> Value {
    let (tool, output) = result(random, shape);
    let parts = json!([
        {"id": "prt_2", "type": "step-start", "snapshot": "4512e8bf3c75e305def26f63787edfa3f2faca20"},
        {"id": "prt_3", "type": "reasoning", "text": prose(random, 100), "time": {"start": 1, "end": 2}},
        {"id": "prt_4", "type": "text", "text": prose(random, 120), "time": {"start": 1, "end": 2}},
        {"id": "prt_5", "type": "tool", "callID": format!("call_{turn}"), "tool": tool, "state": {
            "status": "completed",
            "input": parameters(turn),
            "output": output, "title": tool, "metadata": {"truncated": false},
            "time": {"start": 1, "end": 2}}},
        {"id": "prt_6", "type": "step-finish", "reason": "tool-calls", "cost": 0,
            "tokens": {"total": 8132, "input": 8124, "output": 8, "reasoning": 0}},
    ]);
    message(format!("msg_{turn}a"), "assistant", parts)
}

fn message(id: String, role: &str, parts: Value) -> Value {
    json!({
        "info": {
            "id": id, "sessionID": "ses_e1f89098cffeyOhXrADvh1ZfMG", "role": role,
            "time": {"created": 1_794_767_255_706_u64, "completed": 1_794_767_260_031_u64},
            "agent": "build", "modelID": "fake-1", "providerID": "fake", "finish": "stop",
            "path": {"cwd": "/home/user/project", "root": "/home/user/project"},
        },
        "parts": parts,
    })
}

fn push(json: &mut String, message: &Value) {
    if json.len() > 1 {
        json.push(',');
    }
    // Writing to a string cannot fail.
    let _ = write!(json, "{message}");
}

/// Lines of source text.
fn code(random: &mut Random, bytes: usize) -> String {
    lines(random, bytes, |random, line, at| {
        let indent = " ".repeat(4 * random.below(4));
        let (a, b) = (random.pick(WORDS), random.pick(WORDS));
        let _ = match random.below(4) {
            0 => writeln!(
                line,
                "{at:>5}| {indent}let {a} = self.{b}(&{a}, {})?;",
                random.below(999)
            ),
            1 => writeln!(
                line,
                "{at:>5}| {indent}// {a} {b}: naïve, see “{}”",
                random.pick(FOREIGN)
            ),
            2 => writeln!(
                line,
                "{at:>5}| {indent}if {a}.len() > {} {{ return {b}; }}",
                random.below(99)
            ),
            _ => writeln!(
                line,
                "{at:>5}| {indent}pub fn {a}_{b}(&self) -> Result<{b}> {{"
            ),
        };
    })
}

/// Lines of a test run, some of them failures.
fn log(random: &mut Random, bytes: usize) -> String {
    lines(random, bytes, |random, line, at| {
        let (a, b) = (random.pick(WORDS), random.pick(WORDS));
        let _ = match random.below(50) {
            0 => writeln!(line, "test {a}::{b} ... FAILED: assertion failed at {at}"),
            _ => writeln!(line, "test {a}::{b} ... ok ({} µs) ✓", random.below(9_999)),
        };
    })
}

/// Sentences in several scripts.
fn prose(random: &mut Random, bytes: usize) -> String {
    lines(random, bytes, |random, line, _| {
        for _ in 0..4 + random.below(9) {
            let words = if random.below(3) == 0 { FOREIGN } else { WORDS };
            line.push_str(random.pick(words));
            line.push(' ');
        }
        line.push_str("→ 🚀.\n");
    })
}

fn lines(
    random: &mut Random,
    bytes: usize,
    line: impl Fn(&mut Random, &mut String, usize),
) -> String {
    let mut text = String::with_capacity(bytes + 200);
    let mut at = 1;
    while text.len() < bytes {
        line(random, &mut text, at);
        at += 1;
    }
    text
}

const WORDS: &[&str] = &[
    "session", "login", "token", "cache", "query", "handler", "parse", "index", "request",
    "timeout", "schema", "worker", "buffer", "cursor", "commit", "lease", "journal", "budget",
];
const FOREIGN: &[&str] = &[
    "überprüfen",
    "façade",
    "данные",
    "запрос",
    "漢字",
    "テスト",
    "会話",
    "한국어",
    "αβγ",
    "señal",
    "👩‍💻",
    "𝔘𝔫𝔦",
];

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }
}
