//! Whether the files that say what a search leaves out can be read. The walker opens them itself:
//! it would wait for a pipe, and read a device without end.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::exact_file;

const LARGEST: u64 = 1024 * 1024;

/// Kernel files call themselves regular, but some of them wait or never end.
const OF_THE_KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Whether all such files of a folder are regular and small, if they are there.
pub(super) fn are_readable(folder: &Path) -> bool {
    let own = [".gitignore", ".ignore"].iter().map(|n| folder.join(n));
    own.chain(of_repository(folder))
        .all(|file| is_harmless(&file))
}

/// The files that lead to the rules of the repository, up to the first that is no good.
fn of_repository(folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    if !git.is_file() {
        return vec![git.join("info/exclude")];
    }
    // A work tree: `.git` names a folder, in which `commondir` names the repository.
    let mut files = vec![git.clone()];
    let Some(named) = first_line(&git) else {
        return files;
    };
    let Some(named) = named.strip_prefix("gitdir: ").map(PathBuf::from) else {
        return files;
    };
    let common = named.join("commondir");
    files.push(common.clone());
    if let Some(repository) = first_line(&common) {
        // As the walker takes it.
        let repository = if repository.starts_with('.') {
            named.join(repository)
        } else {
            PathBuf::from(repository)
        };
        files.push(repository.join("info/exclude"));
    }
    files
}

fn is_harmless(file: &Path) -> bool {
    let Ok(real) = fs::canonicalize(file) else {
        // Not there, so nothing is read.
        return true;
    };
    let of_the_kernel = OF_THE_KERNEL.iter().any(|root| real.starts_with(root));
    let small = fs::metadata(&real).is_ok_and(|file| file.is_file() && file.len() <= LARGEST);
    small && !of_the_kernel
}

fn first_line(file: &Path) -> Option<String> {
    if !is_harmless(file) {
        return None;
    }
    let file = exact_file::open(&fs::canonicalize(file).ok()?).ok()?;
    let mut line = String::new();
    BufReader::new(file.take(LARGEST))
        .read_line(&mut line)
        .ok()?;
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}
