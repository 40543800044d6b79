//! Who waits for a task.

use std::{sync::Arc, time::Duration};

use asyncagents_core::port::LeaseTime;

use super::{
    Site, on_new,
    samples::{at, id},
};

pub(super) async fn the_longest_wait_counts_until_it_is_over(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (task, me) = (id(1), "main".into());
        journal.wait(&task, &me, at(10))?;
        let long = journal.wait(&task, &me, at(20))?;
        journal.wait(&task, &"other".into(), at(30))?;
        let mut seen = vec![journal.awaited(&task, &me, at(5))?];
        journal.stop_waiting(long)?;
        seen.push(journal.awaited(&task, &me, at(10))?);
        seen.push(journal.awaited(&task, &me, at(11))?);
        seen.push(journal.awaited(&id(2), &me, at(5))?);
        // Waits end with the leases of those who died waiting.
        journal.expire(&LeaseTime {
            boot: String::new(),
            steady: Duration::ZERO,
            now: at(11),
        })?;
        seen.push(journal.awaited(&task, &me, at(5))?);
        seen.push(journal.awaited(&task, &"other".into(), at(5))?);
        Ok(seen)
    });
    let expected = [Some(at(20)), Some(at(10)), None, None, None, Some(at(30))];
    assert_eq!(seen.await, expected);
}
