//! The SQL about sessions.

use asyncagents_core::{
    agent::{Entry, Filed},
    id::{PostId, SessionId, TaskId},
    moment::Moment,
    port::{Base, Session, Sessions, Stored},
    trace::{Chain, ChainOf},
};

use crate::{
    entry::EntryRecord,
    row,
    sql::{Columns, Damage, Row, Sql, Value, insert, values, values_of},
    transaction::Transaction,
};

impl<S: Sql> Sessions for Transaction<S> {
    fn session(&mut self, id: &SessionId) -> Stored<Option<Session>> {
        let sql = "SELECT * FROM sessions WHERE id = ?1 AND deleted = 0";
        self.sql.one(sql, values![id], session)
    }

    fn session_for(&mut self, task: &TaskId) -> Stored<Option<SessionId>> {
        let sql = "SELECT id AS found FROM sessions WHERE task = ?1";
        self.find(sql, values![task])
    }

    fn newest_session(&mut self, workspace: &str) -> Stored<Option<Session>> {
        let newest = self.newest_sessions(Some(workspace), 1)?;
        Ok(newest.into_iter().next())
    }

    fn newest_sessions(&mut self, workspace: Option<&str>, most: usize) -> Stored<Vec<Session>> {
        let here = workspace.map_or("", |_| "workspace = ?2 AND");
        let sql = format!(
            "SELECT * FROM sessions WHERE {here} task IS NULL AND deleted = 0 \
             ORDER BY begun DESC, id DESC LIMIT ?1"
        );
        let mut values = vec![Value::from(most)];
        values.extend(workspace.map(Value::from));
        self.sql.all(&sql, &values, session)
    }

    fn sessions_beginning_with(&mut self, beginning: &str, most: usize) -> Stored<Vec<SessionId>> {
        self.column(
            "SELECT id AS found FROM sessions \
             WHERE deleted = 0 AND substr(id, 1, length(?1)) = ?1 \
             UNION \
             SELECT parent FROM tasks WHERE cleared = 0 AND substr(parent, 1, length(?1)) = ?1 \
             ORDER BY 1 LIMIT ?2",
            values![beginning, most],
        )
    }

    fn base_of(&mut self, id: &SessionId) -> Stored<Option<Base>> {
        let sql = "SELECT base, base_until FROM sessions WHERE id = ?1";
        Ok(self.sql.one(sql, values![id], base)?.flatten())
    }

    fn begin_session(&mut self, new: &Session) -> Stored<()> {
        let columns = columns(new);
        let sql = insert("sessions", &columns);
        self.run(&sql, &values_of(columns))
    }

    fn delete_session(&mut self, id: &SessionId) -> Stored<()> {
        let sql = "UPDATE sessions SET deleted = 1, driver = NULL WHERE id = ?1";
        self.run(sql, values![id])
    }

    fn delete_all_sessions(&mut self) -> Stored<()> {
        let sql = "UPDATE sessions SET deleted = 1, driver = NULL WHERE deleted = 0";
        self.run(sql, &[])
    }

    fn drive(&mut self, id: &SessionId, driver: &str) -> Stored<()> {
        let sql = "UPDATE sessions SET driver = ?2 WHERE id = ?1";
        self.run(sql, values![id, driver])
    }

    fn driver(&mut self, id: &SessionId) -> Stored<Option<String>> {
        let sql = "SELECT driver AS found FROM sessions WHERE id = ?1 AND deleted = 0";
        Ok(self.find::<Option<String>>(sql, values![id])?.flatten())
    }

    fn file(&mut self, session: &SessionId, entry: &Entry, at: Moment) -> Stored<u64> {
        if let Some(post) = entry.post()
            && let Some(there) = self.number_of(session, post)?
        {
            return Ok(there);
        }
        let (body, kind) = self.as_text(|to| EntryRecord::serialize(entry, to))?;
        let added = self.number(
            "INSERT INTO entries (session, seq, at, post, kind, body) \
             VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE session = ?1), \
                     ?2, ?3, ?4, ?5) \
             RETURNING seq AS found",
            values![session, at, entry.post(), kind, body],
        )?;
        if let Entry::Prompted {
            post,
            chain: Some(chain),
            ..
        } = entry
        {
            self.begin_chain(&Chain {
                id: chain.clone(),
                parent: None,
                of: ChainOf::Session {
                    session: session.clone(),
                    prompt: post.clone(),
                },
                begun: at,
            })?;
        }
        Ok(added)
    }

    fn entries(&mut self, session: &SessionId, after: u64, until: u64) -> Stored<Vec<Filed>> {
        let sql = "SELECT session, seq, at, body FROM entries \
             WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
        self.sql.all(sql, values![session, after, until], filed)
    }

    fn end_of(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<Entry>> {
        let sql = "SELECT session, seq, at, body FROM entries \
             WHERE session = ?1 AND kind = 'ended' ORDER BY seq DESC";
        let ends = self.sql.all(sql, values![session], filed)?;
        let mut ends = ends.into_iter().map(|filed| filed.entry);
        Ok(ends.find(|end| matches!(end, Entry::Ended { prompt: ended, .. } if ended == prompt)))
    }

    fn open_prompt(&mut self, session: &SessionId) -> Stored<Option<PostId>> {
        let newest = self.find(
            "SELECT post AS found FROM entries WHERE session = ?1 AND kind = 'prompted' \
             ORDER BY seq DESC LIMIT 1",
            values![session],
        )?;
        let Some(newest) = newest else {
            return Ok(None);
        };
        let ended = self.end_of(session, &newest)?;
        Ok(Some(newest).filter(|_| ended.is_none()))
    }

    fn posted(&mut self, session: &SessionId, post: &PostId) -> Stored<bool> {
        self.number_of(session, post).map(|there| there.is_some())
    }
}

impl<S: Sql> Transaction<S> {
    fn number_of(&mut self, session: &SessionId, post: &PostId) -> Stored<Option<u64>> {
        let sql = "SELECT seq AS found FROM entries WHERE session = ?1 AND post = ?2";
        self.find(sql, values![session, post])
    }
}

fn columns(session: &Session) -> Columns<'_> {
    let base = session.base.as_ref();
    vec![
        ("id", Value::from(&session.id)),
        ("task", session.task.as_ref().into()),
        ("title", (&session.title).into()),
        ("agent", (&session.agent).into()),
        ("model", (&session.model).into()),
        ("system", (&session.system).into()),
        ("delegates", session.delegates.into()),
        ("workspace", (&session.workspace).into()),
        ("base", base.map(|base| &base.session).into()),
        ("base_until", base.map(|base| base.until).into()),
        ("begun", session.begun.into()),
        ("terms", session.terms.as_ref().map(row::terms).into()),
    ]
}

fn session(row: &Row<'_>) -> Result<Session, Damage> {
    let id: SessionId = row.get("id")?;
    let terms = row::terms_in(row, "terms").map_err(|damage| damage.of("sessions", &id))?;
    Ok(Session {
        id,
        task: row.get("task")?,
        title: row.get("title")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        system: row.get("system")?,
        delegates: row.get("delegates")?,
        workspace: row.get("workspace")?,
        base: base(row)?,
        begun: row.get("begun")?,
        terms,
    })
}

fn base(row: &Row<'_>) -> Result<Option<Base>, Damage> {
    let Some(session) = row.get("base")? else {
        return Ok(None);
    };
    let until = row.get("base_until")?;
    Ok(Some(Base { session, until }))
}

fn filed(row: &Row<'_>) -> Result<Filed, Damage> {
    let seq: u64 = row.get("seq")?;
    let entry = row.json("body", |from| EntryRecord::deserialize(from));
    let entry = entry.map_err(|damage| {
        let session = row.text("session").unwrap_or_default();
        damage.of("entries", format!("{session} entry {seq}"))
    })?;
    Ok(Filed {
        seq,
        at: row.get("at")?,
        entry,
    })
}
