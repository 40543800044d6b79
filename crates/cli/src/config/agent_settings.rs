//! The settings of the built-in agent: its models, permissions, tools and sandbox.

use std::{collections::BTreeMap, fs, path::PathBuf, str::FromStr};

use asyncagents_core::{agent::Permissions, model_choice::ModelPolicy};
use asyncagents_engine::{CommandLimit, Unanswered};
use asyncagents_models::{Effort, KeySource, Provider, Wire};

use super::{
    agent_hosts::{self, AgentHostConfig},
    setting::{
        FromProject::{Added, Refused},
        Setting, at, settings,
    },
    settings::{Config, FROM_1, MAX},
};

/// Settings of the built-in agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentConfig {
    /// `auto`, or the name of a model.
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    /// For tasks in every host.
    pub(crate) model_policy: ModelPolicy,
    pub(crate) permissions: Permissions,
    /// `None`: it depends on whether somebody is there when a task is launched.
    pub(crate) unanswered: Option<Unanswered>,
    /// Its workspace is set for each engine.
    pub(crate) tools: asyncagents_tools::Settings,
    /// For all folders of a process.
    pub(crate) commands: CommandLimit,
    pub(crate) compact_at: u64,
    pub(crate) max_turns: Option<u64>,
    /// Without what the user declares: providers, aliases and prices.
    models: asyncagents_models::Settings,
    pub(crate) prices: Option<PathBuf>,
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// Other agents.
    pub(crate) hosts: BTreeMap<String, AgentHostConfig>,
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
        Self {
            model: "auto".to_owned(),
            effort: None,
            model_policy: ModelPolicy::default(),
            permissions: Permissions::default(),
            unanswered: None,
            tools: asyncagents_tools::Settings::new(PathBuf::new(), PathBuf::new()),
            commands: CommandLimit::default(),
            compact_at: 80,
            max_turns: None,
            models: asyncagents_models::Settings::default(),
            prices: None,
            providers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            aliases: BTreeMap::new(),
        }
    }

    /// The settings of the models, with what the user declares.
    pub(crate) fn models(&self) -> Result<asyncagents_models::Settings, String> {
        let mut settings = self.models.clone();
        for (name, declared) in &self.providers {
            let known = settings.providers.iter().find(|known| known.name == *name);
            let provider = declared.over(name, known)?;
            settings.providers.retain(|known| known.name != *name);
            settings.providers.push(provider);
        }
        settings.aliases.extend(self.aliases.clone());
        if let Some(file) = &self.prices {
            let text = fs::read_to_string(file)
                .map_err(|error| format!("models.prices: {}: {error}", file.display()))?;
            settings.prices = Some(text);
        }
        Ok(settings)
    }

    /// Sets `hosts.NAME.WHAT`.
    pub(crate) fn set_host(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (name, what) = agent_hosts::split_key(key)?;
        let mut host = self.hosts.get(name).cloned().unwrap_or_default();
        host.set(what, value)?;
        self.hosts.insert(name.to_owned(), host);
        Ok(())
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
        let command = self.key_command.clone().map(KeySource::Command);
        let key = command.or(self.key_env.clone().map(KeySource::Env));
        // A key belongs to the address it was made for.
        let inherits = known.filter(|_| self.base_url.is_none());
        let key = key.or(inherits.map(|known| known.key.clone()));
        let base_url = self.base_url.clone();
        let base_url = base_url.or(known.map(|known| known.base_url.clone()));
        Ok(Provider {
            name: name.to_owned(),
            wire: wire.or(known.map(|known| known.wire)).unwrap_or(Wire::Chat),
            base_url: base_url.ok_or_else(missing)?,
            key: key.unwrap_or(KeySource::None),
            headers: known.map(|known| known.headers.clone()).unwrap_or_default(),
        })
    }

    /// What is set, as keys and values.
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
    "fallback_models", agent_config.model_policy.fallbacks, Refused,
        "what is asked in the same run when a model is out of quota or unavailable, the first \
         first, as provider/model,provider/model; in every host, and told in `output`";
    "permissions.mode", agent_config.permissions.mode, Refused,
        "what agents do without asking: ask (read), auto-edit (read and change files), yolo \
         (everything)";
    "permissions.allow", agent_config.permissions.allow, Refused,
        "what is free in every mode, as bash(cargo test*),edit(src/*)";
    "permissions.ask", agent_config.permissions.ask, Added(more_asked),
        "what is asked for in every mode";
    "permissions.deny", agent_config.permissions.deny, Added(more_denied),
        "what is forbidden in every mode";
    "permissions.unanswered", agent_config.unanswered, Refused,
        "what becomes of a call that has to be asked for while nobody is at its terminal: wait (for \
         `asyncagents answer`, as long as the task has time), refuse, or auto (wait if the task, \
         or the first one above it, was launched at a terminal or from a session)";
    "limits.commands", agent_config.commands, Refused,
        "how many commands of tasks of one depth run at once in a process; the others wait in a \
         queue: a number, or cores (as many as the machine has)";
    "sandbox.mode", agent_config.tools.sandbox, Refused,
        "how commands run: auto (in a sandbox where the kernel can), required (or not at all), off";
    "sandbox.network", agent_config.tools.network, Refused,
        "whether commands in the sandbox may use the network";
    "sandbox.variables", agent_config.tools.variables, Refused,
        "variables that commands in the sandbox get besides the usual ones, as STAGE,MY_*; one \
         that looks like a secret only by its whole name";
    "sandbox.processes", agent_config.tools.resources.processes: within(1, MAX, FROM_1_OR_NONE), Refused,
        "how many processes a command may have at once, with everything it starts: a number or \
         none; sandboxed or not";
    "sandbox.memory", agent_config.tools.resources.memory, Refused,
        "how much memory a command may use, with everything it starts: 4GB, a share of the \
         machine's memory like 75%, or none";
    "sandbox.file_size", agent_config.tools.resources.file_size, Refused,
        "how large a command may make a file: 10GB or none";
    "tools.allowed", agent_config.tools.allowed, Refused,
        "folders outside the workspace that tools may read and write";
    "tools.readable", agent_config.tools.readable, Refused,
        "folders and files outside the workspace that tools may read, and commands too though \
         they look like secrets";
    "tools.bash_timeout", agent_config.tools.bash_timeout, Refused,
        "default timeout of a command, where its call does not set one";
    "tools.output", agent_config.tools.output_limit: within(1_000, MAX, FROM_1000), Refused,
        "how many characters of a tool's answer the model is shown";
    "run.max_turns", agent_config.max_turns, Refused,
        "how often a model may answer in one run, where its agent does not set it; the last \
         answer sums up";
    "run.compact_at", agent_config.compact_at: within(10, 95, "10 to 95"), Refused,
        "from this share of the model's window on a conversation is summarised, in percent";
    "models.allowed", agent_config.model_policy.allowed, Refused,
        "which models a call, `--model`, a skill or an agent of a project may name, as \
         anthropic/*,ollama/*; fallback_models too";
    "models.attempts", agent_config.models.attempts: within(1, MAX, FROM_1), Refused,
        "how often a request is sent before it counts as failed";
    "models.silence", agent_config.models.idle_timeout, Refused,
        "idle timeout: the request to a model that sends nothing for this long is retried; one \
         that brings only keep-alives for four times as long fails";
    "models.longest_wait", agent_config.models.longest_wait, Refused,
        "longest wait before a retry: a provider that asks for a longer one is an error";
    "models.max_answer", agent_config.models.max_answer: within(1_000, MAX, FROM_1000), Refused,
        "how many bytes one answer of a model may have; a longer one is dropped, and the \
         request fails";
    "models.max_arguments", agent_config.models.max_arguments: within(1_000, MAX, FROM_1000), Refused,
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
