//! The table of known agents.

use super::gemini_settings::settings_of_child;

/// What an agent needs to work in the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub struct Needs {
    pub name: &'static str,
    /// The hosts of its models, as [`AllowedHosts::host`](crate::proxy::AllowedHosts::host) takes them,
    /// and those that renew its login. Not what counts, updates or looks up.
    pub hosts: &'static [&'static str],
    /// Variables with the address of a model server.
    pub servers: &'static [&'static str],
    /// Variables that it gets besides what commands get: names, and beginnings with a `*` behind them.
    pub variables: &'static [&'static str],
    /// Variables that are set for it.
    pub set: &'static [(&'static str, &'static str)],
    /// Its folders, and what it does in them.
    pub(super) folders: &'static [Folder],
    /// Whether it listens on a port to talk to itself.
    pub listens: bool,
}

/// A folder of an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Folder {
    /// The variable that says where it is, and what is below that.
    pub(super) moved_by: Option<(&'static str, &'static str)>,
    /// Where it is otherwise, below the home folder.
    pub(super) path: &'static str,
    pub(super) own: &'static [Own],
}

/// Something in a folder of an agent. The empty path is the folder itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// A folder that it writes.
    WritesIn(&'static str),
    /// A file that it writes, and that is made empty if it is missing: where the folder may not be
    /// written, the agent could not make it.
    Writes(&'static str),
    /// A file that it writes if it is there.
    Renews(&'static str),
    /// What it only reads though commands may not.
    Reads(&'static str),
    /// A folder that it only reads, and that is made if it is missing: it would make it, and cannot start
    /// where it may not.
    ReadsIn(&'static str),
    /// A folder that it writes, and the variable that tells it so.
    ToldOf(&'static str, &'static str),
    /// A folder with one for each project, which Claude Code names: only that of the project is its.
    Projects(&'static str),
    /// A folder of ours with one for each project, in which it has all that it writes.
    Apart(Apart),
}

/// What an agent has apart from the user's own sessions with it, and from those in other projects. What
/// it changes there is only for its own sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// Folders in it, and the variables that lead the agent there. The empty path is all of it.
    pub(super) told: &'static [(&'static str, &'static str)],
    /// Folders in it that have to be there.
    pub(super) folders: &'static [&'static str],
    /// Links in it, and the user's files beside it that they lead to.
    pub(super) links: &'static [(&'static str, &'static str)],
    /// A file in it that is made of one of the user's beside it.
    pub(super) made: Option<Made>,
}

/// A file that is made of another.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) at: &'static str,
    pub(super) of: &'static str,
    pub(super) by: fn(&str) -> String,
}

impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.of) == (other.at, other.of)
    }
}

impl Eq for Made {}

use Own::{Projects, Reads, ReadsIn, Renews, ToldOf, Writes, WritesIn};

/// What the agent is known to need, if it is known.
pub fn needs(name: &str) -> Option<&'static Needs> {
    TABLE.iter().find(|needs| needs.name == name)
}

/// All that are known.
pub fn known() -> &'static [Needs] {
    TABLE
}

/// What an agent may write is what it, or another program, does not carry out later outside of the
/// sandbox: conversations, never settings with hooks, scripts that shells read, or a Git folder, whose
/// settings name commands. Nor what it would carry out in another project's sandbox.
const TABLE: &[Needs] = &[
    Needs {
        name: "claude",
        hosts: &["api.anthropic.com"],
        servers: &["ANTHROPIC_BASE_URL"],
        variables: &[
            "ANTHROPIC_*",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "API_TIMEOUT_MS",
            "CLAUDE_CODE_EFFORT_LEVEL",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "MAX_THINKING_TOKENS",
        ],
        set: &[
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        folders: &[
            Folder {
                moved_by: Some(("CLAUDE_CONFIG_DIR", "")),
                path: ".claude",
                // It renews a login by files that it makes beside it, which it cannot here: then it does
                // not try, and the login that is there stays valid.
                own: &[
                    Projects("projects"),
                    Reads(".credentials.json"),
                    Reads(".claude.json"),
                ],
            },
            Folder {
                moved_by: None,
                path: "",
                own: &[Reads(".claude.json")],
            },
        ],
        listens: false,
    },
    Needs {
        name: "codex",
        hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com"],
        servers: &["OPENAI_BASE_URL"],
        variables: &["CODEX_API_KEY", "CODEX_HOME", "OPENAI_*", "OPENAI_API_KEY"],
        set: &[],
        folders: &[Folder {
            moved_by: Some(("CODEX_HOME", "")),
            path: ".codex",
            own: &[
                WritesIn("sessions"),
                WritesIn("thread-writer-locks"),
                Writes("auth.lock"),
                Writes("installation_id"),
                Renews("auth.json"),
                // Its databases make files beside themselves.
                ToldOf("asyncagents", "CODEX_SQLITE_HOME"),
            ],
        }],
        listens: false,
    },
    Needs {
        name: "gemini",
        hosts: &[
            "cloudcode-pa.googleapis.com",
            "generativelanguage.googleapis.com",
            "oauth2.googleapis.com",
        ],
        servers: &["GOOGLE_GEMINI_BASE_URL"],
        variables: &[
            "GEMINI_API_KEY",
            "GEMINI_MODEL",
            "GOOGLE_API_KEY",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_GENAI_USE_GCA",
        ],
        // The process that it would start anew to have more memory is another one to talk to.
        // Terminals cannot be made in the sandbox, so that it runs commands without one.
        set: &[
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_PTY_INFO", "child_process"),
        ],
        folders: &[Folder {
            moved_by: Some(("GEMINI_CLI_HOME", ".gemini")),
            path: ".gemini",
            // It makes files beside its settings.
            own: &[
                Renews("google_accounts.json"),
                Renews("oauth_creds.json"),
                Own::Apart(Apart {
                    told: &[("", "GEMINI_CLI_HOME")],
                    folders: &[".gemini"],
                    links: &[
                        (".gemini/google_accounts.json", "google_accounts.json"),
                        (".gemini/oauth_creds.json", "oauth_creds.json"),
                    ],
                    made: Some(Made {
                        at: ".gemini/settings.json",
                        of: "settings.json",
                        by: settings_of_child,
                    }),
                }),
            ],
        }],
        listens: false,
    },
    Needs {
        name: "opencode",
        hosts: &[
            "api.anthropic.com",
            "api.openai.com",
            "generativelanguage.googleapis.com",
            "opencode.ai",
            "openrouter.ai",
        ],
        servers: &["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "OPENAI_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENROUTER_API_KEY",
        ],
        set: &[("OPENCODE_DISABLE_AUTOUPDATE", "true")],
        folders: &[
            Folder {
                moved_by: Some(("XDG_DATA_HOME", "opencode")),
                path: ".local/share/opencode",
                // Its data have Git folders of all projects, programs and what the user has approved, its
                // cache packages that it runs.
                own: &[
                    Reads("auth.json"),
                    Own::Apart(Apart {
                        told: &[
                            ("data", "XDG_DATA_HOME"),
                            ("state", "XDG_STATE_HOME"),
                            ("cache", "XDG_CACHE_HOME"),
                        ],
                        folders: &["data/opencode", "state", "cache"],
                        links: &[("data/opencode/auth.json", "auth.json")],
                        made: None,
                    }),
                ],
            },
            Folder {
                moved_by: Some(("XDG_CONFIG_HOME", "opencode")),
                path: ".config/opencode",
                own: &[Reads("")],
            },
        ],
        listens: true,
    },
    Needs {
        name: "goose",
        hosts: &[
            "api.anthropic.com",
            "api.openai.com",
            "generativelanguage.googleapis.com",
            "openrouter.ai",
        ],
        servers: &["ANTHROPIC_HOST", "OPENAI_HOST"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_HOST",
            "GOOGLE_API_KEY",
            "GOOSE_MODEL",
            "GOOSE_PROVIDER",
            "OPENAI_API_KEY",
            "OPENAI_HOST",
            "OPENROUTER_API_KEY",
        ],
        // There is no key ring to ask: its socket is not reached from the sandbox.
        set: &[("GOOSE_DISABLE_KEYRING", "true")],
        folders: &[
            Folder {
                moved_by: Some(("XDG_DATA_HOME", "goose")),
                path: ".local/share/goose",
                own: &[Own::Apart(Apart {
                    told: &[("data", "XDG_DATA_HOME"), ("state", "XDG_STATE_HOME")],
                    folders: &["data", "state"],
                    links: &[],
                    made: None,
                })],
            },
            Folder {
                moved_by: Some(("XDG_CONFIG_HOME", "goose")),
                path: ".config/goose",
                own: &[ReadsIn("")],
            },
        ],
        listens: false,
    },
];
