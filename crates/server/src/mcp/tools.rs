//! The tools as a client sees them: their schemas, and what they do to the world.

use std::sync::Arc;

use asyncagents_core::{agent::ToolSpec, tool_set};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};

/// All tools. The server's name stands before theirs, so they have no prefix. `disclosed` lists the
/// skills, `agents` the agents.
pub(super) fn tools(disclosed: Option<&str>, agents: &[String]) -> Vec<Tool> {
    let mut specs = tool_set::specs_with_skill("", disclosed);
    if let Some(task) = specs.first_mut().filter(|_| !agents.is_empty()) {
        let list = format!("\n\nAgents:\n{}", agents.join("\n"));
        task.description.push_str(&list);
    }
    specs.into_iter().map(tool).collect()
}

fn tool(spec: ToolSpec) -> Tool {
    let schema: JsonObject = serde_json::from_str(&spec.schema).unwrap_or_default();
    let annotations = annotations(&spec.name);
    Tool::new(spec.name, spec.description, Arc::new(schema)).with_annotations(annotations)
}

/// What a tool does, said honestly. An agent that is launched, resumed, told or permitted something
/// may change files and reach the network.
fn annotations(name: &str) -> ToolAnnotations {
    let says = ToolAnnotations::new();
    match name {
        "output" | "list" => says.read_only(true).open_world(false),
        "cancel" | "clear" => {
            let says = says.read_only(false).destructive(true);
            says.idempotent(true).open_world(false)
        }
        _ => says.read_only(false).destructive(true).open_world(true),
    }
}
