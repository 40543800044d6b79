//! Names that may become a part of a path.

/// Longer than any ID of an agent.
const LONGEST: usize = 200;

/// Whether a name can be an ID: other programs say what it is, and it becomes the name of a file.
pub(crate) fn is_id(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(allowed)
}
