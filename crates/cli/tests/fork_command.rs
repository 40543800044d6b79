//! `asyncagents fork` as a user types it.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{fs, path::PathBuf};

use assert_cmd::Command;
use asyncagents_testkit::{
    claude_code, codex,
    opencode::{Session, result, text},
    opencode2,
};
use serde_json::{Value, json};
use tempfile::TempDir;

fn asyncagents() -> Command {
    Command::cargo_bin("asyncagents").expect("the binary")
}

/// A folder with one file in it.
fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.json");
    fs::write(&path, content).expect("written");
    (folder, path)
}

/// Runs `fork` on a file of this content; expects exit code 2, nothing on standard
/// output and one line on standard error, which it returns.
fn refusal(content: impl AsRef<[u8]>, args: &[&str]) -> String {
    let (_folder, path) = file(content);
    let output = asyncagents()
        .arg("fork")
        .arg(&path)
        .args(args)
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"", "no answer");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    said.replace(path.to_str().expect("a path"), "FILE")
        .trim_end()
        .to_owned()
}

fn stdout(args: &[&str], input: &str) -> String {
    let assert = asyncagents()
        .args(args)
        .write_stdin(input)
        .assert()
        .success();
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

fn a_session() -> String {
    Session::new()
        .user("Why is the login slow?")
        .agent(vec![text("Let me look."), result("fn login() {}")])
        .json()
}

const ITS_CONTEXT: &str = "<inherited_context>

User:
Why is the login slow?

Agent:
Let me look.
[Tool: read] {\"filePath\":\"a.rs\"}
[Tool result]
fn login() {}
</inherited_context>
";

#[test]
fn prints_the_context_of_a_file_and_remarks_elsewhere() {
    let (_folder, path) = file(a_session());
    let output = asyncagents().arg("fork").arg(path).output().expect("runs");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), ITS_CONTEXT);
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(remarks.starts_with(
        "messages: 2 of 2 kept, 0 compacted, 0 removed; results: 1 kept, 0 cut, 0 repeated, 0 removed; "
    ));
}

#[test]
fn reads_standard_input() {
    assert_eq!(stdout(&["fork", "-"], &a_session()), ITS_CONTEXT);
    assert_eq!(
        stdout(
            &["fork", "-", "--from", "opencode", "--preset", "graduated"],
            &a_session()
        ),
        ITS_CONTEXT
    );
}

#[test]
fn a_session_of_opencode_2_is_read_when_it_is_named() {
    let session = opencode2::Session::new()
        .user("why is it slow?")
        .agent(vec![opencode2::result("fn login() {}")]);
    let args = ["fork", "-", "--from", "opencode2"];
    let context = "<inherited_context>\n\nUser:\nwhy is it slow?\n\nAgent:\n[Tool: read] {\"path\":\"a.rs\"}\n[Tool result]\nfn login() {}\n</inherited_context>\n";
    for saved in [session.page(), session.export().to_string()] {
        assert_eq!(stdout(&args, &saved), context);
    }
    assert_eq!(
        refusal(session.page(), &[]),
        "asyncagents: FILE: expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found an object without `messages`; `--from opencode2` reads it"
    );
    assert!(
        refusal(a_session(), &["--from", "opencode2"]).ends_with("; `--from opencode` reads it")
    );
}

#[test]
fn prints_the_preamble_first_when_asked() {
    let printed = stdout(&["fork", "-", "--preamble"], &a_session());
    assert!(printed.starts_with("You are a background agent."));
    assert!(printed.ends_with(&format!("\n\n{ITS_CONTEXT}")));
}

#[test]
fn json_has_context_preamble_and_stats_and_nothing_else() {
    let printed = stdout(&["fork", "-", "--json"], &a_session());
    assert_eq!(printed.lines().count(), 1);
    let answer: Value = serde_json::from_str(&printed).expect("JSON");
    let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["context", "preamble", "stats"]);
    assert_eq!(answer["context"], ITS_CONTEXT.trim_end());
    assert_eq!(answer["stats"]["messages"]["kept"], 2);
    assert_eq!(answer["stats"]["results"]["whole"], 1);
    assert!(answer["stats"]["took_ms"]["forking"].is_number());
}

#[test]
fn a_preset_and_settings_change_the_limits() {
    let session = Session::new()
        .user("go")
        .agent(vec![result(&"x".repeat(2_000))])
        .json();
    let cut = |left_out: usize| format!("...[truncated {left_out} of 2000 chars]...");
    assert!(stdout(&["fork", "-", "--preset", "flat"], &session).contains(&cut(500)));
    let args = [
        "fork",
        "-",
        "--set",
        "whole_results=0",
        "--set",
        "middle_result_chars=100",
    ];
    assert!(stdout(&args, &session).contains(&cut(1_900)));
    let args = [
        "fork",
        "-",
        "--preset",
        "flat",
        "--set",
        "old_result_chars = 1_999",
    ];
    assert!(stdout(&args, &session).contains(&cut(1)));
}

#[test]
fn says_what_was_unreadable() {
    let session = Session::new().user("fine").entry(json!(5)).json();
    let output = asyncagents()
        .args(["fork", "-"])
        .write_stdin(session)
        .output()
        .expect("runs");
    assert!(output.status.success());
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(remarks.contains("skipped because unreadable: 1 messages, 0 parts of others"));
}

#[test]
fn a_missing_file_is_one_clear_line() {
    let output = asyncagents()
        .args(["fork", "no/such/file.json"])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "asyncagents: no/such/file.json: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_folder_is_not_a_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = asyncagents()
        .arg("fork")
        .arg(folder.path())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("is a directory; give the file of a saved session")
    );
}

#[test]
fn what_is_not_a_session_is_one_clear_line_and_exit_2() {
    assert_eq!(
        refusal("", &[]),
        "asyncagents: FILE: the input is empty; expected a JSON list of messages"
    );
    assert_eq!(
        refusal("{\"a\": 1}", &[]),
        "asyncagents: FILE: expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found an object without `messages`"
    );
    assert_eq!(
        refusal("[] ,", &[]),
        "asyncagents: FILE: the input is not valid JSON: trailing characters at line 1 column 4"
    );
    let whole = a_session();
    assert!(refusal(&whole[..whole.len() - 20], &[]).starts_with(
        "asyncagents: FILE: the input ends too early, after 1 complete message (line 1, column "
    ));
    let multibyte = Session::new().user("漢字").json();
    let within = multibyte.find('字').expect("the character") + 1;
    assert_eq!(
        refusal(&multibyte.as_bytes()[..within], &[]),
        format!(
            "asyncagents: FILE: ends within a character (byte {}); it seems to be truncated",
            within - 1
        )
    );
    assert_eq!(
        refusal(b"[{\"info\": \"\xff\"}]", &[]),
        "asyncagents: FILE: is not UTF-8 text (byte 11); expected JSON"
    );
}

#[test]
fn an_input_over_the_size_limit_is_refused_before_it_is_read() {
    let large = format!("[\"{}\"]", "x".repeat(1_000_000));
    let sentence = "is larger than 1 MB; `--max-input` raises the limit";
    assert_eq!(
        refusal(&large, &["--max-input", "1"]),
        format!("asyncagents: FILE: {sentence}")
    );
    asyncagents()
        .args(["fork", "-", "--max-input", "1"])
        .write_stdin(large)
        .assert()
        .code(2)
        .stderr(format!("asyncagents: standard input: {sentence}\n"));

    // A file with nothing but a length: 600 MB that nobody reads.
    let (_folder, path) = file("");
    let sparse = fs::File::options().write(true).open(&path).expect("opens");
    sparse.set_len(600_000_000).expect("grows");
    let output = asyncagents().arg("fork").arg(path).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is larger than 512 MB"));
}

#[test]
fn exact_refuses_what_does_not_fit() {
    let session = Session::new().user(&"word ".repeat(50_000)).json();
    assert_eq!(
        refusal(&session, &["--preset", "exact"]),
        "asyncagents: FILE: the conversation has 250,048 characters and the limit is 200,000; `--set when_over=remove` leaves out the oldest messages"
    );
}

#[test]
fn nonsense_settings_are_refused_with_their_key_and_range() {
    assert_eq!(
        refusal(a_session(), &["--set", "max_chars=5"]),
        "asyncagents: --set: max_chars: `5` is refused; allowed: 1,000 to 20,000,000"
    );
    assert!(refusal(a_session(), &["--set", "colour=red"]).starts_with(
        "asyncagents: --set: `colour` is not a fork limit; there are whole_results, "
    ));
}

#[test]
fn wrong_arguments_are_explained() {
    for (args, said) in [
        (&["fork"][..], "<FILE|ID|->"),
        (
            &["fork", "-", "--preset", "gradual"],
            "[possible values: graduated, flat, exact]",
        ),
        (
            &["fork", "-", "--from", "emacs"],
            "[possible values: opencode, opencode2, claude-code, codex]",
        ),
        (
            &["fork", "-", "--set", "max_chars"],
            "expected KEY=VALUE, such as max_chars=50000",
        ),
        (&["fork", "-", "--max-input", "0"], "0 is not in 1..="),
        (&["frok"], "a similar subcommand exists: 'fork'"),
    ] {
        let output = asyncagents().args(args).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn help_and_version_are_there() {
    assert_eq!(
        stdout(&["--version"], ""),
        format!("asyncagents {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(stdout(&["--help"], "").contains("asyncagents fork session.json"));
    let help = stdout(&["fork", "--help"], "");
    assert!(help.contains("opencode export SESSION | asyncagents fork - --preamble"));
    assert!(help.contains("max_chars            200000  [1,000 to 20,000,000]"));
}

#[test]
fn the_example_of_the_readme_works() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.json");
    let answer: Value =
        serde_json::from_str(&stdout(&["fork", example, "--json"], "")).expect("JSON");
    let results = &answer["stats"]["results"];
    for shown in ["whole", "cut_middle", "cut_old", "head_tail"] {
        assert!(
            results[shown].as_u64() > Some(0),
            "the example shows {shown}: {results}"
        );
    }
    assert_eq!(answer["stats"]["messages"]["skipped"], 0);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let (_folder, path) = file(Session::new().user(&"line\n".repeat(30_000)).json());
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .arg("fork")
        .arg(path)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_was_written_stands_even_if_remarks_cannot_be() {
    let full = || {
        fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("opens")
    };
    let (_folder, path) = file(a_session());
    let run = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command.arg("fork").arg(&path);
        command
    };
    let output = run().stderr(full()).output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), ITS_CONTEXT);

    let output = run().stdout(full()).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("asyncagents: cannot write the answer: No space left on device"),
        "{said}"
    );
}

const SESSION: &str = "60104808-db31-4a6a-bbca-a6b936b75c66";
const THREAD: &str = "01a1e536-bcc1-7b41-9aa2-aa856fb88bcc";

/// A home in which Claude Code and Codex have a session each, and Claude Code's a sub-agent.
fn home_with_sessions() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let put = |path: &str, content: String| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    };
    let session = claude_code::Transcript::new()
        .user("said to Claude Code")
        .answer(vec![claude_code::call("toolu_1", "Bash", json!({}))])
        .result(
            "toolu_1",
            "<persisted-output>\nOutput too large. Saved to tool-results/toolu_1.txt",
        );
    let project = ".claude/projects/-project";
    put(&format!("{project}/{SESSION}.jsonl"), session.jsonl());
    put(
        &format!("{project}/{SESSION}/tool-results/toolu_1.txt"),
        "all of a large result".to_owned(),
    );
    let agent = claude_code::Transcript::of_sub_agent("a1").user("said to a sub-agent");
    put(
        &format!("{project}/{SESSION}/subagents/agent-a1.jsonl"),
        agent.jsonl(),
    );
    let thread = codex::Rollout::new().user("said to Codex");
    let day = ".codex/sessions/2026/11/16";
    put(
        &format!("{day}/rollout-2026-11-16T16-35-37-{THREAD}.jsonl"),
        thread.jsonl(),
    );
    home
}

/// Runs `fork` in a home.
fn fork_in(home: &TempDir, args: &[&str]) -> std::process::Output {
    asyncagents()
        .current_dir(home.path())
        .env("HOME", home.path())
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("CODEX_HOME")
        .arg("fork")
        .args(args)
        .output()
        .expect("runs")
}

fn said_by(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Why a `fork` in a home is refused, in one line.
fn refusal_in(home: &TempDir, args: &[&str]) -> String {
    let output = fork_in(home, args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"", "no answer");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    let home = home.path().canonicalize().expect("a path");
    said.trim_end()
        .replace(home.to_str().expect("a path"), "HOME")
}

#[test]
fn a_session_of_another_agent_is_found_by_its_id() {
    let home = home_with_sessions();
    let claude_code = fork_in(&home, &[SESSION, "--from", "claude-code"]);
    assert_eq!(
        said_by(&claude_code),
        "<inherited_context>\n\nUser:\nsaid to Claude Code\n\nAgent:\n[Tool: Bash] {}\n[Tool result]\n\
         all of a large result\n</inherited_context>\n"
    );
    let agent = fork_in(&home, &[&format!("{SESSION}/a1"), "--from", "claude-code"]);
    assert!(
        said_by(&agent).contains("User:\nsaid to a sub-agent\n"),
        "{agent:?}"
    );
    let codex = fork_in(&home, &[THREAD, "--from", "codex"]);
    assert!(
        said_by(&codex).contains("User:\nsaid to Codex\n"),
        "{codex:?}"
    );
}

/// Beside a session's file Claude Code has a folder with the name of its ID.
#[test]
fn an_id_is_found_from_the_folder_that_has_the_file() {
    let home = home_with_sessions();
    let output = asyncagents()
        .current_dir(home.path().join(".claude/projects/-project"))
        .env("HOME", home.path())
        .env_remove("CLAUDE_CONFIG_DIR")
        .args(["fork", SESSION, "--from", "claude-code"])
        .output()
        .expect("runs");
    assert!(
        said_by(&output).contains("said to Claude Code"),
        "{output:?}"
    );
}

#[test]
fn variables_move_where_sessions_are_looked_for() {
    let home = home_with_sessions();
    for (variable, folder, id, from, said) in [
        (
            "CLAUDE_CONFIG_DIR",
            ".claude",
            SESSION,
            "claude-code",
            "said to Claude Code",
        ),
        ("CODEX_HOME", ".codex", THREAD, "codex", "said to Codex"),
    ] {
        let elsewhere = tempfile::tempdir().expect("a folder");
        let output = asyncagents()
            .current_dir(elsewhere.path())
            .env("HOME", elsewhere.path())
            .env(variable, home.path().join(folder))
            .args(["fork", id, "--from", from])
            .output()
            .expect("runs");
        assert!(said_by(&output).contains(said), "{output:?}");
    }
}

#[test]
fn what_is_no_session_of_another_agent_is_one_clear_line() {
    let home = home_with_sessions();
    let file = ".claude/projects/-project/../-project/";
    fs::write(home.path().join("empty.jsonl"), "\n").expect("written");
    fs::write(home.path().join("list.json"), a_session()).expect("written");
    let thread = format!(".codex/sessions/2026/11/16/rollout-2026-11-16T16-35-37-{THREAD}.jsonl");
    let said: Vec<String> = [
        &["unknown", "--from", "claude-code"][..],
        &["unknown", "--from", "codex"],
        &[&format!("{THREAD}/a1"), "--from", "codex"],
        &[&format!("../{SESSION}"), "--from", "claude-code"],
        &[&format!("{SESSION}/../{SESSION}"), "--from", "claude-code"],
        &[&format!("{SESSION}/a2"), "--from", "claude-code"],
        &["no/such/file.jsonl", "--from", "claude-code"],
        &[file, "--from", "claude-code"],
        &[SESSION],
        &[THREAD],
        &[THREAD, "--from", "claude-code"],
        &["empty.jsonl", "--from", "codex"],
        &["list.json", "--from", "claude-code"],
        &[&thread],
        &[&thread, "--from", "claude-code"],
        &[
            &format!(".claude/projects/-project/{SESSION}.jsonl"),
            "--from",
            "codex",
        ],
    ]
    .into_iter()
    .map(|args| refusal_in(&home, args))
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// A line that is no text spoils nothing else, from a file and from a pipe.
#[test]
fn a_transcript_with_a_broken_line_is_read() {
    let home = home_with_sessions();
    let mut file = claude_code::Transcript::new()
        .user("first")
        .jsonl()
        .into_bytes();
    file.extend_from_slice(b"{\"type\":\"user\xff\"}\n{half");
    fs::write(home.path().join("broken.jsonl"), &file).expect("written");
    let from_file = fork_in(&home, &["broken.jsonl", "--from", "claude-code", "--json"]);
    let piped = asyncagents()
        .args(["fork", "-", "--from", "claude-code", "--json"])
        .write_stdin(file)
        .output()
        .expect("runs");
    for output in [from_file, piped] {
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(
            answer["context"]
                .as_str()
                .expect("text")
                .contains("User:\nfirst\n")
        );
        assert_eq!(answer["stats"]["messages"]["skipped"], 1);
    }
}

#[test]
fn of_a_long_transcript_the_end_is_read_and_the_figures_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = (0..4_000).fold(claude_code::Transcript::new(), |session, n| {
        session.user(&format!("question {n}: {}", "words ".repeat(100)))
    });
    let file = long.jsonl();
    assert!(file.len() > 3_000_000, "longer than what is read at first");
    fs::write(folder.path().join("long.jsonl"), &file).expect("written");
    let output = fork_in(
        &folder,
        &[
            "long.jsonl",
            "--from",
            "claude-code",
            "--json",
            "--max-input",
            "1",
        ],
    );
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["stats"]["messages"]["unread"], true, "{output:?}");
    let piped = asyncagents()
        .args(["fork", "-", "--from", "claude-code", "--json"])
        .write_stdin(file)
        .output()
        .expect("runs");
    let whole: Value = serde_json::from_slice(&piped.stdout).expect("JSON");
    assert_eq!(answer["context"], whole["context"]);
}
