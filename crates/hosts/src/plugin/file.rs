//! The plugin file that OpenCode loads.

use asyncagents_core::agent::ToolSpec;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

/// In the first line of every plugin file that `setup opencode` has written. A file without it is
/// not ours, and stays.
pub const MARK: &str = "Written by `asyncagents setup opencode`";

const TEMPLATE: &str = concat!(include_str!("plugin.js"), include_str!("opencode2.js"));

/// The plugin file for this program. It declares these tools; how they are described is asked
/// for again whenever a model is shown them.
pub fn render(program: &str, tools: &[ToolSpec]) -> String {
    let tools: Vec<_> = tools.iter().map(Declared::from).collect();
    let tools = serde_json::to_string_pretty(&tools).unwrap_or_else(|_| "[]".to_owned());
    let program = Value::from(program).to_string();
    // From the last to the first: what is filled in may look like a gap itself.
    TEMPLATE
        .replacen("__VERSION__", env!("CARGO_PKG_VERSION"), 1)
        .replacen("__TOOLS__", &tools, 1)
        .replacen("\"__PROGRAM__\"", &program, 1)
}

/// A tool as the plugin knows it.
#[derive(Serialize)]
pub(super) struct Declared<'a> {
    name: &'a str,
    description: &'a str,
    schema: Box<RawValue>,
}

impl<'a> From<&'a ToolSpec> for Declared<'a> {
    fn from(tool: &'a ToolSpec) -> Self {
        let ToolSpec {
            name,
            description,
            schema,
        } = tool;
        // One bad schema would cost all the other tools too.
        let schema = RawValue::from_string(schema.clone()).unwrap_or_else(|why| {
            tracing::error!(%why, name, "malformed schema of a tool");
            RawValue::NULL.to_owned()
        });
        Self {
            name,
            description,
            schema,
        }
    }
}
