//! Similar names for a path that is not there.

use std::path::Path;

use asyncagents_core::{agent::Reach, similar::edits};

use super::Site;
use crate::places::Place;

/// A folder with more entries is not searched.
const MOST_ENTRIES: usize = 10_000;

/// The error about a path that is not there. Names that a rule hides are left out.
pub(super) fn missing(place: &Place, site: &Site) -> String {
    let (path, shown) = (&place.path, &place.shown);
    let Some(folder) = path.parent() else {
        return format!("{shown} does not exist");
    };
    if !folder.is_dir() {
        let nearest = path.ancestors().skip(1).find(|folder| folder.is_dir());
        let nearest = nearest.unwrap_or(Path::new("/")).display();
        return format!("{shown} does not exist; of its folders only {nearest} does");
    }
    let hides = |path: &Path| (site.reaching)(&site.workspace.places.shown(path)) == Reach::Hide;
    let similar = similar_names(folder, path, &hides);
    match &similar[..] {
        [] => format!("{shown} does not exist"),
        names => format!(
            "{shown} does not exist. Similar names in its folder: {}",
            names.join(", ")
        ),
    }
}

fn similar_names(folder: &Path, path: &Path, hides: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let Some(wanted) = path.file_name().map(|name| name.to_string_lossy()) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut close: Vec<_> = entries
        .take(MOST_ENTRIES)
        .filter(|entry| !hides(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some((distance(&wanted, &name)?, name)))
        .collect();
    close.sort();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How far apart two names are; `None` if they are not similar.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let letters = |name: &str| {
        let mut letters: Vec<_> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let same_stem = stem(&wanted) == stem(&name) && !stem(&name).is_empty();
    if same_stem || letters(&wanted) == letters(&name) {
        return Some(1);
    }
    let edits = edits(&wanted, &name);
    (edits <= 1 + wanted.chars().count() / 4).then_some(edits)
}
