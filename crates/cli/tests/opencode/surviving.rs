//! The server that OpenCode 2 has in the background is killed, and the next client starts
//! another. OpenCode goes on by itself with what its sessions were doing.

use std::{
    collections::BTreeMap,
    env, thread,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Gate, Reply, Script};
use serde_json::{Value, json};

use crate::harness::{
    Opencode, Serve, Speaker, World, asked, child, counting, launch, story, task_id,
};
use crate::told::told;

told!(v2_background:
    a_child_that_opencode_itself_resumes_is_followed_and_not_asked_again,
    what_a_parent_was_told_is_there_after_a_kill_and_told_once,
    a_parent_and_ten_children_survive_kills_at_random_points,
);

fn a_child_that_opencode_itself_resumes_is_followed_and_not_asked_again(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");
    let parent = parent.id.clone();
    server.kill();

    let server = world.serve();
    let parent = server.session_of(&parent);
    world.until("OpenCode has the child go on", || {
        (world.requests_with("Count the files").len() > 1).then_some(())
    });
    assert!(parent.notices().is_empty(), "it has not ended");
    counted.open();
    // Nobody has used the parent since, so it is not set to work.
    let notices = parent.until_notices(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("There are three."), "{result}");
    let messages = parent.child().messages();
    let prompts = messages
        .iter()
        .filter(|message| message.by == Speaker::User && message.text.contains("Count the files"));
    assert_eq!(prompts.count(), 1, "{messages:#?}");
    world.stays("told once", || parent.notices().len() == 1);
}

fn what_a_parent_was_told_is_there_after_a_kill_and_told_once(opencode: Opencode) {
    let (counted, never) = (Gate::closed(), Gate::closed());
    let world = World::new(
        opencode,
        counting(&counted).rule(
            asked("Think about it").times(1),
            Reply::text("…").behind(&never),
        ),
    );
    let server = world.serve();
    let parent = server.session();
    parent.uses("asyncagents_task", launch("count", "Count the files"));
    world.until_child_asks("Count the files");
    parent.begins("Think about it");
    world.until("the parent thinks", || {
        (world.model.in_flight() == 2).then_some(())
    });
    counted.open();
    parent.until_notices(1);
    let parent = parent.id.clone();
    server.kill();

    let server = world.serve();
    let parent = server.session_of(&parent);
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.notices().len() == 1);
    let request = parent.requests().pop().expect("a request").text();
    assert_eq!(request.matches("\"count\" finished in").count(), 1);
}

/// How many times the server is killed, and what decides when: `scripts/chaos-opencode2` sets
/// them.
const KILLS: &str = "ASYNCAGENTS_CHAOS_KILLS";
const SEED: &str = "ASYNCAGENTS_CHAOS_SEED";
const CHILDREN: usize = 10;

fn a_parent_and_ten_children_survive_kills_at_random_points(opencode: Opencode) {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let kills = number(KILLS).unwrap_or(5);
    let seed = number(SEED).unwrap_or_else(|| fastrand::u64(..1_000_000));
    fastrand::seed(seed);
    eprintln!("chaos in OpenCode 2: seed {seed}, {kills} kills of the server in the background");
    let world = World::new(opencode, ten());
    let mut server = world.serve();
    // The first one waits for the bridge to start; the second says how long it takes.
    launches_ten(&server, None);
    let calm = launches_ten(&server, None);
    let mut sum = Counted::default();
    let begun = Instant::now();
    for kill in 0..kills {
        // From before the first launch to the last notice, a random point in each part of it.
        let part = (kill as f64 + fastrand::f64()) / kills as f64;
        let round = launches_ten(&server, Some(calm.took.mul_f64(part)));
        server.kill();
        let left = tasks_of(&world, &round.parent);
        sum.unfinished += left.iter().filter(|task| !has_ended(task)).count();
        server = world.serve();
        settle(&server, &round.parent);
        sum.add(Counted::of(&server, &round.parent));
    }
    sum.report(kills, begun.elapsed());
    sum.is_faultless();
}

/// The children take a while, each another one, so that a kill finds them in different places.
fn ten() -> Script {
    let mut script = story();
    let mut all = Reply::text("Ten at once.");
    for number in 1..=CHILDREN {
        let prompt = format!("Count shelf {number}, please");
        let answer = Reply::text(format!("Shelf {number} has {number}0 books."));
        let pause = Duration::from_millis(150 * u64::try_from(number).expect("small"));
        script = script.rule(child(&prompt), answer.delay(pause));
        let shelf = launch(&format!("shelf {number}"), &prompt);
        all = all.and_call("asyncagents_task", shelf);
    }
    // One that had begun to answer is told of the restart, and of nothing else.
    let restarted = child("The server restarted");
    script
        .rule(restarted, Reply::text("It had some books."))
        .rule(asked("Launch ten"), all)
}

/// A parent that was told to launch ten.
struct Round {
    parent: String,
    took: Duration,
}

/// Has a new parent launch ten; waits until everything is told, or only for so long.
fn launches_ten(server: &Serve<'_>, wait: Option<Duration>) -> Round {
    let parent = server.session();
    let begun = Instant::now();
    parent.begins("Launch ten");
    match wait {
        Some(wait) => thread::sleep(wait.saturating_sub(begun.elapsed())),
        None => drop(parent.until_told(CHILDREN)),
    }
    Round {
        parent: parent.id.clone(),
        took: begun.elapsed(),
    }
}

/// Waits until every task of a parent has ended and was told, and nothing changes any more.
fn settle(server: &Serve<'_>, parent: &str) {
    let world = server.world();
    let session = server.session_of(parent);
    let done = || {
        let tasks = tasks_of(world, parent);
        let told = session.notices().len() >= tasks.len();
        told && tasks.iter().all(has_ended) && session.is_idle()
    };
    // What is stuck is counted, and does not hang the test.
    const LONG: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    let mut since = None;
    while begun.elapsed() < LONG {
        since = if done() {
            since.or(Some(Instant::now()))
        } else {
            None
        };
        // A notice that is sent twice, or a launch that comes late, has this long to show.
        if since.is_some_and(|since: Instant| since.elapsed() > Duration::from_secs(2)) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn tasks_of(world: &World, parent: &str) -> Vec<Value> {
    let tasks = world.asyncagents(&["list", "--json"]);
    let mut tasks: Vec<Value> = serde_json::from_str(&tasks).expect("tasks");
    tasks.retain(|task| task["parent_session"] == parent);
    tasks
}

fn has_ended(task: &Value) -> bool {
    !matches!(
        task["status"].as_str(),
        Some("queued" | "running" | "resumed")
    )
}

/// What came of the tasks.
#[derive(Debug, Default)]
struct Counted {
    answered: usize,
    tasks: BTreeMap<String, usize>,
    /// Why tasks have failed, and how many of them.
    errors: BTreeMap<String, usize>,
    /// When the server was killed.
    unfinished: usize,
    notices: usize,
    lost_tasks: usize,
    lost_notices: usize,
    doubled_notices: usize,
    stuck: usize,
    prompts_twice: usize,
}

impl Counted {
    fn of(server: &Serve<'_>, parent: &str) -> Self {
        let session = server.session_of(parent);
        let tasks = tasks_of(server.world(), parent);
        let notices = session.notices();
        let launched = session.results("asyncagents_task");
        let launched = launched
            .iter()
            .filter(|said| said.contains("You will be told"));
        let known = |id: &str| {
            tasks
                .iter()
                .any(|task| task["id"].as_str() == Some(id) || task["short_id"] == id)
        };
        let mut counted = Self {
            notices: notices.len(),
            ..Self::default()
        };
        for said in launched {
            counted.answered += 1;
            counted.lost_tasks += usize::from(!known(&task_id(said)));
        }
        for task in &tasks {
            let status = task["status"].as_str().unwrap_or_default().to_owned();
            *counted.tasks.entry(status).or_default() += 1;
            if let Some(why) = task["error"].as_str() {
                *counted.errors.entry(why.to_owned()).or_default() += 1;
            }
            counted.stuck += usize::from(!has_ended(task));
            let named = format!("\"{}\"", task["description"].as_str().unwrap_or_default());
            let told = notices
                .iter()
                .filter(|notice| notice.visible.contains(&named));
            let told = told.count();
            counted.lost_notices += usize::from(told == 0);
            counted.doubled_notices += told.saturating_sub(1);
            counted.prompts_twice += prompts(server, task).saturating_sub(1);
        }
        counted
    }

    fn add(&mut self, other: Self) {
        for (status, times) in other.tasks {
            *self.tasks.entry(status).or_default() += times;
        }
        for (why, times) in other.errors {
            *self.errors.entry(why).or_default() += times;
        }
        self.answered += other.answered;
        self.unfinished += other.unfinished;
        self.notices += other.notices;
        self.lost_tasks += other.lost_tasks;
        self.lost_notices += other.lost_notices;
        self.doubled_notices += other.doubled_notices;
        self.stuck += other.stuck;
        self.prompts_twice += other.prompts_twice;
    }

    fn report(&self, kills: u64, took: Duration) {
        let states = self
            .tasks
            .iter()
            .map(|(status, times)| format!("{times} {status}"));
        let states = states.collect::<Vec<_>>().join(", ");
        let tasks: usize = self.tasks.values().sum();
        eprintln!("  {kills} kills in {:.0} s", took.as_secs_f64());
        eprintln!("  launches answered: {}", self.answered);
        eprintln!("  tasks: {tasks} ({states})");
        for (why, times) in &self.errors {
            eprintln!("    {times} failed: {why}");
        }
        eprintln!(
            "  unfinished when the server was killed: {}",
            self.unfinished
        );
        eprintln!("  notices in parents' histories: {}", self.notices);
        eprintln!("  lost tasks: {}", self.lost_tasks);
        eprintln!("  lost notices: {}", self.lost_notices);
        eprintln!("  doubled notices: {}", self.doubled_notices);
        eprintln!("  stuck tasks: {}", self.stuck);
        eprintln!("  prompts run twice: {}", self.prompts_twice);
    }

    fn is_faultless(&self) {
        let faults = [
            self.lost_tasks,
            self.lost_notices,
            self.doubled_notices,
            self.stuck,
            self.prompts_twice,
        ];
        assert_eq!(faults, [0; 5], "{self:?}");
        assert!(self.answered > 0 && self.unfinished > 0, "{self:?}");
    }
}

/// How many times the prompt of a task is in its session.
fn prompts(server: &Serve<'_>, task: &Value) -> usize {
    let Some(session) = task["session"].as_str() else {
        return 0;
    };
    let session = server.session_of(session);
    if !session.exists() {
        return 0;
    }
    let messages = session.messages();
    let said = messages
        .iter()
        .filter(|message| message.by == Speaker::User);
    said.filter(|message| message.text.starts_with("Count shelf"))
        .count()
}
