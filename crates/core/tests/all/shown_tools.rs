//! The tools for tasks and skills, word for word as a model sees them.

use asyncagents_core::{
    agent::ToolSpec,
    tool_set::{SKILL, skill_spec, specs_with_skill},
};
use serde_json::Value;

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
