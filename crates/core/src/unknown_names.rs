//! What a skill names that is not here: agents, models, tools.

use crate::{
    agent::{Rule, Tools, agent_meant},
    similar::nearest,
    skill::{Flaw, Skill},
};

/// What there is where a skill would run.
pub struct Here<'a> {
    pub agents: &'a [String],
    /// What is wrong with a model of this name, if anything.
    pub model: &'a dyn Fn(&str) -> Option<String>,
    pub tools: &'a [String],
}

/// A remark for each name that means nothing here.
pub fn unknown_names(skill: &Skill, here: &Here) -> Vec<Flaw> {
    let manifest = &skill.manifest;
    let mut remarks = Vec::new();
    let mut remark = |key: &str, why: String| {
        let line = skill.lines.get(key).copied().unwrap_or(1);
        remarks.push(Flaw { line, why });
    };
    let agents = || here.agents.iter().map(String::as_str);
    if let Some(agent) = &manifest.agent
        && agent_meant(agent, agents()).is_none()
    {
        let hint = did_you_mean(nearest(agent, agents()).first().copied());
        remark("agent", format!("there is no agent `{agent}` here{hint}"));
    }
    if let Some(why) = manifest.model.as_deref().and_then(here.model) {
        remark(
            "model",
            format!("its model is not here, another is used: {why}"),
        );
    }
    let tools = || here.tools.iter().map(String::as_str);
    let lists = [
        ("allowed-tools", manifest.tools.only.as_deref()),
        ("disallowed-tools", Some(manifest.tools.not.as_slice())),
    ];
    for (key, rules) in lists {
        for rule in rules.unwrap_or_default() {
            if is_known(rule, &mut tools()) {
                continue;
            }
            let name = rule.tool_name();
            let hint = did_you_mean(nearest(name, tools()).first().copied());
            remark(key, format!("there is no tool `{name}` here{hint}"));
        }
    }
    remarks
}

fn is_known<'t>(rule: &Rule, tools: &mut impl Iterator<Item = &'t str>) -> bool {
    let rule = Tools {
        only: Some(vec![rule.clone()]),
        ..Tools::default()
    };
    let rule = rule.called_here();
    tools.any(|tool| rule.offers(tool))
}

fn did_you_mean(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}
