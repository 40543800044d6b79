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
        FromProject::{Added, Free, Lowered, Refused},
        Setting, at, settings,
    },
    skill_settings::SkillConfig,
    value::Value,
};
use crate::{color::Color, host_name};

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
    /// Limits that a flag or the environment has set.
    pub(crate) limit_overrides: BTreeMap<String, String>,
    pub(crate) fork: Limits,
    pub(crate) fork_mode: Mode,
    /// Whether a flag or the environment says something about forks.
    pub(crate) is_fork_overridden: bool,
    pub(crate) prefix: String,
    pub(crate) dev: bool,
    pub(crate) notify_result_chars: usize,
    pub(crate) notify_window: Duration,
    pub(crate) lease: Duration,
    pub(crate) idle: Duration,
    pub(crate) autostart: bool,
    pub(crate) retention_tasks: Option<Duration>,
    pub(crate) retention_sessions: Option<Duration>,
    pub(crate) log: String,
    pub(crate) log_file: Option<PathBuf>,
    pub(crate) model_may_permit: bool,
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
            limit_overrides: BTreeMap::new(),
            fork: runtime.fork,
            fork_mode: runtime.fork_mode,
            is_fork_overridden: false,
            prefix: runtime.wording.prefix,
            dev: false,
            notify_result_chars: runtime.wording.result_chars,
            notify_window: runtime.notice_window,
            lease: runtime.lease,
            idle: Duration::from_secs(10 * 60),
            autostart: true,
            retention_tasks: None,
            retention_sessions: None,
            log: "info".to_owned(),
            log_file: None,
            model_may_permit: false,
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
        if let Some(host) = key.strip_prefix("hosts.") {
            let (name, what) = host.rsplit_once('.')?;
            let mut described = agent.hosts.get(name)?.describe().into_iter();
            return Some(described.find(|(known, _)| *known == what)?.1);
        }
        let (name, what) = key.strip_prefix("providers.")?.rsplit_once('.')?;
        let mut described = agent.providers.get(name)?.describe().into_iter();
        Some(described.find(|(known, _)| *known == what)?.1)
    }

    /// The settings of the runtime.
    pub(crate) fn runtime(&self) -> Settings {
        let mut settings = Settings {
            limits: self.limits.clone(),
            fork: self.fork.clone(),
            fork_mode: self.fork_mode,
            lease: self.lease,
            notice_window: self.notify_window,
            skills: self.skills.usual,
            model_may_permit: self.model_may_permit,
            models: self.agent_config.model_policy.clone(),
            ..Settings::default()
        };
        settings.wording.prefix.clone_from(&self.prefix);
        settings.wording.show_hint = self.dev;
        settings.wording.result_chars = self.notify_result_chars;
        settings
    }
}

pub(super) const FROM_1: &str = "a whole number from 1 on";
/// No limit.
pub(super) const MAX: u64 = u64::MAX;
const LEAST_LEASE: Duration = Duration::from_millis(300);

/// Every setting but those of the agent, and the fork's limits, which are listed by the fork
/// itself.
pub(crate) const SETTINGS: &[Setting] = settings! {
    "db", db: parsed(file): allowed("a path"), Refused,
        "the file that holds all tasks";
    "host", host: allowed(host_name::FORMS), Refused,
        "where tasks run: engine (the built-in agent, in this folder), engine:FOLDER, \
         opencode:URL (an `opencode serve`; its password from OPENCODE_SERVER_PASSWORD), or another \
         agent: claude, codex, gemini, opencode, goose, or one of [hosts.NAME]";
    "session", session: allowed("a name"), Refused,
        "parent session of tasks from the shell";
    "agent", agent: allowed("the name of an agent"), Free,
        "agent for tasks from the shell";
    "color", color, Refused,
        "when there are colours: auto (on a terminal, unless NO_COLOR is set), always or never";
    "raw", raw, Refused,
        "keep control characters in answers that go to a file or a pipe; a terminal never gets \
         them";
    "limits.concurrency", limits.concurrency, Lowered,
        "how many tasks of one depth run at once; the others wait in a queue";
    "limits.opencode", limits.opencode, Lowered,
        "of these, how many in OpenCode, whose one thread does all the work";
    "limits.agents", limits.agents, Lowered,
        "of these, how many in other agents (hosts such as claude and codex), which need 150 to 500 \
         MB each";
    "limits.per_parent", limits.per_parent, Lowered,
        "how many tasks of one parent run at once";
    "limits.per_model", limits.per_model, Added(lowest_of_each),
        "how many tasks of a model run at once, as MODEL=N,MODEL=N";
    "limits.depth", limits.depth, Lowered,
        "how many levels deep tasks may launch tasks";
    "limits.spawns", limits.spawns, Lowered,
        "how many tasks may ever be launched below one session";
    "limits.stall", limits.stall, Lowered,
        "stall timeout: a task without progress for this long is ended";
    "limits.ask", limits.ask, Refused,
        "a task that waits for an answer for this long tells its parent, once, what it asks";
    "limits.same_calls", limits.same_calls: within(2, MAX, "a whole number from 2 on"), Lowered,
        "the same tool call this often in a row ends a task, as a loop";
    "limits.worker_deaths", limits.worker_deaths: within(1, MAX, FROM_1), Lowered,
        "a task whose worker dies this often, without progress in between, is ended: it may be \
         what kills the workers";
    "budget.tokens", limits.budget.tokens, Lowered,
        "budget of one run of a task: tokens";
    "budget.cost", limits.budget.cost, Lowered,
        "budget of one run of a task: dollars";
    "budget.time", limits.budget.time, Lowered,
        "budget of one run of a task: time";
    "budget.turns", limits.budget.turns, Lowered,
        "budget of one run of a task: turns, which are answers of the model";
    "budget.tool_calls", limits.budget.tool_calls, Lowered,
        "budget of one run of a task: tool calls";
    "permissions.model_may_permit", model_may_permit, Refused,
        "whether an agent may answer `once` when a task below it asks for a permission; `always` \
         is for people only";
    "tools.prefix", prefix: allowed("the beginning of a name"), Refused,
        "prefix of the names of the tools";
    "dev", dev, Refused,
        "whether notices show that they have a hidden part";
    "notify.result_chars", notify_result_chars: within(0, 30_000, "0 to 30000"), Refused,
        "how many characters of a task's result are in the notice of its end; the tool `output` has \
         the rest";
    "notify.window", notify_window, Refused,
        "how long the end of a task may wait to be told together with others, while tasks launched \
         with it still run: a sixteenth of this after the first end, then twice as long after each \
         message; the last end is told at once, and with 0s every one";
    "worker.autostart", autostart, Refused,
        "whether commands start a worker when there is work and none is alive";
    "worker.idle", idle, Refused,
        "idle timeout: a worker without work for this long exits";
    "worker.lease", lease: parsed(lease), Refused,
        "lease: a worker not renewing it for this long counts as dead, and others take over its \
         tasks";
    "retention.tasks", retention_tasks, Refused,
        "finished tasks that ended longer ago than this are deleted for good, as by `prune`, \
         when a worker has nothing more to do; none keeps them all";
    "retention.sessions", retention_sessions, Refused,
        "the same for conversations of `run` in which nothing has happened for so long";
    "log.level", log: parsed(log_level), Refused,
        "what is logged: error, warn, info, debug, trace, or a tracing filter";
    "log.file", log_file, Refused,
        "the log file; without one, a background worker logs to a file beside db, `worker` to \
         standard error, and other commands only errors to standard error";
    "fork.preset", fork, Free,
        "what a forked child inherits: graduated, flat or exact";
    "fork.mode", fork_mode, Free,
        "how a forked child in OpenCode inherits: transcript (as one text) or messages (as \
         messages of its own session)";
};

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
