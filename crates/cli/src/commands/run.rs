//! `asyncagents run`: the built-in agent, with background sub-agents.

use std::{
    collections::HashMap,
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use asyncagents_core::{
    agent::{End, agent_meant},
    answer::Shown,
    budget::Spent,
    id::{AgentName, ModelName, PostId, SessionId, TaskId},
    port::{Host, HostError, Prompt},
    request::Caller,
    task::{Outcome, Status},
};
use asyncagents_engine::{Approver, Begin, Engine, Live, LiveEvents};
use asyncagents_runtime::{Manager, Problem, Worker};
use futures_util::FutureExt;
use serde_json::json;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time,
};
use uuid::Uuid;

use super::Shell;
use crate::{
    args::{Assignment, given},
    exit::{Exit, Failure},
    live_view::LiveView,
    make_visible::make_visible,
    print,
    read_input::prompt,
    screen::{FRAME, Screen, counted, dollars},
    trust::Sealed,
    view,
    wire::{self, Furniture, House},
};

/// Run the built-in agent in this folder, with background sub-agents.
///
/// The answer goes to standard output; tools, background tasks and totals to standard error.
/// The run waits for its background tasks. Ctrl-C asks everything to stop, a second one ends
/// at once. Exit code 0 with an answer, 4 if the run failed or was stopped, 130 if it was ended by
/// a second Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents run \"Why is the login slow? Look at the three services in parallel.\"
  asyncagents run --model ollama/qwen3 \"Explain this folder\"
  asyncagents run --continue \"And the tests?\"
  asyncagents run --continue                   go on with a run that was interrupted
  asyncagents run - < prompt.txt")]
pub(super) struct RunArgs {
    /// What to do, or `-` for standard input.
    #[arg(value_name = "PROMPT")]
    words: Vec<String>,

    /// Who does it: general, explore, plan, or one of your own [default: the session's, or the
    /// setting `agent`].
    #[arg(long)]
    agent: Option<String>,

    /// The model, as provider/model or an alias [default: the setting `model`].
    #[arg(long)]
    model: Option<String>,

    /// Go on with the newest session of this folder.
    #[arg(long = "continue", short = 'C', conflicts_with = "session")]
    go_on: bool,

    /// Go on with this session: its ID, or the beginning of it. `asyncagents sessions` lists them.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// What the agent does without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    permission: Option<String>,

    /// End when the agent has answered; background tasks go on in a worker.
    #[arg(long)]
    no_wait: bool,

    /// Print a line of JSON for everything that happens.
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// What its options say about settings.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        let permission = given("permissions.mode", &self.permission);
        let model = given("model", &self.model);
        permission.into_iter().chain(model).collect()
    }
}

/// How often the tasks are looked at, and the live lines drawn.
const GLANCE: Duration = FRAME;

/// What a shell says when it was ended by Ctrl-C.
pub(super) const INTERRUPTED: i32 = 130;

pub(super) fn run(shell: &Shell, args: &RunArgs) -> Result<Exit, Failure> {
    let typed = (!args.words.is_empty()).then(|| args.words.join(" "));
    let prompt = match &typed {
        Some(typed) => Some(prompt(typed)?),
        None if args.go_on || args.session.is_some() => None,
        None => {
            let hint = "say what to do: asyncagents run \"…\"; or --continue";
            return Err(Failure::Input(anyhow!(hint)));
        }
    };
    if prompt
        .as_ref()
        .is_some_and(|prompt| prompt.trim().is_empty())
    {
        return Err(Failure::Input(anyhow!(
            "the prompt is empty; say what to do"
        )));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Machine(error.into()))?;
    let wanted = Wanted {
        folder: None,
        prompt,
        agent: args.agent.clone(),
        model: args.model.clone(),
        session: args.session.clone(),
        go_on: args.go_on,
        no_wait: args.no_wait,
        json: args.json,
        sealed: Sealed::ByUser,
    };
    let ran = runtime.block_on(go(shell, wanted));
    // A question that nobody answers must not keep the process.
    runtime.shutdown_background();
    ran
}

/// What is to be run.
#[derive(Default)]
pub(super) struct Wanted {
    /// Where, if not in the folder we are in.
    pub(super) folder: Option<PathBuf>,
    pub(super) prompt: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) session: Option<String>,
    pub(super) go_on: bool,
    pub(super) no_wait: bool,
    pub(super) json: bool,
    /// Whose key the database is sealed with.
    pub(super) sealed: Sealed,
}

/// Runs it, and returns when it is over.
pub(super) async fn go(shell: &Shell, mut wanted: Wanted) -> Result<Exit, Failure> {
    let screen = Screen::new(shell.config.color, shell.config.raw);
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && !wanted.json;
    let approver: Arc<dyn Approver> = Arc::new(screen.clone());
    let mut stop = Signals::new()?;
    let folder = wanted.folder.clone().unwrap_or_else(|| PathBuf::from("."));
    let furniture = Furniture {
        approver: can_ask.then_some(approver),
        no_wait: wanted.no_wait,
        only: Some(wire::engine_in(&folder).map_err(Failure::Input)?),
        bare: wanted.folder.is_some(),
        sealed: wanted.sealed,
        ..Furniture::default()
    };
    let house = shell.house(furniture)?;
    let host = format!("engine:{}", folder.display());
    let key = house.hosts.key(&host, &shell.said);
    let key = key.map_err(Failure::Input)?;
    let engine = house.hosts.engine(&key).map_err(Problem::from)?;
    let begins = wanted.session.is_none() && !wanted.go_on;
    if begins {
        wanted.agent.get_or_insert(shell.config.agent.clone());
    }
    if let Some(asked) = &mut wanted.agent {
        let known = engine.agents().await.map_err(refused)?;
        if let Some(meant) = agent_meant(asked, known.iter().map(AgentName::as_str)) {
            *asked = meant.to_owned();
        }
    }
    if begins {
        let agent = wanted.agent.as_deref().unwrap_or_default();
        let checked = engine.check(&agent.into(), wanted.model.as_deref());
        checked.map_err(refused)?;
    }
    // While its lease lasts, nobody else works in the session.
    let worker = Worker::start(&house.manager).await?;
    let ran = follow(shell, &screen, &house.manager, engine, &wanted, &mut stop).await;
    screen.end();
    tokio::select! {
        () = close(shell, house, worker) => ran,
        () = stop.next() => process::exit(INTERRUPTED),
    }
}

/// Ctrl-C, and being told to end. Whatever comes is kept until someone looks.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::Machine(error.into()));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// What a user has asked for and cannot have, in the host's words alone.
pub(super) fn refused(error: HostError) -> Failure {
    match error {
        HostError::Refused(why) => Failure::Input(anyhow!(why)),
        error => Problem::from(error).into(),
    }
}

async fn follow(
    shell: &Shell,
    screen: &Screen,
    manager: &Manager,
    engine: Engine,
    wanted: &Wanted,
    stop: &mut Signals,
) -> Result<Exit, Failure> {
    let begun = tokio::select! {
        begun = begin(shell, screen, manager, &engine, wanted) => begun?,
        () = stop.next() => process::exit(INTERRUPTED),
    };
    let Begun {
        session,
        prompt,
        live,
        before,
    } = begun;
    let mut run = Run {
        view: LiveView::new(screen),
        screen: screen.clone(),
        json: wanted.json,
        engine,
        manager: manager.clone(),
        session,
        prompt,
        said: String::new(),
        deaf: None,
        statuses: HashMap::new(),
        before,
        begun: Instant::now(),
        stopping: false,
    };
    run.open().await;
    let ended = run.follow(live, wanted.no_wait, stop).await?;
    run.screen.end();
    run.totals(&ended).await
}

/// A run that has begun.
struct Begun {
    session: SessionId,
    prompt: PostId,
    live: LiveEvents,
    /// What the session and its tasks had used before.
    before: Spent,
}

/// The session and the prompt to follow: a new one, or one that goes on.
async fn begin(
    shell: &Shell,
    screen: &Screen,
    manager: &Manager,
    engine: &Engine,
    wanted: &Wanted,
) -> Result<Begun, Failure> {
    let known = match (&wanted.session, wanted.go_on) {
        (Some(session), _) => Some(manager.session_named(session).await?),
        (None, true) => {
            let newest = engine.newest().await.map_err(Problem::from)?;
            Some(newest.ok_or_else(|| {
                Failure::Input(anyhow!("this folder has no session to go on with"))
            })?)
        }
        (None, false) => None,
    };
    let mut agent = wanted.agent.clone();
    if let Some(session) = &known {
        let known = engine.session(session).await.map_err(no_session)?;
        if known.task.is_some() {
            return Err(Failure::Input(anyhow!(
                "{session} is the session of a background task; `asyncagents resume` goes on with it"
            )));
        }
        agent = agent.or(Some(known.agent.to_string()));
        if let (Some(model), Some(agent)) = (&wanted.model, &agent) {
            let checked = engine.check(&agent.as_str().into(), Some(model));
            checked.map_err(refused)?;
        }
        until_free(shell, screen, engine, session).await?;
    }
    let agent = agent.unwrap_or(shell.config.agent.clone());
    let Some(text) = &wanted.prompt else {
        let Some(session) = known else {
            return Err(Failure::Input(anyhow!("say what to do")));
        };
        let before = spent(manager, engine, &session).await?;
        let live = engine.watch(&session);
        let prompt = engine.go_on(&session).await.map_err(no_session)?;
        let prompt = prompt.ok_or_else(|| {
            Failure::Input(anyhow!(
                "{session} has nothing left to do; say what to do next, as in \
                 asyncagents run --continue \"go on\""
            ))
        })?;
        return Ok(Begun {
            session,
            prompt,
            live,
            before,
        });
    };
    let session = match known {
        Some(session) => session,
        None => {
            let begin = Begin {
                title: text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(80)
                    .collect(),
                agent: agent.as_str().into(),
                model: wanted.model.clone(),
            };
            engine.begin(begin).await.map_err(refused)?
        }
    };
    let before = spent(manager, engine, &session).await?;
    let live = engine.watch(&session);
    let prompt = PostId::from(format!("prompt_{}", Uuid::new_v4().simple()));
    let model = wanted.model.as_deref().map(ModelName::from);
    let asked = Prompt {
        id: prompt.clone(),
        text: text.clone(),
        agent: AgentName::from(agent),
        model,
        role: None,
    };
    let sent = engine.prompt(&session, asked).await;
    sent.map_err(no_session)?;
    Ok(Begun {
        session,
        prompt,
        live,
        before,
    })
}

/// What a session and the tasks below it have used, cleared ones too.
async fn spent(manager: &Manager, engine: &Engine, session: &SessionId) -> Result<Spent, Failure> {
    let (own, _) = engine.used(session).await.map_err(Problem::from)?;
    let below = manager.spent_below(session).await?;
    Ok(below.plus(Spent {
        tokens: own.tokens,
        cost: own.cost,
        unpriced: own.unpriced,
        turns: own.turns,
        tool_calls: own.by_tool.values().sum(),
    }))
}

/// Waits until nobody works in a session any more. Whoever was killed there is known to be
/// gone when its lease has run out.
async fn until_free(
    shell: &Shell,
    screen: &Screen,
    engine: &Engine,
    session: &SessionId,
) -> Result<(), Failure> {
    let patience = shell.config.lease + Duration::from_secs(1);
    let begun = Instant::now();
    while engine.is_busy(session).await.map_err(Problem::from)? {
        if begun.elapsed() > patience {
            return Err(Failure::Input(anyhow!(
                "another process is working in {session}; wait for it, or begin a new session"
            )));
        }
        if begun.elapsed() < GLANCE {
            screen.remark("waiting for the process that worked in this session");
        }
        time::sleep(GLANCE).await;
    }
    Ok(())
}

pub(super) fn no_session(error: HostError) -> Failure {
    match error {
        HostError::NoSession(session) => Failure::Input(anyhow!(
            "there is no session {session}; `asyncagents sessions` lists those of this folder, and \
             `asyncagents run --continue` goes on with the newest"
        )),
        error => refused(error),
    }
}

/// Ends in good order. What is left of background tasks goes on in a worker.
pub(super) async fn close(shell: &Shell, house: House, worker: Worker) {
    // First the agents: what one of them is about to finish is not given to another worker.
    house.hosts.stop().await;
    worker.stop().await;
    shell.ensure_worker(&house.manager).await;
}

/// A run that is followed.
struct Run {
    screen: Screen,
    view: LiveView,
    json: bool,
    engine: Engine,
    manager: Manager,
    session: SessionId,
    prompt: PostId,
    /// What the agent has said of its newest answer.
    said: String,
    /// Why events cannot be written any more, if they cannot. The run goes on.
    deaf: Option<io::Error>,
    /// What was last told about each task.
    statuses: HashMap<TaskId, Status>,
    before: Spent,
    begun: Instant,
    stopping: bool,
}

/// How a run ended.
struct Ended {
    outcome: Outcome,
    answer: Option<String>,
}

impl Run {
    async fn open(&mut self) {
        let known = self.all_tasks().await;
        for shown in known.iter().filter(|shown| !shown.task.is_live()) {
            let status = shown.task.status();
            self.statuses.insert(shown.task.id.clone(), status);
        }
        match self.json {
            true => self.emit(&json!({"type": "session", "id": self.session.as_str()})),
            false => {
                let sandbox = self.engine.sandbox();
                self.screen.remark(&format!("{} · {sandbox}", self.session));
                for remark in self.engine.remarks() {
                    self.screen.remark(&make_visible(&remark));
                }
                self.screen.knows(&known);
                self.view.begin();
            }
        }
    }

    /// Shows what happens until the run is over.
    async fn follow(
        &mut self,
        mut live: LiveEvents,
        no_wait: bool,
        stop: &mut Signals,
    ) -> Result<Ended, Failure> {
        let mut glances = time::interval(GLANCE);
        glances.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let over = tokio::select! {
                seen = live.next() => match seen {
                    Some(live) => self.show(live),
                    None => true,
                },
                _ = glances.tick() => {
                    self.show_tasks().await;
                    self.screen.tick();
                    true
                }
                () = stop.next() => {
                    self.interrupt(stop).await?;
                    true
                }
            };
            if over && let Some(ended) = self.ended().await? {
                // Everything that was said is heard before the end.
                while let Some(seen) = live.next().now_or_never().flatten() {
                    self.show(seen);
                }
                if !no_wait {
                    self.show_tasks().await;
                }
                return Ok(ended);
            }
        }
    }

    /// How it ended, if it has.
    async fn ended(&self) -> Result<Option<Ended>, Failure> {
        let ended = self.engine.end_of(&self.session, &self.prompt).await;
        let ended = ended.map_err(Problem::from)?;
        Ok(ended.map(|(end, answer)| Ended {
            outcome: match end {
                End::Answered => Outcome::Completed,
                End::Failed { why } | End::Broken { why } => Outcome::Failed { why },
                End::Aborted => Outcome::Cancelled,
            },
            answer,
        }))
    }

    /// Shows one thing. True if it may be the end.
    fn show(&mut self, live: Live) -> bool {
        if self.json {
            return self.show_json(live);
        }
        let over = matches!(live, Live::Ended(_));
        self.view.show(live);
        over
    }

    /// Events that nobody reads are no reason to stop working.
    fn note(&mut self, said: io::Result<()>) {
        if let Err(error) = said {
            self.deaf.get_or_insert(error);
        }
    }

    fn show_json(&mut self, live: Live) -> bool {
        match live {
            Live::Text(text) => {
                self.emit(&json!({"type": "text_delta", "text": text}));
                self.said.push_str(&text);
            }
            Live::Again(why) => {
                if !std::mem::take(&mut self.said).is_empty() {
                    self.emit(&json!({"type": "reset"}));
                }
                self.emit(&json!({"type": "again", "why": why}));
            }
            Live::Answered => {
                let text = std::mem::take(&mut self.said);
                if !text.is_empty() {
                    self.emit(&json!({"type": "text", "text": text}));
                }
            }
            Live::Tool {
                call,
                name,
                target,
                input,
                ..
            } => {
                let arguments = view::arguments(&input);
                self.emit(&json!({
                    "type": "tool",
                    "call": call,
                    "name": name,
                    "target": target,
                    "arguments": arguments,
                }));
            }
            Live::ToolEnded {
                call,
                name,
                error,
                result,
            } => self.emit(&json!({
                "type": "tool_ended",
                "call": call,
                "name": name,
                "error": error,
                "result": result,
            })),
            Live::Told(text) => self.emit(&json!({"type": "told", "text": text})),
            Live::Compacting => self.emit(&json!({"type": "compacting"})),
            Live::Reasoning(_) | Live::Lines(_) | Live::Waiting => {}
            Live::Ended(_) => return true,
        }
        false
    }

    fn emit(&mut self, line: &serde_json::Value) {
        let said = print::json_line(line);
        self.note(said);
    }

    async fn show_tasks(&mut self) {
        let tasks = self.all_tasks().await;
        let now = self.manager.now();
        if !self.json {
            self.screen.tasks(&tasks, now);
            return;
        }
        for shown in &tasks {
            let status = shown.task.status();
            if self.statuses.insert(shown.task.id.clone(), status) != Some(status) {
                self.emit(&json!({"type": "task", "task": view::task(shown, now)}));
            }
        }
    }

    /// The tasks of this session, and those below them.
    async fn all_tasks(&self) -> Vec<Shown> {
        let mut sessions = vec![self.session.clone()];
        let mut tasks = Vec::new();
        while let Some(session) = sessions.pop() {
            let found = self.manager.list(Some(&session), None).await;
            for shown in found.unwrap_or_default() {
                sessions.extend(shown.task.session.clone());
                tasks.push(shown);
            }
        }
        tasks.sort_by_key(|shown| shown.task.launched_at);
        tasks
    }

    /// The first Ctrl-C asks everything to stop, the second ends at once.
    async fn interrupt(&mut self, signals: &mut Signals) -> Result<(), Failure> {
        if self.stopping {
            self.screen.end();
            process::exit(INTERRUPTED);
        }
        self.stopping = true;
        self.screen.remark("stopping; Ctrl-C again ends at once");
        let (engine, session) = (self.engine.clone(), self.session.clone());
        let manager = self.manager.clone();
        let stop = async {
            // First the one who launches.
            engine.abort(&session).await?;
            let live = self.all_tasks().await;
            for shown in live.into_iter().filter(|shown| shown.task.is_live()) {
                let task = shown.task.id.to_string();
                if let Err(problem) = manager.cancel(&Caller::Person, &task).await {
                    tracing::warn!(task, %problem, "not cancelled");
                }
            }
            Ok(())
        };
        tokio::select! {
            stopped = stop => stopped.map_err(|error: HostError| Problem::from(error).into()),
            () = signals.next() => {
                self.screen.end();
                process::exit(INTERRUPTED)
            }
        }
    }

    /// What it came to.
    async fn totals(mut self, ended: &Ended) -> Result<Exit, Failure> {
        let used = self.engine.used(&self.session).await;
        let (_, usage) = used.map_err(Problem::from)?;
        let tasks = self.all_tasks().await;
        let all = spent(&self.manager, &self.engine, &self.session).await?;
        let spent = all.beyond(self.before);
        let unfinished = tasks.iter().filter(|shown| shown.task.is_live()).count();
        let took = self.begun.elapsed();
        let failed = match &ended.outcome {
            Outcome::Completed => None,
            Outcome::Failed { why } => Some(why.as_str()),
            Outcome::Cancelled => Some("it was stopped"),
        };
        if self.json {
            let now = self.manager.now();
            let tasks: Vec<_> = tasks.iter().map(|shown| view::task(shown, now)).collect();
            self.emit(&json!({
                "type": "end",
                "session": self.session.as_str(),
                "answer": ended.answer,
                "error": failed,
                "tokens": spent.tokens,
                "cached_tokens": usage.cache_read,
                "cost_usd": spent.price().dollars(),
                "unpriced_tokens": spent.unpriced,
                "turns": spent.turns,
                "tool_calls": spent.tool_calls,
                "seconds": took.as_secs_f64(),
                "tasks": tasks,
            }));
        } else {
            if !self.view.has_heard()
                && let Some(answer) = &ended.answer
            {
                self.view.answer(answer);
            }
            if let Some(why) = failed {
                self.screen.remark(&format!("asyncagents: {why}"));
            }
            let mut line = format!(
                "{}, {}, {}, {}, {:.1} s",
                counted(spent.tokens, "token"),
                counted(spent.turns, "answer"),
                counted(spent.tool_calls, "tool call"),
                dollars(spent.price()),
                took.as_secs_f64(),
            );
            if !tasks.is_empty() {
                let tasks = counted(tasks.len() as u64, "background task");
                line.push_str(&format!(", with {tasks}"));
            }
            if unfinished > 0 {
                line.push_str(&format!(
                    "; {unfinished} of them go on, `asyncagents list` shows them"
                ));
            }
            self.screen.remark(&line);
        }
        if let Some(error) = self.deaf.or(self.view.trouble()) {
            self.screen
                .remark("asyncagents: the answer could not be written to its end");
            return Err(Failure::Output(error));
        }
        Ok(match failed {
            None => Exit::Done,
            Some(_) => Exit::TaskFailed,
        })
    }
}
