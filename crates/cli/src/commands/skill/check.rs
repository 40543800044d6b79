//! `asyncagents skill check`: what is wrong with skills, line by line.

use std::path::PathBuf;

use anyhow::anyhow;
use asyncagents_core::{
    skill::{Flaw, Found},
    tool_set,
    unknown_names::{Here, unknown_names},
};
use asyncagents_runtime::check_skills;
use serde_json::{Value, json};

use super::{flaw_json, here, shown};
use crate::{
    config::Config,
    exit::{Exit, Failure},
    folders, hosts, print,
};

/// Check skills, and say file, line and reason for whatever is wrong.
///
/// Bad is what cannot be used here or what the Agent Skills standard refuses, so that other tools
/// will. Remarks are about what is odd, and about agents, models and tools that are not here. All
/// folders are looked into, but for `.git` and `node_modules`. Exit code 0 if none is bad, 1 if
/// any is.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill check .claude/skills
  asyncagents skill check my-skill/SKILL.md
  asyncagents skill check . --json | jq -r '.skills[] | select(.bad).file'")]
pub(crate) struct SkillCheckArgs {
    /// A SKILL.md, the folder of a skill, or a folder of skills.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// A file, and what there is to say about it.
struct Checked {
    file: String,
    name: Option<String>,
    /// What cannot be used, here or where others keep to the standard.
    flaws: Vec<Flaw>,
    remarks: Vec<Flaw>,
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
    let model = |name: &str| match name == asyncagents_core::id::ModelName::INHERIT {
        true => None,
        false => models.resolve(name).err().map(|error| error.to_string()),
    };
    let tools = [asyncagents_tools::specs(), tool_set::specs(&config.prefix)].concat();
    let tools = tools.into_iter().map(|spec| spec.name);
    let tools: Vec<String> = tools.chain([tool_set::SKILL.to_owned()]).collect();
    let here = Here {
        agents: &agents,
        model: &model,
        tools: &tools,
    };
    let checked: Vec<Checked> = found.into_iter().map(|found| check(found, &here)).collect();
    let bad = checked.iter().filter(|checked| checked.is_bad()).count();
    match args.json {
        true => print::json_line(&as_json(&checked, bad))?,
        false => print::answer(&as_text(&checked, bad))?,
    }
    Ok(match bad {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

fn check(found: Found, here: &Here) -> Checked {
    let file = shown(&found.file);
    match found.skill {
        Ok(skill) => {
            let mut remarks = skill.remarks.clone();
            remarks.extend(unknown_names(&skill, here));
            remarks.sort();
            Checked {
                file,
                name: Some(skill.manifest.name.clone()),
                flaws: skill.refused_elsewhere.clone(),
                remarks,
            }
        }
        Err(flaws) => Checked {
            file,
            name: None,
            flaws,
            remarks: Vec::new(),
        },
    }
}

impl Checked {
    fn is_bad(&self) -> bool {
        !self.flaws.is_empty()
    }
}

fn as_text(checked: &[Checked], bad: usize) -> String {
    let mut text = String::new();
    for Checked {
        file,
        flaws,
        remarks,
        ..
    } in checked
    {
        let flaws = flaws.iter().map(|flaw| (flaw, ""));
        let remarks = remarks.iter().map(|flaw| (flaw, "remark: "));
        for (Flaw { line, why }, kind) in flaws.chain(remarks) {
            text.push_str(&format!("{file}:{line}: {kind}{why}\n"));
        }
    }
    let skills = if checked.len() == 1 {
        "skill"
    } else {
        "skills"
    };
    text.push_str(&format!("{} {skills}, {bad} bad", checked.len()));
    text
}

fn as_json(checked: &[Checked], bad: usize) -> Value {
    let skill = |checked: &Checked| {
        json!({
            "file": checked.file,
            "name": checked.name,
            "bad": checked.is_bad(),
            "flaws": checked.flaws.iter().map(flaw_json).collect::<Vec<_>>(),
            "remarks": checked.remarks.iter().map(flaw_json).collect::<Vec<_>>(),
        })
    };
    json!({
        "skills": checked.iter().map(skill).collect::<Vec<_>>(),
        "checked": checked.len(),
        "bad": bad,
    })
}
