//! `asyncagents doctor`, as a user types it.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

const DATABASE: &str = ".local/share/asyncagents/asyncagents.db";
const KEY: &str = "sk-never-to-be-seen";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        fs::create_dir_all(home.0.path().join("project/.git")).expect("a project");
        home
    }

    fn asyncagents(&self, args: &[&str]) -> (Option<i32>, String) {
        self.asyncagents_in("project", "bin", args)
    }

    /// Types a command in a folder while the PATH has only another one.
    fn asyncagents_in(&self, here: &str, path: &str, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.0.path().join(here))
            .env_clear()
            .env("PATH", self.0.path().join(path))
            .env("HOME", self.0.path())
            .env("ANTHROPIC_API_KEY", KEY)
            .args(args);
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        assert!(!said.contains(KEY), "{said}");
        (output.status.code(), said)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and makes its folders.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(&file, text).expect("written");
        file
    }

    /// The database, which is made by a command.
    fn database(&self) -> PathBuf {
        let (code, said) =
            self.asyncagents(&["-c", "worker.autostart=false", "cancel", "task_0123"]);
        assert_eq!(code, Some(2), "{said}");
        self.path(DATABASE)
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
    assert!(!home.path(DATABASE).exists(), "nothing is made");
}

#[test]
fn keys_that_are_not_there_are_named() {
    let home = Home::new();
    let (_, said) = home.asyncagents(&["doctor"]);
    assert!(said.contains("keys go: anthropic; not set: "), "{said}");
    assert!(said.contains("OPENAI_API_KEY"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    command.env_clear().env("HOME", home.0.path()).arg("doctor");
    let said = command
        .current_dir(home.0.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8(said.stdout).expect("text");
    assert!(
        said.contains("note     models       no key for any provider; not set: "),
        "{said}"
    );
    assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
}

#[test]
fn a_second_copy_of_the_plugin_is_found_and_setup_mends_it() {
    let home = Home::new();
    home.asyncagents(&["setup", "opencode"]);
    let (code, plugins) = home.checked("plugin");
    assert_eq!(code, Some(0), "{plugins:?}");
    let user = home.path(".config/opencode/plugins/asyncagents.js");
    let second = home.path("project/.opencode/plugin/asyncagents.js");
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
    let db = home.database();
    let (code, found) = home.checked("database");
    assert_eq!(
        (code, &found[0]["state"]),
        (Some(0), &"ok".into()),
        "{found:?}"
    );
    let connection = rusqlite::Connection::open(&db).expect("opened");
    connection
        .pragma_update(None, "user_version", 99)
        .expect("changed");
    drop(connection);
    let (code, found) = home.checked("database");
    assert_eq!(code, Some(1), "{found:?}");
    assert_eq!(found[0]["mend"], "update asyncagents");
}

#[test]
fn a_database_of_another_program_is_named_as_every_command_names_it() {
    for format in [0, -1] {
        let home = Home::new();
        let db = home.database();
        let connection = rusqlite::Connection::open(&db).expect("opened");
        let changed = connection.pragma_update(None, "user_version", format);
        changed.expect("changed");
        drop(connection);
        let (code, found) = home.checked("database");
        assert_eq!(code, Some(1), "{found:?}");
        let said = found[0]["text"].as_str().expect("text");
        assert!(
            said.ends_with("is a database of another program"),
            "{found:?}"
        );
        let (code, said) = home.asyncagents(&["list"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is a database of another program"), "{said}");
    }
}

/// Everything below a folder is given to another user, if the test runs as one whom permissions do
/// not bind.
#[cfg(target_os = "linux")]
fn give_away(folder: &Path) -> Option<u32> {
    const NOBODY: u32 = 65_534;
    let own = fs::metadata("/proc/self").expect("Linux has it");
    if std::os::unix::fs::MetadataExt::uid(&own) != 0 {
        return None;
    }
    let mut command = Command::new("chown");
    command.args(["-R", &NOBODY.to_string()]).arg(folder);
    assert!(command.status().expect("it runs").success());
    Some(NOBODY)
}

#[cfg(target_os = "linux")]
#[test]
fn a_database_that_can_only_be_read_is_no_problem() {
    let home = Home::new();
    let db = home.database();
    // A program that is being written cannot be started, so another process writes it.
    let program = home.path("program");
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents")]);
    assert!(install.arg(&program).status().expect("it runs").success());
    let folder = db.parent().expect("a folder");
    let user = give_away(home.0.path());
    for (path, mode) in [(&*db, 0o444), (folder, 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(home.path("project")).env_clear();
        command.env("HOME", home.0.path()).args(args);
        if let Some(user) = user {
            std::os::unix::process::CommandExt::uid(&mut command, user);
        }
        let output = command.output().expect("it runs");
        let said = String::from_utf8([output.stdout, output.stderr].concat());
        (output.status.code(), said.expect("text"))
    };
    let (code, listed) = run(&["list"]);
    assert_eq!(code, Some(0), "{listed}");
    let (code, said) = run(&["doctor"]);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("set");
    let line = said.lines().find(|line| line.contains("  database  "));
    let line = line.expect("a line about it");
    assert!(line.starts_with("note "), "{line}");
    assert!(line.contains("yours; it cannot be written"), "{line}");
    assert_eq!(code, Some(0), "{said}");
}

/// A plugin of the user's, and how large this process would have to be to hold the project's.
fn with_endless_files() -> Home {
    let home = Home::new();
    home.asyncagents(&["setup", "opencode"]);
    let plugins = home.path("project/.opencode/plugins");
    fs::create_dir_all(&plugins).expect("folders");
    // In a repository both take a few bytes.
    symlink("/dev/zero", home.path("project/opencode.json")).expect("linked");
    let large = fs::File::create(plugins.join("large.js")).expect("made");
    large.set_len(8_000_000_000).expect("grown");
    let pipe = home.path("project/opencode.jsonc");
    let made = Command::new("mkfifo").arg(pipe).status();
    assert!(made.expect("mkfifo").success());
    home
}

#[rstest]
#[case(&["doctor"])]
#[case(&["setup", "opencode"])]
fn a_project_cannot_make_it_wait_or_use_up_the_memory(#[case] args: &[&str]) {
    let home = with_endless_files();
    let (code, said) = home.asyncagents(args);
    assert_eq!(code, Some(0), "{said}");
}

#[rstest]
#[case::without_a_repository("tar/packages/a", "tar/node_modules/.bin", "tar/package.json")]
#[case::a_submodule("repo/sub", "repo/bin", "repo/sub/.git")]
#[case::a_home_that_is_a_repository("clone", "clone/bin", ".git/config")]
fn a_program_that_a_project_brings_is_not_run(
    #[case] here: &str,
    #[case] path: &str,
    #[case] file: &str,
) {
    let home = Home::new();
    fs::create_dir_all(home.path("repo/.git")).expect("a repository");
    fs::create_dir_all(home.path(here)).expect("a folder");
    home.write(file, "");
    let proof = home.path("ran");
    let script = format!("#!/bin/sh\n: > {}\necho 1.18.33\n", proof.display());
    let trap = home.write(&format!("{path}/opencode"), &script);
    fs::set_permissions(trap, fs::Permissions::from_mode(0o755)).expect("allowed");
    for args in [&["doctor"][..], &["setup"]] {
        let (_, said) = home.asyncagents_in(here, path, args);
        assert!(!proof.exists(), "{args:?} ran it: {said}");
    }
}

#[test]
fn nothing_is_written_or_removed_by_a_link_that_leads_out_of_a_project() {
    let home = Home::new();
    let own = "other/.opencode/plugins/asyncagents.js";
    fs::create_dir_all(home.path("other/.git")).expect("a project");
    home.asyncagents_in("other", "bin", &["setup", "opencode", "--project"]);
    assert!(home.path(own).exists());
    let link = home.path("project/.opencode");
    symlink(home.path("other/.opencode"), &link).expect("linked");
    let (code, said) = home.asyncagents(&["setup", "opencode"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("it was left alone: a link of the project leads out of it"));
    assert!(home.path(own).exists(), "{said}");
    home.asyncagents(&["setup", "opencode", "--remove"]);

    fs::remove_file(&link).expect("removed");
    fs::create_dir(home.path("empty")).expect("a folder");
    symlink(home.path("empty"), &link).expect("linked");
    for args in [&["--project"][..], &["--project", "--remove"]] {
        let (code, said) = home.asyncagents(&[&["setup", "opencode"], args].concat());
        let nothing = fs::read_dir(home.path("empty")).expect("read").next();
        assert!(nothing.is_none(), "{code:?} {said}");
    }
    let (code, said) = home.asyncagents(&["setup", "opencode", "--project"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn the_name_of_a_file_cannot_look_like_a_line_of_the_answer() {
    let home = Home::new();
    home.asyncagents(&["setup", "opencode"]);
    let plugin = home.path(".config/opencode/plugins/asyncagents.js");
    let plugin = fs::read_to_string(plugin).expect("read");
    let forged = "ok       database     all is fine";
    home.write(
        &format!("project/.opencode/plugins/x\n{forged}\n.js"),
        &plugin,
    );
    for args in [&["doctor"][..], &["setup", "opencode"]] {
        let (_, said) = home.asyncagents(args);
        assert!(said.contains(forged), "it is told of: {said}");
        assert!(said.lines().all(|line| line != forged), "{said}");
    }
}

#[test]
fn a_projects_plugin_that_starts_another_program_is_a_problem() {
    let home = Home::new();
    let own = "project/.opencode/plugins/asyncagents.js";
    home.asyncagents(&["setup", "opencode", "--project"]);
    assert_eq!(home.checked("plugin").0, Some(0));
    let other = home.write("project/other", "#!/bin/sh\n");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("allowed");
    let program = Path::new(env!("CARGO_BIN_EXE_asyncagents")).canonicalize();
    let program = program.expect("a program").display().to_string();
    let plugin = fs::read_to_string(home.path(own)).expect("read");
    home.write(own, &plugin.replace(&program, &other.display().to_string()));
    let (code, found) = home.checked("plugin");
    assert_eq!(code, Some(1), "{found:?}");
    let text = found[0]["text"].as_str().expect("text");
    assert!(
        text.ends_with("which is another program than this one"),
        "{text}"
    );
}

#[test]
fn a_database_that_is_damaged_or_a_folder_is_named_with_what_to_do() {
    let home = Home::new();
    let db = home.database();
    let connection = rusqlite::Connection::open(&db).expect("opened");
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection
        .query_row(checkpoint, [], |_| Ok(()))
        .expect("written");
    drop(connection);
    let mut bytes = fs::read(&db).expect("read");
    bytes[8_192..].fill(0x5a);
    fs::write(&db, &bytes).expect("written");
    let (code, found) = home.checked("database");
    assert_eq!(code, Some(1), "{found:?}");
    let (text, mend) = (found[0]["text"].to_string(), found[0]["mend"].to_string());
    assert!(text.contains("is damaged"), "{found:?}");
    assert!(mend.contains("bring back a copy"), "{found:?}");
    assert!(!text.contains("--db"), "what to do is said once: {found:?}");
    assert_eq!(fs::read(&db).expect("read"), bytes);

    fs::remove_file(&db).expect("removed");
    fs::create_dir(&db).expect("made");
    let (code, found) = home.checked("database");
    assert_eq!(code, Some(1), "{found:?}");
    assert_eq!(found[0]["text"], format!("{} is a folder", db.display()));
}

#[test]
fn a_plugin_that_cannot_be_read_is_one_finding_among_others() {
    let home = Home::new();
    let file = home.path(".config/opencode/plugins/asyncagents.js");
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    symlink(&file, &file).expect("a link to itself");
    let (code, found) = home.checked("plugin");
    assert_eq!(code, Some(1), "{found:?}");
    let text = found[0]["text"].as_str().expect("text");
    let name = file.display().to_string();
    assert!(text.starts_with(&name) && text.contains("cannot be read"));
    assert_eq!(found[0]["mend"], "make it readable, or move it away");
    assert_eq!(home.checked("sandbox").1.len(), 1, "the rest is checked");
}

#[test]
fn a_server_s_file_that_others_can_read_is_a_problem_and_an_old_one_is_none() {
    let home = Home::new();
    home.asyncagents(&["setup", "opencode"]);
    let file = home.path(".local/state/opencode/service.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    let written = r#"{"url":"http://127.0.0.1:9","pid":4194305,"password":"sk-of-the-server"}"#;
    fs::write(&file, written).expect("written");
    let with_mode = |mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
        let (code, mut found) = home.checked("plugin");
        let last = found.pop().expect("a finding");
        assert!(!last.to_string().contains("sk-of-the-server"));
        (code, last)
    };
    let (code, open) = with_mode(0o644);
    assert_eq!((code, &open["state"]), (Some(1), &"problem".into()));
    let (code, old) = with_mode(0o600);
    assert_eq!((code, &old["state"]), (Some(0), &"note".into()), "{old}");
}
