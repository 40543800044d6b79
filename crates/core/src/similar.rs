//! Names that may have been meant by a misspelt one.

/// How many characters must be put in, taken out, replaced, or changed with their neighbour to
/// make one text of the other.
pub fn edits(one: &str, other: &str) -> usize {
    strsim::osa_distance(one, other)
}

/// The names that are nearest to what was written, if any is near: misspelt, spelt in another way,
/// or only the last part of a name like `limits.depth`. Three at most.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let written = folded(written);
    let letters = written.chars().count();
    // In a short word every letter counts.
    let most = if letters < 4 { 0 } else { 1 + letters / 4 };
    let distance = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        let beyond = usize::from(last.len() < name.len());
        let last = edits(&written, &folded(last)) + beyond;
        edits(&written, &folded(name)).min(last)
    };
    let near = names.into_iter().map(|name| (distance(name), name));
    let mut near: Vec<(usize, &str)> = near.filter(|(edits, _)| *edits <= most).collect();
    near.sort();
    let least = near.first().map_or(0, |(edits, _)| *edits);
    let nearest = near.into_iter().filter(|(edits, _)| *edits == least);
    nearest.map(|(_, name)| name).take(3).collect()
}

/// Without what people write in one way or another: `allowedTools`, `allowed_tools`.
fn folded(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
