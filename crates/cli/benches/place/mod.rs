//! A home with a database, a project, and a worker for it.
#![allow(dead_code, reason = "not every benchmark needs all of it")]

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rusqlite::Connection;
use tempfile::TempDir;

/// Something to read, as projects have it.
const SOURCE: &str = include_str!("mod.rs");

pub(crate) struct Place {
    folder: TempDir,
    model: String,
    worker: Option<Child>,
    /// The newest task, once there is one.
    newest: Option<String>,
}

impl Place {
    pub(crate) fn new(model: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("project")).expect("a folder");
        fs::write(folder.path().join("project/source.rs"), SOURCE).expect("written");
        Self {
            folder,
            model: model.to_owned(),
            worker: None,
            newest: None,
        }
    }

    pub(crate) fn with_worker(mut self) -> Self {
        let worker = self.command(&["-c", "worker.idle=1h", "worker"]);
        self.worker = Some({ worker }.spawn().expect("starts"));
        // The first that it does is to make the database.
        while !self.db().exists() {
            thread::sleep(Duration::from_millis(5));
        }
        self
    }

    /// Ends the worker in good order.
    #[allow(dead_code, reason = "not every benchmark needs it")]
    pub(crate) fn without_worker(mut self) -> Self {
        self.stop();
        self.newest = Some(self.ask("SELECT id FROM tasks ORDER BY born DESC LIMIT 1"));
        self
    }

    fn stop(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            let process = worker.id().to_string();
            let ended = Command::new("kill").arg(process).status();
            ended.expect("told to end");
            worker.wait().expect("ended");
        }
    }

    /// The worker that the first launch has started.
    pub(crate) fn started_worker(&self) -> u32 {
        let lock = self.db().with_extension("db.worker.lock");
        let lock = fs::read_to_string(lock).expect("a worker");
        let process = lock.split(' ').next().unwrap_or_default();
        process.parse().expect("a number")
    }

    pub(crate) fn db(&self) -> PathBuf {
        let data = self.folder.path().join(".local/share");
        data.join("asyncagents/asyncagents.db")
    }

    pub(crate) fn task(&self) -> String {
        self.newest.clone().expect("a task")
    }

    fn command(&self, args: &[&str]) -> Command {
        let base = format!("providers.test.base_url={}", self.model);
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.folder.path().join("project"))
            .env_clear()
            .env("HOME", self.folder.path())
            .args(["-c", &base, "-c", "providers.test.wire=anthropic"])
            // The script does the same again and again.
            .args(["-c", "model=test/model", "-c", "limits.same_calls=1000000"])
            // The end of a task is awaited, and one of them never ends.
            .args(["-c", "notify.window=0s"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[String]) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ended = self.command(&args).status().expect("runs");
        assert!(ended.success(), "{args:?}: {ended}");
    }

    pub(crate) fn launch(&self, prompt: &str) {
        self.run(&["task".to_owned(), prompt.to_owned()]);
    }

    /// How many tasks are not settled.
    pub(crate) fn unfinished(&self) -> u32 {
        self.ask(
            "SELECT (SELECT count(*) FROM tasks WHERE unfinished = 1) \
                  + (SELECT count(*) FROM notices WHERE state = 'pending')",
        )
    }

    /// Waits until no more than so many tasks are unfinished.
    pub(crate) fn until_idle(&self, most: u32) {
        while self.unfinished() > most {
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        let db = Connection::open(self.db()).expect("a database");
        db.busy_timeout(Duration::from_secs(10)).expect("set");
        db.query_row(sql, [], |row| row.get(0)).expect("a row")
    }

    /// Copies the tasks there are, with all that is kept of them, until there are so many. The copies
    /// are older.
    pub(crate) fn copy_tasks(&self, until: usize) {
        let mut db = Connection::open(self.db()).expect("a database");
        let there: u32 = self.ask("SELECT count(*) FROM tasks");
        let there = usize::try_from(there).expect("a number");
        for table in COPIED.map(|(table, _)| table) {
            let copy = format!("CREATE TEMP TABLE real_{table} AS SELECT * FROM main.{table}");
            db.execute_batch(&copy).expect("copied");
        }
        let statements = COPIED.map(|(table, changed)| copy_rows(&db, table, changed));
        let copies = until.div_ceil(there.max(1));
        let words = "INSERT INTO main.task_words (rowid, words) \
             SELECT born - 100000 * ?2, lower(description || char(10) || agent || char(10) \
             || 'task_' || ?1 || substr(id, 14)) FROM temp.real_tasks WHERE ?2 = ?2";
        let statements: Vec<String> = statements.into_iter().chain([words.to_owned()]).collect();
        for first in (1..copies).step_by(100) {
            let batch = db.transaction().expect("a transaction");
            for copy in first..copies.min(first + 100) {
                let copy = u32::try_from(copy).expect("a number");
                // Random IDs begin differently.
                let tag = format!("{:08x}", copy.wrapping_mul(2_654_435_761));
                for sql in &statements {
                    let values = rusqlite::params![tag, copy];
                    batch
                        .prepare_cached(sql)
                        .expect("a statement")
                        .execute(values)
                        .expect("copied");
                }
            }
            batch.commit().expect("saved");
        }
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .expect("written");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop();
    }
}

type Changed = &'static [(&'static str, &'static str)];

/// The tables that are copied, and the columns that are not as they were. `?1` are the digits that an
/// ID begins with, and `?2` is the number of the copy.
const COPIED: [(&str, Changed); 6] = [
    (
        "tasks",
        &[
            ("id", "'task_' || ?1 || substr(id, 14)"),
            ("session", "'ses_' || ?1 || substr(session, 13)"),
            ("chain", "?1 || substr(chain, 9)"),
            ("root", "replace(root, id, 'task_' || ?1 || substr(id, 14))"),
            ("born", "born - 100000 * ?2"),
            ("launched_at", "launched_at - 1000 * ?2"),
            ("ended_at", "ended_at - 1000 * ?2"),
        ],
    ),
    (
        "events",
        &[
            ("pos", "NULL"),
            ("task", "'task_' || ?1 || substr(task, 14)"),
        ],
    ),
    (
        "notices",
        &[
            ("pos", "NULL"),
            ("id", "'task_' || ?1 || substr(id, 14)"),
            ("task", "'task_' || ?1 || substr(task, 14)"),
        ],
    ),
    (
        "chains",
        &[
            ("id", "?1 || substr(id, 9)"),
            ("task", "'task_' || ?1 || substr(task, 14)"),
            ("begun", "begun - 1000 * ?2"),
        ],
    ),
    (
        "sessions",
        &[
            ("id", "'ses_' || ?1 || substr(id, 13)"),
            ("task", "'task_' || ?1 || substr(task, 14)"),
        ],
    ),
    (
        "entries",
        &[
            ("pos", "NULL"),
            ("session", "'ses_' || ?1 || substr(session, 13)"),
        ],
    ),
];

fn copy_rows(db: &Connection, table: &str, changed: Changed) -> String {
    let mut columns = db
        .prepare("SELECT name FROM pragma_table_info(?1)")
        .expect("a statement");
    let columns = columns.query_map([table], |row| row.get::<_, String>(0));
    let columns: Vec<String> = columns
        .expect("columns")
        .map(|column| column.expect("a name"))
        .collect();
    let values = columns.iter().map(|column| {
        let changed = changed.iter().find(|(name, _)| name == column);
        changed.map_or(column.as_str(), |(_, value)| *value)
    });
    let values: Vec<&str> = values.collect();
    // Both parameters are there in every statement.
    format!(
        "INSERT INTO main.{table} ({}) SELECT {} FROM temp.real_{table} WHERE ?2 = ?2",
        columns.join(", "),
        values.join(", ")
    )
}
