//! The toolbox of a session.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use asyncagents_core::{
    agent::{Reach, ToolOutcome},
    arguments::CallError,
};

use crate::{
    memory::Memory,
    places::Places,
    prepared::Prepared,
    sandbox::{self, Limits, Order, Sandbox},
    settings::{SandboxMode, Settings},
    temporary::Temporary,
    tool,
};

/// How long a command that only looks may take.
const GLANCE: Duration = Duration::from_secs(5);
/// How much of what it prints is kept.
const GLANCED: usize = 10_000;
/// How many folders are named of those that are too large.
const MOST_NAMED: usize = 5;

/// Says what a call may do with a file that it was not asked for by name: the path as in
/// [`CallInfo::target`](asyncagents_core::agent::CallInfo::target).
pub type Reaching = Arc<dyn Fn(&str) -> Reach + Send + Sync>;

/// The tools of one session, in its folder. Clones are the same toolbox.
#[derive(Clone)]
pub struct Toolbox {
    inner: Arc<Inner>,
}

/// What the tools work with.
pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) places: Arc<Places>,
    pub(crate) memory: Memory,
    /// Whether commands run in a sandbox, and where they may write there; found out when it is
    /// first asked for.
    sandbox: Arc<OnceLock<Sandbox>>,
}

/// What toolboxes in different folders have in common.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) temporary: Temporary,
    /// Held while a file is compared with what a session knows, and changed.
    pub(crate) changing: Mutex<()>,
}

impl Toolbox {
    /// Opens a workspace. Makes a private temporary folder, which goes with the last toolbox that
    /// shares it.
    ///
    /// # Errors
    /// If a folder cannot be resolved, or the temporary one not be made.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let temporary = Temporary::new()?;
        let places = Places::new(&settings, temporary.path())?;
        let shared = Arc::new(Shared {
            settings,
            temporary,
            changing: Mutex::new(()),
        });
        Ok(Self::with(shared, Arc::new(places), Arc::default()))
    }

    /// A toolbox for another session in the same folder, which knows nothing of what this one has
    /// read.
    #[must_use]
    pub fn for_session(&self) -> Self {
        let inner = &self.inner;
        let (shared, places) = (Arc::clone(&inner.shared), Arc::clone(&inner.places));
        Self::with(shared, places, Arc::clone(&inner.sandbox))
    }

    /// A toolbox for another session, in its own folder: that may be touched, and the folder of this
    /// one not, unless the settings allow it. It shares the settings, the temporary folder, and what
    /// was found out about the home.
    ///
    /// # Errors
    /// If there is no such folder, or its path has a link in it.
    pub fn in_folder(&self, folder: &Path) -> io::Result<Self> {
        let places = self.inner.places.in_folder(folder)?;
        let shared = Arc::clone(&self.inner.shared);
        Ok(Self::with(shared, Arc::new(places), Arc::default()))
    }

    fn with(shared: Arc<Shared>, places: Arc<Places>, sandbox: Arc<OnceLock<Sandbox>>) -> Self {
        let inner = Arc::new(Inner {
            shared,
            places,
            memory: Memory::default(),
            sandbox,
        });
        Self { inner }
    }

    /// Removes the temporary folder now, for a process that ends before the last clone goes.
    pub fn close(&self) {
        // It is in the system's folder for such things, so it goes some day.
        let _ = std::fs::remove_dir_all(self.inner.shared.temporary.path());
    }

    /// Reads a call, for the rules that permit or refuse it, and to be run.
    ///
    /// # Errors
    /// With a text for the model: there is no such tool, the arguments do not fit, or the path is
    /// secret.
    pub fn prepare(&self, tool: &str, input: &str) -> Result<Prepared, CallError> {
        Prepared::new(&self.inner, tool, input)
    }

    /// Reads and runs a call, where no rules have to be kept.
    pub async fn call(
        &self,
        tool: &str,
        input: &str,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        match self.prepare(tool, input) {
            Ok(prepared) => prepared.run(Arc::new(|_| Reach::Show), progress).await,
            Err(error) => ToolOutcome::Failed(error.to_string()),
        }
    }

    /// Runs a command that may only look, in a sandbox in which it can write nothing but its
    /// temporary files, for 5 seconds at most. Returns what it prints, up to 10,000 characters
    /// and the middle left out. Where there is no sandbox it runs only if it may do so freely.
    ///
    /// # Errors
    /// With a sentence: it was not run, it failed, or it took too long.
    pub async fn glance(&self, command: &str, may_run_free: bool) -> Result<String, String> {
        tool::glance(&self.inner, command, GLANCE, GLANCED, may_run_free).await
    }

    /// Whether commands run in a sandbox. The first question takes some milliseconds.
    pub fn sandbox(&self) -> Sandbox {
        let broken = |why| Sandbox::Missing { why };
        self.inner.sandbox().unwrap_or_else(broken)
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
        let found = match self.shared.settings.sandbox {
            SandboxMode::Off => Sandbox::Off,
            SandboxMode::Auto | SandboxMode::Required => {
                let order = Order {
                    limits: Some(self.limits()),
                    ..Order::default()
                };
                self.told_of_large_folders(sandbox::probe(&self.shared.settings.helper, &order)?)
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
            network: self.shared.settings.network,
            writable: self.places.writable.clone(),
            readable: self.places.readable.clone(),
            secret: [&self.places.secret[..], &private.private].concat(),
        }
    }
}
