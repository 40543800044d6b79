//! `asyncagents skill list`: the skills there are, what hides others, and what is wrong.

use asyncagents_core::skill::{Catalog, Flaw, Listed, SkillContext};
use asyncagents_views::SkillsView;

use super::shown;
use crate::{
    exit::{Exit, Failure},
    print, width,
};

/// Show the skills that an agent in this folder has, and what keeps others from being used.
///
/// Skills are found in the enterprise's folder (the setting `skills.enterprise`), in yours, in
/// the project's from this folder up to the root of its repository, and in those of plugins (the
/// setting `skills.plugins`): `.asyncagents/skills`, `.agents/skills`, `.claude/skills`,
/// `.opencode/skills` and `.opencode/skill`. The first layer that has a name counts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill list --tag review
  asyncagents skill list --json | jq -r '.skills[].name'")]
pub(crate) struct SkillListArgs {
    /// Show only skills with this tag.
    #[arg(long)]
    tag: Option<String>,

    /// Print one line of JSON: `{skills, broken}`.
    #[arg(long)]
    json: bool,
}

/// How much of a description fits into a line.
const DESCRIPTION: usize = 70;

/// So much of it is shown in any case.
const SHORT: usize = 12;

pub(super) fn run(catalog: &Catalog, args: &SkillListArgs) -> Result<Exit, Failure> {
    let has_tag = |listed: &&Listed| {
        let tags = &listed.skill.manifest.tags;
        args.tag.as_ref().is_none_or(|tag| tags.contains(tag))
    };
    let skills: Vec<&Listed> = catalog.skills.iter().filter(has_tag).collect();
    print::json_or(args.json, &SkillsView::new(&skills, catalog), || {
        as_text(&skills, catalog, width::of_answers())
    })?;
    Ok(Exit::Done)
}

fn as_text(skills: &[&Listed], catalog: &Catalog, columns: Option<usize>) -> String {
    let mut text = String::new();
    if skills.is_empty() {
        text.push_str("No skills found; `asyncagents help skill list` says where they are kept\n");
    }
    let names = skills.iter();
    let names = names.map(|listed| width::width(&listed.skill.manifest.name));
    let longest = names.max().unwrap_or(0);
    for listed in skills {
        let manifest = &listed.skill.manifest;
        let words: Vec<&str> = manifest.description.split_whitespace().collect();
        let line = match &manifest.title {
            Some(title) => format!("{title}: {}", words.join(" ")),
            None => words.join(" "),
        };
        // A letter may be two columns wide.
        let name = &manifest.name;
        let gap = " ".repeat(longest - width::width(name));
        let layer = listed.layer.name();
        let marks = marks(listed);
        let beside = longest + 14 + width::width(&marks);
        let room = columns.map_or(DESCRIPTION, |columns| columns.saturating_sub(beside));
        let description = width::fitting(&line, room.clamp(SHORT, DESCRIPTION));
        text.push_str(&format!("{name}{gap}  {layer:<10}  {description}{marks}\n"));
        if let Some(by) = &listed.shadowed_by {
            let (file, by) = (shown(&listed.file), shown(by));
            text.push_str(&format!("{:longest$}  {file} is hidden by {by}\n", ""));
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
        ("fork", manifest.context == SkillContext::Isolated),
        ("not for the model", !manifest.for_model),
        ("not for the user", !manifest.for_user),
        ("hidden", listed.shadowed_by.is_some()),
    ];
    let marks = marks.iter().filter(|(_, is_so)| *is_so);
    let marks: Vec<&str> = marks.map(|(mark, _)| *mark).collect();
    if marks.is_empty() {
        return String::new();
    }
    format!(" ({})", marks.join(", "))
}
