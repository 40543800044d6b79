//! The SQL about tasks that wait for a slot.

use asyncagents_core::{
    id::OwnerId,
    port::{Queue, Stored},
    schedule::Slots,
    task::Task,
};

use crate::{
    row,
    sql::{Sql, values},
    transaction::Transaction,
};

impl<S: Sql> Queue for Transaction<S> {
    fn queue(
        &mut self,
        depth: u32,
        without: &[Box<str>],
        after: i64,
        most: usize,
    ) -> Stored<Vec<(Task, i64)>> {
        let prefixes: Vec<String> = without.iter().map(|kind| format!("{kind}:")).collect();
        let mut left_out = String::new();
        let mut values = values![depth, after, most].to_vec();
        for prefix in &prefixes {
            values.push(prefix.as_str().into());
            let at = values.len();
            left_out.push_str(&format!(" AND substr(host, 1, length(?{at})) <> ?{at}"));
        }
        let sql = format!(
            "SELECT {}, place FROM tasks \
             WHERE state = 'queued' AND depth = ?1 AND place > ?2 AND owner IS NOT NULL \
             AND stopping = 0{left_out} ORDER BY place LIMIT ?3",
            row::READ
        );
        self.sql.all(&sql, &values, |row| {
            Ok((row::task(row)?, row.get("place")?))
        })
    }

    fn queued_depths(&mut self) -> Stored<Vec<u32>> {
        let sql = "SELECT DISTINCT depth AS found FROM tasks WHERE state = 'queued' ORDER BY depth";
        self.column(sql, &[])
    }

    fn any_queued(&mut self, owner: &OwnerId) -> Stored<bool> {
        self.any(
            "SELECT 1 FROM tasks WHERE unfinished = 1 AND owner = ?1 AND state = 'queued' LIMIT 1",
            values![owner],
        )
    }

    fn taken(&mut self, slots: &Slots) -> Stored<u64> {
        let taken = "SELECT count(*) AS found FROM tasks WHERE taken = 1 AND owner IS NOT NULL";
        match slots {
            Slots::Depth(depth) => self.number(&format!("{taken} AND depth = ?1"), values![*depth]),
            Slots::Host(depth, kind) => self.number(
                &format!("{taken} AND depth = ?1 AND substr(host, 1, length(?2)) = ?2"),
                values![*depth, format!("{kind}:")],
            ),
            Slots::Model(depth, model) => self.number(
                &format!(
                    "{taken} AND depth = ?1 AND {} = ?2",
                    row::model_in_use::<S>()
                ),
                values![*depth, model],
            ),
            Slots::Parent(parent) => {
                self.number(&format!("{taken} AND parent = ?1"), values![parent])
            }
        }
    }
}
