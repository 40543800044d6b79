//! The SQL, one transaction at a time.

use std::path::Path;

use asyncagents_core::{
    budget::{Cost, Spent},
    event::{Event, Launched, Saved},
    fork::Plan,
    id::{ChainId, HostKey, OwnerId, PostId, SessionId, TaskId},
    lifecycle,
    moment::Moment,
    notify::{Batch, Message},
    port::{Fate, Journal, Lapsed, LeaseTime, Notice, PendingNotice, StoreError, Stored},
    schedule::Slots,
    task::Task,
    trace::{Chain, ChainOf},
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params, types::Value};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    record::EventRecord,
    row::{self, COLUMNS, UNPRICED, UNPRICED_BELOW},
    trouble::judge,
};

/// Whose lease has not run out, by the boot, the time since it and the time of day.
const HAS_LEASE: &str =
    "((boot = '' AND until >= ?3) OR (boot <> '' AND boot = ?1 AND steady >= ?2))";

fn steady(time: &LeaseTime) -> i64 {
    i64::try_from(time.steady.as_millis()).unwrap_or(i64::MAX)
}

/// The journal, seen from inside a transaction.
pub(crate) struct Transaction<'c> {
    connection: &'c Connection,
    path: &'c Path,
}

impl<'c> Transaction<'c> {
    pub(crate) fn new(connection: &'c Connection, path: &'c Path) -> Self {
        Self { connection, path }
    }

    fn judged<T>(&self, done: rusqlite::Result<T>) -> Stored<T> {
        done.map_err(|error| judge(self.path, &error))
    }

    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Stored<usize> {
        let run = || self.connection.prepare_cached(sql)?.execute(params);
        self.judged(run())
    }

    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Stored<Option<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row(params, read).optional()
        };
        self.judged(run())
    }

    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Stored<Vec<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(params, read)?.collect()
        };
        self.judged(run())
    }

    /// The tasks for which `condition` holds.
    fn tasks(&self, condition: &str, params: impl Params) -> Stored<Vec<Task>> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {condition}");
        self.all(&sql, params, row::task)
    }

    fn count(&self, sql: &str, params: impl Params) -> Stored<u64> {
        let counted = self.one(sql, params, |row| row.get::<_, i64>(0))?;
        Ok(u64::try_from(counted.unwrap_or(0)).unwrap_or(0))
    }

    fn damaged(&self, why: impl ToString) -> StoreError {
        StoreError::Damaged {
            path: self.path.to_owned(),
            why: why.to_string(),
        }
    }

    /// Saves an event and returns its place in the journal.
    fn save(&self, task: &TaskId, seq: u64, event: &Event, at: Moment) -> Stored<i64> {
        let record = EventRecord::from(event);
        let body = self.as_text(&record)?;
        self.place_of(
            "INSERT INTO events (task, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5) \
             RETURNING pos",
            params![
                task.as_str(),
                seq.cast_signed(),
                at.as_millis(),
                record.kind(),
                body
            ],
        )
    }

    /// Inserts a row and returns its number.
    fn place_of(&self, sql: &str, params: impl Params) -> Stored<i64> {
        let place = self.one(sql, params, |row| row.get(0))?;
        place.ok_or_else(|| self.damaged("a row was inserted and has no number"))
    }

    fn event(&self, body: &str) -> Stored<Event> {
        let record: EventRecord = self.as_record(body)?;
        Ok(record.into())
    }

    /// A record as it is kept.
    pub(crate) fn as_text(&self, record: &impl Serialize) -> Stored<String> {
        serde_json::to_string(record).map_err(|error| self.damaged(error))
    }

    /// A record as it was kept.
    pub(crate) fn as_record<T: DeserializeOwned>(&self, text: &str) -> Stored<T> {
        serde_json::from_str(text).map_err(|error| self.damaged(error))
    }
}

/// A run of a task, as a trace.
fn chain_of(task: &Task, id: &ChainId, parent: Option<ChainId>, begun: Moment) -> Chain {
    Chain {
        id: id.clone(),
        parent,
        of: ChainOf::Task {
            task: task.id.clone(),
            run: task.run,
        },
        begun,
    }
}

impl Transaction<'_> {
    /// How a task began.
    fn launched(&self, id: &TaskId) -> Stored<Option<Launched>> {
        let body = self.one(
            "SELECT body FROM events WHERE task = ?1 AND seq = 1",
            [id.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        let Some(body) = body else { return Ok(None) };
        match self.event(&body)? {
            Event::Launched(launched) => Ok(Some(*launched)),
            _ => Ok(None),
        }
    }
}

impl Journal for Transaction<'_> {
    fn task(&mut self, id: &TaskId) -> Stored<Option<Task>> {
        let found = self.tasks("id = ?1", [id.as_str()])?;
        Ok(found.into_iter().next())
    }

    fn task_in(&mut self, session: &SessionId) -> Stored<Option<Task>> {
        let found = self.tasks("session = ?1", [session.as_str()])?;
        Ok(found.into_iter().next())
    }

    fn insert(&mut self, id: TaskId, launched: Launched, at: Moment) -> Stored<Task> {
        let task = lifecycle::begin(id, &launched, at);
        let from = launched.from.clone();
        let event = Event::Launched(Box::new(launched));
        let place = self.save(&task.id, task.seq, &event, at)?;
        let mut values = row::values(&task).to_vec();
        values.push(Value::Integer(place));
        self.execute(&row::INSERT, &*row::params(&values))?;
        if let Some(id) = &task.chain {
            self.begin_chain(&chain_of(&task, id, from, at))?;
        }
        Ok(task)
    }

    fn append(&mut self, task: &mut Task, events: &[Event], at: Moment) -> Stored<()> {
        let mut queued = None;
        for event in events {
            let place = self.save(&task.id, task.seq + 1, event, at)?;
            lifecycle::apply(task, event, at);
            if let Event::Resumed { chain, from, .. } = event {
                queued = Some(place);
                if let Some(id) = chain {
                    self.begin_chain(&chain_of(task, id, from.clone(), at))?;
                }
            }
        }
        let only_progress =
            |event: &Event| matches!(event, Event::Observed(_) | Event::SpentBelow(_));
        if events.iter().all(only_progress) {
            let values = row::progress_values(task);
            self.execute(row::UPDATE_PROGRESS, &*row::params(&values))?;
            return Ok(());
        }
        self.execute(&row::UPDATE, &*row::params(&row::values(task)))?;
        if let Some(place) = queued {
            self.execute(
                "UPDATE tasks SET place = ?2 WHERE id = ?1",
                params![task.id.as_str(), place],
            )?;
        }
        Ok(())
    }

    fn events(&mut self, id: &TaskId) -> Stored<Vec<Saved>> {
        let saved = self.all(
            "SELECT seq, at, body FROM events WHERE task = ?1 ORDER BY seq",
            [id.as_str()],
            |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, String>(2)?)),
        )?;
        let read = |(seq, at, body): (i64, i64, String)| {
            Ok(Saved {
                seq: seq.cast_unsigned(),
                at: Moment::from_millis(at),
                event: self.event(&body)?,
            })
        };
        saved.into_iter().map(read).collect()
    }

    fn changed_since(&mut self, position: i64) -> Stored<(Vec<TaskId>, i64)> {
        let newest = self.one("SELECT coalesce(max(pos), 0) FROM events", [], |row| {
            row.get(0)
        })?;
        let newest = newest.unwrap_or(0);
        if position >= newest {
            return Ok((Vec::new(), newest));
        }
        let changed = self.all(
            "SELECT DISTINCT task FROM events WHERE pos > ?1 AND pos <= ?2",
            [position, newest],
            |row| row.get::<_, String>(0),
        )?;
        Ok((changed.into_iter().map(TaskId::from).collect(), newest))
    }

    fn fork_plan(&mut self, id: &TaskId) -> Stored<Option<Plan>> {
        let launched = self.launched(id)?;
        Ok(launched.and_then(|launched| launched.fork))
    }

    fn instructions(&mut self, id: &TaskId) -> Stored<Option<String>> {
        let launched = self.launched(id)?;
        Ok(launched.and_then(|launched| launched.instructions))
    }

    fn prompt(&mut self, id: &TaskId) -> Stored<Option<String>> {
        let body = self.one(
            "SELECT body FROM events WHERE task = ?1 AND kind IN ('launched', 'resumed') \
             ORDER BY seq DESC LIMIT 1",
            [id.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        let Some(body) = body else { return Ok(None) };
        match self.event(&body)? {
            Event::Launched(launched) => Ok(Some(launched.prompt)),
            Event::Resumed { prompt, .. } => Ok(Some(prompt)),
            _ => Ok(None),
        }
    }

    fn answer(&mut self, id: &TaskId) -> Stored<Option<String>> {
        let body = self.one(
            "SELECT body FROM events WHERE task = ?1 AND kind = 'ended' \
             ORDER BY seq DESC LIMIT 1",
            [id.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        let Some(body) = body else { return Ok(None) };
        match self.event(&body)? {
            Event::Ended { answer, .. } => Ok(answer),
            _ => Ok(None),
        }
    }

    fn tasks_of(&mut self, parent: Option<&SessionId>) -> Stored<Vec<Task>> {
        match parent {
            Some(parent) => self.tasks(
                "parent = ?1 AND cleared = 0 ORDER BY born DESC",
                [parent.as_str()],
            ),
            None => self.tasks("cleared = 0 ORDER BY born DESC", []),
        }
    }

    fn below(&mut self, above: &TaskId) -> Stored<Vec<Task>> {
        self.tasks("above = ?1", [above.as_str()])
    }

    fn beginning_with(&mut self, beginning: &str) -> Stored<Vec<Task>> {
        // Every ID that begins like this sorts between it and it with the last character
        // there is.
        let end = format!("{beginning}{}", char::MAX);
        self.tasks(
            "id >= ?1 AND id < ?2 AND cleared = 0 ORDER BY id",
            params![beginning, end],
        )
    }

    fn neighbours(&mut self, id: &TaskId) -> Stored<Vec<TaskId>> {
        let read = |row: &Row| row.get::<_, String>(0);
        let before = self.one(
            "SELECT id FROM tasks WHERE id < ?1 ORDER BY id DESC LIMIT 1",
            [id.as_str()],
            read,
        )?;
        let after = self.one(
            "SELECT id FROM tasks WHERE id > ?1 ORDER BY id LIMIT 1",
            [id.as_str()],
            read,
        )?;
        Ok(before.into_iter().chain(after).map(TaskId::from).collect())
    }

    fn spent_below(&mut self, above: &TaskId) -> Stored<Spent> {
        let sql = format!(
            "SELECT coalesce(sum(tokens + below_tokens), 0), coalesce(sum(cost + below_cost), 0), \
             coalesce(sum(turns + below_turns), 0), coalesce(sum(calls + below_calls), 0), \
             coalesce(sum({UNPRICED} + {UNPRICED_BELOW}), 0) \
             FROM tasks WHERE above = ?1"
        );
        let sum = self.one(&sql, [above.as_str()], spent)?;
        Ok(sum.unwrap_or_default())
    }

    fn spent_below_root(&mut self, root: &SessionId) -> Stored<Spent> {
        let sql = format!(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0), coalesce(sum(turns), 0), \
             coalesce(sum(calls), 0), coalesce(sum({UNPRICED}), 0) FROM tasks WHERE root = ?1"
        );
        let sum = self.one(&sql, [root.as_str()], spent)?;
        Ok(sum.unwrap_or_default())
    }

    fn launched_below(&mut self, root: &SessionId) -> Stored<u64> {
        self.count(
            "SELECT count(*) FROM tasks WHERE root = ?1",
            [root.as_str()],
        )
    }

    fn open_batch(&mut self, parent: &SessionId) -> Stored<u64> {
        let read = |row: &Row| row.get::<_, Option<i64>>(0);
        let open = self.one(
            "SELECT max(batch) FROM tasks WHERE parent = ?1 AND live = 1",
            [parent.as_str()],
            read,
        )?;
        if let Some(open) = open.flatten() {
            return Ok(open.cast_unsigned());
        }
        let last = self.one(
            "SELECT max(batch) FROM tasks WHERE parent = ?1",
            [parent.as_str()],
            read,
        )?;
        Ok(last.flatten().map_or(0, |last| last.cast_unsigned() + 1))
    }

    fn batch(&mut self, parent: &SessionId, batch: u64) -> Stored<Batch> {
        let counted = self.one(
            "SELECT count(*), coalesce(sum(live), 0) FROM tasks WHERE parent = ?1 AND batch = ?2",
            params![parent.as_str(), batch.cast_signed()],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )?;
        let (total, live) = counted.unwrap_or((0, 0));
        Ok(Batch {
            ended: (total - live).cast_unsigned(),
            total: total.cast_unsigned(),
        })
    }

    fn queue(&mut self, depth: u32, after: i64, most: usize) -> Stored<Vec<(Task, i64)>> {
        let sql = format!(
            "SELECT {COLUMNS}, place FROM tasks \
             WHERE state = 'queued' AND depth = ?1 AND place > ?2 AND owner IS NOT NULL \
             AND stopping = 0 ORDER BY place LIMIT ?3"
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(&sql, params![depth, after, most], |row| {
            Ok((row::task(row)?, row.get(row::COUNT)?))
        })
    }

    fn queued_depths(&mut self) -> Stored<Vec<u32>> {
        self.all(
            "SELECT DISTINCT depth FROM tasks WHERE state = 'queued' ORDER BY depth",
            [],
            |row| row.get(0),
        )
    }

    fn any_queued(&mut self, owner: &OwnerId) -> Stored<bool> {
        let any = self.one(
            "SELECT 1 FROM tasks WHERE unfinished = 1 AND owner = ?1 AND state = 'queued' LIMIT 1",
            [owner.as_str()],
            |_| Ok(()),
        )?;
        Ok(any.is_some())
    }

    fn taken(&mut self, slots: &Slots) -> Stored<u64> {
        match slots {
            Slots::Depth(depth) => self.count(
                "SELECT count(*) FROM tasks WHERE taken = 1 AND owner IS NOT NULL AND depth = ?1",
                [depth],
            ),
            Slots::Model(depth, model) => self.count(
                "SELECT count(*) FROM tasks WHERE taken = 1 AND owner IS NOT NULL AND depth = ?1 AND model = ?2",
                params![depth, model.as_str()],
            ),
            Slots::Parent(parent) => self.count(
                "SELECT count(*) FROM tasks WHERE taken = 1 AND owner IS NOT NULL AND parent = ?1",
                [parent.as_str()],
            ),
        }
    }

    fn renew(&mut self, owner: &OwnerId, until: &LeaseTime, begin: bool) -> Stored<bool> {
        let sql = match begin {
            true => {
                "INSERT INTO owners (id, until, boot, steady) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (id) DO UPDATE SET until = excluded.until, boot = excluded.boot, \
                 steady = excluded.steady"
            }
            false => "UPDATE owners SET until = ?2, boot = ?3, steady = ?4 WHERE id = ?1",
        };
        let now = until.now.as_millis();
        let changed = self.execute(sql, params![owner.as_str(), now, until.boot, steady(until)])?;
        Ok(changed > 0)
    }

    fn retire(&mut self, owner: &OwnerId) -> Stored<()> {
        self.execute("DELETE FROM owners WHERE id = ?1", [owner.as_str()])?;
        Ok(())
    }

    fn expire(&mut self, now: &LeaseTime) -> Stored<()> {
        self.execute(
            &format!("DELETE FROM owners WHERE NOT ({HAS_LEASE})"),
            params![now.boot, steady(now), now.now.as_millis()],
        )?;
        let now = now.now.as_millis();
        self.execute("DELETE FROM waits WHERE until < ?1", [now])?;
        Ok(())
    }

    fn lapsed(&mut self, now: &LeaseTime) -> Stored<Vec<Lapsed>> {
        let sql = format!(
            "SELECT id, until, boot <> '' AND boot <> ?1 FROM owners WHERE NOT ({HAS_LEASE})"
        );
        let now = params![now.boot, steady(now), now.now.as_millis()];
        self.all(&sql, now, |row| {
            Ok(Lapsed {
                owner: row.get::<_, String>(0)?.into(),
                until: Moment::from_millis(row.get(1)?),
                is_of_another_boot: row.get(2)?,
            })
        })
    }

    fn has_lease(&mut self, owner: &OwnerId, now: &LeaseTime) -> Stored<bool> {
        let found = self.one(
            &format!("SELECT 1 FROM owners WHERE {HAS_LEASE} AND id = ?4"),
            params![now.boot, steady(now), now.now.as_millis(), owner.as_str()],
            |_| Ok(()),
        )?;
        Ok(found.is_some())
    }

    fn owners(&mut self) -> Stored<Vec<OwnerId>> {
        let ids = self.all("SELECT id FROM owners", [], |row| row.get::<_, String>(0))?;
        Ok(ids.into_iter().map(OwnerId::from).collect())
    }

    fn running(&mut self, owner: &OwnerId) -> Stored<Vec<(TaskId, u32)>> {
        self.all(
            "SELECT id, run FROM tasks WHERE unfinished = 1 AND owner = ?1 AND state = 'running'",
            [owner.as_str()],
            |row| Ok((TaskId::from(row.get::<_, String>(0)?), row.get(1)?)),
        )
    }

    fn orphans(&mut self) -> Stored<Vec<Task>> {
        let unowned = "(owner IS NULL OR owner NOT IN (SELECT id FROM owners))";
        let mut found = self.tasks(&format!("unfinished = 1 AND {unowned} ORDER BY place"), [])?;
        found.extend(self.tasks(
            &format!(
                "unfinished = 0 AND {unowned} AND id IN \
                 (SELECT task FROM notices WHERE state = 'pending')"
            ),
            [],
        )?);
        Ok(found)
    }

    fn unowned(&mut self) -> Stored<Vec<HostKey>> {
        let hosts = self.all(
            "SELECT DISTINCT host FROM tasks WHERE unfinished = 1 AND owner IS NULL",
            [],
            |row| row.get::<_, String>(0),
        )?;
        Ok(hosts.into_iter().map(HostKey::from).collect())
    }

    fn to_stop(&mut self, owner: &OwnerId) -> Stored<Vec<Task>> {
        self.tasks("stopping = 1 AND owner = ?1", [owner.as_str()])
    }

    fn owned(&mut self, owner: &OwnerId) -> Stored<Vec<Task>> {
        self.tasks(
            "owner = ?1 AND (unfinished = 1 OR id IN \
             (SELECT task FROM notices WHERE state = 'pending'))",
            [owner.as_str()],
        )
    }

    fn unfinished(&mut self) -> Stored<Vec<(HostKey, u64)>> {
        self.all(
            "SELECT host, count(*) FROM ( \
             SELECT host FROM tasks WHERE unfinished = 1 \
             UNION ALL SELECT host FROM notices WHERE state = 'pending') GROUP BY host",
            [],
            |row| {
                let count = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
                Ok((HostKey::from(row.get::<_, String>(0)?), count))
            },
        )
    }

    fn unsettled_below(&mut self, above: &TaskId) -> Stored<u64> {
        self.count(
            "SELECT count(*) FROM tasks WHERE above = ?1 AND (live = 1 OR id IN \
             (SELECT task FROM notices WHERE state = 'pending'))",
            [above.as_str()],
        )
    }

    fn post(&mut self, task: &Task, notice: &Notice, not_before: Moment) -> Stored<()> {
        self.execute(
            "INSERT INTO notices \
             (id, task, parent, host, visible, hidden, state, not_before, attempts) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, 0)",
            params![
                notice.id.as_str(),
                task.id.as_str(),
                task.place.parent.as_str(),
                task.brief.host.as_str(),
                notice.message.visible,
                notice.message.hidden,
                not_before.as_millis()
            ],
        )?;
        Ok(())
    }

    fn due(
        &mut self,
        owner: &OwnerId,
        now: Moment,
        after: i64,
        most: usize,
    ) -> Stored<Vec<PendingNotice>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(
            // The sign keeps the order from being read off the table, told notices and all.
            "SELECT n.id, n.visible, n.hidden, n.parent, n.host, n.attempted, n.attempts, n.pos \
             FROM notices n JOIN tasks t ON t.id = n.task \
             WHERE n.state = 'pending' AND n.not_before <= ?2 AND t.owner = ?1 AND +n.pos > ?3 \
             ORDER BY +n.pos LIMIT ?4",
            params![owner.as_str(), now.as_millis(), after, most],
            |row| {
                Ok(PendingNotice {
                    notice: Notice {
                        id: PostId::from(row.get::<_, String>(0)?),
                        message: Message {
                            visible: row.get(1)?,
                            hidden: row.get(2)?,
                        },
                    },
                    parent: row.get::<_, String>(3)?.into(),
                    host: row.get::<_, String>(4)?.into(),
                    attempted: row.get::<_, Option<i64>>(5)?.map(Moment::from_millis),
                    attempts: row.get(6)?,
                    place: row.get(7)?,
                })
            },
        )
    }

    fn next_due(&mut self, owner: &OwnerId, now: Moment) -> Stored<Option<Moment>> {
        let next = self.one(
            "SELECT min(n.not_before) FROM notices n JOIN tasks t ON t.id = n.task \
             WHERE n.state = 'pending' AND n.not_before > ?2 AND t.owner = ?1",
            params![owner.as_str(), now.as_millis()],
            |row| row.get::<_, Option<i64>>(0),
        )?;
        Ok(next.flatten().map(Moment::from_millis))
    }

    fn sending(&mut self, found: &PendingNotice, by: &OwnerId, at: Moment) -> Stored<bool> {
        let marked = self.execute(
            "UPDATE notices SET attempted = ?2 \
             WHERE id = ?1 AND state = 'pending' AND coalesce(attempted, -1) = ?4 \
             AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = notices.task AND t.owner = ?3)",
            params![
                found.notice.id.as_str(),
                at.as_millis(),
                by.as_str(),
                found.attempted.map_or(-1, Moment::as_millis)
            ],
        )?;
        Ok(marked > 0)
    }

    fn put_off(&mut self, notice: &PostId, until: Moment, attempted: Option<Moment>) -> Stored<()> {
        self.execute(
            "UPDATE notices SET not_before = ?2, attempts = attempts + 1, attempted = ?3 \
             WHERE id = ?1 AND state = 'pending'",
            params![
                notice.as_str(),
                until.as_millis(),
                attempted.map(Moment::as_millis)
            ],
        )?;
        Ok(())
    }

    fn let_settle(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()> {
        self.execute(
            "UPDATE notices SET attempted = ?2, not_before = ?3 \
             WHERE task = ?1 AND state = 'pending' AND attempted IS NOT NULL",
            params![task.as_str(), now.as_millis(), until.as_millis()],
        )?;
        Ok(())
    }

    fn hurry(&mut self, parent: &SessionId, now: Moment) -> Stored<bool> {
        let hurried = self.execute(
            "UPDATE notices SET not_before = ?2 \
             WHERE state = 'pending' AND parent = ?1 AND not_before > ?2",
            params![parent.as_str(), now.as_millis()],
        )?;
        Ok(hurried > 0)
    }

    fn any_pending(&mut self, parent: &SessionId) -> Stored<bool> {
        let any = self.one(
            "SELECT 1 FROM notices WHERE state = 'pending' AND parent = ?1 LIMIT 1",
            [parent.as_str()],
            |_| Ok(()),
        )?;
        Ok(any.is_some())
    }

    fn told(&mut self, notice: &PostId, at: Moment) -> Stored<()> {
        self.execute(
            "UPDATE notices SET state = 'told', settled_at = ?2 \
             WHERE id = ?1 AND state = 'pending'",
            params![notice.as_str(), at.as_millis()],
        )?;
        Ok(())
    }

    fn untold(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()> {
        self.execute(
            "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3 \
             WHERE id = ?1 AND state = 'pending'",
            params![notice.as_str(), why, at.as_millis()],
        )?;
        Ok(())
    }

    fn withdraw(&mut self, notice: &PostId, why: &str, at: Moment) -> Stored<()> {
        self.execute(
            "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3 \
             WHERE id = ?1 AND state = 'pending' AND attempted IS NULL",
            params![notice.as_str(), why, at.as_millis()],
        )?;
        Ok(())
    }

    fn notices(&mut self, task: &TaskId) -> Stored<Vec<(PostId, Fate)>> {
        self.all(
            "SELECT id, state, why FROM notices WHERE task = ?1 ORDER BY pos",
            [task.as_str()],
            |row| {
                let fate = match row.get::<_, String>(1)?.as_str() {
                    "pending" => Fate::Pending,
                    "told" => Fate::Told,
                    _ => Fate::Untold(row.get::<_, Option<String>>(2)?.unwrap_or_default()),
                };
                Ok((PostId::from(row.get::<_, String>(0)?), fate))
            },
        )
    }

    fn wait(&mut self, task: &TaskId, by: &SessionId, until: Moment) -> Stored<i64> {
        self.place_of(
            "INSERT INTO waits (task, session, until) VALUES (?1, ?2, ?3) RETURNING id",
            params![task.as_str(), by.as_str(), until.as_millis()],
        )
    }

    fn stop_waiting(&mut self, wait: i64) -> Stored<()> {
        self.execute("DELETE FROM waits WHERE id = ?1", [wait])?;
        Ok(())
    }

    fn awaited(&mut self, task: &TaskId, by: &SessionId, now: Moment) -> Stored<Option<Moment>> {
        let until = self.one(
            "SELECT max(until) FROM waits WHERE task = ?1 AND session = ?2 AND until >= ?3",
            params![task.as_str(), by.as_str(), now.as_millis()],
            |row| row.get::<_, Option<i64>>(0),
        )?;
        Ok(until.flatten().map(Moment::from_millis))
    }
}

/// Five sums, in this order.
fn spent(row: &Row) -> rusqlite::Result<Spent> {
    let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(Spent {
        tokens: number(0)?,
        cost: Cost(number(1)?),
        turns: number(2)?,
        tool_calls: number(3)?,
        unpriced: number(4)?,
    })
}
