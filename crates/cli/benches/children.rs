//! What we add to the work of another agent: from the launch of a task to its model's first request,
//! beside the same agent driven by hand, and what 50 of them at once cost of our own memory.
//!
//! `cargo bench -p asyncagents --bench children` prints what is in `docs/benchmarks.md`. With `-- fake`
//! after it, only the agent that this program plays itself is measured, which starts at once.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

#[path = "../../hosts/tests/real_agents/agent.rs"]
#[allow(dead_code, reason = "the stories use more of it")]
mod agent;
#[path = "children/by_hand.rs"]
mod by_hand;
#[path = "children/fake_agent.rs"]
mod fake_agent;
#[path = "../../hosts/tests/real_agents/home.rs"]
#[allow(dead_code, reason = "the stories use more of it")]
mod home;
#[path = "children/our_memory.rs"]
mod our_memory;
#[path = "../../hosts/tests/real_agents/processes.rs"]
#[allow(dead_code, reason = "the stories use more of it")]
mod processes;
#[path = "../tests/children/world.rs"]
#[allow(dead_code, reason = "the stories use more of it")]
mod world;

use std::{
    env,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{Reply, Script, When};

use agent::Agent;
use by_hand::ByHand;
use fake_agent::{FakeModel, FakeWorld};
use world::World;

/// How often each way is taken, in turns.
const TIMES: usize = 15;
const REAL_TIMES: usize = 7;

/// How many children are at work at once.
const AT_ONCE: usize = 50;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let [_, word, model] = arguments.as_slice()
        && word == fake_agent::WORD
    {
        return fake_agent::play(model);
    }
    println!("From the launch to the model's first request, ms");
    println!("| agent | by hand | a task | our share |");
    println!("|---|---|---|---|");
    let model = FakeModel::listen();
    let world = FakeWorld::new(&model, AT_ONCE);
    fake(&model, &world);
    if !arguments.iter().any(|argument| argument == "fake") {
        for agent in [Agent::Claude, Agent::Codex, Agent::OpenCode] {
            real(agent);
        }
    }
    at_once(&model, &world);
}

fn row(agent: &str, by_hand: &mut [Duration], tasks: &mut [Duration]) {
    let (by_hand, tasks) = (median(by_hand), median(tasks));
    let share = tasks - by_hand;
    println!("| {agent} | {by_hand:.1} | {tasks:.1} | {share:.1} |");
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    let middle = times.get(times.len() / 2).expect("it was measured");
    middle.as_secs_f64() * 1_000.0
}

/// The agent that this program plays: what it takes itself is next to nothing.
fn fake(model: &FakeModel, world: &FakeWorld) {
    let (mut by_hand, mut tasks) = (Vec::new(), Vec::new());
    // The first launch starts the worker.
    world.launch("the first");
    model.next_request();
    model.answer_all();
    for _ in 0..TIMES {
        let began = Instant::now();
        let program =
            ByHand::open(fake_agent::command(model), world.project(), None).saying("a prompt");
        by_hand.push(model.next_request() - began);
        model.answer_all();
        drop(program);
        let began = Instant::now();
        world.launch("another");
        tasks.push(model.next_request() - began);
        model.answer_all();
        world.until_idle();
    }
    row("played by the benchmark", &mut by_hand, &mut tasks);
}

/// A real one: its own start takes the most of it.
fn real(agent: Agent) {
    let script = |_: &home::Home| {
        Script::new().rule(
            When::always().tools(true).contains("Name the colour"),
            Reply::text("It is blue."),
        )
    };
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let first = world.launch("Name the colour 0");
    world.ended(&first);
    let asked = |words: &str| {
        let is_it =
            |request: &_| asyncagents_scripted_model::Recorded::last(request).contains(words);
        while !world.requests().iter().any(is_it) {
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    let (mut by_hand, mut tasks) = (Vec::new(), Vec::new());
    for number in 0..REAL_TIMES {
        let words = format!("Name the colour by hand {number};");
        let began = Instant::now();
        let project = world.home.path("project");
        let command = by_hand::real(agent, &world.home);
        let program = ByHand::open(
            command,
            &project,
            agent.settings(&world.home.path("home")).mode.as_deref(),
        )
        .saying(&words);
        asked(&words);
        by_hand.push(began.elapsed());
        drop(program);
        let words = format!("Name the colour as a task {number};");
        let began = Instant::now();
        let id = world.launch(&words);
        asked(&words);
        tasks.push(began.elapsed());
        world.ended(&id);
    }
    row(agent.name(), &mut by_hand, &mut tasks);
}

/// All of them wait for their model.
fn at_once(model: &FakeModel, world: &FakeWorld) {
    let before = our_memory::of(world.worker());
    let began = Instant::now();
    for number in 0..AT_ONCE {
        world.launch(&format!("number {number}"));
    }
    for _ in 0..AT_ONCE {
        model.next_request();
    }
    let took = began.elapsed().as_secs_f64();
    let with = our_memory::of(world.worker());
    let each = |with: u64, before: u64| with.saturating_sub(before) / AT_ONCE as u64;
    println!(
        "\n{AT_ONCE} children at once, all asked after {took:.1} s. Our own memory for each: {} KB in \
         the worker, {} KB in the processes of the sandbox",
        each(with.worker, before.worker),
        each(with.helpers, before.helpers),
    );
    model.answer_all();
    world.until_idle();
    let after = our_memory::of(world.worker());
    println!(
        "the worker: {} KB before, {} KB with them, {} KB after",
        before.worker, with.worker, after.worker
    );
}
