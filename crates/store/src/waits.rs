//! The SQL about callers that wait.

use asyncagents_core::{
    id::{SessionId, TaskId},
    moment::Moment,
    port::{Stored, Waits},
};

use crate::{
    sql::{Sql, values},
    transaction::Transaction,
};

impl<S: Sql> Waits for Transaction<S> {
    fn wait(&mut self, task: &TaskId, by: &SessionId, until: Moment) -> Stored<i64> {
        self.number(
            "INSERT INTO waits (task, session, until) VALUES (?1, ?2, ?3) RETURNING id AS found",
            values![task, by, until],
        )
    }

    fn stop_waiting(&mut self, wait: i64) -> Stored<()> {
        let sql = "DELETE FROM waits WHERE id = ?1";
        self.run(sql, values![wait])
    }

    fn awaited(&mut self, task: &TaskId, by: &SessionId, now: Moment) -> Stored<Option<Moment>> {
        self.number(
            "SELECT max(until) AS found FROM waits \
             WHERE task = ?1 AND session = ?2 AND until >= ?3",
            values![task, by, now],
        )
    }
}
