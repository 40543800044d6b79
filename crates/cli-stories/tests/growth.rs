//! A database in which very many tasks have finished: what is shown of them, and how they go.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use asyncagents_core::moment::Moment;
use asyncagents_store::Sqlite;
use asyncagents_testkit::finished_tasks::FinishedTasks;
use serde_json::Value;
use tempfile::TempDir;

/// A home of its own for every test, with a database that has one task, which waits.
struct Home {
    folder: TempDir,
    waits: String,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let waits = String::new();
        let mut home = Self { folder, waits };
        home.waits = home.ask(&["task", "Wait for a Worker"]);
        home
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("data/asyncagents/asyncagents.db")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents-stories"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_DATA_HOME", self.folder.path().join("data"))
            .env("ASYNCAGENTS_HOST", "scripted")
            .env("ASYNCAGENTS_WORKER_AUTOSTART", "false")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("runs")
    }

    /// What the database says, as a number.
    fn number(&self, sql: &str) -> i64 {
        let db = rusqlite::Connection::open(self.db()).expect("opens");
        let number = db.query_row(sql, [], |row| row.get(0));
        number.expect("a number")
    }

    /// Every task is there with all that belongs to it, or nothing of it is.
    fn has_no_halves(&self) {
        for table in ["events", "notices", "chains"] {
            let strays = format!(
                "SELECT count(*) FROM {table} WHERE task <> '' AND task NOT IN (SELECT id FROM tasks)"
            );
            assert_eq!(self.number(&strays), 0, "{table} of tasks that are gone");
        }
        let events = "SELECT count(*) FROM tasks t WHERE t.seq <> \
             (SELECT count(*) FROM events e WHERE e.task = t.id)";
        assert_eq!(self.number(events), 0, "tasks without all their events");
        let strays = "SELECT count(*) FROM entries WHERE session NOT IN (SELECT id FROM sessions)";
        assert_eq!(self.number(strays), 0, "entries of sessions that are gone");
        let found = self.number("SELECT count(*) FROM task_words");
        let tasks = self.number("SELECT count(*) FROM tasks");
        assert_eq!(found, tasks, "tasks that are found by a search");
    }

    fn ask(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim_end()
            .to_owned()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ask(args)).expect("JSON")
    }

    /// Adds tasks that finished so many days ago.
    fn finished(&self, numbers: std::ops::Range<u128>, days: i64) {
        let tasks = FinishedTasks::of_shell(days_ago(days));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let store = Sqlite::open(self.db()).expect("opens");
        runtime
            .block_on(tasks.save(&store, numbers))
            .expect("saved");
    }
}

fn days_ago(days: i64) -> Moment {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("later");
    let now = i64::try_from(now.as_millis()).expect("a moment");
    Moment::from_millis(now - days * 86_400_000)
}

/// The lines of a table of tasks, without its head.
fn rows(list: &str) -> Vec<&str> {
    let rows = list.lines().filter(|line| line.starts_with("| task_"));
    rows.collect()
}

#[test]
fn a_list_ends_with_what_is_not_in_it_and_never_leaves_out_what_is_not_finished() {
    let home = Home::new();
    home.finished(1..66, 1);
    let list = home.ask(&["list"]);
    assert_eq!(rows(&list).len(), 51, "{list}");
    assert!(rows(&list)[0].contains("look at query 65"), "{list}");
    assert!(rows(&list)[50].contains(&home.waits), "{list}");
    assert!(
        list.contains("\n51 tasks: 1 queued, 50 completed; "),
        "{list}"
    );
    assert!(
        list.ends_with(
            "\n15 more are not shown: --all shows all of them, --limit N the N newest; --status and \
             --search choose"
        ),
        "{list}"
    );

    let all = home.ask(&["list", "--all"]);
    assert_eq!(rows(&all).len(), 66, "{all}");
    assert!(
        all.contains("\n66 tasks: 1 queued, 65 completed; "),
        "{all}"
    );
    let two = home.ask(&["list", "--limit", "2"]);
    assert_eq!(rows(&two).len(), 2, "{two}");
    assert!(two.contains("\n64 more are not shown: "), "{two}");
    let last = home.ask(&["list", "--limit", "65"]);
    assert!(last.contains("\n1 more is not shown: "), "{last}");

    let found = home.ask(&["list", "--search", "QUERY 6"]);
    assert_eq!(rows(&found).len(), 7, "6 and 60 to 65: {found}");
    let waits = home.ask(&["list", "--search", "wait for a w", "--status", "running"]);
    assert_eq!(rows(&waits).len(), 1, "{waits}");
    let by_id = home.ask(&["list", "--search", &home.waits.to_uppercase()]);
    assert_eq!(rows(&by_id).len(), 1, "{by_id}");
    let none = home.ask(&["list", "--search", "query 6", "--status", "error"]);
    assert_eq!(none, "No background tasks found");
}

#[test]
fn a_list_as_json_says_in_its_last_task_what_is_left_out() {
    let home = Home::new();
    home.finished(1..66, 1);
    let list = home.json(&["list", "--json"]);
    let tasks = list.as_array().expect("a list");
    assert_eq!(tasks.len(), 51);
    assert_eq!(tasks[50]["left_out"]["count"], 15);
    assert_eq!(tasks[50]["left_out"]["or_more"], false);
    assert!(
        tasks[..50]
            .iter()
            .all(|task| task.get("left_out").is_none())
    );
    let all = home.json(&["list", "--json", "--all"]);
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), 66);
    assert!(all.iter().all(|task| task.get("left_out").is_none()));
}

#[test]
fn what_a_list_cannot_show_is_refused() {
    let home = Home::new();
    for args in [
        ["list", "--limit", "many"].as_slice(),
        &["list", "--limit", "-1"],
        &["list", "--limit", "0"],
        &["list", "--limit", "3", "--all"],
        &["list", "--status", "finished"],
    ] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn old_tasks_are_deleted_and_their_room_is_given_back() {
    let home = Home::new();
    home.finished(1..2_001, 40);
    home.finished(2_001..2_011, 10);
    let size = || fs::metadata(home.db()).expect("a file").len();
    let before = size();
    let would = home.ask(&["prune", "--dry-run"]);
    assert_eq!(would, "Nothing was deleted. Old enough: 2,000 tasks.");
    let output = home.run(&["prune"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("2,000 tasks would be deleted; say --yes to do so"),
        "{said}"
    );
    assert_eq!(home.number("SELECT count(*) FROM tasks"), 2_011);

    let said = home.ask(&["prune", "--yes"]);
    assert!(
        said.starts_with("Deleted 2,000 tasks. The database had "),
        "{said}"
    );
    let log = home.db().with_extension("db-wal");
    let log = fs::metadata(log).map_or(0, |file| file.len());
    assert!(
        size() * 5 < before,
        "{before} bytes before, {} after",
        size()
    );
    assert_eq!(log, 0, "nor is it in the log");
    let list = home.ask(&["list"]);
    assert!(
        list.contains("\n11 tasks: 1 queued, 10 completed; "),
        "{list}"
    );
    home.has_no_halves();

    let rest = home.json(&["prune", "--older", "9d", "--yes", "--json"]);
    assert_eq!(rest["tasks"], 10);
    assert_eq!(rest["deleted"], true);
    assert_eq!(
        home.ask(&["prune", "--older", "0s"]),
        "Nothing is that old."
    );
    let left = home.ask(&["list"]);
    assert!(
        left.ends_with("1 task: 1 queued"),
        "what waits stays: {left}"
    );
}

#[test]
fn a_prune_that_is_killed_leaves_no_half_of_a_task() {
    let home = Home::new();
    home.finished(1..8_001, 40);
    home.finished(8_001..8_051, 1);
    for left in [7_000, 4_000, 2_000] {
        let mut prune = home.command(&["prune", "--yes"]);
        let mut prune = prune.stdout(Stdio::null()).spawn().expect("runs");
        while home.number("SELECT count(*) FROM tasks") > left {
            assert_eq!(prune.try_wait().expect("a process"), None, "not yet");
        }
        prune.kill().expect("killed");
        prune.wait().expect("ended");
        home.has_no_halves();
        assert!(home.number("SELECT count(*) FROM tasks") >= 51);
    }
    home.ask(&["prune", "--yes"]);
    home.has_no_halves();
    assert_eq!(home.number("SELECT count(*) FROM tasks"), 51);
    assert_eq!(
        home.number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
        0
    );
}

/// As after a prune that was killed when it had deleted everything.
#[test]
fn room_that_is_free_is_given_back_though_nothing_is_old() {
    let home = Home::new();
    home.finished(1..2_001, 1);
    let db = rusqlite::Connection::open(home.db()).expect("opens");
    db.execute_batch("DELETE FROM events; PRAGMA wal_checkpoint(TRUNCATE)")
        .expect("deleted");
    drop(db);
    let size = || fs::metadata(home.db()).expect("a file").len();
    let before = size();
    let said = home.ask(&["prune"]);
    assert!(
        said.starts_with("Nothing is that old. The database had "),
        "{said}"
    );
    assert!(size() < before, "{before} bytes before, {} after", size());
    assert_eq!(home.ask(&["prune"]), "Nothing is that old.");
}

#[test]
fn what_prune_cannot_do_is_one_clear_line() {
    let home = Home::new();
    let older = "a duration like 500ms, 90s, 10m, 1h 30m or 30d";
    for (args, why) in [
        (["prune", "--older", "soon"].as_slice(), older),
        (&["prune", "--older", "-3d"], "error"),
        (&["prune", "--older", "99999999999999999999d"], older),
        (&["prune", "--dry-run", "--yes"], "cannot be used with"),
        (&["prune", "--db", "nowhere.db"], "there is no database"),
    ] {
        let output = home.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
    // A copy is another database, and not worked for.
    let copy = home.folder.path().join("copy.db");
    fs::copy(home.db(), &copy).expect("copied");
    let before = fs::read(&copy).expect("read");
    let named = copy.to_str().expect("text");
    let output = home.run(&["prune", "--db", named, "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing in it is run or changed"), "{said}");
    assert_eq!(fs::read(&copy).expect("read"), before);
}

#[test]
fn a_worker_without_work_deletes_what_the_settings_do_not_keep() {
    let home = Home::new();
    home.ask(&["cancel", &home.waits]);
    home.finished(1..11, 40);
    let worker = ["-c", "worker.idle=100ms", "worker"];
    home.ask(&worker);
    assert_eq!(
        home.number("SELECT count(*) FROM tasks"),
        11,
        "by default all stay"
    );
    home.ask(&[&["-c", "retention.tasks=30d"], &worker[..]].concat());
    assert_eq!(home.number("SELECT count(*) FROM tasks"), 1);
    home.has_no_halves();
}
