//! What a person at the shell types, and is answered.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::ffi::OsStrExt,
};

use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{Home, text};

fn answering() -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("Done.")))
}

fn parsed(answer: &str) -> Value {
    serde_json::from_str(answer).expect("JSON")
}

#[test]
fn sessions_are_listed_and_gone_on_with_by_the_beginning_of_their_id() {
    let home = answering();
    assert!(
        home.ask(&["sessions"])
            .contains("No sessions found in this folder")
    );
    assert!(
        !home.folder.path().join("home/.local").exists(),
        "nothing is made"
    );
    home.ask(&["run", "Find the slow query"]);
    home.ask(&["run", "ログインが遅い原因を調べる"]);
    let listed = parsed(&home.ask(&["sessions", "--json"]));
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2);
    assert_eq!(
        listed[0]["title"], "ログインが遅い原因を調べる",
        "newest first"
    );
    assert_eq!(listed[1]["title"], "Find the slow query");
    assert_eq!(listed[1]["state"], "idle");
    assert_eq!(
        (&listed[1]["turns"], &listed[1]["cost_usd"]),
        (&json!(1), &Value::Null)
    );
    let shown = home.ask(&["sessions"]);
    assert!(
        shown.contains("Find the slow query  (general · test/model · 1 answer, "),
        "{shown}"
    );
    assert!(shown.contains(" cost unknown)"), "{shown}");

    // All sessions of this test begin alike.
    let id = listed[1]["id"].as_str().expect("an ID");
    let output = home.run(&["run", "--session", "ses_", "And the tests?"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("`ses_` is the beginning of ") && said.contains(id),
        "{said}"
    );
    for beginning in [&id[..14], &id[4..14]] {
        home.ask(&["run", "--session", beginning, "And the tests?"]);
    }
    let listed = parsed(&home.ask(&["sessions", "--all", "--json"]));
    assert_eq!(listed[1]["turns"], 3, "{listed}");
    let output = home.run(&["run", "--session", "ses_ffff", "x"]);
    assert!(
        text(&output.stderr).contains("`asyncagents sessions` lists"),
        "{output:?}"
    );

    // Its tasks are found by it too.
    let task = home.ask(&["task", "--fork", "--session", &id[..14], "Look"]);
    home.ask(&["output", &task, "--block"]);
    let tasks = parsed(&home.ask(&["list", "--session", &id[..14], "--json"]));
    assert_eq!(tasks[0]["parent_session"], id);
    let elsewhere = home.folder.path().join("home");
    let output = home.command(&["sessions"]).current_dir(elsewhere).output();
    let output = output.expect("runs");
    assert!(text(&output.stdout).contains("--all"), "{output:?}");
}

#[test]
fn a_fork_says_which_session_it_inherits() {
    let home = answering();
    home.ask(&["run", "Find the slow query"]);
    let listed = parsed(&home.ask(&["sessions", "--json"]));
    let id = listed[0]["id"].as_str().expect("an ID");
    let output = home.run(&["task", "--fork", "Fix it"]);
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("inherits {id} \"Find the slow query\"")),
        "{said}"
    );
    home.ask(&["output", &text(&output.stdout), "--block"]);
}

#[test]
fn models_are_listed_without_their_keys() {
    let home = answering();
    let run = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("ANTHROPIC_API_KEY", "sk-ant-canary");
        let output = command.output().expect("runs");
        assert!(!format!("{output:?}").contains("canary"), "{output:?}");
        text(&output.stdout)
    };
    let shown = run(&["models"]);
    for line in [
        "Default: test/model (price unknown)",
        "ANTHROPIC_API_KEY is set",
        "OPENAI_API_KEY is not set",
        "needs no key",
        "sonnet",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let listed = parsed(&run(&["-c", "model=auto", "models", "--json"]));
    assert_eq!(listed["default"]["usable"], true, "{listed}");
    assert_eq!(listed["default"]["price_known"], true, "{listed}");
    let providers = listed["providers"].as_array().expect("providers");
    let anthropic = providers.iter().find(|one| one["name"] == "anthropic");
    let key = json!({"source": "variable", "variable": "ANTHROPIC_API_KEY", "is_set": true});
    assert_eq!(anthropic.expect("there")["key"], key);
    let gpt = listed["aliases"].as_array().expect("names").iter();
    let mut gpt = gpt.filter(|one| one["name"] == "gpt");
    assert_eq!(gpt.next().expect("there")["usable"], false);
}

#[rstest]
#[case::run(&["run", "-"])]
#[case::task(&["task", "-"])]
#[case::resume(&["resume", "task_0123", "-"])]
#[case::skill(&["skill", "run", "any", "-"])]
fn a_prompt_without_end_is_refused(#[case] args: &[&str]) {
    let home = answering();
    let mut command = home.command(args);
    command.stdin(File::open("/dev/zero").expect("zeros"));
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    let why = "standard input: is larger than 16 MB, the most that a prompt may have";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_refusal_names_only_modes_that_would_help() {
    let script = Script::new()
        .rule(When::turn(0), Reply::call("bash", json!({"command": "ls"})))
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    home.ask(&["run", "--permission", "auto-edit", "List"]);
    let told = home.model.requests().pop().expect("a request").last();
    assert!(told.contains("permission mode `yolo`, or a rule"), "{told}");
    assert!(!told.contains("auto-edit"), "{told}");
}

#[rstest]
#[case::list(&["list"], "No background tasks found")]
#[case::list_json(&["list", "--json"], "[]")]
#[case::trace(&["trace"], "No runs found")]
#[case::sessions(&["sessions", "--all"], "No sessions found; `asyncagents run` begins one")]
fn looking_makes_no_database(#[case] args: &[&str], #[case] answer: &str) {
    let home = answering();
    let mut all = vec!["--db", "nosuch/dir/x.db"];
    all.extend(args);
    assert_eq!(home.ask(&all), answer);
    assert!(!home.path("nosuch").exists());
}

#[test]
fn a_name_that_is_no_text_is_refused() {
    let home = answering();
    let mut command = home.command(&["list", "--db"]);
    command.arg(OsStr::from_bytes(b"\xff.db"));
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_dir(home.path(".")).expect("read").count(), 0);
}

#[test]
fn what_means_nothing_gets_a_line() {
    let home = answering();
    fs::create_dir(home.path("asyncagents.toml")).expect("made");
    let mut command = home.command(&["list"]);
    command
        .env("ASYNCAGENTS_LIMIT_DEPTH", "1")
        .env("ASYNCAGENTS_FOO", "1");
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stderr);
    for line in [
        "asyncagents.toml is a folder, so it is not read",
        "ASYNCAGENTS_FOO is no setting and has no effect; `asyncagents config` lists the settings",
        "ASYNCAGENTS_LIMIT_DEPTH is no setting and has no effect; did you mean ASYNCAGENTS_LIMITS_DEPTH?",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.lines().count(), 3, "{said}");

    let mut command = home.command(&["task", "x"]);
    command.env("HOME", "relative");
    let said = text(&command.output().expect("runs").stderr);
    assert!(said.contains("HOME is not an absolute path, so"), "{said}");
}

#[test]
fn lists_are_as_wide_as_there_is_room() {
    let home = answering();
    let description = "ログインが遅い原因を三つのサービスで並行して調べる仕事";
    let id = home.ask(&["task", "--description", description, "Look"]);
    home.ask(&["output", &id, "--block"]);
    let widths = |columns: &str| {
        let mut command = home.command(&["list"]);
        command.env("COLUMNS", columns);
        let shown = text(&command.output().expect("runs").stdout);
        let table = shown.lines().take_while(|line| line.starts_with('|'));
        let widths: Vec<usize> = table
            .map(|line| {
                line.chars()
                    .map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 })
                    .sum()
            })
            .collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{shown}");
        widths[0]
    };
    assert_eq!(widths("100"), 100);
    assert!(widths("200") > 110);
    let trace = || {
        let mut command = home.command(&["trace", &id]);
        command.env("COLUMNS", "60");
        text(&command.output().expect("runs").stdout)
    };
    assert!(
        trace().lines().all(|line| line.chars().count() <= 60),
        "{}",
        trace()
    );
}
