//! The SQL about traces.

use asyncagents_core::{
    id::{ChainId, SessionId, TaskId},
    moment::Moment,
    port::{Chains, Journal, Sessions, Stored},
    trace::{Chain, ChainOf},
};
use rusqlite::{Params, Row, params};

use crate::journal::Transaction;

const COLUMNS: &str = "id, parent, task, run, session, prompt, begun";

impl Chains for Transaction<'_> {
    fn chains_beginning_with(&mut self, beginning: &str) -> Stored<Vec<Chain>> {
        // IDs are hexadecimal digits and hyphens; this is behind them all.
        let end = format!("{beginning}~");
        self.chains(
            "id >= ?1 AND id < ?2 ORDER BY begun LIMIT 100",
            params![beginning, end],
        )
    }

    fn chains_below(&mut self, chain: &ChainId) -> Stored<Vec<Chain>> {
        self.chains("parent = ?1 ORDER BY begun, rowid", [chain.as_str()])
    }

    fn chains_of(&mut self, task: &TaskId) -> Stored<Vec<Chain>> {
        self.chains("task = ?1 ORDER BY run", [task.as_str()])
    }

    fn newest_chains(&mut self, most: usize) -> Stored<Vec<Chain>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.chains(
            "parent IS NULL ORDER BY begun DESC, rowid DESC LIMIT ?1",
            [most],
        )
    }

    fn open_chain(&mut self, session: &SessionId) -> Stored<Option<ChainId>> {
        if let Some(task) = self.task_in(session)? {
            return Ok(task.chain);
        }
        let Some(prompt) = self.open_prompt(session)? else {
            return Ok(None);
        };
        let open = self.chains(
            "session = ?1 AND prompt = ?2",
            params![session.as_str(), prompt.as_str()],
        )?;
        Ok(open.into_iter().next().map(|chain| chain.id))
    }
}

impl Transaction<'_> {
    /// Where a trace begins. A name that is known is not begun again.
    pub(crate) fn begin_chain(&self, chain: &Chain) -> Stored<()> {
        let (task, run, session, prompt) = match &chain.of {
            ChainOf::Task { task, run } => (Some(task.as_str()), Some(*run), None, None),
            ChainOf::Session { session, prompt } => {
                (None, None, Some(session.as_str()), Some(prompt.as_str()))
            }
        };
        let sql =
            format!("INSERT OR IGNORE INTO chains ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
        self.execute(
            &sql,
            params![
                chain.id.as_str(),
                chain.parent.as_ref().map(ChainId::as_str),
                task,
                run,
                session,
                prompt,
                chain.begun.as_millis(),
            ],
        )?;
        Ok(())
    }

    fn chains(&self, which: &str, params: impl Params) -> Stored<Vec<Chain>> {
        let sql = format!("SELECT {COLUMNS} FROM chains WHERE {which}");
        self.all(&sql, params, chain)
    }
}

fn chain(row: &Row) -> rusqlite::Result<Chain> {
    let task: Option<String> = row.get(2)?;
    Ok(Chain {
        id: row.get::<_, String>(0)?.into(),
        parent: row.get::<_, Option<String>>(1)?.map(Into::into),
        of: match task {
            Some(task) => ChainOf::Task {
                task: task.into(),
                run: row.get(3)?,
            },
            None => ChainOf::Session {
                session: row.get::<_, String>(4)?.into(),
                prompt: row.get::<_, String>(5)?.into(),
            },
        },
        begun: Moment::from_millis(row.get(6)?),
    })
}
