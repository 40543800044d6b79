//! A large transcript of Claude Code.

use serde_json::{Value, json};

use super::{Random, Shape, parameters, prose, result};
use crate::claude_code::{SESSION, Transcript, call, text, thinking};

/// Claude Code's transcript for a shape. Around what is said there is as much as the real host
/// writes: a result is there twice, for the model and for the screen, and of each request there is
/// a line about it and what it cost.
pub fn transcript(shape: Shape) -> String {
    let mut random = Random(42);
    let mut session = Transcript::new();
    for turn in 0..shape.turns {
        if shape.compacted && turn == shape.turns / 2 {
            session = session.compacted(&prose(&mut random, 4_000), 8);
        }
        let (tool, output) = result(&mut random, shape);
        let id = format!("toolu_{turn:020}");
        let question = prose(&mut random, 200);
        let answer = [
            thinking(&prose(&mut random, 100)),
            text(&prose(&mut random, 120)),
            call(&id, tool, parameters(turn)),
        ];
        session = session
            .line(file_history(turn).to_string())
            .record(prompt(&question, turn))
            .line(request(turn).to_string());
        for (at, block) in answer.into_iter().enumerate() {
            session = session.record(piece(block, turn, at));
        }
        session = session
            .record(tool_result(&id, &output))
            .record(turn_duration(turn))
            .line(last_prompt(&question).to_string());
    }
    session.jsonl()
}

fn prompt(text: &str, turn: usize) -> Value {
    json!({
        "type": "user", "promptId": "26e1c148-69c4-4f94-a22d-57bd47acf3da",
        "message": {"role": "user", "content": text}, "permissionMode": "auto",
        "origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human",
        "turnPosition": {"promptIndex": turn, "turnIndex": turn},
        "entrypoint": "cli", "gitBranch": "master",
    })
}

fn piece(block: Value, turn: usize, at: usize) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": format!("msg_{turn:020}"), "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "content": [block], "stop_reason": "tool_use",
            "stop_sequence": null,
            "usage": {
                "input_tokens": 14277, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": 20,
                "output_tokens_details": {"thinking_tokens": 0},
                "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "service_tier": "standard",
                "cache_creation": {
                    "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0,
                },
                "inference_geo": "", "iterations": [], "speed": "standard",
                "fallback_credit": null,
            },
            "stop_details": null,
        },
        "toolInputStreamMs": 1, "serverClassifierRequest": "a824799b-c3e3-4cfa-8619-7bccc30197dc",
        "apiBlockIndex": at, "requestRef": "c7fdb3d1-1992-46ca-a600-00e0257a57e2",
        "requestedModel": "claude-opus-5-5", "promptCacheRequested": "5m", "effort": "medium",
        "perTurnEffort": "medium", "madeBy": "model", "session_id": SESSION, "entrypoint": "cli",
        "gitBranch": "master",
    })
}

fn tool_result(call: &str, text: &str) -> Value {
    json!({
        "type": "user", "promptId": "26e1c148-69c4-4f94-a22d-57bd47acf3da",
        "message": {"role": "user", "content": [{
            "tool_use_id": call, "type": "tool_result", "content": text, "is_error": false,
        }]},
        "toolUseResult": {
            "stdout": text, "stderr": "", "interrupted": false, "isImage": false,
            "noOutputExpected": false,
        },
        "sandboxed": false, "sourceToolAssistantUUID": "1b2c0909-5412-473b-b5c4-5aa78f880ddd",
        "permissionDecision": {
            "decision": "accept", "source": "config", "reasonType": "subcommandResults",
        },
        "session_id": SESSION, "entrypoint": "cli", "gitBranch": "master",
    })
}

fn turn_duration(turn: usize) -> Value {
    json!({
        "type": "system", "subtype": "turn_duration", "durationMs": 8464, "messageCount": turn,
        "isMeta": false, "entrypoint": "cli", "gitBranch": "master",
    })
}

fn last_prompt(text: &str) -> Value {
    json!({
        "type": "last-prompt", "lastPrompt": text,
        "leafUuid": "2f25306e-4a2a-4f94-b6e4-bc7806259c97", "sessionId": SESSION,
    })
}

fn file_history(turn: usize) -> Value {
    json!({
        "type": "file-history-snapshot", "messageId": format!("{turn:036}"),
        "snapshot": {
            "messageId": format!("{turn:036}"), "trackedFileBackups": {},
            "timestamp": "2026-11-16T16:32:43.587Z",
        },
        "isSnapshotUpdate": false,
    })
}

fn request(turn: usize) -> Value {
    let hash = "5da0a7d2300547e10ec3903baa1fe177a2a464949fe9bc8a83f356fe683a272f";
    let cached = |path: Value| json!({"path": path, "value": {"type": "ephemeral"}});
    json!({
        "type": "api-request", "sessionId": SESSION, "id": "dfcfa2d9-6ac4-4cd8-a0de-182cd53aee7c",
        "timestamp": "2026-11-16T16:32:51.801Z", "version": "2.1.325",
        "querySource": "repl_main_thread", "shapeHash": hash,
        "params": {
            "model": "claude-opus-5-5",
            "betas": [
                "claude-code-20250219", "interleaved-thinking-2025-05-14",
                "context-management-2025-06-27", "per-turn-control-2026-07-01",
                "mid-conversation-tool-changes-2026-07-01", "thinking-token-count-2026-05-13",
                "advanced-tool-use-2025-11-20", "effort-2025-11-24",
                "dangerous-tool-use-2026-09-03", "thinking-display-updates-2026-08-18",
                "afk-mode-2026-01-31",
            ],
            "max_tokens": 128_000, "thinking": {"type": "adaptive", "display": "updates"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "medium"},
        },
        "base": "c7fdb3d1-1992-46ca-a600-00e0257a57e2", "keep": turn, "tail": [hash, hash],
        "cacheControl": [
            cached(json!(["system", 0])), cached(json!(["system", 1])),
            cached(json!(["messages", turn, "content", 0])),
        ],
        "requestDigest": hash,
    })
}
