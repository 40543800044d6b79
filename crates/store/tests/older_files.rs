//! Databases that earlier versions have made keep what is in them. The files were written by those
//! versions: a task that completed, one that failed, and one that waits for the built-in agent.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use asyncagents_core::{
    event::Event,
    host_ref::{HostRef, HostSetup},
    port::{StoreErrorKind, Stored, query},
    task::{Status, Task},
};
use asyncagents_store::Sqlite;
use rstest::rstest;
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

const SETTINGS: &str =
    r#"{"model":"x/m","permissions.mode":"yolo","providers.x.base_url":"http://127.0.0.1:9/v1"}"#;

/// Before the fourth format nothing was sealed.
#[rstest]
#[case::third("format-3.db", 0)]
#[case::fourth("format-4.db", 64)]
#[tokio::test]
async fn tasks_of_an_earlier_format_are_what_they_were(#[case] file: &str, #[case] seal: usize) {
    let (_folder, path) = older(file);
    let store = Sqlite::open(&path).expect("opened");

    let (tasks, launched) = read(&store).await;
    let statuses = tasks
        .iter()
        .map(|task| (&*task.brief.description, task.status()));
    let statuses: Vec<_> = statuses.collect();
    assert_eq!(
        statuses,
        [
            ("waits", Status::Queued),
            ("breaks", Status::Error),
            ("looks", Status::Completed)
        ]
    );
    let waits = &tasks[0].brief.host;
    assert_eq!(
        waits.host,
        HostRef::engine("/srv/asyncagents-fixture/project")
    );
    assert_eq!(&*waits.settings.json, SETTINGS);
    assert_eq!(waits.settings.seal.len(), seal);
    assert_eq!(launched, *waits, "what began the task says the same");
    for ended in &tasks[1..] {
        assert!(matches!(
            &ended.brief.host.host,
            HostRef::Other(name) if name.starts_with("scripted:")
        ));
    }
}

/// What is damaged stays so for those who read it, and keeps nobody from the rest.
#[test]
fn a_damaged_text_does_not_keep_a_file_from_the_newest_format() {
    let (_folder, path) = older("format-4.db");
    let other = Connection::open(&path).expect("open");
    let damage = "UPDATE tasks SET description = x'ff00fe' WHERE description = 'looks'";
    assert_eq!(other.execute(damage, []).expect("damaged"), 1);
    let entry = "INSERT INTO entries (session, seq, at, kind, body) \
        VALUES ('ses_damaged', 1, 1, 'answered', x'ff00fe')";
    assert_eq!(other.execute(entry, []).expect("damaged"), 1);
    drop(other);
    Sqlite::open(&path).expect("opened");
    let other = Connection::open(&path).expect("open");
    let count = |sql: &str| other.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(count("SELECT count(*) FROM tasks"), Ok(3));
    let entries = "SELECT count(*) FROM entries WHERE session = 'ses_damaged'";
    assert_eq!(count(entries), Ok(1));
}

#[rstest]
#[case::third("format-3.db")]
#[case::fourth("format-4.db")]
fn a_file_that_an_older_process_works_with_is_left_alone_until_that_has_ended(#[case] file: &str) {
    let (_folder, path) = older(file);
    let lease = |seconds: i64| {
        let until = now() + seconds * 1_000;
        let other = Connection::open(&path).expect("open");
        let lease = "REPLACE INTO owners (id, until) VALUES ('older', ?1)";
        other.execute(lease, [until]).expect("a lease");
    };
    lease(10);
    let before = fs::read(&path).expect("read");
    let refused = Sqlite::open(&path).err().expect("refused");
    assert!(
        matches!(refused.kind(), StoreErrorKind::InUse { .. }),
        "{refused}"
    );
    assert_eq!(fs::read(&path).expect("read"), before);
    lease(-1);
    Sqlite::open(&path).expect("its lease has run out");
}

/// A process that was stopped for longer than its lease may go on after the file was brought to
/// the newest format.
#[tokio::test]
async fn what_an_older_process_writes_later_is_read_as_it_meant_it() {
    let (_folder, path) = older("format-4.db");
    drop(Sqlite::open(&path).expect("opened"));
    let other = Connection::open(&path).expect("open");
    let seal = "5".repeat(64);
    let host = format!("engine:/srv/asyncagents-fixture/project//?{SETTINGS}//#{seal}");
    let update = "UPDATE tasks SET host = ?1, settings = '', seal = '' WHERE state = 'queued'";
    assert_eq!(other.execute(update, [&host]).expect("written"), 1);
    let update = "UPDATE tasks SET state = 'failed' WHERE state = 'error'";
    assert_eq!(other.execute(update, []).expect("written"), 1);
    drop(other);
    let store = Sqlite::open(&path).expect("opened");
    let (tasks, _) = read(&store).await;
    let waits = &tasks[0].brief.host;
    assert_eq!(
        waits.host,
        HostRef::engine("/srv/asyncagents-fixture/project")
    );
    assert_eq!(
        (&*waits.settings.json, &*waits.settings.seal),
        (SETTINGS, &*seal)
    );
    assert_eq!(tasks[1].status(), Status::Error);
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.expect("later").as_millis()).expect("a moment")
}

/// A copy of a file that an earlier version has made.
fn older(file: &str) -> (TempDir, PathBuf) {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("older.db");
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::copy(older.join(file), &path).expect("copied");
    (folder, path)
}

/// All tasks, newest first, and the host in the event that began the newest.
async fn read(store: &Sqlite) -> (Vec<Task>, HostSetup) {
    let read = query(store, |journal| -> Stored<_> {
        let tasks = journal.tasks_of(None)?;
        let events = journal.events(&tasks[0].id)?;
        Ok((tasks, events))
    });
    let (tasks, mut events) = read.await.expect("what is there");
    let Event::Launched(launched) = events.swap_remove(0).event else {
        panic!("it began otherwise: {events:?}");
    };
    (tasks, launched.brief.host)
}
