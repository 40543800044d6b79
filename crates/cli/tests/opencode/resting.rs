//! What it costs when nothing happens.

use std::time::{Duration, Instant};

use asyncagents_scripted_model::{Gate, Reply};

use crate::harness::{Opencode, Setup, asked, child, cpu_time, launch, story};
use crate::told::told;

told!(v1, v2_background:
    five_running_tasks_that_say_nothing_cost_nothing,
);

fn five_running_tasks_that_say_nothing_cost_nothing(opencode: Opencode) {
    // OpenCode 2 tells of a request up to 5 seconds later.
    let (quiet, watched) = if opencode.is_v2() { (12, 65) } else { (2, 10) };
    let (quiet, watched) = (Duration::from_secs(quiet), Duration::from_secs(watched));
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
    let world = Setup::new(opencode, script).spied().world();
    let server = world.serve();
    let parent = server.session();
    parent.asks("Launch five");
    world.until("five children work", || {
        (world.model.in_flight() == 5).then_some(())
    });
    assert!(!world.api_requests().is_empty(), "the spy sees something");
    // What the launches have set off comes to an end.
    let (mut known, mut since) = (0, Instant::now());
    world.until("nothing more is asked for a while", || {
        let asked = world.api_requests().len();
        if asked != known {
            (known, since) = (asked, Instant::now());
        }
        (since.elapsed() > quiet).then_some(())
    });

    let bridge = world.bridge().expect("a bridge");
    let (before, used) = (world.api_requests(), cpu_time(bridge));
    std::thread::sleep(watched);
    let asked = &world.api_requests()[before.len()..];
    let used = cpu_time(bridge) - used;
    eprintln!("the bridge used {used:?} in {watched:?}");
    assert!(
        asked.is_empty(),
        "asked for while nothing happened: {asked:?}"
    );
    assert!(used < watched / 100, "used {used:?} in {watched:?}");
    assert_eq!(world.bridge(), Some(bridge));
}
