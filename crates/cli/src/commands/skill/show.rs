//! `asyncagents skill show`: one skill.

use std::time::Duration;

use anyhow::anyhow;
use asyncagents_core::{
    agent::Rule,
    skill::{Catalog, Flaw, Listed, Manifest},
};
use asyncagents_views::SkillDetails;

use super::shown;
use crate::{
    exit::{Exit, Failure},
    print,
};

/// Show one skill: what its head says, and its body.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents skill show code-review")]
pub(crate) struct SkillShowArgs {
    /// Skill to show.
    name: String,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(catalog: &Catalog, args: &SkillShowArgs) -> Result<Exit, Failure> {
    let listed = catalog.get_for_person(&args.name);
    let listed = listed.map_err(|unknown| Failure::Input(anyhow!(unknown)))?;
    print::json_or(args.json, &SkillDetails::from(listed), || {
        as_text(listed, &lines(&listed.skill.manifest))
    })?;
    Ok(Exit::Done)
}

fn as_text(listed: &Listed, lines: &[(&str, String)]) -> String {
    let (layer, file) = (listed.layer.name(), shown(&listed.file));
    let mut text = format!("{} ({layer}, {file})\n", listed.skill.manifest.name);
    for (key, value) in lines {
        text.push_str(&format!("{key}: {value}\n"));
    }
    for flaw in &listed.skill.refused_elsewhere {
        let Flaw { line, why } = flaw;
        text.push_str(&format!("refused by other tools: line {line}: {why}\n"));
    }
    for remark in &listed.skill.remarks {
        text.push_str(&format!("remark: line {}: {}\n", remark.line, remark.why));
    }
    text.push_str(&format!("\n{}", listed.skill.body));
    text
}

/// The keys of its head, as people write them. Keys without a value are not listed.
fn lines(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let tools = |rules: &[Rule]| {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        if rules.is_empty() {
            "none".to_owned()
        } else {
            rules.join(", ")
        }
    };
    let time = |time: Duration| format!("{}ms", time.as_millis());
    let not = (!manifest.tools.not.is_empty()).then(|| tools(&manifest.tools.not));
    let metadata = manifest.metadata.iter();
    let metadata: Vec<String> = metadata
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let filled = |list: &[String]| (!list.is_empty()).then(|| list.join(", "));
    let all = [
        ("title", manifest.title.clone()),
        ("description", Some(manifest.description.clone())),
        ("when-to-use", manifest.when_to_use.clone()),
        ("context", Some(manifest.context.name().to_owned())),
        ("agent", manifest.agent.clone()),
        ("model", manifest.model.clone()),
        (
            "effort",
            manifest.effort.map(|effort| effort.word().to_owned()),
        ),
        ("allowed-tools", manifest.tools.only.as_deref().map(tools)),
        ("disallowed-tools", not),
        (
            "max-iterations",
            manifest.max_iterations.map(|most| most.to_string()),
        ),
        (
            "max-retries-per-tool",
            manifest.max_retries.map(|most| most.to_string()),
        ),
        ("timeout-per-iteration", manifest.iteration_time.map(time)),
        ("timeout", manifest.time.map(time)),
        ("background", manifest.background.map(|on| on.to_string())),
        (
            "disable-model-invocation",
            (!manifest.for_model).then(|| "true".to_owned()),
        ),
        (
            "user-invocable",
            (!manifest.for_user).then(|| "false".to_owned()),
        ),
        ("argument-hint", manifest.argument_hint.clone()),
        ("arguments", filled(&manifest.arguments)),
        (
            "priority",
            (manifest.priority != 0).then(|| manifest.priority.to_string()),
        ),
        ("tags", filled(&manifest.tags)),
        ("license", manifest.license.clone()),
        ("compatibility", manifest.compatibility.clone()),
        ("metadata", filled(&metadata)),
    ];
    let all = all.into_iter();
    all.filter_map(|(key, value)| Some((key, value?))).collect()
}
