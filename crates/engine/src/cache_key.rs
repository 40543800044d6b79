//! What a provider's cache knows a session by.

use asyncagents_core::{
    agent::{Conversation, ToolSpec},
    digest::digest,
};

/// The same for all sessions whose requests begin alike, in every process: with one system prompt,
/// the same tools and, in forked children, the same inherited conversation. A fork that begins with
/// its parent's own messages has its parent's key. It says nothing of what it is made of.
pub(crate) fn cache_key(system: &str, tools: &[ToolSpec], conversation: &Conversation) -> String {
    let inherited = conversation.beginning().unwrap_or_default();
    let tools = tools
        .iter()
        .flat_map(|tool| [&tool.name, &tool.description, &tool.schema]);
    let parts: Vec<&str> = [system, inherited]
        .into_iter()
        .chain(tools.map(String::as_str))
        .collect();
    format!("asyncagents-{:016x}", digest(&parts))
}
