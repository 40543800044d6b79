//! Sessions recorded from the real OpenCode, and written in the shapes of the real Claude Code and
//! Codex, and what a child inherits of them.

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    read::Format,
    tokens,
};
use rstest::rstest;

#[rstest]
#[case::messages("messages", include_str!("../fixtures/opencode/session.messages.json"))]
#[case::compacted("compacted", include_str!("../fixtures/opencode/session.messages.compacted.json"))]
#[case::autocompacted("autocompacted", include_str!("../fixtures/opencode/session.messages.autocompaction.json"))]
#[case::after_abort("after_abort", include_str!("../fixtures/opencode/messages.after_abort.json"))]
fn recorded_sessions_fork_to_what_was_reviewed(#[case] name: &str, #[case] json: &str) {
    reviewed(name, Format::OpenCode, json);
}

#[rstest]
#[case::messages("messages2", include_str!("../fixtures/opencode2/session.messages.json"))]
#[case::compacted("compacted2", include_str!("../fixtures/opencode2/session.messages.compacted.json"))]
#[case::autocompacted("autocompacted2", include_str!("../fixtures/opencode2/session.messages.autocompaction.json"))]
#[case::subagent("subagent2", include_str!("../fixtures/opencode2/session.messages.subagent.json"))]
#[case::running("running2", include_str!("../fixtures/opencode2/session.messages.running.json"))]
#[case::interrupted("interrupted2", include_str!("../fixtures/opencode2/session.messages.interrupted.json"))]
#[case::export("export2", include_str!("../fixtures/opencode2/session.export.json"))]
fn recorded_sessions_of_opencode_2_do_too(#[case] name: &str, #[case] json: &str) {
    reviewed(name, Format::OpenCode2, json);
}

#[rstest]
#[case::session("claude_code", include_str!("../fixtures/claude-code/session.jsonl"))]
#[case::compacted("claude_code_compacted", include_str!("../fixtures/claude-code/session.compacted.jsonl"))]
#[case::rewound("claude_code_rewound", include_str!("../fixtures/claude-code/session.rewound.jsonl"))]
#[case::resumed("claude_code_resumed", include_str!("../fixtures/claude-code/session.resumed.jsonl"))]
#[case::subagent("claude_code_subagent", include_str!("../fixtures/claude-code/subagent.jsonl"))]
fn sessions_of_claude_code_do_too(#[case] name: &str, #[case] jsonl: &str) {
    reviewed(name, Format::ClaudeCode, jsonl);
}

#[rstest]
#[case::thread("codex", include_str!("../fixtures/codex/rollout.jsonl"))]
#[case::compacted("codex_compacted", include_str!("../fixtures/codex/rollout.compacted.jsonl"))]
#[case::subagent("codex_subagent", include_str!("../fixtures/codex/rollout.subagent.jsonl"))]
fn threads_of_codex_do_too(#[case] name: &str, #[case] jsonl: &str) {
    reviewed(name, Format::Codex, jsonl);
}

fn reviewed(name: &str, format: Format, json: &str) {
    let parent = Parent::new(format.read(json).expect("a session"));
    let made = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    let stats = serde_json::to_string_pretty(&made.stats).expect("JSON");
    insta::assert_snapshot!(
        name,
        format!("{}\n\n{}\n\n{stats}", made.preamble, made.context)
    );
}

#[test]
fn tool_output_of_a_recorded_session_is_in_the_context() {
    let json = include_str!("../fixtures/opencode/session.messages.json");
    let parent = Parent::new(Format::OpenCode.read(json).expect("a session"));
    for (name, preset) in Preset::ALL {
        let context = fork(&parent, &preset.limits(), tokens::o200k)
            .expect(name)
            .context;
        assert!(
            context.contains("]\nhi\n[Tool: todowrite]"),
            "{name}: the output of `echo hi`"
        );
        assert!(
            context.contains("\"content\": \"a\",\n    \"status\": \"in_progress\""),
            "{name}: the to-do list"
        );
    }
}
