//! Deleting what ended long ago.

use std::sync::Arc;

use asyncagents_core::{
    agent::Entry,
    event::{Event, Launched},
    id::{ChainId, SessionId, TaskId},
    moment::Moment,
    port::{Base, Journal, LeaseTime, Session, Stored},
    task::Place,
};

use super::{
    Site, on_new,
    samples::{at, completed, id, launched, notice, session, task_with},
};

/// Tasks of the samples end at 2.
const LATER: Moment = Moment::from_millis(3);

/// A task launched from the session of another one.
fn below(above: u128) -> Launched {
    let mut child = launched("ses_above");
    child.place = Place {
        parent: "ses_above".into(),
        above: Some(id(above)),
        root: "main".into(),
        depth: 2,
        outside: None,
        above_in: None,
    };
    child
}

fn nudged(text: &str) -> Entry {
    let text = text.to_owned();
    Entry::Nudged { text }
}

fn of_task(name: &str, task: u128) -> Session {
    Session {
        task: Some(id(task)),
        ..session(name)
    }
}

/// How many tasks of each old tree can go.
fn old(journal: &mut dyn Journal, before: Moment) -> Stored<Vec<(TaskId, u64)>> {
    let trees = journal.old_trees(before, None, 100)?.into_iter();
    Ok(trees.map(|tree| (tree.place.root, tree.tasks)).collect())
}

/// Everything that can be found of a task and its session.
fn left(journal: &mut dyn Journal, n: u128, session: &str) -> Stored<[bool; 8]> {
    let (task, session) = (id(n), SessionId::from(session));
    Ok([
        journal.task(&task)?.is_some(),
        !journal.events(&task)?.is_empty(),
        !journal.posts(&task)?.is_empty(),
        !journal.chains_of(&task)?.is_empty(),
        journal.awaited(&task, &"main".into(), at(1))?.is_some(),
        journal.session_for(&task)?.is_some(),
        !journal.entries(&session, 0, u64::MAX)?.is_empty(),
        journal.session(&session)?.is_some(),
    ])
}

/// A task with something in every table, whose run is over and told.
fn full(journal: &mut dyn Journal, n: u128, launched: Launched, name: &str) -> Stored<()> {
    let chain = Some(ChainId::from(format!("0198-{n}")));
    let task = task_with(
        journal,
        n,
        Launched { chain, ..launched },
        &[completed("so")],
    )?;
    let post = notice(&task);
    journal.post(&task, &post, at(2))?;
    journal.delivered(&post.id, at(2))?;
    journal.wait(&task.id, &"main".into(), at(9))?;
    journal.begin_session(&of_task(name, n))?;
    journal.file(&name.into(), &nudged("one"), at(2)).map(drop)
}

pub(super) async fn a_tree_goes_whole_and_leaves_nothing(site: Arc<dyn Site>) {
    let (old_ones, deleted, [root, child, other], again) = on_new(&site, |journal| {
        full(journal, 1, launched("main"), "ses_above")?;
        full(journal, 2, below(1), "ses_below")?;
        full(journal, 3, launched("main"), "ses_other")?;
        let old_ones = old(journal, LATER)?;
        let deleted = journal.delete_tree(&id(1), LATER)?;
        let rest = [
            left(journal, 1, "ses_above")?,
            left(journal, 2, "ses_below")?,
            left(journal, 3, "ses_other")?,
        ];
        let again = journal.delete_tree(&id(1), LATER)?;
        Ok((old_ones, deleted, rest, (again, old(journal, LATER)?)))
    })
    .await;
    assert_eq!(old_ones, [(id(1), 2), (id(3), 1)]);
    assert_eq!(deleted, 2);
    assert_eq!([root, child], [[false; 8]; 2]);
    assert_eq!(other, [true; 8]);
    assert_eq!(again, (0, vec![(id(3), 1)]));
}

pub(super) async fn what_somebody_needs_is_not_deleted(site: Arc<dyn Site>) {
    let stops = Event::Ended {
        outcome: asyncagents_core::task::Outcome::Cancelled,
        answer: None,
        stop: true,
    };
    let (old_ones, deleted, there) = on_new(&site, move |journal| {
        // One that is not finished, alone and below another.
        task_with(journal, 1, launched("main"), &[])?;
        task_with(journal, 2, launched("main"), &[completed("so")])?;
        task_with(journal, 3, below(2), &[Event::Started])?;
        // One whose host has still to be stopped.
        task_with(journal, 4, launched("main"), std::slice::from_ref(&stops))?;
        // One of which a parent has still to be told, below another.
        task_with(journal, 5, launched("main"), &[completed("so")])?;
        let told = task_with(journal, 6, below(5), &[completed("so")])?;
        journal.post(&told, &notice(&told), at(2))?;
        // One that has ended since.
        let mut late = task_with(journal, 7, launched("main"), &[])?;
        journal.append(&mut late, &[completed("so")], LATER)?;
        task_with(journal, 8, launched("main"), &[completed("so")])?;
        let mut late = task_with(journal, 9, below(8), &[])?;
        journal.append(&mut late, &[completed("so")], LATER)?;
        // One whose caller is at work, and may want the result.
        journal.renew(&"worker".into(), &a_lease(), true)?;
        journal.begin_session(&session("ses_busy"))?;
        journal.drive(&"ses_busy".into(), "worker/1")?;
        task_with(journal, 10, launched("ses_busy"), &[completed("so")])?;
        let old_ones = old(journal, LATER)?;
        let each = (1..=10).map(|n| journal.delete_tree(&id(n), LATER));
        let deleted = each.collect::<Stored<Vec<_>>>()?;
        let there = (1..=10).map(|n| Ok(journal.task(&id(n))?.is_some()));
        let there = there.collect::<Stored<Vec<_>>>()?;
        Ok((old_ones, deleted, there))
    })
    .await;
    let stay = [2, 4, 5, 8, 10].map(|n| (id(n), 0));
    assert_eq!(old_ones, stay);
    assert_eq!(deleted, [0; 10]);
    assert_eq!(there, [true; 10]);
}

pub(super) async fn old_trees_are_found_page_by_page(site: Arc<dyn Site>) {
    let found = on_new(&site, |journal| {
        for n in [3, 1, 4, 2] {
            task_with(journal, n, launched("main"), &[completed("so")])?;
        }
        let mut found: Vec<TaskId> = Vec::new();
        let mut after = None;
        loop {
            let page = journal.old_trees(LATER, after.as_ref(), 3)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            after = Some(last.place.clone());
            found.extend(page.into_iter().map(|tree| tree.place.root));
        }
    });
    assert_eq!(found.await, [1, 2, 3, 4].map(id));
}

pub(super) async fn a_session_that_another_begins_with_goes_with_that(site: Arc<dyn Site>) {
    let (kept, gone) = on_new(&site, |journal| {
        full(journal, 1, launched("main"), "ses_base")?;
        full(journal, 2, launched("main"), "ses_fork")?;
        journal.delete_tree(&id(2), LATER)?;
        journal.begin_session(&Session {
            base: Some(Base {
                session: "ses_base".into(),
                until: 1,
            }),
            ..of_task("ses_fork", 3)
        })?;
        task_with(journal, 3, launched("main"), &[completed("so")])?;
        let tasks = journal.delete_tree(&id(1), LATER)?;
        let base = "ses_base".into();
        let kept = (
            tasks,
            journal.session(&base)?.is_some(),
            journal.entries(&base, 0, u64::MAX)?.len(),
        );
        journal.delete_tree(&id(3), LATER)?;
        Ok((kept, left(journal, 1, "ses_base")?))
    })
    .await;
    assert_eq!(kept, (1, false, 1));
    assert_eq!(gone, [false; 8]);
}

pub(super) async fn numbers_of_deleted_events_are_not_used_again(site: Arc<dyn Site>) {
    let changed = on_new(&site, |journal| {
        let mut changed = Vec::new();
        for n in 1..=3 {
            task_with(journal, n, launched("main"), &[completed("so")])?;
            let (_, newest) = journal.changed_since(i64::MAX)?;
            journal.delete_tree(&id(n), LATER)?;
            task_with(journal, n + 10, launched("main"), &[])?;
            let (tasks, _) = journal.changed_since(newest)?;
            changed.push(tasks.contains(&id(n + 10)));
        }
        let newest_first = journal.tasks_of(None)?;
        Ok((changed, super::samples::ids(&newest_first)))
    });
    let (changed, newest_first) = changed.await;
    assert_eq!(changed, [true; 3]);
    assert_eq!(newest_first, [13, 12, 11].map(id));
}

/// Until when a process is alive.
fn a_lease() -> LeaseTime {
    LeaseTime {
        boot: "b".to_owned(),
        steady: std::time::Duration::from_millis(1),
        now: at(1),
    }
}

pub(super) async fn a_persons_session_goes_when_nobody_needs_it(site: Arc<dyn Site>) {
    let (old_ones, without_tasks, deleted, gone) = on_new(&site, move |journal| {
        let begin = |journal: &mut dyn Journal, name: &str| {
            journal.begin_session(&Session {
                begun: at(1),
                ..session(name)
            })?;
            journal.file(&name.into(), &nudged("one"), at(2)).map(drop)
        };
        for name in ["ses_1", "ses_2", "ses_3", "ses_4", "ses_5", "ses_6"] {
            begin(journal, name)?;
        }
        // In use since, by a task, by a session that begins with it, by a process.
        journal.file(&"ses_2".into(), &nudged("late"), LATER)?;
        task_with(journal, 1, launched("ses_3"), &[completed("so")])?;
        let base = Some(Base {
            session: "ses_4".into(),
            until: 1,
        });
        let forked = of_task("ses_7", 1);
        journal.begin_session(&Session { base, ..forked })?;
        journal.renew(&"worker".into(), &a_lease(), true)?;
        journal.drive(&"ses_5".into(), "worker/1")?;
        journal.drive(&"ses_6".into(), "gone/1")?;
        let page = journal.old_sessions(LATER, None, None, 100)?;
        let old_ones: Vec<(String, bool)> = page
            .iter()
            .map(|found| (found.place.id.to_string(), found.is_old))
            .collect();
        // Those of tasks that would go too are counted with them.
        let without_tasks = journal.old_sessions(LATER, Some(LATER), None, 100)?;
        let without_tasks: Vec<bool> = without_tasks.iter().map(|found| found.is_old).collect();
        let each = page
            .iter()
            .map(|found| journal.delete_old_session(&found.place.id, LATER));
        let deleted = each.collect::<Stored<Vec<_>>>()?;
        let gone = ["ses_1", "ses_6"].map(|name| {
            let name = name.into();
            let entries = journal.entries(&name, 0, u64::MAX)?;
            Ok(journal.session(&name)?.is_none() && entries.is_empty())
        });
        let gone = gone.into_iter().collect::<Stored<Vec<_>>>()?;
        Ok((old_ones, without_tasks, deleted, gone))
    })
    .await;
    assert_eq!(without_tasks, [true, false, true, false, false, true]);
    let expected = [true, false, false, false, false, true];
    let names = (1..=6).map(|n| format!("ses_{n}"));
    assert_eq!(old_ones, names.zip(expected).collect::<Vec<_>>());
    assert_eq!(deleted, expected);
    assert_eq!(gone, [true, true]);
}

pub(super) async fn room_is_given_back_and_what_stays_is_as_it_was(site: Arc<dyn Site>) {
    let store = site.open();
    let before = on_new(&site, |journal| {
        full(journal, 1, launched("main"), "ses_above")?;
        full(journal, 2, launched("main"), "ses_other")?;
        journal.delete_tree(&id(1), LATER)?;
        journal.events(&id(2))
    })
    .await;
    assert_eq!(store.give_back_room(true).await, Ok(0));
    let other = site.open();
    let after = super::read(&other, |journal| {
        Ok((journal.events(&id(2))?, left(journal, 2, "ses_other")?))
    });
    assert_eq!(after.await, Ok((before, [true; 8])));
}
