//! `asyncagents skill list`: the skills there are, what hides others, and what is wrong.

use asyncagents_core::skill::{Catalog, Flaw, Listed, SkillContext};
use serde_json::json;

use super::shown;
use crate::{
    args::SkillListArgs,
    exit::{Exit, Failure},
    print,
};

/// How much of a description fits into a line.
const DESCRIPTION: usize = 70;

pub(super) fn run(catalog: &Catalog, args: &SkillListArgs) -> Result<Exit, Failure> {
    let has_tag = |listed: &&Listed| {
        let tags = &listed.skill.manifest.tags;
        args.tag.as_ref().is_none_or(|tag| tags.contains(tag))
    };
    let skills: Vec<&Listed> = catalog.skills.iter().filter(has_tag).collect();
    match args.json {
        true => print::json_line(&as_json(&skills, catalog))?,
        false => print::answer(&as_text(&skills, catalog))?,
    }
    Ok(Exit::Done)
}

fn as_text(skills: &[&Listed], catalog: &Catalog) -> String {
    let mut text = String::new();
    if skills.is_empty() {
        text.push_str("No skills found; `asyncagents help skill list` says where they are kept\n");
    }
    let names = skills.iter().map(|listed| listed.skill.manifest.name.len());
    let width = names.max().unwrap_or(0);
    for listed in skills {
        let manifest = &listed.skill.manifest;
        let line = manifest.description.split_whitespace().collect::<Vec<_>>();
        let line = line.join(" ");
        let description = match line.char_indices().nth(DESCRIPTION) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
            None => line,
        };
        let name = &manifest.name;
        let layer = listed.layer.name();
        let marks = marks(listed);
        text.push_str(&format!(
            "{name:<width$}  {layer:<10}  {description}{marks}\n"
        ));
        if let Some(by) = &listed.shadowed_by {
            let (file, by) = (shown(&listed.file), shown(by));
            text.push_str(&format!("{:width$}  {file} is hidden by {by}\n", ""));
        }
    }
    for (file, flaws) in &catalog.broken {
        for Flaw { line, why } in flaws {
            text.push_str(&format!("{}:{line}: {why}\n", shown(file)));
        }
    }
    text
}

/// What is special about a skill.
fn marks(listed: &Listed) -> String {
    let manifest = &listed.skill.manifest;
    let marks = [
        ("fork", manifest.context == SkillContext::Fork),
        ("not for the model", !manifest.for_model),
        ("not for the user", !manifest.for_user),
        ("hidden", listed.shadowed_by.is_some()),
    ];
    let marks = marks.iter().filter(|(_, is_so)| *is_so);
    let marks: Vec<&str> = marks.map(|(mark, _)| *mark).collect();
    match marks.is_empty() {
        true => String::new(),
        false => format!(" ({})", marks.join(", ")),
    }
}

fn as_json(skills: &[&Listed], catalog: &Catalog) -> serde_json::Value {
    let skill = |listed: &&Listed| {
        let manifest = &listed.skill.manifest;
        json!({
            "name": manifest.name,
            "description": manifest.description,
            "layer": listed.layer.name(),
            "file": listed.file,
            "context": match manifest.context {
                SkillContext::Inherit => "inherit",
                SkillContext::Fork => "fork",
            },
            "model_invocable": manifest.for_model,
            "user_invocable": manifest.for_user,
            "priority": manifest.priority,
            "tags": manifest.tags,
            "shadowed_by": listed.shadowed_by,
        })
    };
    let flaw = |flaw: &Flaw| json!({"line": flaw.line, "reason": flaw.why});
    let broken = catalog.broken.iter().map(|(file, flaws)| {
        let flaws: Vec<_> = flaws.iter().map(flaw).collect();
        json!({"file": file, "flaws": flaws})
    });
    json!({
        "skills": skills.iter().map(skill).collect::<Vec<_>>(),
        "broken": broken.collect::<Vec<_>>(),
    })
}
