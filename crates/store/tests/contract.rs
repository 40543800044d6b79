//! SQLite keeps what the port promises.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{path::PathBuf, sync::Arc};

use asyncagents_core::port::Store;
use asyncagents_store::{Durability, Options, Sqlite};
use asyncagents_testkit::store_contract::{Site, store_contract};
use rusqlite::Connection;
use tempfile::TempDir;

struct File {
    folder: TempDir,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tasks.db")
    }
}

impl Site for File {
    fn open(&self) -> Arc<dyn Store> {
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        Arc::new(Sqlite::open_with(self.path(), options).expect("a store"))
    }

    fn tamper(&self, sql: &str) {
        let behind = Connection::open(self.path()).expect("open");
        behind.execute_batch(sql).expect("changed");
    }
}

#[tokio::test]
async fn sqlite_keeps_the_promises_of_a_store() {
    store_contract(File::new).await;
}
