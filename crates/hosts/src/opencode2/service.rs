//! The background server of OpenCode 2: where it is, and its password.
//!
//! It writes both into a file. Whoever could write that file could have our requests, and whoever
//! could listen at its address could have the password, so neither is believed unseen.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Read},
    net::SocketAddr,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use asyncagents_core::{port::HostError, secret::Secret};
use reqwest::Url;
use rustix::{
    fs::OFlags,
    process::{Pid, geteuid, test_kill_process},
};
use serde::Deserialize;
use thiserror::Error;

use super::{api::HEALTH, ports};
use crate::{Connection, Request};

/// OpenCode writes some 200 bytes.
const LONGEST: u64 = 64 * 1024;

/// A server of OpenCode 2 on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// `http://127.0.0.1:49374`
    pub url: String,
    pub pid: u32,
    pub password: Secret,
}

/// Why what is in the file of a background server is not used.
#[derive(Debug, Error)]
#[error("{}: {why}", file.display())]
pub struct ServiceError {
    file: PathBuf,
    pub why: Unusable,
}

#[derive(Debug, Error)]
pub enum Unusable {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it is a link or no file at all, so another user may have put it there")]
    NotAFile,
    #[error("it belongs to another user")]
    OtherUser,
    #[error(
        "other users may read or change it (mode {0:o}); `chmod 600` helps, and a new password"
    )]
    Open(u32),
    #[error("it is longer than anything OpenCode writes there")]
    TooLong,
    // What is wrong with it could be shown only with parts of the file.
    #[error("it is not what OpenCode 2 writes there")]
    Malformed,
    #[error("it names an address that is not `http` on this machine")]
    Elsewhere,
    #[error("it is about process {0}, which is not running or not yours")]
    Ended(u32),
    #[error("it is about process {found}, and not about {wanted}")]
    OtherProcess { found: u32, wanted: u32 },
    #[error("it names port {port}, where process {pid} does not listen")]
    NotListening { pid: u32, port: u16 },
}

/// The file of the background server of the user whose environment this is.
pub fn service_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")))?;
    Some(state.join("opencode/service.json"))
}

/// The password of a `serve` whose environment this is.
pub fn password(variable: impl Fn(&str) -> Option<String>) -> Option<Secret> {
    let names = ["OPENCODE_PASSWORD", "OPENCODE_SERVER_PASSWORD"];
    let mut set = names.into_iter().filter_map(variable);
    set.find(|value| !value.is_empty()).map(Secret::new)
}

impl Service {
    /// The background server that a file tells of; nothing if there is no file.
    ///
    /// # Errors
    /// When there is one that is not to be believed.
    pub fn read(file: &Path) -> Result<Option<Self>, ServiceError> {
        let wrong = |why| ServiceError {
            file: file.to_owned(),
            why,
        };
        let text = match open(file) {
            Ok(opened) => contents(&opened).map_err(wrong)?,
            Err(Unusable::Unreadable(error)) if is_absence(&error) => return Ok(None),
            Err(why) => return Err(wrong(why)),
        };
        let service = Self::parse(&text).map_err(wrong)?;
        service.check_process().map_err(wrong)?;
        Ok(Some(service))
    }

    /// The background server that a file tells of, if it is this process; nothing if there is no
    /// file.
    ///
    /// # Errors
    /// When it is another one, or not to be believed.
    pub fn of_process(file: &Path, pid: u32) -> Result<Option<Self>, ServiceError> {
        let service = Self::read(file)?;
        match &service {
            Some(other) if other.pid != pid => Err(ServiceError {
                file: file.to_owned(),
                why: Unusable::OtherProcess {
                    found: other.pid,
                    wanted: pid,
                },
            }),
            _ => Ok(service),
        }
    }

    /// What a process may be reached at, with a password that is known otherwise.
    pub fn candidates(pid: u32, password: &Secret) -> Vec<Self> {
        let places = ports::listening(pid).unwrap_or_default().into_iter();
        let service = |at: SocketAddr| Self {
            url: format!("http://{at}"),
            pid,
            password: password.clone(),
        };
        places.map(service).collect()
    }

    /// Whether it is this server that answers.
    ///
    /// # Errors
    /// When something else answers, or nothing.
    pub async fn confirm(&self, connection: &dyn Connection) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Health {
            pid: Option<u32>,
        }
        for path in HEALTH {
            let response = connection.send(Request::get(path)).await?;
            let health = serde_json::from_str::<Health>(&response.body).ok();
            let pid = health.and_then(|health| health.pid);
            if response.status < 400 && pid == Some(self.pid) {
                return Ok(());
            }
        }
        Err(HostError::Refused(format!(
            "{} is not the OpenCode 2 of process {}",
            self.url, self.pid
        )))
    }

    fn parse(text: &str) -> Result<Self, Unusable> {
        #[derive(Deserialize)]
        struct Written {
            url: String,
            pid: u32,
            password: String,
        }
        let written: Written = serde_json::from_str(text).map_err(|_| Unusable::Malformed)?;
        Ok(Self {
            url: local(&written.url).ok_or(Unusable::Elsewhere)?,
            pid: written.pid,
            password: Secret::new(written.password),
        })
    }

    /// The process is the user's and listens there: a port may have passed to another program,
    /// which would be sent the password.
    fn check_process(&self) -> Result<(), Unusable> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if pid.is_none_or(|pid| test_kill_process(pid).is_err()) {
            return Err(Unusable::Ended(self.pid));
        }
        let address = self
            .url
            .strip_prefix("http://")
            .and_then(|at| at.parse().ok());
        let address: SocketAddr = address.ok_or(Unusable::Elsewhere)?;
        if ports::is_reached(self.pid, address) == Some(false) {
            let (pid, port) = (self.pid, address.port());
            return Err(Unusable::NotListening { pid, port });
        }
        Ok(())
    }
}

/// Opens a file that only its user can have written. Links are not followed, and a pipe is not
/// waited for.
fn open(file: &Path) -> Result<File, Unusable> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::LOOP.raw_os_error() => Unusable::NotAFile,
        _ => Unusable::Unreadable(error),
    })?;
    let about = opened.metadata().map_err(Unusable::Unreadable)?;
    if !about.is_file() {
        return Err(Unusable::NotAFile);
    }
    if about.uid() != geteuid().as_raw() {
        return Err(Unusable::OtherUser);
    }
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Unusable::Open(mode));
    }
    Ok(opened)
}

fn contents(file: &File) -> Result<String, Unusable> {
    let mut text = Vec::new();
    let read = file.take(LONGEST + 1).read_to_end(&mut text);
    let length = read.map_err(Unusable::Unreadable)?;
    if u64::try_from(length).is_ok_and(|length| length > LONGEST) {
        return Err(Unusable::TooLong);
    }
    String::from_utf8(text).map_err(|_| Unusable::Malformed)
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// An address of this machine that needs no name and no proxy, without anything after the port.
fn local(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let port = url.port()?;
    let is_plain = url.scheme() == "http"
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if !is_plain {
        return None;
    }
    // An address that stands for all of the machine's is reached at the machine's own.
    let host = match url.host_str()? {
        "localhost" | "127.0.0.1" | "0.0.0.0" => "127.0.0.1",
        "[::1]" | "[::]" => "[::1]",
        _ => return None,
    };
    Some(format!("http://{host}:{port}"))
}
