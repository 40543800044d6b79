//! The settings of the built-in agent: its models, permissions, tools and sandbox.

use std::{collections::BTreeMap, fs, path::PathBuf, str::FromStr, time::Duration};

use asyncagents_core::agent::{Mode, Permissions, Rule};
use asyncagents_models::{Effort, KeySource, Provider, Wire};
use asyncagents_tools::{Resources, SandboxMode};

use super::settings::{
    FromProject, Setting, duration, filled, maybe, maybe_number, number, shown, switch,
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
    pub(crate) silence: Duration,
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
            silence: models.silence,
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
            silence: self.silence,
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

/// The settings, in the form of all others.
pub(crate) const AGENT_SETTINGS: &[Setting] = &[
    Setting {
        key: "model",
        about: "the model of agents that have none of their own: provider/model or an alias; \
                auto takes the first provider that has a key",
        project: FromProject::Refused,
        show: |config| config.agent_config.model.clone(),
        set: |config, value| filled(&mut config.agent_config.model, value, "provider/model"),
    },
    Setting {
        key: "effort",
        about: "how hard the model thinks, where it can be told: low, medium, high or none",
        project: FromProject::Refused,
        show: |config| match config.agent_config.effort {
            None => "none".to_owned(),
            Some(Effort::Low) => "low".to_owned(),
            Some(Effort::Medium) => "medium".to_owned(),
            Some(Effort::High) => "high".to_owned(),
        },
        set: |config, value| {
            config.agent_config.effort = match value {
                "none" => None,
                "low" => Some(Effort::Low),
                "medium" => Some(Effort::Medium),
                "high" => Some(Effort::High),
                _ => return Err("none, low, medium or high".to_owned()),
            };
            Ok(())
        },
    },
    Setting {
        key: "permissions.mode",
        about: "what agents do without asking: ask (read), auto-edit (read and change files), \
                yolo (everything)",
        project: FromProject::Refused,
        show: |config| config.agent_config.permissions.mode.to_string(),
        set: |config, value| {
            let known = Mode::ALL.iter().find(|(name, _)| *name == value);
            let (_, mode) = known.ok_or("ask, auto-edit or yolo")?;
            config.agent_config.permissions.mode = *mode;
            Ok(())
        },
    },
    Setting {
        key: "permissions.allow",
        about: "what is free in every mode, as bash(cargo test*),edit(src/*)",
        project: FromProject::Refused,
        show: |config| listed(&config.agent_config.permissions.allow),
        set: |config, value| rules(&mut config.agent_config.permissions.allow, value),
    },
    Setting {
        key: "permissions.ask",
        about: "what is asked for in every mode",
        project: FromProject::Added(|config, more| {
            let ask = &mut config.agent_config.permissions.ask;
            ask.extend(more.agent_config.permissions.ask);
        }),
        show: |config| listed(&config.agent_config.permissions.ask),
        set: |config, value| rules(&mut config.agent_config.permissions.ask, value),
    },
    Setting {
        key: "permissions.deny",
        about: "what is forbidden in every mode",
        project: FromProject::Added(|config, more| {
            let deny = &mut config.agent_config.permissions.deny;
            deny.extend(more.agent_config.permissions.deny);
        }),
        show: |config| listed(&config.agent_config.permissions.deny),
        set: |config, value| rules(&mut config.agent_config.permissions.deny, value),
    },
    Setting {
        key: "sandbox.mode",
        about: "how commands run: auto (in a sandbox where the kernel can), required (or not at \
                all), off",
        project: FromProject::Refused,
        show: |config| match config.agent_config.sandbox {
            SandboxMode::Auto => "auto".to_owned(),
            SandboxMode::Off => "off".to_owned(),
            SandboxMode::Required => "required".to_owned(),
        },
        set: |config, value| {
            config.agent_config.sandbox = match value {
                "auto" => SandboxMode::Auto,
                "off" => SandboxMode::Off,
                "required" => SandboxMode::Required,
                _ => return Err("auto, required or off".to_owned()),
            };
            Ok(())
        },
    },
    Setting {
        key: "sandbox.network",
        about: "whether commands in the sandbox may use the network",
        project: FromProject::Refused,
        show: |config| config.agent_config.network.to_string(),
        set: |config, value| switch(&mut config.agent_config.network, value),
    },
    Setting {
        key: "sandbox.variables",
        about: "variables that commands in the sandbox get besides the usual ones, as STAGE,MY_*; \
                one that looks like a secret only by its whole name",
        project: FromProject::Refused,
        show: |config| config.agent_config.variables.join(","),
        set: |config, value| variables(&mut config.agent_config.variables, value),
    },
    Setting {
        key: "sandbox.processes",
        about: "how many processes a command may have at once, with everything it starts: a \
                number or none; sandboxed or not",
        project: FromProject::Refused,
        show: |config| maybe(config.agent_config.resources.processes),
        set: |config, value| {
            let mut processes = None;
            maybe_number(&mut processes, value)?;
            match processes {
                Some(0) => return Err("a whole number from 1 on, or none".to_owned()),
                _ => config.agent_config.resources.processes = processes,
            }
            Ok(())
        },
    },
    Setting {
        key: "sandbox.memory",
        about: "how much memory a command may use, with everything it starts: 4GB, a share of \
                the machine's memory like 75%, or none",
        project: FromProject::Refused,
        show: |config| maybe_limit(config.agent_config.resources.memory),
        set: |config, value| limit(&mut config.agent_config.resources.memory, value),
    },
    Setting {
        key: "sandbox.file_size",
        about: "how large a command may make a file: 10GB or none",
        project: FromProject::Refused,
        show: |config| maybe_limit(config.agent_config.resources.file_size),
        set: |config, value| limit(&mut config.agent_config.resources.file_size, value),
    },
    Setting {
        key: "tools.allowed",
        about: "folders outside the workspace that tools may read and write",
        project: FromProject::Refused,
        show: |config| folders(&config.agent_config.allowed),
        set: |config, value| paths(&mut config.agent_config.allowed, value),
    },
    Setting {
        key: "tools.readable",
        about: "folders and files outside the workspace that tools may read, and commands too though \
                they look like secrets",
        project: FromProject::Refused,
        show: |config| folders(&config.agent_config.readable),
        set: |config, value| paths(&mut config.agent_config.readable, value),
    },
    Setting {
        key: "tools.bash_timeout",
        about: "how long a command may take where its call does not say",
        project: FromProject::Refused,
        show: |config| shown(config.agent_config.bash_timeout),
        set: |config, value| duration(&mut config.agent_config.bash_timeout, value),
    },
    Setting {
        key: "tools.output",
        about: "how many characters of a tool's answer the model is shown",
        project: FromProject::Refused,
        show: |config| config.agent_config.output.to_string(),
        set: |config, value| at_least_1000(&mut config.agent_config.output, value),
    },
    Setting {
        key: "run.max_turns",
        about: "how often a model may answer in one run, where its agent does not say; the last \
                answer sums up",
        project: FromProject::Refused,
        show: |config| maybe(config.agent_config.max_turns),
        set: |config, value| maybe_number(&mut config.agent_config.max_turns, value),
    },
    Setting {
        key: "run.compact_at",
        about: "from this share of the model's window on a conversation is summarised, in percent",
        project: FromProject::Refused,
        show: |config| config.agent_config.compact_at.to_string(),
        set: |config, value| {
            let mut share = 0;
            number(&mut share, value)?;
            match share {
                10..=95 => config.agent_config.compact_at = share,
                _ => return Err("10 to 95".to_owned()),
            }
            Ok(())
        },
    },
    Setting {
        key: "models.attempts",
        about: "how often a request is sent before it counts as failed",
        project: FromProject::Refused,
        show: |config| config.agent_config.attempts.to_string(),
        set: |config, value| {
            let mut attempts = 0;
            number(&mut attempts, value)?;
            match attempts {
                0 => return Err("a whole number from 1 on".to_owned()),
                _ => config.agent_config.attempts = attempts,
            }
            Ok(())
        },
    },
    Setting {
        key: "models.silence",
        about: "a model that sends nothing for this long is asked again; one that sends only \
                keep-alives for four times as long has failed",
        project: FromProject::Refused,
        show: |config| shown(config.agent_config.silence),
        set: |config, value| duration(&mut config.agent_config.silence, value),
    },
    Setting {
        key: "models.longest_wait",
        about: "a provider that wants a longer pause than this is an error",
        project: FromProject::Refused,
        show: |config| shown(config.agent_config.longest_wait),
        set: |config, value| duration(&mut config.agent_config.longest_wait, value),
    },
    Setting {
        key: "models.max_answer",
        about: "how many bytes one answer of a model may have; a longer one is dropped, and the \
                request fails",
        project: FromProject::Refused,
        show: |config| config.agent_config.max_answer.to_string(),
        set: |config, value| at_least_1000(&mut config.agent_config.max_answer, value),
    },
    Setting {
        key: "models.max_arguments",
        about: "how many bytes the arguments of one call in an answer may have",
        project: FromProject::Refused,
        show: |config| config.agent_config.max_arguments.to_string(),
        set: |config, value| at_least_1000(&mut config.agent_config.max_arguments, value),
    },
    Setting {
        key: "models.prices",
        about: "a file with prices of your own, over the built-in table; see docs/run.md",
        project: FromProject::Refused,
        show: |config| {
            let file = config.agent_config.prices.as_ref();
            file.map_or("none".to_owned(), |file| file.display().to_string())
        },
        set: |config, value| {
            let absolute = || std::path::absolute(value).unwrap_or_else(|_| PathBuf::from(value));
            config.agent_config.prices = (value != "none").then(absolute);
            Ok(())
        },
    },
];

/// Less would leave nothing to work with.
fn at_least_1000(slot: &mut usize, value: &str) -> Result<(), String> {
    let mut wanted = 0;
    number(&mut wanted, value)?;
    match wanted {
        1_000.. => *slot = wanted,
        _ => return Err("a whole number from 1000 on".to_owned()),
    }
    Ok(())
}

fn rules(slot: &mut Vec<Rule>, value: &str) -> Result<(), String> {
    *slot = Rule::list(value).map_err(|error| error.to_string())?;
    Ok(())
}

/// Names of variables, or their beginnings with a `*` behind them.
fn variables(slot: &mut Vec<String>, value: &str) -> Result<(), String> {
    let names = value.split(',').map(str::trim);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let is_name = |name: &&str| {
        let beginning = name.strip_suffix('*').unwrap_or(name);
        beginning.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    match names.iter().all(is_name) {
        true => *slot = names.into_iter().map(str::to_owned).collect(),
        false => return Err("names like STAGE or MY_*, separated by commas".to_owned()),
    }
    Ok(())
}

fn limit<T: FromStr<Err = String>>(slot: &mut Option<T>, value: &str) -> Result<(), String> {
    *slot = match value.trim() {
        "none" => None,
        value => {
            let parsed = value.parse::<T>();
            Some(parsed.map_err(|allowed| format!("{allowed}, or none"))?)
        }
    };
    Ok(())
}

fn maybe_limit(limit: Option<impl ToString>) -> String {
    limit.map_or("none".to_owned(), |limit| limit.to_string())
}

/// As [`rules`] reads it again.
fn listed(rules: &[Rule]) -> String {
    let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let is_closed = |rule: &String| rule.matches('(').count() == rule.matches(')').count();
    match rules.iter().all(is_closed) {
        true => rules.join(","),
        false => rules.join("\n"),
    }
}

pub(super) fn paths(slot: &mut Vec<PathBuf>, value: &str) -> Result<(), String> {
    let paths = value.split(',').map(str::trim);
    let paths = paths.filter(|path| !path.is_empty()).map(PathBuf::from);
    let paths: Vec<PathBuf> = paths.collect();
    match paths.iter().all(|path| path.is_absolute()) {
        true => *slot = paths,
        false => return Err("absolute paths, separated by commas".to_owned()),
    }
    Ok(())
}

pub(super) fn folders(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(",")
}
