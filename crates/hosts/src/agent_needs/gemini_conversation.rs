//! A conversation of Gemini CLI that is about to be loaded.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// How long the minute is in the name of a file: `2026-11-18T19-52`.
const MINUTE: usize = 16;

/// Keeps a conversation from being lost when it is loaded: in the minute in which it was begun, Gemini
/// CLI 0.61 writes an empty one into the same file first, which it names after the minute. A file with a
/// number behind the minute is found as well, and left alone. `folder` is Gemini's. One that its children
/// have written in leads nowhere if it is a link: `is_apart`.
///
/// # Errors
/// When its file cannot have another name.
pub fn keep_gemini_conversation(folder: &Path, is_apart: bool, session: &str) -> io::Result<()> {
    let short = session.get(..8).unwrap_or(session);
    let end = format!("-{short}.jsonl");
    if is_apart && !is_folder(folder) {
        return Ok(());
    }
    for project in folders_in(&folder.join("tmp"))? {
        let conversations = project.join("chats");
        for file in entries_in(&conversations)? {
            let name = file.file_name().and_then(|name| name.to_str());
            let minute = name.and_then(|name| name.strip_prefix("session-")?.strip_suffix(&end));
            if let Some(minute) = minute.filter(|minute| minute.len() == MINUTE) {
                let named = |number| conversations.join(format!("session-{minute}-{number}{end}"));
                let mut free = (1..).map(named).filter(|other| !other.exists());
                free.next().map_or(Ok(()), |free| fs::rename(&file, free))?;
            }
        }
    }
    Ok(())
}

/// The agent can make links here, which are not followed.
fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = entries_in(folder)?;
    folders.retain(|path| is_folder(path));
    Ok(folders)
}

fn entries_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !is_folder(folder) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_conversation_has_a_file_that_is_not_begun_anew() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let chats = folder.path().join("tmp/project/chats");
        fs::create_dir_all(&chats)?;
        let usual = chats.join("session-2026-11-18T19-52-01234567.jsonl");
        let other = chats.join("session-2026-11-18T19-52-89abcdef.jsonl");
        let session = "01234567-89ab-cdef-0123-456789abcdef";
        // What loading it writes may be there again.
        for text in ["said", "nothing"] {
            fs::write(&usual, text)?;
            fs::write(&other, "other")?;
            keep_gemini_conversation(folder.path(), true, session)?;
            assert!(!usual.exists() && other.exists());
        }
        let kept = chats.join("session-2026-11-18T19-52-1-01234567.jsonl");
        assert_eq!(fs::read_to_string(kept)?, "said");
        Ok(())
    }

    #[test]
    fn links_of_the_agent_lead_nowhere() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let users = root.path().join("users");
        let chats = users.join("tmp/project/chats");
        fs::create_dir_all(&chats)?;
        let file = chats.join("session-2026-11-18T19-52-01234567.jsonl");
        fs::write(&file, "said")?;
        let keep = |folder: &Path, is_apart| {
            keep_gemini_conversation(folder, is_apart, "01234567-89ab").map(|()| file.exists())
        };
        // A project in its folder, and the folder itself.
        let (own, linked) = (root.path().join("own"), root.path().join("linked"));
        fs::create_dir_all(own.join("tmp"))?;
        symlink(users.join("tmp/project"), own.join("tmp/project"))?;
        symlink(&users, &linked)?;
        assert!(keep(&own, true)?);
        assert!(keep(&linked, true)?);
        // Nothing was ever said to it.
        assert!(keep(&root.path().join("none"), true)?);
        // Users may have theirs elsewhere.
        assert!(!keep(&linked, false)?);
        Ok(())
    }
}
