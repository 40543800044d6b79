//! Which host a task runs in, and what its launcher said about the agent there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A host, by a name that every process understands. Its text is in databases: what was written
/// once is read for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostRef {
    /// The built-in agent in a folder: `engine:/folder`.
    Engine {
        /// An absolute path without links.
        folder: Box<str>,
    },
    /// An OpenCode 1 that has loaded our plugin; only its own bridge reaches it.
    OpenCodeBridge {
        /// The folder it was opened in.
        folder: Box<str>,
        /// The OpenCode process, so that tasks of one that lives are not taken over.
        process: Box<str>,
        /// Its data folder: an OpenCode that has the same one has the same sessions.
        data: Box<str>,
    },
    /// An `opencode serve` of OpenCode 1 at an address.
    OpenCodeUrl {
        /// `http://` or `https://`, without a slash at its end.
        url: Box<str>,
        /// The folder its sessions work in, if it is not the server's own.
        folder: Option<Box<str>>,
    },
    /// A server of OpenCode 2 that has loaded our plugin; its bridge works on the tasks.
    OpenCode2Bridge {
        /// The folder of the session that launched the task; one server has many.
        folder: Box<str>,
        /// The server's process, so that tasks of one that lives are not taken over.
        process: Box<str>,
        /// Its data folder: a server that has the same one has the same sessions.
        data: Box<str>,
        /// Whether it is the background server, which goes on by itself with what it was at when it
        /// is started again.
        background: bool,
    },
    /// A server of OpenCode 2 at an address.
    OpenCode2Url {
        /// `http://` or `https://`, without a slash at its end.
        url: Box<str>,
        /// The folder its sessions work in, if it is not the server's own.
        folder: Option<Box<str>>,
    },
    /// Claude Code. Its sessions launch tasks and are told of them; it runs none.
    ClaudeCode {
        /// Its configuration folder, where its conversations are.
        config: Box<str>,
    },
    /// Codex. Its threads launch tasks and are told of them; it runs none.
    Codex {
        /// Its home folder, where its conversations are.
        home: Box<str>,
    },
    /// A client of our MCP server that is neither: its sessions are connections.
    McpClient,
    /// Another agent, which we start for each task: `agent:codex:/folder`. Its sessions are in our
    /// journal.
    Agent {
        /// What the user's settings call it. What is run for it is not in a database.
        name: Box<str>,
        /// An absolute path without links.
        folder: Box<str>,
        /// The OpenCode whose session launched the task: only its own bridge reaches that session,
        /// so it works on the task too.
        bridge: Option<Box<HostRef>>,
        /// The user has said that it runs without a sandbox.
        unsandboxed: bool,
    },
    /// A host of another kind. A program that does not have that kind neither serves nor opens it,
    /// and its tasks stay as they are.
    Other(Box<str>),
}

/// The kind of a host that is another agent.
const AGENT: &str = "agent";

/// Between what people see of a host's name and its details, which are JSON.
const DETAILS: &str = "//?";

#[derive(Serialize, Deserialize)]
struct BridgeDetails<S> {
    process: S,
    data: S,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    background: bool,
}

#[derive(Serialize, Deserialize)]
struct UrlDetails<S> {
    directory: Option<S>,
}

#[derive(Serialize, Deserialize)]
struct AgentDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bridge: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unsandboxed: bool,
}

impl HostRef {
    /// The built-in agent in a folder.
    pub fn engine(folder: &str) -> Self {
        Self::Engine {
            folder: folder.into(),
        }
    }

    /// The host as people know it, without details that only programs need. Both generations of
    /// OpenCode are `opencode`, as `--host` calls them.
    pub fn label(&self) -> String {
        match self {
            Self::OpenCode2Bridge { folder, .. } => format!("opencode:{folder}"),
            Self::OpenCode2Url { url, .. } => format!("opencode:{url}"),
            Self::Agent { name, folder, .. } => format!("{name}:{folder}"),
            Self::Engine { .. }
            | Self::OpenCodeBridge { .. }
            | Self::OpenCodeUrl { .. }
            | Self::Other(_) => self.name(),
            Self::ClaudeCode { .. } | Self::Codex { .. } | Self::McpClient => {
                self.kind().to_owned()
            }
        }
    }

    /// The kind of host and where it is: the text on disk, without the details.
    pub fn name(&self) -> String {
        match self {
            Self::Engine { folder } => format!("engine:{folder}"),
            Self::OpenCodeBridge { folder, .. } => format!("opencode:{folder}"),
            Self::OpenCodeUrl { url, .. } => format!("opencode:{url}"),
            Self::OpenCode2Bridge { folder, .. } => format!("opencode2:{folder}"),
            Self::OpenCode2Url { url, .. } => format!("opencode2:{url}"),
            Self::ClaudeCode { config: folder } | Self::Codex { home: folder } => {
                format!("{}:{folder}", self.kind())
            }
            Self::McpClient => self.kind().to_owned(),
            Self::Agent { name, folder, .. } => format!("{AGENT}:{name}:{folder}"),
            Self::Other(text) => text.to_string(),
        }
    }

    /// Whether it runs no tasks: its sessions only launch them.
    pub fn is_outside(&self) -> bool {
        match self {
            Self::ClaudeCode { .. } | Self::Codex { .. } | Self::McpClient => true,
            Self::Engine { .. }
            | Self::OpenCodeBridge { .. }
            | Self::OpenCodeUrl { .. }
            | Self::OpenCode2Bridge { .. }
            | Self::OpenCode2Url { .. }
            | Self::Agent { .. }
            | Self::Other(_) => false,
        }
    }

    /// Whether its sessions have our tools over MCP, where the server's name is in front of theirs.
    pub fn has_tools_over_mcp(&self) -> bool {
        self.is_outside() || matches!(self, Self::Agent { .. })
    }

    /// Whether its sessions are told something when they ask, for nothing can be sent to them.
    pub fn is_told_when_asking(&self) -> bool {
        match self {
            Self::ClaudeCode { .. } | Self::McpClient => true,
            Self::Codex { .. }
            | Self::Engine { .. }
            | Self::OpenCodeBridge { .. }
            | Self::OpenCodeUrl { .. }
            | Self::OpenCode2Bridge { .. }
            | Self::OpenCode2Url { .. }
            | Self::Agent { .. }
            | Self::Other(_) => false,
        }
    }

    /// What the names of all hosts of this kind begin with, up to a colon.
    pub fn kind(&self) -> &str {
        match self {
            Self::Engine { .. } => "engine",
            Self::OpenCodeBridge { .. } | Self::OpenCodeUrl { .. } => "opencode",
            Self::OpenCode2Bridge { .. } | Self::OpenCode2Url { .. } => "opencode2",
            Self::ClaudeCode { .. } => "claude-code",
            Self::Codex { .. } => "codex",
            Self::McpClient => "mcp",
            Self::Agent { .. } => AGENT,
            Self::Other(text) => text.split_once(':').map_or(text, |(kind, _)| kind),
        }
    }

    /// The details beside the name, as JSON; empty if the name says everything.
    pub fn details(&self) -> String {
        let json = match self {
            Self::Engine { .. }
            | Self::ClaudeCode { .. }
            | Self::Codex { .. }
            | Self::McpClient
            | Self::Agent {
                bridge: None,
                unsandboxed: false,
                ..
            }
            | Self::Other(_) => return String::new(),
            Self::Agent {
                bridge,
                unsandboxed,
                ..
            } => serde_json::to_string(&AgentDetails {
                bridge: bridge.as_ref().map(|bridge| bridge.to_string()),
                unsandboxed: *unsandboxed,
            }),
            Self::OpenCodeBridge { process, data, .. } => serde_json::to_string(&BridgeDetails {
                process,
                data,
                background: false,
            }),
            Self::OpenCode2Bridge {
                process,
                data,
                background,
                ..
            } => serde_json::to_string(&BridgeDetails {
                process,
                data,
                background: *background,
            }),
            Self::OpenCodeUrl { folder, .. } | Self::OpenCode2Url { folder, .. } => {
                serde_json::to_string(&UrlDetails {
                    directory: folder.as_ref(),
                })
            }
        };
        // Maps of strings can always be written.
        json.unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "engine" if !rest.is_empty() => Some(Self::engine(rest)),
            "claude-code" if !rest.is_empty() => Some(Self::ClaudeCode {
                config: rest.into(),
            }),
            "codex" if !rest.is_empty() => Some(Self::Codex { home: rest.into() }),
            "mcp" if rest.is_empty() => Some(Self::McpClient),
            AGENT => Self::parse_agent(rest),
            "opencode" => Some(match Place::parse(rest)? {
                Place::Bridge(folder, details) => Self::OpenCodeBridge {
                    folder,
                    process: details.process,
                    data: details.data,
                },
                Place::Url(url, UrlDetails { directory: folder }) => {
                    Self::OpenCodeUrl { url, folder }
                }
            }),
            "opencode2" => Some(match Place::parse(rest)? {
                Place::Bridge(folder, details) => Self::OpenCode2Bridge {
                    folder,
                    process: details.process,
                    data: details.data,
                    background: details.background,
                },
                Place::Url(url, UrlDetails { directory: folder }) => {
                    Self::OpenCode2Url { url, folder }
                }
            }),
            _ => None,
        }
    }
}

impl HostRef {
    fn parse_agent(rest: &str) -> Option<Self> {
        let (name, rest) = rest.split_once(':')?;
        let (folder, details) = rest.split_once(DETAILS).unwrap_or((rest, "{}"));
        let details: AgentDetails = serde_json::from_str(details).ok()?;
        let bridge = details.bridge.as_deref();
        (!name.is_empty() && !folder.is_empty()).then(|| Self::Agent {
            name: name.into(),
            folder: folder.into(),
            bridge: bridge.map(|bridge| Box::new(Self::from(bridge))),
            unsandboxed: details.unsandboxed,
        })
    }
}

/// Where an OpenCode of either generation is.
enum Place {
    Bridge(Box<str>, BridgeDetails<Box<str>>),
    Url(Box<str>, UrlDetails<Box<str>>),
}

impl Place {
    fn parse(rest: &str) -> Option<Self> {
        let (place, details) = rest.split_once(DETAILS).unwrap_or((rest, "{}"));
        if place.starts_with("http://") || place.starts_with("https://") {
            let details = serde_json::from_str(details).ok()?;
            return Some(Self::Url(place.into(), details));
        }
        let details = serde_json::from_str(details).ok()?;
        Some(Self::Bridge(place.into(), details))
    }
}

impl fmt::Display for HostRef {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name())?;
        let details = self.details();
        if details.is_empty() {
            return Ok(());
        }
        write!(f, "{DETAILS}{details}")
    }
}

impl From<&str> for HostRef {
    fn from(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|| Self::Other(text.into()))
    }
}

/// A host, set up as the launcher of a task wants it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostSetup {
    pub host: HostRef,
    /// What the launcher's flags and environment say about the agent.
    pub settings: LaunchSettings,
}

/// Settings that go with a task from its launcher to whichever worker runs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LaunchSettings {
    /// An object of JSON; empty if nothing was set. Only the host it is for reads it.
    pub json: Box<str>,
    /// Proves who wrote host and settings; empty where that need not be proved.
    pub seal: Box<str>,
}

impl From<HostRef> for HostSetup {
    fn from(host: HostRef) -> Self {
        let settings = LaunchSettings::default();
        Self { host, settings }
    }
}
