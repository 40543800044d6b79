//! What the tools of a session work with: its folder, what it has seen there, and the sandbox.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use asyncagents_core::{agent::Reach, lock::lock};

use crate::{
    memory::Memory,
    places::Places,
    sandbox::{self, Helpers, Limits, Network, Order, Sandbox},
    settings::{SandboxMode, Settings},
    temporary::Temporary,
};

/// How many folders are named of those that are too large.
const MOST_NAMED: usize = 5;

/// Decides what a call may do with a file that it was not asked for by name: the path as in
/// [`CallInfo::target`](asyncagents_core::agent::CallInfo::target).
pub type Reaching = Arc<dyn Fn(&str) -> Reach + Send + Sync>;

/// What the tools of a session work with. What is cheap to share with other sessions is shared.
#[derive(Clone)]
pub(crate) struct Workspace {
    pub(crate) settings: Arc<Settings>,
    pub(crate) temporary: Arc<Temporary>,
    /// Held while a file is compared with what a session knows, and changed.
    pub(crate) changing: Arc<Mutex<()>>,
    pub(crate) places: Arc<Places>,
    /// Of this session alone.
    pub(crate) memory: Arc<Memory>,
    /// The session's name, for its commands.
    pub(crate) session: Option<Arc<str>>,
    /// What runs commands, and knows the rules of the sandbox that were made for earlier ones.
    pub(crate) helpers: Arc<Helpers>,
    /// Whether commands run in a sandbox, and where they may write there; probed on first use.
    sandbox: Arc<Mutex<Option<Sandbox>>>,
}

impl Workspace {
    /// Opens the folder of the settings, with a private temporary folder.
    pub(crate) fn open(settings: Settings) -> io::Result<Self> {
        let temporary = Temporary::new()?;
        let places = Places::new(&settings, temporary.path())?;
        Ok(Self {
            settings: Arc::new(settings),
            temporary: Arc::new(temporary),
            changing: Arc::default(),
            places: Arc::new(places),
            memory: Arc::default(),
            session: None,
            helpers: Arc::default(),
            sandbox: Arc::default(),
        })
    }

    /// The same for the session of this name.
    pub(crate) fn named(&self, session: &str) -> Self {
        Self {
            session: Some(session.into()),
            ..self.clone()
        }
    }

    /// The same folder for another session, which has seen nothing of it.
    pub(crate) fn for_session(&self) -> Self {
        Self {
            memory: Arc::default(),
            session: None,
            ..self.clone()
        }
    }

    /// Another folder for another session. What commands may write is another thing there.
    pub(crate) fn in_folder(&self, folder: &Path) -> io::Result<Self> {
        Ok(Self {
            places: Arc::new(self.places.in_folder(folder)?),
            sandbox: Arc::default(),
            ..self.for_session()
        })
    }

    /// Whether commands run in a sandbox; once found out, it stays so.
    ///
    /// # Errors
    /// If it cannot be found out. Then no command may run: perhaps it could have been sandboxed.
    pub(crate) fn sandbox(&self) -> Result<Sandbox, String> {
        // Held while it is found out: whoever asks meanwhile need not try too.
        let mut known = lock(&self.sandbox);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let found = match self.settings.sandbox {
            SandboxMode::Off => Sandbox::Off,
            SandboxMode::Auto | SandboxMode::Required => {
                let order = Order {
                    limits: Some(self.limits()),
                    ..Order::default()
                };
                self.with_large_folders(sandbox::probe(&self.settings.helper, &order)?)
            }
        };
        Ok(known.insert(found).clone())
    }

    /// Whether commands are to run in a sandbox, as far as can be told without trying.
    pub(crate) fn expects_sandbox(&self) -> bool {
        match self.settings.sandbox {
            SandboxMode::Off => false,
            SandboxMode::Auto | SandboxMode::Required => sandbox::is_likely(),
        }
    }

    /// Adds the folders in which private files may be that are not closed.
    fn with_large_folders(&self, sandbox: Sandbox) -> Sandbox {
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

    /// What a sandboxed command may do, for a model. The temporary folder has another name in each
    /// process, and is found by its variable.
    pub(crate) fn command_rules(&self) -> String {
        let granted = self.places.writable.iter().skip(2);
        let granted: String = granted
            .map(|folder| format!(", {}", folder.display()))
            .collect();
        let hidden = if self.settings.network {
            "credentials"
        } else {
            "credentials or the network"
        };
        format!(
            "Commands run in a sandbox: they write only in the workspace, $TMPDIR{granted}, and do \
             not see {hidden}."
        )
    }

    /// What a sandboxed command may do. This may search the home's configuration.
    pub(crate) fn limits(&self) -> Limits {
        let private = self.places.private.recently_found();
        Limits {
            network: Network::all_if(self.settings.network),
            writable: self.places.writable.clone(),
            readable: self.places.readable.clone(),
            secret: [&self.places.secret[..], &private.private].concat(),
        }
    }
}
