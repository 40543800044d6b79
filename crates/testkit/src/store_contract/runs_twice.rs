//! A store on which every piece of work loses a race first.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use asyncagents_core::{
    lock::lock,
    port::{Journal, Store, Stored, Work},
};

/// Runs all work twice, as a store may whose transaction has lost a race: what the first run did is
/// rolled back, and what it answered is forgotten.
pub struct RunsTwice(pub Arc<dyn Store>);

/// The work, which is undone unless it is the last run.
fn run(work: &Arc<Mutex<Work>>, is_last: bool) -> Work {
    let work = work.clone();
    Box::new(move |journal: &mut dyn Journal| {
        let work = lock(&work);
        work(journal) && is_last
    })
}

#[async_trait]
impl Store for RunsTwice {
    async fn write(&self, work: Work) -> Stored<()> {
        let work = Arc::new(Mutex::new(work));
        self.0.write(run(&work, false)).await?;
        self.0.write(run(&work, true)).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        let work = Arc::new(Mutex::new(work));
        self.0.write_unsynced(run(&work, false)).await?;
        self.0.write_unsynced(run(&work, true)).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        let run = move |journal: &mut dyn Journal| {
            work(journal);
            work(journal)
        };
        self.0.read(Box::new(run)).await
    }

    async fn version(&self) -> Stored<i64> {
        self.0.version().await
    }

    async fn changed_since(&self, version: i64) -> i64 {
        self.0.changed_since(version).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        self.0.give_back_room(is_alone).await
    }
}
