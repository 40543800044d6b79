//! `asyncagents doctor`, as a user types it.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{fs, process::Command};

use serde_json::Value;
use tempfile::TempDir;

const KEY: &str = "sk-never-to-be-seen";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        fs::create_dir_all(home.0.path().join("project/.git")).expect("a project");
        home
    }

    fn asyncagents(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.0.path().join("project"))
            .env_clear()
            .env("PATH", self.0.path().join("bin"))
            .env("HOME", self.0.path())
            .env("ANTHROPIC_API_KEY", KEY)
            .args(args);
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        assert!(!said.contains(KEY), "{said}");
        (output.status.code(), said)
    }

    /// What is said about one thing.
    fn checked(&self, about: &str) -> (Option<i32>, Vec<Value>) {
        let (code, said) = self.asyncagents(&["doctor", "--json"]);
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["well"], code == Some(0), "{said}");
        let checks = said["checks"].as_array().expect("a list").iter();
        let checks = checks.filter(|check| check["about"] == about);
        (code, checks.cloned().collect())
    }
}

#[test]
fn where_nothing_is_installed_all_is_well() {
    let home = Home::new();
    let (code, said) = home.asyncagents(&["doctor"]);
    assert_eq!(code, Some(0), "{said}");
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        &format!("ok       asyncagents  {version}, /"),
        "note     opencode     none on the PATH",
        "note     plugin       the plugin is not installed here",
        "ok       bridge       none runs",
        "asyncagents.db is not there yet",
        "ok       worker       none runs",
        "ok       models       can be asked, as far as keys go: anthropic",
        "  sandbox  ",
    ] {
        assert!(said.contains(line), "no `{line}`: {said}");
    }
    let data = home
        .0
        .path()
        .join(".local/share/asyncagents/asyncagents.db");
    assert!(!data.exists(), "nothing is made");
}

#[test]
fn a_second_copy_of_the_plugin_is_found_and_setup_mends_it() {
    let home = Home::new();
    home.asyncagents(&["setup", "opencode"]);
    let (code, plugins) = home.checked("plugin");
    assert_eq!(code, Some(0), "{plugins:?}");
    let user = home
        .0
        .path()
        .join(".config/opencode/plugins/asyncagents.js");
    let second = home
        .0
        .path()
        .join("project/.opencode/plugin/asyncagents.js");
    fs::create_dir_all(second.parent().expect("a folder")).expect("folders");
    fs::copy(user, second).expect("copied");
    let (code, plugins) = home.checked("plugin");
    assert_eq!(code, Some(1), "{plugins:?}");
    let is_problem = |check: &&Value| check["state"] == "problem";
    let problem = plugins.iter().find(is_problem).expect("a problem");
    assert!(
        problem["text"]
            .as_str()
            .expect("text")
            .ends_with("is a second copy")
    );
    assert_eq!(problem["mend"], "`asyncagents setup opencode` leaves one");
    home.asyncagents(&["setup", "opencode"]);
    assert_eq!(home.checked("plugin").0, Some(0));
}

#[test]
fn a_database_of_a_newer_version_is_named_and_left_alone() {
    let home = Home::new();
    let (code, said) = home.asyncagents(&["-c", "worker.autostart=false", "cancel", "task_0123"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, found) = home.checked("database");
    assert_eq!(
        (code, &found[0]["state"]),
        (Some(0), &"ok".into()),
        "{found:?}"
    );
    let db = home
        .0
        .path()
        .join(".local/share/asyncagents/asyncagents.db");
    let connection = rusqlite::Connection::open(&db).expect("opened");
    connection
        .pragma_update(None, "user_version", 99)
        .expect("changed");
    drop(connection);
    let (code, found) = home.checked("database");
    assert_eq!(code, Some(1), "{found:?}");
    assert_eq!(found[0]["mend"], "update asyncagents");
}
