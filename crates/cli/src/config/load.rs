//! Reads the sources, the later over the earlier.

use std::{collections::BTreeMap, env, fs, io, os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, anyhow, bail};
use toml::{Table, Value};

use asyncagents_core::{
    fork::{Limits, Mode},
    similar::nearest,
    task_limits::TaskLimits,
};

use super::{
    agent_settings::AGENT_SETTINGS,
    all_settings,
    folders::config_folder,
    project_file::{self, ProjectFile},
    setting::{FromProject, Setting},
    settings::Config,
    skill_settings::SKILL_SETTINGS,
};
use crate::{host_name, read_short::read_short};

/// The settings, and where each came from if it is not a default.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) sources: BTreeMap<String, String>,
    /// What the environment and the command line set for the built-in agent. It goes with what is
    /// launched, whichever worker runs it.
    pub(crate) overrides: BTreeMap<String, String>,
    /// What has no effect, and why.
    pub(crate) remarks: Vec<String>,
}

/// Reads all sources for the folder we are in. `flags` are keys and values from the command
/// line.
pub(crate) fn load(flags: &[(String, String)]) -> anyhow::Result<Loaded> {
    load_in(env::current_dir().ok().as_deref(), flags)
}

/// Reads all sources but a project's file: a worker serves every folder, whichever it was
/// started in.
pub(crate) fn load_without_project(flags: &[(String, String)]) -> anyhow::Result<Loaded> {
    load_in(None, flags)
}

/// Reads all sources for a folder, or all but the project's file.
fn load_in(folder: Option<&Path>, flags: &[(String, String)]) -> anyhow::Result<Loaded> {
    let mut loaded = load_files(folder)?;
    loaded.read_environment()?;
    for (key, value) in flags {
        loaded.set(key, value, "flag")?;
    }
    let keys = loaded.sources.keys().filter(|key| !loaded.is_kept(key));
    for key in keys.cloned().collect::<Vec<_>>() {
        loaded.config.is_fork_overridden |= key.starts_with("fork.");
        let Some(value) = loaded.config.value_of(&key) else {
            continue;
        };
        if key.starts_with("limits.") || key.starts_with("budget.") {
            loaded.config.limit_overrides.insert(key, value);
        } else if is_of_agent(&key) {
            loaded.overrides.insert(key, value);
        }
    }
    Ok(loaded)
}

/// Reads the files for a folder, with the overrides of a launch over them. Without a folder no file
/// is read.
pub(crate) fn load_launched(
    folder: Option<&Path>,
    overrides: &BTreeMap<String, String>,
) -> anyhow::Result<Loaded> {
    let mut loaded = match folder {
        Some(folder) => load_files(Some(folder))?,
        None => Loaded::defaults(),
    };
    for (key, value) in overrides {
        loaded.set(key, value, "launch")?;
    }
    Ok(loaded)
}

/// What the project around a folder says about the tasks there.
pub(crate) struct ProjectTasks {
    /// Those of this process, lowered to the project's.
    pub(crate) limits: TaskLimits,
    pub(crate) fork: Limits,
    pub(crate) fork_mode: Mode,
}

/// The settings of this process for tasks in a folder, with what the project there says. Flags and
/// the environment of this process are above that.
pub(crate) fn with_project(config: &Config, folder: &Path) -> anyhow::Result<ProjectTasks> {
    let mut loaded = Loaded::defaults();
    loaded.config.limits = config.limits.clone();
    loaded.config.fork = config.fork.clone();
    loaded.config.fork_mode = config.fork_mode;
    loaded.read_project(folder)?;
    for (key, value) in &config.limit_overrides {
        loaded.set(key, value, "flag")?;
    }
    let forks = if config.is_fork_overridden {
        config
    } else {
        &loaded.config
    };
    Ok(ProjectTasks {
        limits: loaded.config.limits.clone(),
        fork: forks.fork.clone(),
        fork_mode: forks.fork_mode,
    })
}

fn load_files(folder: Option<&Path>) -> anyhow::Result<Loaded> {
    let mut loaded = Loaded::defaults();
    if let Some(folder) = config_folder() {
        loaded.read_file(&folder.join("asyncagents.toml"), Whose::User)?;
    }
    if let Some(folder) = folder {
        loaded.read_project(folder)?;
    }
    Ok(loaded)
}

/// The owner of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    User,
    Project,
}

impl Loaded {
    fn defaults() -> Self {
        Self {
            config: Config::defaults(),
            sources: BTreeMap::new(),
            overrides: BTreeMap::new(),
            remarks: Vec::new(),
        }
    }

    /// The defaults, with these settings and nothing else.
    pub(crate) fn only(settings: &[(String, String)]) -> anyhow::Result<Self> {
        let mut loaded = Self::defaults();
        for (key, value) in settings {
            loaded.set(key, value, "flag")?;
            if is_of_agent(key) {
                loaded.overrides.insert(key.clone(), value.clone());
            }
        }
        Ok(loaded)
    }

    /// Whether a setting is as the files say, or its default: not overridden for this command.
    pub(crate) fn is_kept(&self, key: &str) -> bool {
        let source = self.sources.get(key);
        source.is_none_or(|source| Path::new(source).is_absolute())
    }

    fn read_project(&mut self, folder: &Path) -> anyhow::Result<()> {
        let (file, why) = match project_file::find(folder) {
            ProjectFile::None => return Ok(()),
            ProjectFile::Ours(file) => return self.read_file(&file, Whose::Project),
            ProjectFile::Folder(folder) => (folder, "is a folder, so it is not read"),
            ProjectFile::Foreign(file) => (
                file,
                "is not read: it, or its folder, belongs to another user",
            ),
        };
        self.remarks.push(format!("{} {why}", file.display()));
        Ok(())
    }

    fn read_file(&mut self, file: &Path, whose: Whose) -> anyhow::Result<()> {
        let name = file.display().to_string();
        let text = match read_short(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context(name),
        };
        if whose == Whose::User && is_open_to_all(file) {
            // A user who can write there decides what runs.
            bail!("{name} can be written by every user, so it is not read; `chmod o-w` closes it");
        }
        let table: Table = text.parse().map_err(|error| broken(&name, &text, &error))?;
        let mut values = Vec::new();
        flatten("", &table, &mut values).with_context(|| name.clone())?;
        // A preset is where the other limits of a fork begin.
        values.sort_by_key(|(key, _)| key != "fork.preset");
        let folder = file.parent().unwrap_or(Path::new(""));
        for (key, value) in values {
            let value = beside(&key, value, folder);
            match whose {
                Whose::User => self.set(&key, &value, &name),
                Whose::Project => self.set_by_project(&key, &value, &name),
            }
            .with_context(|| name.clone())?;
        }
        Ok(())
    }

    /// Takes what a project may say, and refuses the rest.
    fn set_by_project(&mut self, key: &str, value: &str, source: &str) -> anyhow::Result<()> {
        let Some(setting) = all_settings().find(|setting| setting.key == key) else {
            if DECLARED.iter().any(|table| key.starts_with(table)) {
                return Err(not_for_a_project(key));
            }
            // A limit of forks; or it says that there is no such setting.
            return self.set(key, value, source);
        };
        match &setting.project {
            FromProject::Refused => return Err(not_for_a_project(key)),
            FromProject::Free => self.set(key, value, source)?,
            FromProject::Added(add) => {
                let mut alone = Self::defaults();
                alone.set(key, value, source)?;
                add(&mut self.config, alone.config);
                self.sources.insert(key.to_owned(), source.to_owned());
            }
            FromProject::Lowered => {
                let (before, sources) = (self.config.clone(), self.sources.clone());
                self.set(key, value, source)?;
                if !setting.is_at_most(&self.config, &before) {
                    (self.config, self.sources) = (before, sources);
                    let (kept, places) = (setting.show(&self.config), places());
                    self.remarks.push(format!(
                        "{source}: `{key} = {value}` is not taken: a project may only lower it, so \
                         it stays {kept}; to raise it, set it in {places}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn read_environment(&mut self) -> anyhow::Result<()> {
        for setting in all_settings() {
            let name = setting.variable();
            match env::var(&name) {
                Ok(value) => self.set(setting.key, &value, &name).context(name)?,
                Err(env::VarError::NotPresent) => {}
                Err(env::VarError::NotUnicode(_)) => bail!("{name} is not text"),
            }
        }
        // After the preset, from which they depart.
        let mut known: Vec<String> = all_settings().map(Setting::variable).collect();
        for (limit, ..) in self.config.fork.describe() {
            let name = format!("{VARIABLES}FORK_{}", limit.to_uppercase());
            if let Ok(value) = env::var(&name) {
                let set = self.set(&format!("fork.{limit}"), &value, &name);
                set.with_context(|| name.clone())?;
            }
            known.push(name);
        }
        self.remark_unknown_variables(&known);
        Ok(())
    }

    /// A variable that means nothing is a mistake in one that does.
    fn remark_unknown_variables(&mut self, known: &[String]) {
        let named = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut unknown: Vec<String> = named
            .filter(|name| name.starts_with(VARIABLES) && !known.contains(name))
            .filter(|name| !NOT_SETTINGS.contains(&name.as_str()))
            .collect();
        unknown.sort();
        for name in unknown {
            let own = name.strip_prefix(VARIABLES).unwrap_or(&name);
            let names = known.iter().filter_map(|name| name.strip_prefix(VARIABLES));
            let hint = match nearest(own, names).first() {
                Some(near) => format!("did you mean {VARIABLES}{near}?"),
                None => "`asyncagents config` lists the settings".to_owned(),
            };
            let remark = format!("{name} is no setting and has no effect; {hint}");
            self.remarks.push(remark);
        }
    }

    fn set(&mut self, key: &str, value: &str, source: &str) -> anyhow::Result<()> {
        let refused = |allowed: String| {
            // The items of a list are on lines of their own.
            let value = value.trim().replace('\n', ", ");
            anyhow!("{key}: `{value}` is refused; allowed: {allowed}")
        };
        if let Some(setting) = all_settings().find(|setting| setting.key == key) {
            let set = setting.field.set(&mut self.config, value);
            set.map_err(refused)?;
        } else if let Some(limit) = key.strip_prefix("fork.") {
            self.config.fork.set(limit, value)?;
        } else if let Some(provider) = key.strip_prefix("providers.") {
            let set = self.config.agent_config.set_provider(provider, value);
            set.map_err(refused)?;
        } else if let Some(host) = key.strip_prefix("hosts.") {
            let set = self.config.agent_config.set_host(host, value);
            set.map_err(refused)?;
        } else if let Some(alias) = key.strip_prefix("aliases.") {
            let aliases = &mut self.config.agent_config.aliases;
            aliases.insert(alias.to_owned(), value.to_owned());
        } else {
            bail!("`{key}` is not a setting; {}", meant(key));
        }
        if key == "fork.preset" {
            let limit = |key: &str| key.starts_with("fork.") && key != "fork.mode";
            self.sources.retain(|key, _| !limit(key));
        }
        self.sources.insert(key.to_owned(), source.to_owned());
        Ok(())
    }
}

/// A hint about a key that is no setting.
fn meant(key: &str) -> String {
    let dynamic = [
        "fork.preset",
        "fork.mode",
        "providers.NAME.base_url",
        "aliases.NAME",
        "hosts.NAME.command",
    ];
    let known = all_settings().map(|setting| setting.key);
    let near = nearest(key, known.chain(dynamic));
    let near: Vec<String> = near.iter().map(|key| format!("`{key}`")).collect();
    let question = if near.is_empty() {
        String::new()
    } else {
        format!("did you mean {}? ", near.join(" or "))
    };
    question + "`asyncagents config` lists them all"
}

/// Whether a setting is one of the built-in agent's: those go with what is launched.
pub(crate) fn is_of_agent(key: &str) -> bool {
    let dynamic = DECLARED.iter().any(|table| key.starts_with(table));
    let mut settings = AGENT_SETTINGS.iter().chain(SKILL_SETTINGS);
    dynamic || settings.any(|setting| setting.key == key)
}

/// Tables in which the user declares what the built-in agent, or tasks, can use by its name.
const DECLARED: [&str; 3] = ["providers.", "aliases.", "hosts."];

/// How the names of our variables begin.
const VARIABLES: &str = "ASYNCAGENTS_";

/// Variables of ours that are no settings: what commands of agents find, what the plugin in OpenCode
/// starts, and what tests use.
const NOT_SETTINGS: &[&str] = &[
    asyncagents_tools::SESSION_VARIABLE,
    asyncagents_hosts::proxy::DOORS_VARIABLE,
    asyncagents_hosts::agent::CHILD_VARIABLE,
    "ASYNCAGENTS_BIN",
    "ASYNCAGENTS_OPENCODE_BIN",
    "ASYNCAGENTS_SOAK_MINUTES",
];

fn is_open_to_all(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.mode() & 0o002 != 0)
}

fn not_for_a_project(key: &str) -> anyhow::Error {
    let places = places();
    anyhow!("`{key}` is not for a project to say; set it in {places}")
}

/// Where a user's own settings are.
fn places() -> String {
    let file = config_folder().map(|folder| folder.join("asyncagents.toml"));
    let file = file.map_or("your own configuration file".to_owned(), |file| {
        file.display().to_string()
    });
    format!("{file}, in the environment or on the command line")
}

/// What is wrong with a file of settings, in one line.
fn broken(name: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let at = error.span().map_or(0, |span| span.start);
    let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let what = error.message().replace('\n', " ");
    anyhow!("{name}, line {line}: {what}")
}

/// Paths in a file are meant from where the file is.
fn beside(key: &str, value: String, folder: &Path) -> String {
    let joined = |path: &str| folder.join(path).display().to_string();
    match key {
        "db" | "log.file" | "models.prices" if value != "none" => joined(&value),
        "host" => host_name::from_folder(folder, &value),
        _ => value,
    }
}

/// `[limits] depth = 2` as `limits.depth` and `2`.
fn flatten(before: &str, table: &Table, found: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    for (name, value) in table {
        let key = format!("{before}{name}");
        let plain = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Boolean(switch) => Some(switch.to_string()),
            Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
        };
        let text = match value {
            Value::Table(limits) if key == "limits.per_model" => {
                let pairs = limits
                    .iter()
                    .map(|(model, limit)| format!("{model}={limit}"));
                Some(pairs.collect::<Vec<_>>().join(","))
            }
            Value::Table(table) => {
                flatten(&format!("{key}."), table, found)?;
                continue;
            }
            Value::Array(list) => {
                let items: Option<Vec<String>> = list.iter().map(plain).collect();
                // A rule may have a comma in it, and so may an argument.
                let has_commas = before == "permissions." || before.starts_with("hosts.");
                let between = if has_commas { "\n" } else { "," };
                // A list of one item is a list too.
                let end = if before.starts_with("hosts.") {
                    "\n"
                } else {
                    ""
                };
                items.map(|items| items.join(between) + end)
            }
            value => plain(value),
        };
        let text = text.ok_or_else(|| anyhow!("{key}: this kind of value is not used"))?;
        found.push((key, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tasks_in_a_folder_have_what_its_project_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "fork.preset = \"flat\"\nlimits.depth = 1\nlimits.spawns = 100000\n";
        fs::write(folder.path().join("asyncagents.toml"), text).expect("written");
        let mut config = Config::defaults();
        let usual = config.fork.clone();
        let tasks = with_project(&config, folder.path()).expect("in order");
        assert_ne!(tasks.fork, usual);
        assert_eq!(tasks.limits.depth, 1);
        assert_eq!(tasks.limits.spawns, config.limits.spawns, "only lowered");
        config.is_fork_overridden = true;
        let tasks = with_project(&config, folder.path()).expect("in order");
        assert_eq!(tasks.fork, usual, "the user's flags are above a project");
        fs::write(folder.path().join("asyncagents.toml"), "limits.depth = -").expect("written");
        assert!(with_project(&config, folder.path()).is_err());
    }
}
