//! The SQL about workers, their leases and their tasks.

use asyncagents_core::{
    host_ref::HostRef,
    id::{OwnerId, TaskId},
    port::{Lapsed, LeaseTime, Leases, Stored},
    task::Task,
};

use crate::{
    host_setup::host,
    sql::{Sql, values},
    transaction::Transaction,
};

/// Owners whose lease has not expired, by boot, time since boot and time of day.
const HAS_LEASE: &str =
    "((boot = '' AND until >= ?3) OR (boot <> '' AND boot = ?1 AND steady >= ?2))";

/// Tasks with a post that a worker has to deliver.
const HAS_POST: &str = "id IN (SELECT task FROM notices WHERE state = 'pending' AND pulled = 0)";

/// Tasks whose parent is to be told that they have ended.
const HAS_NOTICE: &str =
    "id IN (SELECT task FROM notices WHERE state = 'pending' AND kind = 'notice')";

impl<S: Sql> Leases for Transaction<S> {
    fn renew(&mut self, owner: &OwnerId, until: &LeaseTime, begin: bool) -> Stored<bool> {
        let sql = if begin {
            "INSERT INTO owners (id, until, boot, steady) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET until = excluded.until, boot = excluded.boot, \
             steady = excluded.steady"
        } else {
            "UPDATE owners SET until = ?2, boot = ?3, steady = ?4 WHERE id = ?1"
        };
        let values = values![owner, until.now, &until.boot, until.steady];
        Ok(self.sql.execute(sql, values)? > 0)
    }

    fn retire(&mut self, owner: &OwnerId) -> Stored<()> {
        let sql = "DELETE FROM owners WHERE id = ?1";
        self.run(sql, values![owner])
    }

    fn expire(&mut self, now: &LeaseTime) -> Stored<()> {
        let sql = format!("DELETE FROM owners WHERE NOT ({HAS_LEASE})");
        self.sql
            .execute(&sql, values![&now.boot, now.steady, now.now])?;
        let sql = "DELETE FROM waits WHERE until < ?1";
        self.run(sql, values![now.now])
    }

    fn lapsed(&mut self, now: &LeaseTime) -> Stored<Vec<Lapsed>> {
        let sql = format!(
            "SELECT id, until, \
             CASE WHEN boot <> '' AND boot <> ?1 THEN 1 ELSE 0 END AS is_of_another_boot \
             FROM owners WHERE NOT ({HAS_LEASE})"
        );
        let now = values![&now.boot, now.steady, now.now];
        self.sql.all(&sql, now, |row| {
            Ok(Lapsed {
                owner: row.get("id")?,
                until: row.get("until")?,
                is_of_another_boot: row.get("is_of_another_boot")?,
            })
        })
    }

    fn has_lease(&mut self, owner: &OwnerId, now: &LeaseTime) -> Stored<bool> {
        let sql = format!("SELECT 1 FROM owners WHERE {HAS_LEASE} AND id = ?4");
        self.any(&sql, values![&now.boot, now.steady, now.now, owner])
    }

    fn owners(&mut self) -> Stored<Vec<OwnerId>> {
        self.column("SELECT id AS found FROM owners", &[])
    }

    fn running(&mut self, owner: &OwnerId) -> Stored<Vec<(TaskId, u32)>> {
        let sql = "SELECT id, run FROM tasks \
             WHERE unfinished = 1 AND owner = ?1 AND state = 'running'";
        self.sql.all(sql, values![owner], |row| {
            Ok((row.get("id")?, row.get("run")?))
        })
    }

    fn orphans(&mut self) -> Stored<Vec<Task>> {
        let unowned = "(owner IS NULL OR owner NOT IN (SELECT id FROM owners))";
        let mut found = self.tasks(&format!("unfinished = 1 AND {unowned} ORDER BY place"), &[])?;
        let ended = format!("unfinished = 0 AND {unowned} AND {HAS_POST}");
        found.extend(self.tasks(&ended, &[])?);
        Ok(found)
    }

    fn unowned(&mut self) -> Stored<Vec<(TaskId, HostRef)>> {
        let sql = "SELECT id, host FROM tasks WHERE unfinished = 1 AND owner IS NULL";
        self.sql
            .all(sql, &[], |row| Ok((row.get("id")?, host(row)?)))
    }

    fn to_stop(&mut self, owner: &OwnerId) -> Stored<Vec<Task>> {
        self.tasks("stopping = 1 AND owner = ?1", values![owner])
    }

    fn owned(&mut self, owner: &OwnerId) -> Stored<Vec<Task>> {
        let owned = format!("owner = ?1 AND (unfinished = 1 OR {HAS_POST})");
        self.tasks(&owned, values![owner])
    }

    fn unfinished(&mut self) -> Stored<Vec<(HostRef, u64)>> {
        let sql = "SELECT host, count(*) AS many FROM ( \
             SELECT host FROM tasks WHERE unfinished = 1 \
             UNION ALL SELECT host FROM notices WHERE state = 'pending' AND pulled = 0) AS work GROUP BY host";
        self.sql
            .all(sql, &[], |row| Ok((host(row)?, row.get("many")?)))
    }

    fn unsettled_below(&mut self, above: &TaskId) -> Stored<u64> {
        let sql = format!(
            "SELECT count(*) AS found FROM tasks WHERE above = ?1 AND (live = 1 OR {HAS_NOTICE})"
        );
        self.number(&sql, values![above])
    }
}
