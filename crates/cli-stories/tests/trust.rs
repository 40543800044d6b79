//! What nobody but the user can make asyncagents do: not a project's files, not a database, not
//! another user. Real processes and real files; the attacker has a home of its own.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown, lchown},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// A user with a home, and a project next to it.
struct User {
    folder: TempDir,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home/.config/asyncagents", "project"] {
            fs::create_dir_all(folder.path().join(name)).expect("made");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Says something in the user's own file of settings.
    fn settings(&self, toml: &str) {
        let file = self.path("home/.config/asyncagents/asyncagents.toml");
        fs::write(file, toml).expect("written");
    }

    /// Says something in the project's.
    fn project(&self, toml: &str) {
        fs::write(self.path("project/asyncagents.toml"), toml).expect("written");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents-stories"));
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("ASYNCAGENTS_WORKER_IDLE", "1s")
            .args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("runs")
    }

    fn ask(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        text(&output.stdout)
    }

    /// What a command says that refuses.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        text(&output.stderr)
    }

    fn setting(&self, key: &str) -> String {
        let output = self.run(&["config", "--json"]);
        let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut found = settings.iter().filter(|setting| setting["key"] == key);
        let found = found.next().expect("the setting");
        found["value"].as_str().expect("text").to_owned()
    }

    /// A database of this user with a queued task that would run a command, outside of the
    /// sandbox.
    fn armed(&self, db: &Path) -> PathBuf {
        let proof = self.path("PWNED");
        let key_command = format!("providers.x.key_command=touch {}; echo k", proof.display());
        self.ask(&[
            "--db",
            db.to_str().expect("text"),
            "-c",
            "worker.autostart=false",
            "-c",
            "providers.x.base_url=http://127.0.0.1:9/v1",
            "-c",
            &key_command,
            "-c",
            "model=x/m",
            "task",
            "--permission",
            "yolo",
            "hello",
        ]);
        proof
    }
}

/// Workers that have something left to do would wait for it.
impl Drop for User {
    fn drop(&mut self) {
        let ours = self.folder.path().display().to_string();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let pid = entry.file_name().to_string_lossy().parse::<i32>().ok();
            if line.ends_with(" worker ")
                && line.contains(&ours)
                && let Some(pid) = pid.and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

fn beside(db: &Path, ending: &str) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether a worker was ever started for a database: it holds a lock beside it.
fn was_worked_for(db: &Path) -> bool {
    beside(db, ".worker.lock").exists()
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).expect("copied");
    for ending in ["-wal", "-shm"] {
        if beside(from, ending).exists() {
            fs::copy(beside(from, ending), beside(to, ending)).expect("copied");
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All that a project may say. A new setting is not on it unless somebody puts it there.
const FOR_PROJECTS: &[&str] = &[
    "agent",
    "budget.cost",
    "budget.time",
    "budget.tokens",
    "budget.tool_calls",
    "budget.turns",
    "fork.mode",
    "fork.preset",
    "limits.concurrency",
    "limits.depth",
    "limits.agents",
    "limits.opencode",
    "limits.per_model",
    "limits.per_parent",
    "limits.same_calls",
    "limits.spawns",
    "limits.stall",
    "limits.worker_deaths",
    "permissions.ask",
    "permissions.deny",
    "skills.max_iterations",
    "skills.max_retries_per_tool",
];

#[test]
fn a_project_may_say_what_is_on_the_list_and_nothing_else() {
    let user = User::new();
    let shown = user.run(&["config", "--json"]);
    let shown: Vec<Value> = serde_json::from_slice(&shown.stdout).expect("JSON");
    let mut keys: Vec<(String, String)> = shown
        .iter()
        .filter_map(|setting| {
            let key = setting["key"].as_str()?.to_owned();
            Some((key, setting["value"].as_str()?.to_owned()))
        })
        .collect();
    for other in [
        ("providers.anthropic.base_url", "https://elsewhere.example"),
        ("providers.x.key_command", "touch hacked"),
        ("aliases.sonnet", "x/m"),
    ] {
        keys.push((other.0.to_owned(), other.1.to_owned()));
    }
    for (key, value) in keys {
        user.project(&format!("{key} = {}\n", Value::from(value)));
        let output = user.run(&["list"]);
        let said = text(&output.stderr);
        if FOR_PROJECTS.contains(&key.as_str()) || key.starts_with("fork.") {
            assert_eq!(output.status.code(), Some(0), "{key}: {said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{key}");
        let own = user.path("home/.config/asyncagents/asyncagents.toml");
        assert!(
            said.contains(&format!("`{key}` is not for a project to say"))
                && said.contains(&own.display().to_string()),
            "{said}"
        );
    }
}

#[rstest]
#[case("budget.cost", "0.5", "\"none\"", "$0.50")]
#[case("budget.tokens", "1000", "\"none\"", "1000")]
#[case("budget.time", "\"10m\"", "\"11m\"", "10m")]
#[case("budget.turns", "5", "6", "5")]
#[case("limits.depth", "1", "50", "1")]
#[case("limits.spawns", "9", "100000", "9")]
#[case("limits.per_parent", "2", "\"none\"", "2")]
#[case("limits.stall", "\"1m\"", "\"1h\"", "1m")]
fn a_project_does_not_raise_its_users_limits(
    #[case] key: &str,
    #[case] own: &str,
    #[case] wanted: &str,
    #[case] stays: &str,
) {
    let user = User::new();
    user.settings(&format!("{key} = {own}\n"));
    user.project(&format!("{key} = {wanted}\n"));
    assert_eq!(user.setting(key), stays);
    let said = text(&user.run(&["list"]).stderr);
    assert!(
        said.contains(key) && said.contains("a project may only lower it"),
        "{said}"
    );
}

#[test]
fn a_project_lowers_limits_also_those_that_have_none() {
    let user = User::new();
    user.settings("[limits.per_model]\n\"a/b\" = 2\n\"c/d\" = 5\n");
    user.project(
        "budget = { cost = 0.25, time = \"5m\" }\n[limits]\ndepth = 0\n\
         [limits.per_model]\n\"a/b\" = 7\n\"c/d\" = 1\n",
    );
    assert_eq!(user.setting("budget.cost"), "$0.25");
    assert_eq!(user.setting("budget.time"), "5m");
    assert_eq!(user.setting("limits.depth"), "0");
    assert_eq!(user.setting("limits.per_model"), "a/b=2,c/d=1");
    assert_eq!(text(&user.run(&["list"]).stderr), "");
}

#[test]
fn a_database_that_came_with_a_project_is_looked_at_and_never_worked_for() {
    let (attacker, victim) = (User::new(), User::new());
    let made = attacker.path("project/evil.db");
    let proof = attacker.armed(&made);
    let db = victim.path("project/evil.db");
    copy(&made, &db);
    let named = db.to_str().expect("text");

    // The project names it.
    victim.project("db = \"evil.db\"\n");
    let said = victim.refused(&["list"]);
    assert!(said.contains("`db` is not for a project to say"), "{said}");
    fs::remove_file(victim.path("project/asyncagents.toml")).expect("removed");

    // The user does.
    let listed = victim.run(&["--db", named, "list"]);
    assert!(text(&listed.stdout).contains("hello"), "{listed:?}");
    let said = text(&listed.stderr);
    assert!(
        said.contains("has no seal of your key") && said.contains("db adopt"),
        "{said}"
    );
    let tasks: Value =
        serde_json::from_slice(&victim.run(&["--db", named, "list", "--json"]).stdout)
            .expect("JSON");
    let id = tasks[0]["id"].as_str().expect("an ID");
    let looked = victim.run(&["--db", named, "output", id]);
    assert_eq!(looked.status.code(), Some(3), "{looked:?}");
    for args in [
        &["output", id, "--full-session"][..],
        &["cancel", id],
        &["clear"],
        &["resume", id, "go on"],
        &["task", "--host", "scripted", "x"],
        &["worker"],
        &["run", "--continue", "x"],
    ] {
        let args = [&["--db", named][..], args].concat();
        let output = victim.run(&args);
        assert_ne!(output.status.code(), Some(0), "{args:?}: {output:?}");
    }
    assert!(!was_worked_for(&db));
    assert!(!proof.exists());
}

#[test]
fn a_database_from_before_there_were_seals_is_believed_only_in_the_usual_place() {
    let user = User::new();
    let usual = user.path("home/.local/share/asyncagents/asyncagents.db");
    let launch = [
        "-c",
        "worker.autostart=false",
        "task",
        "--host",
        "scripted",
        "x",
    ];
    user.ask(&launch);
    let older = rusqlite::Connection::open(&usual).expect("opens");
    older
        .execute_batch(
            &format!("{SIXTH_FORMAT} ALTER TABLE notices DROP COLUMN kind; ALTER TABLE notices DROP COLUMN run; ALTER TABLE notices DROP COLUMN question; ALTER TABLE notices DROP COLUMN reply; ALTER TABLE tasks DROP COLUMN settings; ALTER TABLE tasks DROP COLUMN seal; DROP TABLE identity; ALTER TABLE owners DROP COLUMN boot; ALTER TABLE owners DROP COLUMN steady; PRAGMA user_version = 3;"),
        )
        .expect("as it was");
    drop(older);
    let elsewhere = user.path("project/older.db");
    copy(&usual, &elsewhere);

    let (named, before) = (
        elsewhere.to_str().expect("text"),
        fs::read(&elsewhere).expect("read"),
    );
    for verb in ["worker", "list"] {
        let said = user.refused(&["--db", named, verb]);
        assert!(said.contains("from before databases had a seal"), "{said}");
    }
    assert_eq!(fs::read(&elsewhere).expect("read"), before, "left alone");
    let adopted = user.ask(&["--db", named, "db", "adopt"]);
    assert!(adopted.contains("were ended: 1"), "{adopted}");
    user.ask(&["output", "--block", &user.ask(&launch)]);
}

#[test]
fn what_is_said_at_a_launch_is_obeyed_only_with_its_users_seal() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let id = user.ask(&[
        "-c",
        "worker.autostart=false",
        "-c",
        "providers.x.base_url=http://127.0.0.1:9/v1",
        "-c",
        "model=x/m",
        "task",
        "--permission",
        "ask",
        "hello",
    ]);
    let proof = user.path("PWNED");
    let changed = rusqlite::Connection::open(&db).expect("opens");
    let more = format!(
        "{{\"providers.x.key_command\":\"touch {}\",",
        proof.display()
    );
    let rows = changed.execute(
        "UPDATE tasks SET settings = ?1 || substr(settings, 2)",
        [&more],
    );
    assert_eq!(rows.expect("changed"), 1);
    drop(changed);
    let output = user.run(&["output", &id, "--block"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("not sealed with your key"), "{said}");
    assert!(!proof.exists());
}

#[test]
fn looking_at_a_copy_does_not_do_its_tasks_again() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let launch = [
        "-c",
        "worker.autostart=false",
        "task",
        "--host",
        "scripted",
        "x",
    ];
    let id = user.ask(&launch);
    let copied = user.path("copy.db");
    copy(&db, &copied);
    let named = copied.to_str().expect("text");

    let listed = user.run(&["--db", named, "list"]);
    assert!(text(&listed.stdout).contains("queued"), "{listed:?}");
    assert!(text(&listed.stderr).contains("is a copy of"), "{listed:?}");
    let said = user.refused(&["--db", named, "cancel", &id]);
    assert!(said.contains("is a copy of"), "{said}");
    assert!(!was_worked_for(&copied));

    // Put back in the place of the original it is still a copy.
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(&db, ending));
    }
    copy(&copied, &db);
    assert!(user.refused(&["cancel", &id]).contains("was put back"));

    let adopted = user.ask(&["--db", named, "db", "adopt"]);
    assert!(adopted.contains("were ended: 1"), "{adopted}");
    let output = user.run(&["--db", named, "output", &id]);
    assert!(
        text(&output.stdout).contains("its database was copied"),
        "{output:?}"
    );
    let anew = user.ask(&["--db", named, "task", "--host", "scripted", "x"]);
    user.ask(&["--db", named, "output", &anew, "--block"]);
    assert!(
        user.ask(&["--db", named, "db", "adopt"])
            .contains("yours already")
    );
}

#[test]
fn a_database_that_was_moved_is_the_same() {
    let user = User::new();
    let (here, there) = (user.path("a.db"), user.path("b.db"));
    let (here, there) = (here.to_str().expect("text"), there.to_str().expect("text"));
    let launch = [
        "-c",
        "worker.autostart=false",
        "task",
        "--host",
        "scripted",
        "x",
    ];
    let id = user.ask(&[&["--db", here][..], &launch].concat());
    for ending in ["", "-wal", "-shm"] {
        let from = beside(Path::new(here), ending);
        if from.exists() {
            fs::rename(from, beside(Path::new(there), ending)).expect("moved");
        }
    }
    user.ask(&["--db", there, "output", &id, "--block"]);
}

#[test]
fn the_key_is_readable_by_its_user_alone_and_nothing_runs_with_one_that_others_could_read() {
    let user = User::new();
    user.ask(&["clear"]);
    let key = user.path("home/.local/share/asyncagents/seal.key");
    let mode = fs::metadata(&key).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("set");
    assert!(user.refused(&["list"]).contains("chmod 600"));
}

#[test]
fn settings_that_every_user_can_write_are_not_obeyed() {
    let user = User::new();
    let folder = user.path("home/.config/asyncagents");
    fs::create_dir_all(&folder).expect("made");
    let file = folder.join("asyncagents.toml");
    fs::write(&file, "[limits]\ndepth = 1\n").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("set");
    assert!(
        user.refused(&["list"])
            .contains("can be written by every user")
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).expect("set");
    user.ask(&["list"]);
}

#[test]
fn a_database_that_others_can_write_is_left_alone() {
    let user = User::new();
    user.ask(&["clear"]);
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    fs::set_permissions(&db, fs::Permissions::from_mode(0o666)).expect("set");
    assert!(
        user.refused(&["list"])
            .contains("can be written by other users")
    );
    fs::set_permissions(&db, fs::Permissions::from_mode(0o600)).expect("set");
    user.ask(&["list"]);

    for mode in [0o777, 0o1777] {
        let open = user.path(&format!("open-{mode:o}"));
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).expect("set");
        let there = open.join("x.db");
        let said = user.refused(&["--db", there.to_str().expect("text"), "list"]);
        assert!(said.contains("other users can put files into"), "{said}");
        assert!(!there.exists());
    }
}

#[test]
fn a_journal_that_somebody_put_beside_the_database_is_not_played_into_it() {
    let user = User::new();
    user.ask(&["clear"]);
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let before = fs::read(&db).expect("read");
    fs::write(beside(&db, "-journal"), "x").expect("written");
    let said = user.refused(&["list"]);
    assert!(said.contains("is not from asyncagents"), "{said}");
    assert_eq!(fs::read(&db).expect("read"), before);
}

#[rstest]
#[case("engine:/")]
#[case("engine://?{}")]
#[case("opencode:http://127.0.0.1:9")]
fn a_host_that_somebody_wrote_into_the_database_is_not_gone_to(#[case] host: &str) {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    user.settings("[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let id = user.ask(&[
        "-c",
        "worker.autostart=false",
        "-c",
        "model=x/m",
        "task",
        "hello",
    ]);
    let changed = rusqlite::Connection::open(&db).expect("opens");
    let rows = changed.execute("UPDATE tasks SET host = ?1", [host]);
    assert_eq!(rows.expect("changed"), 1);
    drop(changed);
    let output = user.run(&["output", &id, "--block"]);
    let said = text(&output.stdout);
    assert!(said.contains("not sealed with your key"), "{said}");
}

/// What the newest format has changed, changed back.
const SIXTH_FORMAT: &str = include_str!("../../store/tests/on_disk/sixth_format.sql");

/// What the fifth format took apart, together again: as the version before left it.
const FOURTH_FORMAT: &str = "UPDATE tasks SET host = host || '//?' || settings || '//#' || seal;
    ALTER TABLE tasks DROP COLUMN settings; ALTER TABLE tasks DROP COLUMN seal;
    ALTER TABLE notices DROP COLUMN kind; ALTER TABLE notices DROP COLUMN run;
    ALTER TABLE notices DROP COLUMN question; ALTER TABLE notices DROP COLUMN reply;
    PRAGMA user_version = 4;";

#[test]
fn a_launch_of_the_version_before_is_still_known_as_the_users() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    user.settings("[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let launch = [
        "-c",
        "worker.autostart=false",
        "-c",
        "model=x/m",
        "task",
        "hello",
    ];
    let id = user.ask(&launch);
    let older = rusqlite::Connection::open(&db).expect("opens");
    let fourth = format!("{SIXTH_FORMAT} {FOURTH_FORMAT}");
    older.execute_batch(&fourth).expect("as it was");
    drop(older);
    let output = user.run(&["output", &id, "--block"]);
    let said = text(&output.stdout);
    // It was worked for, with the settings of its launch: there is no such server.
    assert!(said.contains("127.0.0.1:9"), "{said}");
}

#[test]
fn a_copy_of_an_older_format_is_not_brought_to_the_newest_by_looking_at_it() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let id = user.ask(&[
        "-c",
        "worker.autostart=false",
        "task",
        "--host",
        "scripted",
        "hello",
    ]);
    let older = rusqlite::Connection::open(&db).expect("opens");
    let fourth = format!("{SIXTH_FORMAT} {FOURTH_FORMAT}");
    older.execute_batch(&fourth).expect("as it was");
    older
        .execute_batch("UPDATE tasks SET host = 'scripted'; PRAGMA wal_checkpoint(TRUNCATE);")
        .expect("as it was");
    drop(older);
    let copy = user.path("project/copy.db");
    fs::copy(&db, &copy).expect("copied");
    let before = fs::read(&copy).expect("read");
    let named = copy.to_str().expect("text");
    for verb in ["list", "worker"] {
        let said = user.refused(&["--db", named, verb]);
        assert!(
            said.contains("has no seal of its user's for this place"),
            "{said}"
        );
        assert!(said.contains("db adopt"), "{said}");
    }
    assert_eq!(fs::read(&copy).expect("read"), before, "left alone");
    // The original is the user's, and goes on.
    user.ask(&["output", "--block", &id]);
}

#[test]
fn adopting_ends_also_what_is_hidden() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let launch = [
        "-c",
        "worker.autostart=false",
        "task",
        "--host",
        "scripted",
        "x",
    ];
    let id = user.ask(&launch);
    let hidden = rusqlite::Connection::open(&db).expect("opens");
    let rows = hidden.execute("UPDATE tasks SET cleared = 1", []);
    assert_eq!(rows.expect("changed"), 1);
    drop(hidden);
    let copied = user.path("copy.db");
    copy(&db, &copied);
    let named = copied.to_str().expect("text");
    let adopted = user.ask(&["--db", named, "db", "adopt"]);
    assert!(adopted.contains("were ended: 1"), "{adopted}");
    user.ask(&["--db", named, "-c", "worker.idle=50ms", "worker"]);
    assert!(!beside(&copied, ".sessions").exists(), "{id} was not run");
}

#[rstest]
#[case::of_somebody_else(true, &[], Some(2))]
#[case::that_the_user_knows(true, &["--keep-conversations"], Some(4))]
#[case::of_the_user(false, &[], Some(4))]
fn conversations_that_somebody_else_may_have_written_are_not_gone_on_with(
    #[case] foreign: bool,
    #[case] flags: &[&str],
    #[case] code: Option<i32>,
) {
    let user = User::new();
    user.settings("model = \"x/m\"\nmodels.attempts = 1\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let failed = user.run(&["run", "hello"]);
    assert_eq!(failed.status.code(), Some(4), "nobody answers: {failed:?}");
    let copied = user.path("copy.db");
    copy(
        &user.path("home/.local/share/asyncagents/asyncagents.db"),
        &copied,
    );
    if foreign {
        fs::remove_file(user.path("home/.local/share/asyncagents/seal.key")).expect("removed");
    }
    let named = copied.to_str().expect("text");
    user.ask(&[&["--db", named, "db", "adopt"], flags].concat());
    let go_on = user.run(&["--db", named, "run", "--continue", "on"]);
    assert_eq!(go_on.status.code(), code, "{go_on:?}");
}

#[test]
fn a_file_that_is_on_two_disks_is_a_copy() {
    if !is_root() {
        return;
    }
    let user = User::new();
    let image = user.path("disk");
    let program = |args: &[&str]| {
        let done = Command::new(args[0]).args(&args[1..]).output();
        done.is_ok_and(|done| done.status.success())
    };
    let named = |path: &Path| path.to_str().expect("text").to_owned();
    let made = File::create(&image).and_then(|file| file.set_len(20_000_000));
    made.expect("made");
    if !program(&["mkfs.ext4", "-q", &named(&image)]) {
        println!("SKIPPED: no disk can be made here");
        return;
    }
    let mounted = |image: &Path, name: &str| {
        let folder = user.path(name);
        fs::create_dir(&folder).expect("made");
        program(&["mount", "-o", "loop", &named(image), &named(&folder)]).then_some(folder)
    };
    let Some(first) = mounted(&image, "first") else {
        println!("SKIPPED: nothing can be mounted here");
        return;
    };
    let launch = |db: &str| {
        user.ask(&[
            "--db",
            db,
            "-c",
            "worker.autostart=false",
            "task",
            "--host",
            "scripted",
            "x",
        ])
    };
    launch(&named(&first.join("x.db")));
    assert!(program(&["umount", &named(&first)]));
    let snapshot = user.path("snapshot");
    fs::copy(&image, &snapshot).expect("copied");
    fs::remove_dir(&first).expect("removed");
    let both = mounted(&image, "first").zip(mounted(&snapshot, "second"));
    let (first, second) = both.expect("mounted");
    let [original, clone] = [&first, &second].map(|folder| named(&folder.join("x.db")));
    let seen = text(&user.run(&["--db", &clone, "list"]).stderr);
    launch(&original);
    for folder in [&first, &second] {
        assert!(program(&["umount", &named(folder)]));
    }
    assert!(seen.contains("is a copy of"), "{seen}");
}

#[test]
fn a_link_beside_the_database_is_not_written_through() {
    let user = User::new();
    let launch = |db: &Path| {
        let named = db.to_str().expect("text");
        user.run(&["--db", named, "task", "--host", "scripted", "x"]);
        let tasks = user.run(&["--db", named, "list", "--json"]).stdout;
        let tasks: Value = serde_json::from_slice(&tasks).expect("JSON");
        tasks[0]["id"].as_str().map(str::to_owned)
    };
    for name in [".worker.lock", ".worker.log"] {
        let db = user.path(&format!("project/with{name}.db"));
        let precious = user.path("precious");
        fs::write(&precious, "kept").expect("written");
        std::os::unix::fs::symlink(&precious, beside(&db, name)).expect("linked");
        launch(&db);
        let kept = fs::read_to_string(&precious).expect("read");
        assert_eq!(kept, "kept", "{name}");
    }
    let (db, folder) = (user.path("project/tasks.db"), user.path("folder"));
    fs::create_dir(&folder).expect("made");
    std::os::unix::fs::symlink(&folder, beside(&db, ".sessions")).expect("linked");
    if let Some(id) = launch(&db) {
        let named = db.to_str().expect("text");
        user.run(&["--db", named, "output", &id, "--block"]);
    }
    assert_eq!(fs::read_dir(&folder).expect("read").count(), 0);
}

#[test]
fn a_projects_rule_takes_nothing_away_from_its_users() {
    let user = User::new();
    user.settings("[permissions]\ndeny = [\"bash(*$(*)\", \"bash(rm*)\"]\n");
    let own = user.setting("permissions.deny");
    assert_eq!(own, "bash(*$(*)\nbash(rm*)");
    user.project(
        "permissions.deny = [\"read(zzz)\"]\npermissions.ask = [\"bash(a(*)\", \"edit\"]\n",
    );
    assert_eq!(
        user.setting("permissions.deny"),
        format!("{own}\nread(zzz)")
    );
    assert_eq!(user.setting("permissions.ask"), "bash(a(*)\nedit");
}

#[rstest]
#[case::agent(
    ".claude/agents/general.md",
    "---\nmodel: other/dear\n---\nBe helpful.\n",
    &["run", "hello"]
)]
#[case::skill(
    ".claude/skills/dear/SKILL.md",
    "---\nname: dear\ndescription: d\ncontext: fork\nmodel: other/dear\n---\nDo it.\n",
    &["skill", "run", "dear"]
)]
#[case::skill_that_joins_the_conversation(
    ".claude/skills/dear/SKILL.md",
    "---\nname: dear\ndescription: d\nmodel: other/dear\n---\nDo it.\n",
    &["skill", "run", "dear"]
)]
fn a_project_sends_nothing_to_another_provider(
    #[case] file: &str,
    #[case] content: &str,
    #[case] command: &[&str],
) {
    let user = User::new();
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    other.set_nonblocking(true).expect("set");
    let port = other.local_addr().expect("an address").port();
    user.settings(&format!(
        "model = \"usual/m\"\nmodels.attempts = 1\n\
         [providers.usual]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [providers.other]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n"
    ));
    let file = user.path("project").join(file);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, content).expect("written");
    let ran = user.run(command);
    assert_eq!(
        ran.status.code(),
        Some(4),
        "the usual one is not there: {ran:?}"
    );
    let heard = other.accept().map(|_| ());
    assert!(heard.is_err(), "the other was asked");
}

#[test]
fn a_worker_is_in_no_projects_folder() {
    let user = User::new();
    let id = user.ask(&["task", "--host", "scripted", "x"]);
    let lock = beside(
        &user.path("home/.local/share/asyncagents/asyncagents.db"),
        ".worker.lock",
    );
    let lock = fs::read_to_string(lock).expect("signed");
    let worker = lock.split(' ').next().expect("a process");
    let folder = fs::read_link(format!("/proc/{worker}/cwd")).expect("it lives");
    assert_eq!(folder, Path::new("/"), "{id}");
}

#[test]
fn a_workers_command_line_tells_no_key_command() {
    let user = User::new();
    user.ask(&[
        "-c",
        "providers.x.key_command=echo PRIVATE",
        "-c",
        "worker.idle=10s",
        "task",
        "--host",
        "scripted",
        "x",
    ]);
    let lock = beside(
        &user.path("home/.local/share/asyncagents/asyncagents.db"),
        ".worker.lock",
    );
    let lock = fs::read_to_string(lock).expect("signed");
    let worker = lock.split(' ').next().expect("a process");
    let line = fs::read(format!("/proc/{worker}/cmdline")).expect("it lives");
    let line = text(&line);
    assert!(line.contains("worker.idle=10s"), "{line}");
    assert!(!line.contains("PRIVATE"), "{line}");
}

/// It may have a key in it, and a database is copied and shown around.
#[test]
fn a_database_has_no_key_command_and_its_task_runs_it_all_the_same() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let proof = user.armed(&db);
    user.ask(&[
        "-c",
        "worker.autostart=false",
        "-c",
        "providers.y.base_url=http://me:PRIVATE@127.0.0.1:9/v1",
        "-c",
        "model=y/m",
        "task",
        "hello",
    ]);
    for ending in ["", "-wal"] {
        let stored = fs::read(beside(&db, ending)).unwrap_or_default();
        let stored = String::from_utf8_lossy(&stored);
        assert!(!stored.contains("PWNED") && !stored.contains("PRIVATE"));
    }
    let launches = user.path("home/.local/share/asyncagents/launches");
    let files: Vec<_> = fs::read_dir(&launches).expect("there").flatten().collect();
    assert_eq!(files.len(), 2);
    for file in &files {
        let mode = file.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    user.ask(&["list"]);
    until("its key command ran", || proof.exists());
}

#[test]
fn a_launch_whose_key_command_is_gone_or_changed_says_so() {
    let user = User::new();
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    let proof = user.armed(&db);
    let launches = user.path("home/.local/share/asyncagents/launches");
    let file = fs::read_dir(launches).expect("there").flatten().next();
    fs::write(file.expect("a file").path(), "touch OTHER; echo k").expect("written");
    let shown = || user.ask(&["list", "--json"]);
    until("it has ended", || {
        shown().contains("was changed; launch it anew")
    });
    assert!(!proof.exists());
}

#[test]
fn a_log_goes_where_the_user_says() {
    let user = User::new();
    let (real, link) = (user.path("real.log"), user.path("link.log"));
    fs::write(&real, "").expect("written");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    for file in ["/dev/null", link.to_str().expect("text")] {
        user.ask(&["-c", &format!("log.file={file}"), "list"]);
    }
}

#[test]
fn a_file_of_settings_without_end_is_refused_at_once() {
    let user = User::new();
    user.project(&"# long\n".repeat(200_000));
    let said = user.refused(&["list"]);
    assert!(said.contains("it has more than 1000000 bytes"), "{said}");
}

#[test]
fn the_users_own_file_is_not_a_projects_for_those_who_work_beside_it() {
    let user = User::new();
    user.settings("model = \"x/m\"\n");
    let beside_it = user.path("home/.config/asyncagents/agents");
    fs::create_dir(&beside_it).expect("made");
    for folder in [beside_it, user.path("home/.config/asyncagents")] {
        let listed = user.command(&["list"]).current_dir(folder).output();
        let listed = listed.expect("runs");
        assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_database_does_not_block() {
    let user = User::new();
    for name in ["e.db", "e.db-wal"] {
        let made = Command::new("mkfifo").arg(user.path(name)).status();
        assert!(made.expect("runs").success());
        fs::write(user.path("e.db-journal"), "").expect("written");
        let named = user.path("e.db");
        let said = user.refused(&["--db", named.to_str().expect("text"), "list"]);
        assert!(said.contains("is not a plain file"), "{said}");
        fs::remove_file(user.path(name)).expect("removed");
    }
}

#[test]
fn words_of_a_project_are_no_line_of_their_own() {
    let user = User::new();
    user.settings("budget.tokens = 5\n");
    user.project("budget.tokens = \"9\\nasyncagents: all is well\"\n");
    let said = text(&user.run(&["list"]).stderr);
    assert!(said.contains("all is well"), "{said}");
    assert!(!said.contains("\nasyncagents: all is well"), "{said}");
}

#[test]
fn words_of_a_project_do_not_steer_the_terminal() {
    let user = User::new();
    user.project("budget.tokens = \"\\u001b]0;OWNED\\u0007\"\n");
    let mut shown = Command::new("script");
    let list = format!("{} list", env!("CARGO_BIN_EXE_asyncagents-stories"));
    shown
        .args(["-q", "-c", &list, "/dev/null"])
        .current_dir(user.path("project"))
        .env("HOME", user.path("home"))
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CONFIG_HOME");
    let shown = text(&shown.output().expect("runs").stdout);
    assert!(shown.contains("OWNED"), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

/// Another user's number. Giving files away needs root.
const SOMEBODY: u32 = 54_321;

#[expect(clippy::print_stderr, reason = "what is not tested is said")]
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED: giving files to another user needs root");
    }
    root
}

#[test]
fn what_another_user_has_made_is_not_read() {
    if !is_root() {
        return;
    }
    let user = User::new();
    // In a folder that all share, above the project.
    let above = user.path("asyncagents.toml");
    fs::write(&above, "agent = \"somebody-elses\"\n").expect("written");
    chown(&above, Some(SOMEBODY), None).expect("given away");
    assert_eq!(user.setting("agent"), "general");
    let said = text(&user.run(&["list"]).stderr);
    assert!(said.contains("belongs to another user"), "{said}");

    // A folder of somebody else's ends the search.
    chown(&above, Some(0), None).expect("taken back");
    // Nor may a link of theirs choose one of the user's files.
    let (real, above_too) = (user.path("real.toml"), user.path("asyncagents.toml"));
    fs::rename(&above, &real).expect("renamed");
    std::os::unix::fs::symlink(&real, &above_too).expect("linked");
    lchown(&above_too, Some(SOMEBODY), None).expect("given away");
    assert_eq!(user.setting("agent"), "general");
    fs::rename(&real, &above).expect("renamed");
    assert_eq!(user.setting("agent"), "somebody-elses");
    chown(user.path("project"), Some(SOMEBODY), None).expect("given away");
    assert_eq!(user.setting("agent"), "general");

    user.ask(&["clear"]);
    let db = user.path("home/.local/share/asyncagents/asyncagents.db");
    chown(&db, Some(SOMEBODY), None).expect("given away");
    assert!(user.refused(&["list"]).contains("belongs to another user"));
}

#[test]
fn skills_that_another_user_put_above_are_not_used() {
    if !is_root() {
        return;
    }
    let user = User::new();
    let skill = |folder: &Path, name: &str| {
        let file = folder.join(format!(".claude/skills/{name}/SKILL.md"));
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        let head = format!("---\nname: {name}\ndescription: d\n---\nDo it.\n");
        fs::write(&file, head).expect("written");
        file
    };
    // Above, around all of it, with a repository.
    fs::create_dir(user.path(".git")).expect("made");
    skill(&user.path(""), "above");
    let planted = skill(&user.path("project"), "planted");
    skill(&user.path("project"), "own");
    assert!(user.ask(&["skill", "list"]).contains("above"), "its own");
    chown(user.path(""), Some(SOMEBODY), None).expect("given away");
    chown(planted, Some(SOMEBODY), None).expect("given away");
    let listed = user.run(&["skill", "list"]);
    let listed = text(&listed.stdout);
    assert!(listed.contains("own"), "{listed}");
    assert!(!listed.contains("above"), "{listed}");
    let shown = user.run(&["skill", "show", "planted"]);
    assert_ne!(shown.status.code(), Some(0), "{shown:?}");
}

#[test]
fn a_worker_takes_nothing_from_the_project_it_happens_to_be_started_in() {
    let user = User::new();
    user.project("limits.concurrency = 0\n");
    let id = user.ask(&["task", "--host", "scripted", "x"]);
    until("it is done", || {
        user.run(&["output", &id]).status.code() == Some(0)
    });
}
