//! Functions that SQLite does not have.

use std::sync::Mutex;

use asyncagents_core::{lock::lock, trace::TraceTotals};
use rusqlite::{Connection, functions::FunctionFlags};

use crate::{entry::EntryRecord, packed::pack, search, used};

/// `contains_text(text, part)`: whether a text has another in it, in whatever case. SQLite's own
/// know the case of ASCII only.
pub(crate) const CONTAINS: &str = "contains_text";

/// `pack_text(text)`: a long text as it is kept, NULL for one that stays as it is.
const PACK: &str = "pack_text";

/// `used_until(session, kind, body)`: what a session has used up to an entry, as it is kept; NULL for
/// entries that do not have it. Entries must come in order.
const USED: &str = "used_until";

/// `search_words(description, agent, id)`: what is in the index of searches for a task.
const WORDS: &str = "search_words";

/// Only for our own statements: nothing in a file may call them.
const OURS: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DIRECTONLY);

/// Adds those that the journal's statements use.
pub(crate) fn add(connection: &Connection) -> rusqlite::Result<()> {
    let flags = OURS | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(CONTAINS, 2, flags, |call| {
        let [text, part] = [0, 1].map(|at| call.get_raw(at).as_str_or_null());
        let found = text?
            .zip(part?)
            .is_some_and(|(text, part)| contains(text, part));
        Ok(found)
    })
}

/// Adds those that migrations use.
pub(crate) fn add_for_migrations(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_scalar_function(PACK, 1, OURS, |call| {
        // What is damaged stays as it is, for those who read it to find.
        let text = call.get_raw(0).as_str_or_null();
        Ok(text.ok().flatten().and_then(pack))
    })?;
    connection.create_scalar_function(WORDS, 3, OURS, |call| {
        let [description, agent, id] =
            [0, 1, 2].map(|at| call.get_raw(at).as_str().unwrap_or_default());
        Ok(search::words(description, agent, id))
    })?;
    let until_now = Mutex::new((String::new(), TraceTotals::default()));
    connection.create_scalar_function(USED, 3, OURS, move |call| {
        let [session, kind, body] =
            [0, 1, 2].map(|at| call.get_raw(at).as_str().unwrap_or_default());
        if !used::is_kept(kind) {
            return Ok(None);
        }
        let mut until_now = lock(&until_now);
        let (of, totals) = &mut *until_now;
        if of != session {
            (*of, *totals) = (session.to_owned(), TraceTotals::default());
        }
        // What is damaged is found by those who read it.
        let mut json = serde_json::Deserializer::from_str(body);
        if let Ok(entry) = EntryRecord::deserialize(&mut json) {
            *totals = totals.plus(TraceTotals::of_entry(&entry));
        }
        Ok(Some(used::text(totals)))
    })
}

fn contains(text: &str, part: &str) -> bool {
    search::lowercase(text).contains(&search::lowercase(part))
}
