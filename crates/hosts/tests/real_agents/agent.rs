//! Which agent is the child.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use asyncagents_hosts::{
    acp::AcpSettings,
    agent_needs::needs,
    agent_rules::{AgentPlace, Held, acp_settings, variables},
};
use asyncagents_scripted_model::Reply;
use serde_json::json;

/// An agent that runs as a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    /// Claude Code by its own records, without the adapter.
    #[allow(dead_code, reason = "stories with the program tell of it")]
    ClaudeAlone,
    Codex,
    Gemini,
    Goose,
    OpenCode,
}

impl Agent {
    /// What users call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude | Self::ClaudeAlone => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::OpenCode => "opencode",
        }
    }

    /// What its program is called.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude-agent-acp",
            Self::ClaudeAlone => "claude",
            Self::Codex => "codex-acp",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::OpenCode => "opencode",
        }
    }

    /// What its own process is called with, and none of ours.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn process(self) -> &'static str {
        match self {
            Self::Claude => "claude-agent-acp",
            Self::ClaudeAlone => "claude -p ",
            Self::Codex => "codex-acp",
            Self::Gemini => ".js --acp",
            Self::Goose => "goose acp",
            Self::OpenCode => "opencode acp",
        }
    }

    /// Its program, with arguments, unless it cannot be had here. The first test fetches it.
    pub(crate) fn command(self) -> Option<Vec<String>> {
        static FETCHED: OnceLock<()> = OnceLock::new();
        FETCHED.get_or_init(|| {
            for script in ["acp-for-tests", "agents-for-tests", "opencode-for-tests"] {
                let done = Command::new(repository().join("scripts").join(script)).status();
                assert!(done.expect("the script runs").success(), "{script}");
            }
        });
        let target = repository().join("target");
        let adapters = target.join("acp-for-tests");
        let node = adapters.join("node");
        let words = match self {
            Self::Claude => vec![node, adapters.join("claude-agent-acp")],
            Self::ClaudeAlone => vec![target.join("agents-for-tests/claude")],
            Self::Codex => vec![node, adapters.join("codex-acp")],
            Self::Gemini => vec![node, adapters.join("gemini")],
            Self::Goose => vec![adapters.join("goose")],
            Self::OpenCode => vec![target.join("opencode-for-tests/opencode")],
        };
        let is_there = words.iter().all(|word| word.exists());
        let real = |word: &PathBuf| word.canonicalize().ok()?.to_str().map(str::to_owned);
        let mut words: Vec<String> = words.iter().map(real).collect::<Option<_>>()?;
        let speaks = match self {
            Self::Claude | Self::ClaudeAlone | Self::Codex => None,
            Self::Gemini => Some("--acp"),
            Self::Goose | Self::OpenCode => Some("acp"),
        };
        words.extend(speaks.map(str::to_owned));
        is_there.then_some(words)
    }

    pub(crate) fn is_missing(self) -> bool {
        self.command().is_none()
    }

    /// How it is used by a user with this home, outside of our sandbox.
    pub(crate) fn settings(self, home: &Path) -> AcpSettings {
        let place = AgentPlace {
            home,
            project: home,
            is_sandboxed: false,
            asks_to_read: false,
            variable: |_| None,
        };
        acp_settings(self.name(), place)
    }

    /// The variables that it needs beside those of every program.
    pub(crate) fn variables(self) -> Vec<(&'static str, String)> {
        let held = Held {
            may_delegate: false,
            asks_to_read: false,
            hook: None,
        };
        let place = AgentPlace {
            home: Path::new("/"),
            project: Path::new("/"),
            is_sandboxed: false,
            asks_to_read: false,
            variable: |_| None,
        };
        let mut all = variables(self.name(), place, held);
        let needs = needs(self.name()).expect("it is known");
        let set = needs.set.iter();
        all.extend(set.map(|(name, value)| (*name, (*value).to_owned())));
        all
    }

    /// Reads a file of the project, which nobody is asked about, or only because an agent asks about
    /// everything.
    pub(crate) fn reads(self, file: &Path) -> Reply {
        match self {
            Self::Claude | Self::ClaudeAlone => Reply::call("Read", json!({"file_path": file})),
            Self::Gemini => Reply::call("read_file", json!({"file_path": file})),
            Self::Goose => Reply::call(
                "shell",
                json!({"command": format!("cat {}", file.display())}),
            ),
            Self::Codex => Reply::call(
                "exec_command",
                json!({"cmd": format!("cat {}", file.display())}),
            ),
            Self::OpenCode => Reply::call("read", json!({"filePath": file})),
        }
    }

    /// What it calls the tool with which it does so.
    pub(crate) fn tool_that_reads(self) -> &'static str {
        match self {
            Self::Claude | Self::ClaudeAlone => "Read",
            Self::Codex => "exec_command",
            Self::Gemini => "read",
            Self::Goose => "shell",
            Self::OpenCode => "read",
        }
    }

    /// What one of our tools is called there.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn our_tool(self, name: &str) -> String {
        match self {
            Self::Claude | Self::ClaudeAlone => format!("mcp__asyncagents__{name}"),
            Self::Codex => format!("mcp__asyncagents/{name}"),
            Self::Gemini => format!("mcp_asyncagents_{name}"),
            Self::Goose => format!("asyncagents__{name}"),
            Self::OpenCode => format!("asyncagents_{name}"),
        }
    }

    /// What a request to its model has in it where it can start sub-agents of its own. Some offer tools
    /// only by their names until they are asked for. For goose it is refused, not left out.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn signs_of_own_sub_agents(self) -> &'static [&'static str] {
        match self {
            Self::Claude | Self::ClaudeAlone => &[r#""name":"Agent""#],
            Self::Codex => &["- Multi-agent tools: "],
            Self::OpenCode => &[r#""name":"task""#],
            Self::Gemini => &[r#""name":"invoke_agent""#],
            Self::Goose => &[],
        }
    }

    /// The same for our tools.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn sign_of_our_tools(self) -> String {
        match self {
            Self::Codex => "- asyncagents: ".to_owned(),
            other => other.our_tool("task"),
        }
    }

    /// What so many answers cost, each with the same tokens: input, of that cached, output. In dollars.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn cost(
        self,
        answers: usize,
        (input, cached, output): (u64, u64, u64),
    ) -> Option<f64> {
        // It does not say what was cached.
        let cached = if self == Self::Gemini { 0 } else { cached };
        // Of a million, in tenths of a cent.
        let (in_price, cached_price, out_price) = match self {
            Self::Claude | Self::ClaudeAlone => (4_000, 200, 20_000),
            Self::Codex => (5_000, 500, 30_000),
            Self::Gemini => (1_250, 125, 10_000),
            Self::Goose | Self::OpenCode => (3_000, 300, 15_000),
        };
        let one = (input - cached) * in_price + cached * cached_price + output * out_price;
        let all = one * u64::try_from(answers).ok()?;
        // As asyncagents counts, in millionths of a dollar.
        Some(f64::from(u32::try_from(all / 1_000).ok()?) / 1e6)
    }

    /// The same in our sandbox, where Codex has none of its own to leave.
    #[allow(dead_code, reason = "stories with the program ask")]
    pub(crate) fn runs_in_our_sandbox(self, command: &str) -> Reply {
        match self {
            Self::Codex => Reply::call(
                "exec_command",
                json!({"cmd": command, "yield_time_ms": 60_000}),
            ),
            other => other.runs(command),
        }
    }

    /// Runs a command, which somebody is asked about.
    pub(crate) fn runs(self, command: &str) -> Reply {
        match self {
            Self::Claude | Self::ClaudeAlone => {
                Reply::call("Bash", json!({"command": command, "description": "x"}))
            }
            Self::Gemini => {
                let input = json!({"command": command, "description": "x"});
                Reply::call("run_shell_command", input)
            }
            Self::Goose => Reply::call("shell", json!({"command": command})),
            Self::Codex => Reply::call(
                "exec_command",
                json!({"cmd": command, "yield_time_ms": 60_000,
                    "sandbox_permissions": "require_escalated", "justification": "x"}),
            ),
            Self::OpenCode => Reply::call("bash", json!({"command": command, "description": "x"})),
        }
    }
}

fn repository() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).expect("the repository")
}
