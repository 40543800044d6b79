//! The journal's SQL as SQLite runs it.

use std::path::Path;

use asyncagents_core::port::{StoreError, StoreErrorKind, Stored};
use rusqlite::{
    Connection, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    functions,
    sql::{Cells, Damage, Row, Sql, Value},
    sqlite_error::At,
};

/// A connection inside a transaction.
pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    path: &'c Path,
}

impl<'c> Statements<'c> {
    pub(crate) fn new(connection: &'c Connection, path: &'c Path) -> Self {
        Self { connection, path }
    }
}

impl Sql for Statements<'_> {
    const AGE: &'static str = "rowid";

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<usize> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute(params_from_iter(values))
        };
        run().at(self.path)
    }

    fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, Damage>,
    ) -> Stored<Vec<T>> {
        let mut run = || -> rusqlite::Result<Result<Vec<T>, Damage>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                match read(&Row::new(row)) {
                    Ok(one) => found.push(one),
                    Err(damage) => return Ok(Err(damage)),
                }
            }
            Ok(Ok(found))
        };
        let found = run().at(self.path)?;
        found.map_err(|damage| self.damaged(damage))
    }

    fn json_number(column: &str, key: &str) -> String {
        format!("json_extract({column}, '$.{key}')")
    }

    fn json_text(column: &str, key: &str) -> String {
        // It has the type that the value has.
        Self::json_number(column, key)
    }

    fn contains(column: &str, text: &str) -> String {
        format!("{}({column}, {text})", functions::CONTAINS)
    }

    fn damaged(&self, Damage(why): Damage) -> StoreError {
        StoreError::new(StoreErrorKind::Damaged, self.path.display(), why)
    }
}

impl Cells for rusqlite::Row<'_> {
    fn name(&self, at: usize) -> Option<&str> {
        self.as_ref().column_name(at).ok()
    }

    fn value(&self, at: usize) -> Option<Value<'_>> {
        match self.get_ref(at).ok()? {
            ValueRef::Null => Some(Value::Null),
            ValueRef::Integer(number) => Some(Value::Integer(number)),
            ValueRef::Text(text) => Some(Value::from(str::from_utf8(text).ok()?)),
            ValueRef::Blob(bytes) => Some(Value::Blob(bytes.into())),
            ValueRef::Real(_) => None,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
