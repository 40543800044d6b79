//! Which tasks wait for a slot, and how many are taken.

use std::sync::Arc;

use asyncagents_core::{
    event::Event, host_ref::HostRef, progress::Observation, schedule::Slots, task::Outcome,
};

use super::{
    Site, on_new,
    samples::{at, completed, ended, fallback, id, launched, owned, task_with},
};

fn resumed() -> Event {
    Event::Resumed {
        prompt: "go on".to_owned(),
        batch: 0,
        chain: None,
        from: None,
    }
}

pub(super) async fn first_come_first_served_page_by_page(site: Arc<dyn Site>) {
    let pages = on_new(&site, |journal| {
        let mut first = task_with(journal, 5, owned("main", "me"), &[])?;
        for n in [4, 3, 2] {
            task_with(journal, n, owned("main", "me"), &[])?;
        }
        // A task that is resumed waits behind those that were launched meanwhile.
        journal.append(&mut first, &[completed("done"), resumed()], at(3))?;
        let mut crowded = owned("main", "me");
        crowded.brief.host = HostRef::from("crowded:1").into();
        task_with(journal, 6, crowded, &[])?;
        let all = journal.queue(1, &["another".into()], 0, 9)?.len();
        let mut pages = Vec::new();
        let mut after = 0;
        loop {
            let page = journal.queue(1, &["another".into(), "crowded".into()], after, 3)?;
            let Some((_, place)) = page.last() else {
                return Ok((pages, all));
            };
            after = *place;
            pages.push(
                page.into_iter()
                    .map(|(task, _)| task.id)
                    .collect::<Vec<_>>(),
            );
        }
    });
    let (pages, all) = pages.await;
    assert_eq!(pages, [[4, 3, 2].map(id).to_vec(), vec![id(5)]]);
    assert_eq!(all, 5);
}

pub(super) async fn only_owned_tasks_that_are_not_stopping_are_in_the_queue(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let mut deep = owned("child", "me");
        deep.place.depth = 2;
        task_with(journal, 1, launched("main"), &[])?;
        let stopping = [ended(Outcome::Cancelled), resumed()];
        task_with(journal, 2, owned("main", "you"), &stopping)?;
        task_with(journal, 3, owned("main", "me"), &[Event::Started])?;
        task_with(journal, 4, deep, &[])?;
        Ok((
            journal.queue(1, &[], 0, 9)?,
            journal.queue(2, &[], 0, 9)?.len(),
            journal.queued_depths()?,
            ["me", "you", "them"].map(|owner| journal.any_queued(&owner.into())),
        ))
    });
    let (none, deep, depths, queued) = seen.await;
    assert_eq!(none, []);
    assert_eq!(deep, 1);
    assert_eq!(depths, [1, 2]);
    assert_eq!(queued, [Ok(true), Ok(true), Ok(false)]);
}

pub(super) async fn slots_are_counted_by_depth_host_model_and_parent(site: Arc<dyn Site>) {
    let counts = on_new(&site, |journal| {
        let mut special = owned("main", "me");
        special.brief.model = Some("test/model".into());
        task_with(journal, 1, special, &[Event::Started])?;
        // Its host may still be working.
        let stopping = [Event::Started, ended(Outcome::Cancelled)];
        task_with(journal, 2, owned("other", "me"), &stopping)?;
        task_with(journal, 3, owned("main", "me"), &[])?;
        task_with(journal, 4, launched("main"), &[Event::Started])?;
        let over = [Event::Started, completed("done")];
        task_with(journal, 5, owned("main", "me"), &over)?;
        let mut second = owned("main", "me");
        second.brief.host = HostRef::from("opencode2:http://localhost:1").into();
        task_with(journal, 6, second, &[Event::Started])?;
        let slots = [
            Slots::Depth(1),
            Slots::Depth(2),
            Slots::Host(1, "opencode".into()),
            Slots::Host(1, "opencode2".into()),
            Slots::Model(1, "test/model".into()),
            Slots::Model(1, "test/other".into()),
            Slots::Parent("main".into()),
        ];
        slots.iter().map(|slots| journal.taken(slots)).collect()
    });
    let counts: Vec<u64> = counts.await;
    assert_eq!(counts, [3, 0, 0, 1, 1, 0, 2]);
}

pub(super) async fn a_task_takes_a_slot_of_the_model_that_took_over(site: Arc<dyn Site>) {
    let counts = on_new(&site, |journal| {
        let instead = fallback("test/model", "test/second");
        let by_runtime = Event::FellBack(instead.clone());
        let by_host = Event::Observed(Observation::FellBack(instead));
        for (n, fell_back) in [(1, by_runtime), (2, by_host)] {
            let mut asked = owned("main", "me");
            asked.brief.model = Some("test/model".into());
            task_with(journal, n, asked, &[Event::Started, fell_back])?;
        }
        let models = ["test/model", "test/second"];
        let mut models = models
            .map(|model| Slots::Model(1, model.into()))
            .into_iter();
        models.try_fold(Vec::new(), |mut counts, slots| {
            counts.push(journal.taken(&slots)?);
            Ok(counts)
        })
    });
    let counts: Vec<u64> = counts.await;
    assert_eq!(counts, [0, 2]);
}
