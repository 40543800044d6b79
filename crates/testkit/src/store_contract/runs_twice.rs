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

#[async_trait]
impl Store for RunsTwice {
    async fn write(&self, work: Work) -> Stored<()> {
        let work = Arc::new(Mutex::new(work));
        for is_last in [false, true] {
            let work = work.clone();
            let run = move |journal: &mut dyn Journal| {
                let work = lock(&work);
                work(journal) && is_last
            };
            self.0.write(Box::new(run)).await?;
        }
        Ok(())
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
}
