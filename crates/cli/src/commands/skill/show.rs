//! `asyncagents skill show`: one skill.

use std::time::Duration;

use anyhow::anyhow;
use asyncagents_core::{
    agent::{Effort, Rule},
    skill::{Catalog, Flaw, Listed, Manifest, SkillContext},
};
use serde_json::{Value, json};

use super::{flaw_json, shown};
use crate::{
    exit::{Exit, Failure},
    print,
};

/// Show one skill: what its head says, and its body.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents skill show code-review")]
pub(crate) struct SkillShowArgs {
    /// The skill.
    name: String,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(catalog: &Catalog, args: &SkillShowArgs) -> Result<Exit, Failure> {
    let listed = catalog.get_for_person(&args.name);
    let listed = listed.map_err(|unknown| Failure::Input(anyhow!(unknown)))?;
    match args.json {
        true => print::json_line(&as_json(listed))?,
        false => print::answer(&as_text(listed, &lines(&listed.skill.manifest)))?,
    }
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

/// All of it, under the names that `skill list --json` has too. What is not said is null, and a
/// list is a list.
fn as_json(listed: &Listed) -> Value {
    let manifest = &listed.skill.manifest;
    let written = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let flaws = |flaws: &[Flaw]| flaws.iter().map(flaw_json).collect::<Vec<_>>();
    json!({
        "name": manifest.name,
        "title": manifest.title,
        "description": manifest.description,
        "when_to_use": manifest.when_to_use,
        "layer": listed.layer.name(),
        "file": listed.file,
        "context": context(manifest),
        "agent": manifest.agent,
        "model": manifest.model,
        "effort": manifest.effort.map(Effort::word),
        "allowed_tools": manifest.tools.only.as_deref().map(written),
        "disallowed_tools": written(&manifest.tools.not),
        "max_iterations": manifest.max_iterations,
        "max_retries_per_tool": manifest.max_retries,
        "timeout_per_iteration_ms": manifest.iteration_time.map(millis),
        "timeout_ms": manifest.time.map(millis),
        "background": manifest.background,
        "model_invocable": manifest.for_model,
        "user_invocable": manifest.for_user,
        "argument_hint": manifest.argument_hint,
        "arguments": manifest.arguments,
        "priority": manifest.priority,
        "tags": manifest.tags,
        "license": manifest.license,
        "compatibility": manifest.compatibility,
        "metadata": manifest.metadata,
        "unknown_keys": manifest.unknown,
        "shadowed_by": listed.shadowed_by,
        "refused_elsewhere": flaws(&listed.skill.refused_elsewhere),
        "remarks": flaws(&listed.skill.remarks),
        "body": listed.skill.body,
    })
}

fn context(manifest: &Manifest) -> &'static str {
    match manifest.context {
        SkillContext::Inherit => "inherit",
        SkillContext::Isolated => "fork",
    }
}

/// What its head says, as people write it. What is not said is not listed.
fn lines(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let tools = |rules: &[Rule]| {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        match rules.is_empty() {
            true => "none".to_owned(),
            false => rules.join(", "),
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
        ("context", Some(context(manifest).to_owned())),
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
    let said = all.into_iter();
    said.filter_map(|(key, value)| Some((key, value?)))
        .collect()
}
