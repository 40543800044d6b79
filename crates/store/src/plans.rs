//! How SQLite finds what the journal's statements ask for: by an index whose rows it needs, so that
//! a statement costs the same however many tasks have finished.

use std::{cell::RefCell, path::Path};

use asyncagents_core::{
    id::{OwnerId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    port::{
        Chains, Leases, Outbox, Prune, Queue, Sessions, ShownSessions, StoreError, Stored, Tasks,
        Waits,
    },
    schedule::Slots,
    task::Status,
    task_list::ListRequest,
};
use rusqlite::Connection;

use crate::{
    open::{self, Options},
    sql::{Damage, Row, Sql, Value},
    statements::Statements,
    transaction::Transaction,
};

/// Runs statements, and notes the plan of each.
struct Explained<'c> {
    statements: Statements<'c>,
    connection: &'c Connection,
    seen: &'c RefCell<Vec<String>>,
}

impl Explained<'_> {
    fn explain(&self, sql: &str) {
        let explained = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = self.connection.prepare(&explained).expect("a statement");
        let nothing = vec![0; statement.parameter_count()];
        let lines = statement
            .query_map(rusqlite::params_from_iter(nothing), |row| {
                row.get::<_, String>("detail")
            })
            .expect("a plan");
        let mut seen = self.seen.borrow_mut();
        for line in lines {
            let line = line.expect("a line");
            assert!(is_bounded(&line, sql), "{line}, for: {sql}");
            seen.push(format!("  {line}"));
        }
    }
}

/// Indexes of what is not finished: never many.
const OF_LIVE_WORK: [&str; 8] = [
    "tasks_live",
    "tasks_queued",
    "tasks_taken",
    "tasks_taken_of",
    "tasks_unfinished",
    "tasks_stopping",
    "notices_pending",
    "notices_to",
];

/// Indexes in the order in which rows are wanted, until there are enough.
const IN_ORDER: [&str; 2] = ["tasks_shown", "chains_by_age"];

/// Whether a line of a plan reads no more than it has to.
fn is_bounded(line: &str, sql: &str) -> bool {
    let Some(scanned) = line.strip_prefix("SCAN ") else {
        return true;
    };
    let by = scanned.rsplit(' ').next().unwrap_or_default();
    let table = scanned.split(' ').next().unwrap_or_default();
    match table {
        "tasks" | "t" | "notices" | "n" | "b" | "entries" | "events" | "sessions" | "chains" => {
            OF_LIVE_WORK.contains(&by) || (IN_ORDER.contains(&by) && sql.contains("LIMIT"))
        }
        // Those alive, what waits, and what other lines of the plan have found.
        _ => true,
    }
}

impl Sql for Explained<'_> {
    const AGE: &'static str = Statements::AGE;

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Stored<usize> {
        self.explain(sql);
        self.statements.execute(sql, values)
    }

    fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T, Damage>,
    ) -> Stored<Vec<T>> {
        self.explain(sql);
        self.statements.all(sql, values, read)
    }

    fn json_number(column: &str, key: &str) -> String {
        Statements::json_number(column, key)
    }

    fn json_text(column: &str, key: &str) -> String {
        Statements::json_text(column, key)
    }

    fn contains(column: &str, text: &str) -> String {
        Statements::contains(column, text)
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        self.statements.damaged(damage)
    }
}

type Call = fn(&mut Transaction<Explained<'_>>) -> Stored<()>;

fn task() -> TaskId {
    TaskId::from_random(1)
}

fn session() -> SessionId {
    "main".into()
}

fn owner() -> OwnerId {
    "worker".into()
}

fn lists(journal: &mut Transaction<Explained<'_>>, request: ListRequest) -> Stored<()> {
    let of = ListRequest {
        of: Some(session()),
        ..request.clone()
    };
    journal.list(&request)?;
    journal.list(&of).map(drop)
}

const CALLS: &[(&str, Call)] = &[
    ("task", |journal| journal.task(&task()).map(drop)),
    ("due_to", |journal| {
        journal.due_to(&session(), Moment::default(), 9).map(drop)
    }),
    ("next_due_to", |journal| {
        journal.next_due_to(&session(), Moment::default()).map(drop)
    }),
    ("hold", |journal| journal.hold(&task().notice(0))),
    ("leave, look_again", |journal| {
        journal.leave(&task().notice(0))?;
        journal.look_again()
    }),
    ("shows", |journal| {
        let now = Moment::default();
        journal.shows("7@1", &session(), now).map(drop)
    }),
    ("task_in", |journal| journal.task_in(&session()).map(drop)),
    ("launched_below", |journal| {
        journal.launched_below(&session()).map(drop)
    }),
    ("open_batch", |journal| {
        journal.open_batch(&session()).map(drop)
    }),
    ("batch", |journal| journal.batch(&session(), 1).map(drop)),
    ("open_chain", |journal| {
        journal.open_chain(&session()).map(drop)
    }),
    ("neighbours", |journal| {
        journal.neighbours(&task()).map(drop)
    }),
    ("beginning_with", |journal| {
        journal.beginning_with("task_0").map(drop)
    }),
    ("prompt, messages", |journal| {
        journal.prompt(&task())?;
        journal.messages(&task()).map(drop)
    }),
    ("answer, posts", |journal| {
        journal.answer(&task())?;
        journal.posts(&task()).map(drop)
    }),
    ("awaited", |journal| {
        let now = Moment::default();
        journal.awaited(&task(), &session(), now).map(drop)
    }),
    ("changed_since", |journal| {
        journal.changed_since(-1).map(drop)
    }),
    ("below, spent_below, unsettled_below", |journal| {
        journal.below(&task())?;
        journal.spent_below(&task())?;
        journal.unsettled_below(&task()).map(drop)
    }),
    ("list", |journal| lists(journal, ListRequest::usual())),
    ("list of a status", |journal| {
        Status::ALL.iter().try_for_each(|(_, status)| {
            let request = ListRequest {
                status: Some(*status),
                ..ListRequest::usual()
            };
            lists(journal, request)
        })
    }),
    ("list with a search", |journal| {
        let request = ListRequest {
            search: Some("text".to_owned()),
            ..ListRequest::usual()
        };
        lists(journal, request)
    }),
    ("any_live, any_pending", |journal| {
        journal.any_live(&session())?;
        journal.any_pending(&session()).map(drop)
    }),
    ("sessions_beginning_with", |journal| {
        journal.sessions_beginning_with("ses_0", 10).map(drop)
    }),
    ("newest_chains, chains_of, chains_below", |journal| {
        journal.newest_chains(20)?;
        journal.chains_of(&task())?;
        journal.chains_below(&"0".into()).map(drop)
    }),
    ("chains_beginning_with", |journal| {
        journal.chains_beginning_with("0").map(drop)
    }),
    ("events", |journal| journal.events(&task()).map(drop)),
    ("entries, end_of, open_prompt", |journal| {
        journal.entries(&session(), 1, 2)?;
        journal.end_of(&session(), &"p".into())?;
        journal.open_prompt(&session()).map(drop)
    }),
    ("old_trees, delete_tree", |journal| {
        journal.old_trees(Moment::default(), None, 10)?;
        journal.delete_tree(&task(), Moment::default())?;
        journal.delete_task(&task())
    }),
    ("old_sessions, delete_old_session", |journal| {
        journal.old_sessions(Moment::default(), Some(Moment::default()), None, 10)?;
        journal.delete_old_session(&session(), Moment::default())?;
        journal.drop_session(&session())
    }),
    ("survey", |journal| {
        journal.any_queued(&owner())?;
        journal.queued_depths()?;
        journal.queue(1, &["opencode".into()], 0, 10)?;
        for slots in [
            Slots::Depth(1),
            Slots::Model(1, "m".into()),
            Slots::Parent(session()),
        ] {
            journal.taken(&slots)?;
        }
        journal.unowned()?;
        journal.to_stop(&owner())?;
        journal.due(&owner(), Moment::default(), 0, 10)?;
        journal.next_due(&owner(), Moment::default()).map(drop)
    }),
    ("ends that are told together", |journal| {
        let (post, now) = (task().notice(0), Moment::default());
        let message = Message {
            visible: String::new(),
            hidden: String::new(),
        };
        journal.told_of_batch(&session(), 1, 4)?;
        journal.hurry_batch(&session(), 1, Moment::default())?;
        journal.unsent_ends(&post, now, 10)?;
        journal.tell_together(&post, &message, &[(post.clone(), true)], now)?;
        journal.put_off(&post, now, None)?;
        journal.told_whole(&post)?;
        journal.delivered(&post, now)?;
        journal.undelivered(&post, "", now)
    }),
    ("owned, orphans, running, unfinished", |journal| {
        journal.owned(&owner())?;
        journal.orphans()?;
        journal.running(&owner())?;
        journal.unfinished().map(drop)
    }),
];

/// The lines that the calls of CALLS lead to.
fn plans() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let keep = |_| crate::Introduction::Keep;
    let connection = open::writer(&path, Options::default(), &keep).expect("a database");
    let seen = RefCell::new(Vec::new());
    for (name, call) in CALLS {
        seen.borrow_mut().push((*name).to_owned());
        let statements = Statements::new(&connection, Path::new("tasks.db"));
        let mut journal = Transaction::new(Explained {
            statements,
            connection: &connection,
            seen: &seen,
        });
        call(&mut journal).expect("read");
    }
    seen.into_inner().join("\n")
}

#[test]
fn no_statement_reads_tasks_that_have_finished_without_need() {
    insta::assert_snapshot!(plans());
}
