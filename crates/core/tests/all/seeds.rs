//! The scenarios of the original requirements. The name says which seed and scenario.
//! What they say about launching, refusing and listing tasks is tested with the runtime.

use asyncagents_core::tokens;
use asyncagents_testkit::opencode::{Session, result, text, tool, tool_cleared, tool_error};
use rstest::rstest;
use serde_json::json;

use super::{chars, filler, first, flat, graduated, last, reads, with_results};

#[test]
fn seed_000_launch_forked_background_task_processes_the_context_and_writes_the_preamble() {
    let made = flat(&with_results(reads(2, 2_000)));
    assert!(made.context.starts_with("<inherited_context>\n"));
    assert!(made.context.contains("...[truncated 500 of 2000 chars]..."));
    assert!(made.preamble.contains("2 cut to 1,500 characters"));
}

#[test]
fn seed_000_fork_with_context_truncation() {
    let long = filler(0, 1_501);
    let fits = filler(1, 1_500);
    let session = with_results([
        tool("read", json!({"filePath": "src/auth.rs"}), &long),
        tool("read", json!({"filePath": "src/main.rs"}), &fits),
    ]);
    let context = flat(&session).context;
    let cut = format!(
        "{}\n...[truncated 1 of 1501 chars]...\n",
        first(&long, 1_500)
    );
    assert!(context.contains(&cut), "cut, with the original length");
    assert!(
        context.contains(&fits),
        "1,500 characters are not more than 1,500"
    );
    assert!(
        context.contains("[Tool: read] {\"filePath\":\"src/auth.rs\"}\n[Tool result call_read]\n")
    );
}

#[test]
fn seed_000_fork_with_token_limit_enforcement() {
    // Some 2,500 tokens to a message: forty would be enough.
    let question = |n: usize| format!("question {n} {}", "一二三四五六七八九十 ".repeat(250));
    let session = (0..60).fold(Session::new(), |session, n| session.user(&question(n)));
    let made = flat(&session);
    let tokens = tokens::o200k(&made.context);
    assert!((90_000..=100_000).contains(&tokens), "{tokens}");
    assert!(made.stats.messages.removed > 0);
    assert!(made.context.contains("question 59 "), "the newest is kept");
    assert!(!made.context.contains("question 0 "), "the oldest is not");
}

#[test]
fn seed_000_fork_context_role_label_format() {
    let session = Session::new()
        .user("Why is it slow?")
        .agent(vec![text("Let me look.")]);
    assert_eq!(
        flat(&session).context,
        "<inherited_context>\n\nUser:\nWhy is it slow?\n\nAgent:\nLet me look.\n</inherited_context>"
    );
}

#[test]
fn seed_000_fork_context_tool_call_display() {
    let session = with_results([
        tool("grep", json!({"pattern": "x".repeat(300)}), "none"),
        tool("grep", json!({"pattern": "y"}), "none"),
    ]);
    let context = flat(&session).context;
    let preview = format!("[Tool: grep] {{\"pattern\":\"{}...\n", "x".repeat(200 - 12));
    assert!(context.contains(&preview), "{context}");
    assert!(context.contains("[Tool: grep] {\"pattern\":\"y\"}\n"));
}

#[test]
fn seed_001_launch_forked_background_task_applies_all_stages_and_writes_the_preamble() {
    let session = with_results(reads(3, 100))
        .compacted("what was done")
        .user("next");
    let session = reads(20, 9_000)
        .into_iter()
        .fold(session, |session, read| session.agent(vec![read]));
    let made = graduated(&session);
    assert!(made.context.contains("Agent:\nwhat was done\n"));
    assert!(
        made.context
            .contains("...[truncated 6000 of 9000 chars]...")
    );
    assert!(made.preamble.contains("Compaction: found"));
    assert!(
        made.preamble
            .contains("5 whole, 10 cut to 3,000 characters and 5 cut to 500 characters")
    );
}

#[test]
fn seed_001_compaction_boundary_detection() {
    let session = Session::new()
        .user("forgotten question")
        .agent(vec![text("forgotten answer"), result("forgotten result")])
        .compacted("the summary")
        .user("after")
        .agent(vec![text("answer")]);
    let made = graduated(&session);
    assert_eq!(
        made.context,
        "<inherited_context>\n\nAgent:\nthe summary\n\nUser:\nafter\n\nAgent:\nanswer\n</inherited_context>"
    );
    assert_eq!(made.stats.messages.compacted, 3);
    assert_eq!(made.stats.compaction.expect("found").index, 3);
}

#[test]
fn seed_001_multiple_compaction_boundaries() {
    let session = Session::new()
        .user("one")
        .compacted("first summary")
        .user("two")
        .compacted("second summary")
        .user("three");
    let context = graduated(&session).context;
    assert_eq!(
        context,
        "<inherited_context>\n\nAgent:\nsecond summary\n\nUser:\nthree\n</inherited_context>"
    );
}

#[test]
fn seed_001_no_compaction_boundary() {
    let made = graduated(
        &Session::new()
            .user("one")
            .agent(vec![text("two")])
            .user("three"),
    );
    assert_eq!(made.stats.compaction, None);
    assert_eq!(made.stats.messages.kept, 3);
    assert!(made.preamble.contains("Compaction: none was found."));
}

#[test]
fn seed_001_graduated_3_tier_tool_truncation() {
    let texts: Vec<String> = (0..20).map(|n| filler(n, 4_000)).collect();
    let context = graduated(&with_results(texts.iter().map(|text| result(text)))).context;
    for (age, text) in texts.iter().rev().enumerate() {
        let expected = match age {
            0..5 => format!("[Tool result]\n{text}\n"),
            5..15 => format!(
                "[Tool result]\n{}\n...[truncated 1000 of 4000 chars]...\n",
                first(text, 3_000)
            ),
            _ => format!(
                "[Tool result]\n{}\n...[truncated 3500 of 4000 chars]...\n",
                first(text, 500)
            ),
        };
        assert!(context.contains(&expected), "the result that is {age} back");
    }
}

#[rstest]
#[case::bash("bash", "", true)]
#[case::pty("pty_spawn", "", true)]
#[case::exec("remote_exec_command", "", true)]
#[case::error("read", "error", true)]
#[case::error_capitalised("read", "TypeError", true)]
#[case::error_shouted("read", "ERROR", true)]
#[case::failed("read", "failed", true)]
#[case::failed_shouted("read", "FAILED", true)]
#[case::exception("read", "exception", true)]
#[case::traceback("read", "traceback", true)]
#[case::neither("read", "all is well", false)]
#[case::other_spelling("read", "Failed Exception Traceback", false)]
fn seed_001_smart_truncation_method_selection(
    #[case] tool_name: &str,
    #[case] word: &str,
    #[case] keeps_its_end: bool,
) {
    // The word stands in the part that is left out: the whole text is searched.
    let text = format!("{}{word}{}", filler(1, 2_500), filler(2, 2_500));
    let total = chars(&text);
    let mut results = vec![tool(tool_name, json!({}), &text)];
    results.extend(reads(5, 10));
    let made = graduated(&with_results(results));
    let marker = format!("\n...[truncated {} of {total} chars]...\n", total - 3_000);
    let expected = if keeps_its_end {
        format!("{}{marker}{}", first(&text, 2_400), last(&text, 600))
    } else {
        format!("{}{marker}", first(&text, 3_000))
    };
    assert!(made.context.contains(&expected));
    assert_eq!(made.stats.results.head_tail, usize::from(keeps_its_end));
}

#[test]
fn seed_001_tool_parameter_truncation_per_tier() {
    let input = |n: usize| json!({"n": n, "query": "q".repeat(800)});
    let session = with_results((0..20).map(|n| tool("search", input(n), "ok")));
    let context = graduated(&session).context;
    let shown: Vec<&str> = context
        .lines()
        .filter(|line| line.starts_with("[Tool: search] "))
        .collect();
    assert_eq!(shown.len(), 20);
    for (age, line) in shown.iter().rev().enumerate() {
        let limit = match age {
            0..5 => 500,
            5..15 => 200,
            _ => 100,
        };
        let whole = input(19 - age).to_string();
        assert_eq!(
            *line,
            format!("[Tool: search] {}...", first(&whole, limit)),
            "{age} back"
        );
    }
}

#[test]
fn seed_001_already_compacted_tool_results() {
    let mut results = vec![
        tool_cleared("read", json!({"filePath": "old.rs"}), &filler(0, 9_000)),
        tool(
            "read",
            json!({"filePath": "older.rs"}),
            "[Old tool result content cleared]",
        ),
    ];
    results.extend(reads(14, 10));
    let made = graduated(&with_results(results));
    assert!(made.context.contains(
        "[Tool: read] {\"filePath\":\"old.rs\"}\n[Tool result]\n[Old tool result content cleared]\n"
    ));
    assert!(made.context.contains(
        "[Tool: read] {\"filePath\":\"older.rs\"}\n[Tool result]\n[Old tool result content cleared]\n"
    ));
    let results = &made.stats.results;
    assert_eq!(
        (results.cleared, results.cut_middle + results.cut_old),
        (2, 0)
    );
    assert_eq!(
        (results.whole_tier, results.middle_tier, results.old_tier),
        (5, 10, 1),
        "each takes a place"
    );
}

#[test]
fn seed_001_character_budget_enforcement_removes_the_oldest_over_200_000() {
    let session = (0..70).fold(Session::new(), |session, n| session.user(&filler(n, 3_000)));
    let made = graduated(&session);
    assert!(chars(&made.context) <= 200_000);
    assert!(
        chars(&made.context) > 196_000,
        "no more is removed than must be"
    );
    assert!(made.context.contains("#69# ") && !made.context.contains("#0# "));
    assert_eq!(made.stats.messages.kept + made.stats.messages.removed, 70);
}

#[test]
fn seed_001_character_budget_enforcement_removes_nothing_at_120_000_whatever_the_count() {
    // 18 characters each, label included.
    let session = (0..6_650).fold(Session::new(), |session, _| session.user("0123456789"));
    let made = graduated(&session);
    let length = chars(&made.context);
    assert!((115_000..=120_000).contains(&length), "{length}");
    assert_eq!(
        (made.stats.messages.kept, made.stats.messages.removed),
        (6_650, 0)
    );
}

#[test]
fn seed_001_dynamic_preamble_content() {
    let session = (0..70).fold(Session::new(), |session, n| session.user(&filler(n, 3_000)));
    let session = reads(16, 600)
        .into_iter()
        .fold(session, |session, read| session.agent(vec![read]));
    let made = graduated(&session);
    let removed = made.stats.messages.removed;
    assert!(removed > 0);
    assert!(made.preamble.contains("Compaction: none was found."));
    assert!(
        made.preamble
            .contains("15 whole and 1 cut to 500 characters")
    );
    assert!(
        made.preamble
            .contains(&format!("Removed: {removed} messages"))
    );
    assert!(
        made.preamble
            .contains("Read a file again when you need its complete content.")
    );
}

#[test]
fn seed_002_thinking_is_omitted() {
    let thinking = json!({"type": "reasoning", "text": "let me think"});
    let made = flat(
        &Session::new()
            .user("go")
            .agent(vec![thinking, text("done")]),
    );
    assert!(!made.context.contains("let me think"));
    assert!(made.context.contains("done"));
}

#[test]
fn seed_002_tool_results_over_1500_characters_are_cut_and_the_call_is_kept() {
    let call = tool_error("bash", json!({"command": "make"}), &filler(0, 2_000));
    let context = flat(&with_results([call])).context;
    let text = filler(0, 2_000);
    assert!(context.contains(&format!(
        "[Tool: bash] {{\"command\":\"make\"}}\n[Tool error call_e]\n{}\n...[truncated 500 of 2000 chars]...\n{}",
        first(&text, 1_200),
        last(&text, 300),
    )));
}

#[test]
fn seed_002_oldest_messages_go_when_the_context_exceeds_100k_tokens() {
    let emoji = "🦀🧪".repeat(2_000);
    let session = (0..30).fold(Session::new(), |session, n| {
        session.user(&format!("m{n} {emoji}"))
    });
    let made = flat(&session);
    assert!(tokens::o200k(&made.context) <= 100_000);
    assert!(made.context.contains("m29 ") && !made.context.contains("m0 "));
}

#[test]
fn seed_002_the_preamble_informs_about_truncated_context() {
    let made = flat(&with_results(reads(1, 5_000)));
    assert!(made.preamble.contains("background agent"));
    assert!(made.preamble.contains("1 cut to 1,500 characters"));
}

#[test]
fn seed_003_launch_forked_background_task_truncates_limits_and_informs() {
    let made = flat(&with_results(reads(400, 9_000)));
    assert!(
        made.context
            .contains("...[truncated 7500 of 9000 chars]..."),
        "tool results are cut"
    );
    assert!(
        made.stats.messages.removed > 0,
        "the token limit is enforced"
    );
    assert!(tokens::o200k(&made.context) <= 100_000);
    assert!(
        made.preamble.contains("cut to 1,500 characters"),
        "the child is told"
    );
}
