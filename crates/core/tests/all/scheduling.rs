//! Which queued task may start.

use asyncagents_core::{
    budget::Budget,
    event::Launched,
    host_ref::HostRef,
    id::TaskId,
    lifecycle::begin,
    moment::Moment,
    schedule::{Schedule, Slots},
    task::{Brief, Context, Place, Task},
    task_limits::TaskLimits,
};
use std::collections::HashMap;

fn queued(id: u128, depth: u32, parent: &str, model: Option<&str>) -> Task {
    let launched = Launched {
        place: Place {
            parent: parent.into(),
            above: None,
            root: parent.into(),
            depth,
            outside: None,
            above_in: None,
        },
        brief: Brief {
            description: String::new(),
            agent: "general".into(),
            model: model.map(Into::into),
            effort: None,
            context: Context::Fresh,
            host: HostRef::from("scripted").into(),
        },
        prompt: String::new(),
        fork: None,
        budget: Budget::default(),
        batch: 0,
        owner: None,
        chain: None,
        from: None,
        role: None,
    };
    begin(TaskId::from_random(id), &launched, Moment::default())
}

/// Which of these are admitted, if so many slots are taken already.
fn admitted(limits: &TaskLimits, taken: &[(Slots, u64)], queue: &[Task]) -> Vec<usize> {
    let taken: HashMap<Slots, u64> = taken.iter().cloned().collect();
    let mut schedule = Schedule::new(limits);
    let mut admitted = Vec::new();
    for (at, task) in queue.iter().enumerate() {
        let count = |slots: &Slots| Ok::<_, ()>(taken.get(slots).copied().unwrap_or(0));
        if schedule.admit(task, count) == Ok(true) {
            admitted.push(at);
        }
    }
    admitted
}

#[test]
fn first_come_first_served_while_there_are_slots() {
    let limits = TaskLimits {
        concurrency: 3,
        ..TaskLimits::default()
    };
    let queue: Vec<Task> = (0..5).map(|n| queued(n, 1, "main", None)).collect();
    assert_eq!(admitted(&limits, &[], &queue), [0, 1, 2]);
    assert_eq!(admitted(&limits, &[(Slots::Depth(1), 2)], &queue), [0]);
    assert_eq!(admitted(&limits, &[(Slots::Depth(1), 9)], &queue), [0; 0]);
}

#[test]
fn a_task_that_waits_for_one_kind_of_slot_takes_none_of_the_others() {
    let mut limits = TaskLimits {
        concurrency: 2,
        ..TaskLimits::default()
    };
    limits.per_model.insert("big".into(), 0);
    let queue = [
        queued(0, 1, "main", Some("big")),
        queued(1, 1, "main", Some("small")),
        queued(2, 1, "main", None),
    ];
    assert_eq!(admitted(&limits, &[], &queue), [1, 2]);
}

#[test]
fn each_depth_has_slots_of_its_own() {
    let limits = TaskLimits {
        concurrency: 1,
        ..TaskLimits::default()
    };
    let queue = [
        queued(0, 1, "main", None),
        queued(1, 2, "child", None),
        queued(2, 2, "child", None),
    ];
    assert_eq!(admitted(&limits, &[], &queue), [0, 1]);
}

#[test]
fn opencode_has_fewer_slots_than_the_built_in_agent() {
    let usual = TaskLimits::default();
    let launched = |host: &str| {
        let mut task = queued(0, 1, "main", None);
        task.brief.host = HostRef::from(host).into();
        vec![task; 300]
    };
    let started = |queue: &[Task]| admitted(&usual, &[], queue).len();
    assert_eq!(started(&launched("engine:/project")), 200);
    assert_eq!(started(&launched("opencode:http://localhost:4096")), 10);
    let mixed = [
        launched("opencode:http://localhost:4096"),
        launched("opencode2:http://localhost:4096"),
        launched("engine:/project"),
    ];
    assert_eq!(started(&mixed.concat()), 200, "10 in each, and 180 beside");
}

#[test]
fn shown_ids_are_as_short_as_they_can_be() {
    let ids: Vec<TaskId> = [0x1111_1111_u128 << 96, 0x1111_1112 << 96, 0x2 << 124]
        .map(TaskId::from_random)
        .to_vec();
    assert_eq!(ids[0].shown(&ids[1..2]), "task_11111111");
    assert_eq!(ids[2].shown(&ids[1..2]), "task_20000000");
    let close = TaskId::from_random((0x1111_1111_u128 << 96) + 1);
    assert_eq!(ids[0].shown([&close]), ids[0].as_str());
}

/// Who looks for tasks that may start passes over those of hosts that are full, by each kind's limit.
#[test]
fn a_host_is_full_at_its_own_limit() {
    let limits = TaskLimits {
        agents: 2,
        opencode: 3,
        ..TaskLimits::default()
    };
    let full = |host: &HostRef, tasks: u128| {
        let mut schedule = Schedule::new(&limits);
        for id in 0..tasks {
            let mut task = queued(id, 1, "ses_a", None);
            task.brief.host = host.clone().into();
            let admitted = schedule.admit(&task, |_| Ok::<_, ()>(0));
            assert_eq!(admitted, Ok(true));
        }
        !schedule.full_hosts(1).is_empty()
    };
    let agent = HostRef::Agent {
        name: "codex".into(),
        folder: "/project".into(),
        bridge: None,
        unsandboxed: false,
    };
    let opencode = HostRef::from("opencode:http://localhost:4096");
    for (host, limit) in [(agent, 2), (opencode, 3)] {
        assert!(!full(&host, limit - 1), "{host:?}");
        assert!(full(&host, limit), "{host:?}");
    }
}
