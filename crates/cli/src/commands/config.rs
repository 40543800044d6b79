//! `asyncagents config`: every setting, its value, and where that comes from.

use serde_json::json;

use crate::{
    config::{Loaded, all_settings, schema},
    exit::{Exit, Failure},
    print,
};

/// Show every setting, its value, and where the value comes from.
///
/// A setting comes from, the later over the earlier: its default;
/// `asyncagents/asyncagents.toml` in your configuration folder; `asyncagents.toml` in this
/// folder or the nearest one above; the environment (`limits.depth` is
/// `ASYNCAGENTS_LIMITS_DEPTH`); the command line (`-c limits.depth=1`). A worker keeps the
/// settings it was started with.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    /// Print one line of JSON: a list of settings.
    #[arg(long)]
    json: bool,

    /// Print the JSON Schema of `asyncagents.toml` instead, for editors that check it.
    #[arg(long, conflicts_with = "json")]
    pub(super) schema: bool,
}

pub(super) fn run(loaded: &Loaded, args: &ConfigArgs) -> Result<Exit, Failure> {
    if args.schema {
        print::answer(&format!("{:#}", schema()))?;
        return Ok(Exit::Done);
    }
    let source = |key: &str| {
        let source = loaded.sources.get(key);
        source.map_or("default", String::as_str).to_owned()
    };
    let mut rows = Vec::new();
    for setting in all_settings() {
        let value = setting.show(&loaded.config);
        let about = setting.about.to_owned();
        rows.push((setting.key.to_owned(), value, source(setting.key), about));
    }
    let agent = &loaded.config.agent_config;
    for (name, provider) in &agent.providers {
        for (what, value) in provider.describe() {
            let key = format!("providers.{name}.{what}");
            let source = source(&key);
            rows.push((key, value, source, "a provider of models".to_owned()));
        }
    }
    for (name, model) in &agent.aliases {
        let key = format!("aliases.{name}");
        let source = source(&key);
        rows.push((key, model.clone(), source, "a name for a model".to_owned()));
    }
    for (limit, value, allowed) in loaded.config.fork.describe() {
        let key = format!("fork.{limit}");
        let source = source(&key);
        rows.push((key, value, source, format!("allowed: {allowed}")));
    }
    if args.json {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(key, value, source, about)| {
                json!({"key": key, "value": value, "source": source, "about": about})
            })
            .collect();
        print::json_line(&rows)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for (key, value, source, about) in rows {
        text.push_str(&format!("{key} = {value}\n    {about} [{source}]\n"));
    }
    print::answer(&text)?;
    Ok(Exit::Done)
}
