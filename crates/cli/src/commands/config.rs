//! `asyncagents config`: every setting, its value, and where that comes from.

use serde_json::json;

use crate::{
    args::ConfigArgs,
    config::{Loaded, all_settings},
    exit::{Exit, Failure},
    print,
};

pub(super) fn run(loaded: &Loaded, args: &ConfigArgs) -> Result<Exit, Failure> {
    let source = |key: &str| {
        let source = loaded.sources.get(key);
        source.map_or("default", String::as_str).to_owned()
    };
    let mut rows = Vec::new();
    for setting in all_settings() {
        let value = (setting.show)(&loaded.config);
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
