//! What a project's folder is called among those of an agent's projects.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Longer names Claude Code shortens in a way that differs from version to version.
const LONGEST_OF_CLAUDE: usize = 200;

/// How much of the folder's own name is shown in ours, so that people know it again.
const SHOWN: usize = 40;

/// A name that no other path has.
pub(super) fn our_name(project: &Path) -> String {
    let sum = Sha256::digest(project.as_os_str().as_encoded_bytes());
    let sum: String = sum[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let last = project.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let shown: String = last.chars().filter(is_plain).take(SHOWN).collect();
    format!("{shown}-{sum}")
}

/// What Claude Code calls it, if that is known. Other paths may have the same name.
pub(super) fn claudes_name(project: &Path) -> Option<String> {
    let path = project.to_str()?;
    // It composes characters first.
    let combines = |c| matches!(c, '\u{300}'..='\u{36f}' | '\u{1100}'..='\u{11ff}');
    if path.chars().any(combines) {
        return None;
    }
    // Its characters are JavaScript's: some of ours are two of them.
    let dashes = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c.to_string(),
        c => "-".repeat(c.len_utf16()),
    };
    let name: String = path.chars().map(dashes).collect();
    (name.len() <= LONGEST_OF_CLAUDE).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_where_claude_code_has_them() {
        let named = |path: &str| claudes_name(Path::new(path));
        let of = named("/home/me/my_project.rs");
        assert_eq!(of.as_deref(), Some("-home-me-my-project-rs"));
        assert_eq!(named("/ä/😀").as_deref(), Some("-----"));
        assert_eq!(named("/a\u{308}"), None);
        assert_eq!(named(&format!("/{}", "x".repeat(200))), None);
    }

    #[test]
    fn each_project_has_a_name_of_its_own() {
        let named = |path: &str| our_name(Path::new(path));
        assert_eq!(named("/a/b"), named("/a/b"));
        assert_ne!(named("/a/b-c"), named("/a/b/c"));
        let odd = named("/a/ ../.. \n");
        assert!(odd.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
        assert!(named("/a/project").starts_with("project-"));
    }
}
