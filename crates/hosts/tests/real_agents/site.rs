//! A journal, a real agent, and the process of ours that has both.

use std::{
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::Kind,
    id::{OwnerId, SessionId, TaskId},
    port::{Clock, Host},
};
use asyncagents_hosts::{
    acp::Acp,
    agent::{
        AgentHost, AgentSettings, AskedCall, ErrorTail, Judge, Parts, Profile, Program, Programs,
        ToolsFor, Verdict, WireError,
    },
};
use asyncagents_scripted_model::ModelServer;
use asyncagents_store::Sqlite;
use asyncagents_testkit::{
    answered_person::answered_person,
    clock::SetClock,
    host_contract::{Abilities, Site},
};

use crate::{
    agent::Agent,
    home::Home,
    processes,
    script::{ASKS, NOTES, script},
};

/// A variable by which a process and all that it has started are found.
const MARK: &str = "PROCESS_OF_A_STORY";

/// A real agent, its home and its model.
pub(crate) struct RealAgent {
    model: ModelServer,
    store: Arc<Sqlite>,
    clock: Arc<SetClock>,
    programs: Arc<RealPrograms>,
    host: Mutex<AgentHost>,
}

/// Starts its processes.
struct RealPrograms {
    agent: Agent,
    command: Vec<String>,
    home: Home,
    started: AtomicU64,
}

/// Nothing is decided before somebody is asked, but that files may be read: goose asks about that, too.
struct AskAboutChanges;

impl Judge for AskAboutChanges {
    fn judge(&self, call: &AskedCall) -> Verdict {
        if call.kind == Some(Kind::Run) && call.target.starts_with("cat ") {
            return Verdict::Allow;
        }
        Verdict::Ask
    }
}

impl RealAgent {
    /// The agent in a home of its own. It has to be there.
    pub(crate) async fn new(agent: Agent) -> Self {
        let home = Home::new();
        home.write("project/notes.md", NOTES);
        let model = ModelServer::start(script(agent, &home.path("project/notes.md"))).await;
        let model = model.expect("a port");
        home.ask_at(&model.url());
        let store = Sqlite::open(home.path("tasks.db")).expect("a store");
        let programs = Arc::new(RealPrograms {
            agent,
            command: agent.command().expect("it is there"),
            home,
            started: AtomicU64::new(0),
        });
        let (store, clock) = (Arc::new(store), Arc::new(SetClock::start()));
        let host = Mutex::new(connect(&programs, &store, &clock));
        Self {
            model,
            store,
            clock,
            programs,
            host,
        }
    }
}

fn connect(programs: &Arc<RealPrograms>, store: &Arc<Sqlite>, clock: &Arc<SetClock>) -> AgentHost {
    let agent = programs.agent;
    let profile = |name: &str, reads_only| Profile {
        name: name.into(),
        instructions: format!("You are {name}."),
        reads_only,
    };
    let owner: Option<OwnerId> = None;
    let settings = agent.settings(&programs.home.path("home"));
    AgentHost::new(Parts {
        settings: AgentSettings {
            name: agent.name().to_owned(),
            folder: programs.home.path("project").display().to_string(),
            prefix: "asyncagents_".to_owned(),
            profiles: vec![profile("general", false), profile("explore", true)],
        },
        store: store.clone(),
        clock: clock.clone(),
        wire: Arc::new(Acp::new(settings, programs.clone())),
        judge: Arc::new(AskAboutChanges),
        prices: Arc::new(|_, _| None),
        owner: Arc::new(move || owner.clone()),
    })
}

/// Ends a process and all that it has started.
struct EndOnDrop(String);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        processes::end_all_with(&self.0);
    }
}

#[async_trait]
impl Programs for RealPrograms {
    async fn start(&self, arguments: &[String], _: ToolsFor) -> Result<Program, WireError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let place = self.home.path("").display().to_string();
        let process = format!("{MARK}={place}{number};");
        let (name, value) = process.split_once('=').expect("a variable");
        let mut command = self.home.command(&self.command[0]);
        command.args(&self.command[1..]).args(arguments);
        command.env(name, value).envs(self.agent.variables());
        let mut command = tokio::process::Command::from(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = command
            .spawn()
            .map_err(|error| WireError::NotStarted(error.to_string()))?;
        let pipes = (
            running.stdin.take(),
            running.stdout.take(),
            running.stderr.take(),
        );
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(WireError::NotStarted("it has no pipes".to_owned()));
        };
        Ok(Program {
            input: Box::new(input),
            output: Box::new(output),
            errors: ErrorTail::read(errors),
            process: Some(process.clone()),
            tools: None,
            hook: None,
            end: Box::new(EndOnDrop(process)),
        })
    }

    async fn end(&self, process: &str) {
        processes::end_all_with(process);
    }
}

#[async_trait]
impl Site for RealAgent {
    fn abilities(&self) -> Abilities {
        Abilities {
            keeps_posts_once: true,
            has_foreign_sessions: true,
            ..Abilities::default()
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(self.host.lock().expect("not poisoned").clone())
    }

    async fn parent(&self) -> SessionId {
        answered_person(&*self.store, self.clock.now()).await
    }

    async fn shown(&self, session: &SessionId) -> String {
        let digits = session.as_str().rsplit('_').next().expect("digits");
        let task = format!("{}{digits}", TaskId::KIND);
        let mut requests = self.model.requests();
        // Some ask for a title of what they were told.
        requests.retain(|request| !request.tool_names().is_empty());
        let mut texts = requests.iter().rev().map(|request| request.text());
        texts.find(|text| text.contains(&task)).unwrap_or_default()
    }

    fn tool(&self) -> &'static str {
        self.programs.agent.tool_that_reads()
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASKS
    }

    async fn restart(&self) {
        let host = self.host.lock().expect("not poisoned").clone();
        host.stop().await;
        let next = connect(&self.programs, &self.store, &self.clock);
        *self.host.lock().expect("not poisoned") = next;
    }
}
