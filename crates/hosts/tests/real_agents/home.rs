//! A home and a project of a story's own, for a user that is not root.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use rustix::process::geteuid;
use serde_json::json;
use tempfile::TempDir;

use crate::processes;

/// The user that owns nothing.
const NOBODY: u32 = 65534;

const KEY: &str = "sk-ant-scripted-0123456789-0123456789";

/// A home and a project. When it goes, all processes that were started there go.
pub(crate) struct Home {
    folder: TempDir,
    /// Where agents ask their model.
    model: OnceLock<String>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self {
            folder: tempfile::tempdir().expect("a folder"),
            model: OnceLock::new(),
        };
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.folder.path(), open).expect("set");
        for folder in ["home/.codex", "home/.config/opencode", "project", "tmp"] {
            fs::create_dir_all(home.path(folder)).expect("a folder");
        }
        home
    }

    /// Agents ask the model at this address.
    pub(crate) fn ask_at(&self, model: &str) {
        self.model.set(model.to_owned()).expect("said once");
        self.write(
            "home/.codex/config.toml",
            &format!(
                "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\n\
                 check_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{model}/v1\"\n\
                 env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\nsupports_websockets = false\n\
                 request_max_retries = 0\nstream_max_retries = 0\n\
                 [analytics]\nenabled = false\n"
            ),
        );
        self.write(
            "home/.gemini/settings.json",
            r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#,
        );
        let provider = json!({
            "npm": "@ai-sdk/anthropic", "name": "scripted",
            "options": {"baseURL": format!("{model}/v1"), "apiKey": "none"},
            "models": {"m": {"name": "m", "tool_call": true,
                "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
                "limit": {"context": 200_000, "output": 8_000}}},
        });
        let config = json!({"autoupdate": false, "model": "scripted/m", "small_model": "scripted/m",
            "provider": {"scripted": provider}});
        self.write("home/.config/opencode/opencode.json", &config.to_string());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("written");
        self.hand_over();
    }

    /// Gives everything to the user that runs the agent.
    fn hand_over(&self) {
        let mut unseen = vec![self.folder.path().to_owned()];
        while let Some(path) = unseen.pop().filter(|_| as_nobody()) {
            if path.is_symlink() {
                continue;
            }
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("given");
            if path.is_dir() {
                let entries = fs::read_dir(&path).expect("a folder").flatten();
                unseen.extend(entries.map(|entry| entry.path()));
            }
        }
    }

    /// A command in the project.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = if as_nobody() {
            let id = NOBODY.to_string();
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        let model = self.model.get().expect("it is said");
        let bin = Path::new(program).parent().expect("a folder").display();
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", model)
            .env("ANTHROPIC_API_KEY", KEY)
            .env("SCRIPTED_KEY", "none")
            .env("GEMINI_API_KEY", "none")
            .env("GOOGLE_GEMINI_BASE_URL", model)
            // Else it asks a model which model to ask.
            .env("GEMINI_MODEL", "gemini-2.5-pro")
            .env("ANTHROPIC_HOST", model)
            .env("GOOSE_PROVIDER", "anthropic")
            .env("GOOSE_MODEL", "claude-sonnet-4-5")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        processes::end_all_with(&self.folder.path().display().to_string());
    }
}

/// Whether stories run as nobody: the tests are root's, and another user may run programs here.
fn as_nobody() -> bool {
    static NOBODY_CAN: OnceLock<bool> = OnceLock::new();
    *NOBODY_CAN.get_or_init(|| {
        let id = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
        let tried = command.args(["test", "-r", env!("CARGO_MANIFEST_DIR")]);
        let tried = tried.current_dir("/").output();
        geteuid().is_root() && tried.is_ok_and(|tried| tried.status.success())
    })
}
