//! Transactions, handles and what is on disk.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use asyncagents_core::{
    event::Event,
    lock::lock,
    port::{Journal, Store, StoreError, StoreErrorKind, Stored, transact, transact_unsynced},
};
use tokio::time::timeout;

use super::{
    RunsTwice, Site, on_new, read,
    samples::{at, events, id, launched, launched_with_all, notice, session, task_with},
    write,
};

/// Longer than any store may take, shorter than a test may.
const PATIENCE: Duration = Duration::from_secs(30);

fn refused() -> StoreError {
    StoreError::new(StoreErrorKind::Failed, "the test", "refused")
}

async fn count(store: &Arc<dyn Store>) -> usize {
    let found = read(store, |journal| Ok(journal.tasks_of(None)?.len()));
    found.await.expect("a count")
}

async fn launch(store: &Arc<dyn Store>, n: u128) {
    let work = move |journal: &mut dyn Journal| task_with(journal, n, launched("main"), &[]);
    write(store, work).await.expect("launched");
}

pub(super) async fn work_that_is_refused_leaves_no_trace_and_what_shares_its_commit_stays(
    site: Arc<dyn Site>,
) {
    let store = site.open();
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..100_u128 {
        let store = store.clone();
        waiting.spawn(async move {
            let done = write(&store, move |journal| {
                task_with(journal, n, launched("main"), &[Event::Started])?;
                if n % 2 == 0 { Ok(()) } else { Err(refused()) }
            });
            done.await.is_ok()
        });
    }
    let kept = waiting.join_all().await;
    assert_eq!(kept.into_iter().filter(|kept| *kept).count(), 50);
    assert_eq!(count(&store).await, 50);
    let events = read(&store, |journal| {
        Ok((journal.events(&id(0))?.len(), journal.events(&id(1))?.len()))
    });
    assert_eq!(events.await, Ok((2, 0)));
}

pub(super) async fn work_that_panics_is_rolled_back_and_stops_nobody_else(site: Arc<dyn Site>) {
    let store = site.open();
    let broken = write(&store, |journal| -> Stored<()> {
        task_with(journal, 1, launched("main"), &[])?;
        panic!("a bug, as the story wants it");
    });
    assert!(broken.await.is_err());
    launch(&store, 2).await;
    assert_eq!(count(&store).await, 1);
}

pub(super) async fn work_that_is_run_again_leaves_one_trace(site: Arc<dyn Site>) {
    let store: Arc<dyn Store> = Arc::new(RunsTwice(site.open()));
    launch(&store, 1).await;
    let seen = write(&store, |journal| {
        let mut task = journal.task(&id(1))?.ok_or_else(refused)?;
        journal.append(&mut task, &events(), at(2))?;
        journal.post(&task, &notice(&task), at(3))?;
        journal.begin_session(&session("ses_1"))?;
        let wait = journal.wait(&task.id, &"main".into(), at(9))?;
        Ok((task.seq, wait))
    });
    let (seq, _) = seen.await.expect("written");
    let there = read(&store, |journal| {
        Ok((journal.events(&id(1))?.len(), journal.posts(&id(1))?.len()))
    });
    assert_eq!(seq, events().len() as u64 + 1);
    assert_eq!(there.await, Ok((events().len() + 1, 1)));
}

pub(super) async fn what_is_written_is_seen_by_every_handle_at_once(site: Arc<dyn Site>) {
    let handles = [site.open(), site.open(), site.open()];
    for n in 0..30 {
        launch(&handles[n % 3], n as u128).await;
        for handle in &handles {
            assert_eq!(count(handle).await, n + 1);
        }
    }
}

pub(super) async fn each_decision_sees_the_one_before_whoever_made_it(site: Arc<dyn Site>) {
    let handles = [site.open(), site.open()];
    launch(&handles[0], 1).await;
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = handles[n % 2].clone();
        waiting.spawn(async move {
            let moved = write(&store, |journal| {
                let mut task = journal.task(&id(1))?.ok_or_else(refused)?;
                journal.append(&mut task, &[Event::ClockMoved { by: 1 }], at(2))
            });
            moved.await.expect("saved");
        });
    }
    waiting.join_all().await;
    let saved = read(&handles[0], |journal| journal.events(&id(1))).await;
    let numbers: Vec<u64> = saved.expect("read").iter().map(|saved| saved.seq).collect();
    assert_eq!(numbers, (1..=61).collect::<Vec<_>>());
}

/// Work that says when it has begun and goes on when it is let.
struct Halt {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Halt {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((begun, has_begun), (let_go, go_on)) = (channel(), channel());
        let halt = Self {
            begun,
            go_on: Mutex::new(go_on),
        };
        (halt, has_begun, let_go)
    }

    fn here(&self) {
        let go_on = lock(&self.go_on);
        // A receiver that is gone has failed already.
        let _ = self.begun.send(());
        let _ = go_on.recv_timeout(PATIENCE);
    }
}

async fn heard(begun: Receiver<()>) {
    let waited = tokio::task::spawn_blocking(move || begun.recv_timeout(PATIENCE));
    waited.await.expect("waited").expect("begun");
}

pub(super) async fn a_reader_does_not_wait_for_a_writer(site: Arc<dyn Site>) {
    let (store, other) = (site.open(), site.open());
    launch(&store, 1).await;
    let (halt, begun, let_go) = Halt::new();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let work = move |journal: &mut dyn Journal| {
                task_with(journal, 2, launched("main"), &[])?;
                halt.here();
                Ok(())
            };
            write(&store, work).await
        }
    });
    heard(begun).await;
    for handle in [&store, &other] {
        let counted = timeout(PATIENCE / 2, count(handle)).await;
        assert_eq!(counted, Ok(1), "what is not committed is not seen");
    }
    let_go.send(()).expect("listens");
    writer.await.expect("ended").expect("written");
    assert_eq!(count(&other).await, 2);
}

pub(super) async fn a_writer_does_not_wait_for_a_reader_who_sees_one_moment(site: Arc<dyn Site>) {
    let store = site.open();
    launch(&store, 1).await;
    let (halt, begun, let_go) = Halt::new();
    let reader = tokio::spawn({
        let store = store.clone();
        async move {
            let work = move |journal: &mut dyn Journal| {
                let before = journal.tasks_of(None)?.len();
                halt.here();
                Ok((before, journal.tasks_of(None)?.len()))
            };
            read(&store, work).await
        }
    });
    heard(begun).await;
    timeout(PATIENCE / 2, launch(&store, 2))
        .await
        .expect("written meanwhile");
    let_go.send(()).expect("listens");
    assert_eq!(reader.await.expect("ended"), Ok((1, 1)));
}

pub(super) async fn a_reader_changes_nothing(site: Arc<dyn Site>) {
    let store = site.open();
    launch(&store, 1).await;
    let written = read(&store, |journal| {
        task_with(journal, 2, launched("main"), &[])
    });
    let error = written.await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert_eq!(count(&store).await, 1);
}

pub(super) async fn the_version_changes_when_anybody_writes(site: Arc<dyn Site>) {
    let (one, other) = (site.open(), site.open());
    let mut version = one.version().await.expect("a number");
    for (n, writer) in [(1, &other), (2, &one)] {
        assert_eq!(one.version().await, Ok(version), "nobody has written");
        launch(writer, n).await;
        let newer = one.version().await.expect("a number");
        assert_ne!(newer, version);
        version = newer;
    }
}

/// Everything that there is, as it is read.
fn everything(journal: &mut dyn Journal) -> Stored<String> {
    let task = journal.task(&id(2))?;
    let events = journal.events(&id(2))?;
    let notices = journal.posts(&id(2))?;
    let begun = journal.session(&"ses_1".into())?;
    let chains = journal.chains_of(&id(2))?;
    let rest = (journal.owners()?, journal.changed_since(0)?);
    Ok(format!(
        "{task:?} {events:?} {notices:?} {begun:?} {chains:?} {rest:?}"
    ))
}

pub(super) async fn reopening_keeps_everything(site: Arc<dyn Site>) {
    let before = on_new(&site, |journal| {
        let task = task_with(journal, 2, launched_with_all(), &events())?;
        journal.post(&task, &notice(&task), at(1))?;
        journal.begin_session(&session("ses_1"))?;
        everything(journal)
    });
    let before = before.await;
    let after = read(&site.open(), everything).await.expect("read");
    assert_eq!(after, before);
}

/// Whoever does not wait for the disk has written all the same, before those who do.
pub(super) async fn what_does_not_wait_for_the_disk_is_kept_in_order(site: Arc<dyn Site>) {
    let store = site.open();
    let begin = |name: &'static str| {
        move |journal: &mut dyn Journal| -> Stored<()> { journal.begin_session(&session(name)) }
    };
    transact_unsynced(&*store, begin("ses_1"))
        .await
        .expect("saved");
    let other = site.open();
    let seen = read(&other, |journal| journal.session(&"ses_1".into()));
    assert!(seen.await.expect("read").is_some(), "others see it");
    transact(&*store, begin("ses_2")).await.expect("saved");
    transact_unsynced(&*store, begin("ses_3"))
        .await
        .expect("saved");
    drop(store);
    let reopened = site.open();
    for name in ["ses_1", "ses_2", "ses_3"] {
        let kept = read(&reopened, move |journal| journal.session(&name.into()));
        assert!(kept.await.expect("read").is_some(), "{name} is kept");
    }
}
