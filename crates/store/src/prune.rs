//! The SQL that deletes what ended long ago.

use std::collections::HashSet;

use asyncagents_core::{
    id::{SessionId, TaskId},
    moment::Moment,
    port::{OldSession, OldTree, Prune, SessionPlace, Stored, TreePlace},
};

use crate::{
    sql::{Sql, values},
    transaction::Transaction,
};

impl<S: Sql> Prune for Transaction<S> {
    fn old_trees(
        &mut self,
        before: Moment,
        after: Option<&TreePlace>,
        most: usize,
    ) -> Stored<Vec<OldTree>> {
        let first = TreePlace {
            ended: Moment::from_millis(i64::MIN),
            root: "".into(),
        };
        let TreePlace { ended, root } = after.unwrap_or(&first);
        let sql = "SELECT id, ended_at FROM tasks \
             WHERE live = 0 AND above IS NULL AND ended_at < ?1 AND (ended_at, id) > (?2, ?3) \
             ORDER BY ended_at, id LIMIT ?4";
        let places = self
            .sql
            .all(sql, values![before, *ended, root, most], |row| {
                Ok(TreePlace {
                    ended: row.get("ended_at")?,
                    root: row.get("id")?,
                })
            })?;
        let trees = places.into_iter().map(|place| {
            let tree = self.old_tree(&place.root, before)?;
            let tasks = u64::try_from(tree.len()).unwrap_or(u64::MAX);
            Ok(OldTree { place, tasks })
        });
        trees.collect()
    }

    fn delete_tree(&mut self, root: &TaskId, before: Moment) -> Stored<u64> {
        let tree = self.old_tree(root, before)?;
        self.keep_positions(&tree)?;
        // Those below first: their sessions may begin with those above.
        for task in tree.iter().rev() {
            self.delete_task(task)?;
        }
        Ok(u64::try_from(tree.len()).unwrap_or(u64::MAX))
    }

    fn old_sessions(
        &mut self,
        before: Moment,
        tasks_before: Option<Moment>,
        after: Option<&SessionPlace>,
        most: usize,
    ) -> Stored<Vec<OldSession>> {
        let first = SessionPlace {
            begun: Moment::from_millis(i64::MIN),
            id: "".into(),
        };
        let SessionPlace { begun, id } = after.unwrap_or(&first);
        let sql = "SELECT id, begun FROM sessions \
             WHERE coalesce(task, '') = '' AND begun < ?1 AND (begun, id) > (?2, ?3) \
             ORDER BY begun, id LIMIT ?4";
        let places = self
            .sql
            .all(sql, values![before, *begun, id, most], |row| {
                Ok(SessionPlace {
                    begun: row.get("begun")?,
                    id: row.get("id")?,
                })
            })?;
        let sessions = places.into_iter().map(|place| {
            let is_old = self.is_old_session(&place.id, before, tasks_before)?;
            Ok(OldSession { place, is_old })
        });
        sessions.collect()
    }

    fn delete_old_session(&mut self, id: &SessionId, before: Moment) -> Stored<bool> {
        let is_old = self.is_old_session(id, before, None)?;
        if is_old {
            self.drop_session(id)?;
        }
        Ok(is_old)
    }
}

impl<S: Sql> Transaction<S> {
    /// The tasks of a tree, those above first; none if one of them must stay.
    fn old_tree(&mut self, root: &TaskId, before: Moment) -> Stored<Vec<TaskId>> {
        if !self.is_old_task(root, before)? || self.is_asked_for(root)? {
            return Ok(Vec::new());
        }
        let mut tree = vec![root.clone()];
        let mut at = 0;
        while let Some(above) = tree.get(at).cloned() {
            at += 1;
            let sql = "SELECT id AS found FROM tasks WHERE above = ?1";
            for below in self.column::<TaskId>(sql, values![&above])? {
                if !self.is_old_task(&below, before)? {
                    return Ok(Vec::new());
                }
                tree.push(below);
            }
        }
        Ok(tree)
    }

    /// Whether nobody does anything for a task any more, and nobody has to be told about it.
    fn is_old_task(&mut self, id: &TaskId, before: Moment) -> Stored<bool> {
        self.any(
            "SELECT 1 FROM tasks \
             WHERE id = ?1 AND live = 0 AND unfinished = 0 AND ended_at < ?2 \
             AND NOT EXISTS (SELECT 1 FROM notices n \
             WHERE n.task = tasks.id AND n.state = 'pending' AND n.pulled = 0)",
            values![id, before],
        )
    }

    /// Whether the session that launched a task is at work: it may yet want the result.
    fn is_asked_for(&mut self, root: &TaskId) -> Stored<bool> {
        let parent = "SELECT parent AS found FROM tasks WHERE id = ?1";
        match self.find::<SessionId>(parent, values![root])? {
            Some(parent) => self.is_driven(&parent),
            None => Ok(false),
        }
    }

    /// A number of an event is not used again, though the event is deleted: others have seen
    /// everything up to it. The newest event of all stays, or one takes its place that is no task's.
    fn keep_positions(&mut self, tree: &[TaskId]) -> Stored<()> {
        let newest = "SELECT task AS found FROM events WHERE pos = (SELECT max(pos) FROM events)";
        let newest: Option<TaskId> = self.find(newest, &[])?;
        let Some(newest) = newest.filter(|task| tree.contains(task)) else {
            return Ok(());
        };
        self.run("DELETE FROM events WHERE task = ''", &[])?;
        self.run(
            "INSERT INTO events (task, seq, at, kind, body) \
             SELECT '', seq, at, 'pruned', '' FROM events WHERE task = ?1 \
             ORDER BY pos DESC LIMIT 1",
            values![&newest],
        )
    }

    pub(crate) fn delete_task(&mut self, id: &TaskId) -> Stored<()> {
        let sessions = "SELECT id AS found FROM sessions WHERE task = ?1";
        for session in self.column::<SessionId>(sessions, values![id])? {
            self.drop_session(&session)?;
        }
        // What the shell is told is in no session that would go some day.
        self.run(
            "DELETE FROM entries WHERE session = (SELECT parent FROM tasks WHERE id = ?1) \
             AND post IN (SELECT id FROM notices WHERE task = ?1) \
             AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = entries.session)",
            values![id],
        )?;
        for sql in [
            "DELETE FROM events WHERE task = ?1",
            "DELETE FROM notices WHERE task = ?1",
            "DELETE FROM waits WHERE task = ?1",
            "DELETE FROM chains WHERE task = ?1",
            "DELETE FROM task_words WHERE rowid = (SELECT born FROM tasks WHERE id = ?1)",
            "DELETE FROM tasks WHERE id = ?1",
        ] {
            self.run(sql, values![id])?;
        }
        Ok(())
    }

    /// Deletes a session, and those before it that were only kept for it. One that another session
    /// begins with is kept for that.
    pub(crate) fn drop_session(&mut self, id: &SessionId) -> Stored<()> {
        let mut next = Some(id.clone());
        while let Some(id) = next.take() {
            if self.is_base(&id)? {
                let sql = "UPDATE sessions SET deleted = 1, driver = NULL WHERE id = ?1";
                return self.run(sql, values![&id]);
            }
            let base = "SELECT base AS found FROM sessions WHERE id = ?1";
            let base = self
                .find::<Option<SessionId>>(base, values![&id])?
                .flatten();
            for sql in [
                "DELETE FROM entries WHERE session = ?1",
                "DELETE FROM chains WHERE session = ?1",
                "DELETE FROM sessions WHERE id = ?1",
            ] {
                self.run(sql, values![&id])?;
            }
            if let Some(base) = base
                && self.is_left_over(&base)?
            {
                next = Some(base);
            }
        }
        Ok(())
    }

    fn is_base(&mut self, id: &SessionId) -> Stored<bool> {
        let sql = "SELECT 1 FROM sessions WHERE base = ?1 LIMIT 1";
        self.any(sql, values![id])
    }

    /// Whether a session was kept only for those that begin with it: its task is gone.
    fn is_left_over(&mut self, id: &SessionId) -> Stored<bool> {
        self.any(
            "SELECT 1 FROM sessions WHERE id = ?1 AND deleted = 1 AND task IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = sessions.task)",
            values![id],
        )
    }

    /// Whether nobody has done anything in a person's session since, works in it, or has to be told
    /// something there, and no task is left of it. Trees that ended before `tasks_before` do not count.
    fn is_old_session(
        &mut self,
        id: &SessionId,
        before: Moment,
        tasks_before: Option<Moment>,
    ) -> Stored<bool> {
        let newest = "SELECT at AS found FROM entries WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
        let newest: Option<Moment> = self.find(newest, values![id])?;
        if newest.is_some_and(|newest| newest >= before) || self.is_driven(id)? {
            return Ok(false);
        }
        let pending = "SELECT 1 FROM notices WHERE state = 'pending' AND parent = ?1 LIMIT 1";
        if self.any(pending, values![id])? {
            return Ok(false);
        }
        let mut old = HashSet::new();
        if let Some(before) = tasks_before {
            let roots = "SELECT id AS found FROM tasks WHERE parent = ?1 AND above IS NULL";
            for root in self.column::<TaskId>(roots, values![id])? {
                old.extend(self.old_tree(&root, before)?);
            }
        }
        let tasks = "SELECT id AS found FROM tasks WHERE parent = ?1 \
             UNION SELECT id FROM tasks WHERE root = ?1";
        let tasks = self.column::<TaskId>(tasks, values![id])?;
        let based = "SELECT task AS found FROM sessions WHERE base = ?1";
        let based = self.column::<Option<TaskId>>(based, values![id])?;
        Ok(tasks.iter().all(|task| old.contains(task))
            && based
                .iter()
                .all(|task| task.as_ref().is_some_and(|task| old.contains(task))))
    }

    /// Whether a process that is alive works in a session.
    fn is_driven(&mut self, id: &SessionId) -> Stored<bool> {
        let sql = "SELECT driver AS found FROM sessions WHERE id = ?1";
        let driver = self.find::<Option<String>>(sql, values![id])?.flatten();
        let Some(driver) = driver else {
            return Ok(false);
        };
        let owner = driver.split_once('/').map_or(&*driver, |(owner, _)| owner);
        self.any("SELECT 1 FROM owners WHERE id = ?1", values![owner])
    }
}
