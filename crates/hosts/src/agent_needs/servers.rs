//! Which model servers an agent may reach: those of its vendor, and those that the user has set for it,
//! in variables or in the agent's own settings.

use std::{ffi::OsString, fs, path::Path};

use serde_json::Value;

use super::table::Needs;
use crate::proxy::AllowedHosts;

/// Settings of Codex that are addresses.
const CODEX_ADDRESSES: [&str; 3] = ["base_url", "chatgpt_base_url", "openai_base_url"];

impl Needs {
    /// The hosts of its models.
    ///
    /// # Errors
    /// With a sentence, if a variable that should hold an address does not.
    pub fn allowed_hosts(
        &self,
        home: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<AllowedHosts, String> {
        let mut allowed = AllowedHosts::new();
        for host in self.hosts {
            allowed = allowed.host(host)?;
        }
        for name in self.servers {
            if let Some(address) = variable(name).filter(|address| !address.is_empty()) {
                let address = address.to_string_lossy();
                let added = allowed.own_server(&address);
                allowed = added.map_err(|why| format!("{name}: {why}"))?;
            }
        }
        for address in self.servers_in_settings(home, &variable) {
            // What is no address is the agent's to complain about.
            if let Ok(added) = allowed.clone().own_server(&address) {
                allowed = added;
            }
        }
        Ok(allowed)
    }

    /// The variables that the agent's settings name for the keys of its servers.
    pub fn keys_in_settings(
        &self,
        home: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<String> {
        match self.name {
            "codex" => assigned(&self.setting(home, &variable, "config.toml"), &["env_key"]),
            _ => Vec::new(),
        }
    }

    fn servers_in_settings(
        &self,
        home: &Path,
        variable: &impl Fn(&str) -> Option<OsString>,
    ) -> Vec<String> {
        match self.name {
            "claude" => {
                let settings = self.setting(home, variable, "settings.json");
                let settings: Value = serde_json::from_str(&settings).unwrap_or_default();
                let set = self.servers.iter().map(|name| &settings["env"][name]);
                let set = set.filter_map(Value::as_str);
                set.map(str::to_owned).collect()
            }
            "codex" => {
                let settings = self.setting(home, variable, "config.toml");
                assigned(&settings, &CODEX_ADDRESSES)
            }
            _ => Vec::new(),
        }
    }

    /// A file of settings, if there is one. The agent in the sandbox cannot write it.
    fn setting(
        &self,
        home: &Path,
        variable: &impl Fn(&str) -> Option<OsString>,
        name: &str,
    ) -> String {
        let folder = self.folder(home, variable).unwrap_or_default();
        fs::read_to_string(folder.join(name)).unwrap_or_default()
    }
}

/// The texts that are assigned to these keys, in any table of a TOML file.
fn assigned(toml: &str, keys: &[&str]) -> Vec<String> {
    let assignments = toml.lines().filter_map(|line| line.split_once('='));
    let of_keys = assignments.filter(|(key, _)| keys.contains(&key.trim()));
    let texts = of_keys.filter_map(|(_, value)| {
        let value = value.trim();
        let quote = value
            .chars()
            .next()
            .filter(|quote| ['"', '\''].contains(quote))?;
        let (text, _) = value[1..].split_once(quote)?;
        Some(text.to_owned())
    });
    texts.collect()
}
