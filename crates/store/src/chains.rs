//! The SQL about traces.

use asyncagents_core::{
    id::{ChainId, SessionId, TaskId},
    port::{Chains, Sessions, Stored, Tasks},
    trace::{Chain, ChainOf},
};

use crate::{
    sql::{Damage, Row, Sql, Value, values},
    transaction::Transaction,
};

impl<S: Sql> Chains for Transaction<S> {
    fn chains_beginning_with(&mut self, beginning: &str) -> Stored<Vec<Chain>> {
        // IDs are hexadecimal digits and hyphens; this is behind them all.
        let end = format!("{beginning}~");
        self.chains(
            "id >= ?1 AND id < ?2 ORDER BY begun LIMIT 100",
            values![beginning, end],
        )
    }

    fn chains_below(&mut self, chain: &ChainId) -> Stored<Vec<Chain>> {
        let below = format!("parent = ?1 ORDER BY begun, {}", S::AGE);
        self.chains(&below, values![chain])
    }

    fn chains_of(&mut self, task: &TaskId) -> Stored<Vec<Chain>> {
        self.chains("task = ?1 ORDER BY run", values![task])
    }

    fn newest_chains(&mut self, most: usize) -> Stored<Vec<Chain>> {
        let newest = format!(
            "parent IS NULL ORDER BY begun DESC, {} DESC LIMIT ?1",
            S::AGE
        );
        self.chains(&newest, values![most])
    }

    fn open_chain(&mut self, session: &SessionId) -> Stored<Option<ChainId>> {
        if let Some(task) = self.task_in(session)? {
            return Ok(task.chain);
        }
        let Some(prompt) = self.open_prompt(session)? else {
            return Ok(None);
        };
        let sql = "SELECT id AS found FROM chains WHERE session = ?1 AND prompt = ?2";
        self.find(sql, values![session, &prompt])
    }
}

impl<S: Sql> Transaction<S> {
    /// Where a trace begins. A name that is known is not begun again.
    pub(crate) fn begin_chain(&mut self, chain: &Chain) -> Stored<()> {
        let (task, run, session, prompt) = match &chain.of {
            ChainOf::Task { task, run } => (Some(task), Some(*run), None, None),
            ChainOf::Session { session, prompt } => (None, None, Some(session), Some(prompt)),
        };
        let sql = "INSERT INTO chains (id, parent, task, run, session, prompt, begun) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
        let (id, parent) = (&chain.id, chain.parent.as_ref());
        let values = values![id, parent, task, run, session, prompt, chain.begun];
        self.run(sql, values)
    }

    fn chains(&mut self, which: &str, values: &[Value<'_>]) -> Stored<Vec<Chain>> {
        let sql = format!("SELECT * FROM chains WHERE {which}");
        self.sql.all(&sql, values, chain)
    }
}

fn chain(row: &Row<'_>) -> Result<Chain, Damage> {
    let id: ChainId = row.get("id")?;
    let of = of(row).map_err(|damage| damage.of("chains", &id))?;
    Ok(Chain {
        id,
        parent: row.get("parent")?,
        of,
        begun: row.get("begun")?,
    })
}

fn of(row: &Row<'_>) -> Result<ChainOf, Damage> {
    Ok(match row.get("task")? {
        Some(task) => ChainOf::Task {
            task,
            run: row.get("run")?,
        },
        None => ChainOf::Session {
            session: row.get("session")?,
            prompt: row.get("prompt")?,
        },
    })
}
