//! `asyncagents setup cursor` and others: the entry of our MCP server in a client's own file.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use serde_json::{Value, json};

use super::{
    json_entries::{self, NotEdited},
    plugin_file::Draft,
    yaml_entry,
};
use crate::{
    config::{config_home, home},
    exit::{Exit, Failure},
    make_visible::shown_path,
    print,
    read_short::read_short,
};

/// What our server is called in every client.
pub(super) const NAME: &str = "asyncagents";

/// A client of MCP servers that asyncagents has no plugin for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpClient {
    Cursor,
    VsCode,
    Zed,
    Gemini,
    Goose,
}

/// Where the entry goes.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
One entry is written into the client's own file, and nothing else of it is changed. This client cannot
be woken: its agent is told of an end with the answer to its next call. Its tasks cannot inherit its
conversation, which cannot be read. Tasks belong to the connection.")]
pub(in crate::commands) struct SetupClientArgs {
    /// Write your own file, for all projects. This is the default.
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Write the file of this folder.
    #[arg(long)]
    project: bool,

    /// Remove the entry instead.
    #[arg(long, conflicts_with = "check")]
    remove: bool,

    /// Change nothing, and check whether the entry is there.
    #[arg(long)]
    check: bool,
}

/// A file with a list of servers.
struct ClientFile {
    client: McpClient,
    path: PathBuf,
}

pub(super) fn run(client: McpClient, args: &SetupClientArgs) -> Result<Exit, Failure> {
    let file = ClientFile {
        client,
        path: client.file(args.project)?,
    };
    match (args.remove, args.check) {
        (true, _) => file.remove(),
        (_, true) => file.check(),
        _ => file.install(),
    }
}

/// Says of the clients that seem to be installed how they are set up: they were not asked for.
pub(super) fn say_offers() {
    let all = [
        McpClient::Cursor,
        McpClient::VsCode,
        McpClient::Zed,
        McpClient::Gemini,
        McpClient::Goose,
    ];
    let has_folder = |client: &McpClient| {
        let file = client.file(false).ok();
        file.is_some_and(|file| file.parent().is_some_and(Path::is_dir))
    };
    for client in all.into_iter().filter(has_folder) {
        let (name, command) = (client.shown(), client.command());
        print::remark(&format!(
            "{name} can use the tools, too: `asyncagents setup {command}`\n"
        ));
    }
}

impl McpClient {
    fn shown(self) -> &'static str {
        match self {
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "goose",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Zed => "zed",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
        }
    }

    /// The field that has the servers.
    fn list(self) -> &'static str {
        match self {
            Self::Cursor | Self::Gemini => "mcpServers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Goose => "extensions",
        }
    }

    fn entry(self, program: &str) -> Value {
        match self {
            Self::Cursor | Self::Gemini => json!({"command": program, "args": ["mcp"]}),
            Self::VsCode => json!({"type": "stdio", "command": program, "args": ["mcp"]}),
            Self::Zed => {
                json!({"source": "custom", "command": program, "args": ["mcp"], "env": {}})
            }
            Self::Goose => json!({
                "args": ["mcp"],
                "cmd": program,
                "enabled": true,
                "name": NAME,
                "timeout": 3600,
                "type": "stdio",
            }),
        }
    }

    fn file(self, project: bool) -> Result<PathBuf, Failure> {
        if !project {
            let no_home =
                || Failure::Machine(anyhow!("HOME is not set, so there is no file of yours"));
            let home = home().ok_or_else(no_home)?;
            let config = config_home().ok_or_else(no_home)?;
            return Ok(match self {
                Self::Cursor => home.join(".cursor/mcp.json"),
                Self::VsCode if cfg!(target_os = "macos") => {
                    home.join("Library/Application Support/Code/User/mcp.json")
                }
                Self::VsCode => config.join("Code/User/mcp.json"),
                Self::Zed => config.join("zed/settings.json"),
                Self::Gemini => home.join(".gemini/settings.json"),
                Self::Goose => config.join("goose/config.yaml"),
            });
        }
        let here = env::current_dir().map_err(|error| Failure::Machine(error.into()))?;
        let file = match self {
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Goose => {
                return Err(Failure::Input(anyhow!(
                    "goose has one file for all projects; leave out --project"
                )));
            }
        };
        inside(&here, here.join(file))
    }
}

/// A file of a project, unless a link of its author's leads out of it.
fn inside(project: &Path, file: PathBuf) -> Result<PathBuf, Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let nearest = file
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let nearest = nearest.unwrap_or(project);
    if real(nearest).starts_with(real(project)) {
        return Ok(file);
    }
    Err(Failure::Input(anyhow!(
        "{} leads out of this folder; it was left alone",
        shown_path(nearest)
    )))
}

impl ClientFile {
    fn install(&self) -> Result<Exit, Failure> {
        let program = this_program()?;
        let entry = self.client.entry(&program);
        let before = self.read()?;
        let edited = match self.client {
            McpClient::Goose => yaml_entry::set(&before, self.client.list(), NAME, &entry),
            _ => json_entries::set(&before, self.client.list(), NAME, &entry),
        };
        let after = edited.map_err(|why| self.by_hand(why, &entry))?;
        let (name, path) = (self.client.shown(), shown_path(&self.path));
        if after == before {
            print::answer(&format!("{path} has the entry already."))?;
        } else {
            Draft::write(&self.path, &after)?.put()?;
            print::answer(&format!("Entered asyncagents in {path}. Restart {name}."))?;
        }
        print::answer(&format!(
            "{name} cannot be woken: its agent is told of an end with the answer to its next call. It \
             cannot fork its conversation."
        ))?;
        Ok(Exit::Done)
    }

    fn remove(&self) -> Result<Exit, Failure> {
        let before = self.read()?;
        let edited = match self.client {
            McpClient::Goose => yaml_entry::remove(&before, self.client.list(), NAME),
            _ => json_entries::remove(&before, self.client.list(), NAME),
        };
        let after = edited.map_err(|why| self.by_hand(why, &Value::Null))?;
        let path = shown_path(&self.path);
        if after == before {
            print::answer(&format!("{path} does not have the entry."))?;
        } else {
            Draft::write(&self.path, &after)?.put()?;
            print::answer(&format!("Removed asyncagents from {path}."))?;
        }
        Ok(Exit::Done)
    }

    fn check(&self) -> Result<Exit, Failure> {
        let before = self.read()?;
        let removed = match self.client {
            McpClient::Goose => yaml_entry::remove(&before, self.client.list(), NAME),
            _ => json_entries::remove(&before, self.client.list(), NAME),
        };
        let path = shown_path(&self.path);
        if removed.is_ok_and(|removed| removed != before) {
            print::answer(&format!("{path} has the entry."))?;
            return Ok(Exit::Done);
        }
        Err(Failure::Machine(anyhow!(
            "{path} does not have the entry; `asyncagents setup {}` writes it",
            self.client.command()
        )))
    }

    fn read(&self) -> Result<String, Failure> {
        match read_short(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => {
                let path = shown_path(&self.path);
                Err(Failure::Machine(anyhow!("{path} cannot be read: {error}")))
            }
        }
    }

    /// What to say of a file that is not edited.
    fn by_hand(&self, NotEdited(why): NotEdited, entry: &Value) -> Failure {
        let (path, list) = (shown_path(&self.path), self.client.list());
        Failure::Input(if entry.is_null() {
            anyhow!("{path} {why}; it was left alone. Remove `{NAME}` below `{list}` yourself")
        } else {
            anyhow!(
                "{path} {why}; it was left alone. Enter this below `{list}` yourself: \"{NAME}\": {entry}"
            )
        })
    }
}

fn this_program() -> Result<String, Failure> {
    let this = env::current_exe().map_err(|error| Failure::Machine(error.into()))?;
    let name = this.to_str().map(str::to_owned);
    name.ok_or_else(|| Failure::Machine(anyhow!("the name of this program is not text")))
}
