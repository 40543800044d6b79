//! The name that somebody might have meant.

/// The name among those that are known which is most like another; nothing if nobody would
/// confuse them.
pub fn nearest<'k>(wanted: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = folded(wanted);
    let close = known.into_iter().filter_map(|name| {
        let distance = distance(&wanted, &folded(name));
        (distance <= wanted.chars().count() / 3).then_some((distance, name))
    });
    close.min().map(|(_, name)| name)
}

/// Without what people write in one way or another: `allowedTools`, `allowed_tools`.
fn folded(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// How many letters must be put in, taken out, replaced, or changed with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut next = vec![at + 1];
        for (to, letter2) in other.iter().enumerate() {
            let replaced = row[to] + usize::from(letter != letter2);
            let mut least = replaced.min(row[to + 1] + 1).min(next[to] + 1);
            let swapped = at > 0 && to > 0 && one[at - 1] == *letter2 && other[to - 1] == *letter;
            if swapped && letter != letter2 {
                least = least.min(before[to - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::nearest;

    #[rstest]
    #[case("bsah", Some("bash"))]
    #[case("raed", Some("read"))]
    #[case("allowedTools", Some("allowed-tools"))]
    #[case("web", None)]
    #[case("", None)]
    fn a_slip_is_told_from_another_name(#[case] wanted: &str, #[case] expected: Option<&str>) {
        let known = ["bash", "read", "allowed-tools"];
        assert_eq!(nearest(wanted, known), expected);
    }
}
