//! What a model is shown of the skills before it invokes one: names and descriptions.

use super::{Catalog, Manifest};
use crate::shorten::short_line;

/// How many characters the whole list may have, unless the names alone have more.
const MOST: usize = 16_000;

/// How much of one description is shown.
const EACH: usize = 400;

/// How few characters of a description say nothing.
const LEAST: usize = 12;

/// How many skills are named. More is not a list that was made by hand.
const MOST_NAMES: usize = 2_000;

/// A line for each skill that a model may invoke; nothing if there is none. Where the list would
/// be too long, all descriptions are shortened alike, and every name stays.
pub fn disclose(catalog: &Catalog) -> Option<String> {
    let manifests: Vec<&Manifest> = catalog
        .active()
        .map(|listed| &listed.skill.manifest)
        .filter(|manifest| manifest.for_model)
        .collect();
    if manifests.is_empty() {
        return None;
    }
    let (named, more) = manifests.split_at(manifests.len().min(MOST_NAMES));
    let names: Vec<(&str, String)> = named
        .iter()
        .map(|manifest| (manifest.name.as_str(), about(manifest)))
        .collect();
    let each = longest_that_fits(&names);
    let mut lines: Vec<String> = names
        .iter()
        .map(|(name, about)| match each {
            0 => format!("- {name}"),
            each => format!("- {name}: {}", short_line(about, each)),
        })
        .collect();
    if !more.is_empty() {
        lines.push(format!("- and {} more", more.len()));
    }
    Some(lines.join("\n"))
}

/// How much of each description fits into the list.
fn longest_that_fits(names: &[(&str, String)]) -> usize {
    // A line has two characters before a name, two behind it, a line break and perhaps an
    // ellipsis.
    let bare = |name: &str| name.chars().count() + 6;
    let names_alone: usize = names.iter().map(|(name, _)| bare(name)).sum();
    let lengths: Vec<usize> = names
        .iter()
        .map(|(_, about)| about.chars().count())
        .collect();
    let fits = |each: usize| {
        let described: usize = lengths.iter().map(|length| (*length).min(each)).sum();
        names_alone + described <= MOST
    };
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let (mut least, mut most) = (0, longest);
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        if fits(middle) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    match least {
        few if few < LEAST.min(longest) => 0,
        enough => enough,
    }
}

/// What a skill is for, in one line.
fn about(manifest: &Manifest) -> String {
    let part = |text: &str| short_line(text, EACH);
    let description = part(&manifest.description);
    let when = manifest.when_to_use.as_deref().map(part);
    let when = when
        .map(|when| format!(" When: {when}"))
        .unwrap_or_default();
    let hint = manifest.argument_hint.as_deref().map(part);
    let hint = hint
        .map(|hint| format!(" Arguments: {hint}"))
        .unwrap_or_default();
    format!("{description}{when}{hint}")
}
