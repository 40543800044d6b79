//! `asyncagents run`: the built-in agent, with background sub-agents.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use asyncagents_core::{
    answer::Shown,
    budget::Spent,
    id::{AgentName, ModelName, PostId, SessionId},
    lifecycle::Standing,
    port::{Host, HostError, Prompt},
    request::Caller,
    task::Outcome,
};
use asyncagents_engine::{Approver, Begin, Engine, Live, LiveEvents};
use asyncagents_runtime::{Manager, Problem, Worker};
use serde_json::json;
use tokio::time;
use uuid::Uuid;

use super::{Shell, task};
use crate::{
    args::RunArgs,
    exit::{Exit, Failure},
    print,
    screen::{Screen, counted, dollars},
    view,
    wire::{self, Furniture, House},
};

/// How often the tasks are looked at.
const GLANCE: Duration = Duration::from_millis(200);

/// What a shell says when it was ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

pub(super) fn run(shell: &Shell, args: &RunArgs) -> Result<Exit, Failure> {
    let prompt = match &args.prompt {
        Some(typed) => Some(task::prompt(typed)?),
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
}

/// Runs it, and returns when it is over.
pub(super) async fn go(shell: &Shell, wanted: Wanted) -> Result<Exit, Failure> {
    let screen = Screen::new();
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && !wanted.json;
    let approver: Arc<dyn Approver> = Arc::new(screen.clone());
    let furniture = Furniture {
        flags: shell.flags.clone(),
        approver: can_ask.then_some(approver),
        no_wait: wanted.no_wait,
    };
    let house = wire::house(&shell.config, furniture)?;
    let host = match &wanted.folder {
        Some(folder) => format!("engine:{}", folder.display()),
        None => "engine".to_owned(),
    };
    let key = wire::host_key(&host).map_err(Failure::Input)?;
    let engine = house.hosts.engine(&key).map_err(Problem::from)?;
    let live = engine.live();
    let (session, prompt) = begin(shell, &engine, &wanted).await?;
    let mut run = Run {
        screen,
        json: wanted.json,
        engine,
        manager: house.manager.clone(),
        session,
        prompt,
        said: String::new(),
        begun: Instant::now(),
        stopping: false,
    };
    run.open();
    let worker = Worker::start(&house.manager).await?;
    let ended = run.follow(live, wanted.no_wait).await;
    run.screen.end();
    close(shell, house, worker).await;
    let outcome = ended?;
    run.totals(&outcome).await
}

/// The session and the prompt to follow: a new one, or one that goes on.
async fn begin(
    shell: &Shell,
    engine: &Engine,
    wanted: &Wanted,
) -> Result<(SessionId, PostId), Failure> {
    let known = match (&wanted.session, wanted.go_on) {
        (Some(session), _) => Some(SessionId::from(session.as_str())),
        (None, true) => {
            let newest = engine.newest().await.map_err(Problem::from)?;
            Some(newest.ok_or_else(|| {
                Failure::Input(anyhow!("this folder has no session to go on with"))
            })?)
        }
        (None, false) => None,
    };
    if known.is_none() || wanted.model.is_some() {
        let asked = wanted.model.as_deref();
        let checked = wire::check_model(&shell.config.agent_config, asked);
        checked.map_err(Failure::Input)?;
    }
    let agent = wanted.agent.clone().unwrap_or(shell.config.agent.clone());
    let Some(text) = &wanted.prompt else {
        let Some(session) = known else {
            return Err(Failure::Input(anyhow!("say what to do")));
        };
        let prompt = engine.go_on(&session).await.map_err(no_session)?;
        let prompt = prompt.ok_or_else(|| {
            Failure::Input(anyhow!(
                "{session} has nothing left to do; say what to do next"
            ))
        })?;
        return Ok((session, prompt));
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
            engine.begin(begin).await.map_err(Problem::from)?
        }
    };
    let prompt = PostId::from(format!("prompt_{}", Uuid::new_v4().simple()));
    let model = wanted.model.as_deref().map(ModelName::from);
    let asked = Prompt {
        id: prompt.clone(),
        text: text.clone(),
        agent: AgentName::from(agent),
        model,
    };
    let sent = engine.prompt(&session, asked).await;
    sent.map_err(no_session)?;
    Ok((session, prompt))
}

fn no_session(error: HostError) -> Failure {
    match error {
        HostError::NoSession(session) => Failure::Input(anyhow!(
            "there is no session {session}; `asyncagents run --continue` goes on with the newest"
        )),
        error => Problem::from(error).into(),
    }
}

/// Ends in good order. What is left of background tasks goes on in a worker.
async fn close(shell: &Shell, house: House, worker: Worker) {
    worker.stop().await;
    house.hosts.stop().await;
    shell.ensure_worker(&house.manager).await;
}

/// A run that is followed.
struct Run {
    screen: Screen,
    json: bool,
    engine: Engine,
    manager: Manager,
    session: SessionId,
    prompt: PostId,
    /// What the agent has said of its newest answer.
    said: String,
    begun: Instant,
    stopping: bool,
}

/// How a run ended.
struct Ended {
    outcome: Outcome,
    answer: Option<String>,
}

impl Run {
    fn open(&self) {
        match self.json {
            true => self.emit(&json!({"type": "session", "id": self.session.as_str()})),
            false => {
                let sandbox = self.engine.sandbox();
                self.screen.remark(&format!("{} · {sandbox}", self.session));
            }
        }
    }

    /// Shows what happens until the run is over.
    async fn follow(&mut self, mut live: LiveEvents, no_wait: bool) -> Result<Ended, Failure> {
        let mut glances = time::interval(GLANCE);
        glances.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let over = tokio::select! {
                seen = live.next() => match seen {
                    Some((session, live)) if session == self.session => self.show(live)?,
                    Some(_) => false,
                    None => true,
                },
                _ = glances.tick() => {
                    self.show_tasks().await;
                    true
                }
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted.map_err(|error| Failure::Machine(error.into()))?;
                    self.interrupt().await?;
                    true
                }
            };
            if over && let Some(ended) = self.ended().await? {
                if !no_wait {
                    self.show_tasks().await;
                }
                return Ok(ended);
            }
        }
    }

    /// How it ended, if it has.
    async fn ended(&self) -> Result<Option<Ended>, Failure> {
        let inspected = self.engine.inspect(&self.session, &self.prompt).await;
        let standing = inspected.map_err(Problem::from)?.standing;
        Ok(match standing {
            Standing::Done { outcome, answer } => Some(Ended { outcome, answer }),
            Standing::Working | Standing::Unprompted => None,
            Standing::Gone | Standing::Interrupted => Some(Ended {
                outcome: Outcome::Failed {
                    why: "its session was deleted".to_owned(),
                },
                answer: None,
            }),
        })
    }

    /// Shows one thing. True if it may be the end.
    fn show(&mut self, live: Live) -> Result<bool, Failure> {
        if self.json {
            return Ok(self.show_json(live));
        }
        match live {
            Live::Text(text) => self.screen.say(&text)?,
            Live::Answered => self.screen.said()?,
            Live::Again(why) => {
                self.screen.said()?;
                self.screen.remark(&format!("· {why}"));
            }
            Live::Tool { name, target } => {
                let target: String = target.lines().next().unwrap_or_default().to_owned();
                self.screen.remark(&format!("· {name} {target}"));
            }
            Live::ToolEnded { name, error } => {
                if let Some(error) = error {
                    self.screen.remark(&format!("· {name} failed: {error}"));
                }
            }
            Live::Line(line) => self.screen.remark(&format!("  │ {line}")),
            Live::Compacting => self.screen.remark("· the conversation is summarised"),
            Live::Told(_) | Live::Reasoning(_) | Live::Waiting => {}
            Live::Ended(_) => return Ok(true),
        }
        Ok(false)
    }

    fn show_json(&mut self, live: Live) -> bool {
        match live {
            Live::Text(text) => self.said.push_str(&text),
            Live::Again(why) => {
                self.said.clear();
                self.emit(&json!({"type": "again", "why": why}));
            }
            Live::Answered => {
                let text = std::mem::take(&mut self.said);
                if !text.is_empty() {
                    self.emit(&json!({"type": "text", "text": text}));
                }
            }
            Live::Tool { name, target } => {
                self.emit(&json!({"type": "tool", "name": name, "target": target}));
            }
            Live::ToolEnded { name, error } => {
                self.emit(&json!({"type": "tool_ended", "name": name, "error": error}));
            }
            Live::Told(text) => self.emit(&json!({"type": "told", "text": text})),
            Live::Compacting => self.emit(&json!({"type": "compacting"})),
            Live::Reasoning(_) | Live::Line(_) | Live::Waiting => {}
            Live::Ended(_) => return true,
        }
        false
    }

    fn emit(&self, line: &serde_json::Value) {
        // Whoever reads may have read enough; the run goes on.
        let _ = print::json_line(line);
    }

    async fn show_tasks(&self) {
        let tasks = self.all_tasks().await;
        if !self.json {
            self.screen.tasks(&tasks, self.manager.now());
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
    async fn interrupt(&mut self) -> Result<(), Failure> {
        if self.stopping {
            self.screen.end();
            process::exit(INTERRUPTED);
        }
        self.stopping = true;
        self.screen.remark("stopping; Ctrl-C again ends at once");
        let (engine, session) = (self.engine.clone(), self.session.clone());
        let manager = self.manager.clone();
        let live = self.all_tasks().await;
        let live = live.into_iter().filter(|shown| shown.task.is_live());
        let live: Vec<String> = live.map(|shown| shown.task.id.to_string()).collect();
        let stop = async move {
            for task in live {
                if let Err(problem) = manager.cancel(&Caller::Person, &task).await {
                    tracing::warn!(task, %problem, "not cancelled");
                }
            }
            engine.abort(&session).await
        };
        tokio::select! {
            stopped = stop => stopped.map_err(|error| Problem::from(error).into()),
            _ = tokio::signal::ctrl_c() => {
                self.screen.end();
                process::exit(INTERRUPTED)
            }
        }
    }

    /// What it came to.
    async fn totals(&self, ended: &Ended) -> Result<Exit, Failure> {
        let used = self.engine.used(&self.session).await;
        let (own, usage) = used.map_err(Problem::from)?;
        let tasks = self.all_tasks().await;
        let mut spent = Spent {
            tokens: own.tokens,
            cost: own.cost,
            turns: own.turns,
            tool_calls: own.by_tool.values().sum(),
        };
        for shown in &tasks {
            spent = spent.plus(shown.task.progress.spent);
        }
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
                "cost": spent.cost.0 as f64 / 1e6,
                "turns": spent.turns,
                "tool_calls": spent.tool_calls,
                "seconds": took.as_secs_f64(),
                "tasks": tasks,
            }));
        } else {
            if let Some(why) = failed {
                self.screen.remark(&format!("asyncagents: {why}"));
            }
            let mut line = format!(
                "{}, {}, {}, {}, {:.1} s",
                counted(spent.tokens, "token"),
                counted(spent.turns, "answer"),
                counted(spent.tool_calls, "tool call"),
                dollars(spent.cost),
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
        Ok(match failed {
            None => Exit::Done,
            Some(_) => Exit::TaskFailed,
        })
    }
}
