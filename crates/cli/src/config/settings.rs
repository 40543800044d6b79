//! The settings. Each is declared once: its key, what it is for, how it is shown and set.

use std::{collections::BTreeMap, env, path::PathBuf, str::FromStr, time::Duration};

use super::{agent_settings::AgentConfig, skill_settings::SkillConfig};
use crate::color::Color;
use asyncagents_core::{
    budget::Cost,
    fork::{Limits, Mode, Preset},
    id::ModelName,
    task_limits::TaskLimits,
};
use asyncagents_runtime::Settings;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// All settings, with their values.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) db: PathBuf,
    pub(crate) host: String,
    pub(crate) session: String,
    pub(crate) agent: String,
    pub(crate) color: Color,
    pub(crate) raw: bool,
    pub(crate) limits: TaskLimits,
    /// Limits that were said by a flag or in the environment.
    pub(crate) said_limits: BTreeMap<String, String>,
    pub(crate) fork: Limits,
    pub(crate) fork_mode: Mode,
    pub(crate) prefix: String,
    pub(crate) dev: bool,
    pub(crate) lease: Duration,
    pub(crate) idle: Duration,
    pub(crate) autostart: bool,
    pub(crate) log: String,
    pub(crate) log_file: Option<PathBuf>,
    pub(crate) agent_config: AgentConfig,
    pub(crate) skills: SkillConfig,
}

/// One setting.
pub(crate) struct Setting {
    /// What it is called in a file, after `-c`, and (in capitals) in the environment.
    pub(crate) key: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// What a project's file may say about it.
    pub(crate) project: FromProject,
    pub(crate) show: fn(&Config) -> String,
    /// Sets it, or says what would be allowed.
    pub(crate) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// What a project's file may say about a setting. A project is a folder that somebody else has
/// made: it may narrow what its user allows, never widen it, and never decide what runs where
/// with whose keys.
pub(crate) enum FromProject {
    /// Nothing. A new setting begins here.
    Refused,
    /// Anything.
    Free,
    /// More, which is added to what the user says by this.
    Added(fn(&mut Config, Config)),
    /// Less than the user says; this is how much that is, or nothing for no limit.
    Lowered(fn(&Config) -> Option<u64>),
}

impl Setting {
    /// Its name in the environment.
    pub(crate) fn variable(&self) -> String {
        let name = self.key.replace('.', "_").to_uppercase();
        format!("ASYNCAGENTS_{name}")
    }
}

impl Config {
    pub(crate) fn defaults() -> Self {
        let runtime = Settings::default();
        Self {
            db: data_folder().map_or_else(PathBuf::new, |folder| folder.join("asyncagents.db")),
            host: "engine".to_owned(),
            session: "shell".to_owned(),
            agent: "general".to_owned(),
            color: Color::default(),
            raw: false,
            limits: runtime.limits,
            said_limits: BTreeMap::new(),
            fork: runtime.fork,
            fork_mode: runtime.fork_mode,
            prefix: runtime.wording.prefix,
            dev: false,
            lease: runtime.lease,
            idle: Duration::from_secs(10 * 60),
            autostart: true,
            log: "info".to_owned(),
            log_file: None,
            agent_config: AgentConfig::defaults(),
            skills: SkillConfig::defaults(),
        }
    }

    /// The value of a setting that has one key, or of a provider or an alias.
    pub(crate) fn value_of(&self, key: &str) -> Option<String> {
        if let Some(setting) = super::all_settings().find(|setting| setting.key == key) {
            return Some((setting.show)(self));
        }
        let agent = &self.agent_config;
        if let Some(alias) = key.strip_prefix("aliases.") {
            return agent.aliases.get(alias).cloned();
        }
        let (name, what) = key.strip_prefix("providers.")?.rsplit_once('.')?;
        let mut described = agent.providers.get(name)?.describe().into_iter();
        described
            .find(|(known, _)| *known == what)
            .map(|(_, value)| value)
    }

    /// What the runtime has to know.
    pub(crate) fn runtime(&self) -> Settings {
        let mut settings = Settings {
            limits: self.limits.clone(),
            fork: self.fork.clone(),
            fork_mode: self.fork_mode,
            lease: self.lease,
            skills: self.skills.usual,
            ..Settings::default()
        };
        settings.wording.prefix.clone_from(&self.prefix);
        settings.wording.show_hint = self.dev;
        settings
    }
}

/// Every setting but those of the agent, and the fork's limits, which are listed by the fork
/// itself.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "db",
        about: "the file that holds all tasks",
        project: FromProject::Refused,
        show: |config| config.db.display().to_string(),
        set: |config, value| filled(&mut config.db, value, "a path"),
    },
    Setting {
        key: "host",
        about: "where tasks run: engine (the built-in agent, in this folder), engine:FOLDER, \
                opencode:URL (an `opencode serve`; its password from OPENCODE_SERVER_PASSWORD), \
                scripted, or scripted:FILE for a script of your own",
        project: FromProject::Refused,
        show: |config| config.host.clone(),
        set: |config, value| {
            filled(
                &mut config.host,
                value,
                "engine, engine:FOLDER, opencode:URL, scripted or scripted:FILE",
            )
        },
    },
    Setting {
        key: "session",
        about: "the session that tasks from the shell belong to",
        project: FromProject::Refused,
        show: |config| config.session.clone(),
        set: |config, value| filled(&mut config.session, value, "a name"),
    },
    Setting {
        key: "agent",
        about: "who works on a task from the shell",
        project: FromProject::Free,
        show: |config| config.agent.clone(),
        set: |config, value| filled(&mut config.agent, value, "the name of an agent"),
    },
    Setting {
        key: "color",
        about: "when there are colours: auto (on a terminal, unless NO_COLOR is set), always or never",
        project: FromProject::Refused,
        show: |config| config.color.to_string(),
        set: |config, value| {
            config.color = value.parse()?;
            Ok(())
        },
    },
    Setting {
        key: "raw",
        about: "keep control characters in answers that go to a file or a pipe; a terminal never \
                gets them",
        project: FromProject::Refused,
        show: |config| config.raw.to_string(),
        set: |config, value| switch(&mut config.raw, value),
    },
    Setting {
        key: "limits.concurrency",
        about: "how many tasks of one depth run at once; the others wait in a queue",
        project: FromProject::Lowered(|config| Some(config.limits.concurrency)),
        show: |config| config.limits.concurrency.to_string(),
        set: |config, value| number(&mut config.limits.concurrency, value),
    },
    Setting {
        key: "limits.per_parent",
        about: "how many tasks of one parent run at once",
        project: FromProject::Lowered(|config| config.limits.per_parent),
        show: |config| maybe(config.limits.per_parent),
        set: |config, value| maybe_number(&mut config.limits.per_parent, value),
    },
    Setting {
        key: "limits.per_model",
        about: "how many tasks of a model run at once, as MODEL=N,MODEL=N",
        project: FromProject::Added(|config, more| {
            for (model, limit) in more.limits.per_model {
                let lowest = config.limits.per_model.entry(model).or_insert(limit);
                *lowest = limit.min(*lowest);
            }
        }),
        show: |config| {
            let limits = config.limits.per_model.iter();
            let shown = limits.map(|(model, limit)| format!("{model}={limit}"));
            shown.collect::<Vec<_>>().join(",")
        },
        set: |config, value| {
            config.limits.per_model.clear();
            for pair in value
                .split(',')
                .map(str::trim)
                .filter(|pair| !pair.is_empty())
            {
                let (model, limit) = pair.rsplit_once('=').ok_or(PER_MODEL)?;
                let limit = limit.trim().parse().map_err(|_| PER_MODEL)?;
                let model = ModelName::from(model.trim());
                config.limits.per_model.insert(model, limit);
            }
            Ok(())
        },
    },
    Setting {
        key: "limits.depth",
        about: "how deep tasks may launch tasks",
        project: FromProject::Lowered(|config| Some(config.limits.depth.into())),
        show: |config| config.limits.depth.to_string(),
        set: |config, value| number(&mut config.limits.depth, value),
    },
    Setting {
        key: "limits.spawns",
        about: "how many tasks may ever be launched below one session",
        project: FromProject::Lowered(|config| Some(config.limits.spawns)),
        show: |config| config.limits.spawns.to_string(),
        set: |config, value| number(&mut config.limits.spawns, value),
    },
    Setting {
        key: "limits.stall",
        about: "a task without progress for this long is ended",
        project: FromProject::Lowered(|config| Some(millis(config.limits.stall))),
        show: |config| shown(config.limits.stall),
        set: |config, value| duration(&mut config.limits.stall, value),
    },
    Setting {
        key: "limits.same_calls",
        about: "the same tool call this often in a row ends a task",
        project: FromProject::Lowered(|config| Some(config.limits.same_calls)),
        show: |config| config.limits.same_calls.to_string(),
        set: |config, value| {
            let mut calls = config.limits.same_calls;
            number(&mut calls, value)?;
            match calls {
                0 | 1 => Err("a whole number from 2 on".to_owned()),
                _ => {
                    config.limits.same_calls = calls;
                    Ok(())
                }
            }
        },
    },
    Setting {
        key: "limits.worker_deaths",
        about: "a task that loses its worker so often, without progress in between, is ended; it may \
                be what the workers died of",
        project: FromProject::Lowered(|config| Some(config.limits.worker_deaths)),
        show: |config| config.limits.worker_deaths.to_string(),
        set: |config, value| {
            let mut deaths = 0;
            number(&mut deaths, value)?;
            match deaths {
                0 => Err("a whole number from 1 on".to_owned()),
                _ => {
                    config.limits.worker_deaths = deaths;
                    Ok(())
                }
            }
        },
    },
    Setting {
        key: "budget.tokens",
        about: "what a task may spend in one run: tokens",
        project: FromProject::Lowered(|config| config.limits.budget.tokens),
        show: |config| maybe(config.limits.budget.tokens),
        set: |config, value| maybe_number(&mut config.limits.budget.tokens, value),
    },
    Setting {
        key: "budget.cost",
        about: "what a task may spend in one run: dollars",
        project: FromProject::Lowered(|config| config.limits.budget.cost.map(|cost| cost.0)),
        show: |config| {
            let cost = config.limits.budget.cost;
            cost.map_or("none".to_owned(), |cost| cost.to_string())
        },
        set: |config, value| {
            config.limits.budget.cost = match value {
                "none" => None,
                value => Some(dollars(value)?),
            };
            Ok(())
        },
    },
    Setting {
        key: "budget.time",
        about: "what a task may spend in one run: time",
        project: FromProject::Lowered(|config| config.limits.budget.time.map(millis)),
        show: |config| config.limits.budget.time.map_or("none".to_owned(), shown),
        set: |config, value| {
            let mut time = Duration::ZERO;
            config.limits.budget.time = match value {
                "none" => None,
                value => {
                    duration(&mut time, value)?;
                    Some(time)
                }
            };
            Ok(())
        },
    },
    Setting {
        key: "budget.turns",
        about: "what a task may spend in one run: answers of the model",
        project: FromProject::Lowered(|config| config.limits.budget.turns),
        show: |config| maybe(config.limits.budget.turns),
        set: |config, value| maybe_number(&mut config.limits.budget.turns, value),
    },
    Setting {
        key: "budget.tool_calls",
        about: "what a task may spend in one run: tool calls",
        project: FromProject::Lowered(|config| config.limits.budget.tool_calls),
        show: |config| maybe(config.limits.budget.tool_calls),
        set: |config, value| maybe_number(&mut config.limits.budget.tool_calls, value),
    },
    Setting {
        key: "tools.prefix",
        about: "what the names of the tools begin with",
        project: FromProject::Refused,
        show: |config| config.prefix.clone(),
        set: |config, value| filled(&mut config.prefix, value, "the beginning of a name"),
    },
    Setting {
        key: "dev",
        about: "whether notices show that they have a hidden part",
        project: FromProject::Refused,
        show: |config| config.dev.to_string(),
        set: |config, value| switch(&mut config.dev, value),
    },
    Setting {
        key: "worker.autostart",
        about: "whether commands start a worker when there is work and none is alive",
        project: FromProject::Refused,
        show: |config| config.autostart.to_string(),
        set: |config, value| switch(&mut config.autostart, value),
    },
    Setting {
        key: "worker.idle",
        about: "a worker without work for this long ends",
        project: FromProject::Refused,
        show: |config| shown(config.idle),
        set: |config, value| duration(&mut config.idle, value),
    },
    Setting {
        key: "worker.lease",
        about: "a worker that was not heard of for this long is dead, and others take over",
        project: FromProject::Refused,
        show: |config| shown(config.lease),
        set: |config, value| {
            let mut lease = config.lease;
            duration(&mut lease, value)?;
            if lease < LEAST_LEASE {
                return Err("a duration from 300ms on".to_owned());
            }
            config.lease = lease;
            Ok(())
        },
    },
    Setting {
        key: "log.level",
        about: "what is logged: error, warn, info, debug, trace, or a tracing filter",
        project: FromProject::Refused,
        show: |config| config.log.clone(),
        set: |config, value| {
            let allowed = "error, warn, info, debug, trace, off, or a tracing filter";
            let is_filter = value.contains(['=', ',']);
            let known = LevelFilter::from_str(value).is_ok() || is_filter;
            if !known || EnvFilter::from_str(value).is_err() {
                return Err(allowed.to_owned());
            }
            filled(&mut config.log, value, allowed)
        },
    },
    Setting {
        key: "log.file",
        about: "where it is logged; without, a background worker logs beside db, `worker` on standard \
                error, and other commands there what goes wrong, and no more",
        project: FromProject::Refused,
        show: |config| {
            let file = config.log_file.as_ref();
            file.map_or("none".to_owned(), |file| file.display().to_string())
        },
        set: |config, value| {
            config.log_file = (value != "none").then(|| PathBuf::from(value));
            Ok(())
        },
    },
    Setting {
        key: "fork.preset",
        about: "what a forked child inherits: graduated, flat or exact",
        project: FromProject::Free,
        show: |config| {
            let same = |(_, preset): &&(&str, Preset)| preset.limits() == config.fork;
            let known = Preset::ALL.iter().find(same);
            known.map_or("changed", |(name, _)| name).to_owned()
        },
        set: |config, value| {
            let preset = Preset::from_str(value).map_err(|_| "graduated, flat or exact")?;
            config.fork = preset.limits();
            Ok(())
        },
    },
    Setting {
        key: "fork.mode",
        about: "how a forked child in OpenCode inherits: transcript (as one text) or messages \
                (as messages of its own session)",
        project: FromProject::Free,
        show: |config| config.fork_mode.to_string(),
        set: |config, value| {
            config.fork_mode = value.parse()?;
            Ok(())
        },
    },
];

const PER_MODEL: &str = "MODEL=N,MODEL=N";
const LEAST_LEASE: Duration = Duration::from_millis(300);

pub(super) fn filled<T: From<String>>(
    slot: &mut T,
    value: &str,
    allowed: &str,
) -> Result<(), String> {
    if value.trim().is_empty() {
        return Err(allowed.to_owned());
    }
    *slot = value.to_owned().into();
    Ok(())
}

pub(super) fn number<T: FromStr>(slot: &mut T, value: &str) -> Result<(), String> {
    let number = value.replace('_', "").parse();
    *slot = number.map_err(|_| "a whole number from 0 on".to_owned())?;
    Ok(())
}

pub(super) fn maybe_number(slot: &mut Option<u64>, value: &str) -> Result<(), String> {
    if value == "none" {
        *slot = None;
        return Ok(());
    }
    let mut found = 0;
    number(&mut found, value).map_err(|allowed| format!("{allowed}, or none"))?;
    *slot = Some(found);
    Ok(())
}

pub(super) fn switch(slot: &mut bool, value: &str) -> Result<(), String> {
    *slot = match value {
        "true" | "1" | "yes" | "on" => true,
        "false" | "0" | "no" | "off" | "" => false,
        _ => return Err("true or false".to_owned()),
    };
    Ok(())
}

/// A duration as people write it: `90s`, `10m`, `1h 30m`.
pub(crate) fn duration(slot: &mut Duration, value: &str) -> Result<(), String> {
    let allowed = || "a duration like 500ms, 90s, 10m or 1h 30m".to_owned();
    let parsed: jiff::SignedDuration = value.parse().map_err(|_| allowed())?;
    *slot = Duration::try_from(parsed).map_err(|_| allowed())?;
    Ok(())
}

/// Dollars as people write them: `0.50`, `$2`.
pub(crate) fn dollars(value: &str) -> Result<Cost, String> {
    let amount = value.trim().trim_start_matches('$').parse::<f64>();
    let amount = amount.ok().filter(|amount| (0.0..=1e9).contains(amount));
    let amount = amount.ok_or_else(|| "an amount of dollars like 0.50".to_owned())?;
    Ok(Cost((amount * 1e6).round() as u64))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn shown(time: Duration) -> String {
    let time = jiff::SignedDuration::try_from(time).unwrap_or(jiff::SignedDuration::MAX);
    format!("{time:#}")
}

pub(super) fn maybe(value: Option<u64>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}

/// Why it is not known where the user's folders are.
pub(crate) fn no_home() -> &'static str {
    match env::var_os("HOME") {
        Some(home) if !home.is_empty() => "HOME is not an absolute path",
        _ => "HOME is not set",
    }
}

/// Where programs keep a user's data, if they know who the user is.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(".local/share"));
    let base = absolute("XDG_DATA_HOME").or_else(home);
    base.map(|base| base.join("asyncagents"))
}

/// Where programs keep a user's configuration.
pub(crate) fn config_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let base = absolute("XDG_CONFIG_HOME").or_else(home);
    base.map(|base| base.join("asyncagents"))
}
