//! Who is alive, and what each has to look after.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    event::Event,
    host_ref::HostRef,
    port::{Lapsed, LeaseTime},
    task::Outcome,
};

use super::{
    Site, on_new,
    samples::{at, completed, ended, id, ids, launched, notice, owned, task_with},
};

/// A time by two clocks of a boot.
fn time(boot: &str, steady: u64, of_day: i64) -> LeaseTime {
    LeaseTime {
        boot: boot.to_owned(),
        steady: Duration::from_millis(steady),
        now: at(of_day),
    }
}

pub(super) async fn a_lease_lasts_by_the_time_since_boot(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        journal.renew(&me, &time("a", 100, 1_000), true)?;
        let times = [
            // The time of day does not count: it may have been set.
            time("a", 100, 9_000),
            time("a", 101, 10),
            time("b", 0, 10),
        ];
        let alive = times.clone().map(|now| journal.has_lease(&me, &now));
        let lapsed = times.map(|now| journal.lapsed(&now));
        Ok((alive, lapsed, journal.owners()?))
    });
    let (alive, [still, late, rebooted], owners) = seen.await;
    assert_eq!(alive, [Ok(true), Ok(false), Ok(false)]);
    let lapsed = |is_of_another_boot| Lapsed {
        owner: "me".into(),
        until: at(1_000),
        is_of_another_boot,
    };
    assert_eq!(still, Ok(Vec::new()));
    assert_eq!(late, Ok(vec![lapsed(false)]));
    assert_eq!(rebooted, Ok(vec![lapsed(true)]));
    assert_eq!(owners, ["me".into()], "nobody has ended it yet");
}

pub(super) async fn a_lease_without_a_boot_lasts_by_the_time_of_day(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        journal.renew(&me, &time("", 0, 1_000), true)?;
        let (alive, late) = (time("a", 500, 1_000), time("a", 500, 1_001));
        Ok((
            journal.has_lease(&me, &alive)?,
            journal.has_lease(&me, &late)?,
            journal.lapsed(&late)?,
        ))
    });
    let (alive, late, lapsed) = seen.await;
    assert!(alive && !late);
    assert!(lapsed.iter().all(|lease| !lease.is_of_another_boot));
    assert_eq!(lapsed.len(), 1);
}

pub(super) async fn a_lease_that_was_taken_away_is_not_renewed(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (me, you) = ("me".into(), "you".into());
        let begun = journal.renew(&me, &time("a", 100, 100), true)?;
        journal.renew(&you, &time("a", 300, 300), true)?;
        let renewed = journal.renew(&me, &time("a", 200, 200), false)?;
        journal.expire(&time("a", 200, 200))?;
        let both = journal.owners()?.len();
        journal.expire(&time("a", 250, 250))?;
        let late = journal.renew(&me, &time("a", 900, 900), false)?;
        let left = journal.owners()?;
        journal.retire(&you)?;
        Ok((begun, renewed, both, late, left, journal.owners()?))
    });
    let (begun, renewed, both, late, left, nobody) = seen.await;
    assert!(begun && renewed && !late);
    assert_eq!(both, 2);
    assert_eq!(left, ["you".into()]);
    assert_eq!(nobody, []);
}

pub(super) async fn tasks_whose_owner_has_no_lease_are_orphans(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        journal.renew(&"me".into(), &time("a", 1, 1), true)?;
        task_with(journal, 1, owned("main", "me"), &[])?;
        task_with(journal, 2, owned("main", "gone"), &[Event::Started])?;
        task_with(journal, 3, launched("main"), &[])?;
        // Ended, and its parent is not told yet.
        let told = task_with(journal, 4, owned("main", "gone"), &[completed("done")])?;
        journal.post(&told, &notice(&told), at(5))?;
        task_with(journal, 5, owned("main", "gone"), &[completed("done")])?;
        // Ended, and its host may still be working.
        task_with(
            journal,
            6,
            owned("main", "gone"),
            &[ended(Outcome::Cancelled)],
        )?;
        Ok((ids(&journal.orphans()?), journal.unowned()?))
    });
    let (orphans, unowned) = seen.await;
    assert_eq!(orphans, [2, 3, 6, 4].map(id));
    assert_eq!(unowned, [(id(3), HostRef::from("scripted"))]);
}

pub(super) async fn an_owner_finds_what_it_has_to_do(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        task_with(journal, 1, owned("main", "me"), &[])?;
        task_with(journal, 2, owned("main", "me"), &[Event::Started])?;
        let stopping = [Event::Started, ended(Outcome::Cancelled)];
        task_with(journal, 3, owned("main", "me"), &stopping)?;
        let told = task_with(journal, 4, owned("main", "me"), &[completed("done")])?;
        journal.post(&told, &notice(&told), at(5))?;
        task_with(journal, 5, owned("main", "me"), &[completed("done")])?;
        task_with(journal, 6, owned("main", "you"), &[Event::Started])?;
        Ok((
            journal.running(&me)?,
            ids(&journal.to_stop(&me)?),
            ids(&journal.owned(&me)?),
        ))
    });
    let (running, stopping, mut owned) = seen.await;
    assert_eq!(running, [(id(2), 0)]);
    assert_eq!(stopping, [id(3)]);
    owned.sort();
    assert_eq!(owned, [1, 2, 3, 4].map(id));
}

pub(super) async fn unfinished_work_is_counted_by_host(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let mut child = launched("child");
        child.brief.host = HostRef::engine("/work").into();
        child.place.above = Some(id(1));
        task_with(journal, 1, launched("main"), &[Event::Started])?;
        task_with(journal, 2, child.clone(), &[])?;
        let told = task_with(journal, 3, child.clone(), &[completed("done")])?;
        journal.post(&told, &notice(&told), at(5))?;
        task_with(journal, 4, child, &[completed("done")])?;
        Ok((journal.unfinished()?, journal.unsettled_below(&id(1))?))
    });
    let (mut hosts, below) = seen.await;
    hosts.sort_by_key(|(host, _)| host.to_string());
    assert_eq!(
        hosts,
        [
            (HostRef::engine("/work"), 2),
            (HostRef::from("scripted"), 1)
        ]
    );
    assert_eq!(below, 2);
}
