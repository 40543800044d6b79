//! The SQL about the sessions that processes of other agents show.

use std::time::Duration;

use asyncagents_core::{
    id::SessionId,
    moment::Moment,
    port::{ShownSessions, Stored},
};

use crate::{
    sql::{Sql, values},
    transaction::Transaction,
};

/// For how long a process is remembered that has said nothing new.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

impl<S: Sql> ShownSessions for Transaction<S> {
    fn shows(&mut self, process: &str, session: &SessionId, at: Moment) -> Stored<bool> {
        if self.shown_by(process)?.as_ref() == Some(session) {
            return Ok(false);
        }
        let before = at.before(KEPT);
        let sql = "DELETE FROM shown_sessions WHERE process = ?1 OR since < ?2";
        self.run(sql, values![process, before])?;
        let sql = "INSERT INTO shown_sessions (process, session, since) VALUES (?1, ?2, ?3)";
        self.run(sql, values![process, session, at])?;
        Ok(true)
    }

    fn shown_by(&mut self, process: &str) -> Stored<Option<SessionId>> {
        let sql = "SELECT session AS found FROM shown_sessions WHERE process = ?1";
        self.find(sql, values![process])
    }
}
