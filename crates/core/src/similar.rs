//! Names that somebody might have meant.

/// How many characters must be put in, taken out or replaced to make one text of the other.
pub fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The names that are nearest to what was written, if any is near: misspelt, or only the last
/// part of a name like `limits.depth`.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let most = 1 + written.chars().count() / 4;
    let distance = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        edits(written, name).min(edits(written, last) + 1)
    };
    let near = names.into_iter().map(|name| (distance(name), name));
    let mut near: Vec<(usize, &str)> = near.filter(|(edits, _)| *edits <= most).collect();
    near.sort();
    let least = near.first().map_or(0, |(edits, _)| *edits);
    let nearest = near.into_iter().filter(|(edits, _)| *edits == least);
    nearest.map(|(_, name)| name).take(3).collect()
}
