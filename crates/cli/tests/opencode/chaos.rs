//! The server that OpenCode 2 has in the background is killed at random points while a parent and
//! its children work, and started again. Nobody may notice more of it than a pause.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, thread,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Reply, Script, When};
use serde::Deserialize;

use crate::harness::{
    Message, Opencode, Serve, Session, Speaker, World, asked, child, forked, is_notice, launch,
    story, task_id,
};
use crate::told::told;

told!(v2_background: a_parent_and_ten_children_survive_kills_at_random_points);

/// How many times the server is killed, and what decides when: `scripts/chaos-opencode2` sets
/// them.
const KILLS: &str = "ASYNCAGENTS_CHAOS_KILLS";
const SEED: &str = "ASYNCAGENTS_CHAOS_SEED";
const CHILDREN: usize = 10;
/// Those that launch a child of their own, and say something before it has ended.
const DELEGATING: [usize; 2] = [3, 7];
/// The one that inherits the parent's conversation.
const FORKED: usize = 5;

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
        // The next server may be there before the bridge has noticed that its own is gone.
        if fastrand::bool() {
            server.kill();
        } else {
            server.kill_at_once();
        }
        let left = tasks_below(&world, &round.parent);
        sum.unfinished += left.iter().filter(|task| !task.has_ended()).count();
        server = world.serve();
        settle(&server, &round.parent);
        let counted = Counted::of(&server, &round.parent);
        if counted.faults().iter().any(|(_, times)| *times > 0) {
            eprintln!("  kill {} at {part:.3} of a round: {counted:#?}", kill + 1);
        }
        sum.add(counted);
    }
    sum.report(kills, begun.elapsed());
    sum.is_faultless();
}

/// What a child is told to do.
fn prompt(what: &str) -> String {
    format!("Count {what}, please")
}

/// What it says when it has done that.
fn result(what: &str) -> String {
    format!("There are many books in {what}.")
}

/// Requests of a child that was ever told or has said this. One that goes on after a restart may be
/// told of that and of nothing else.
fn knowing(words: impl Into<String>) -> When {
    child("").contains(words)
}

/// The children take a while, each another one, so that a kill finds them in different places.
fn ten() -> Script {
    // The parent's conversation has the prompts of all others in it.
    let inherited = Reply::text(result(&shelf(FORKED))).delay(pause(FORKED));
    let mut script = story().rule(knowing("<inherited_context>"), inherited);
    let mut all = Reply::text("Ten at once.");
    for number in 1..=CHILDREN {
        let (shelf, prompt) = (shelf(number), prompt(&shelf(number)));
        let launched = if number == FORKED {
            forked(&shelf, &prompt)
        } else {
            launch(&shelf, &prompt)
        };
        all = all.and_call("asyncagents_task", launched);
        script = if DELEGATING.contains(&number) {
            delegating(script, number)
        } else {
            let counted = Reply::text(result(&shelf)).delay(pause(number));
            script.rule(knowing(prompt), counted)
        };
    }
    script.rule(asked("Launch ten"), all)
}

fn shelf(number: usize) -> String {
    format!("shelf {number}")
}

fn pause(number: usize) -> Duration {
    Duration::from_millis(120 * u64::try_from(number).expect("small"))
}

/// A child that has its shelf counted by a child of its own. If its launch was interrupted, it
/// launches another.
fn delegating(script: Script, number: usize) -> Script {
    let (shelf, box_of) = (shelf(number), format!("the box of shelf {number}"));
    let delegates = || knowing(prompt(&shelf));
    let counted = Reply::text(result(&box_of)).delay(pause(4));
    let launching = Reply::call("asyncagents_task", launch(&box_of, &prompt(&box_of)));
    script
        .rule(
            delegates().contains(format!("\"{box_of}\" finished")),
            Reply::text(result(&shelf)).delay(pause(2)),
        )
        .rule(
            delegates().contains(LAUNCHED),
            Reply::text("I wait for the box."),
        )
        .rule(delegates(), launching)
        .rule(knowing(prompt(&box_of)), counted)
}

/// What a launch answers.
const LAUNCHED: &str = "You will be told";

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

/// Waits until every task below a parent has ended, was told and answered, and nothing changes any
/// more.
fn settle(server: &Serve<'_>, root: &str) {
    let done = || {
        let tasks = tasks_below(server.world(), root);
        let parents: BTreeSet<&str> = tasks.iter().map(|task| &*task.parent_session).collect();
        let is_told = |parent: &str| {
            let launched = tasks.iter().filter(|task| task.parent_session == parent);
            let session = server.session_of(parent);
            let history = session.history();
            let told = ends(&notices(&history)).len();
            told >= launched.count() && session.has_answered() && session.is_idle()
        };
        let idle = server.session_of(root).is_idle();
        idle && tasks.iter().all(Task::has_ended) && parents.into_iter().all(is_told)
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

/// A task, as the shell shows it.
#[derive(Debug, Deserialize)]
struct Task {
    id: String,
    short_id: String,
    description: String,
    status: String,
    error: Option<String>,
    parent_session: String,
    session: Option<String>,
    answer: Option<String>,
}

impl Task {
    fn has_ended(&self) -> bool {
        !matches!(&*self.status, "queued" | "running" | "resumed")
    }

    /// How often notices have its result, by its ID: a parent whose server was killed may have launched
    /// two tasks of one description.
    fn times_told(&self, notices: &[&Message]) -> usize {
        let result = format!("<result task_id=\"{}\">", self.short_id);
        let times = notices
            .iter()
            .map(|notice| notice.hidden.matches(&result).count());
        times.sum()
    }
}

/// The tasks of a session, and theirs.
fn tasks_below(world: &World, root: &str) -> Vec<Task> {
    let tasks = world.asyncagents(&["list", "--all", "--json"]);
    let mut left: Vec<Task> = serde_json::from_str(&tasks).expect("tasks");
    let mut sessions = vec![root.to_owned()];
    let mut below = Vec::new();
    loop {
        let is_below = |task: &Task| sessions.contains(&task.parent_session);
        let (found, others): (Vec<Task>, Vec<Task>) = left.into_iter().partition(is_below);
        if found.is_empty() {
            return below;
        }
        sessions.extend(found.iter().filter_map(|task| task.session.clone()));
        below.extend(found);
        left = others;
    }
}

/// Those of a session's messages that tell of the end of a task.
fn notices(messages: &[Message]) -> Vec<&Message> {
    let told = |message: &&Message| message.notice().is_some();
    messages.iter().filter(told).collect()
}

/// The lines of notices, one for each end.
fn ends<'m>(notices: &[&'m Message]) -> Vec<&'m str> {
    let lines = notices.iter().flat_map(|notice| notice.text.lines());
    lines.filter(|line| is_notice(line)).collect()
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
    /// Of children.
    of_children: usize,
    notices: usize,
    lost_tasks: usize,
    failed: usize,
    wrong_results: BTreeMap<String, usize>,
    lost_notices: usize,
    doubled_notices: usize,
    unread_notices: usize,
    stuck: usize,
    prompts_twice: usize,
}

impl Counted {
    fn of(server: &Serve<'_>, root: &str) -> Self {
        let mut counted = Self::default();
        let tasks = tasks_below(server.world(), root);
        let sessions = tasks.iter().filter_map(|task| task.session.as_deref());
        let sessions = sessions.map(|session| server.session_of(session));
        counted.count_launches(&server.session_of(root), &tasks);
        for session in sessions.filter(Session::exists) {
            counted.count_launches(&session, &tasks);
        }
        for task in &tasks {
            counted.of_children += usize::from(task.parent_session != root);
            counted.count_task(server, task);
        }
        counted
    }

    /// What a session has launched, and what it was told of that.
    fn count_launches(&mut self, session: &Session<'_>, tasks: &[Task]) {
        let results = session.results("asyncagents_task");
        for said in results.iter().filter(|said| said.contains(LAUNCHED)) {
            let id = task_id(said);
            let known = tasks
                .iter()
                .any(|task| task.id == id || task.short_id == id);
            self.answered += 1;
            self.lost_tasks += usize::from(!known);
        }
        let history = session.history();
        let notices = notices(&history);
        let ends = ends(&notices).len();
        self.notices += ends;
        let read: Vec<String> = session.requests().iter().map(|it| it.text()).collect();
        for notice in &notices {
            let is_read = read.iter().any(|read| read.contains(&notice.text));
            self.unread_notices += usize::from(!is_read);
        }
        let mut told = 0;
        for task in tasks.iter().filter(|it| it.parent_session == session.id) {
            let times = task.times_told(&notices);
            told += times;
            self.lost_notices += usize::from(times == 0);
            self.doubled_notices += times.saturating_sub(1);
        }
        // A line for each, and none of others.
        self.doubled_notices += ends.abs_diff(told);
    }

    fn count_task(&mut self, server: &Serve<'_>, task: &Task) {
        *self.tasks.entry(task.status.clone()).or_default() += 1;
        if let Some(why) = &task.error {
            *self.errors.entry(why.clone()).or_default() += 1;
        }
        self.stuck += usize::from(!task.has_ended());
        self.failed += usize::from(task.has_ended() && task.status != "completed");
        if task.status == "completed" {
            let shown = server.world().asyncagents(&["output", &task.id, "--json"]);
            let shown: Task = serde_json::from_str(&shown).expect("a task");
            let answer = shown.answer.unwrap_or_default();
            if answer != result(&task.description) {
                let wrong = format!("{}: {answer}", task.description);
                *self.wrong_results.entry(wrong).or_default() += 1;
            }
        }
        self.prompts_twice += prompts(server, task).saturating_sub(1);
    }

    fn add(&mut self, other: Self) {
        fn join(sum: &mut BTreeMap<String, usize>, other: BTreeMap<String, usize>) {
            for (what, times) in other {
                *sum.entry(what).or_default() += times;
            }
        }
        join(&mut self.tasks, other.tasks);
        join(&mut self.errors, other.errors);
        join(&mut self.wrong_results, other.wrong_results);
        self.answered += other.answered;
        self.unfinished += other.unfinished;
        self.of_children += other.of_children;
        self.notices += other.notices;
        self.lost_tasks += other.lost_tasks;
        self.failed += other.failed;
        self.lost_notices += other.lost_notices;
        self.doubled_notices += other.doubled_notices;
        self.unread_notices += other.unread_notices;
        self.stuck += other.stuck;
        self.prompts_twice += other.prompts_twice;
    }

    fn faults(&self) -> [(&'static str, usize); 8] {
        [
            ("lost tasks", self.lost_tasks),
            ("tasks that did not complete", self.failed),
            ("wrong results", self.wrong_results.values().sum()),
            ("lost notices", self.lost_notices),
            ("doubled notices", self.doubled_notices),
            ("notices without a turn of the parent", self.unread_notices),
            ("stuck tasks", self.stuck),
            ("prompts run twice", self.prompts_twice),
        ]
    }

    fn report(&self, kills: u64, took: Duration) {
        let states = self.tasks.iter();
        let states = states.map(|(status, times)| format!("{times} {status}"));
        let states = states.collect::<Vec<_>>().join(", ");
        let tasks: usize = self.tasks.values().sum();
        eprintln!("  {kills} kills in {:.0} s", took.as_secs_f64());
        eprintln!("  launches answered: {}", self.answered);
        eprintln!(
            "  tasks: {tasks} ({states}), {} of them children's own",
            self.of_children
        );
        for (why, times) in &self.errors {
            eprintln!("    {times} failed: {why}");
        }
        for (wrong, times) in &self.wrong_results {
            eprintln!("    {times} wrong: {wrong}");
        }
        let unfinished = self.unfinished;
        eprintln!("  unfinished when the server was killed: {unfinished}");
        eprintln!("  notices in parents' histories: {}", self.notices);
        for (fault, times) in self.faults() {
            eprintln!("  {fault}: {times}");
        }
    }

    fn is_faultless(&self) {
        let faults = self.faults().map(|(_, times)| times);
        assert_eq!(faults, [0; 8], "{self:?}");
        let told = self.answered > 0 && self.unfinished > 0 && self.of_children > 0;
        assert!(told, "{self:?}");
    }
}

/// How many times the prompt of a task is in its session, read or not.
fn prompts(server: &Serve<'_>, task: &Task) -> usize {
    let session = task.session.as_deref().map(|id| server.session_of(id));
    let Some(session) = session.filter(Session::exists) else {
        return 0;
    };
    let prompt = prompt(&task.description);
    let messages = session.messages();
    let said = messages.iter().filter(|it| it.by == Speaker::User);
    said.filter(|it| it.text.contains(&prompt)).count()
}
