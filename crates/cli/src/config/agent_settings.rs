//! The settings of the built-in agent: its models, permissions, tools and sandbox.

use std::{collections::BTreeMap, fs, path::PathBuf, str::FromStr, time::Duration};

use asyncagents_core::agent::Permissions;
use asyncagents_models::{Effort, KeySource, Provider, Wire};
use asyncagents_tools::{Resources, SandboxMode};

use super::{
    setting::{
        FromProject::{Added, Refused},
        Setting, at, settings,
    },
    settings::{Config, FROM_1, MAX},
};

/// What the built-in agent can be told.
#[derive(Debug, Clone)]
pub(crate) struct AgentConfig {
    /// `auto`, or the name of a model.
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    pub(crate) permissions: Permissions,
    pub(crate) sandbox: SandboxMode,
    pub(crate) network: bool,
    pub(crate) variables: Vec<String>,
    pub(crate) resources: Resources,
    pub(crate) allowed: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) bash_timeout: Duration,
    pub(crate) output: usize,
    pub(crate) compact_at: u64,
    pub(crate) max_turns: Option<u64>,
    pub(crate) attempts: u32,
    pub(crate) idle_timeout: Duration,
    pub(crate) longest_wait: Duration,
    pub(crate) max_answer: usize,
    pub(crate) max_arguments: usize,
    pub(crate) prices: Option<PathBuf>,
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    pub(crate) aliases: BTreeMap<String, String>,
}

/// A provider that a user has declared, or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderConfig {
    pub(crate) base_url: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) key_env: Option<String>,
    pub(crate) key_command: Option<String>,
}

impl AgentConfig {
    pub(crate) fn defaults() -> Self {
        let models = asyncagents_models::Settings::default();
        let tools = asyncagents_tools::Settings::new(PathBuf::new(), PathBuf::new());
        Self {
            model: "auto".to_owned(),
            effort: None,
            permissions: Permissions::default(),
            sandbox: tools.sandbox,
            network: tools.network,
            variables: tools.variables,
            resources: tools.resources,
            allowed: Vec::new(),
            readable: Vec::new(),
            bash_timeout: tools.bash_timeout,
            output: tools.output_limit,
            compact_at: 80,
            max_turns: None,
            attempts: models.attempts,
            idle_timeout: models.idle_timeout,
            longest_wait: models.longest_wait,
            max_answer: models.max_answer,
            max_arguments: models.max_arguments,
            prices: None,
            providers: BTreeMap::new(),
            aliases: BTreeMap::new(),
        }
    }

    /// What the models have to know.
    pub(crate) fn models(&self) -> Result<asyncagents_models::Settings, String> {
        let mut settings = asyncagents_models::Settings {
            attempts: self.attempts,
            idle_timeout: self.idle_timeout,
            longest_wait: self.longest_wait,
            max_answer: self.max_answer,
            max_arguments: self.max_arguments,
            ..asyncagents_models::Settings::default()
        };
        for (name, declared) in &self.providers {
            let known = settings.providers.iter().find(|known| known.name == *name);
            let provider = declared.over(name, known)?;
            settings.providers.retain(|known| known.name != *name);
            settings.providers.push(provider);
        }
        settings.aliases.extend(self.aliases.clone());
        settings.prices = match &self.prices {
            None => None,
            Some(file) => {
                let text = fs::read_to_string(file);
                Some(text.map_err(|error| format!("models.prices: {}: {error}", file.display()))?)
            }
        };
        Ok(settings)
    }

    /// Sets `providers.NAME.WHAT`.
    pub(crate) fn set_provider(&mut self, key: &str, value: &str) -> Result<(), String> {
        let allowed = || "providers.NAME.base_url, .wire, .key_env or .key_command".to_owned();
        let (name, what) = key.rsplit_once('.').ok_or_else(allowed)?;
        if name.is_empty() || name.contains(['/', '.']) {
            return Err("a name without dots and slashes".to_owned());
        }
        let provider = self.providers.entry(name.to_owned()).or_default();
        let value = value.trim().to_owned();
        match what {
            "base_url" if value.starts_with("http://") || value.starts_with("https://") => {
                provider.base_url = Some(value);
            }
            "base_url" => return Err("an address that begins with http:// or https://".to_owned()),
            "wire" => {
                Wire::from_str(&value).map_err(|_| "anthropic, responses or chat".to_owned())?;
                provider.wire = Some(value);
            }
            "key_env" => provider.key_env = Some(value),
            "key_command" => provider.key_command = Some(value),
            _ => return Err(allowed()),
        }
        Ok(())
    }
}

impl ProviderConfig {
    fn over(&self, name: &str, known: Option<&Provider>) -> Result<Provider, String> {
        let missing = || format!("provider {name} has no address; set providers.{name}.base_url");
        let wire = self.wire.as_deref().map(Wire::from_str).transpose();
        let wire =
            wire.map_err(|_| format!("providers.{name}.wire: anthropic, responses or chat"))?;
        let key = match (&self.key_command, &self.key_env) {
            (Some(command), _) => Some(KeySource::Command(command.clone())),
            (None, Some(variable)) => Some(KeySource::Env(variable.clone())),
            (None, None) => None,
        };
        // A key belongs to the address it was made for.
        let inherits = known.filter(|_| self.base_url.is_none());
        Ok(Provider {
            name: name.to_owned(),
            wire: wire.or(known.map(|known| known.wire)).unwrap_or(Wire::Chat),
            base_url: self
                .base_url
                .clone()
                .or(known.map(|known| known.base_url.clone()))
                .ok_or_else(missing)?,
            key: key
                .or(inherits.map(|known| known.key.clone()))
                .unwrap_or(KeySource::None),
            headers: known.map(|known| known.headers.clone()).unwrap_or_default(),
        })
    }

    /// Its settings as keys and values.
    pub(crate) fn describe(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("base_url", &self.base_url),
            ("wire", &self.wire),
            ("key_env", &self.key_env),
            ("key_command", &self.key_command),
        ];
        all.into_iter()
            .filter_map(|(what, value)| Some((what, value.clone()?)))
            .collect()
    }
}

const FROM_1_OR_NONE: &str = "a whole number from 1 on, or none";
/// Less would leave nothing to work with.
const FROM_1000: &str = "a whole number from 1000 on";

/// The settings, in the form of all others.
pub(crate) const AGENT_SETTINGS: &[Setting] = settings! {
    "model", agent_config.model: allowed("provider/model"), Refused,
        "the model of agents that have none of their own: provider/model or an alias; auto \
         takes the first provider that has a key";
    "effort", agent_config.effort, Refused,
        "how hard the model thinks, where it can be told: low, medium, high or none";
    "permissions.mode", agent_config.permissions.mode, Refused,
        "what agents do without asking: ask (read), auto-edit (read and change files), yolo \
         (everything)";
    "permissions.allow", agent_config.permissions.allow, Refused,
        "what is free in every mode, as bash(cargo test*),edit(src/*)";
    "permissions.ask", agent_config.permissions.ask, Added(more_asked),
        "what is asked for in every mode";
    "permissions.deny", agent_config.permissions.deny, Added(more_denied),
        "what is forbidden in every mode";
    "sandbox.mode", agent_config.sandbox, Refused,
        "how commands run: auto (in a sandbox where the kernel can), required (or not at all), off";
    "sandbox.network", agent_config.network, Refused,
        "whether commands in the sandbox may use the network";
    "sandbox.variables", agent_config.variables, Refused,
        "variables that commands in the sandbox get besides the usual ones, as STAGE,MY_*; one \
         that looks like a secret only by its whole name";
    "sandbox.processes", agent_config.resources.processes: within(1, MAX, FROM_1_OR_NONE), Refused,
        "how many processes a command may have at once, with everything it starts: a number or \
         none; sandboxed or not";
    "sandbox.memory", agent_config.resources.memory, Refused,
        "how much memory a command may use, with everything it starts: 4GB, a share of the \
         machine's memory like 75%, or none";
    "sandbox.file_size", agent_config.resources.file_size, Refused,
        "how large a command may make a file: 10GB or none";
    "tools.allowed", agent_config.allowed, Refused,
        "folders outside the workspace that tools may read and write";
    "tools.readable", agent_config.readable, Refused,
        "folders and files outside the workspace that tools may read, and commands too though \
         they look like secrets";
    "tools.bash_timeout", agent_config.bash_timeout, Refused,
        "how long a command may take where its call does not say";
    "tools.output", agent_config.output: within(1_000, MAX, FROM_1000), Refused,
        "how many characters of a tool's answer the model is shown";
    "run.max_turns", agent_config.max_turns, Refused,
        "how often a model may answer in one run, where its agent does not say; the last answer \
         sums up";
    "run.compact_at", agent_config.compact_at: within(10, 95, "10 to 95"), Refused,
        "from this share of the model's window on a conversation is summarised, in percent";
    "models.attempts", agent_config.attempts: within(1, MAX, FROM_1), Refused,
        "how often a request is sent before it counts as failed";
    "models.silence", agent_config.idle_timeout, Refused,
        "a model that sends nothing for this long is asked again; one that sends only \
         keep-alives for four times as long has failed";
    "models.longest_wait", agent_config.longest_wait, Refused,
        "a provider that wants a longer pause than this is an error";
    "models.max_answer", agent_config.max_answer: within(1_000, MAX, FROM_1000), Refused,
        "how many bytes one answer of a model may have; a longer one is dropped, and the \
         request fails";
    "models.max_arguments", agent_config.max_arguments: within(1_000, MAX, FROM_1000), Refused,
        "how many bytes the arguments of one call in an answer may have";
    "models.prices", agent_config.prices: parsed(absolute), Refused,
        "a file with prices of your own, over the built-in table; see docs/run.md";
};

fn more_asked(config: &mut Config, more: Config) {
    let ask = &mut config.agent_config.permissions.ask;
    ask.extend(more.agent_config.permissions.ask);
}

fn more_denied(config: &mut Config, more: Config) {
    let deny = &mut config.agent_config.permissions.deny;
    deny.extend(more.agent_config.permissions.deny);
}

fn absolute(text: &str) -> Result<Option<PathBuf>, String> {
    let absolute = || std::path::absolute(text).unwrap_or_else(|_| PathBuf::from(text));
    Ok((text != "none").then(absolute))
}
