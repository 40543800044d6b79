//! Reads the sources, the later over the earlier.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use toml::{Table, Value};

use super::settings::{Config, SETTINGS, config_file};

/// The settings, and where each came from if it is not a default.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) sources: BTreeMap<String, String>,
}

/// Reads all sources. `flags` are keys and values from the command line.
pub(crate) fn load(flags: &[(String, String)]) -> anyhow::Result<Loaded> {
    let mut loaded = Loaded {
        config: Config::defaults(),
        sources: BTreeMap::new(),
    };
    let files = config_file().into_iter().chain(project_file());
    for file in files {
        loaded.read_file(&file)?;
    }
    loaded.read_environment()?;
    for (key, value) in flags {
        loaded.set(key, value, "flag")?;
    }
    Ok(loaded)
}

/// `asyncagents.toml` in this folder or the nearest one above.
fn project_file() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let files = here
        .ancestors()
        .map(|folder| folder.join("asyncagents.toml"));
    files.into_iter().find(|file| file.is_file())
}

impl Loaded {
    fn read_file(&mut self, file: &Path) -> anyhow::Result<()> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context(file.display().to_string()),
        };
        let name = file.display().to_string();
        let table: Table = text.parse().map_err(|error| broken(&name, &text, &error))?;
        let mut values = Vec::new();
        flatten("", &table, &mut values).with_context(|| name.clone())?;
        // A preset is where the other limits of a fork begin.
        values.sort_by_key(|(key, _)| key != "fork.preset");
        let folder = file.parent().unwrap_or(Path::new(""));
        for (key, value) in values {
            let value = beside(&key, value, folder);
            self.set(&key, &value, &name)
                .with_context(|| name.clone())?;
        }
        Ok(())
    }

    fn read_environment(&mut self) -> anyhow::Result<()> {
        for setting in SETTINGS {
            let name = setting.variable();
            match env::var(&name) {
                Ok(value) => self.set(setting.key, &value, &name).context(name)?,
                Err(env::VarError::NotPresent) => {}
                Err(env::VarError::NotUnicode(_)) => bail!("{name} is not text"),
            }
        }
        // After the preset, from which they depart.
        for (limit, ..) in self.config.fork.describe() {
            let name = format!("ASYNCAGENTS_FORK_{}", limit.to_uppercase());
            if let Ok(value) = env::var(&name) {
                let key = format!("fork.{limit}");
                self.set(&key, &value, &name).context(name)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, source: &str) -> anyhow::Result<()> {
        let refused = |allowed: String| anyhow!("{key}: `{value}` is refused; allowed: {allowed}");
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            (setting.set)(&mut self.config, value).map_err(refused)?;
        } else if let Some(limit) = key.strip_prefix("fork.") {
            self.config.fork.set(limit, value)?;
        } else {
            let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
            bail!(
                "`{key}` is not a setting; there are {} and fork.LIMIT",
                known.join(", ")
            );
        }
        if key == "fork.preset" {
            self.sources.retain(|key, _| !key.starts_with("fork."));
        }
        self.sources.insert(key.to_owned(), source.to_owned());
        Ok(())
    }
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
    match (key, value.strip_prefix("scripted:")) {
        ("db" | "log.file", _) if value != "none" => joined(&value),
        ("host", Some(path)) => format!("scripted:{}", joined(path)),
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
                items.map(|items| items.join(","))
            }
            value => plain(value),
        };
        let text = text.ok_or_else(|| anyhow!("{key}: this kind of value is not used"))?;
        found.push((key, text));
    }
    Ok(())
}
