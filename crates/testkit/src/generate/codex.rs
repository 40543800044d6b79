//! A large rollout of Codex.

use serde_json::{Value, json};

use super::{Random, Shape, parameters, prose, result};
use crate::codex::{Rollout, THREAD};

const TURN: &str = "01a1e536-d06a-7161-b5db-e91ed3ad8958";
/// A tool of an MCP server. The others are commands.
const OF_MCP: &str = "webfetch";

/// Codex's rollout for a shape. Around what is said there is as much as the real host writes: the
/// settings of each turn, tokens, and messages and results of MCP tools once more as events.
pub fn rollout(shape: Shape) -> String {
    let mut random = Random(42);
    let mut thread = Rollout::new();
    for turn in 0..shape.turns {
        if shape.compacted && turn == shape.turns / 2 {
            let kept = prose(&mut random, 200);
            thread = thread.compacted(&prose(&mut random, 4_000), &[&kept]);
        }
        let (tool, output) = result(&mut random, shape);
        let id = format!("call_{turn:020}");
        let (question, words) = (prose(&mut random, 200), prose(&mut random, 120));
        thread = thread
            .event(task_started())
            .line("turn_context", turn_context())
            .item(message("user", "input_text", "user.text", &question))
            .event(completed(json!({
                "type": "UserMessage", "id": format!("{turn:036}"), "client_id": format!("{turn:036}"),
                "content": [{"type": "text", "text": question, "text_elements": []}],
            })))
            .reasoning(&prose(&mut random, 100))
            .event(completed(json!({
                "type": "AgentMessage", "id": format!("msg_{turn:020}"),
                "content": [{"type": "Text", "text": words}],
            })))
            .item(message("assistant", "output_text", "unknown", &words))
            .item(call(&id, tool, turn))
            .line("token_usage_record", token_usage());
        if tool == OF_MCP {
            thread = thread.event(completed(mcp_call(&id, tool, turn, &output)));
        }
        thread = thread
            .item(call_output(&id, tool, &output))
            .event(token_count())
            .event(task_complete(&words));
    }
    thread.jsonl()
}

fn message(role: &str, content_type: &str, kind: &str, text: &str) -> Value {
    json!({
        "type": "message", "id": "msg_01a1e536-d124-7c11-a64a-75f83f895594", "role": role,
        "content": [{"type": content_type, "text": text}],
        "internal_chat_message_metadata_passthrough": {
            "turn_id": TURN, "create_time": 1_794_846_937.380_282_2, "content_item_kinds": [kind],
            "content_item_metadata": [{"provenance": {"type": role}}],
        },
    })
}

fn call(id: &str, tool: &str, turn: usize) -> Value {
    json!({
        "type": "function_call", "status": "completed", "id": format!("fc_{id}"), "name": tool,
        "arguments": parameters(turn).to_string(), "call_id": id,
        "internal_chat_message_metadata_passthrough": {"turn_id": TURN},
    })
}

/// What a command has printed is a text, what an MCP tool has answered a list of them.
fn call_output(id: &str, tool: &str, text: &str) -> Value {
    let output = if tool == OF_MCP {
        json!([
            {"type": "input_text", "text": "Wall time: 29.2584 seconds\nOutput:"},
            {"type": "input_text", "text": text},
        ])
    } else {
        json!(text)
    };
    json!({
        "type": "function_call_output", "id": format!("fco_{id}"), "call_id": id,
        "output": output,
        "internal_chat_message_metadata_passthrough": {
            "turn_id": TURN, "create_time": 1_794_846_966.835_321,
        },
    })
}

fn mcp_call(id: &str, tool: &str, turn: usize, text: &str) -> Value {
    json!({
        "type": "McpToolCall", "id": id, "server": "web", "tool": tool,
        "arguments": parameters(turn), "status": "completed",
        "result": {"content": [{"type": "text", "text": text}]},
        "duration": {"secs": 4, "nanos": 3_999_754},
    })
}

fn completed(item: Value) -> Value {
    json!({
        "type": "item_completed", "thread_id": THREAD, "turn_id": TURN, "item": item,
        "started_at_ms": 1_794_846_937_382_u64, "completed_at_ms": 1_794_846_937_382_u64,
    })
}

fn task_started() -> Value {
    json!({
        "type": "task_started",
        "turn_attribution": {
            "turn_id": TURN, "turn_trigger": "user", "parent_turn_id": null,
            "initiating_agent_path": null, "root_turn_id": TURN,
        },
        "turn_id": TURN, "root_turn_id": TURN, "started_at": 1_794_846_937,
        "model_context_window": 258_400, "collaboration_mode_kind": "default",
    })
}

fn task_complete(words: &str) -> Value {
    json!({
        "type": "task_complete", "root_turn_id": TURN, "turn_id": TURN,
        "last_agent_message": words, "started_at": 1_794_846_937, "completed_at": 1_794_846_966,
        "duration_ms": 29733, "time_to_first_token_ms": 228,
    })
}

fn turn_context() -> Value {
    let special =
        |kind| json!({"path": {"type": "special", "value": {"kind": kind}}, "access": "write"});
    let folder = |path| {
        json!({
            "path": {"type": "path", "path": path}, "access": "read",
            "missing_path_behavior": "skip",
        })
    };
    let entries = json!([
        special("root"),
        special("slash_tmp"),
        special("tmpdir"),
        folder("/project"),
        folder("/project/.git"),
        folder("/project/.agents"),
        folder("/project/.codex"),
        folder("/project/.aws"),
    ]);
    json!({
        "turn_id": TURN, "root_turn_id": TURN, "disabled_plugin_ids": [], "cwd": "/project",
        "approval_policy": "on-request", "approvals_reviewer": "user",
        "sandbox_policy": {
            "type": "workspace-write", "network_access": false, "exclude_tmpdir_env_var": false,
            "exclude_slash_tmp": false,
        },
        "permission_profile": {
            "type": "managed", "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "active_permission_profile": {"id": ":workspace"},
        "file_system_sandbox_policy": {"kind": "restricted", "entries": entries},
        "model": "gpt-5.5", "comp_hash": "2911",
        "collaboration_mode": {"mode": "default", "settings": {
            "model": "gpt-5.5", "reasoning_effort": null,
            "developer_instructions": "# Collaboration Mode: Default\n\n".repeat(40),
        }},
        "multi_agent_version": "v1", "realtime_active": false, "summary": "none",
    })
}

fn tokens() -> Value {
    json!({
        "input_tokens": 11521, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
        "output_tokens": 20, "reasoning_output_tokens": 0, "total_tokens": 11541,
    })
}

fn token_usage() -> Value {
    json!({
        "thread_id": THREAD, "turn_id": TURN, "session_id": THREAD, "root_turn_id": TURN,
        "response_id": "resp_c59ea76d49444a60a504", "usage": tokens(),
        "turn_token_usage": tokens(), "thread_token_usage": tokens(),
    })
}

fn token_count() -> Value {
    json!({
        "type": "token_count",
        "info": {
            "total_token_usage": tokens(), "last_token_usage": tokens(),
            "last_usage_includes_reasoning": false, "model_context_window": 258_400,
        },
        "rate_limits": {
            "limit_id": "codex", "limit_name": null, "primary": null, "secondary": null,
            "credits": null, "individual_limit": null, "spend_control_reached": null,
            "plan_type": null, "rate_limit_reached_type": null,
        },
    })
}
