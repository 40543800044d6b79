//! The SQL about posts. The table is called after the first of them, notices, and the session that a
//! post is for is in its column `parent`.

use asyncagents_core::{
    end_notice::EndNotice,
    host_ref::{HostRef, HostSetup},
    id::{OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    port::{
        Content, Fate, NoticeText, Outbox, PendingPost, Post, PostKind, Posted, Stored,
        ToldOfBatch, UnreadablePost, UnsentEnd,
    },
    task::Task,
};
use serde::Deserialize;

use crate::{
    end_notice::SavedEnd,
    host_setup::host_setup,
    question::ReplyRecord,
    sql::{Damage, Row, Sql, unknown, values},
    transaction::Transaction,
};

impl<S: Sql> Outbox for Transaction<S> {
    fn post(&mut self, task: &Task, post: &Post, not_before: Moment) -> Stored<()> {
        let none = Message {
            visible: String::new(),
            hidden: String::new(),
        };
        let (mut question, mut reply, mut batch, mut ending) = (None, None, None, None);
        let Message { visible, hidden } = match &post.content {
            Content::Notice(NoticeText::Unsent { batch: of, end }) => {
                let end = serde_json::to_string(&SavedEnd(end.clone()));
                (batch, ending) = (Some(*of), Some(end.map_err(|error| self.damaged(error))?));
                &none
            }
            Content::Notice(NoticeText::Worded(message)) | Content::Message(message) => message,
            Content::Question {
                question: asked,
                message,
            } => {
                question = Some(asked);
                message
            }
            Content::Answer {
                question: asked,
                reply: given,
            } => {
                let given = serde_json::to_string(&ReplyRecord::from(given.clone()));
                reply = Some(given.map_err(|error| self.damaged(error))?);
                question = Some(asked);
                &none
            }
        };
        let to = task.host_of(&post.to);
        let (host, pulled) = (to.to_string(), to.is_told_when_asking());
        let kind = post.content.kind().word();
        let sql = "INSERT INTO notices \
             (id, task, parent, host, visible, hidden, state, not_before, attempts, kind, run, \
             question, reply, batch, ending, pulled) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let values = values![
            &post.id,
            &task.id,
            &post.to,
            host,
            visible,
            hidden,
            not_before,
            kind,
            post.run,
            question.map(String::as_str),
            reply,
            batch,
            ending,
            pulled
        ];
        self.run(sql, values)
    }

    fn due(
        &mut self,
        owner: &OwnerId,
        now: Moment,
        after: i64,
        most: usize,
    ) -> Stored<Vec<Result<PendingPost, UnreadablePost>>> {
        // The newest word to a child is what counts, so no message overtakes one before it. One that
        // the host has, and only its history does not yet, is not overtaken any more.
        let behind = "SELECT 1 FROM notices b WHERE b.task = n.task AND b.run = n.run \
             AND b.kind = 'message' AND b.state = 'pending' AND b.pos < n.pos \
             AND (b.attempted IS NULL OR b.attempts = 0)";
        // The `+` keeps SQLite from scanning the table in this order, delivered notices and all.
        let sql = format!(
            "{SELECT_PENDING} \
             WHERE n.state = 'pending' AND n.pulled = 0 AND n.not_before <= ?2 AND t.owner = ?1 AND +n.pos > ?3 \
             AND n.told_with IS NULL \
             AND NOT (n.kind = 'message' AND EXISTS ({behind})) \
             ORDER BY +n.pos LIMIT ?4"
        );
        self.sql
            .all(&sql, values![owner, now, after, most], pending_or_damaged)
    }

    fn due_to(
        &mut self,
        session: &SessionId,
        now: Moment,
        most: usize,
    ) -> Stored<Vec<Result<PendingPost, UnreadablePost>>> {
        let sql = format!(
            "{SELECT_PENDING} \
             WHERE n.state = 'pending' AND n.parent = ?1 \
             AND ((n.pulled = 1 AND n.attempted IS NOT NULL) \
             OR (n.attempted IS NULL AND n.not_before <= ?2)) AND n.told_with IS NULL \
             AND n.kind IN ('notice', 'question') ORDER BY +n.pos LIMIT ?3"
        );
        self.sql
            .all(&sql, values![session, now, most], pending_or_damaged)
    }

    fn next_due_to(&mut self, session: &SessionId, now: Moment) -> Stored<Option<Moment>> {
        self.number(
            "SELECT min(not_before) AS found FROM notices \
             WHERE state = 'pending' AND parent = ?1 AND not_before > ?2 AND not_before <= ?3 \
             AND attempted IS NULL AND told_with IS NULL \
             AND kind IN ('notice', 'question')",
            values![session, now, i64::MAX],
        )
    }

    fn take(&mut self, found: &PendingPost, at: Moment) -> Stored<bool> {
        let attempted = found.attempted.map_or(-1, Moment::as_millis);
        let taken = self.sql.execute(
            "UPDATE notices SET attempted = ?2 \
             WHERE id = ?1 AND state = 'pending' AND coalesce(attempted, -1) = ?3",
            values![&found.post.id, at, attempted],
        )?;
        Ok(taken > 0)
    }

    fn hold(&mut self, post: &PostId) -> Stored<()> {
        let sql = "UPDATE notices SET pulled = 1 WHERE id = ?1 AND state = 'pending'";
        self.run(sql, values![post])
    }

    fn leave(&mut self, post: &PostId) -> Stored<()> {
        let sql =
            "UPDATE notices SET pulled = 2 WHERE id = ?1 AND state = 'pending' AND pulled = 0";
        self.run(sql, values![post])
    }

    fn look_again(&mut self) -> Stored<()> {
        // By the index of those that are pending.
        let sql = "UPDATE notices SET pulled = 0 \
             WHERE state = 'pending' AND parent >= '' AND pulled = 2";
        self.run(sql, values![])
    }

    fn next_due(&mut self, owner: &OwnerId, now: Moment) -> Stored<Option<Moment>> {
        // Whatever is no number is greater than all of them, and never due.
        self.number(
            "SELECT min(n.not_before) AS found FROM notices n JOIN tasks t ON t.id = n.task \
             WHERE n.state = 'pending' AND n.pulled = 0 \
             AND n.not_before > ?2 AND n.not_before <= ?3 \
             AND n.told_with IS NULL AND t.owner = ?1",
            values![owner, now, i64::MAX],
        )
    }

    fn sending(&mut self, found: &PendingPost, by: &OwnerId, at: Moment) -> Stored<bool> {
        let attempted = found.attempted.map_or(-1, Moment::as_millis);
        let marked = self.sql.execute(
            "UPDATE notices SET attempted = ?2 \
             WHERE id = ?1 AND state = 'pending' AND coalesce(attempted, -1) = ?4 \
             AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = notices.task AND t.owner = ?3)",
            values![&found.post.id, at, by, attempted],
        )?;
        Ok(marked > 0)
    }

    fn unsent_ends(&mut self, with: &PostId, now: Moment, most: usize) -> Stored<Vec<UnsentEnd>> {
        let awaited = "SELECT 1 FROM waits w WHERE w.task = n.task AND w.session = n.parent \
             AND w.until >= ?2";
        let sql = format!(
            "SELECT n.id, n.ending, n.pos, n.told_whole FROM notices told JOIN notices n \
             ON n.parent = told.parent AND n.batch = told.batch AND n.host = told.host \
             WHERE told.id = ?1 AND n.id <> ?1 AND n.state = 'pending' AND n.kind = 'notice' \
             AND n.attempted IS NULL AND n.told_with IS NULL AND n.ending IS NOT NULL \
             AND (n.not_before <= ?2 OR NOT EXISTS ({awaited})) \
             ORDER BY n.pos LIMIT ?3"
        );
        let found = self.sql.all(&sql, values![with, now, most], |row| {
            // One that cannot be read is given up when it is due itself.
            Ok(unsent(row).ok())
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    fn told_of_batch(&mut self, to: &SessionId, batch: u64, most: u32) -> Stored<ToldOfBatch> {
        let messages = self.number(
            "SELECT count(*) AS found FROM (SELECT 1 FROM notices \
             WHERE parent = ?1 AND batch = ?2 AND kind = 'notice' AND attempted IS NOT NULL \
             AND told_with IS NULL LIMIT ?3) AS sent",
            values![to, batch, most],
        )?;
        let next = self.number(
            "SELECT min(not_before) AS found FROM notices \
             WHERE state = 'pending' AND parent = ?1 AND batch = ?2 AND kind = 'notice' \
             AND attempted IS NULL",
            values![to, batch],
        )?;
        Ok(ToldOfBatch { messages, next })
    }

    fn tell_together(
        &mut self,
        leader: &PostId,
        message: &Message,
        ends: &[(PostId, bool)],
        at: Moment,
    ) -> Stored<()> {
        let Message { visible, hidden } = message;
        let sql = "UPDATE notices SET visible = ?2, hidden = ?3 WHERE id = ?1";
        self.run(sql, values![leader, visible, hidden])?;
        for (id, whole) in ends {
            let with = Some(leader).filter(|leader| *leader != id);
            let sql = "UPDATE notices SET told_with = ?2, told_whole = ?3, attempted = ?4 \
                 WHERE id = ?1";
            self.run(sql, values![id, with, *whole, at])?;
        }
        Ok(())
    }

    fn told_whole(&mut self, leader: &PostId) -> Stored<Vec<(TaskId, u32)>> {
        let sql = "SELECT task, run FROM notices \
             WHERE (id = ?1 OR told_with = ?1) AND told_whole = 1 ORDER BY pos";
        self.sql.all(sql, values![leader], |row| {
            Ok((row.get("task")?, row.get("run")?))
        })
    }

    fn put_off(&mut self, post: &PostId, until: Moment, attempted: Option<Moment>) -> Stored<()> {
        // What is told with another has been sent by somebody else since it was found.
        let sql = "UPDATE notices SET not_before = ?2, attempts = attempts + 1, attempted = ?3 \
             WHERE id = ?1 AND state = 'pending' AND told_with IS NULL";
        self.run(sql, values![post, until, attempted])?;
        if attempted.is_some() {
            return Ok(());
        }
        let sql = "UPDATE notices SET told_whole = 0 WHERE id = ?1 AND state = 'pending'";
        self.run(sql, values![post])?;
        let sql = "UPDATE notices SET not_before = ?2, attempts = attempts + 1, attempted = NULL, \
             told_with = NULL, told_whole = 0 WHERE told_with = ?1 AND state = 'pending'";
        self.run(sql, values![post, until])
    }

    fn hurry_batch(&mut self, to: &SessionId, batch: u64, now: Moment) -> Stored<()> {
        let awaited = "SELECT 1 FROM waits w WHERE w.task = notices.task \
             AND w.session = notices.parent AND w.until >= ?3";
        let sql = format!(
            "UPDATE notices SET not_before = ?3 \
             WHERE state = 'pending' AND parent = ?1 AND batch = ?2 AND kind = 'notice' \
             AND attempted IS NULL AND attempts = 0 AND not_before > ?3 AND NOT EXISTS ({awaited})"
        );
        self.run(&sql, values![to, batch, now])
    }

    fn postpone_posts(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET attempted = ?2, not_before = ?3 \
             WHERE task = ?1 AND state = 'pending' AND attempted IS NOT NULL";
        self.run(sql, values![task, now, until])
    }

    fn hurry(&mut self, session: &SessionId, now: Moment) -> Stored<bool> {
        let sql = "UPDATE notices SET not_before = ?2 \
             WHERE state = 'pending' AND parent = ?1 AND not_before > ?2 AND attempts > 0";
        Ok(self.sql.execute(sql, values![session, now])? > 0)
    }

    fn any_pending(&mut self, session: &SessionId) -> Stored<bool> {
        let sql = "SELECT 1 FROM notices \
             WHERE state = 'pending' AND pulled < 2 AND parent = ?1 LIMIT 1";
        self.any(sql, values![session])
    }

    fn delivered(&mut self, post: &PostId, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'told', settled_at = ?2, ending = NULL \
             WHERE (id = ?1 OR told_with = ?1) AND state = 'pending'";
        self.run(sql, values![post, at])
    }

    fn undelivered(&mut self, post: &PostId, why: &str, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3, ending = NULL \
             WHERE (id = ?1 OR told_with = ?1) AND state = 'pending'";
        self.run(sql, values![post, why, at])
    }

    fn give_up(&mut self, post: &UnreadablePost, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3 \
             WHERE state = 'pending' \
             AND (pos = ?1 OR told_with = (SELECT id FROM notices WHERE pos = ?1))";
        self.run(sql, values![post.place, post.why.as_str(), at])
    }

    fn result_was_read(&mut self, notice: &PostId) -> Stored<()> {
        let sql = "UPDATE notices SET told_whole = 1 \
             WHERE id = ?1 AND state = 'pending' AND attempted IS NULL";
        self.run(sql, values![notice])
    }

    fn withdraw(&mut self, post: &PostId, why: &str, at: Moment) -> Stored<()> {
        let sql = "UPDATE notices SET state = 'untold', why = ?2, settled_at = ?3, ending = NULL \
             WHERE id = ?1 AND state = 'pending' AND attempted IS NULL";
        self.run(sql, values![post, why, at])
    }

    fn posts(&mut self, task: &TaskId) -> Stored<Vec<Posted>> {
        let sql = "SELECT id, kind, run, question, attempted, told_with, state, why FROM notices \
             WHERE task = ?1 ORDER BY pos";
        self.sql.all(sql, values![task], |row| {
            let posted = posted(row).or_else(|damage| given_up(row).ok_or(damage));
            posted.map_err(|damage| of_post(row, damage))
        })
    }
}

/// Everything that [`pending`] reads.
const SELECT_PENDING: &str = "SELECT n.id, n.task, n.visible, n.hidden, n.parent, n.host, \
    t.settings, t.seal, t.host AS task_host, n.attempted, n.attempts, n.pos, n.kind, n.run, n.question, n.reply, n.batch, \
    n.ending, n.told_whole FROM notices n JOIN tasks t ON t.id = n.task";

fn pending_or_damaged(row: &Row<'_>) -> Result<Result<PendingPost, UnreadablePost>, Damage> {
    let place = row.get("pos")?;
    let unreadable = |Damage(why)| UnreadablePost { place, why };
    Ok(pending(row, place).map_err(|damage| unreadable(of_post(row, damage))))
}

fn of_post(row: &Row<'_>, damage: Damage) -> Damage {
    match row.get::<PostId>("id") {
        Ok(id) => damage.of("notices", &id),
        Err(damage) => damage.of("notices", "a key"),
    }
}

fn pending(row: &Row<'_>, place: i64) -> Result<PendingPost, Damage> {
    Ok(PendingPost {
        post: Post {
            id: row.get("id")?,
            to: row.get("parent")?,
            run: row.get("run")?,
            content: content(row)?,
        },
        task: row.get("task")?,
        host: recipient(row)?,
        attempted: row.get("attempted")?,
        attempts: row.get("attempts")?,
        place,
    })
}

/// The host of the session that a post is for. Outside of the task's host, the settings of its launch
/// mean nothing.
fn recipient(row: &Row<'_>) -> Result<HostSetup, Damage> {
    let found = host_setup(row)?;
    let of_task: String = row.get("task_host")?;
    if found.host != HostRef::from(&*of_task) {
        return Ok(found.host.into());
    }
    Ok(found)
}

fn content(row: &Row<'_>) -> Result<Content, Damage> {
    let kind = kind(row)?;
    let attempted: Option<Moment> = row.get("attempted")?;
    let batch: Option<u64> = row.get("batch")?;
    if let (PostKind::Notice, None, Some(batch)) = (kind, attempted, batch) {
        let end = end(row)?;
        return Ok(Content::Notice(NoticeText::Unsent { batch, end }));
    }
    let message = Message {
        visible: row.get("visible")?,
        hidden: row.get("hidden")?,
    };
    Ok(match kind {
        PostKind::Notice => Content::Notice(NoticeText::Worded(message)),
        PostKind::Message => Content::Message(message),
        PostKind::Question => Content::Question {
            question: row.get("question")?,
            message,
        },
        PostKind::Answer => Content::Answer {
            question: row.get("question")?,
            reply: row
                .json("reply", |from| ReplyRecord::deserialize(from))?
                .into(),
        },
    })
}

fn unsent(row: &Row<'_>) -> Result<UnsentEnd, Damage> {
    Ok(UnsentEnd {
        id: row.get("id")?,
        end: end(row)?,
        place: row.get("pos")?,
    })
}

fn end(row: &Row<'_>) -> Result<EndNotice, Damage> {
    let SavedEnd(end) = row.json("ending", |from| SavedEnd::deserialize(from))?;
    // The session has the whole result, before it was told of it.
    Ok(if row.get("told_whole")? {
        end.without_result()
    } else {
        end
    })
}

fn posted(row: &Row<'_>) -> Result<Posted, Damage> {
    Ok(Posted {
        id: row.get("id")?,
        kind: kind(row)?,
        run: row.get("run")?,
        question: row.get("question")?,
        fate: fate(row)?,
        attempted: row.get::<Option<Moment>>("attempted")?.is_some(),
        told_with: row.get("told_with")?,
    })
}

/// A post that was given up because it cannot be read. Whatever it was, it will not be delivered: it
/// is only told what became of it, by its name.
fn given_up(row: &Row<'_>) -> Option<Posted> {
    match fate(row).ok()? {
        fate @ Fate::Undelivered(_) => Some(Posted {
            id: row.get("id").ok()?,
            kind: kind(row).unwrap_or(PostKind::Message),
            run: row.get("run").unwrap_or_default(),
            question: None,
            fate,
            attempted: false,
            told_with: None,
        }),
        Fate::Pending | Fate::Delivered => None,
    }
}

fn kind(row: &Row<'_>) -> Result<PostKind, Damage> {
    let word = row.text("kind")?;
    PostKind::of_word(&word).ok_or_else(|| unknown("kind", &word))
}

fn fate(row: &Row<'_>) -> Result<Fate, Damage> {
    Ok(match &*row.text("state")? {
        "pending" => Fate::Pending,
        "told" => Fate::Delivered,
        "untold" => Fate::Undelivered(row.get::<Option<String>>("why")?.unwrap_or_default()),
        word => return Err(unknown("state", word)),
    })
}
