//! The toolbox of a workspace.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use asyncagents_core::agent::{Reach, ToolOutcome, ToolSpec};

use crate::{
    memory::Memory,
    need::Need,
    places::Places,
    sandbox::{self, Limits, Order, Sandbox},
    settings::{SandboxMode, Settings},
    temporary::Temporary,
    tool::{self, Abandoned, Call, bash},
};

/// How long a command that only looks may take.
const GLANCE: Duration = Duration::from_secs(5);
/// How much of what it prints is kept.
const GLANCED: usize = 10_000;
/// How many folders are named of those that are too large.
const MOST_NAMED: usize = 5;

/// Says what a call may do with a file that it was not asked for by name: the path as in
/// [`Need::target`].
pub type Reaching = Arc<dyn Fn(&str) -> Reach + Send + Sync>;

/// The tools of one workspace. Clones share what they know.
#[derive(Clone)]
pub struct Toolbox {
    inner: Arc<Inner>,
}

/// What the tools work with.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) places: Places,
    pub(crate) memory: Memory,
    pub(crate) temporary: Temporary,
    /// Held while a file is compared with what a session knows, and changed.
    pub(crate) changing: Mutex<()>,
    sandbox: OnceLock<Sandbox>,
}

impl Toolbox {
    /// Opens a workspace. Makes a private temporary folder, which goes with the last clone.
    ///
    /// # Errors
    /// If a folder cannot be resolved, or the temporary one not be made.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let temporary = Temporary::new()?;
        let inner = Inner {
            places: Places::new(&settings, temporary.path())?,
            settings,
            memory: Memory::default(),
            temporary,
            changing: Mutex::new(()),
            sandbox: OnceLock::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Removes the temporary folder now, for a process that ends before the last clone goes.
    pub fn close(&self) {
        // It is in the system's folder for such things, so it goes some day.
        let _ = std::fs::remove_dir_all(self.inner.temporary.path());
    }

    /// The tools as a model sees them: always the same bytes in the same order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        tool::specs()
    }

    /// What a call would do, for the rules that permit or refuse it.
    ///
    /// # Errors
    /// A text for the model: there is no such tool, the arguments do not fit, or the path is
    /// secret.
    pub fn needs(&self, tool: &str, input: &str) -> Result<Need, String> {
        Call::read(tool, input)?.need(&self.inner.places)
    }

    /// Does what a call asks for, where no rules have to be kept. Lines of output go to
    /// `progress` as they come. Dropping the future ends what it runs.
    pub async fn call(
        &self,
        session: &str,
        tool: &str,
        input: &str,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        let everything: Reaching = Arc::new(|_| Reach::Show);
        self.call_within(everything, session, tool, input, progress)
            .await
    }

    /// The same, but a search shows only those files in a folder that it may.
    pub async fn call_within(
        &self,
        reaching: Reaching,
        session: &str,
        tool: &str,
        input: &str,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        match Call::read(tool, input) {
            Ok(Call::Bash(call)) => call.run(&self.inner, session, progress).await,
            Ok(call) => self.work(session, call, reaching).await,
            Err(why) => ToolOutcome::Failed(why),
        }
    }

    /// Runs a command that may only look, in a sandbox in which it can write nothing but its
    /// temporary files, for 5 seconds at most. Returns what it prints, up to 10,000 characters
    /// and the middle left out. Where there is no sandbox it runs only if it may do so freely.
    ///
    /// # Errors
    /// With a sentence: it was not run, it failed, or it took too long.
    pub async fn glance(&self, command: &str, may_run_free: bool) -> Result<String, String> {
        bash::glance(&self.inner, command, GLANCE, GLANCED, may_run_free).await
    }

    /// Whether commands run in a sandbox. The first question takes some milliseconds.
    pub fn sandbox(&self) -> Sandbox {
        let broken = |why| Sandbox::Missing { why };
        self.inner.sandbox().unwrap_or_else(broken)
    }

    /// Drops what is remembered of a session.
    pub fn forget(&self, session: &str) {
        self.inner.memory.forget(session);
    }

    async fn work(&self, session: &str, call: Call, reaching: Reaching) -> ToolOutcome {
        let inner = Arc::clone(&self.inner);
        let session = session.to_owned();
        let waiting = Waiting::default();
        let abandoned = Arc::clone(&waiting.abandoned);
        let work = move || call.work(&inner, &session, &reaching, &abandoned);
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome,
            Err(error) => ToolOutcome::Failed(format!("the tool broke down: {error}")),
        }
    }
}

impl Inner {
    /// Whether commands run in a sandbox; once found out, it stays so.
    ///
    /// # Errors
    /// If it cannot be found out. Then no command may run: perhaps it could have been sandboxed.
    pub(crate) fn sandbox(&self) -> Result<Sandbox, String> {
        if let Some(known) = self.sandbox.get() {
            return Ok(known.clone());
        }
        let found = match self.settings.sandbox {
            SandboxMode::Off => Sandbox::Off,
            SandboxMode::Auto | SandboxMode::Required => {
                let order = Order {
                    limits: Some(self.limits()),
                    ..Order::default()
                };
                self.told_of_large_folders(sandbox::probe(&self.settings.helper, &order)?)
            }
        };
        Ok(self.sandbox.get_or_init(|| found).clone())
    }

    /// Says where private files may be that are not closed.
    fn told_of_large_folders(&self, sandbox: Sandbox) -> Sandbox {
        let found = self.places.private.recently_found();
        match sandbox {
            Sandbox::Enforced { mut what } if !found.too_large.is_empty() => {
                let names = found
                    .too_large
                    .iter()
                    .map(|path| path.display().to_string());
                let mut names: Vec<String> = names.collect();
                if names.len() > MOST_NAMED {
                    let more = format!("{} more", names.len() - MOST_NAMED);
                    names.truncate(MOST_NAMED);
                    names.push(more);
                }
                what.push_str("; too large to be looked through for private files: ");
                what.push_str(&names.join(", "));
                Sandbox::Enforced { what }
            }
            other => other,
        }
    }

    /// What a sandboxed command may do. It may have to look through the home's configuration.
    pub(crate) fn limits(&self) -> Limits {
        let private = self.places.private.recently_found();
        Limits {
            network: self.settings.network,
            writable: self.places.writable.clone(),
            readable: self.places.readable.clone(),
            secret: [&self.places.secret[..], &private.private].concat(),
        }
    }
}

/// Tells the work when its caller has gone.
#[derive(Default)]
struct Waiting {
    abandoned: Arc<Abandoned>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.abandoned.set();
    }
}
