//! What the built-in agent costs: one step of its loop, and a thousand children at once.
//!
//! `cargo bench -p asyncagents-engine` prints what is in `docs/benchmarks.md`. The database is
//! on disk with full durability, the model is scripted and answers at once over real HTTP, in
//! the same process. Comparisons are made within one run.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use asyncagents_core::{
    agent::{Entry, Mode, Turn},
    host_ref::{HostRef, HostSetup},
    id::{PostId, SessionId},
    lifecycle::Standing,
    moment::Moment,
    port::{Host, HostError, Prompt, Store, transact},
    request::{Caller, LaunchTask},
    task::{Context, Status},
    task_list::ListRequest,
    tool_set,
};
use asyncagents_engine::{Begin, Engine, Parts, Settings};
use asyncagents_models::{KeySource, Models, Provider, Request, Wire};
use asyncagents_runtime::{Hosts, Manager, SystemClock, ToolDoor, Worker};
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use asyncagents_store::Sqlite;
use asyncagents_tools::Toolbox;
use serde_json::json;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        steps().await;
        children(1_000).await;
    });
}

struct Place {
    _folder: tempfile::TempDir,
    model: ModelServer,
    models: Models,
    store: Arc<dyn Store>,
    manager: Manager,
    engine: Engine,
}

#[derive(Default)]
struct OneHost(OnceLock<Engine>);

#[async_trait::async_trait]
impl Hosts for OneHost {
    fn serves(&self, _: &HostRef) -> bool {
        true
    }

    fn open(&self, _: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let engine = self.0.get().cloned();
        let engine = engine.ok_or(HostError::Unreachable("not yet".to_owned()))?;
        Ok(Arc::new(engine))
    }
}

async fn place(script: Script) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("work");
    fs::create_dir(&workspace).expect("made");
    fs::write(workspace.join("a.txt"), "a\n").expect("written");
    let workspace = workspace.canonicalize().expect("a folder");
    let model = ModelServer::start(script).await.expect("a port");
    let models = Models::new(asyncagents_models::Settings {
        providers: vec![Provider {
            name: "test".to_owned(),
            wire: Wire::Anthropic,
            base_url: model.url(),
            key: KeySource::None,
            headers: Vec::new(),
        }],
        ..asyncagents_models::Settings::default()
    });
    let models = models.expect("models");
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(folder.path().join("db")).expect("a store"));
    let hosts = Arc::new(OneHost::default());
    let mut settings = asyncagents_runtime::Settings::default();
    settings.limits.concurrency = 100_000;
    settings.limits.spawns = 100_000;
    let clock = Arc::new(SystemClock);
    let manager = Manager::new(store.clone(), hosts.clone(), clock.clone(), settings);
    let mut settings = Settings {
        model: Some("test/model".to_owned()),
        ..Settings::new(workspace.clone())
    };
    settings.permissions.mode = Mode::Yolo;
    let toolbox = asyncagents_tools::Settings::new(workspace, Path::new("no-helper"));
    let toolbox = Toolbox::new(toolbox).expect("a toolbox");
    let engine = Engine::new(Parts {
        settings,
        store: store.clone(),
        clock,
        models: models.clone(),
        toolbox,
        delegation: Arc::new(ToolDoor::new(&manager, HostRef::engine("bench").into())),
        commands: Arc::default(),
        approver: None,
        owner: Arc::new(|| None),
    });
    let _ = hosts.0.set(engine.clone());
    Place {
        _folder: folder,
        model,
        models,
        store,
        manager,
        engine,
    }
}

/// One step of the loop: the request is written, the model answers, the answer is saved. An
/// answer that was cut leads to the next step without a tool, so a run of three answers is
/// compared with a run of one, and with asking the model the same without a session.
async fn steps() {
    let cut = || Reply::text("half of it").stop("max_tokens");
    let one = Script::new().rule(When::always(), Reply::text("done"));
    let three = Script::new()
        .rule(When::turn(2), Reply::text("done"))
        .rule(When::always(), cut());
    let tools = Script::new()
        .rule(When::turn(10), Reply::text("done"))
        .rule(
            When::always(),
            Reply::call("todo", json!({"items": [{"text": "x", "status": "doing"}]})),
        );
    let place = place(one.forget_bodies()).await;
    let asked = ask(&place).await;
    let one = run(&place).await;
    let three = run(&self::place(three.forget_bodies()).await).await;
    let tools = run(&self::place(tools.forget_bodies()).await).await;
    let remark = save(&place).await;
    let step = (three.saturating_sub(one) / 2).saturating_sub(remark);
    let with_tool = tools.saturating_sub(one) / 10;
    println!(
        "the model's answer over HTTP: {:.2} ms; one entry saved: {:.2} ms",
        milliseconds(asked),
        milliseconds(remark)
    );
    for (what, time) in [
        ("one step without a tool (asked, answered, saved)", step),
        (
            "one step with a tool (the answer and the result saved)",
            with_tool,
        ),
        (
            "a whole run of one answer (prompt, take-over, answer and end saved)",
            one,
        ),
    ] {
        let own = time.saturating_sub(asked);
        println!(
            "{what}: {:.2} ms, {:.2} ms of its own",
            milliseconds(time),
            milliseconds(own)
        );
    }
}

const TIMES: usize = 300;

/// What saving one entry takes: in a run of three answers there are two remarks between them,
/// which are no part of a step.
async fn save(place: &Place) -> Duration {
    let session = SessionId::from("ses_bench");
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let (session, begun) = (session.clone(), Instant::now());
        let saved = transact(&*place.store, move |journal| {
            let entry = Entry::Nudged {
                text: "Your answer was cut because it was too long. Go on.".to_owned(),
            };
            let seq = journal.file(&session, &entry, Moment::from_millis(0))?;
            journal.entries(&session, seq - 1, u64::MAX)
        });
        assert_eq!(saved.await.expect("saved").len(), 1);
        times.push(begun.elapsed());
    }
    median(times)
}

/// What asking alone takes, with the system prompt and the tools of a session.
async fn ask(place: &Place) -> Duration {
    let model = place.models.resolve("test/model").expect("a model");
    let begin = Begin {
        title: String::new(),
        agent: "general".into(),
        model: None,
    };
    let session = place.engine.begin(begin).await.expect("begun");
    let session = place.engine.session(&session).await.expect("there");
    let tools = [asyncagents_tools::specs(), tool_set::specs("asyncagents_")].concat();
    let turns = [Turn::Said("Look".to_owned())];
    let request = Request {
        system: &session.system,
        tools: &tools,
        turns: &turns,
        inherited: 0,
        no_tools: false,
        max_output: None,
        cache_key: "bench",
        effort: None,
    };
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        model.ask(&request, &mut |_| {}).await.expect("an answer");
        times.push(begun.elapsed());
    }
    median(times)
}

/// What a run takes, from its prompt to its end.
async fn run(place: &Place) -> Duration {
    let begin = Begin {
        title: String::new(),
        agent: "general".into(),
        model: None,
    };
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let session = place.engine.begin(begin.clone()).await.expect("begun");
        let begun = Instant::now();
        let prompt = prompt(&place.engine, &session).await;
        ended(&place.engine, &session, &prompt).await;
        times.push(begun.elapsed());
    }
    median(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Many children at once, each with two tool calls and three answers, of which the first is
/// held back until all are at work.
async fn children(many: usize) {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("read", json!({"path": "a.txt"})).delay(Duration::from_secs(8)),
        )
        .rule(When::turn(1), Reply::call("glob", json!({"pattern": "*"})))
        .rule(When::turn(2), Reply::text("done"))
        .forget_bodies();
    let place = place(script).await;
    let worker = Worker::start(&place.manager).await.expect("a worker");
    let parent = place
        .engine
        .begin(Begin {
            title: String::new(),
            agent: "general".into(),
            model: None,
        })
        .await
        .expect("begun");
    let before = resident();
    let begun = Instant::now();
    let caller = Caller::Session {
        session: parent.clone(),
        host: HostRef::engine("bench").into(),
        outside: None,
        message: None,
    };
    for number in 0..many {
        let launch = LaunchTask {
            description: format!("child {number}"),
            prompt: "Look around".to_owned(),
            agent: "general".into(),
            host: None,
            context: Context::Fresh,
            model: None,
            effort: None,
            budget: Default::default(),
            role: None,
        };
        place
            .manager
            .launch(&caller, launch)
            .await
            .expect("launched");
    }
    let launched = begun.elapsed();
    let with_status = async |status| {
        let request = ListRequest {
            of: Some(parent.clone()),
            status: Some(status),
            ..ListRequest::all()
        };
        let list = place.manager.list(request).await;
        list.expect("listed").tasks
    };
    let mut peak = before;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        peak = peak.max(resident());
        if with_status(Status::Running).await.is_empty() {
            break;
        }
    }
    let all = begun.elapsed();
    let done = with_status(Status::Completed).await.len();
    println!(
        "{done} of {many} children completed, {} requests in flight at once; launched in {:.1} s, \
         all over after {:.1} s, of which 8 s the model held back; {:.0} KB each at the peak",
        place.model.in_flight_peak(),
        launched.as_secs_f64(),
        all.as_secs_f64(),
        (peak - before) as f64 / many as f64,
    );
    worker.stop().await;
    place.engine.stop().await;
}

async fn prompt(engine: &Engine, session: &SessionId) -> PostId {
    let id = PostId::from(format!("prompt {session}"));
    let prompt = Prompt {
        id: id.clone(),
        text: "Look".to_owned(),
        agent: "general".into(),
        model: None,
        effort: None,
        role: None,
    };
    engine.prompt(session, prompt).await.expect("taken");
    id
}

async fn ended(engine: &Engine, session: &SessionId, prompt: &PostId) {
    let mut live = engine.watch(session);
    loop {
        let inspected = engine.inspect(session, prompt).await.expect("seen");
        if matches!(inspected.standing, Standing::Done { .. }) {
            return;
        }
        while let Some(seen) = live.next().await {
            if matches!(seen, asyncagents_engine::Live::Ended(_)) {
                break;
            }
        }
    }
}

/// What the process has in memory, in KB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.unwrap_or_default().trim().trim_end_matches(" kB");
    digits.parse().unwrap_or(0)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
