//! The seam between the journal's SQL and the database that runs it.
//!
//! The SQL of the journal is written once, for [`Sql`]. It is what SQLite and Postgres have in
//! common, with numbered parameters as `?1`: a dialect that writes them otherwise (`$1`) translates
//! them in its [`Sql::execute`] and [`Sql::all`]. Where there is no common form, the dialect is
//! asked: [`Sql::AGE`], [`Sql::json_number`], [`Sql::json_text`] and [`Sql::contains`].

use std::{borrow::Cow, cell::Cell, fmt, time::Duration};

use asyncagents_core::{
    budget::Cost,
    id::{AgentName, ChainId, ModelName, OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    port::{StoreError, Stored},
};

/// A transaction of some database.
pub(crate) trait Sql {
    /// Orders rows by when they were inserted, in tables that have no number of their own.
    const AGE: &'static str;

    /// Runs a statement and returns how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<usize>;

    /// Reads all rows of an answer.
    fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T, Damage>,
    ) -> Stored<Vec<T>>;

    /// Reads the first row of an answer.
    fn one<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T, Damage>,
    ) -> Stored<Option<T>> {
        Ok(self.all(sql, values, read)?.into_iter().next())
    }

    /// The number under a key of the JSON object in a column; NULL if there is none.
    fn json_number(column: &str, key: &str) -> String;

    /// The text there.
    fn json_text(column: &str, key: &str) -> String;

    /// Whether a column has a text in it, in whatever case: a condition. `text` is a parameter.
    fn contains(column: &str, text: &str) -> String;

    /// Damage to this database.
    fn damaged(&self, damage: Damage) -> StoreError;
}

/// What is in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'v> {
    Null,
    Integer(i64),
    Text(Cow<'v, str>),
    Blob(Cow<'v, [u8]>),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Integer(number) => write!(f, "the number {number}"),
            Self::Text(text) => write!(f, "the text `{text}`"),
            Self::Blob(bytes) => write!(f, "{} bytes that are no text", bytes.len()),
        }
    }
}

/// Content that asyncagents cannot have written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

impl Damage {
    /// Adds the place.
    pub(crate) fn of(self, table: &str, row: impl ToString) -> Self {
        Self(format!("table {table}, {}: {}", row.to_string(), self.0))
    }
}

/// A row as a database hands it out.
pub(crate) trait Cells {
    /// The name of a column; none after the last.
    fn name(&self, at: usize) -> Option<&str>;
    /// What is in it; none if it is of a type that we never write.
    fn value(&self, at: usize) -> Option<Value<'_>>;
}

/// Text in a column, as serde reads it.
pub(crate) type JsonText<'t> = serde_json::Deserializer<serde_json::de::StrRead<'t>>;

/// A row, read by the names of its columns.
pub(crate) struct Row<'r> {
    cells: &'r dyn Cells,
    /// Columns are mostly read in order, so the search begins behind the one found last.
    next: Cell<usize>,
}

impl<'r> Row<'r> {
    pub(crate) fn new(cells: &'r dyn Cells) -> Self {
        Self {
            cells,
            next: Cell::new(0),
        }
    }

    pub(crate) fn get<T: Column>(&self, column: &str) -> Result<T, Damage> {
        let value = self.value(column)?;
        T::read(&value).ok_or_else(|| Damage(format!("column {column} holds {value}")))
    }

    pub(crate) fn text(&self, column: &str) -> Result<Cow<'r, str>, Damage> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            value => Err(Damage(format!("column {column} holds {value}"))),
        }
    }

    /// What is kept in a column as JSON.
    pub(crate) fn json<T>(
        &self,
        column: &str,
        read: impl FnOnce(&mut JsonText<'_>) -> serde_json::Result<T>,
    ) -> Result<T, Damage> {
        json_in(&self.text(column)?, column, read)
    }

    fn value(&self, column: &str) -> Result<Value<'r>, Damage> {
        let at = self.find(column);
        let at = at.ok_or_else(|| Damage(format!("there is no column {column}")))?;
        self.next.set(at + 1);
        let value = self.cells.value(at);
        value.ok_or_else(|| Damage(format!("column {column} holds what is never written")))
    }

    fn find(&self, column: &str) -> Option<usize> {
        let next = self.next.get();
        let mut at = next;
        while let Some(name) = self.cells.name(at) {
            if name == column {
                return Some(at);
            }
            at += 1;
        }
        (0..next).find(|at| self.cells.name(*at) == Some(column))
    }
}

/// What a text holds as JSON, which comes from a column.
pub(crate) fn json_in<T>(
    text: &str,
    column: &str,
    read: impl FnOnce(&mut JsonText<'_>) -> serde_json::Result<T>,
) -> Result<T, Damage> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = read(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| Damage(format!("column {column}: {error}")))
}

/// A word that stands for nothing we know.
pub(crate) fn unknown(column: &str, word: &str) -> Damage {
    Damage(format!("column {column} holds the unknown word `{word}`"))
}

/// What can be read from a column.
pub(crate) trait Column: Sized {
    fn read(value: &Value<'_>) -> Option<Self>;
}

impl<T: Column> Column for Option<T> {
    fn read(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Types that are numbers on disk: how they are written, and read if they can be.
macro_rules! numbers {
    ($($type:ty: $write:expr, $read:expr;)*) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                let write: fn($type) -> i64 = $write;
                Value::Integer(write(value))
            }
        }

        impl Column for $type {
            fn read(value: &Value<'_>) -> Option<Self> {
                let read: fn(i64) -> Option<$type> = $read;
                match value {
                    Value::Integer(number) => read(*number),
                    Value::Null | Value::Text(_) | Value::Blob(_) => None,
                }
            }
        }
    )*};
}

numbers! {
    i64: |n| n, Some;
    u32: i64::from, |n| n.try_into().ok();
    u64: |n| n.try_into().unwrap_or(i64::MAX), |n| n.try_into().ok();
    usize: |n| n.try_into().unwrap_or(i64::MAX), |n| n.try_into().ok();
    bool: i64::from, |n| Some(n != 0);
    Moment: Moment::as_millis, |n| Some(Moment::from_millis(n));
    Duration: |time| time.as_millis().try_into().unwrap_or(i64::MAX),
        |n| n.try_into().ok().map(Duration::from_millis);
    Cost: |cost| cost.0.try_into().unwrap_or(i64::MAX), |n| n.try_into().ok().map(Cost);
}

/// Types that are text on disk.
macro_rules! texts {
    ($($type:ty: $as_str:path;)*) => {$(
        impl<'v> From<&'v $type> for Value<'v> {
            fn from(value: &'v $type) -> Self {
                Value::Text($as_str(value).into())
            }
        }

        impl Column for $type {
            fn read(value: &Value<'_>) -> Option<Self> {
                match value {
                    Value::Text(text) => Some(text.as_ref().into()),
                    Value::Null | Value::Integer(_) | Value::Blob(_) => None,
                }
            }
        }
    )*};
}

texts! {
    String: String::as_str;
    AgentName: AgentName::as_str;
    ChainId: ChainId::as_str;
    ModelName: ModelName::as_str;
    OwnerId: OwnerId::as_str;
    PostId: PostId::as_str;
    SessionId: SessionId::as_str;
    TaskId: TaskId::as_str;
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Value::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

/// The parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// What is written into the columns of a row.
pub(crate) type Columns<'v> = Vec<(&'static str, Value<'v>)>;

/// Inserts a row of these columns.
pub(crate) fn insert(table: &str, columns: &Columns<'_>) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let holders: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
    let (names, holders) = (names.join(", "), holders.join(", "));
    format!("INSERT INTO {table} ({names}) VALUES ({holders})")
}

/// Writes these columns of a row; the first is its key.
pub(crate) fn update(table: &str, columns: &Columns<'_>) -> String {
    let set = columns.iter().zip(1..).skip(1);
    let set: Vec<String> = set
        .map(|((name, _), at)| format!("{name} = ?{at}"))
        .collect();
    let key = columns.first().map_or("", |(name, _)| *name);
    format!("UPDATE {table} SET {} WHERE {key} = ?1", set.join(", "))
}

/// The values of columns, in their order.
pub(crate) fn values_of(columns: Columns<'_>) -> Vec<Value<'_>> {
    columns.into_iter().map(|(_, value)| value).collect()
}
