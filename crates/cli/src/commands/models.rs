//! `asyncagents models`: which models can be used here. Of a key only the source is shown.

use asyncagents_models::{KeyState, Models, ProviderOverview};
use asyncagents_views::{KeyView, ModelView, ModelsView, ProviderView};

use crate::{
    config::Config,
    exit::{Exit, Failure},
    hosts, print,
};

/// Show which models can be used here: providers and whether there is a key, the default, short
/// names, and whether a price is known.
///
/// No provider is asked, and no key is shown: of a key only the name of its variable.
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
    let chosen = chosen.map_or_else(unusable, |name| known(&models, &name));
    print::json_or(args.json, &view(&models, &chosen), || {
        as_text(&models, &chosen)
    })?;
    Ok(Exit::Done)
}

/// A model by its full name, or why it cannot be asked.
fn known(models: &Models, name: &str) -> ModelView {
    let model = match models.resolve(name) {
        Ok(model) => model,
        Err(error) => return unusable(error.to_string()),
    };
    let error = models.check(name).err().map(|error| error.to_string());
    ModelView {
        model: Some(model.name().to_string()),
        usable: error.is_none(),
        error,
        price_known: Some(model.has_price()),
        window: Some(model.window()),
        name: None,
    }
}

fn unusable(why: String) -> ModelView {
    ModelView {
        error: Some(why),
        ..ModelView::default()
    }
}

/// The short names, each with its model.
fn aliases(models: &Models) -> impl Iterator<Item = (&str, ModelView)> {
    models.aliases().map(|(name, model)| {
        let mut known = known(models, name);
        known.model.get_or_insert_with(|| model.to_owned());
        (name, known)
    })
}

fn as_text(models: &Models, chosen: &ModelView) -> String {
    let mut lines = vec![format!("Default: {}", describe(chosen))];
    lines.push("\nProviders (a model is named PROVIDER/MODEL)".to_owned());
    let providers = models.overview();
    let longest = providers.iter().map(|one| one.name.len()).max();
    let longest = longest.unwrap_or(0);
    for ProviderOverview { name, url, key } in &providers {
        lines.push(format!("  {name:<longest$}  {}  {url}", describe_key(key)));
    }
    lines.push("\nShort names".to_owned());
    let longest = models.aliases().map(|(name, _)| name.len()).max();
    let longest = longest.unwrap_or(0);
    for (name, known) in aliases(models) {
        lines.push(format!("  {name:<longest$}  {}", describe(&known)));
    }
    lines.join("\n")
}

fn describe(view: &ModelView) -> String {
    let model = view.model.as_deref().unwrap_or("none");
    let error = view.error.as_deref();
    let Some(priced) = view.price_known else {
        return format!("{model}: {}", error.unwrap_or_default());
    };
    let price = if priced {
        "price known"
    } else {
        "price unknown"
    };
    let error = error.map_or(String::new(), |why| format!("; {why}"));
    format!("{model} ({price}{error})")
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

fn view(models: &Models, default: &ModelView) -> ModelsView {
    let provider = |one: ProviderOverview| ProviderView {
        usable: one.key.is_usable(),
        base_url: one.url,
        name: one.name,
        key: match one.key {
            KeyState::NotNeeded => key("none"),
            KeyState::Variable { name, is_set, .. } => KeyView {
                is_set: Some(is_set),
                source: "variable",
                variable: Some(name),
            },
            KeyState::Command => key("command"),
            KeyState::Given => key("given"),
        },
    };
    let alias = |(name, known): (&str, ModelView)| ModelView {
        name: Some(name.to_owned()),
        ..known
    };
    ModelsView {
        aliases: aliases(models).map(alias).collect(),
        default: default.clone(),
        providers: models.overview().into_iter().map(provider).collect(),
    }
}

fn key(source: &'static str) -> KeyView {
    KeyView {
        is_set: None,
        source,
        variable: None,
    }
}
