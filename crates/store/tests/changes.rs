//! Whoever waits for what others write hears of it, and need not look again and again.
//!
//! The looks are an hour apart here: what is noticed was told.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]
#![cfg(target_os = "linux")]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use asyncagents_core::{
    id::{OwnerId, SessionId},
    moment::Moment,
    port::{Journal, LeaseTime, Store, Stored, transact, transact_unsynced},
};
use asyncagents_store::{Options, Sqlite};
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the other process writes.
const DATABASE: &str = "CHANGES_TEST_DATABASE";

fn open(path: &Path) -> Sqlite {
    let options = Options {
        poll_interval: HOUR,
        fallback_interval: HOUR,
        ..Options::default()
    };
    Sqlite::open_with(path, options).expect("a store")
}

async fn write(store: &Sqlite) {
    let work = |journal: &mut dyn Journal| -> Stored<()> {
        let session = SessionId::from("main");
        let wait = journal.wait(&"task_1".into(), &session, Moment::from_millis(1))?;
        journal.stop_waiting(wait)
    };
    transact(store, work).await.expect("written");
}

async fn hears(store: &Sqlite, version: i64, what: &str) -> i64 {
    let newer = timeout(PATIENCE, store.changed_since(version)).await;
    let newer = newer.unwrap_or_else(|_| panic!("not heard: {what}"));
    assert_ne!(newer, version);
    newer
}

/// The first look comes with the first wait; from then on there is none for an hour.
async fn looked_once(store: &Sqlite) -> i64 {
    let version = store.version().await.expect("a version");
    write(store).await;
    hears(store, version, "its own").await
}

/// Not a story: what another process does.
#[tokio::test]
async fn the_other_process() {
    if let Some(path) = env::var_os(DATABASE) {
        write(&open(Path::new(&path))).await;
    }
}

fn another_process_writes(path: &Path) {
    let program = env::current_exe().expect("this program");
    let status = Command::new(program)
        .args(["--exact", "the_other_process"])
        .env(DATABASE, path)
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("it runs").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_another_process_is_heard_by_all_who_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let store = open(&path);
    let mut version = looked_once(&store).await;
    for _ in 0..3 {
        let other = path.clone();
        let writes = tokio::task::spawn_blocking(move || another_process_writes(&other));
        let (one, two) = tokio::join!(
            hears(&store, version, "by the first"),
            hears(&store, version, "by the second")
        );
        writes.await.expect("written");
        assert_eq!(one, two);
        version = store.version().await.expect("a version");
    }
}

#[tokio::test]
async fn what_is_written_after_the_log_was_emptied_is_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let (store, other) = (open(&path), open(&path));
    let version = looked_once(&store).await;
    write(&other).await;
    hears(&store, version, "before").await;
    other.give_back_room(true).await.expect("emptied");
    let version = store.version().await.expect("a version");
    write(&other).await;
    hears(&store, version, "after").await;
}

#[tokio::test]
async fn a_file_that_is_reached_by_a_link_is_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (folder.path().join("tasks.db"), folder.path().join("link"));
    let other = open(&path);
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let store = open(&link);
    let version = looked_once(&store).await;
    write(&other).await;
    hears(&store, version, "through the link").await;
}

/// A worker that has nothing to do renews its lease; nobody else has to do with that.
#[tokio::test]
async fn a_lease_that_is_renewed_wakes_nobody_and_is_seen_by_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let (store, other) = (open(&path), open(&path));
    let version = looked_once(&store).await;
    let until = LeaseTime {
        now: Moment::from_millis(1),
        boot: "boot".to_owned(),
        steady: HOUR,
    };
    let begin = until.clone();
    let work = move |journal: &mut dyn Journal| journal.renew(&"worker_1".into(), &begin, true);
    let renewed: Stored<bool> = transact_unsynced(&store, work).await;
    assert_eq!(renewed, Ok(true));
    assert_eq!(store.version().await, Ok(version), "it was its own");
    let owners = move |journal: &mut dyn Journal| journal.owners();
    let owners: Stored<Vec<OwnerId>> = transact(&other, owners).await;
    assert_eq!(owners, Ok(vec![OwnerId::from("worker_1")]));
}
