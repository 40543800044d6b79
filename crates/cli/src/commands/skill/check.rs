//! `asyncagents skill check`: what is wrong with skills, line by line.

use std::path::PathBuf;

use anyhow::anyhow;
use asyncagents_core::{
    id::ModelName,
    skill::Found,
    tool_set,
    unknown_names::{Here, unknown_names},
};
use asyncagents_runtime::check_skills;
use asyncagents_views::{CheckView, CheckedSkill, FlawView};

use super::{here, shown};
use crate::{
    config::Config,
    exit::{Exit, Failure},
    folders, hosts, print,
};

/// Check skills, and print file, line and reason for whatever is wrong.
///
/// A skill is bad if it cannot be used here, or if the Agent Skills standard refuses it, so that
/// other tools will. Remarks are about what is odd, and about agents, models and tools that are
/// not here. All folders are searched except `.git` and `node_modules`. Exit code 0 if none is bad,
/// 1 if any is.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill check .claude/skills
  asyncagents skill check my-skill/SKILL.md
  asyncagents skill check . --json | jq -r '.skills[] | select(.bad).file'")]
pub(crate) struct SkillCheckArgs {
    /// SKILL.md files, folders of skills, or folders that contain them.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, args: &SkillCheckArgs) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    for path in &args.paths {
        let wrong = |error| Failure::Input(anyhow!("{}: {error}", path.display()));
        let here = check_skills(path).map_err(wrong)?;
        if here.is_empty() {
            let none = anyhow!("{}: there is no SKILL.md in it", path.display());
            return Err(Failure::Input(none));
        }
        found.extend(here);
    }
    let agents = folders::agents_in(&here()?);
    let models = hosts::models(&config.agent_config).map_err(Failure::Input)?;
    let model = |name: &str| {
        let resolved = (name != ModelName::INHERIT).then(|| models.resolve(name));
        Some(resolved?.err()?.to_string())
    };
    let tools = [asyncagents_tools::specs(), tool_set::specs(&config.prefix)].concat();
    let tools = tools.into_iter().map(|spec| spec.name);
    let tools: Vec<String> = tools.chain([tool_set::SKILL.to_owned()]).collect();
    let here = Here {
        agents: &agents,
        model: &model,
        tools: &tools,
    };
    let found = found.into_iter().map(|found| check(found, &here));
    let checked = CheckView::new(found.collect());
    print::json_or(args.json, &checked, || as_text(&checked))?;
    Ok(match checked.bad {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

fn check(found: Found, here: &Here) -> CheckedSkill {
    let file = shown(&found.file);
    match found.skill {
        Ok(skill) => {
            let mut remarks = skill.remarks.clone();
            remarks.extend(unknown_names(&skill, here));
            remarks.sort();
            let name = Some(skill.manifest.name.as_str());
            CheckedSkill::new(file, name, &skill.refused_elsewhere, &remarks)
        }
        Err(flaws) => CheckedSkill::new(file, None, &flaws, &[]),
    }
}

fn as_text(check: &CheckView) -> String {
    let mut text = String::new();
    for skill in &check.skills {
        let flaws = skill.flaws.iter().map(|flaw| (flaw, ""));
        let remarks = skill.remarks.iter().map(|flaw| (flaw, "remark: "));
        for (FlawView { line, reason }, kind) in flaws.chain(remarks) {
            text.push_str(&format!("{}:{line}: {kind}{reason}\n", skill.file));
        }
    }
    let CheckView { bad, checked, .. } = check;
    let skills = if *checked == 1 { "skill" } else { "skills" };
    text.push_str(&format!("{checked} {skills}, {bad} bad"));
    text
}
