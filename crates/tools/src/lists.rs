//! Lists that are text files: an entry is a line, and a line more is all it takes to extend one.

/// The entries of a list, without blank lines and comments.
pub(crate) fn entries(list: &'static str) -> Vec<&'static str> {
    let lines = list.lines().map(str::trim);
    let is_entry = |line: &&str| !line.is_empty() && !line.starts_with('#');
    lines.filter(is_entry).collect()
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn blank_lines_and_comments_are_no_entries() {
        let list = "# A comment.\n\n.ssh\n  .config/Ledger Live  \n\t\nLC_*";
        assert_eq!(entries(list), [".ssh", ".config/Ledger Live", "LC_*"]);
        assert!(entries("# Nothing.\n\n").is_empty());
    }
}
