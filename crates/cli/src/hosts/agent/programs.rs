//! Starts the process of an agent: which program, with what of the user's, in which sandbox.

use std::{
    any::Any,
    env,
    ffi::OsString,
    fs, io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use asyncagents_hosts::{
    agent::{
        CHILD_VARIABLE, ErrorTail, Program, Programs, ToolServer, ToolsFor, WireError, hook_door,
    },
    agent_needs::{Needs, needs},
    agent_rules::{
        AgentPlace, Held, asks_by_hook, check_project, policy, shows_variables_of_servers,
        variables,
    },
    opencode::process,
    proxy::{AllowedHosts, DoorStream, Proxy, ProxySetup, WayOut},
};
use asyncagents_tools::{
    AgentCommand, AgentFiles, AgentLimits, AgentNetwork, AgentProcess, AgentStartError, Settings,
    agent_environment,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;
use tokio::{task::spawn_blocking, time};

use super::tools::ChildTools;
use crate::{
    adapters::{Adapter, AgentProgram, find_adapter, find_own_program},
    config::{AgentHostConfig, allow},
    on_path::{find_on_path, is_program},
};

/// How long a process of another worker may take to end, and how often it is looked for.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What our server of tools is called in other agents.
const TOOLS: &str = "asyncagents";

/// Which program speaks for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// One that speaks ACP: the user's, a known adapter, or the agent itself.
    Acp,
    /// Claude Code itself.
    Claude,
}

/// Starts the processes of one agent in one folder.
#[derive(Clone)]
pub(super) struct AgentPrograms {
    pub(super) name: String,
    pub(super) said: AgentHostConfig,
    pub(super) folder: PathBuf,
    pub(super) home: PathBuf,
    pub(super) tools: Arc<Settings>,
    pub(super) speaker: Speaker,
    /// Whether it is to ask also before it reads.
    pub(super) asks_to_read: bool,
    pub(super) door: Arc<ChildTools>,
}

type Variables = Vec<(OsString, OsString)>;

/// A program and its arguments.
struct Found {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// What it consists of.
    folders: Vec<PathBuf>,
}

/// How a process reaches its model and us.
struct Doors {
    may_delegate: bool,
    /// The program of its hook.
    hook: Option<PathBuf>,
    /// How its hook, and what it starts, find us, if that is not said to each of them.
    variables: Variables,
    /// How it finds its proxy, which is on this port.
    proxied: Variables,
    port: u16,
    /// The port that it listens on itself.
    listens: Option<u16>,
}

/// What is kept as long as a process: its proxy, its rules, and what ends it.
struct Kept {
    _proxy: Proxy,
    _policy: Option<NamedTempFile>,
    _life: Box<dyn Any + Send + Sync>,
}

/// What starts an agent whose command the user has not set.
///
/// # Errors
/// With a sentence that says what to set.
pub(super) fn known_program(name: &str) -> anyhow::Result<&'static AgentProgram> {
    let known = AgentProgram::named(name);
    known.ok_or_else(|| anyhow!("it is not said how `{name}` is started; set hosts.{name}.command"))
}

impl AgentPrograms {
    /// The program, if there is one.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    async fn find(&self) -> anyhow::Result<Found> {
        if let [program, arguments @ ..] = self.said.command.as_slice() {
            let found = find_said(&self.name, program, &self.folder)?;
            let real = found.canonicalize().unwrap_or_else(|_| found.clone());
            return Ok(Found {
                folders: real.parent().map(Path::to_owned).into_iter().collect(),
                program: found,
                arguments: arguments.iter().map(OsString::from).collect(),
            });
        }
        match self.speaker {
            Speaker::Acp => {
                let known = known_program(&self.name)?;
                let Adapter {
                    program,
                    arguments,
                    folders,
                    ..
                } = find_adapter(known, &self.folder).await?;
                Ok(Found {
                    program,
                    arguments,
                    folders,
                })
            }
            Speaker::Claude => {
                let known = AgentProgram::named(&self.name);
                let found = known.and_then(|known| find_own_program(known, &self.folder));
                let program = found.ok_or_else(|| anyhow!("there is no `claude` on the PATH"))?;
                let real = program.canonicalize().unwrap_or_else(|_| program.clone());
                Ok(Found {
                    folders: real.parent().map(Path::to_owned).into_iter().collect(),
                    program,
                    arguments: Vec::new(),
                })
            }
        }
    }

    /// Where it works, as its rules want to know it.
    pub(super) fn place(&self) -> AgentPlace<'_> {
        AgentPlace {
            home: &self.home,
            project: &self.folder,
            is_sandboxed: self.is_sandboxed(),
            asks_to_read: self.asks_to_read,
            variable: |name| env::var_os(name),
        }
    }

    fn is_sandboxed(&self) -> bool {
        self.said.sandbox != Some(false)
    }

    fn needs(&self) -> Option<&'static Needs> {
        needs(&self.name)
    }

    /// What it may reach: the hosts of its models, and itself where it listens.
    fn allowed_hosts(&self, listens: Option<u16>) -> Result<AllowedHosts, String> {
        let mut allowed = match self.needs() {
            Some(needs) => needs.allowed_hosts(&self.home, |name| env::var_os(name))?,
            None => AllowedHosts::new(),
        };
        if let Some(port) = listens {
            allowed = allowed.own_server(&format!("http://127.0.0.1:{port}"))?;
        }
        let mut said = self.said.servers.iter().map(String::as_str);
        said.try_fold(allowed, allow)
    }

    fn environment(&self, held: Held<'_>) -> Variables {
        let of_settings = self
            .needs()
            .map(|needs| needs.keys_in_settings(&self.home, |name| env::var_os(name)))
            .unwrap_or_default();
        let known = self
            .needs()
            .map(|needs| needs.variables)
            .unwrap_or_default();
        let said = self.said.variables.iter().chain(&of_settings);
        let own: Vec<&str> = known
            .iter()
            .copied()
            .chain(said.map(String::as_str))
            .collect();
        let mut environment = agent_environment(&self.tools, &own, env::vars_os());
        let set = self.needs().map(|needs| needs.set).unwrap_or_default();
        environment.extend(set.iter().map(|(name, value)| (name.into(), value.into())));
        environment.push((CHILD_VARIABLE.into(), "1".into()));
        let of_rules = variables(&self.name, self.place(), held).into_iter();
        environment.extend(of_rules.map(|(name, value)| (name.into(), value.into())));
        environment
    }

    /// Its files in the sandbox, and the variables that lead it there.
    fn files(
        &self,
        folders: Vec<PathBuf>,
        policy: Option<&Path>,
    ) -> anyhow::Result<(AgentFiles, Variables)> {
        let mut files = AgentFiles {
            writable: self.said.writable.clone(),
            readable: policy.map(Path::to_owned).into_iter().collect(),
            program: folders,
            ..AgentFiles::default()
        };
        let mut variables = Vec::new();
        if let Some(needs) = self.needs() {
            let variable = |name: &str| env::var_os(name);
            let made = needs.make_files(&self.home, &self.folder, variable);
            made.with_context(|| format!("the files of {}", self.name))?;
            let own = needs.files(&self.home, &self.folder, variable);
            files.writable.extend(own.writable);
            files.readable.extend(own.readable);
            files.closed.extend(own.closed);
            variables = own.variables;
        }
        // The relay to our tools is this program.
        files.readable.extend(env::current_exe());
        // Only what is there can be granted.
        files.writable.retain(|path| path.exists());
        files.readable.retain(|path| path.exists());
        files.program.retain(|path| path.exists());
        Ok((files, variables))
    }

    /// What it is started with, as far as files say, and a file that it reads. This reads many.
    fn command(
        &self,
        found: Found,
        doors: &Doors,
    ) -> anyhow::Result<(AgentCommand, Option<NamedTempFile>)> {
        check_project(&self.name, self.place()).map_err(|why| anyhow!(why))?;
        let held = Held {
            may_delegate: doors.may_delegate,
            asks_to_read: self.asks_to_read,
            hook: doors.hook.as_deref(),
        };
        let mut environment = self.environment(held);
        environment.extend(doors.variables.iter().cloned());
        let mut arguments = found.arguments;
        let policy = self.policy(held).context("the rules of the agent")?;
        let (argument, policy) = policy.unzip();
        if let (Some(argument), Some(file)) = (argument, &policy) {
            arguments.extend([argument.into(), file.path().into()]);
        }
        let sandbox = if self.is_sandboxed() {
            environment.extend(doors.proxied.iter().cloned());
            if let Some(port) = doors.listens {
                arguments.extend(["--port".into(), port.to_string().into()]);
            }
            let network = AgentNetwork::Only {
                port: doors.port,
                listens: doors.listens,
            };
            let policy = policy.as_ref().map(NamedTempFile::path);
            let (files, variables) = self.files(found.folders, policy)?;
            environment.extend(variables);
            Some(AgentLimits::of(&self.tools, &files, network)?)
        } else {
            // It goes out as the user does.
            let proxies = env::vars_os().filter(|(name, _)| is_proxy(name));
            environment.extend(proxies);
            None
        };
        let command = AgentCommand {
            program: found.program,
            arguments,
            folder: self.folder.clone(),
            environment,
            helper: self.tools.helper.clone(),
            resources: self.tools.resources,
            sandbox,
        };
        Ok((command, policy))
    }

    /// Writes down what it is held to, where it reads that from a file.
    fn policy(&self, held: Held<'_>) -> io::Result<Option<(&'static str, NamedTempFile)>> {
        let Some((argument, text)) = policy(&self.name, held) else {
            return Ok(None);
        };
        let mut file = tempfile::Builder::new();
        let file = file.prefix("asyncagents-").suffix(".toml").tempfile()?;
        // It would be taken for the names of two.
        if file.path().to_string_lossy().contains(',') {
            return Err(io::Error::other(
                "the folder of temporary files has a comma",
            ));
        }
        fs::write(file.path(), text)?;
        Ok(Some((argument, file)))
    }

    /// The process; or how it has ended, if it has before it began.
    async fn try_start(
        &self,
        arguments: &[String],
        tools: ToolsFor,
    ) -> anyhow::Result<Result<Program, String>> {
        let found = self.find().await?;
        let session = match tools {
            ToolsFor::Nobody => None,
            ToolsFor::Session(session) => Some(session),
        };
        let may_delegate = session.is_some();
        let door = session.map(|session| {
            let door = self.door.of_session(session);
            Arc::new(door) as Arc<dyn DoorStream>
        });
        let listens = self.needs().filter(|needs| needs.listens);
        let listens = listens.map(|_| free_port()).transpose()?;
        let program = env::current_exe()?;
        let asks_by_hook = asks_by_hook(&self.name, self.is_sandboxed());
        let (permissions, hook) = asks_by_hook.then(hook_door).unzip();
        let programs = self.clone();
        let allowed = spawn_blocking(move || programs.allowed_hosts(listens)).await?;
        let proxy = Proxy::start(ProxySetup {
            allowed: allowed.map_err(|why| anyhow!(why))?,
            tools: door,
            permissions,
            way_out: WayOut::from_variables(|name| env::var(name).ok()),
        })?;
        let (variable, value) = proxy.doors_environment();
        let by_environment = shows_variables_of_servers(&self.name) && may_delegate;
        let own = (asks_by_hook || by_environment)
            .then(|| (OsString::from(&variable), OsString::from(&value)));
        let proxied = proxy.environment().into_iter();
        let doors = Doors {
            may_delegate,
            hook: asks_by_hook.then(|| program.clone()),
            variables: own.into_iter().collect(),
            proxied: proxied
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            port: proxy.port(),
            listens,
        };
        let programs = self.clone();
        let command = spawn_blocking(move || programs.command(found, &doors));
        let (mut command, policy) = command.await??;
        command
            .arguments
            .extend(arguments.iter().map(OsString::from));
        let started = AgentProcess::start(command).await;
        let mut process = started.map_err(|error| self.not_started(error))?;
        if process.life.pid().is_none() {
            return Ok(Err(process.life.wait().await));
        }
        let server = may_delegate.then(|| ToolServer {
            name: TOOLS.to_owned(),
            command: program.display().to_string(),
            arguments: vec!["mcp".to_owned(), "--connect".to_owned()],
            environment: Vec::from_iter((!by_environment).then_some((variable, value))),
        });
        Ok(Ok(Program {
            input: Box::new(process.input),
            output: Box::new(process.output),
            errors: ErrorTail::read(process.errors),
            process: process
                .life
                .pid()
                .map(|pid| format!("{pid}/{}", process::identity(pid))),
            tools: server,
            hook,
            end: Box::new(Kept {
                _proxy: proxy,
                _policy: policy,
                _life: Box::new(process.life),
            }),
        }))
    }

    fn not_started(&self, error: AgentStartError) -> anyhow::Error {
        let name = &self.name;
        match error {
            AgentStartError::CannotSandbox(_) => anyhow!(
                "{error}. `hosts.{name}.sandbox = false` in your own configuration file lets it run \
                 without a sandbox"
            ),
            AgentStartError::Failed(_) => error.into(),
        }
    }
}

#[async_trait]
impl Programs for AgentPrograms {
    async fn start(&self, arguments: &[String], tools: ToolsFor) -> Result<Program, WireError> {
        let name = &self.name;
        match self.try_start(arguments, tools).await {
            Ok(Ok(program)) => Ok(program),
            Ok(Err(ended)) => Err(WireError::Gone(format!("{name} did not start: {ended}"))),
            Err(error) => Err(WireError::NotStarted(format!(
                "{name} cannot be started: {error:#}"
            ))),
        }
    }

    async fn end(&self, process: &str) {
        let Some((pid, identity)) = living(process) else {
            return;
        };
        let _ = kill_process(pid, Signal::KILL);
        let gone = async {
            while process::is_alive(identity) {
                time::sleep(END_POLL_INTERVAL).await;
            }
        };
        if time::timeout(END_TIMEOUT, gone).await.is_err() {
            tracing::warn!(process, "an agent's process did not end");
        }
    }
}

/// A process that was named so, if it is still there, and its identity. Its number alone is not enough: it may be
/// another's by now.
fn living(process: &str) -> Option<(Pid, &str)> {
    let (number, identity) = process.split_once('/')?;
    let number: u32 = number.parse().ok()?;
    let pid = Pid::from_raw(i32::try_from(number).ok()?)?;
    (process::identity(number) == identity && process::is_alive(identity))
        .then_some((pid, identity))
}

/// The program that the user's settings name.
///
/// # Errors
/// When there is none.
pub(super) fn find_said(name: &str, program: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let path = Path::new(program);
    let found = if path.is_absolute() {
        is_program(path).then(|| path.to_owned())
    } else {
        find_on_path(program, folder)
    };
    found.ok_or_else(|| {
        let place = if path.is_absolute() {
            ""
        } else {
            " on the PATH"
        };
        anyhow!("there is no program `{program}`{place}; hosts.{name}.command names it")
    })
}

/// A port that nobody has, for an agent that talks to itself.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn is_proxy(name: &OsString) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    matches!(
        &*name,
        "ALL_PROXY" | "HTTP_PROXY" | "HTTPS_PROXY" | "NO_PROXY"
    )
}

/// Whether a program speaks for Claude Code that needs an adapter: else it speaks itself.
pub(super) async fn speaker(name: &str, said: &AgentHostConfig, folder: &Path) -> Speaker {
    let known = AgentProgram::named(name).filter(|_| said.command.is_empty());
    let Some(known) = known.filter(|known| find_own_program(known, folder).is_some()) else {
        return Speaker::Acp;
    };
    match find_adapter(known, folder).await {
        Ok(_) => Speaker::Acp,
        Err(_) => Speaker::Claude,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    /// Who writes into the journal names no process that is not an agent's.
    #[test]
    fn a_process_is_ended_only_by_its_whole_name() -> anyhow::Result<()> {
        let mut other = Command::new("sleep").arg("1000").spawn()?;
        let number = other.id();
        let (own, others) = (process::identity(id()), process::identity(number));
        let named = |text: &str| living(text).map(|(pid, _)| pid.as_raw_nonzero().get());
        assert_eq!(named(&format!("{number}/{own}")), None);
        #[cfg(target_os = "linux")]
        assert_eq!(named(&format!("{number}/{number}")), None);
        assert_eq!(
            named(&format!("{number}/{others}")),
            i32::try_from(number).ok()
        );
        other.kill()?;
        other.wait()?;
        assert_eq!(named(&format!("{number}/{others}")), None, "it has gone");
        Ok(())
    }
}
