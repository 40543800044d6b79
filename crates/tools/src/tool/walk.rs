//! Walks the files below a folder the way version control sees them.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::{Abandoned, ignore_files};
use crate::{places::echo, workspace::Workspace};

/// A walk that takes longer answers with what it has.
const WALK_TIMEOUT: Duration = Duration::from_secs(10);

/// When a search stops though it has not seen all files.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) at: Instant,
    pub(super) abandoned: &'a Abandoned,
}

impl Deadline<'_> {
    /// Whether the time is up, or no caller waits any more.
    pub(super) fn is_over(self) -> bool {
        Instant::now() > self.at || self.abandoned.is_set()
    }
}

/// Visits regular files, sorted by path. `visit` says whether to go on. `false`: there was no
/// time for all.
pub(super) fn walk(
    workspace: &Workspace,
    root: &Path,
    abandoned: &Abandoned,
    mut visit: impl FnMut(DirEntry, Deadline) -> bool,
) -> bool {
    let at = Instant::now() + WALK_TIMEOUT;
    let deadline = Deadline { at, abandoned };
    let secret: Arc<[_]> = workspace.places.secret.clone().into();
    let private = Arc::clone(&workspace.places.private);
    // The walker reads those above too, whatever its settings say about parents.
    let ignore = root.ancestors().all(ignore_files::are_readable);
    let walker = WalkBuilder::new(root)
        .standard_filters(ignore)
        .hidden(false)
        .git_global(ignore && !workspace.places.home_is_writable())
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(move |entry| {
            let path = entry.path();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.file_name() != ".git"
                && !(entry.depth() > 0 && secret.iter().any(|s| s == path))
                && !private.includes(path)
                && !(ignore && is_folder && !ignore_files::are_readable(path))
        })
        .build();
    for entry in walker.flatten() {
        if deadline.is_over() {
            return false;
        }
        if entry.file_type().is_some_and(|kind| kind.is_file()) && !visit(entry, deadline) {
            break;
        }
    }
    Instant::now() <= at
}

/// The remark when there was no time for all.
pub(super) fn out_of_time() -> String {
    format!(
        "[stopped after {} s; not all files were looked at: name a smaller folder with `path`]\n",
        WALK_TIMEOUT.as_secs()
    )
}

/// A pattern for paths below the root. One without a slash fits in every folder.
pub(super) fn pattern(pattern: &str) -> Result<GlobMatcher, String> {
    let whole = if pattern.contains('/') {
        pattern.trim_start_matches("./").to_owned()
    } else {
        format!("**/{pattern}")
    };
    GlobBuilder::new(&whole)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            let (pattern, why) = (echo(pattern), error.kind().to_string());
            format!("`{pattern}` is not a file pattern: {}", echo(&why))
        })
}
