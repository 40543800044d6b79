//! What the plugin sends and is answered, as JSON.

use std::borrow::Cow;

use asyncagents_core::agent::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    bounds::ToolUse,
    bridge::{ToolCall, VERSION},
    file::Declared,
};

#[derive(Deserialize)]
pub(super) struct HelloParams {
    /// The folder of an OpenCode 1. An OpenCode 2 serves all folders and names none.
    pub(super) directory: Option<String>,
    /// Which OpenCode it is: 1 if it does not say.
    #[serde(default = "first")]
    pub(super) generation: u32,
    pub(super) pid: u32,
    /// In milliseconds since 1970.
    pub(super) began: Option<i64>,
    pub(super) opencode_plugin: u32,
    pub(super) version: Option<String>,
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
pub(super) struct FolderParams {
    pub(super) directory: String,
}

#[derive(Deserialize)]
pub(super) struct GoodbyeParams {
    /// None from an OpenCode 2.
    pub(super) directory: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CallParams {
    directory: String,
    #[serde(rename = "sessionID")]
    session: String,
    #[serde(rename = "messageID")]
    message: Option<String>,
    agent: Option<String>,
    tool: String,
    args: Option<Box<RawValue>>,
}

impl From<CallParams> for ToolCall {
    fn from(call: CallParams) -> Self {
        Self {
            directory: call.directory,
            session: call.session.into(),
            message: call.message,
            agent: call.agent,
            tool: call.tool,
            input: call
                .args
                .map_or("{}".to_owned(), |args| args.get().to_owned()),
        }
    }
}

/// Which of these tools a session may see.
#[derive(Deserialize)]
pub(super) struct RulesParams {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) tools: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Rules<'a> {
    /// The tools that it may not see.
    pub(super) hidden: Vec<&'a str>,
    /// Whether each call has to be permitted.
    pub(super) guarded: bool,
}

/// Whether a session may use a tool in this way.
#[derive(Deserialize)]
pub(super) struct PermitParams {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    tool: String,
    /// The folder of the session.
    directory: Option<String>,
    #[serde(default)]
    input: Value,
}

impl PermitParams {
    pub(super) fn tool_use(&self) -> ToolUse<'_> {
        ToolUse {
            tool: &self.tool,
            folder: self.directory.as_deref(),
            input: &self.input,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct EventParams<'a> {
    /// The folder of an OpenCode 1.
    #[serde(borrow)]
    pub(super) directory: Option<Cow<'a, str>>,
    /// Without one, events may have been lost.
    #[serde(borrow)]
    pub(super) event: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct Tools<'a> {
    tools: Vec<Declared<'a>>,
    version: &'static str,
}

impl<'a> Tools<'a> {
    pub(super) fn new(tools: &'a [ToolSpec]) -> Self {
        Self {
            tools: tools.iter().map(Declared::from).collect(),
            version: VERSION,
        }
    }
}
