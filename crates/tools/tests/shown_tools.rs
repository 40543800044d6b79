//! The tools of the built-in agent, word for word as a model sees them.

use asyncagents_tools::specs;
use serde_json::Value;

#[test]
fn every_tool_is_described_as_it_was() {
    for spec in specs() {
        let schema: Value = serde_json::from_str(&spec.schema).expect("JSON");
        let schema = serde_json::to_string_pretty(&schema).expect("JSON");
        let shown = format!("{}\n\n{}\n\n{schema}", spec.name, spec.description);
        insta::assert_snapshot!(spec.name, shown);
    }
}
