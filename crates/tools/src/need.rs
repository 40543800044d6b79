//! What a call would do, for the rules that permit or refuse it.

/// What a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What kind of thing it does.
    pub kind: Kind,
    /// To what: the path relative to the workspace if it is inside, else the whole path; or the
    /// command.
    pub target: String,
    /// Whether the path is in none of the folders that this kind may touch. Such a call is
    /// refused.
    pub outside: bool,
}

/// The kinds of things that calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads a file or a folder.
    Read,
    /// Makes or changes a file.
    Edit,
    /// Runs a command.
    Run,
    /// Only keeps a note.
    Note,
}
