//! The SQL about sessions.

use asyncagents_core::{
    agent::{Entry, Filed},
    id::{PostId, SessionId, TaskId},
    moment::Moment,
    port::{Base, Session, Sessions, Stored},
    trace::{Chain, ChainOf, RunEnd, RunSummary, TraceTotals},
};

use crate::{
    entry::EntryRecord,
    packed, row,
    sql::{Columns, Damage, Row, Sql, Value, insert, json_in, values, values_of},
    transaction::Transaction,
    used,
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
        // Every name that begins like this sorts between it and it with the last character there
        // is. One after the other, for a session may have very many tasks.
        let end = format!("{beginning}{}", char::MAX);
        let mut found: Vec<SessionId> = Vec::new();
        while found.len() < most {
            let last = found.last().map_or("", SessionId::as_str);
            let next = self.number::<Option<SessionId>>(
                "SELECT min(id) AS found FROM ( \
                 SELECT min(id) AS id FROM sessions \
                 WHERE id >= ?1 AND id < ?2 AND id > ?3 AND deleted = 0 \
                 UNION ALL \
                 SELECT min(parent) FROM tasks \
                 WHERE parent >= ?1 AND parent < ?2 AND parent > ?3 AND cleared = 0) AS named",
                values![beginning, &end, last],
            )?;
            match next {
                Some(next) => found.push(next),
                None => break,
            }
        }
        Ok(found)
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
        let [body, packed] = packed::columns(&body);
        let used = if used::is_kept(&kind) {
            let before = self.newest_used(session)?;
            Some(used::text(&before.plus(TraceTotals::of_entry(entry))))
        } else {
            None
        };
        let added = self.number(
            "INSERT INTO entries (session, seq, at, post, kind, body, packed, used) \
             VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE session = ?1), \
                     ?2, ?3, ?4, ?5, ?6, ?7) \
             RETURNING seq AS found",
            values![session, at, entry.post(), kind, body, packed, used],
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
        let sql = "SELECT session, seq, at, body, packed FROM entries \
             WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
        self.sql.all(sql, values![session, after, until], filed)
    }

    fn end_of(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<Entry>> {
        let begun = self.number_of(session, prompt)?.unwrap_or_default();
        let end = self.end_after(session, prompt, begun)?;
        Ok(end.map(|(filed, _)| filed.entry))
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

    fn run_summary(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<RunSummary>> {
        let sql = "SELECT session, seq, at, body, packed, used FROM entries \
             WHERE session = ?1 AND post = ?2";
        let begun = self
            .sql
            .one(sql, values![session, prompt], filed_and_used)?;
        let Some((
            Filed {
                seq,
                entry: Entry::Prompted { text, agent, .. },
                ..
            },
            before,
        )) = begun
        else {
            return Ok(None);
        };
        let (end, until) = match self.end_after(session, prompt, seq)? {
            Some((
                Filed {
                    at,
                    entry: Entry::Ended { end, answer, .. },
                    ..
                },
                until,
            )) => (Some(RunEnd { end, answer, at }), until),
            _ => (None, self.newest_used(session)?),
        };
        Ok(Some(RunSummary {
            agent,
            request: text,
            end,
            used: until.beyond(before),
        }))
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

    /// What a session has used until now.
    fn newest_used(&mut self, session: &SessionId) -> Stored<TraceTotals> {
        let sql = "SELECT used FROM entries WHERE session = ?1 AND used IS NOT NULL \
             ORDER BY seq DESC LIMIT 1";
        Ok(self
            .sql
            .one(sql, values![session], used_in)?
            .unwrap_or_default())
    }

    /// The end of a run that an entry began, with what the session had used by then. It is mostly the
    /// first end after that.
    fn end_after(
        &mut self,
        session: &SessionId,
        prompt: &PostId,
        begun: u64,
    ) -> Stored<Option<(Filed, TraceTotals)>> {
        let mut after = begun;
        loop {
            let sql = "SELECT session, seq, at, body, packed, used FROM entries \
                 WHERE session = ?1 AND kind = 'ended' AND seq > ?2 ORDER BY seq LIMIT 1";
            let end = self.sql.one(sql, values![session, after], filed_and_used)?;
            let Some((filed, used)) = end else {
                return Ok(None);
            };
            if matches!(&filed.entry, Entry::Ended { prompt: ended, .. } if ended == prompt) {
                return Ok(Some((filed, used)));
            }
            after = filed.seq;
        }
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

fn filed_and_used(row: &Row<'_>) -> Result<(Filed, TraceTotals), Damage> {
    Ok((filed(row)?, used_in(row)?))
}

fn used_in(row: &Row<'_>) -> Result<TraceTotals, Damage> {
    let used = row.get::<Option<String>>("used")?;
    used.map_or(Ok(TraceTotals::default()), |used| used::read(&used))
}

fn filed(row: &Row<'_>) -> Result<Filed, Damage> {
    let seq: u64 = row.get("seq")?;
    let body = packed::text_in(row, "body", "packed");
    let entry = body.and_then(|body| json_in(&body, "body", |from| EntryRecord::deserialize(from)));
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
