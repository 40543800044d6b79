//! Databases that earlier versions have made keep what is in them. The files were written by those
//! versions: a task that completed, one that failed, and one that waits for the built-in agent.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

use std::{fs, path::Path};

use asyncagents_core::{
    event::Event,
    host_ref::{HostRef, HostSetup},
    port::{Journal, Store, Stored, typed},
    task::{Status, Task},
};
use asyncagents_store::Sqlite;
use rstest::rstest;
use tempfile::tempdir;

const SETTINGS: &str =
    r#"{"model":"x/m","permissions.mode":"yolo","providers.x.base_url":"http://127.0.0.1:9/v1"}"#;

/// Before the fourth format nothing was sealed.
#[rstest]
#[case::third("format-3.db", 0)]
#[case::fourth("format-4.db", 64)]
#[tokio::test]
async fn tasks_of_an_earlier_format_are_what_they_were(#[case] file: &str, #[case] seal: usize) {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("older.db");
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::copy(older.join(file), &path).expect("copied");
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
            ended.brief.host.host,
            HostRef::Scripted { script: Some(_) }
        ));
    }
}

/// All tasks, newest first, and the host in the event that began the newest.
async fn read(store: &Sqlite) -> (Vec<Task>, HostSetup) {
    let (work, answer) = typed(|journal: &mut dyn Journal| -> Stored<_> {
        let tasks = journal.tasks_of(None)?;
        let events = journal.events(&tasks[0].id)?;
        Ok((tasks, events))
    });
    store.read(work).await.expect("read");
    let (tasks, mut events) = answer.take().expect("what is there");
    let Event::Launched(launched) = events.swap_remove(0).event else {
        panic!("it began otherwise: {events:?}");
    };
    (tasks, launched.brief.host)
}
