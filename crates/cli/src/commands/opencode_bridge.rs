//! `asyncagents opencode-bridge`: the process that the plugin in OpenCode talks to. It works on the
//! tasks of that OpenCode until OpenCode ends.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolOutcome, ToolSpec},
    answer::Shown,
    id::{SessionId, TaskId},
    lock::lock,
    moment::Moment,
    notify,
    task::{Outcome, State, Task},
    tool_set,
};
use asyncagents_hosts::{
    opencode::{self, AgentNote, EVENTS, OpenCode},
    plugin::{self, Answer, Bounds, BridgeConnection, BridgeHandler, PluginLink, ToolCall},
};
use asyncagents_runtime::{Manager, ToolDoor, Worker};
use tokio::{
    io::{stdin, stdout},
    signal::unix::{SignalKind, signal},
    task::{JoinSet, spawn_blocking},
    time,
};

use super::CommandContext;
use crate::{
    compose::{App, AppOptions},
    exit::{Exit, Failure},
    hosts::{Bridges, HostOptions, KnownHosts},
    launch_secrets::Overrides,
};

/// Why tasks fail whose OpenCode has ended.
const ENDED: &str = "OpenCode ended while it worked; resume it to go on from there";
/// How long a process may live on after its pipes were closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request to a model waits for the list of agents.
const AGENTS_TIMEOUT: Duration = Duration::from_millis(4_500);
/// A list of agents that is older is refreshed in the background.
const AGENTS_MAX_AGE: Duration = Duration::from_secs(5);

pub(super) fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let runtime = super::two_threads()?;
    let done = runtime.block_on(bridge(context));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    done
}

async fn bridge(context: &CommandContext) -> Result<Exit, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.into());
    let bridges = Arc::new(Bridges::default());
    let options = AppOptions {
        hosts: HostOptions {
            bridges: Some(bridges.clone()),
            ..HostOptions::default()
        },
        ..AppOptions::default()
    };
    let App { manager, hosts } = context.open(options)?;
    let worker = Worker::start(&manager).await?;
    tracing::info!(db = %context.config.db.display(), "bridge started");
    let handler = Arc::new(PluginHandler {
        manager: manager.clone(),
        hosts,
        overrides: context.overrides.clone(),
        bridges: bridges.clone(),
        prefix: context.config.prefix.clone(),
        doors: Mutex::default(),
        agents: Arc::default(),
        refreshing: Mutex::default(),
    });
    let mut toasts = JoinSet::new();
    toasts.spawn(toast(manager.clone(), bridges.clone()));
    // Ctrl-C in OpenCode's terminal is meant for OpenCode; the bridge ends when it does.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(machine)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(machine)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(machine)?;
    let served = {
        let mut served = std::pin::pin!(plugin::serve(stdin(), stdout(), EVENTS, handler));
        loop {
            tokio::select! {
                served = &mut served => break served,
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
                _ = terminate.recv() => break Ok(()),
            }
        }
    };
    toasts.shutdown().await;
    if let Err(error) = served {
        tracing::warn!(%error, "lost the connection to the plugin");
    }
    // Another bridge takes the tasks over if OpenCode lives.
    if let Some(process) = bridges.process()
        && is_gone(&process).await
    {
        manager.host_ended(ENDED).await?;
    }
    worker.stop().await;
    tracing::info!("bridge stopped");
    Ok(Exit::Done)
}

/// Whether a process has ended, or does so within the timeout.
async fn is_gone(process: &str) -> bool {
    let gone = async {
        while opencode::process::is_alive(process) {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(EXIT_TIMEOUT, gone).await.is_ok()
}

struct PluginHandler {
    manager: Manager,
    hosts: Arc<KnownHosts>,
    /// Settings of the built-in agent and of skills that the environment and the flags override.
    overrides: Overrides,
    bridges: Arc<Bridges>,
    prefix: String,
    doors: Mutex<HashMap<String, Arc<ToolDoor>>>,
    agents: Arc<Agents>,
    /// Refreshes lists of agents in the background.
    refreshing: Mutex<JoinSet<()>>,
}

/// The agents of each folder, as OpenCode last listed them. A model waits only for the first list.
#[derive(Default)]
struct Agents(Mutex<HashMap<String, Listed>>);

#[derive(Clone)]
struct Listed {
    at: time::Instant,
    agents: Vec<AgentNote>,
}

impl Agents {
    fn get(&self, directory: &str) -> Option<Listed> {
        lock(&self.0).get(directory).cloned()
    }

    async fn refresh(&self, directory: &str, host: &OpenCode) {
        match host.agent_notes().await {
            Ok(agents) => {
                let at = time::Instant::now();
                let listed = Listed { at, agents };
                lock(&self.0).insert(directory.to_owned(), listed);
            }
            Err(error) => tracing::warn!(%error, "cannot list the agents of OpenCode"),
        }
    }
}

impl PluginHandler {
    /// Refreshes the list of a folder's agents in the background.
    fn refresh_agents(&self, directory: &str) {
        let Some(host) = self.bridges.in_folder(directory) else {
            return;
        };
        let (agents, directory) = (self.agents.clone(), directory.to_owned());
        let mut refreshing = lock(&self.refreshing);
        while refreshing.try_join_next().is_some() {}
        refreshing.spawn(async move { agents.refresh(&directory, &host).await });
    }

    /// The agents of a folder; nothing if OpenCode is too slow.
    async fn agents(&self, directory: &str) -> Vec<AgentNote> {
        if let Some(listed) = self.agents.get(directory) {
            if listed.at.elapsed() > AGENTS_MAX_AGE {
                self.refresh_agents(directory);
            }
            return listed.agents;
        }
        if let Some(host) = self.bridges.in_folder(directory) {
            let listed = self.agents.refresh(directory, &host);
            if time::timeout(AGENTS_TIMEOUT, listed).await.is_err() {
                tracing::warn!("timed out listing the agents of OpenCode");
            }
        }
        let listed = self.agents.get(directory);
        listed.map_or_else(Vec::new, |listed| listed.agents)
    }
}

#[async_trait]
impl BridgeHandler for PluginHandler {
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec> {
        let directory = instance.directory().to_owned();
        let host = self.bridges.connect(instance, &self.prefix);
        tracing::info!(%host, "OpenCode connected");
        let mut door = ToolDoor::new(&self.manager, host.into());
        match self.hosts.skills_in(Path::new(&directory), &self.overrides) {
            Ok(skills) => door = door.with_skills(skills),
            Err(error) => tracing::warn!(error = format!("{error:#}"), "cannot load skills"),
        }
        self.refresh_agents(&directory);
        lock(&self.doors).insert(directory, Arc::new(door));
        self.manager.look_again();
        tool_set::specs_with_skill(&self.prefix, None)
    }

    async fn tools(&self, directory: &str) -> Vec<ToolSpec> {
        let door = lock(&self.doors).get(directory).cloned();
        let disclosed = spawn_blocking(move || door?.disclosed()).await;
        let disclosed = disclosed.ok().flatten();
        let mut tools = tool_set::specs_with_skill(&self.prefix, disclosed.as_deref());
        let agents = self.agents(directory).await;
        let lines = agents.iter().map(|agent| {
            if agent.about.is_empty() {
                format!("- {}", agent.name)
            } else {
                format!("- {}: {}", agent.name, agent.about)
            }
        });
        let lines: Vec<String> = lines.collect();
        if let Some(task) = tools.first_mut().filter(|_| !lines.is_empty()) {
            let list = format!("\n\nAgents:\n{}", lines.join("\n"));
            task.description.push_str(&list);
        }
        tools
    }

    async fn call(&self, call: ToolCall) -> Result<Answer, String> {
        let door = lock(&self.doors).get(&call.directory).cloned();
        let Some(door) = door else {
            return Err(format!("asyncagents does not know {}", call.directory));
        };
        if let Some(host) = self.bridges.in_folder(&call.directory) {
            host.wake(&call.session);
        }
        let prepared = tool_set::prepare(&self.prefix, &call.tool, &call.input)
            .map_err(|error| error.to_string())?;
        let title = Some(prepared.request.title().to_owned()).filter(|title| !title.is_empty());
        let outcome = door.call_from(&call.session, call.message, prepared.request);
        match outcome.await {
            ToolOutcome::Done(output) => Ok(Answer { output, title }),
            ToolOutcome::Failed(why) => Err(why),
            ToolOutcome::Unknown => Err("what came of it is not known".to_owned()),
        }
    }

    async fn goodbye(&self, directory: &str) {
        tracing::info!(directory, "OpenCode closed a folder");
    }

    async fn hello_opencode2(&self, opencode: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String> {
        tracing::warn!(pid = opencode.pid(), "OpenCode 2 is not served");
        Err("this version of asyncagents does not serve OpenCode 2".to_owned())
    }

    async fn bounds(&self, session: &SessionId) -> Result<Bounds, String> {
        Err(format!("no task works in {session}"))
    }

    async fn goodbye_opencode2(&self) {}
}

/// Shows on OpenCode's screen what begins and what ends, each once.
async fn toast(manager: Manager, bridges: Arc<Bridges>) {
    let begun = manager.now();
    let mut shown: HashSet<(TaskId, u32, bool)> = HashSet::new();
    let mut position = None;
    loop {
        let changed = manager.changed(position, Duration::from_secs(3600)).await;
        let (tasks, newest) = match changed {
            Ok(changed) => changed,
            Err(problem) => {
                tracing::warn!(%problem, "cannot read the tasks, retrying");
                time::sleep(Duration::from_secs(5)).await;
                continue;
            }
        };
        position = Some(newest);
        for Shown { task, .. } in tasks {
            // Only tasks that a person's session launched are shown.
            let Some(host) = bridges
                .named(&task.brief.host.host)
                .filter(|_| task.place.depth == 1)
            else {
                continue;
            };
            let Some((message, variant)) = toast_of(&task, begun) else {
                continue;
            };
            if shown.insert((task.id.clone(), task.run, task.is_live()))
                && let Err(error) = host.toast(&message, variant).await
            {
                tracing::debug!(%error, "a toast was not shown");
            }
        }
    }
}

/// The toast about what happened to a task since a moment, and its colour.
fn toast_of(task: &Task, since: Moment) -> Option<(String, &'static str)> {
    match &task.state {
        State::Running { since: at, .. } if *at >= since => {
            let (description, agent) = (&task.brief.description, &task.brief.agent);
            Some((
                format!("Agent \"{description}\" started (@{agent})."),
                "info",
            ))
        }
        State::Ended { at, outcome, .. } if *at >= since => {
            let (mark, headline) = notify::headline(task)?;
            let variant = match outcome {
                Outcome::Completed => "success",
                Outcome::Failed { .. } => "error",
                Outcome::Cancelled => "warning",
            };
            Some((format!("{mark} {headline}"), variant))
        }
        State::Queued { .. } | State::Running { .. } | State::Ended { .. } => None,
    }
}
