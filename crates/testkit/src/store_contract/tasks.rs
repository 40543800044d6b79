//! Tasks and their events.

use std::sync::Arc;

use asyncagents_core::{
    budget::{Cost, Spent},
    event::{Event, Saved},
    moment::Moment,
    notify::Batch,
    speaker::Speaker,
    task::{Outcome, Place},
};

use super::{
    Site, on_new, read,
    samples::{
        at, completed, ended, events, id, ids, launched, launched_with_all, task_with, turned,
    },
    write,
};

pub(super) async fn a_task_is_read_as_its_events_fold(site: Arc<dyn Site>) {
    let steps = on_new(&site, |journal| {
        let mut task = journal.insert(id(2), launched_with_all(), at(1))?;
        let mut steps = vec![(journal.task(&task.id)?, task.clone())];
        for (event, n) in events().into_iter().zip(2..) {
            journal.append(&mut task, &[event], at(n))?;
            steps.push((journal.task(&task.id)?, task.clone()));
        }
        Ok(steps)
    });
    for (read, folded) in steps.await {
        assert_eq!(read, Some(folded));
    }
}

pub(super) async fn events_are_read_as_they_were_saved_and_in_order(site: Arc<dyn Site>) {
    let saved = on_new(&site, |journal| {
        let mut task = journal.insert(id(2), launched_with_all(), at(1))?;
        // One of another task in between.
        journal.insert(id(3), launched("main"), at(1))?;
        journal.append(&mut task, &events(), at(2))?;
        journal.events(&task.id)
    });
    let first = Event::Launched(Box::new(launched_with_all()));
    let all = [first].into_iter().chain(events()).zip(1..);
    let expected: Vec<Saved> = all
        .map(|(event, seq)| Saved {
            seq,
            at: at(if seq == 1 { 1 } else { 2 }),
            event,
        })
        .collect();
    assert_eq!(saved.await, expected);
}

pub(super) async fn events_are_read_from_where_one_stopped(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let resumed = Event::Resumed {
            prompt: "go on".to_owned(),
            batch: 0,
            chain: None,
            from: None,
        };
        let events = [Event::Started, Event::Prompted, completed("done"), resumed];
        let task = task_with(journal, 1, launched("main"), &events)?;
        let all = journal.events(&task.id)?;
        let new = journal.events_after(&task.id, 3)?;
        let none = journal.events_after(&task.id, 5)?;
        Ok((all, new, none, journal.run_events(&task.id)?))
    });
    let (all, new, none, runs) = seen.await;
    assert_eq!(all.len(), 5);
    assert_eq!(new, all[3..]);
    assert_eq!(none, []);
    let begun_and_ended = [&all[0], &all[3], &all[4]];
    assert_eq!(runs.iter().collect::<Vec<_>>(), begun_and_ended);
}

pub(super) async fn an_event_number_is_never_used_twice(site: Arc<dyn Site>) {
    let store = site.open();
    let task = on_new(&site, |journal| {
        journal.insert(id(1), launched("main"), at(1))
    });
    let task = task.await;
    for is_first in [true, false] {
        let task = task.clone();
        let saved = write(&store, move |journal| {
            journal.append(&mut task.clone(), &[Event::Started], at(2))
        });
        let saved = saved.await.is_ok();
        assert_eq!(saved, is_first, "decided on a state that has passed");
    }
}

pub(super) async fn positions_follow_the_order_of_commits(site: Arc<dyn Site>) {
    let (one, other) = (site.open(), site.open());
    let mut position = 0;
    for n in 1..=20 {
        let store = if n % 2 == 0 { &one } else { &other };
        let launch = move |journal: &mut dyn asyncagents_core::port::Journal| {
            journal.insert(id(n), launched("main"), Moment::default())
        };
        write(store, launch).await.expect("written");
        let since = read(&one, move |journal| journal.changed_since(position));
        let (changed, newest) = since.await.expect("read");
        assert_eq!(changed, [id(n)]);
        assert!(newest > position);
        position = newest;
    }
    let nothing = read(&one, move |journal| journal.changed_since(position)).await;
    assert_eq!(nothing, Ok((Vec::new(), position)));
}

pub(super) async fn what_the_newest_run_has_to_do_and_has_answered(site: Arc<dyn Site>) {
    let resumed = Event::Resumed {
        prompt: "go on".to_owned(),
        batch: 1,
        chain: None,
        from: None,
    };
    let seen = on_new(&site, move |journal| {
        let mut task = journal.insert(id(2), launched_with_all(), at(1))?;
        let mut seen = vec![(journal.prompt(&task.id)?, journal.answer(&task.id)?)];
        for event in [completed("first"), resumed.clone(), completed("second")] {
            journal.append(&mut task, &[event], at(2))?;
            seen.push((journal.prompt(&task.id)?, journal.answer(&task.id)?));
        }
        let launched = journal.launched(&task.id)?;
        let unknown = (journal.prompt(&id(9))?, journal.answer(&id(9))?);
        Ok((seen, launched, unknown))
    });
    let (seen, launched, unknown) = seen.await;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen,
        [
            (text("do it"), None),
            (text("do it"), text("first")),
            (text("go on"), text("first")),
            (text("go on"), text("second")),
        ]
    );
    assert_eq!(launched, Some(launched_with_all()));
    assert_eq!(unknown, (None, None));
}

pub(super) async fn tasks_are_listed_newest_first_without_the_cleared(site: Arc<dyn Site>) {
    let (all, main) = on_new(&site, |journal| {
        // The moments are the same, and the IDs are not in order.
        for (n, parent) in [(3, "main"), (1, "main"), (2, "other"), (4, "main")] {
            task_with(journal, n, launched(parent), &[])?;
        }
        task_with(journal, 5, launched("main"), &[Event::Cleared])?;
        let main = journal.tasks_of(Some(&"main".into()))?;
        Ok((journal.tasks_of(None)?, main))
    })
    .await;
    assert_eq!(ids(&all), [4, 2, 1, 3].map(id));
    assert_eq!(ids(&main), [4, 1, 3].map(id));
}

pub(super) async fn tasks_are_found_by_session_and_by_the_beginning_of_their_id(
    site: Arc<dyn Site>,
) {
    const TALL: u128 = 0xab << 120;
    let found = on_new(&site, |journal| {
        let made = Event::SessionMade {
            session: "ses_child".into(),
        };
        task_with(journal, TALL, launched("main"), &[Event::Started, made])?;
        task_with(journal, TALL + 1, launched("main"), &[])?;
        task_with(journal, TALL + 2, launched("main"), &[Event::Cleared])?;
        task_with(journal, 1, launched("main"), &[])?;
        let session = journal.task_in(&"ses_child".into())?;
        let beginning = journal.beginning_with("task_ab")?;
        let nobody = journal.beginning_with("task_ac")?;
        let neighbours = journal.neighbours(&id(TALL + 1))?;
        Ok((
            session,
            ids(&beginning),
            nobody,
            neighbours,
            journal.neighbours(&id(1))?,
        ))
    });
    let (session, beginning, nobody, neighbours, first) = found.await;
    assert_eq!(session.map(|task| task.id), Some(id(TALL)));
    assert_eq!(beginning, [id(TALL), id(TALL + 1)]);
    assert_eq!(nobody, []);
    assert_eq!(
        neighbours,
        [id(TALL), id(TALL + 2)],
        "cleared ones have names too"
    );
    assert_eq!(first, [id(TALL)]);
}

pub(super) async fn what_tasks_spend_is_summed_with_those_below(site: Arc<dyn Site>) {
    let below = Spent {
        tokens: 1,
        cost: Cost(1),
        unpriced: 1,
        turns: 1,
        tool_calls: 1,
    };
    let sums = on_new(&site, move |journal| {
        let mut child = launched("child");
        child.place = Place {
            above: Some(id(1)),
            root: "main".into(),
            depth: 2,
            outside: None,
            ..child.place
        };
        task_with(journal, 1, launched("main"), &[Event::SpentBelow(below)])?;
        let spends = [
            Event::Observed(turned(10, 3, 4)),
            Event::SpentBelow(below),
            Event::Cleared,
        ];
        task_with(journal, 2, child.clone(), &spends)?;
        task_with(journal, 3, child, &[Event::Observed(turned(20, 5, 6))])?;
        Ok((
            ids(&journal.below(&id(1))?),
            journal.spent_below(&id(1))?,
            journal.spent_below(&id(3))?,
            journal.spent_below_root(&"main".into())?,
            journal.launched_below(&"main".into())?,
        ))
    });
    let (mut children, under, nothing, all, many) = sums.await;
    children.sort();
    assert_eq!(children, [id(2), id(3)]);
    let own = Spent {
        tokens: 30,
        cost: Cost(8),
        unpriced: 10,
        turns: 2,
        tool_calls: 0,
    };
    assert_eq!(under, own.plus(below));
    assert_eq!(nothing, Spent::default());
    assert_eq!(all, own, "each task's own, cleared ones too");
    assert_eq!(many, 3);
}

pub(super) async fn unknown_prices_are_summed_as_tokens_without_a_price(site: Arc<dyn Site>) {
    let sums = on_new(&site, |journal| {
        let mut child = launched("main");
        child.place.above = Some(id(9));
        for (n, seen) in [(1, turned(10, 0, 10)), (2, turned(20, 0, 0))] {
            task_with(journal, n, child.clone(), &[Event::Observed(seen)])?;
        }
        Ok((
            journal.spent_below(&id(9))?,
            journal.spent_below_root(&"main".into())?,
        ))
    });
    let (below, root) = sums.await;
    assert_eq!((below.tokens, below.unpriced), (30, 10));
    assert_eq!((root.tokens, root.unpriced), (30, 10));
}

pub(super) async fn a_batch_lasts_while_one_of_its_tasks_is_live(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let main = "main".into();
        let mut batches = vec![journal.open_batch(&main)?];
        let mut one = task_with(journal, 1, launched("main"), &[])?;
        task_with(journal, 2, launched("main"), &[ended(Outcome::Cancelled)])?;
        batches.push(journal.open_batch(&main)?);
        let counted = journal.batch(&main, 0)?;
        journal.append(&mut one, &[completed("done")], at(3))?;
        batches.push(journal.open_batch(&main)?);
        batches.push(journal.open_batch(&"other".into())?);
        Ok((batches, counted, journal.batch(&main, 0)?))
    });
    let (batches, counted, over) = seen.await;
    assert_eq!(batches, [0, 0, 1, 0]);
    assert_eq!(counted, Batch { ended: 1, total: 2 });
    assert_eq!(over, Batch { ended: 2, total: 2 });
}

pub(super) async fn what_a_task_is_told_before_it_begins_is_in_its_prompt(site: Arc<dyn Site>) {
    let told = |number: u64| Event::Messaged {
        id: id(1).message(number),
        from: (number == 2).then_some(Speaker::Person),
        text: format!("told {number}"),
    };
    let seen = on_new(&site, move |journal| {
        let mut task = task_with(journal, 1, launched("parent"), &[told(1)])?;
        let mut seen = Vec::new();
        let resumed = Event::Resumed {
            prompt: "go on".to_owned(),
            batch: 0,
            chain: None,
            from: None,
        };
        let run = vec![told(2), Event::Started, told(3), Event::Prompted, told(4)];
        for events in [run, vec![completed("done"), resumed], vec![told(5)]] {
            journal.append(&mut task, &events, at(1))?;
            let messages = journal.messages(&task.id)?.into_iter();
            let messages =
                messages.map(|told| (told.text, told.from, told.with_prompt, told.prompted));
            seen.push((journal.prompt(&task.id)?, messages.collect::<Vec<_>>()));
        }
        Ok(seen)
    });
    let told = |number, with_prompt, prompted| {
        let from = (number == 2).then_some(Speaker::Person);
        (format!("told {number}"), from, with_prompt, prompted)
    };
    let [first, resumed, told_again] = <[_; 3]>::try_from(seen.await).expect("three");
    let all = vec![
        told(1, true, true),
        told(2, true, true),
        told(3, false, true),
        told(4, false, true),
    ];
    assert_eq!(first.1, all);
    let prompt = first.0.expect("a prompt");
    assert!(
        prompt.contains("told 1") && prompt.ends_with("told 2"),
        "{prompt}"
    );
    assert_eq!(resumed, (Some("go on".to_owned()), Vec::new()));
    assert_eq!(told_again.1, [told(5, true, false)]);
    assert!(
        told_again
            .0
            .is_some_and(|prompt| prompt.ends_with("told 5"))
    );
}
