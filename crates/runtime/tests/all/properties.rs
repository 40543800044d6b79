//! Random requests, faults, crashes and restarts against a plain model of what a parent may
//! expect: every task ends as it must, and every end is told once.

use std::{collections::HashMap, time::Duration};

use asyncagents_core::{
    event::Event,
    id::TaskId,
    lifecycle,
    refusal::Refusal,
    request::{Caller, OutputRequest, TaskArgs},
    task::{State, Status},
    task_list::ListRequest,
};
use asyncagents_runtime::Problem;
use asyncagents_testkit::scripted_host::{Call, Line, Script, ScriptedHost, Step};
use proptest::prelude::*;

use super::harness::{Harness, Process, asks, events, notices, seconds, session, tool};

/// What a child does.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Quick,
    Slow,
    Fails,
    Hangs,
}

#[derive(Debug, Clone)]
enum Op {
    Launch {
        parent: u8,
        kind: Kind,
    },
    LaunchInside {
        task: usize,
    },
    Cancel {
        task: usize,
    },
    Resume {
        task: usize,
    },
    Clear {
        parent: u8,
    },
    Read {
        task: usize,
    },
    WaitFor {
        task: usize,
        seconds: u64,
    },
    Pass {
        seconds: u64,
    },
    Crash,
    Restart,
    SecondWorker,
    Faults {
        mute: bool,
        repeat: bool,
        slow: bool,
    },
    Fail {
        call: Call,
        times: u32,
    },
    LoseAnswer {
        call: Call,
    },
}

fn any_op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        4 => Just(Kind::Quick),
        3 => Just(Kind::Slow),
        1 => Just(Kind::Fails),
        1 => Just(Kind::Hangs),
    ];
    let failing = prop::sample::select(vec![
        Call::Deliver,
        Call::Confirm,
        Call::Abort,
        Call::Inspect,
    ]);
    let losing = prop::sample::select(vec![Call::Prompt, Call::Deliver]);
    let task = 0..30_usize;
    prop_oneof![
        6 => (0..3_u8, kind).prop_map(|(parent, kind)| Op::Launch { parent, kind }),
        2 => task.clone().prop_map(|task| Op::LaunchInside { task }),
        2 => task.clone().prop_map(|task| Op::Cancel { task }),
        2 => task.clone().prop_map(|task| Op::Resume { task }),
        1 => (0..3_u8).prop_map(|parent| Op::Clear { parent }),
        1 => task.clone().prop_map(|task| Op::Read { task }),
        1 => (task, 0..40_u64).prop_map(|(task, seconds)| Op::WaitFor { task, seconds }),
        4 => (0..30_u64).prop_map(|seconds| Op::Pass { seconds }),
        2 => Just(Op::Crash),
        1 => Just(Op::Restart),
        1 => Just(Op::SecondWorker),
        1 => any::<(bool, bool, bool)>().prop_map(|(mute, repeat, slow)| Op::Faults { mute, repeat, slow }),
        1 => (failing, 1..4_u32).prop_map(|(call, times)| Op::Fail { call, times }),
        1 => losing.prop_map(|call| Op::LoseAnswer { call }),
    ]
}

/// What a parent may expect of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    /// It ends by itself, this way.
    Itself(Status),
    /// Someone asked for its end.
    Cancelled,
    /// Its end is nobody's business: what it worked for was stopped, or it was cleared.
    Quiet,
}

/// The plain model: no time, no processes, no host.
struct Model {
    id: TaskId,
    parent: String,
    above: Option<usize>,
    runs: Vec<Expected>,
    cleared: bool,
    /// A blocked parent may have got the result of this run.
    awaited: Vec<u32>,
}

/// A session into which a prompt was put is known to its task.
fn was_prompted(harness: &Harness, task: &TaskId) -> bool {
    !harness.prompts(task).is_empty()
}

impl Model {
    /// Nobody is left in its session who could use an answer.
    fn is_stopped(&self) -> bool {
        let natural = Expected::Itself(Status::Completed);
        self.cleared || self.runs.iter().any(|run| *run != natural)
    }
}

fn script() -> Script {
    let wait = |time| Step::Wait(seconds(time));
    Script::of([wait(1), tool("read"), wait(1)])
        .when("slow", [wait(20), tool("bash"), wait(20)])
        .when("fails", [wait(3), Step::Fail("as told".to_owned())])
        .when("hangs", [tool("bash"), Step::Hang])
}

impl Kind {
    fn prompt(self) -> &'static str {
        match self {
            Kind::Quick => "quick",
            Kind::Slow => "slow",
            Kind::Fails => "fails",
            Kind::Hangs => "hangs",
        }
    }

    fn ends(self) -> Expected {
        Expected::Itself(match self {
            Kind::Quick | Kind::Slow => Status::Completed,
            Kind::Fails | Kind::Hangs => Status::Error,
        })
    }
}

struct Story {
    harness: Harness,
    processes: Vec<Process>,
    tasks: Vec<Model>,
}

impl Story {
    fn process(&self) -> &Process {
        self.processes.last().expect("a process")
    }

    async fn status(&self, task: usize) -> Option<Status> {
        let id = self.tasks[task].id.as_str();
        let look = self
            .process()
            .manager
            .follow(&Caller::Person, id, None, Duration::ZERO);
        look.await.ok().map(|report| report.shown.task.status())
    }

    async fn is_live(&self, task: usize) -> bool {
        let status = self.status(task).await;
        matches!(
            status,
            Some(Status::Queued | Status::Running | Status::Resumed)
        )
    }

    async fn launch(&mut self, parent: String, above: Option<usize>, kind: Kind) {
        let launched = self
            .process()
            .manager
            .task(&session(&parent), asks(kind.prompt()))
            .await;
        let stopped = above.is_some_and(|above| self.tasks[above].is_stopped());
        match launched {
            Ok(accepted) => self.tasks.push(Model {
                id: accepted.shown.task.id,
                parent,
                above,
                runs: vec![kind.ends()],
                cleared: false,
                awaited: Vec::new(),
            }),
            Err(refused) => assert!(stopped, "{refused}"),
        }
    }

    /// Whatever works for this task is stopped with it.
    async fn stop_below(&mut self, task: usize) {
        for below in 0..self.tasks.len() {
            if self.tasks[below].above == Some(task) {
                // Stopped in the same moment, so it still shows as it ended.
                assert!(
                    !self.is_live(below).await,
                    "stopped with what it worked for"
                );
                let ended = self.status(below).await;
                let run = self.tasks[below].runs.last_mut().expect("a run");
                if ended == Some(Status::Cancelled) && *run != Expected::Cancelled {
                    *run = Expected::Quiet;
                }
            }
        }
    }

    async fn act(&mut self, op: Op) {
        let known = self.tasks.len();
        let pick = |task: usize| (known > 0).then(|| task % known.max(1));
        match op {
            Op::Launch { parent, kind } => {
                self.launch(format!("parent-{parent}"), None, kind).await;
            }
            Op::LaunchInside { task } => {
                // Inside tasks that end well: when one fails, what is below it goes too.
                if let Some(task) = pick(task)
                    && self.tasks[task].above.is_none()
                    && self.tasks[task].runs[0] == Expected::Itself(Status::Completed)
                    && matches!(self.status(task).await, Some(Status::Running))
                {
                    let inside = ScriptedHost::session_of(&self.tasks[task].id);
                    let made = self.harness.child(&self.tasks[task].id).len() > 1;
                    if made {
                        self.launch(inside.to_string(), Some(task), Kind::Slow)
                            .await;
                    }
                }
            }
            Op::Cancel { task } => {
                let Some(task) = pick(task) else { return };
                let id = self.tasks[task].id.to_string();
                let cancelled = self.process().manager.cancel(&Caller::Person, &id).await;
                match cancelled {
                    Ok(cancelled) => {
                        if cancelled.shown.task.status() == Status::Cancelled {
                            *self.tasks[task].runs.last_mut().expect("a run") = Expected::Cancelled;
                        }
                        self.stop_below(task).await;
                    }
                    Err(refused) => {
                        let live = self.is_live(task).await;
                        assert!(!live || self.tasks[task].cleared, "{refused}");
                    }
                }
            }
            Op::Resume { task } => {
                let Some(task) = pick(task) else { return };
                let args = TaskArgs {
                    prompt: "quick".to_owned(),
                    resume: Some(self.tasks[task].id.to_string()),
                    ..TaskArgs::default()
                };
                let resumed = self.process().manager.task(&Caller::Person, args).await;
                match resumed {
                    Ok(_) => self.tasks[task].runs.push(Kind::Quick.ends()),
                    Err(refused) => {
                        let never_began =
                            matches!(refused, Problem::Refused(Refusal::NeverBegan { .. }));
                        let began =
                            !never_began || was_prompted(&self.harness, &self.tasks[task].id);
                        let live = self.is_live(task).await;
                        assert!(live || !began || self.tasks[task].cleared, "{refused}");
                    }
                }
            }
            Op::Clear { parent } => {
                let parent = format!("parent-{parent}");
                let live: Vec<usize> = self.live_of(&parent).await;
                let cleared = self.process().manager.clear(&parent.as_str().into()).await;
                cleared.expect("cleared");
                for task in 0..self.tasks.len() {
                    if self.tasks[task].parent != parent || self.tasks[task].cleared {
                        continue;
                    }
                    self.tasks[task].cleared = true;
                    if live.contains(&task) {
                        *self.tasks[task].runs.last_mut().expect("a run") = Expected::Quiet;
                    }
                    self.stop_below(task).await;
                }
            }
            Op::Read { task } => {
                let Some(task) = pick(task) else { return };
                let id = self.tasks[task].id.as_str();
                let request = OutputRequest::new(id, false, None).expect("a request");
                let _ = self
                    .process()
                    .manager
                    .output(&Caller::Person, request)
                    .await;
            }
            Op::WaitFor { task, seconds } => {
                let Some(task) = pick(task) else { return };
                let model = &self.tasks[task];
                let parent = session(&model.parent);
                let request = OutputRequest::new(model.id.as_str(), true, Some(seconds));
                let request = request.expect("a request");
                let _ = self.process().manager.output(&parent, request).await;
                let run = u32::try_from(model.runs.len() - 1).expect("few");
                self.tasks[task].awaited.push(run);
            }
            Op::Pass { seconds: time } => tokio::time::sleep(seconds(time)).await,
            Op::Crash => {
                self.processes.clear();
                self.processes.push(self.harness.start().await);
            }
            Op::Restart => {
                for process in self.processes.drain(..) {
                    process.worker.stop().await;
                }
                self.processes.push(self.harness.start().await);
            }
            Op::SecondWorker => {
                if self.processes.len() < 3 {
                    self.processes.push(self.harness.start().await);
                }
            }
            Op::Faults { mute, repeat, slow } => {
                let mut faults = self.harness.host.faults();
                faults.mute = mute;
                faults.repeat = repeat;
                faults.slow = seconds(u64::from(slow));
            }
            Op::Fail { call, times } => {
                self.harness.host.faults().fail.insert(call, times);
            }
            Op::LoseAnswer { call } => {
                self.harness.host.faults().lose_answer.insert(call, 1);
            }
        }
    }

    async fn live_of(&self, parent: &str) -> Vec<usize> {
        let mut live = Vec::new();
        for (at, model) in self.tasks.iter().enumerate() {
            let status = if model.parent == parent && !model.cleared {
                self.status(at).await
            } else {
                None
            };
            if matches!(
                status,
                Some(Status::Queued | Status::Running | Status::Resumed)
            ) {
                live.push(at);
            }
        }
        live
    }

    /// Never more at once than there are slots.
    async fn check_slots(&self, limit: usize) {
        let manager = &self.process().manager;
        let list = manager.list(ListRequest::all()).await;
        let tasks = list.expect("a list").tasks;
        for depth in 1..=2 {
            let running = tasks.iter().filter(|shown| {
                let running = matches!(shown.task.state, State::Running { .. });
                running && shown.task.place.depth == depth
            });
            assert!(running.count() <= limit, "too many at depth {depth}");
        }
    }

    async fn check_end(&self) {
        for model in &self.tasks {
            let saved = events(self.harness.store(), &model.id).await;
            let Event::Launched(launched) = &saved[0].event else {
                panic!("begins with {:?}", saved[0]);
            };
            let mut folded = lifecycle::begin(model.id.clone(), launched, saved[0].at);
            let mut ended = Vec::new();
            for event in &saved[1..] {
                lifecycle::apply(&mut folded, &event.event, event.at);
                if let Event::Ended { .. } = event.event {
                    ended.push(folded.status());
                }
            }
            assert_eq!(
                ended.len(),
                model.runs.len(),
                "each run ends once: {}",
                model.id
            );
            let told = self.told(model).await;
            let prompted = self.prompted(&model.id);
            for ((run, expected), ended) in (0..).zip(&model.runs).zip(ended) {
                let told = told.get(&run).copied().unwrap_or(0);
                let asked = prompted.get(&run).copied().unwrap_or(0);
                assert!(
                    asked <= 1,
                    "run {run} of {} was sent {asked} times",
                    model.id
                );
                match expected {
                    Expected::Itself(status) => {
                        assert_eq!(ended, *status, "run {run} of {}", model.id);
                        assert_eq!(asked, 1);
                        let excused = self.is_excused(model, run);
                        assert!(
                            told == 1 || told == 0 && excused,
                            "{told} times: {}",
                            model.id
                        );
                    }
                    Expected::Cancelled => {
                        assert_eq!(ended, Status::Cancelled);
                        let excused =
                            model.cleared || model.awaited.contains(&run) || model.above.is_some();
                        assert!(
                            told == 1 || told == 0 && excused,
                            "{told} times: {}",
                            model.id
                        );
                    }
                    Expected::Quiet => {
                        assert_eq!(ended, Status::Cancelled);
                        assert_eq!(told, 0, "nobody is left to be told: {}", model.id);
                    }
                }
            }
        }
    }

    /// The result was read by a blocked parent, the task was cleared before the notice was
    /// sent, or its parent had been stopped.
    fn is_excused(&self, model: &Model, run: u32) -> bool {
        let stopped = model
            .above
            .is_some_and(|above| self.tasks[above].is_stopped());
        model.cleared || stopped || model.awaited.contains(&run)
    }

    /// How often the parent was told of each run.
    async fn told(&self, model: &Model) -> HashMap<u32, usize> {
        let parent = model.parent.as_str().into();
        let lines = self.harness.host.world().lines(&parent).expect("lines");
        let mut told = HashMap::new();
        for post in notices(self.harness.store(), &model.id).await {
            // The message may be under the name of another end that it tells of.
            let message = post.told_with.as_ref().unwrap_or(&post.id);
            let tells =
                |line: &&Line| matches!(line, Line::Told { id, .. } if id == message.as_str());
            *told.entry(post.run).or_default() += lines.iter().filter(tells).count();
        }
        told
    }

    fn prompted(&self, task: &TaskId) -> HashMap<u32, usize> {
        let mut prompted = HashMap::new();
        for line in self.harness.child(task) {
            if let Line::Prompted { id, .. } = line {
                let run = id.rsplit('.').next().and_then(|run| run.parse().ok());
                *prompted.entry(run.expect("a run")).or_default() += 1;
            }
        }
        prompted
    }
}

async fn tell(ops: Vec<Op>) {
    const SLOTS: usize = 4;
    let harness = Harness::new(script())
        .looking_every(seconds(1))
        .with(|settings| {
            // Workers crash here without any task's doing.
            settings.limits.worker_deaths = u64::MAX;
            settings.limits.concurrency = SLOTS as u64;
        });
    let mut story = Story {
        processes: vec![harness.start().await],
        harness,
        tasks: Vec::new(),
    };
    for op in ops {
        story.act(op).await;
        story.check_slots(SLOTS).await;
    }
    {
        let mut faults = story.harness.host.faults();
        *faults = Default::default();
    }
    story.process().settled().await;
    story.check_end().await;
}

/// Tells a story in a runtime of its own, in which time passes when nothing else happens.
fn tell_alone(ops: Vec<Op>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(tell(ops));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_every_task_ends_as_it_must_and_is_told_once(
        ops in prop::collection::vec(any_op(), 1..40)
    ) {
        tell_alone(ops);
    }
}

/// `PROPTEST_CASES` tells more stories.
fn cases() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

/// A parent that waits for a follow-up is still told of the run before it, if that notice was
/// not yet sent: workers that come and go are slow to send it.
#[test]
fn who_waits_for_a_follow_up_is_told_of_the_run_before() {
    for _ in 0..10 {
        let ops = vec![
            Op::Crash,
            Op::Launch {
                parent: 1,
                kind: Kind::Hangs,
            },
            Op::SecondWorker,
            Op::Cancel { task: 0 },
            Op::Resume { task: 0 },
            Op::SecondWorker,
            Op::Cancel { task: 0 },
            Op::SecondWorker,
            Op::WaitFor {
                task: 0,
                seconds: 25,
            },
        ];
        tell_alone(ops);
    }
}
