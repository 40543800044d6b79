//! What a new session may do, and is told of its skill.

use asyncagents_core::{
    agent::Tools,
    port::{HostError, NewSession},
};
use serde_json::Value;

use crate::both::{metadata, role};

use super::{
    agents::Agents,
    skill_rules,
    wire::{Rule, Session},
};

pub(super) struct SessionRules {
    pub(super) rules: Vec<Rule>,
    /// What OpenCode keeps for us with the session.
    pub(super) metadata: Value,
}

/// The rules of a new session. The skills above bind it, the outermost first, and then its own.
pub(super) async fn of(
    new: &NewSession,
    parent: Option<&Session>,
    agents: &Agents,
    prefix: &str,
) -> Result<SessionRules, HostError> {
    let mut rules = inherited(parent, new.may_delegate, prefix);
    let mut ours = metadata::made_for(&new.task, &new.parent);
    let terms = new.role.as_ref().map(|role| &role.terms);
    if let Some(effort) = terms.and_then(|terms| terms.effort) {
        tracing::warn!(task = %new.task, effort = effort.word(), "ignoring a skill's effort: OpenCode has its own");
    }
    if let Some(role) = &new.role {
        metadata::note_system(&mut ours, &role::system_of(role));
    }
    let own = terms.map(|terms| &terms.tools);
    let limits: Vec<&Tools> = new.within.iter().chain(own).collect();
    if limits.is_empty() {
        return Ok(SessionRules {
            rules,
            metadata: ours,
        });
    }
    metadata::note_inherited_rules(&mut ours, rules.len());
    let agent = agents.find(new.agent.as_str()).await?;
    let mut theirs = agent.map(|agent| agent.permission).unwrap_or_default();
    theirs.extend(rules.clone());
    for tools in limits {
        let narrower = skill_rules::rules(tools, &theirs, prefix);
        theirs.extend(narrower.clone());
        rules.extend(narrower);
    }
    Ok(SessionRules {
        rules,
        metadata: ours,
    })
}

/// What OpenCode's own sub-agents are launched with. Nothing of them is counted, queued, cancelled or
/// asked with the task that launches them, so a task has our tools for that and not this one.
const OWN_SUB_AGENTS: &str = "task";

/// What a child may not do: what its parent may not, launch sub-agents that are not ours, and where
/// tasks may go no deeper, launch any.
fn inherited(parent: Option<&Session>, may_delegate: bool, prefix: &str) -> Vec<Rule> {
    let mut rules = parent
        .and_then(|parent| parent.permission.clone())
        .unwrap_or_default();
    // What a skill allows is worked out anew for the agent of each session that it binds.
    if let Some(inherited) = parent.and_then(Session::inherited_rules) {
        rules.truncate(inherited);
    }
    let ours = format!("{prefix}*");
    rules.retain(|rule| rule.permission != ours || rule.action != "deny");
    let alone = Rule::new(OWN_SUB_AGENTS, "*", "deny");
    rules.retain(|rule| *rule != alone);
    rules.push(alone);
    if !may_delegate {
        rules.push(Rule::new(&ours, "*", "deny"));
    }
    rules
}
