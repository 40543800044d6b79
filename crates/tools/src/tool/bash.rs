//! `bash`: a command in the workspace, in the sandbox.

use std::{
    collections::HashSet, ffi::OsString, io, path::PathBuf, process::Stdio, sync::Arc,
    time::Duration,
};

use asyncagents_core::{
    agent::{Preview, ToolOutcome},
    arguments::Arguments,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::unix::pipe,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout, timeout_at},
};

use super::{Call, Tool, Work};
use crate::{
    clean_output::Cleaner,
    fit_answer::HeadAndTail,
    sandbox::{Limits, Order, Report, Sandbox, Stage},
    settings::SandboxMode,
    variables,
    workspace::Workspace,
};

pub(super) const TOOL: Tool = Tool {
    name: "bash",
    description: "Runs a command with bash in the workspace and gives what it prints, \
    output and errors together. It has no input and no terminal. Each call is a new shell: `cd` \
    and variables do not last, and background processes end with the call. `timeout` is in \
    seconds, 120 if left out, at most 600. A sandbox may keep commands from writing outside of \
    the workspace and $TMPDIR, from reading credentials and from using the network. To read, \
    search and change files, the other tools are better.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"maximum":600,"description":"seconds"},"description":{"type":"string","description":"what it does, in a few words"}},"required":["command"]}"#,
    example: r#"{"command": "cargo test", "timeout": 300}"#,
    read,
};

const LONGEST: Duration = Duration::from_secs(600);
/// How long an answer waits for all to end once the leash is dropped. They are ended also if it
/// takes longer.
const GRACE: Duration = Duration::from_secs(5);
/// The kernel takes no longer argument.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;
/// Ends a process that makes a file too large.
const SIGXFSZ: i32 = 25;
/// What shells and programs say of such a file.
const TOO_LARGE: [&str; 2] = ["File size limit exceeded", "File too large"];
const MOST_REPORT: u64 = 16 * 1024;

/// A command and how long it may take.
pub(crate) struct Bash {
    pub(crate) command: String,
    timeout: Option<Duration>,
}

fn read(arguments: &Arguments) -> Result<Call, String> {
    let command = arguments.filled_text("command")?;
    if command.contains('\0') {
        return Err(arguments.wrong("command", "contains a zero byte"));
    }
    if command.len() > LONGEST_COMMAND {
        let why = "is longer than 128 kB: write it to a file and run that";
        return Err(arguments.wrong("command", why));
    }
    let timeout = arguments.number("timeout", 1)?.map(Duration::from_secs);
    Ok(Call {
        preview: Some(Preview::Command(command.clone())),
        ..Work::Command(Bash { command, timeout }).into()
    })
}

impl Bash {
    /// Runs the command. When this future is dropped, the pipe to the supervisor closes, and the
    /// supervisor ends all processes.
    pub(crate) async fn run(
        &self,
        workspace: &Arc<Workspace>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        let (sandbox, limits) = match find_out(workspace).await {
            Ok(found) => found,
            Err(why) => return ToolOutcome::Failed(why),
        };
        let (limits, remark) = match (&sandbox, workspace.settings.sandbox) {
            (Sandbox::Enforced { .. }, _) => (Some(limits), None),
            (Sandbox::Missing { why }, SandboxMode::Required) => {
                return ToolOutcome::Failed(format!(
                    "bash is refused: the configuration requires a sandbox, and there is none: \
                     {why}"
                ));
            }
            (Sandbox::Missing { why }, SandboxMode::Auto | SandboxMode::Off) => {
                let first = workspace.memory.tell_once("not sandboxed");
                (None, first.then(|| format!("[not sandboxed: {why}]\n")))
            }
            (Sandbox::Off, _) => (None, None),
        };
        let order = Order {
            limits,
            resources: workspace.settings.resources,
            group: None,
            command: vec![shell().into(), "-c".into(), self.command.clone().into()],
        };
        let longest = LONGEST.max(workspace.settings.bash_timeout);
        let time = self
            .timeout
            .unwrap_or(workspace.settings.bash_timeout)
            .min(longest);

        let mut ended = match Running::start(workspace, &order) {
            Ok(running) => {
                running
                    .finish(time, workspace.settings.output_limit, progress)
                    .await
            }
            Err(error) => Err(error),
        };
        if let (Ok(ended), Some(remark)) = (&mut ended, remark) {
            ended.output.insert_str(0, &remark);
        }
        match ended {
            Ok(ended) => ended.outcome(order.limits.is_some(), workspace),
            Err(error) => ToolOutcome::Failed(format!("bash cannot be started: {error}")),
        }
    }
}

/// Runs a command that may only look: nothing but the temporary folder is writable, and there is
/// no network. Returns what it prints.
pub(crate) async fn glance(
    workspace: &Arc<Workspace>,
    command: &str,
    time: Duration,
    limit: usize,
    may_run_free: bool,
) -> Result<String, String> {
    if command.contains('\0') || command.len() > LONGEST_COMMAND {
        return Err("it is no command".to_owned());
    }
    let (sandbox, limits) = find_out(workspace).await?;
    let limits = match sandbox {
        Sandbox::Enforced { .. } => Some(Limits {
            network: false,
            writable: vec![workspace.temporary.path().to_owned()],
            ..limits
        }),
        Sandbox::Missing { .. } | Sandbox::Off if may_run_free => None,
        Sandbox::Missing { why } => return Err(format!("it cannot be sandboxed: {why}")),
        Sandbox::Off => return Err("it cannot be sandboxed: that is switched off".to_owned()),
    };
    let order = Order {
        limits,
        resources: workspace.settings.resources,
        group: None,
        command: vec![shell().into(), "-c".into(), command.into()],
    };
    let cannot_start = |error: io::Error| format!("it cannot be started: {error}");
    let running = Running::start(workspace, &order).map_err(cannot_start)?;
    // Room for the remarks is taken from the limit.
    let ended = running.finish(time, limit + 1_000, &|_| {}).await;
    let Ended { output, how } = ended.map_err(cannot_start)?;
    let last = || output.lines().next_back().unwrap_or_default().to_owned();
    match how {
        How::Reported(Report::Exited(0)) => Ok(output),
        How::Reported(Report::Exited(code)) => Err(match last() {
            nothing if nothing.trim().is_empty() => format!("exit code {code}"),
            last => format!("exit code {code}: {last}"),
        }),
        How::TimedOut { after, .. } => Err(format!("it took longer than {after:?}")),
        How::Reported(Report::Killed(signal)) => Err(format!("ended by {}", name(signal))),
        How::Reported(Report::Exceeded(limit)) => Err(format!("ended because {limit}")),
        How::Reported(Report::Failed(why) | Report::Left(why)) => Err(why),
        How::Reported(Report::Lost(_)) | How::Lost | How::BeingEnded => {
            Err("nobody knows how it ended".to_owned())
        }
    }
}

/// Whether commands run in a sandbox, and what they may do there.
async fn find_out(workspace: &Arc<Workspace>) -> Result<(Sandbox, Limits), String> {
    let workspace = Arc::clone(workspace);
    let found = move || Ok((workspace.sandbox()?, workspace.limits()));
    let found = tokio::task::spawn_blocking(found).await;
    let found = found.map_err(|error| error.to_string()).flatten();
    found.map_err(|why| format!("bash cannot be started: {why}"))
}

/// A command with its guard and supervisor.
struct Running {
    guard: Child,
    /// Closing it ends all.
    leash: Option<ChildStdin>,
    output: pipe::Receiver,
}

/// A command that has ended.
struct Ended {
    output: String,
    how: How,
}

enum How {
    Reported(Report),
    /// It took longer than this.
    TimedOut {
        after: Duration,
        rest: Rest,
    },
    /// Guard and supervisor are gone without a word.
    Lost,
    /// The supervisor is still ending what came of it.
    BeingEnded,
}

/// What became of the processes of a command.
enum Rest {
    Ended,
    BeingEnded,
    MayRun,
}

impl Running {
    fn start(workspace: &Workspace, order: &Order) -> io::Result<Self> {
        // One pipe for both, so that lines stay in the order they were written in.
        let (output, writer) = io::pipe()?;
        let mut guard = Command::new(&workspace.settings.helper)
            .args(order.arguments(Stage::Guard))
            .env_clear()
            .envs(environment(workspace, order.limits.is_some()))
            .current_dir(&workspace.places.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()?;
        Ok(Self {
            leash: guard.stdin.take(),
            output: pipe::Receiver::from_owned_fd(output.into())?,
            guard,
        })
    }

    async fn finish(
        mut self,
        time: Duration,
        limit: usize,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> io::Result<Ended> {
        let mut kept = Kept::new(limit, progress);
        let report = report(self.guard.stdout.take());
        tokio::pin!(report);
        let mut reported = None;
        let ended = async {
            tokio::select! {
                read = kept.take_all(&mut self.output) => read,
                // Something that could not be ended may hold the output.
                line = &mut report => {
                    reported = Some(line);
                    Ok(())
                }
            }
        };
        let ended = timeout(time, ended).await;
        let in_time = ended.is_ok();
        ended.unwrap_or(Ok(()))?;
        drop(self.leash.take());

        let until = Instant::now() + GRACE;
        let (rest, report) = tokio::join!(
            // What was printed before the end.
            timeout_at(until, kept.take_all(&mut self.output)),
            timeout_at(until, async {
                match reported {
                    Some(report) => report,
                    None => report.await,
                }
            }),
        );
        rest.unwrap_or(Ok(()))?;
        // A guard that is still at work stays: without it nobody would end the rest.
        let gone = timeout_at(until, self.guard.wait()).await.is_ok();
        let rest = match &report {
            Ok(Some(Report::Left(_)) | None) => Rest::MayRun,
            Ok(Some(_)) if gone => Rest::Ended,
            Ok(Some(_)) | Err(_) => Rest::BeingEnded,
        };
        let how = match (report, rest) {
            (_, rest) if !in_time => How::TimedOut { after: time, rest },
            (Err(_), _) | (_, Rest::BeingEnded) => How::BeingEnded,
            (Ok(Some(report)), _) => How::Reported(report),
            (Ok(None), _) => How::Lost,
        };
        Ok(Ended {
            output: kept.finish(),
            how,
        })
    }
}

async fn report(output: Option<ChildStdout>) -> Option<Report> {
    let mut line = String::new();
    let mut output = output?.take(MOST_REPORT);
    output.read_to_string(&mut line).await.ok()?;
    Report::read(&line)
}

/// Output as it comes, cleaned and within bounds.
struct Kept<'a> {
    cleaner: Cleaner,
    text: HeadAndTail,
    progress: &'a (dyn Fn(&str) + Send + Sync),
}

impl<'a> Kept<'a> {
    fn new(limit: usize, progress: &'a (dyn Fn(&str) + Send + Sync)) -> Self {
        Self {
            cleaner: Cleaner::default(),
            // Room for the remarks.
            text: HeadAndTail::new(limit.saturating_sub(1_000)),
            progress,
        }
    }

    async fn take_all(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            let (text, progress) = (&mut self.text, self.progress);
            self.cleaner.take(&bytes[..count], |line| {
                text.push(line);
                progress(line.trim_end_matches('\n'));
            });
        }
    }

    fn finish(self) -> String {
        let (mut text, progress) = (self.text, self.progress);
        self.cleaner.finish(|line| {
            text.push(line);
            progress(line);
        });
        text.finish()
    }
}

impl Ended {
    fn outcome(self, sandboxed: bool, workspace: &Workspace) -> ToolOutcome {
        let mut text = self.output;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let too_large = match self.how {
            How::Reported(Report::Killed(SIGXFSZ)) => true,
            How::Reported(Report::Exited(code)) if code == 128 + SIGXFSZ => true,
            _ => TOO_LARGE.iter().any(|words| text.contains(words)),
        };
        let remark = match self.how {
            How::Reported(Report::Exited(0)) => {
                if text.is_empty() {
                    text.push_str("[no output]\n");
                }
                return ToolOutcome::Done(text);
            }
            How::Reported(Report::Exited(code)) => format!("[exit code {code}]\n"),
            How::Reported(Report::Killed(signal)) => format!("[ended by {}]\n", name(signal)),
            How::Reported(Report::Failed(why)) => format!("[not run: {why}]\n"),
            How::Reported(Report::Left(why)) => {
                format!("[it ended, but not all its processes: {why}]\n")
            }
            How::Reported(Report::Exceeded(limit)) => {
                format!("[ended because {limit}; all its processes were ended]\n")
            }
            How::Reported(Report::Lost(how)) => format!(
                "[its supervisor {how}; all its processes were ended, and nobody knows how it \
                 ended]\n"
            ),
            How::TimedOut { after, rest } => {
                let ended = match rest {
                    Rest::Ended => "all its processes were ended",
                    Rest::BeingEnded => "its processes are still being ended",
                    Rest::MayRun => "some of its processes may still run",
                };
                let longest = LONGEST.max(workspace.settings.bash_timeout).as_secs();
                let after = after.as_secs_f64();
                format!(
                    "[timed out after {after} s; {ended}. `timeout` can be up to {longest} s]\n"
                )
            }
            How::Lost => "[its supervisor has vanished; nobody knows how it ended]\n".to_owned(),
            How::BeingEnded => {
                "[its processes are still being ended; nobody knows yet how it ended]\n".to_owned()
            }
        };
        let refused = [
            "Permission denied",
            "Operation not permitted",
            "Invalid cross-device",
        ]
        .iter()
        .any(|words| text.contains(words));
        text.push_str(&remark);
        if let Some(most) = workspace.settings.resources.file_size.filter(|_| too_large) {
            text.push_str(&format!("[no file may be larger than {most}]\n"));
        }
        if sandboxed && refused && workspace.memory.tell_once("sandboxed") {
            text.push_str(&hint(workspace));
        }
        if let Some(name) = sandboxed.then(|| kept_back(workspace, &text)).flatten()
            && workspace.memory.tell_once("variables")
        {
            text.push_str(&format!(
                "[{name} is set, but not passed on to sandboxed commands; the user can list it in \
                 `sandbox.variables`]\n"
            ));
        }
        ToolOutcome::Failed(text)
    }
}

/// What the sandbox has to do with a refusal.
fn hint(workspace: &Workspace) -> String {
    let folders: Vec<_> = workspace
        .places
        .writable
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let network = match workspace.settings.network {
        true => " and use no local sockets",
        false => " and have no network",
    };
    format!(
        "[commands are sandboxed: they can write only in {}{network}]\n",
        folders.join(", ")
    )
}

fn name(signal: i32) -> String {
    let known = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        SIGXFSZ => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({known})")
}

/// What the command finds in its environment: nothing that looks like a secret, nothing that
/// would ask somebody, and in the sandbox only what is listed.
fn environment(workspace: &Workspace, sandboxed: bool) -> Vec<(OsString, OsString)> {
    let is_passed_on = |(name, value): &(OsString, OsString)| {
        let Some(name) = name.to_str() else {
            return false;
        };
        let named = workspace
            .settings
            .secret_variables
            .iter()
            .any(|n| n == name);
        let value = value.to_string_lossy();
        !named
            && match sandboxed {
                true => variables::passes_sandbox(name, &value, &workspace.settings.variables),
                false => !variables::is_secret(name, &value),
            }
    };
    let mut variables: Vec<_> = std::env::vars_os().filter(is_passed_on).collect();
    let temporary = workspace.temporary.path().as_os_str();
    variables.push(("TMPDIR".into(), temporary.to_owned()));
    let fixed = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    variables.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    variables
}

/// A variable that a failed command speaks of and did not get.
fn kept_back(workspace: &Workspace, text: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: HashSet<&str> = text.split(|c| !is_word(c)).collect();
    let passed = environment(workspace, true);
    let is_passed = |name: &str| passed.iter().any(|(passed, _)| passed == name);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_never_passed = |name: &String| workspace.settings.secret_variables.contains(name);
    let kept = names.filter(|name| name.len() > 2 && !is_passed(name));
    let mut kept = kept.filter(|name| !is_never_passed(name));
    kept.find(|name| words.contains(name.as_str()))
}

/// bash, or else the plain shell that every system has.
fn shell() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("bash"))
        .find(|program| program.is_absolute() && program.is_file());
    found.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}
