//! What it costs when nothing happens.

use std::time::{Duration, Instant};

use asyncagents_scripted_model::{Gate, Reply};

use crate::harness::{Setup, asked, child, cpu_time, launch, story};

#[test]
fn five_running_tasks_that_say_nothing_cost_nothing() {
    const WATCHED: Duration = Duration::from_secs(10);
    let never = Gate::closed();
    let mut five = Reply::text("Five at once.");
    for number in 1..=5 {
        five = five.and_call(
            "asyncagents_task",
            launch(&format!("sky {number}"), "Count the stars"),
        );
    }
    let script = story()
        .rule(child("Count the stars"), Reply::text("…").behind(&never))
        .rule(asked("Launch five"), five);
    let world = Setup::new(script).spied().world();
    let opencode = world.serve();
    let parent = opencode.session();
    parent.asks("Launch five");
    world.until("five children work", || {
        (world.model.in_flight() == 5).then_some(())
    });
    assert!(!world.api_requests().is_empty(), "the spy sees something");
    // What the launches have set off comes to an end.
    let (mut known, mut since) = (0, Instant::now());
    world.until("nothing more is asked for two seconds", || {
        let asked = world.api_requests().len();
        if asked != known {
            (known, since) = (asked, Instant::now());
        }
        (since.elapsed() > Duration::from_secs(2)).then_some(())
    });

    let bridge = world.bridge().expect("a bridge");
    let (before, used) = (world.api_requests(), cpu_time(bridge));
    std::thread::sleep(WATCHED);
    let asked = &world.api_requests()[before.len()..];
    let used = cpu_time(bridge) - used;
    eprintln!("the bridge used {used:?} in {WATCHED:?}");
    assert!(
        asked.is_empty(),
        "asked for while nothing happened: {asked:?}"
    );
    assert!(used < WATCHED / 100, "used {used:?} in {WATCHED:?}");
    assert_eq!(world.bridge(), Some(bridge));
}
