//! `asyncagents config`: every setting, its value, and where that comes from.

use asyncagents_views::SettingView;

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
    let mut rows = Vec::new();
    let mut add = |key: String, value: String, about: String| {
        let source = loaded.sources.get(&key);
        let source = source.map_or("default", String::as_str).to_owned();
        rows.push(SettingView {
            about,
            key,
            source,
            value,
        });
    };
    let config = &loaded.config;
    for setting in all_settings() {
        add(
            setting.key.to_owned(),
            setting.show(config),
            setting.about.to_owned(),
        );
    }
    for (name, provider) in &config.agent_config.providers {
        for (what, value) in provider.describe() {
            let key = format!("providers.{name}.{what}");
            add(key, value, "a provider of models".to_owned());
        }
    }
    for (name, host) in &config.agent_config.hosts {
        for (what, value) in host.describe() {
            let key = format!("hosts.{name}.{what}");
            add(key, value, "another agent".to_owned());
        }
    }
    for (name, model) in &config.agent_config.aliases {
        let about = "a name for a model".to_owned();
        add(format!("aliases.{name}"), model.clone(), about);
    }
    for (limit, value, allowed) in config.fork.describe() {
        add(
            format!("fork.{limit}"),
            value,
            format!("allowed: {allowed}"),
        );
    }
    print::json_or(args.json, &rows, || rows.iter().map(as_text).collect())?;
    Ok(Exit::Done)
}

fn as_text(setting: &SettingView) -> String {
    let SettingView {
        about,
        key,
        source,
        value,
    } = setting;
    format!("{key} = {value}\n    {about} [{source}]\n")
}
