//! The SQL about notices.

use asyncagents_core::{
    id::{OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    port::{Fate, Notice, Outbox, PendingNotice, Stored},
    task::Task,
};

use crate::{
    host_setup::host_setup,
    sql::{Damage, Row, Sql, unknown, values},
    transaction::Transaction,
};

impl<S: Sql> Outbox for Transaction<S> {
    fn post(&mut self, task: &Task, notice: &Notice, not_before: Moment) -> Stored<()> {
        let Message { visible, hidden } = &notice.message;
        let (parent, host) = (&task.place.parent, task.brief.host.host.to_string());
        let sql = "INSERT INTO notices \
             (id, task, parent, host, visible, hidden, state, not_before, attempts) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, 0)";
        let values = values![
            &notice.id, &task.id, parent, host, visible, hidden, not_before
        ];
        self.run(sql, values)
    }

    fn due(
        &mut self,
        owner: &OwnerId,
        now: Moment,
        after: i64,
        most: usize,
    ) -> Stored<Vec<PendingNotice>> {
        // The `+` keeps SQLite from scanning the table in this order, delivered notices and all.
        let sql = "SELECT n.id, n.visible, n.hidden, n.parent, n.host, t.settings, t.seal, n.attempted, \
             n.attempts, n.pos FROM notices n JOIN tasks t ON t.id = n.task \
             WHERE n.state = 'pending' AND n.not_before <= ?2 AND t.owner = ?1 AND +n.pos > ?3 \
             ORDER BY +n.pos LIMIT ?4";
        self.sql.all(sql, values![owner, now, after, most], pending)
    }

    fn next_due(&mut self, owner: &OwnerId, now: Moment) -> Stored<Option<Moment>> {
        self.number(
            "SELECT min(n.not_before) AS found FROM notices n JOIN tasks t ON t.id = n.task \
             WHERE n.state = 'pending' AND n.not_before > ?2 AND t.owner = ?1",
            values![owner, now],
        )
    }

    fn sending(&mut self, found: &PendingNotice, by: &OwnerId, at: Moment) -> Stored<bool> {
        let attempted = found.attempted.map_or(-1, Moment::as_millis);
        let marked = self.sql.execute(
            "UPDATE notices SET attempted = ?2 \
             WHERE id = ?1 AND state = 'pending' AND coalesce(attempted, -1) = ?4 \
             AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = notices.task AND t.owner = ?3)",
            values![&found.notice.id, at, by, attempted],
        )?;
        Ok(marked > 0)
    }

    fn put_off(&mut self, notice: &PostId, until: Moment, attempted: Option<Moment>) -> Stored<()> {
        let sql = "UPDATE notices SET not_before = ?2, attempts = attempts + 1, attempted = ?3 \
             WHERE id = ?1 AND state = 'pending'";
        self.run(sql, values![notice, until, attempted])
    }

    fn postpone_notices(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET attempted = ?2, not_before = ?3 \
             WHERE task = ?1 AND state = 'pending' AND attempted IS NOT NULL";
        self.run(sql, values![task, now, until])
    }

    fn hurry(&mut self, parent: &SessionId, now: Moment) -> Stored<bool> {
        let sql = "UPDATE notices SET not_before = ?2 \
             WHERE state = 'pending' AND parent = ?1 AND not_before > ?2";
        Ok(self.sql.execute(sql, values![parent, now])? > 0)
    }

    fn any_pending(&mut self, parent: &SessionId) -> Stored<bool> {
        let sql = "SELECT 1 FROM notices WHERE state = 'pending' AND parent = ?1 LIMIT 1";
        self.any(sql, values![parent])
    }

    fn delivered(&mut self, notice: &PostId, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'told', settled_at = ?2 \
             WHERE id = ?1 AND state = 'pending'";
        self.run(sql, values![notice, at])
    }

    fn undelivered(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3 \
             WHERE id = ?1 AND state = 'pending'";
        self.run(sql, values![notice, why, at])
    }

    fn withdraw(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3 \
             WHERE id = ?1 AND state = 'pending' AND attempted IS NULL";
        self.run(sql, values![notice, why, at])
    }

    fn notices(&mut self, task: &TaskId) -> Stored<Vec<(PostId, Fate)>> {
        let sql = "SELECT id, state, why FROM notices WHERE task = ?1 ORDER BY pos";
        self.sql.all(sql, values![task], |row| {
            let id: PostId = row.get("id")?;
            let fate = fate(row).map_err(|damage| damage.of("notices", &id))?;
            Ok((id, fate))
        })
    }
}

fn pending(row: &Row<'_>) -> Result<PendingNotice, Damage> {
    Ok(PendingNotice {
        notice: Notice {
            id: row.get("id")?,
            message: Message {
                visible: row.get("visible")?,
                hidden: row.get("hidden")?,
            },
        },
        parent: row.get("parent")?,
        host: host_setup(row)?,
        attempted: row.get("attempted")?,
        attempts: row.get("attempts")?,
        place: row.get("pos")?,
    })
}

fn fate(row: &Row<'_>) -> Result<Fate, Damage> {
    Ok(match &*row.text("state")? {
        "pending" => Fate::Pending,
        "told" => Fate::Delivered,
        "untold" => Fate::Undelivered(row.get::<Option<String>>("why")?.unwrap_or_default()),
        word => return Err(unknown("state", word)),
    })
}
