//! Starts an agent and opens a session in it, in the mode in which it asks for permissions.

use std::{
    io,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{lock::lock, wording::listed};
use serde_json::{Map, Value, json};
use tokio::{task::spawn_blocking, time};

use super::{
    capabilities::Capabilities,
    connection::{OpenConnection, Peer},
};
use crate::agent::{
    Connection, EventSender, OpenSession, Programs, START_TIMEOUT, SessionOpened, ToolServer,
    ToolsFor, Which, Wire, WireError,
};

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// No agent's name for a session is longer.
const LONGEST_ID: usize = 500;

/// How an agent is used.
#[derive(Clone, Default)]
pub struct AcpSettings {
    /// What people call it.
    pub name: String,
    /// The mode in which it asks before it changes something, if it does not begin in it.
    pub mode: Option<String>,
    /// The mode in which it only reads.
    pub read_only_mode: Option<String>,
    /// What it is told with each session beside what the protocol has, by its own names.
    pub meta: Option<fn(&OpenSession) -> Value>,
    /// Whether it says what a command is only as the title of its call.
    pub titles_are_commands: bool,
    /// Whether it puts what is embedded behind the prompt, whatever the order: then a context is a text.
    pub puts_context_last: bool,
    /// What is done before a session is loaded.
    pub before_load: Option<BeforeLoad>,
}

/// Gets the agent's name for a session.
pub type BeforeLoad = Arc<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

/// Agents that speak the protocol.
pub struct Acp {
    settings: AcpSettings,
    programs: Arc<dyn Programs>,
}

impl Acp {
    /// An agent whose processes are started so.
    pub fn new(settings: AcpSettings, programs: Arc<dyn Programs>) -> Self {
        Self { settings, programs }
    }

    /// What every way to open a session takes.
    fn params(
        &self,
        open: &OpenSession,
        tools: Option<&ToolServer>,
        can: &Capabilities,
    ) -> Map<String, Value> {
        let mut params = Map::new();
        params.insert("cwd".to_owned(), json!(open.folder));
        params.insert("mcpServers".to_owned(), servers(tools));
        if let Some(meta) = self.settings.meta {
            params.insert("_meta".to_owned(), meta(open));
        }
        if let Some(text) = open
            .instructions
            .as_ref()
            .filter(|_| can.takes_instructions)
        {
            let content = json!([{"type": "text", "text": text}]);
            let prompt = json!({"mode": "append", "content": content});
            params.insert("systemPrompt".to_owned(), prompt);
        }
        params
    }

    /// Sets the mode, by whichever way the agent offers it.
    async fn set_mode(
        &self,
        peer: &Peer,
        open: &OpenSession,
        session: &str,
        answer: &Value,
    ) -> Result<(), WireError> {
        let settings = &self.settings;
        let wanted = if open.reads_only {
            let why = || {
                let why = format!("{} has no mode in which it only reads", settings.name);
                WireError::NotStarted(why)
            };
            Some(settings.read_only_mode.as_ref().ok_or_else(why)?)
        } else {
            settings.mode.as_ref()
        };
        let modes = &answer["modes"];
        let named = ids(&modes["availableModes"], "id");
        let Some(wanted) = wanted else {
            if named.is_empty() {
                return Ok(());
            }
            let (name, modes) = (&settings.name, listed(&named, "and"));
            return Err(WireError::NotStarted(format!(
                "{name} has the modes {modes}; say in which it asks before it changes something: \
                 hosts.{name}.mode"
            )));
        };
        if named.contains(&wanted.as_str()) {
            if modes["currentModeId"].as_str() == Some(wanted) {
                return Ok(());
            }
            let params = json!({"sessionId": session, "modeId": wanted});
            return peer.ask("session/set_mode", params).await.map(drop);
        }
        self.set_option(peer, session, answer, ("mode", wanted))
            .await
    }

    /// Sets one of the options that the agent offers.
    async fn set_option(
        &self,
        peer: &Peer,
        session: &str,
        answer: &Value,
        (option, wanted): (&str, &str),
    ) -> Result<(), WireError> {
        let options = answer["configOptions"].as_array().into_iter().flatten();
        let mut options = options.filter(|known| known["id"] == option);
        let known = options.next().unwrap_or(&Value::Null);
        let offered = ids(&known["options"], "value");
        // A model may be named with its provider.
        let short = wanted.rsplit('/').next().unwrap_or(wanted);
        let value = [wanted, short]
            .into_iter()
            .find(|name| offered.contains(name));
        let Some(value) = value else {
            let name = &self.settings.name;
            let why = match offered.as_slice() {
                [] => format!("{name} lets nobody choose its {option}"),
                offered => format!(
                    "{name} has no {option} `{wanted}`; it has {}",
                    listed(offered, "and")
                ),
            };
            return Err(WireError::NotStarted(why));
        };
        let params = json!({"sessionId": session, "configId": option, "value": value});
        peer.ask("session/set_config_option", params)
            .await
            .map(drop)
    }

    async fn set_model(
        &self,
        peer: &Peer,
        session: &str,
        answer: &Value,
        wanted: &str,
    ) -> Result<(), WireError> {
        let models = ids(&answer["models"]["availableModels"], "modelId");
        let short = wanted.rsplit('/').next().unwrap_or(wanted);
        let listed = [wanted, short]
            .into_iter()
            .find(|name| models.contains(name));
        match listed {
            Some(model) => {
                let params = json!({"sessionId": session, "modelId": model});
                peer.ask("session/set_model", params).await.map(drop)
            }
            None => {
                let option = ("model", wanted);
                self.set_option(peer, session, answer, option).await
            }
        }
    }

    /// Opens the session in a process.
    async fn open(
        &self,
        open: &OpenSession,
        peer: Peer,
        tools: Option<&ToolServer>,
        process: Option<String>,
    ) -> Result<Box<dyn Connection>, WireError> {
        let name = &self.settings.name;
        let initialized = peer.ask("initialize", initialize()).await?;
        if initialized["protocolVersion"].as_u64() != Some(VERSION) {
            let theirs = &initialized["protocolVersion"];
            let why = format!("{name} speaks version {theirs} of the protocol, not {VERSION}");
            return Err(WireError::NotStarted(why));
        }
        let mut capabilities = Capabilities::read(&initialized);
        capabilities.embeds_context &= !self.settings.puts_context_last;
        let mut params = self.params(open, tools, &capabilities);
        let mut with_session = |session: &str| {
            params.insert("sessionId".to_owned(), json!(session));
        };
        let (method, loaded) = match &open.which {
            Which::New => ("session/new", None),
            Which::Load(session) if capabilities.loads => {
                with_session(session);
                peer.heard.look_for(&open.look_for);
                ("session/load", Some(session))
            }
            Which::Fork(session) if capabilities.forks => {
                with_session(session);
                ("session/fork", None)
            }
            Which::Load(session) => {
                let why = format!("{name} cannot load the session {session}");
                return Err(WireError::NoSession(why));
            }
            Which::Fork(_) => {
                let why = format!("{name} cannot fork its sessions; use another preset of fork");
                return Err(WireError::NotStarted(why));
            }
        };
        let asked = peer.ask(method, Value::Object(params)).await;
        let answer = match asked {
            // Agents have different errors for a session that is not there.
            Err(WireError::Failed(why)) if loaded.is_some() => {
                return Err(WireError::NoSession(why));
            }
            asked => asked?,
        };
        if let Some(session) = loaded {
            peer.hear_all().await?;
            // A session that is kept is one in which something was said.
            if peer.heard.replayed() == 0 {
                let why = format!("{name} has the session {session} with nothing in it");
                return Err(WireError::NoSession(why));
            }
        }
        let new = answer["sessionId"].as_str();
        let new = new.filter(|id| (1..=LONGEST_ID).contains(&id.len()));
        let id = loaded.map(String::as_str).or(new);
        let no_id = || WireError::Failed(format!("{name} gave its session no name"));
        let id = id.ok_or_else(no_id)?.to_owned();
        self.set_mode(&peer, open, &id, &answer).await?;
        if let Some(model) = &open.model {
            self.set_model(&peer, &id, &answer, model).await?;
        }
        let found = peer.heard.found();
        peer.heard.opened(&id, model_of(&answer));
        // One that has got nothing has not got these either.
        let is_new = loaded.is_none() || found.is_empty() && !open.has_answered;
        let first = open.instructions.clone();
        let first = first.filter(|_| is_new && !capabilities.takes_instructions);
        Ok(Box::new(OpenConnection {
            peer,
            opened: SessionOpened {
                id,
                found,
                process,
                forks: capabilities.forks,
            },
            capabilities,
            first: Mutex::new(first),
        }))
    }
}

#[async_trait]
impl Wire for Acp {
    async fn start(
        &self,
        open: &OpenSession,
        events: EventSender,
    ) -> Result<Box<dyn Connection>, WireError> {
        let name = &self.settings.name;
        if let Some(process) = &open.ends {
            self.programs.end(process).await;
        }
        if let (Which::Load(session), Some(before)) = (&open.which, &self.settings.before_load) {
            let (before, id) = (before.clone(), session.clone());
            let done = spawn_blocking(move || before(&id)).await;
            if let Err(error) = done.map_err(io::Error::other).flatten() {
                tracing::warn!(%error, session, "what comes before it is loaded");
            }
        }
        let tools = if open.may_delegate {
            ToolsFor::Session(open.ours.clone())
        } else {
            ToolsFor::Nobody
        };
        let program = self.programs.start(&[], tools).await;
        let program = program?;
        let tools = program.tools.clone();
        let process = program.process.clone();
        let peer = Peer::connect(&self.settings, program, events).await?;
        let (errors, asked) = (peer.errors.clone(), peer.asked.clone());
        let opening = self.open(open, peer, tools.as_ref(), process);
        time::timeout(START_TIMEOUT, opening)
            .await
            .unwrap_or_else(|_| {
                let (seconds, asked) = (START_TIMEOUT.as_secs(), lock(&asked).clone());
                let why = format!("{name} has not answered `{asked}` within {seconds} seconds");
                Err(WireError::NotStarted(errors.explain(&why)))
            })
    }
}

fn initialize() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
            "elicitation": {"form": {}},
        },
        "clientInfo": {
            "name": "asyncagents",
            "title": "asyncagents",
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}

fn servers(tools: Option<&ToolServer>) -> Value {
    let server = |tools: &ToolServer| {
        let variable = |(name, value): &(String, String)| json!({"name": name, "value": value});
        json!({
            "name": tools.name,
            "command": tools.command,
            "args": tools.arguments,
            "env": tools.environment.iter().map(variable).collect::<Vec<_>>(),
        })
    };
    Value::Array(tools.map(server).into_iter().collect())
}

/// The model that works in a session, where the agent names it at once.
fn model_of(answer: &Value) -> Option<&str> {
    let options = answer["configOptions"].as_array().into_iter().flatten();
    let mut options = options.filter(|option| option["id"] == "model");
    let current = answer["models"]["currentModelId"].as_str();
    current.or_else(|| options.next()?["currentValue"].as_str())
}

fn ids<'v>(list: &'v Value, name: &str) -> Vec<&'v str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|entry| entry[name].as_str()).collect()
}
