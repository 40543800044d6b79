//! One run of one agent.

use std::{
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use asyncagents_scripted_model::{ModelServer, Recorded, Script};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    contender::Contender,
    options::Options,
    place::Place,
    processes::{self, Activity, Memory},
    sampler::{Sampler, Watch},
    script,
};

/// Where runs happen. Everything in it goes with it.
pub(crate) struct Stage {
    runtime: Runtime,
    folder: TempDir,
}

/// A run to be made.
pub(crate) struct Play {
    /// One process for each, all at once.
    pub(crate) prompts: Vec<String>,
    pub(crate) script: Script,
    pub(crate) watch: Watch,
    /// How long it may take.
    pub(crate) patience: Duration,
}

/// What was seen of a run.
pub(crate) struct Outcome {
    /// From the start of the program to the arrival of its first request.
    pub(crate) first_request: Duration,
    pub(crate) wall: Duration,
    /// Processor time of all its processes, user and system.
    pub(crate) cpu: Duration,
    pub(crate) memory: Memory,
    pub(crate) requests: Vec<Recorded>,
}

/// What was seen of an agent that waits for its model.
pub(crate) struct Idling {
    pub(crate) memory: Memory,
    pub(crate) wakeups_per_second: f64,
    pub(crate) cpu_percent: f64,
}

impl Outcome {
    /// The requests of conversations: those with tools. Others are for titles and the like.
    pub(crate) fn turns(&self) -> impl Iterator<Item = &Recorded> {
        let has_tools = |request: &&Recorded| !request.tool_names().is_empty();
        self.requests.iter().filter(has_tools)
    }
}

impl Stage {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        processes::adopt_orphans()?;
        let folder = tempfile::Builder::new()
            .prefix("compare-")
            .tempdir_in(options.folder())
            .with_context(|| format!("{}", options.folder().display()))?;
        Ok(Self {
            runtime: Runtime::new()?,
            folder,
        })
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// What a program says of its version.
    pub(crate) fn version(&self, program: &Path, place: &Place) -> Result<String> {
        let output = bare(program, place)?.arg("--version").output()?;
        processes::end_all();
        let printed = String::from_utf8_lossy(&output.stdout);
        // `codex-cli 0.1.0`, `0.1.0 (Claude Code)`, `0.1.0`
        let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let version = printed.split_whitespace().find(number);
        version
            .map(str::to_owned)
            .with_context(|| format!("`--version` says no version: {}", printed.trim()))
    }

    /// Makes a run, to its end.
    pub(crate) fn play(&self, contender: &Contender, play: Play) -> Result<Outcome> {
        let server = self.runtime.block_on(ModelServer::start(play.script))?;
        let before = processes::time_of_ended_children()?;
        let sampler = Sampler::start(play.watch);
        let began = Instant::now();
        let started = start(contender, &server, &play.prompts);
        let ended = started.and_then(|children| wait_for(children, play.patience));
        let wall = began.elapsed();
        let memory = sampler.map(Sampler::most).unwrap_or_default();
        processes::end_all();
        let cpu = processes::time_of_ended_children()?.saturating_sub(before);
        ended.map_err(|error| with_log(&error, &contender.place.log()))?;
        if let Some(unanswered) = server.unanswered().first() {
            bail!(
                "the script has no answer to: {}",
                ending(&unanswered.last())
            );
        }
        let requests = server.requests();
        let first = requests.first().context("it asked nothing")?;
        Ok(Outcome {
            first_request: first.at.saturating_duration_since(began),
            wall,
            cpu,
            memory,
            requests,
        })
    }

    /// Looks at an agent whose model says nothing.
    pub(crate) fn idle(&self, contender: &Contender, options: &Options) -> Result<Idling> {
        let server = self
            .runtime
            .block_on(ModelServer::start(script::silence()))?;
        let started = start(contender, &server, &["Say hello.".to_owned()]);
        let asked = server.wait_for(|requests| !requests.is_empty());
        let patience = Duration::from_secs(60);
        let asked = self
            .runtime
            .block_on(async { tokio::time::timeout(patience, asked).await });
        let seen = match (started, asked) {
            (Err(error), _) => Err(error),
            (Ok(_), Err(_)) => Err(anyhow!("it asked nothing")),
            (Ok(mut children), Ok(())) => watch_idling(options).and_then(|seen| {
                let ended = children.iter_mut().any(has_ended);
                ensure!(!ended, "it did not wait for its model");
                Ok(seen)
            }),
        };
        processes::end_all();
        seen.map_err(|error| with_log(&error, &contender.place.log()))
    }
}

fn watch_idling(options: &Options) -> Result<Idling> {
    thread::sleep(Duration::from_secs(options.settling_seconds()));
    let (began, before) = (Instant::now(), Activity::now());
    thread::sleep(Duration::from_secs(options.idle_seconds()));
    let (wakeups, on_cpu) = Activity::now().since(&before);
    let seconds = began.elapsed().as_secs_f64();
    Ok(Idling {
        memory: Memory::of(&processes::descendants()),
        wakeups_per_second: wakeups as f64 / seconds,
        cpu_percent: on_cpu.as_secs_f64() / seconds * 100.0,
    })
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// A process for each prompt.
fn start(contender: &Contender, server: &ModelServer, prompts: &[String]) -> Result<Vec<Child>> {
    let place = &contender.place;
    let log = File::create(place.log())?;
    let spawn = |prompt: &String| {
        let mut command = bare(&contender.program, place)?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        let agent = &contender.agent;
        agent.configure(&mut command, place, &server.url(), prompt)?;
        command.spawn()
    };
    let children: io::Result<Vec<Child>> = prompts.iter().map(spawn).collect();
    children.with_context(|| format!("{} does not start", contender.program.display()))
}

/// Nothing of the user's reaches it but the path to programs.
fn bare(program: &Path, place: &Place) -> io::Result<Command> {
    let temporary = place.home().join("tmp");
    fs::create_dir_all(&temporary)?;
    let mut command = Command::new(program);
    command
        .current_dir(place.project())
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", place.home())
        .env("TMPDIR", temporary)
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb");
    Ok(command)
}

/// Waits until all have ended well.
fn wait_for(children: Vec<Child>, patience: Duration) -> Result<()> {
    let (ended, waiting) = mpsc::channel::<()>();
    let guard = thread::spawn(move || {
        let late = waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if late {
            processes::kill_all();
        }
        late
    });
    let statuses: io::Result<Vec<_>> = children.into_iter().map(|mut child| child.wait()).collect();
    drop(ended);
    let late = guard.join().unwrap_or_default();
    ensure!(!late, "it took longer than {} s", patience.as_secs());
    let failed = statuses?.into_iter().find(|status| !status.success());
    match failed {
        Some(status) => bail!("it failed: {status}"),
        None => Ok(()),
    }
}

/// The same error, with the last words of the program.
fn with_log(error: &Error, log: &Path) -> Error {
    let text = fs::read(log).unwrap_or_default();
    let printed = ending(&String::from_utf8_lossy(&text));
    anyhow!("{error:#}; it printed: {printed}")
}

/// The end of a text, in one line.
fn ending(text: &str) -> String {
    const CHARACTERS: usize = 300;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let skipped = line.chars().count().saturating_sub(CHARACTERS);
    line.chars().skip(skipped).collect()
}
