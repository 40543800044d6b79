//! Starts an OpenCode without its screen, to ask it what it has loaded.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, anyhow, bail};
use asyncagents_core::secret::Secret;
use reqwest::{Response, StatusCode, Url};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    time::{sleep, timeout},
};

use crate::{make_visible::shown_path, print};

/// What OpenCode prints when it can be asked. The first generation begins the line with its name.
const LISTENING: &str = "server listening on ";

/// How long OpenCode may take to start. It needs 3 s on an idle machine.
const START: Duration = Duration::from_secs(30);

/// How long one question may take that needs no plugin. What comes just when the socket opens
/// is never answered, so it is asked again.
const ANSWER: Duration = Duration::from_secs(2);

/// How often that is asked.
const TRIES: u32 = 5;

/// How long OpenCode may take to load the plugins. It installs a package beside them first,
/// and without a network tries that for 73 s.
const LOAD: Duration = Duration::from_secs(120);

/// When to say that it takes long.
const SLOW_AFTER: Duration = Duration::from_secs(5);

/// How long OpenCode may take to end. It needs 0.2 s.
const END: Duration = Duration::from_secs(3);

/// What an OpenCode 1 has loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The names of all its tools.
    pub(super) tools: Vec<String>,
    /// Why it did not load our plugin, if it says so.
    pub(super) complaint: Option<String>,
}

/// Starts an OpenCode 1 in a folder, asks it what it has loaded, and ends it.
pub(super) async fn load(program: &Path, folder: &Path) -> anyhow::Result<Loaded> {
    let mut server = Server::start(program, folder, &["--print-logs"])?;
    let tools = server.asked(async |url, password| ask(url, password).await);
    let tools = unless_stopped(tools).await;
    let complaint = complaint_in(&server.log());
    server.end().await;
    Ok(Loaded {
        tools: tools?,
        complaint,
    })
}

/// Starts an OpenCode in a folder, asks it something, and ends it.
pub(super) async fn with_server<T>(
    program: &Path,
    folder: &Path,
    ask: impl AsyncFnOnce(&str, &Secret) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut server = Server::start(program, folder, &[])?;
    let asked = unless_stopped(server.asked(ask)).await;
    server.end().await;
    asked
}

/// OpenCode is in a process group of its own, so Ctrl-C does not reach it.
async fn unless_stopped<T>(asking: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::select! {
        asked = asking => asked,
        () = asked_to_stop() => Err(anyhow!("stopped before OpenCode had answered")),
    }
}

/// A running `opencode serve`. Dropped, it is killed.
struct Server {
    child: Child,
    /// The child and what it starts: installed with npm, `opencode` may be a script that starts
    /// the real one.
    group: Option<Pid>,
    lines: Lines<BufReader<ChildStdout>>,
    /// Its standard error: a file, so that nothing has to read it meanwhile.
    errors: NamedTempFile,
    /// No other process can talk to it.
    password: Secret,
}

impl Server {
    fn start(program: &Path, folder: &Path, more: &[&str]) -> anyhow::Result<Self> {
        let errors = NamedTempFile::new()?;
        let password = uuid::Uuid::new_v4().to_string();
        let mut child = Command::new(program)
            .args(["serve", "--port", "0", "--hostname", "127.0.0.1"])
            .args(more)
            .current_dir(folder)
            .env("OPENCODE_SERVER_USERNAME", "opencode")
            .env("OPENCODE_SERVER_PASSWORD", &password)
            // The name that the second generation looks for first.
            .env("OPENCODE_PASSWORD", &password)
            // Looking changes nothing.
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.reopen()?)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", shown_path(program)))?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let output = child.stdout.take().context("OpenCode has no output")?;
        Ok(Self {
            child,
            group: id.and_then(Pid::from_raw),
            lines: BufReader::new(output).lines(),
            errors,
            password: Secret::new(password),
        })
    }

    async fn asked<T>(
        &mut self,
        ask: impl AsyncFnOnce(&str, &Secret) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let url = timeout(START, self.url()).await;
        let url = url.map_err(|_| anyhow!("OpenCode did not start within {START:?}"))??;
        tokio::select! {
            asked = ask(&url, &self.password) => asked,
            // Its output is read to the end, so that OpenCode never waits for a reader.
            () = drain(&mut self.lines) => Err(self.ended()),
        }
    }

    /// Where it can be asked.
    async fn url(&mut self) -> anyhow::Result<String> {
        while let Some(line) = self.lines.next_line().await? {
            if let Some((_, url)) = line.split_once(LISTENING) {
                return Ok(url.trim().to_owned());
            }
        }
        Err(self.ended())
    }

    fn ended(&self) -> anyhow::Error {
        match last_words(&self.log()) {
            Some(words) => anyhow!("OpenCode ended before it had answered; it said: {words}"),
            None => anyhow!("OpenCode ended before it had answered, and said nothing"),
        }
    }

    /// Its standard error so far; empty if it cannot be read, for it only explains.
    fn log(&self) -> String {
        let log = fs::read(self.errors.path()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Ends it and all that it has started. Until the child is waited for, its process ID is not
    /// reused.
    async fn end(mut self) {
        self.signal(Signal::TERM);
        let _ = timeout(END, drain(&mut self.lines)).await;
        self.signal(Signal::KILL);
        self.group = None;
        let _ = self.child.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may have ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What the log has on our plugin, as in `level=ERROR message="failed to load plugin"
/// path=file:///…/asyncagents.js error=…`.
fn complaint_in(log: &str) -> Option<String> {
    let failures = log.lines().filter(|line| line.contains("failed to load"));
    let ours = failures.filter(|line| line.contains("/asyncagents.js"));
    let mut reasons = ours.filter_map(|line| line.split_once(" error="));
    let (_, why) = reasons.next_back()?;
    Some(shown(why))
}

/// Why an OpenCode has ended: what it called an error, below which it may have quoted a file, or
/// else the last that it said.
fn last_words(log: &str) -> Option<String> {
    let lines = log.lines().map(without_colours);
    let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    let error = lines
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("Error: "));
    let last = error.or(lines.last().map(String::as_str))?;
    Some(shown(last.trim()))
}

/// A line without the sequences that colour it.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.and_then(|end| piece.get(end + 1..)).unwrap_or_default());
    }
    plain
}

/// As much of a line as goes onto a terminal.
fn shown(line: &str) -> String {
    line.chars().filter(print::harmless).take(300).collect()
}

/// Reads until everyone who could write has gone.
async fn drain(lines: &mut Lines<BufReader<ChildStdout>>) {
    while let Ok(Some(_)) = lines.next_line().await {}
}

async fn asked_to_stop() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// How much of an answer is read. A server that says more is none of OpenCode's.
const LONGEST: usize = 4_000_000;

/// The text of an answer, as far as it is read.
pub(super) async fn short_text(mut answer: Response) -> reqwest::Result<String> {
    let mut text = Vec::new();
    while text.len() < LONGEST
        && let Some(chunk) = answer.chunk().await?
    {
        text.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Asks for the names of all tools, as soon as the server answers.
async fn ask(url: &str, password: &Secret) -> anyhow::Result<Vec<String>> {
    // A password goes nowhere else.
    let client = asyncagents_http::builder(&Url::parse(url)?).no_proxy();
    let client = client.build()?;
    let get = |path: &str, limit: Duration| {
        let request = client.get(format!("{url}{path}")).timeout(limit);
        request
            .basic_auth("opencode", Some(password.reveal()))
            .send()
    };
    let mut tries = 0;
    // Any answer will do.
    while let Err(error) = get("/global/health", ANSWER).await {
        tries += 1;
        if tries == TRIES {
            return Err(error).context("OpenCode does not answer");
        }
        if !error.is_timeout() {
            sleep(ANSWER / TRIES).await;
        }
    }
    // The first request is answered when all plugins are loaded, so one with a long timeout is
    // enough.
    let answer = remark_if_slow(async {
        let answer = get("/experimental/tool/ids", LOAD).await?;
        let status = answer.status();
        Ok::<_, reqwest::Error>((status, short_text(answer).await?))
    });
    let (status, text) = answer.await.map_err(|error| {
        if error.is_timeout() {
            anyhow!("OpenCode did not name its tools within {LOAD:?}")
        } else {
            anyhow!(error).context("OpenCode did not name its tools")
        }
    })?;
    if status != StatusCode::OK {
        bail!("OpenCode did not name its tools: {status}");
    }
    serde_json::from_str(&text).context("OpenCode's list of tools cannot be read")
}

async fn remark_if_slow<T>(work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    match timeout(SLOW_AFTER, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            print::remark(&format!(
                "Waiting for OpenCode: it may be installing @opencode-ai/plugin for its plugins, \
                 at most {:?} more.\n",
                LOAD - SLOW_AFTER
            ));
            work.await
        }
    }
}
