//! The SQL of lists of tasks. It stops at what the list shows, however many tasks there are.
//!
//! Unary `+` keeps a column from being looked up in an index: without statistics SQLite prefers the
//! one that is in the wanted order to the few tasks that are live.

use asyncagents_core::{
    port::Stored,
    task::{Status, Task},
    task_list::{LeftOut, ListRequest, TaskList},
};

use crate::{
    row, search,
    sql::{Sql, Value},
    transaction::Transaction,
};

impl<S: Sql> Transaction<S> {
    pub(crate) fn listed(&mut self, request: &ListRequest) -> Stored<TaskList<Task>> {
        let mut tasks = self.page(&Wanted::of::<S>(request), request.newest)?;
        let last = match tasks.last() {
            Some((_, born)) if tasks.len() >= request.newest => *born,
            Some(_) => i64::MIN,
            // None are wanted of the newest, or there are none.
            None => i64::MAX,
        };
        let before = |mut wanted: Wanted<'static>| {
            let born = wanted.born();
            wanted.and(|at| format!("{born} < {at}"), last);
            wanted
        };
        let older = self.page(&before(Wanted::live::<S>(request)), request.live)?;
        let left_out = self.count(&before(Wanted::of::<S>(request)), older.len())?;
        tasks.extend(older);
        Ok(TaskList {
            tasks: tasks.into_iter().map(|(task, _)| task).collect(),
            left_out,
        })
    }

    /// The newest of them, each with the event that began it.
    fn page(&mut self, wanted: &Wanted<'_>, most: usize) -> Stored<Vec<(Task, i64)>> {
        let (sql, values) = newest(wanted, most);
        self.sql
            .all(&sql, &values, |row| Ok((row::task(row)?, row.get("born")?)))
    }

    fn count(&mut self, wanted: &Wanted<'_>, shown: usize) -> Stored<LeftOut> {
        let (sql, values) = counted(wanted, shown);
        let count: u64 = self.number(&sql, &values)?;
        let shown = u64::try_from(shown).unwrap_or(u64::MAX);
        Ok(LeftOut::counted(count.saturating_sub(shown)))
    }
}

fn newest<'v>(wanted: &Wanted<'v>, most: usize) -> (String, Vec<Value<'v>>) {
    let born = wanted.born();
    let from = wanted.from();
    let Wanted { sql, values, .. } = wanted.clone().with(most);
    let (at, columns) = (values.len(), row::READ);
    let sql =
        format!("SELECT {columns}, born FROM {from} WHERE {sql} ORDER BY {born} DESC LIMIT ?{at}");
    (sql, values)
}

/// Counts one more than is told beside those that are shown.
fn counted<'v>(wanted: &Wanted<'v>, shown: usize) -> (String, Vec<Value<'v>>) {
    let most = usize::try_from(LeftOut::MOST).unwrap_or(usize::MAX);
    let most = most.saturating_add(shown).saturating_add(1);
    let from = wanted.from();
    let Wanted { sql, values, .. } = wanted.clone().with(most);
    let at = values.len();
    let some = format!("SELECT 1 FROM {from} WHERE {sql} LIMIT ?{at}");
    let sql = format!("SELECT count(*) AS found FROM ({some}) AS some");
    (sql, values)
}

/// A condition and its parameters.
#[derive(Clone)]
struct Wanted<'v> {
    sql: String,
    values: Vec<Value<'v>>,
    /// In which order, and by what, they are found.
    by: By,
}

/// By what tasks are found.
#[derive(Clone, Copy)]
enum By {
    /// Their age.
    Age,
    /// Being live: that index is in another order, and shorter by far.
    Live,
    /// The index of searches, which is in the order of age.
    Words,
}

impl Wanted<'static> {
    /// The tasks that are wanted.
    fn of<S: Sql>(request: &ListRequest) -> Self {
        if request.status.is_some_and(is_live) {
            return Self::live::<S>(request);
        }
        let mut wanted = Self::new::<S>("cleared = 0", request);
        if let Some(query) = request.search.as_deref().and_then(search::query) {
            wanted.by = By::Words;
            wanted.and(
                |at| format!("born = found.rowid AND found.task_words MATCH {at}"),
                query,
            );
        }
        wanted
    }

    /// Those of them that are not finished.
    fn live<S: Sql>(request: &ListRequest) -> Self {
        let which = if request.of.is_some() {
            "live = 1 AND cleared = 0"
        } else {
            "live = 1 AND +cleared = 0"
        };
        Self {
            by: By::Live,
            ..Self::new::<S>(which, request)
        }
    }

    fn new<S: Sql>(which: &str, request: &ListRequest) -> Self {
        let (sql, values) = (which.to_owned(), Vec::new());
        let mut wanted = Self {
            sql,
            values,
            by: By::Age,
        };
        if let Some(parent) = &request.of {
            wanted.and(|at| format!("parent = {at}"), parent.to_string());
        }
        if let Some(status) = request.status {
            wanted.sql.push_str(&format!(" AND {}", has(status)));
        }
        if let Some(search) = &request.search {
            let found = |at: &str| {
                let columns = ["description", "agent", "id"];
                let columns = columns.map(|column| S::contains(column, at));
                format!("({})", columns.join(" OR "))
            };
            wanted.and(found, search.clone());
        }
        wanted
    }

    /// One more condition, with a parameter.
    fn and(&mut self, condition: impl Fn(&str) -> String, value: impl Into<Value<'static>>) {
        self.values.push(value.into());
        let at = format!("?{}", self.values.len());
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition(&at));
    }
}

impl<'v> Wanted<'v> {
    /// The column by which tasks are in order.
    fn born(&self) -> &'static str {
        match self.by {
            By::Age => "born",
            By::Live => "+born",
            By::Words => "found.rowid",
        }
    }

    /// Where they are found. A cross join is not turned around: what is found comes first.
    fn from(&self) -> &'static str {
        match self.by {
            By::Age | By::Live => "tasks",
            By::Words => "task_words AS found CROSS JOIN tasks",
        }
    }

    fn with(mut self, value: impl Into<Value<'v>>) -> Self {
        self.values.push(value.into());
        self
    }
}

fn is_live(status: Status) -> bool {
    match status {
        Status::Queued | Status::Running | Status::Resumed => true,
        Status::Completed | Status::Error | Status::Cancelled => false,
    }
}

/// Whether a task has a status.
fn has(status: Status) -> String {
    match status {
        Status::Queued => "state = 'queued'".to_owned(),
        Status::Running => "(state = 'queued' OR (state = 'running' AND run = 0))".to_owned(),
        Status::Resumed => "(state = 'running' AND run > 0)".to_owned(),
        Status::Completed | Status::Error | Status::Cancelled => format!("state = '{status}'"),
    }
}
