//! The SQL about sessions.

use asyncagents_core::{
    agent::{Entry, Filed},
    id::{PostId, SessionId, TaskId},
    moment::Moment,
    port::{Base, Session, Sessions, Stored},
    trace::{Chain, ChainOf},
};
use rusqlite::{Row, params};

use crate::{entry::EntryRecord, journal::Transaction, row};

const COLUMNS: &str = "id, task, title, agent, model, system, delegates, workspace, base, base_until, begun, \
     terms";

impl Sessions for Transaction<'_> {
    fn session(&mut self, id: &SessionId) -> Stored<Option<Session>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1 AND deleted = 0");
        self.one(&sql, [id.as_str()], session)
    }

    fn session_for(&mut self, task: &TaskId) -> Stored<Option<SessionId>> {
        let sql = "SELECT id FROM sessions WHERE task = ?1";
        self.one(sql, [task.as_str()], |row| {
            Ok(row.get::<_, String>(0)?.into())
        })
    }

    fn newest_session(&mut self, workspace: &str) -> Stored<Option<Session>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions \
             WHERE workspace = ?1 AND task IS NULL AND deleted = 0 \
             ORDER BY begun DESC, id DESC LIMIT 1"
        );
        self.one(&sql, [workspace], session)
    }

    fn newest_sessions(&mut self, workspace: Option<&str>, most: usize) -> Stored<Vec<Session>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions \
             WHERE (?1 IS NULL OR workspace = ?1) AND task IS NULL AND deleted = 0 \
             ORDER BY begun DESC, id DESC LIMIT ?2"
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(&sql, params![workspace, most], session)
    }

    fn sessions_beginning_with(&mut self, beginning: &str, most: usize) -> Stored<Vec<SessionId>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(
            "SELECT id FROM sessions WHERE deleted = 0 AND substr(id, 1, length(?1)) = ?1 \
             UNION \
             SELECT parent FROM tasks WHERE cleared = 0 AND substr(parent, 1, length(?1)) = ?1 \
             ORDER BY 1 LIMIT ?2",
            params![beginning, most],
            |row| Ok(row.get::<_, String>(0)?.into()),
        )
    }

    fn base_of(&mut self, id: &SessionId) -> Stored<Option<Base>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1");
        let found = self.one(&sql, [id.as_str()], session)?;
        Ok(found.and_then(|session| session.base))
    }

    fn begin_session(&mut self, new: &Session) -> Stored<()> {
        let sql = format!(
            "INSERT INTO sessions ({COLUMNS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        );
        self.execute(
            &sql,
            params![
                new.id.as_str(),
                new.task.as_ref().map(TaskId::as_str),
                new.title,
                new.agent.as_str(),
                new.model.as_str(),
                new.system,
                new.delegates,
                new.workspace,
                new.base.as_ref().map(|base| base.session.as_str()),
                new.base.as_ref().map(|base| number(base.until)),
                new.begun.as_millis(),
                new.terms.as_ref().map(row::terms),
            ],
        )?;
        Ok(())
    }

    fn delete_session(&mut self, id: &SessionId) -> Stored<()> {
        let sql = "UPDATE sessions SET deleted = 1, driver = NULL WHERE id = ?1";
        self.execute(sql, [id.as_str()])?;
        Ok(())
    }

    fn delete_all_sessions(&mut self) -> Stored<()> {
        let sql = "UPDATE sessions SET deleted = 1, driver = NULL WHERE deleted = 0";
        self.execute(sql, [])?;
        Ok(())
    }

    fn drive(&mut self, id: &SessionId, driver: &str) -> Stored<()> {
        let sql = "UPDATE sessions SET driver = ?2 WHERE id = ?1";
        self.execute(sql, params![id.as_str(), driver])?;
        Ok(())
    }

    fn driver(&mut self, id: &SessionId) -> Stored<Option<String>> {
        let sql = "SELECT driver FROM sessions WHERE id = ?1 AND deleted = 0";
        let driver = self.one(sql, [id.as_str()], |row| row.get(0))?;
        Ok(driver.flatten())
    }

    fn file(&mut self, session: &SessionId, entry: &Entry, at: Moment) -> Stored<u64> {
        if let Some(post) = entry.post()
            && let Some(there) = self.number_of(session, post)?
        {
            return Ok(there);
        }
        let record = EntryRecord::from(entry);
        let body = self.as_text(&record)?;
        let added = self.one(
            "INSERT INTO entries (session, seq, at, post, kind, body) \
             VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE session = ?1), \
                     ?2, ?3, ?4, ?5) \
             RETURNING seq",
            params![
                session.as_str(),
                at.as_millis(),
                entry.post().map(PostId::as_str),
                record.kind(),
                body,
            ],
            |row| row.get::<_, i64>(0),
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
        Ok(added.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0))
    }

    fn entries(&mut self, session: &SessionId, after: u64, until: u64) -> Stored<Vec<Filed>> {
        let found = self.all(
            "SELECT seq, at, body FROM entries \
             WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
            params![session.as_str(), number(after), number(until)],
            |row| {
                let (seq, at): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((seq, at, row.get::<_, String>(2)?))
            },
        )?;
        let filed = |(seq, at, body): (i64, i64, String)| {
            let record: EntryRecord = self.as_record(&body)?;
            Ok(Filed {
                seq: u64::try_from(seq).unwrap_or(0),
                at: Moment::from_millis(at),
                entry: record.into(),
            })
        };
        found.into_iter().map(filed).collect()
    }

    fn end_of(&mut self, session: &SessionId, prompt: &PostId) -> Stored<Option<Entry>> {
        let ends = self.all(
            "SELECT body FROM entries WHERE session = ?1 AND kind = 'ended' ORDER BY seq DESC",
            [session.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        for body in ends {
            let entry = Entry::from(self.as_record::<EntryRecord>(&body)?);
            if matches!(&entry, Entry::Ended { prompt: ended, .. } if ended == prompt) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn open_prompt(&mut self, session: &SessionId) -> Stored<Option<PostId>> {
        let newest = self.one(
            "SELECT post FROM entries WHERE session = ?1 AND kind = 'prompted' \
             ORDER BY seq DESC LIMIT 1",
            [session.as_str()],
            |row| Ok(PostId::from(row.get::<_, String>(0)?)),
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

impl Transaction<'_> {
    fn number_of(&self, session: &SessionId, post: &PostId) -> Stored<Option<u64>> {
        let sql = "SELECT seq FROM entries WHERE session = ?1 AND post = ?2";
        let there = self.one(sql, [session.as_str(), post.as_str()], |row| {
            row.get::<_, i64>(0)
        })?;
        Ok(there.and_then(|seq| u64::try_from(seq).ok()))
    }
}

fn session(row: &Row) -> rusqlite::Result<Session> {
    let base: Option<String> = row.get(8)?;
    let until: Option<i64> = row.get(9)?;
    Ok(Session {
        id: row.get::<_, String>(0)?.into(),
        task: row.get::<_, Option<String>>(1)?.map(TaskId::from),
        title: row.get(2)?,
        agent: row.get::<_, String>(3)?.into(),
        model: row.get::<_, String>(4)?.into(),
        system: row.get(5)?,
        delegates: row.get(6)?,
        workspace: row.get(7)?,
        base: base.map(|session| Base {
            session: session.into(),
            until: until
                .and_then(|until| u64::try_from(until).ok())
                .unwrap_or(0),
        }),
        begun: Moment::from_millis(row.get(10)?),
        terms: row::terms_at(row, 11)?,
    })
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
