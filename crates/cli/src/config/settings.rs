//! The settings. Each is declared once: its key, where its value is, what it is for, and what a
//! project may say about it.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr, time::Duration};

use asyncagents_core::{
    fork::{Limits, Mode},
    task_limits::TaskLimits,
};
use asyncagents_runtime::Settings;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::{
    agent_settings::AgentConfig,
    folders::data_folder,
    setting::{
        FromProject::{Added, Free, Lowered},
        Setting, at, at_parsed,
    },
    skill_settings::SkillConfig,
    value::Value,
};
use crate::color::Color;

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
            return Some(setting.show(self));
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

const HOSTS: &str = "engine, engine:FOLDER, opencode:URL, scripted or scripted:FILE";
const LEAST_LEASE: Duration = Duration::from_millis(300);

/// Every setting but those of the agent, and the fork's limits, which are listed by the fork
/// itself.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("db", &at_parsed(|c| &mut c.db, file).allowed("a path"))
        .about("the file that holds all tasks"),
    Setting::new("host", &at(|c| &mut c.host).allowed(HOSTS)).about(
        "where tasks run: engine (the built-in agent, in this folder), engine:FOLDER, \
         opencode:URL (an `opencode serve`; its password from OPENCODE_SERVER_PASSWORD), \
         scripted, or scripted:FILE for a script of your own",
    ),
    Setting::new("session", &at(|c| &mut c.session).allowed("a name"))
        .about("the session that tasks from the shell belong to"),
    Setting::new(
        "agent",
        &at(|c| &mut c.agent).allowed("the name of an agent"),
    )
    .about("who works on a task from the shell")
    .project(Free),
    Setting::new("color", &at(|c| &mut c.color)).about(
        "when there are colours: auto (on a terminal, unless NO_COLOR is set), always or never",
    ),
    Setting::new("raw", &at(|c| &mut c.raw)).about(
        "keep control characters in answers that go to a file or a pipe; a terminal never \
         gets them",
    ),
    Setting::new("limits.concurrency", &at(|c| &mut c.limits.concurrency))
        .about("how many tasks of one depth run at once; the others wait in a queue")
        .project(Lowered),
    Setting::new("limits.per_parent", &at(|c| &mut c.limits.per_parent))
        .about("how many tasks of one parent run at once")
        .project(Lowered),
    Setting::new("limits.per_model", &at(|c| &mut c.limits.per_model))
        .about("how many tasks of a model run at once, as MODEL=N,MODEL=N")
        .project(Added(lowest_of_each)),
    Setting::new("limits.depth", &at(|c| &mut c.limits.depth))
        .about("how deep tasks may launch tasks")
        .project(Lowered),
    Setting::new("limits.spawns", &at(|c| &mut c.limits.spawns))
        .about("how many tasks may ever be launched below one session")
        .project(Lowered),
    Setting::new("limits.stall", &at(|c| &mut c.limits.stall))
        .about("a task without progress for this long is ended")
        .project(Lowered),
    Setting::new(
        "limits.same_calls",
        &at(|c| &mut c.limits.same_calls).within(2, u64::MAX, "a whole number from 2 on"),
    )
    .about("the same tool call this often in a row ends a task")
    .project(Lowered),
    Setting::new(
        "limits.worker_deaths",
        &at(|c| &mut c.limits.worker_deaths).within(1, u64::MAX, "a whole number from 1 on"),
    )
    .about(
        "a task that loses its worker so often, without progress in between, is ended; it may \
         be what the workers died of",
    )
    .project(Lowered),
    Setting::new("budget.tokens", &at(|c| &mut c.limits.budget.tokens))
        .about("what a task may spend in one run: tokens")
        .project(Lowered),
    Setting::new("budget.cost", &at(|c| &mut c.limits.budget.cost))
        .about("what a task may spend in one run: dollars")
        .project(Lowered),
    Setting::new("budget.time", &at(|c| &mut c.limits.budget.time))
        .about("what a task may spend in one run: time")
        .project(Lowered),
    Setting::new("budget.turns", &at(|c| &mut c.limits.budget.turns))
        .about("what a task may spend in one run: answers of the model")
        .project(Lowered),
    Setting::new(
        "budget.tool_calls",
        &at(|c| &mut c.limits.budget.tool_calls),
    )
    .about("what a task may spend in one run: tool calls")
    .project(Lowered),
    Setting::new(
        "tools.prefix",
        &at(|c| &mut c.prefix).allowed("the beginning of a name"),
    )
    .about("what the names of the tools begin with"),
    Setting::new("dev", &at(|c| &mut c.dev))
        .about("whether notices show that they have a hidden part"),
    Setting::new("worker.autostart", &at(|c| &mut c.autostart))
        .about("whether commands start a worker when there is work and none is alive"),
    Setting::new("worker.idle", &at(|c| &mut c.idle))
        .about("a worker without work for this long ends"),
    Setting::new("worker.lease", &at_parsed(|c| &mut c.lease, lease))
        .about("a worker that was not heard of for this long is dead, and others take over"),
    Setting::new("log.level", &at_parsed(|c| &mut c.log, log_level))
        .about("what is logged: error, warn, info, debug, trace, or a tracing filter"),
    Setting::new("log.file", &at(|c| &mut c.log_file)).about(
        "where it is logged; without, a background worker logs beside db, `worker` on standard \
         error, and other commands there what goes wrong, and no more",
    ),
    Setting::new("fork.preset", &at(|c| &mut c.fork))
        .about("what a forked child inherits: graduated, flat or exact")
        .project(Free),
    Setting::new("fork.mode", &at(|c| &mut c.fork_mode))
        .about(
            "how a forked child in OpenCode inherits: transcript (as one text) or messages \
         (as messages of its own session)",
        )
        .project(Free),
];

/// Of two limits for a model the lower one counts.
fn lowest_of_each(config: &mut Config, more: Config) {
    for (model, limit) in more.limits.per_model {
        let lowest = config.limits.per_model.entry(model).or_insert(limit);
        *lowest = limit.min(*lowest);
    }
}

fn file(text: &str) -> Result<PathBuf, String> {
    String::parse(text).map(PathBuf::from)
}

fn lease(text: &str) -> Result<Duration, String> {
    let lease = Duration::parse(text)?;
    if lease < LEAST_LEASE {
        return Err("a duration from 300ms on".to_owned());
    }
    Ok(lease)
}

fn log_level(text: &str) -> Result<String, String> {
    let is_filter = text.contains(['=', ',']);
    let is_known = LevelFilter::from_str(text).is_ok() || is_filter;
    let is_read = is_known && EnvFilter::from_str(text).is_ok();
    let level = is_read.then(|| String::parse(text)).and_then(Result::ok);
    level.ok_or_else(|| "error, warn, info, debug, trace, off, or a tracing filter".to_owned())
}
