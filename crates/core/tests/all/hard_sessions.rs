//! Sessions that would break something less careful.

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    read::Format,
    tokens,
};
use asyncagents_testkit::{
    fuzz::read_and_fork,
    opencode::{Session, result, text, tool},
};
use rstest::rstest;
use serde_json::json;

use super::{chars, flat, forked, graduated};

#[test]
fn a_session_of_zero_messages_is_an_empty_context() {
    for (name, preset) in Preset::ALL {
        let made = forked(&Session::new(), &preset.limits());
        assert_eq!(
            made.context, "<inherited_context>\n\n</inherited_context>",
            "{name}"
        );
        assert_eq!(made.stats.tokens.after, tokens::o200k(&made.context));
    }
}

#[rstest]
#[case::words("word ".repeat(1_000_000))]
#[case::one_word("a".repeat(2_000_000))]
#[case::spaces(" ".repeat(2_000_000) + "x")]
#[case::lines("\n".repeat(2_000_000) + "x")]
#[case::multibyte("漢字🦀".repeat(300_000))]
fn one_giant_message_is_cut_to_fit(#[case] said: String) {
    let session = Session::new().user(&said);
    for (name, made) in [("graduated", graduated(&session)), ("flat", flat(&session))] {
        let fits = name == "flat" && tokens::o200k(&said) < 99_000;
        assert_eq!(made.stats.cut_to_fit.newest, !fits, "{name}");
        assert_eq!(chars(&made.context), made.stats.characters.after);
        assert!(tokens::o200k(&made.context) <= 100_000);
    }
}

#[test]
fn only_tool_calls_and_results_without_text() {
    let session = (0..30).fold(Session::new(), |session, _| {
        session.agent(vec![
            result(""),
            tool("bash", json!(null), ""),
            tool("x", json!([]), ""),
        ])
    });
    let made = graduated(&session);
    assert_eq!(made.stats.results.whole, 90);
    assert!(made.context.starts_with(
        "<inherited_context>\n\nAgent:\n[Tool: read] {\"filePath\":\"a.rs\"}\n[Tool result]\n[Tool: bash] {}\n[Tool result]\n[Tool: x] []\n[Tool result]\n\nAgent:\n"
    ));
}

#[test]
fn a_hundred_thousand_tiny_messages() {
    let one = json!({"info": {"role": "user"}, "parts": [text("x")]}).to_string();
    let json = format!("[{}]", vec![one; 100_000].join(","));
    let parent = Parent::new(Format::OpenCode.read(&json).expect("a session"));
    let made = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    // Each takes "User:\nx\n" and a blank line.
    assert_eq!(made.stats.messages.kept, (200_000 - 41 + 1) / 9);
    assert_eq!(
        made.stats.messages.kept + made.stats.messages.removed,
        100_000
    );
    assert_eq!(chars(&made.context), made.stats.characters.after);
}

#[test]
fn deeply_nested_parameters() {
    let depth = 100_000;
    let input = format!("{}1{}", "{ \"a\": [".repeat(depth), "]}".repeat(depth));
    let json = format!(
        r#"[{{"info":{{"role":"assistant","time":{{"completed":1}}}},"parts":[
            {{"type":"tool","tool":"deep","state":{{"status":"completed","input":{input},"output":"found it"}}}},
            {{"type":"from the future","payload":{input}}}]}}]"#
    );
    let parent = Parent::new(Format::OpenCode.read(&json).expect("a session"));
    let made = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    let preview: String = "{\"a\":[".repeat(depth).chars().take(500).collect();
    assert!(made.context.contains(&format!(
        "[Tool: deep] {preview}...\n[Tool result]\nfound it\n"
    )));
}

#[test]
fn a_session_nested_in_nothing_but_lists_is_refused_without_a_crash() {
    let json = "[".repeat(1_000_000);
    for (name, format) in Format::ALL {
        assert!(format.read(&json).is_err(), "{name}");
    }
}

#[test]
fn what_the_fuzzer_begins_with_keeps_every_promise() {
    for (name, session) in [
        (
            "messages",
            include_str!("../fixtures/opencode/session.messages.json"),
        ),
        (
            "compacted",
            include_str!("../fixtures/opencode/session.messages.compacted.json"),
        ),
        (
            "export",
            include_str!("../fixtures/opencode/session.export.json"),
        ),
        ("example", include_str!("../../../../examples/session.json")),
        (
            "messages of OpenCode 2",
            include_str!("../fixtures/opencode2/session.messages.json"),
        ),
        (
            "compacted by OpenCode 2",
            include_str!("../fixtures/opencode2/session.messages.compacted.json"),
        ),
        (
            "export of OpenCode 2",
            include_str!("../fixtures/opencode2/session.export.json"),
        ),
        (
            "compacted by Claude Code",
            include_str!("../fixtures/claude-code/session.compacted.jsonl"),
        ),
        (
            "session of Claude Code",
            include_str!("../fixtures/claude-code/session.jsonl"),
        ),
        (
            "compacted by Codex",
            include_str!("../fixtures/codex/rollout.compacted.jsonl"),
        ),
    ] {
        for limits in [[0, 5, 32, 16], [1, 10, 128, 64], [2, 0, 255, 255]] {
            let data = [&limits[..], session.as_bytes()].concat();
            println!("{name} {limits:?}");
            read_and_fork(&data);
        }
    }
}
