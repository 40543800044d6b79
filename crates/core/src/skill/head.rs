//! The head of a `SKILL.md`, as its author wrote it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::frontmatter;

/// All that the head of a `SKILL.md` says, whether it means something here or not. Nothing if it has
/// none, or one that is not YAML for everybody.
pub fn head(text: &str) -> Option<BTreeMap<String, Value>> {
    let split = frontmatter::split(text).ok()?;
    let settings = frontmatter::read(split.front).ok()?;
    settings.mended.is_none().then_some(settings.values)
}
