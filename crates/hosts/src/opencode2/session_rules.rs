//! What a new session may do, where OpenCode has rules for sessions.

use asyncagents_core::{agent::Tools, port::NewSession};
use serde_json::{Value, json};

use crate::{
    both::metadata,
    opencode::skill_rules::{self, SkillRule},
};

use super::wire::{Agent, Rule, Session};

/// Why a session is refused whose rules OpenCode does not keep.
pub(super) const WHY_REFUSED: &str = "this OpenCode has no rules for sessions, so the task cannot \
    be kept to the tools of its skill; run it in an OpenCode with the plugin, or without the skill";

/// What the first generation calls the actions that have another name here.
const OTHER_NAMES: [(&str, &str); 2] = [("bash", "shell"), ("task", "subagent")];

/// Puts the rules of a new session into what is asked for. The skills above bind it, the outermost
/// first, and then its own.
pub(super) fn put(
    body: &mut Value,
    new: &NewSession,
    parent: Option<&Session>,
    agent: Option<&Agent>,
    prefix: &str,
) {
    let mut rules = inherited(parent, new.may_delegate, prefix);
    let own = new.role.as_ref().map(|role| &role.terms.tools);
    let limits: Vec<&Tools> = new.within.iter().chain(own).collect();
    if !limits.is_empty() {
        metadata::note_inherited_rules(&mut body["metadata"], rules.len());
    }
    let mut theirs: Vec<SkillRule> = agent
        .and_then(|agent| agent.permissions.clone())
        .unwrap_or_default()
        .into_iter()
        .chain(rules.clone())
        .map(to_skill_rule)
        .collect();
    for tools in &limits {
        let narrower = skill_rules::rules(tools, &theirs, prefix);
        theirs.extend(narrower.clone());
        rules.extend(narrower.into_iter().map(from_skill_rule));
    }
    if !rules.is_empty() {
        body["permissions"] = json!(rules);
    }
}

/// Whether OpenCode has not kept the rules of a session. That tasks launch no others is a rule that
/// is kept in any case: a launch below the depth limit is refused, and the plugin hides what launches
/// others than ours.
pub(super) fn are_missing(asked: &Value, made: &Session, prefix: &str) -> bool {
    let asked: Vec<Rule> = serde_json::from_value(asked["permissions"].clone()).unwrap_or_default();
    let kept = made.permissions.as_deref().unwrap_or_default();
    let ours = format!("{prefix}*");
    let matters = |rule: &&Rule| rule.action != ours && rule.action != OWN_SUB_AGENTS;
    asked
        .iter()
        .filter(matters)
        .any(|rule| !kept.contains(rule))
}

/// The rules of a session that may do nothing but answer.
pub(super) fn nothing_allowed() -> Value {
    json!([Rule::new("*", "*", "deny")])
}

/// What OpenCode's own sub-agents are launched with. Nothing of them is counted, queued, cancelled or
/// asked with the task that launches them, so a task has our tools for that and not this one. Where
/// OpenCode keeps no rules, the plugin hides it.
const OWN_SUB_AGENTS: &str = "subagent";

/// What a child may not do: what its parent may not, launch sub-agents that are not ours, and where
/// tasks may go no deeper, launch any.
fn inherited(parent: Option<&Session>, may_delegate: bool, prefix: &str) -> Vec<Rule> {
    let mut rules = parent
        .and_then(|parent| parent.permissions.clone())
        .unwrap_or_default();
    // What a skill allows is worked out anew for the agent of each session that it binds.
    if let Some(inherited) = parent.and_then(Session::inherited_rules) {
        rules.truncate(inherited);
    }
    let ours = format!("{prefix}*");
    rules.retain(|rule| rule.action != ours || rule.effect != "deny");
    let alone = Rule::new(OWN_SUB_AGENTS, "*", "deny");
    rules.retain(|rule| *rule != alone);
    rules.push(alone);
    if !may_delegate {
        rules.push(Rule::new(&ours, "*", "deny"));
    }
    rules
}

fn to_skill_rule(rule: Rule) -> SkillRule {
    let other = OTHER_NAMES.iter().find(|(_, here)| *here == rule.action);
    SkillRule {
        permission: other.map_or(rule.action, |(there, _)| (*there).to_owned()),
        pattern: rule.resource,
        action: rule.effect,
    }
}

fn from_skill_rule(rule: SkillRule) -> Rule {
    let names = OTHER_NAMES.iter();
    let other = names
        .into_iter()
        .find(|(there, _)| *there == rule.permission);
    Rule {
        action: other.map_or(rule.permission, |(_, here)| (*here).to_owned()),
        resource: rule.pattern,
        effect: rule.action,
    }
}
