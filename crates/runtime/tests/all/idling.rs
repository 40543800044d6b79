//! What a worker costs that has nothing to do.

use std::sync::atomic::Ordering;

use asyncagents_testkit::scripted_host::{Script, Step};

use crate::harness::{Harness, seconds};

/// The lease is renewed every 3.3 seconds, and that is all; nothing of it waits for the disk.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_tasks_say_nothing_only_renews_its_lease() {
    let silent = Script::of([Step::Wait(seconds(3_600))]);
    let harness = Harness::new(silent).with(|settings| settings.inspect_after = seconds(3_600));
    let (process, asked) = harness.start_counted().await;
    for prompt in ["one", "two", "three"] {
        let task = process.launch(prompt).await;
        process.until_prompted(&task).await;
    }
    tokio::time::sleep(seconds(10)).await;
    let counted = || {
        let counters = [&asked.reads, &asked.writes, &asked.unsynced];
        counters.map(|counter| counter.load(Ordering::SeqCst))
    };
    let before = counted();
    tokio::time::sleep(seconds(60)).await;
    let [reads, writes, unsynced] = counted();
    assert_eq!((reads - before[0], writes - before[1]), (0, 0));
    let renewals = unsynced - before[2];
    assert!((17..=19).contains(&renewals), "{renewals} renewals");
}
