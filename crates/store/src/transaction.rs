//! The journal, seen from inside a transaction. Each file beside this one has the SQL of one of
//! its traits.

use asyncagents_core::{
    port::{StoreError, Stored},
    task::Task,
};

use crate::{
    row,
    sql::{Column, Damage, Sql, Value},
};

/// The journal, seen from inside a transaction.
pub(crate) struct Transaction<S> {
    pub(crate) sql: S,
}

impl<S: Sql> Transaction<S> {
    pub(crate) fn new(sql: S) -> Self {
        Self { sql }
    }

    /// The tasks for which `condition` holds.
    pub(crate) fn tasks(&mut self, condition: &str, values: &[Value<'_>]) -> Stored<Vec<Task>> {
        let sql = format!("SELECT {} FROM tasks WHERE {condition}", row::READ);
        self.sql.all(&sql, values, row::task)
    }

    /// The column `found` of all rows.
    pub(crate) fn column<T: Column>(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<Vec<T>> {
        self.sql.all(sql, values, |row| row.get("found"))
    }

    /// The column `found` of the first row.
    pub(crate) fn find<T: Column>(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<Option<T>> {
        self.sql.one(sql, values, |row| row.get("found"))
    }

    /// The column `found` of the one row that there is.
    pub(crate) fn number<T: Column>(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<T> {
        let found = self.find(sql, values)?;
        found.ok_or_else(|| self.damaged("a statement that has one row has none"))
    }

    /// Runs a statement, however many rows it changes.
    pub(crate) fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<()> {
        self.sql.execute(sql, values).map(drop)
    }

    /// Whether there is any row.
    pub(crate) fn any(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<bool> {
        Ok(self.sql.one(sql, values, |_| Ok(()))?.is_some())
    }

    pub(crate) fn damaged(&self, why: impl ToString) -> StoreError {
        self.sql.damaged(Damage(why.to_string()))
    }

    /// A record as it is kept, and its kind.
    pub(crate) fn as_text(
        &self,
        write: impl FnOnce(&mut serde_json::Serializer<&mut Vec<u8>>) -> serde_json::Result<()>,
    ) -> Stored<(String, String)> {
        let mut text = Vec::new();
        let written = write(&mut serde_json::Serializer::new(&mut text));
        written.map_err(|error| self.damaged(error))?;
        let text = String::from_utf8(text).map_err(|error| self.damaged(error))?;
        // Serde writes the tag first.
        let kind = text.strip_prefix(r#"{"kind":""#);
        let kind = kind.and_then(|rest| rest.split_once('"'));
        match kind.map(|(kind, _)| kind.to_owned()) {
            Some(kind) => Ok((text, kind)),
            None => Err(self.damaged("a record has no kind")),
        }
    }
}
