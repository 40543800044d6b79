//! What a model is shown of the skills before it invokes one: names and descriptions.

use super::{Catalog, Manifest};

/// How many characters the whole list may have.
const MOST: usize = 16_000;

/// How much of one description is shown.
const EACH: usize = 400;

/// A line for each skill that a model may invoke; nothing if there is none. Where the list
/// would be too long, the last ones are named without their description, or only counted.
pub fn disclose(catalog: &Catalog) -> Option<String> {
    let manifests: Vec<&Manifest> = catalog
        .active()
        .map(|listed| &listed.skill.manifest)
        .filter(|manifest| manifest.for_model)
        .collect();
    if manifests.is_empty() {
        return None;
    }
    let mut text = String::new();
    let mut left = MOST;
    for (at, manifest) in manifests.iter().enumerate() {
        let whole = line(manifest);
        let named = format!("- {}", manifest.name);
        let fits = [whole, named]
            .into_iter()
            .find(|line| line.chars().count() < left);
        let Some(line) = fits else {
            let more = manifests.len() - at;
            text.push_str(&format!("- and {more} more"));
            break;
        };
        left = left.saturating_sub(line.chars().count() + 1);
        text.push_str(&line);
        text.push('\n');
    }
    Some(text.trim_end().to_owned())
}

fn line(manifest: &Manifest) -> String {
    let description = shortened(&manifest.description);
    let when = manifest.when_to_use.as_deref().map(shortened);
    let when = when
        .map(|when| format!(" When: {when}"))
        .unwrap_or_default();
    let hint = manifest.argument_hint.as_deref().map(shortened);
    let hint = hint
        .map(|hint| format!(" Arguments: {hint}"))
        .unwrap_or_default();
    format!("- {}: {description}{when}{hint}", manifest.name)
}

/// One line, not too long.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EACH) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}
