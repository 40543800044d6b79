//! Mixed load for a while: nothing grows, nothing is left over.

use std::{
    env,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Reply, Script};
use serde_json::json;

use crate::harness::{Opencode, Setup, child, forked, launch, memory, resume, story, task_id};
use crate::told::told;

/// How long, in minutes: `scripts/soak-opencode` sets it.
const MINUTES: &str = "ASYNCAGENTS_SOAK_MINUTES";

/// After this time the vocabulary is loaded and the first forks are made.
const WARM: Duration = Duration::from_secs(45);
/// What the bridge may gain afterwards, however long it runs: SQLite fills up to 2 MB of cache
/// for each of its connections.
const CACHES: u64 = 12 << 20;

told!(ignored "takes minutes; scripts/soak-opencode runs it", v1, v2_background:
    mixed_load_for_a_while_leaves_nothing_behind);

fn mixed_load_for_a_while_leaves_nothing_behind(opencode: Opencode) {
    let minutes: f64 = env::var(MINUTES)
        .ok()
        .and_then(|said| said.parse().ok())
        .unwrap_or(3.0);
    let whole = Duration::from_secs_f64(minutes * 60.0);
    // Bodies would fill the memory of the test itself.
    let world = Setup::new(opencode, script().forget_bodies()).world();
    let server = world.serve();
    let begun = Instant::now();
    let (mut rounds, mut told, mut warm) = (0_u32, 0, None);
    let mut parent = server.session();
    while begun.elapsed() < whole {
        rounds += 1;
        let quick = parent.uses("asyncagents_task", launch("quick", "Count quickly"));
        parent.uses("asyncagents_task", forked("forked", "Count what you know"));
        parent.uses("asyncagents_task", launch("broken", "Count what breaks"));
        let slow = parent.uses("asyncagents_task", launch("slow", "Count slowly"));
        parent.uses("asyncagents_list", json!({}));
        parent.uses("asyncagents_cancel", json!({"task_id": task_id(&slow)}));
        told += 4;
        parent.until_told(told);
        parent.uses(
            "asyncagents_task",
            resume(&task_id(&quick), "Count once more"),
        );
        told += 1;
        let notices = parent.until_told(told);
        assert_eq!(parent.ends_told(), told, "each once: {notices:#?}");
        if rounds % 5 == 0 {
            // Sessions grow; people begin new ones.
            parent.uses("asyncagents_clear", json!({}));
            parent = server.session();
            told = 0;
        }
        if warm.is_none() && begun.elapsed() > WARM.min(whole / 3) {
            warm = world.bridge().map(memory);
        }
    }
    let bridge = world.bridge().expect("a bridge");
    let (warm, used) = (warm.expect("it was measured"), memory(bridge));
    eprintln!(
        "{rounds} rounds of 5 tasks in {:.0} s; the bridge had {} KB when warm and has {} KB",
        begun.elapsed().as_secs_f64(),
        warm / 1024,
        used / 1024
    );
    assert!(used < warm + CACHES, "the bridge grows: {warm} to {used}");

    let took = server.terminate();
    assert!(
        took < Duration::from_secs(5),
        "OpenCode took {took:?} to end"
    );
    world.until("no process is left", || {
        world.processes().is_empty().then_some(())
    });
}

fn script() -> Script {
    story()
        .rule(child("Count quickly"), Reply::text("Three."))
        .rule(child("Count what you know"), Reply::text("Four."))
        .rule(child("Count once more"), Reply::text("Still three."))
        .rule(
            child("Count slowly"),
            Reply::text("…").delay(Duration::from_secs(600)),
        )
        .rule(child("Count what breaks"), Reply::status(400))
}
