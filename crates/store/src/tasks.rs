//! The SQL about tasks and their events.

use std::sync::OnceLock;

use asyncagents_core::{
    budget::Spent,
    event::{Event, Launched, Saved},
    id::{ChainId, SessionId, TaskId},
    lifecycle,
    moment::Moment,
    notify::{Batch, prompt_with},
    port::{Messaged, Stored, Tasks},
    task::{Brief, Task},
    task_list::{ListRequest, TaskList},
    trace::{Chain, ChainOf},
};

use crate::{
    record,
    row::{self, unpriced, unpriced_below},
    search,
    sql::{Damage, Row, Sql, insert, update, values, values_of},
    transaction::Transaction,
};

/// Statements with all columns of a task, written once.
static INSERT: OnceLock<String> = OnceLock::new();
static UPDATE: OnceLock<String> = OnceLock::new();
static UPDATE_PROGRESS: OnceLock<String> = OnceLock::new();

/// The condition of the index that has only these events: it is used where a statement has the same.
const RUN_EVENTS: &str =
    "kind IN ('launched', 'resumed', 'started', 'prompted', 'messaged', 'ended')";

impl<S: Sql> Tasks for Transaction<S> {
    fn task(&mut self, id: &TaskId) -> Stored<Option<Task>> {
        let found = self.tasks("id = ?1", values![id])?;
        Ok(found.into_iter().next())
    }

    fn task_in(&mut self, session: &SessionId) -> Stored<Option<Task>> {
        let found = self.tasks("session = ?1", values![session])?;
        Ok(found.into_iter().next())
    }

    fn insert(&mut self, id: TaskId, launched: Launched, at: Moment) -> Stored<Task> {
        let task = lifecycle::begin(id, &launched, at);
        let from = launched.from.clone();
        let event = Event::Launched(Box::new(launched));
        let place = self.save(&task.id, task.seq, &event, at)?;
        let mut columns = row::columns(&task);
        columns.extend([("born", place.into()), ("place", place.into())]);
        let sql = INSERT.get_or_init(|| insert("tasks", &columns));
        self.sql.execute(sql, &values_of(columns))?;
        let Brief {
            description, agent, ..
        } = &task.brief;
        let words = search::words(description, agent.as_str(), task.id.as_str());
        let sql = "INSERT INTO task_words (rowid, words) VALUES (?1, ?2)";
        self.sql.execute(sql, values![place, words])?;
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
        let is_progress =
            |event: &Event| matches!(event, Event::Observed(_) | Event::SpentBelow(_));
        let (columns, sql) = if events.iter().all(is_progress) {
            (row::progress_columns(task), &UPDATE_PROGRESS)
        } else {
            (row::columns(task), &UPDATE)
        };
        let sql = sql.get_or_init(|| update("tasks", &columns));
        self.sql.execute(sql, &values_of(columns))?;
        if let Some(place) = queued {
            let sql = "UPDATE tasks SET place = ?2 WHERE id = ?1";
            self.sql.execute(sql, values![&task.id, place])?;
        }
        Ok(())
    }

    fn events(&mut self, id: &TaskId) -> Stored<Vec<Saved>> {
        self.events_after(id, 0)
    }

    fn events_after(&mut self, id: &TaskId, after: u64) -> Stored<Vec<Saved>> {
        let sql =
            "SELECT task, seq, at, body FROM events WHERE task = ?1 AND seq > ?2 ORDER BY seq";
        self.sql.all(sql, values![id, after], saved)
    }

    fn run_events(&mut self, id: &TaskId) -> Stored<Vec<Saved>> {
        let sql = format!(
            "SELECT task, seq, at, body FROM events WHERE task = ?1 AND {RUN_EVENTS} \
             AND +kind IN ('launched', 'resumed', 'ended') ORDER BY seq"
        );
        self.sql.all(&sql, values![id], saved)
    }

    fn changed_since(&mut self, position: i64) -> Stored<(Vec<TaskId>, i64)> {
        let sql = "SELECT coalesce(max(pos), 0) AS found FROM events";
        let newest = self.number(sql, &[])?;
        if position >= newest {
            return Ok((Vec::new(), newest));
        }
        let changed = self.column(
            "SELECT DISTINCT task AS found FROM events WHERE pos > ?1 AND pos <= ?2",
            values![position, newest],
        )?;
        Ok((changed, newest))
    }

    fn launched(&mut self, id: &TaskId) -> Stored<Option<Launched>> {
        match self.event("seq = 1", id)? {
            Some(Event::Launched(launched)) => Ok(Some(*launched)),
            _ => Ok(None),
        }
    }

    fn prompt(&mut self, id: &TaskId) -> Stored<Option<String>> {
        let newest =
            format!("{RUN_EVENTS} AND +kind IN ('launched', 'resumed') ORDER BY seq DESC LIMIT 1");
        let begun = self.event(&newest, id)?;
        let prompt = match begun {
            Some(Event::Launched(launched)) => launched.prompt,
            Some(Event::Resumed { prompt, .. }) => prompt,
            _ => return Ok(None),
        };
        let told = self.messages(id)?;
        let told = told.iter().filter(|told| told.with_prompt);
        Ok(Some(prompt_with(
            prompt,
            told.map(|told| (told.from, &*told.text)),
        )))
    }

    fn messages(&mut self, id: &TaskId) -> Stored<Vec<Messaged>> {
        let newest = format!(
            "SELECT max(seq) FROM events \
             WHERE task = ?1 AND {RUN_EVENTS} AND +kind IN ('launched', 'resumed')"
        );
        let sql = format!(
            "SELECT task, seq, at, body FROM events WHERE task = ?1 AND {RUN_EVENTS} \
             AND +kind IN ('messaged', 'started', 'prompted') AND seq > ({newest}) ORDER BY seq"
        );
        let saved = self.sql.all(&sql, values![id], |row| {
            Ok((row.get::<Moment>("at")?, event(row)?))
        })?;
        let prompted = saved.iter().any(|(_, event)| *event == Event::Prompted);
        let mut with_prompt = true;
        let mut told = Vec::new();
        for (at, event) in saved {
            match event {
                Event::Messaged { id, from, text } => told.push(Messaged {
                    id,
                    from,
                    text,
                    at,
                    with_prompt,
                    prompted,
                }),
                _ => with_prompt = false,
            }
        }
        Ok(told)
    }

    fn answer(&mut self, id: &TaskId) -> Stored<Option<String>> {
        let newest = format!("{RUN_EVENTS} AND +kind = 'ended' ORDER BY seq DESC LIMIT 1");
        match self.event(&newest, id)? {
            Some(Event::Ended { answer, .. }) => Ok(answer),
            _ => Ok(None),
        }
    }

    fn tasks_of(&mut self, parent: Option<&SessionId>) -> Stored<Vec<Task>> {
        match parent {
            Some(parent) => self.tasks(
                "parent = ?1 AND cleared = 0 ORDER BY born DESC",
                values![parent],
            ),
            None => self.tasks("cleared = 0 ORDER BY born DESC", &[]),
        }
    }

    fn list(&mut self, request: &ListRequest) -> Stored<TaskList<Task>> {
        self.listed(request)
    }

    fn any_live(&mut self, parent: &SessionId) -> Stored<bool> {
        let sql = "SELECT 1 FROM tasks WHERE parent = ?1 AND live = 1 AND cleared = 0 LIMIT 1";
        self.any(sql, values![parent])
    }

    fn below(&mut self, above: &TaskId) -> Stored<Vec<Task>> {
        self.tasks("above = ?1", values![above])
    }

    fn spent_below(&mut self, above: &TaskId) -> Stored<Spent> {
        let unpriced = format!("{} + {}", unpriced::<S>(), unpriced_below::<S>());
        self.sum(
            [
                "tokens + below_tokens",
                "cost + below_cost",
                "turns + below_turns",
                "calls + below_calls",
                &unpriced,
            ],
            "above = ?1",
            above.as_str(),
        )
    }

    fn beginning_with(&mut self, beginning: &str) -> Stored<Vec<Task>> {
        // Every ID that begins like this sorts between it and it with the last character
        // there is.
        let end = format!("{beginning}{}", char::MAX);
        self.tasks(
            "id >= ?1 AND id < ?2 AND cleared = 0 ORDER BY id",
            values![beginning, end],
        )
    }

    fn neighbours(&mut self, id: &TaskId) -> Stored<Vec<TaskId>> {
        let before = self.find(
            "SELECT id AS found FROM tasks WHERE id < ?1 ORDER BY id DESC LIMIT 1",
            values![id],
        )?;
        let after: Option<TaskId> = self.find(
            "SELECT id AS found FROM tasks WHERE id > ?1 ORDER BY id LIMIT 1",
            values![id],
        )?;
        Ok(before.into_iter().chain(after).collect())
    }

    fn launched_below(&mut self, root: &SessionId) -> Stored<u64> {
        let sql = "SELECT count(*) AS found FROM tasks WHERE root = ?1";
        self.number(sql, values![root])
    }

    fn spent_below_root(&mut self, root: &SessionId) -> Stored<Spent> {
        let own = ["tokens", "cost", "turns", "calls", &unpriced::<S>()];
        self.sum(own, "root = ?1", root.as_str())
    }

    fn open_batch(&mut self, parent: &SessionId) -> Stored<u64> {
        // That a task is cleared or not says nothing, but leads to the index of those that are live:
        // the other has all tasks that the parent ever had.
        let open = self.number::<Option<u64>>(
            "SELECT max(batch) AS found FROM tasks \
             WHERE parent = ?1 AND cleared IN (0, 1) AND live = 1",
            values![parent],
        )?;
        if let Some(open) = open {
            return Ok(open);
        }
        let last = self.number::<Option<u64>>(
            "SELECT max(batch) AS found FROM tasks WHERE parent = ?1",
            values![parent],
        )?;
        Ok(last.map_or(0, |last| last + 1))
    }

    fn batch(&mut self, parent: &SessionId, batch: u64) -> Stored<Batch> {
        let sql = "SELECT count(*) AS total, coalesce(sum(1 - live), 0) AS ended \
             FROM tasks WHERE parent = ?1 AND batch = ?2";
        let counted = self.sql.one(sql, values![parent, batch], |row| {
            Ok(Batch {
                ended: row.get("ended")?,
                total: row.get("total")?,
            })
        })?;
        Ok(counted.unwrap_or(Batch { ended: 0, total: 0 }))
    }
}

impl<S: Sql> Transaction<S> {
    /// Saves an event and returns its place in the journal.
    fn save(&mut self, task: &TaskId, seq: u64, event: &Event, at: Moment) -> Stored<i64> {
        let (body, kind) = self.as_text(|to| record::serialize(event, to))?;
        self.number(
            "INSERT INTO events (task, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5) \
             RETURNING pos AS found",
            values![task, seq, at, kind, body],
        )
    }

    /// The first event of a task for which `condition` holds.
    fn event(&mut self, condition: &str, task: &TaskId) -> Stored<Option<Event>> {
        let sql = format!("SELECT task, seq, body FROM events WHERE task = ?1 AND {condition}");
        self.sql.one(&sql, values![task], event)
    }

    /// Sums tokens, cost, turns, calls and tokens without a price over tasks.
    fn sum(&mut self, what: [&str; 5], of: &str, key: &str) -> Stored<Spent> {
        let names = ["tokens", "cost", "turns", "calls", "unpriced"];
        let sums = what.iter().zip(names);
        // A sum of whole numbers need not be one everywhere.
        let sums =
            sums.map(|(what, name)| format!("CAST(coalesce(sum({what}), 0) AS BIGINT) AS {name}"));
        let sums = sums.collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {sums} FROM tasks WHERE {of}");
        let sum = self.sql.one(&sql, values![key], row::sums)?;
        Ok(sum.unwrap_or_default())
    }
}

fn saved(row: &Row<'_>) -> Result<Saved, Damage> {
    Ok(Saved {
        seq: row.get("seq")?,
        at: row.get("at")?,
        event: event(row)?,
    })
}

fn event(row: &Row<'_>) -> Result<Event, Damage> {
    let event = row.json("body", |from| record::deserialize(from));
    event.map_err(
        |damage| match (row.get::<TaskId>("task"), row.get::<u64>("seq")) {
            (Ok(task), Ok(seq)) => damage.of("events", format!("{task} event {seq}")),
            (Err(damage), _) | (_, Err(damage)) => damage.of("events", "a key"),
        },
    )
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
