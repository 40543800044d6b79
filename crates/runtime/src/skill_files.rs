//! The files of a skill, for clients that are given the skill itself.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use asyncagents_core::{
    owner_rule::may_instruct,
    skill::{Layer, Listed},
};
use rustix::fs::OFlags;

/// How many files of a skill are given to others: every client takes as many.
const MOST_FILES: usize = 512;
/// And how many bytes they may have together.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// How deep its folders may be.
const DEEPEST: usize = 16;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// From the skill's folder on, with `/` between its parts.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// All files of a skill, in the order of their paths, but for links and what is hidden.
///
/// # Errors
/// When one cannot be read, belongs to somebody else, or there are more than a client has to take.
pub fn skill_files(listed: &Listed) -> io::Result<Vec<SkillFile>> {
    let folder = listed.file.parent().unwrap_or(&listed.file);
    let mut found = Vec::new();
    look_into(folder, "", 0, &mut found)?;
    found.sort();
    let mut files = Vec::with_capacity(found.len());
    let mut left = MOST_BYTES;
    for (path, file) in found {
        let bytes = read(&file, left, listed.layer == Layer::Project)?;
        left = left.saturating_sub(bytes.len().try_into().unwrap_or(left));
        files.push(SkillFile { path, bytes });
    }
    Ok(files)
}

fn look_into(
    folder: &Path,
    above: &str,
    depth: usize,
    found: &mut Vec<(String, PathBuf)>,
) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other("its folders are too deep"));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let (kind, path) = (entry.file_type()?, format!("{above}{name}"));
        if kind.is_dir() {
            look_into(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if kind.is_file() {
            found.push((path, entry.path()));
        }
        if found.len() > MOST_FILES {
            return Err(io::Error::other("it has too many files"));
        }
    }
    Ok(())
}

fn read(file: &Path, most: u64, is_projects: bool) -> io::Result<Vec<u8>> {
    // It may have become a link or a pipe since it was seen.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(flags).open(file)?;
    let about = opened.metadata()?;
    let may_instruct = may_instruct(about.uid(), rustix::process::geteuid().as_raw());
    if !about.is_file() || (is_projects && !may_instruct) {
        return Err(io::Error::other("it is not a file of the user"));
    }
    let mut bytes = Vec::new();
    let read = opened.take(most + 1).read_to_end(&mut bytes)?;
    if read as u64 > most {
        return Err(io::Error::other("its files are too large"));
    }
    Ok(bytes)
}
