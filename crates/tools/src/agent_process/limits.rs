//! What an agent may do.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    places::Places,
    sandbox::{Limits, Network},
    settings::Settings,
};

/// What an agent may do. All paths are real: no links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLimits {
    /// What it may read and write.
    pub writable: Vec<PathBuf>,
    /// What it may read though it is within a secret path.
    pub readable: Vec<PathBuf>,
    /// What it may not read.
    pub secret: Vec<PathBuf>,
    pub network: AgentNetwork,
}

/// What an agent may use of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentNetwork {
    /// Connections by TCP to this port: that of its proxy.
    Only {
        port: u16,
        /// A port that it listens on itself, if it cannot do without. It is reached there through its
        /// proxy, by itself too.
        listens: Option<u16>,
    },
    /// All of it but sockets of this machine, because the user said so.
    Any,
}

/// The agent's own files, which are kept from commands: its login, its settings, its sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFiles {
    /// What it writes while it works. Nothing that another program, or itself outside of the sandbox,
    /// would carry out.
    pub writable: Vec<PathBuf>,
    /// What it only reads.
    pub readable: Vec<PathBuf>,
    /// Folders with what the program consists of. They may be within a secret path, but where one has
    /// secrets in it, as the home folder has, it is no more open than to commands.
    pub program: Vec<PathBuf>,
    /// What is kept from it, but for what of it is writable or readable.
    pub closed: Vec<PathBuf>,
}

impl AgentLimits {
    /// What commands of these settings may do, and what the agent does with its own files. This may
    /// search the home's configuration, for private files.
    ///
    /// # Errors
    /// If the workspace is not there.
    pub fn of(settings: &Settings, own: &AgentFiles, network: AgentNetwork) -> io::Result<Self> {
        let mut settings = settings.clone();
        settings.allowed.extend(own.writable.iter().cloned());
        settings.readable.extend(own.readable.iter().cloned());
        settings.secret_paths.extend(own.closed.iter().cloned());
        let closed = Places::new(&settings, &settings.workspace)?.secret;
        let holds_secrets = |folder: &Path| {
            let folder = folder.canonicalize();
            folder.is_ok_and(|folder| closed.iter().any(|path| path.starts_with(&folder)))
        };
        let program = own.program.iter();
        let program = program.filter(|folder| !holds_secrets(folder)).cloned();
        settings.readable.extend(program.collect::<Vec<_>>());
        // The agent gets its folder for temporary files when it is started.
        let places = Places::new(&settings, &settings.workspace)?;
        let secret = [&places.secret[..], &places.private.recently_found().private].concat();
        let mut writable = places.writable;
        writable.dedup();
        let granted = |secret: &Path| {
            let mut own = writable.iter().chain(&places.readable);
            own.any(|own| secret.starts_with(own)) && !secret.starts_with(&places.workspace)
        };
        Ok(Self {
            secret: secret
                .iter()
                .filter(|path| !granted(path))
                .cloned()
                .collect(),
            writable,
            readable: places.readable,
            network,
        })
    }

    /// The same for the processes that enforce it, with a folder for temporary files.
    pub(super) fn with_temporary(&self, temporary: PathBuf) -> Limits {
        let mut writable = self.writable.clone();
        writable.push(temporary);
        Limits {
            network: match self.network {
                AgentNetwork::Only { port, listens } => Network::Port {
                    connect: port,
                    listen: listens,
                },
                AgentNetwork::Any => Network::All,
            },
            writable,
            readable: self.readable.clone(),
            secret: self.secret.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn limits(home: &Path, program: PathBuf) -> io::Result<AgentLimits> {
        let settings = Settings {
            home: Some(home.to_owned()),
            ..Settings::new(home.join("project"), "helper")
        };
        let own = AgentFiles {
            program: vec![program],
            ..AgentFiles::default()
        };
        AgentLimits::of(&settings, &own, AgentNetwork::Any)
    }

    /// A program that lies in the home folder does not open all that is in there.
    #[test]
    fn the_folder_of_a_program_opens_no_secrets() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path().canonicalize()?;
        let (keys, within) = (home.join(".ssh"), home.join(".ssh/agent"));
        for folder in [&home.join("project"), &within] {
            fs::create_dir_all(folder)?;
        }
        let beside = limits(&home, home.clone())?;
        assert!(beside.secret.contains(&keys), "{beside:?}");
        assert!(!beside.readable.contains(&home), "{beside:?}");
        let inside = limits(&home, within.clone())?;
        assert!(inside.secret.contains(&keys), "{inside:?}");
        assert!(inside.readable.contains(&within), "{inside:?}");
        Ok(())
    }
}
