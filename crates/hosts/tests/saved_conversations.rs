//! Conversations that Claude Code and Codex keep in files: how they are found, and what of them a
//! fork reads, also when the files are not what they should be.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use asyncagents_core::{
    fork::{Parent, Plan, fork},
    port::Recent,
    read::LineFormat,
    tokens,
};
use asyncagents_hosts::{claude_code::transcript, codex::rollout};
use asyncagents_testkit::{
    claude_code::{Transcript, call, text},
    codex::Rollout,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use tempfile::TempDir;

const SESSION: &str = "60104808-db31-4a6a-bbca-a6b936b75c66";
const THREAD: &str = "01a1e536-bcc1-7b41-9aa2-aa856fb88bcc";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, content).expect("written");
        path
    }

    /// The transcript of a session.
    fn session(&self, session: &Transcript) -> PathBuf {
        self.put(&format!("projects/-p/{SESSION}.jsonl"), session.jsonl())
    }
}

fn context(recent: Recent) -> String {
    let Recent { transcript, unread } = recent;
    let parent = if unread {
        Parent::end_of(transcript)
    } else {
        Parent::new(transcript)
    };
    let made = fork(&parent, &Plan::default().limits, tokens::o200k);
    made.expect("a fork").context
}

/// What a fork of a transcript has.
fn inherited(file: &Path) -> String {
    context(transcript::recent(file, &Plan::default()).expect("read"))
}

fn asked_in(call: &str) -> Plan {
    Plan {
        asked_in: Some(call.to_owned()),
        ..Plan::default()
    }
}

/// A session with one call, and what stands for its result.
fn with_result(stands_for_it: &str) -> Transcript {
    Transcript::new()
        .user("go")
        .answer(vec![call("toolu_1", "Bash", json!({}))])
        .result("toolu_1", stands_for_it)
        .answer(vec![text("done")])
}

const PERSISTED: &str = "<persisted-output>\nOutput too large (90KB). Full output saved to: \
                         /home/user/.claude/projects/-p/S/tool-results/toolu_1.txt\n\nPreview:\nthe beg";

#[test]
fn a_session_is_found_by_its_id_and_of_several_files_the_newest_counts() {
    let home = Home::new();
    let find = |id: &str| transcript::find(home.path(), id, None).expect("looked for");
    assert_eq!(find(SESSION), None, "there are no projects yet");
    let old = home.put(&format!("projects/-a/{SESSION}.jsonl"), "");
    let new = home.put(&format!("projects/-b/{SESSION}.jsonl"), "");
    let touch = |file: &Path, time| {
        let file = fs::File::options().write(true).open(file).expect("opened");
        file.set_modified(time).expect("touched");
    };
    touch(&old, SystemTime::UNIX_EPOCH + Duration::from_secs(10));
    touch(&new, SystemTime::UNIX_EPOCH + Duration::from_secs(20));
    assert_eq!(find(SESSION), Some(new));
    let agent = home.put(
        &format!("projects/-a/{SESSION}/subagents/agent-a1.jsonl"),
        "",
    );
    let find_agent =
        |agent| transcript::find(home.path(), SESSION, Some(agent)).expect("looked for");
    assert_eq!(find_agent("a1"), Some(agent));
    assert_eq!(find_agent("a2"), None);
}

#[test]
fn a_thread_is_found_by_its_id_whenever_it_began() {
    let home = Home::new();
    let find = |id: &str| rollout::find(home.path(), id).expect("looked for");
    assert_eq!(find(THREAD), None);
    let file = format!("sessions/2026/11/16/rollout-2026-11-16T16-35-37-{THREAD}.jsonl");
    let file = home.put(&file, "");
    home.put(
        "sessions/2026/11/17/rollout-2026-11-17T16-35-37-another.jsonl",
        "",
    );
    home.put("sessions/2026/note.txt", "");
    assert_eq!(find(THREAD), Some(file));
    let archived = "archived_sessions/rollout-2025-01-01T00-00-00-old.jsonl";
    let archived = home.put(archived, "");
    assert_eq!(find("old"), Some(archived));
    assert_eq!(find("aa856fb88bcc"), None, "the end of an ID is none");
}

#[test]
fn an_id_never_leads_anywhere_else() {
    let home = Home::new();
    home.put("secret.jsonl", "");
    home.put("projects/-p/secret.jsonl", "");
    for id in [
        "../secret",
        "../../secret",
        "-p/secret",
        "",
        ".",
        "a\0b",
        "*",
        "ä",
    ] {
        assert_eq!(
            transcript::find(home.path(), id, None).expect("no error"),
            None,
            "{id}"
        );
        let agent = transcript::find(home.path(), "secret", Some(id)).expect("no error");
        assert_eq!(agent, None, "{id}");
        assert_eq!(
            rollout::find(home.path(), id).expect("no error"),
            None,
            "{id}"
        );
    }
}

#[test]
fn a_large_result_that_has_a_file_of_its_own_is_inherited_from_there() {
    let home = Home::new();
    let file = home.session(&with_result(PERSISTED));
    assert!(
        inherited(&file).contains("Preview:\nthe beg"),
        "there is no such file yet"
    );
    let results = format!("projects/-p/{SESSION}/tool-results");
    home.put(
        &format!("{results}/toolu_1.txt"),
        "the beginning and the end",
    );
    assert!(inherited(&file).contains("[Tool result]\nthe beginning and the end\n"));
    fs::remove_file(home.path().join(&results).join("toolu_1.txt")).expect("removed");
    let pieces = json!([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]);
    home.put(&format!("{results}/toolu_1.json"), pieces.to_string());
    assert!(inherited(&file).contains("[Tool result]\none\ntwo\n"));
}

#[test]
fn a_sub_agents_large_results_are_with_those_of_its_session() {
    let home = Home::new();
    let agent = Transcript::of_sub_agent("a1")
        .user("go")
        .answer(vec![call("toolu_1", "Bash", json!({}))])
        .result("toolu_1", PERSISTED)
        .answer(vec![text("done")]);
    let file = format!("projects/-p/{SESSION}/subagents/agent-a1.jsonl");
    let file = home.put(&file, agent.jsonl());
    home.put(
        &format!("projects/-p/{SESSION}/tool-results/toolu_1.txt"),
        "all of it",
    );
    assert!(inherited(&file).contains("[Tool result]\nall of it\n"));
}

/// A tool's output is not to be trusted: it may say what such a result says.
#[test]
fn a_result_brings_in_no_file_that_is_not_a_result_of_the_session() {
    let home = Home::new();
    let results = format!("projects/-p/{SESSION}/tool-results");
    home.put(&format!("{results}/other.txt"), "another's");
    let secret = home.put("secret.txt", "SECRET");
    home.put(&format!("{results}/../secret.txt"), "SECRET");
    symlink(&secret, home.path().join(&results).join("toolu_1.txt")).expect("linked");
    for said in [
        PERSISTED,
        "<persisted-output> tool-results/../secret.txt",
        "<persisted-output> tool-results/../../../../secret.txt",
        "I see tool-results/other.txt",
    ] {
        let context = inherited(&home.session(&with_result(said)));
        assert!(
            !context.contains("SECRET") && !context.contains("another's"),
            "{said}: {context}"
        );
    }
    // Nor through a folder that is a link.
    let folder = home.path().join(&results);
    fs::remove_dir_all(&folder).expect("removed");
    home.put("elsewhere/toolu_1.txt", "SECRET");
    symlink(home.path().join("elsewhere"), &folder).expect("linked");
    assert!(!inherited(&home.session(&with_result(PERSISTED))).contains("SECRET"));
}

#[test]
fn what_is_no_file_is_an_error_and_nobody_waits() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("projects/-p")).expect("made");
    let pipe = home.path().join(format!("projects/-p/{SESSION}.jsonl"));
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe");
    assert_eq!(
        transcript::find(home.path(), SESSION, None).expect("looked"),
        None
    );
    for path in [&pipe, home.path()] {
        let error = transcript::recent(path, &Plan::default()).expect_err("no file");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        assert!(rollout::told(path, "x").is_err());
    }
    let missing = transcript::recent(&home.path().join("nothing"), &Plan::default());
    assert_eq!(missing.expect_err("none").kind(), io::ErrorKind::NotFound);
    // A large result may be a pipe too.
    let folder = home
        .path()
        .join(format!("projects/-p/{SESSION}/tool-results"));
    fs::create_dir_all(&folder).expect("made");
    mknodat(CWD, folder.join("toolu_1.txt"), FileType::Fifo, mode, 0).expect("a pipe");
    fs::remove_file(&pipe).expect("removed");
    assert!(inherited(&home.session(&with_result(PERSISTED))).contains("Preview:"));
}

/// More than is read at first, and a line that is longer than that.
#[test]
fn of_long_files_the_end_is_read_and_forks_like_the_whole() {
    let home = Home::new();
    let words = "words ".repeat(100);
    let session = (0..4_000).fold(Transcript::new(), |session, n| {
        session.user(&format!("{n}: {words}"))
    });
    let thread = (0..4_000).fold(Rollout::new(), |thread, n| {
        thread.user(&format!("{n}: {words}"))
    });
    let long = "x".repeat(3_000_000);
    let last_is_long = session.clone().user(&long);
    for (session, kind) in [
        (session.clone(), "many lines"),
        (last_is_long, "a long line"),
    ] {
        let file = home.session(&session);
        let recent = transcript::recent(&file, &Plan::default()).expect("read");
        assert!(recent.unread, "{kind}");
        let whole = session.jsonl();
        let whole = LineFormat::ClaudeCode.read(whole.as_bytes()).expect("read");
        let whole = fork(&Parent::new(whole), &Plan::default().limits, tokens::o200k);
        assert_eq!(context(recent), whole.expect("a fork").context, "{kind}");
    }
    // Said twice, the long line is nearly all of the file.
    for (thread, unread) in [(thread.clone(), true), (thread.user(&long), false)] {
        let file = home.put("rollout.jsonl", thread.jsonl());
        let recent = rollout::recent(&file, &Plan::default()).expect("read");
        assert_eq!(recent.unread, unread);
        let whole = thread.jsonl();
        let whole = LineFormat::Codex.read(whole.as_bytes()).expect("read");
        let whole = fork(&Parent::new(whole), &Plan::default().limits, tokens::o200k);
        assert_eq!(context(recent), whole.expect("a fork").context);
    }
}

/// A task may wait long for a slot, and the conversation goes on meanwhile.
#[test]
fn the_call_that_asks_is_found_however_much_came_after_it() {
    let home = Home::new();
    let words = "words ".repeat(100);
    let asking = Transcript::new()
        .user("go")
        .answer(vec![
            text("I delegate."),
            call("toolu_ask", "asyncagents_task", json!({})),
        ])
        .result("toolu_ask", "launched");
    let session = (0..3_000).fold(asking, |session, _| session.user(&words));
    let file = home.session(&session);
    assert!(transcript::has_call(&file, "toolu_ask").expect("looked"));
    assert!(!transcript::has_call(&file, "toolu_other").expect("looked"));
    let recent = transcript::recent(&file, &asked_in("toolu_ask")).expect("read");
    assert_eq!(
        context(recent),
        "<inherited_context>\n\nUser:\ngo\n\nAgent:\nI delegate.\n</inherited_context>"
    );
    let asking = Rollout::new().user("go").says("I delegate.");
    let asking = asking
        .calls("call_ask", "asyncagents_task", &json!({}))
        .answered();
    let thread = asking.result("call_ask", "launched");
    let thread = (0..3_000).fold(thread, |thread, _| thread.user(&words));
    let file = home.put("rollout.jsonl", thread.jsonl());
    let recent = rollout::recent(&file, &asked_in("call_ask")).expect("read");
    assert_eq!(
        context(recent),
        "<inherited_context>\n\nUser:\ngo\n\nAgent:\nI delegate.\n</inherited_context>"
    );
}

#[test]
fn a_file_in_which_nothing_is_yet_is_a_conversation_without_messages() {
    let home = Home::new();
    let file = home.put("empty.jsonl", "");
    for recent in [
        transcript::recent(&file, &Plan::default()),
        rollout::recent(&file, &Plan::default()),
    ] {
        let recent = recent.expect("read");
        assert!(recent.transcript.messages().is_empty() && !recent.unread);
    }
}
