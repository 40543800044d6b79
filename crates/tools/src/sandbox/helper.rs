//! A helper: guard, supervisor and the process that becomes a command, in the sandbox before it is
//! known which command that is.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use asyncagents_core::lock::lock;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    process::{Child, ChildStdin, Command},
    runtime::Handle,
    sync::oneshot,
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

use super::{
    command_line::CommandLine,
    known_rules::KnownRules,
    order::{Limits, Order, Stage},
    restrict::FileRules,
};

/// Of how many kinds one helper waits for its command, at most.
const MOST_WAITING: usize = 4;

/// After how long without a command nothing is kept for the next. Rules keep the files that they are
/// about on the disk, also those that were deleted.
const IDLE: Duration = Duration::from_secs(60);

/// All that is known of a command before it comes. Helpers of the same kind are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HelperKind {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) order: Order,
}

/// A helper with its command.
pub(crate) struct Begun {
    pub(crate) guard: Child,
    /// Closing it ends all.
    pub(crate) input: ChildStdin,
    pub(crate) output: pipe::Receiver,
}

/// The helpers that wait for a command.
#[derive(Default)]
pub(crate) struct Helpers {
    rules: Arc<KnownRules>,
    /// The one that was started last is at the end. Whichever is dropped here ends by itself, for its
    /// input is closed.
    waiting: Arc<Mutex<Vec<Helper>>>,
    /// Waits until there was no command for a while.
    forgetting: Mutex<JoinSet<()>>,
}

/// A helper that is being started or waits.
struct Helper {
    kind: HelperKind,
    started: oneshot::Receiver<io::Result<Started>>,
}

struct Started {
    guard: Child,
    output: pipe::Receiver,
    /// In force since it was started.
    rules: Option<Arc<FileRules>>,
}

impl Helpers {
    /// Has a helper run a command: one that waits for it, or else a new one.
    pub(crate) async fn begin(
        &self,
        kind: &HelperKind,
        command: &CommandLine,
    ) -> io::Result<Begun> {
        let command = command.encode()?;
        if let Some(helper) = self.take(kind)
            && let Ok(Ok(started)) = helper.started.await
            && let Some(started) = started.if_usable().await
            // One that is gone has not read it: it is read whole or not at all.
            && let (begun, Ok(())) = started.begin(&command).await?
        {
            return Ok(begun);
        }
        let started = self.start(kind)?.started.await;
        let started = started.unwrap_or_else(|error| Err(io::Error::other(error)));
        // One that is gone has left a report.
        let (begun, _) = started?.begin(&command).await?;
        Ok(begun)
    }

    /// Starts a helper for the next command of this kind, unless one waits for it.
    pub(crate) fn prepare(&self, kind: HelperKind) {
        let mut waiting = lock(&self.waiting);
        if waiting.iter().any(|helper| helper.kind == kind) {
            return;
        }
        // Whoever needs it and does not find it says why not.
        waiting.extend(self.start(&kind).ok());
        if waiting.len() > MOST_WAITING {
            waiting.remove(0);
        }
        drop(waiting);
        self.forget_after(IDLE);
    }

    /// Ends those that wait.
    pub(crate) fn end(&self) {
        lock(&self.waiting).clear();
    }

    fn forget_after(&self, idle: Duration) {
        let (rules, waiting) = (Arc::clone(&self.rules), Arc::downgrade(&self.waiting));
        let mut forgetting = JoinSet::new();
        forgetting.spawn(async move {
            sleep(idle).await;
            if let Some(waiting) = waiting.upgrade() {
                lock(&waiting).clear();
            }
            rules.forget();
        });
        *lock(&self.forgetting) = forgetting;
    }

    fn take(&self, kind: &HelperKind) -> Option<Helper> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.iter().position(|helper| helper.kind == *kind)?;
        Some(waiting.remove(at))
    }

    /// Starts a helper under the rules about files. A thread that is restricted stays so: this one is
    /// for nothing else, and what it starts inherits the rules.
    fn start(&self, kind: &HelperKind) -> io::Result<Helper> {
        let (rules, kind) = (Arc::clone(&self.rules), kind.clone());
        let (runtime, (sender, started)) = (Handle::current(), oneshot::channel());
        let to_start = kind.clone();
        thread::Builder::new().spawn(move || {
            let _entered = runtime.enter();
            // Whoever has gone meanwhile does not want it: its input is closed, and it ends.
            let _ = sender.send(to_start.start(&rules));
        })?;
        Ok(Helper { kind, started })
    }
}

impl HelperKind {
    fn start(&self, rules: &KnownRules) -> io::Result<Started> {
        let mut order = self.order.clone();
        let mut in_force = None;
        if let Some(limits) = &mut order.limits {
            let rules = rules.restrict_thread(limits, &self.program);
            let rules = rules.map_err(|why| io::Error::other(format!("the sandbox: {why}")))?;
            in_force = Some(rules);
            // The rules about the others are in force when the helper starts.
            *limits = Limits {
                network: limits.network,
                writable: limits.writable.clone(),
                ..Limits::default()
            };
        }
        // One pipe for both, so that lines stay in the order they were written in.
        let (output, writer) = io::pipe()?;
        let guard = Command::new(&self.program)
            .args(order.arguments(Stage::Guard))
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()?;
        Ok(Started {
            guard,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            rules: in_force,
        })
    }
}

impl Started {
    /// Itself, if it is still there and its rules are those that would be made now.
    async fn if_usable(mut self) -> Option<Self> {
        if !matches!(self.guard.try_wait(), Ok(None)) {
            return None;
        }
        if let Some(rules) = self.rules.clone() {
            let holds = spawn_blocking(move || rules.still_hold()).await;
            holds.ok().filter(|holds| *holds)?;
        }
        Some(self)
    }

    /// With whether it can have read the command.
    async fn begin(mut self, command: &[u8]) -> io::Result<(Begun, io::Result<()>)> {
        let mut input = self.guard.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = input.write_all(command).await;
        let begun = Begun {
            input,
            guard: self.guard,
            output: self.output,
        };
        Ok((begun, written))
    }
}
