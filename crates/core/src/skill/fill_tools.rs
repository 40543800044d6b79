//! The tools of a skill with its folders filled in: `Bash(${CLAUDE_SKILL_DIR}/scripts/x.sh *)`.

use super::{
    Surroundings,
    body::{Variable, as_word},
};
use crate::agent::{Rule, Tools};

/// The same tools for a skill in these surroundings. A folder is never more than itself: one with
/// a character that patterns read as any text is in no rule that allows something.
pub fn filled_tools(tools: &Tools, around: &Surroundings) -> Tools {
    let allowed = |rule: &Rule| filled(rule, around).filter(|(_, exact)| *exact);
    let only = tools.only.as_deref().map(|rules| {
        let rules = rules.iter().filter_map(allowed);
        rules.map(|(rule, _)| rule).collect()
    });
    let not = tools.not.iter().filter_map(|rule| filled(rule, around));
    Tools {
        only,
        not: not.map(|(rule, _)| rule).collect(),
        within: tools.within.clone(),
    }
}

/// The rule, and whether it means what is written and nothing else.
fn filled(rule: &Rule, around: &Surroundings) -> Option<(Rule, bool)> {
    let Some(written) = rule.pattern() else {
        return Some((rule.clone(), true));
    };
    let mut pattern = written.to_owned();
    let mut exact = true;
    for (name, variable) in Variable::ALL {
        if !pattern.contains(name) {
            continue;
        }
        // What is not there fits nothing.
        let value = variable.value(around)?;
        exact &= !value.contains(['*', '?', '[', '{']);
        let value = if rule.is_about_files() {
            within_project(value, around.project_dir)
        } else {
            as_word(value)
        };
        pattern = pattern.replace(name, &value);
    }
    Some((rule.clone().with_pattern(&pattern), exact))
}

/// File tools name what is in the project from there.
fn within_project(path: &str, project: &str) -> String {
    let inside = path.strip_prefix(project);
    match inside.and_then(|inside| inside.strip_prefix('/')) {
        Some(inside) if !project.is_empty() => inside.to_owned(),
        Some(_) | None => path.to_owned(),
    }
}

/// Whether a skill's list lets its own command run, which may be a block of several lines: each
/// of them has to be let pass.
pub fn lets_run(tools: &Tools, command: &str) -> bool {
    let bash = |command: &str| tools.allows("bash", crate::agent::Kind::Run, command);
    let mut lines = command.lines().map(str::trim);
    // A command that is in no list is not allowed.
    tools.only.is_some()
        && (bash(command)
            || lines.all(|line| line.is_empty() || line.starts_with('#') || bash(line)))
}
