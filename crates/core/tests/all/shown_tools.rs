//! The tools for tasks and skills, word for word as a model sees them.

use asyncagents_core::{
    agent::ToolSpec,
    tokens,
    tool_set::{SKILL, skill_spec, specs_with_skill},
};
use serde_json::{Value, json};

const SKILLS: &str = "- review: Reviews a change\n- deep-analysis: Reads a whole crate (sub-agent)";

/// Name, description and schema.
fn shown(spec: &ToolSpec) -> String {
    let schema: Value = serde_json::from_str(&spec.schema).expect("JSON");
    let schema = serde_json::to_string_pretty(&schema).expect("JSON");
    format!("{}\n\n{}\n\n{schema}", spec.name, spec.description)
}

#[test]
fn every_tool_is_described_as_it_was() {
    for spec in specs_with_skill("asyncagents_", Some(SKILLS)) {
        insta::assert_snapshot!(spec.name.as_str(), shown(&spec));
    }
}

/// The built-in agent calls the tool for skills by its plain name.
#[test]
fn the_skill_tool_of_the_built_in_agent_is_described_as_it_was() {
    insta::assert_snapshot!("skill", shown(&skill_spec(SKILL, Some(SKILLS))));
    insta::assert_snapshot!("skill_without_skills", shown(&skill_spec(SKILL, None)));
}

/// Tokens of some tools as Chat Completions are sent them.
fn tokens_of<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> usize {
    let specs = specs.into_iter().map(|spec| {
        let schema: Value = serde_json::from_str(&spec.schema).expect("JSON");
        let function =
            json!({"name": spec.name, "description": spec.description, "parameters": schema});
        tokens::o200k(&json!({"type": "function", "function": function}).to_string())
    });
    specs.sum()
}

/// They are in every request of every child.
#[test]
fn the_tools_for_tasks_cost_few_tokens() {
    let specs = specs_with_skill("asyncagents_", Some(SKILLS));
    let named = |names: &[&str]| {
        let specs = specs.iter().filter(|spec| {
            let name = spec.name.strip_prefix("asyncagents_").expect("the prefix");
            names.contains(&name)
        });
        tokens_of(specs)
    };
    let five = ["task", "output", "list", "cancel", "clear"];
    let all = [&five[..], &["skill"]].concat();
    let (five, six) = (named(&five), named(&all));
    assert!((300..=350).contains(&five), "{five}");
    assert!((400..=600).contains(&six), "{six}");
    for later in ["message", "answer"] {
        let tokens = named(&[later]);
        assert!((30..=60).contains(&tokens), "{later}: {tokens}");
    }
}
