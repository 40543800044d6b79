//! `asyncagents models`: which models can be used here. Of a key only its place is said.

use asyncagents_models::{KeyState, Models, ProviderOverview};
use serde_json::{Value, json};

use crate::{
    config::Config,
    exit::{Exit, Failure},
    hosts, print,
};

/// Show which models can be used here: providers and whether there is a key, the default, short
/// names, and whether a price is known.
///
/// Nobody is asked, and no key is shown: of a key only the name of its variable.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents models --json | jq -r .default.model")]
pub(super) struct ModelsArgs {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, args: &ModelsArgs) -> Result<Exit, Failure> {
    let agent = &config.agent_config;
    let models = hosts::models(agent).map_err(Failure::Input)?;
    let chosen = match agent.model.as_str() {
        "auto" => models.default_model().map_err(|error| error.to_string()),
        named => Ok(named.to_owned()),
    };
    let chosen = chosen.and_then(|name| known(&models, &name));
    match args.json {
        true => print::json_line(&as_json(&models, &chosen))?,
        false => print::answer(&as_text(&models, &chosen))?,
    }
    Ok(Exit::Done)
}

/// A model by its full name, if it can be asked.
struct Known {
    model: String,
    priced: bool,
    window: u64,
    /// Why it cannot be asked.
    trouble: Option<String>,
}

fn known(models: &Models, name: &str) -> Result<Known, String> {
    let model = models.resolve(name).map_err(|error| error.to_string())?;
    Ok(Known {
        model: model.name().to_string(),
        priced: model.has_price(),
        window: model.window(),
        trouble: models.check(name).err().map(|error| error.to_string()),
    })
}

fn as_text(models: &Models, chosen: &Result<Known, String>) -> String {
    let mut lines = vec![match chosen {
        Ok(known) => format!("Default: {}", describe(known)),
        Err(why) => format!("Default: none: {why}"),
    }];
    lines.push("\nProviders (a model is named PROVIDER/MODEL)".to_owned());
    let providers = models.overview();
    let longest = providers
        .iter()
        .map(|one| one.name.len())
        .max()
        .unwrap_or(0);
    for ProviderOverview { name, url, key } in &providers {
        lines.push(format!("  {name:<longest$}  {}  {url}", describe_key(key)));
    }
    lines.push("\nShort names".to_owned());
    let longest = models.aliases().map(|(name, _)| name.len()).max();
    let longest = longest.unwrap_or(0);
    for (name, model) in models.aliases() {
        let known = known(models, name);
        let known = known.map_or_else(|why| format!("{model}: {why}"), |known| describe(&known));
        lines.push(format!("  {name:<longest$}  {known}"));
    }
    lines.join("\n")
}

fn describe(known: &Known) -> String {
    let price = match known.priced {
        true => "price known",
        false => "price unknown",
    };
    let trouble = known.trouble.as_ref();
    let trouble = trouble.map_or(String::new(), |why| format!("; {why}"));
    format!("{} ({price}{trouble})", known.model)
}

fn describe_key(key: &KeyState) -> String {
    match key {
        KeyState::NotNeeded => "needs no key".to_owned(),
        KeyState::Variable {
            name, is_set: true, ..
        } => format!("{name} is set"),
        KeyState::Variable {
            name,
            needed: false,
            ..
        } => format!("{name} is not set, and need not be"),
        KeyState::Variable { name, .. } => format!("{name} is not set"),
        KeyState::Command => "key from a command".to_owned(),
        KeyState::Given => "key given".to_owned(),
    }
}

fn as_json(models: &Models, chosen: &Result<Known, String>) -> Value {
    let of_known = |known: &Known| {
        json!({
            "model": known.model,
            "usable": known.trouble.is_none(),
            "error": known.trouble,
            "price_known": known.priced,
            "window": known.window,
        })
    };
    let provider = |one: ProviderOverview| {
        let (source, variable, is_set) = match &one.key {
            KeyState::NotNeeded => ("none", None, None),
            KeyState::Variable { name, is_set, .. } => ("variable", Some(name), Some(is_set)),
            KeyState::Command => ("command", None, None),
            KeyState::Given => ("given", None, None),
        };
        json!({
            "name": one.name,
            "base_url": one.url,
            "usable": one.key.is_usable(),
            "key": {"source": source, "variable": variable, "is_set": is_set},
        })
    };
    let aliases = models.aliases().map(|(name, model)| {
        let mut shown = match known(models, name) {
            Ok(known) => of_known(&known),
            Err(why) => json!({"model": model, "usable": false, "error": why}),
        };
        shown["name"] = name.into();
        shown
    });
    json!({
        "default": match chosen {
            Ok(known) => of_known(known),
            Err(why) => json!({"model": null, "usable": false, "error": why}),
        },
        "providers": models.overview().into_iter().map(provider).collect::<Vec<_>>(),
        "aliases": aliases.collect::<Vec<_>>(),
    })
}
