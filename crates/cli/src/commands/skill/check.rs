//! `asyncagents skill check`: what is wrong with skills, line by line.

use anyhow::anyhow;
use asyncagents_core::skill::{Flaw, Found};
use asyncagents_runtime::check_skills;

use super::shown;
use crate::{
    args::SkillCheckArgs,
    exit::{Exit, Failure},
    print,
};

pub(super) fn run(args: &SkillCheckArgs) -> Result<Exit, Failure> {
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
    let mut text = String::new();
    for Found { file, skill, .. } in &found {
        let file = shown(file);
        let (flaws, kind): (&[Flaw], _) = match skill {
            Ok(skill) => (&skill.remarks, "remark: "),
            Err(flaws) => (flaws, ""),
        };
        for Flaw { line, why } in flaws {
            text.push_str(&format!("{file}:{line}: {kind}{why}\n"));
        }
    }
    let bad = found.iter().filter(|found| found.skill.is_err()).count();
    let skills = if found.len() == 1 { "skill" } else { "skills" };
    text.push_str(&format!("{} {skills}, {bad} bad", found.len()));
    print::answer(&text)?;
    Ok(match bad {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}
