//! A package of npm's at a version of our choice, in a folder of its own.

use std::{
    env::join_paths,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Command,
};

use crate::{
    config::{data_folder, no_home},
    make_visible::shown_path,
    on_path::{self, find_on_path, is_program},
    own_file::{self, is_ours},
};

/// How folders begin that are not in their place yet, or no more.
const TEMPORARY: &str = ".tmp-";

/// How many of npm's last lines are kept for a failure.
const LAST_LINES: usize = 5;

/// A program that npm installs, with all it needs, by a lock file that this program brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Package {
    /// What a user calls it.
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    pub(crate) version: &'static str,
    /// About how big it is when it is installed.
    pub(crate) megabytes: u32,
    pub(crate) json: &'static str,
    pub(crate) lock: &'static str,
}

/// Who is told what npm says.
type Progress<'a> = &'a (dyn Fn(&str) + Sync);

impl Package {
    /// Where it is, if it is.
    ///
    /// # Errors
    /// When it is not known who the user is.
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(all()?.join(self.folder_name()))
    }

    fn folder_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// The program, if it was installed by this lock file, and nobody else can have changed it.
    pub(crate) fn installed(&self) -> Option<PathBuf> {
        let folder = self.folder().ok()?;
        let found = folder.symlink_metadata().ok()?;
        let is_private = found.permissions().mode() & 0o022 == 0;
        let lock = fs::read_to_string(folder.join("package-lock.json")).ok()?;
        let program = self.program_in(&folder);
        let is_whole = lock == self.lock && is_program(&program);
        (found.is_dir() && is_ours(&found) && is_private && is_whole).then_some(program)
    }

    fn program_in(&self, folder: &Path) -> PathBuf {
        folder.join("node_modules/.bin").join(self.program)
    }

    /// Installs it. It is there as a whole afterwards, or what was there before is.
    ///
    /// # Errors
    /// With a sentence, and what npm said last.
    pub(crate) async fn install(&self, here: &Path, progress: Progress<'_>) -> anyhow::Result<()> {
        let npm = find_on_path("npm", here).ok_or_else(|| {
            anyhow!("there is no `npm` on the PATH, which comes with Node.js; install it")
        })?;
        let all = all()?;
        make_private(&all).with_context(|| shown_path(&all))?;
        // One at a time; what an earlier one has left behind goes, and what it has installed will do.
        let _alone = alone_in(&all).with_context(|| shown_path(&all))?;
        clear(&all).with_context(|| shown_path(&all))?;
        if self.installed().is_some() {
            return Ok(());
        }
        let new = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&all)
            .with_context(|| shown_path(&all))?;
        for (name, text) in [
            ("package.json", self.json),
            ("package-lock.json", self.lock),
        ] {
            fs::write(new.path().join(name), text).with_context(|| shown_path(new.path()))?;
        }
        run_npm(&npm, new.path(), here, progress).await?;
        if !is_program(&self.program_in(new.path())) {
            bail!(
                "npm has installed {} {}, but there is no {} in it",
                self.name,
                self.version,
                self.program
            );
        }
        self.put_in_place(new).with_context(|| shown_path(&all))
    }

    /// What was installed goes where it is looked for, and older versions go.
    fn put_in_place(&self, new: TempDir) -> io::Result<()> {
        let folder = self.folder().map_err(io::Error::other)?;
        for (number, before) in self.copies()?.iter().enumerate() {
            // Renamed first: removing takes a while, in which half of it would be there.
            let aside = format!("{TEMPORARY}{}-{number}", self.folder_name());
            fs::rename(before, before.with_file_name(aside))?;
        }
        fs::rename(new.path(), &folder)?;
        // It is not temporary any more.
        let _ = new.keep();
        folder.parent().map_or(Ok(()), clear)
    }

    /// Removes it in all versions, and says which folders those were.
    ///
    /// # Errors
    /// When one could not be removed.
    pub(crate) fn remove(&self) -> anyhow::Result<Vec<PathBuf>> {
        let copies = self.copies()?;
        for folder in &copies {
            remove(folder).with_context(|| shown_path(folder))?;
        }
        Ok(copies)
    }

    /// Its folders, in all versions.
    fn copies(&self) -> io::Result<Vec<PathBuf>> {
        let all = all().map_err(io::Error::other)?;
        let entries = match fs::read_dir(all) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut copies = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let of_this = name.to_str().and_then(|name| name.strip_prefix(self.name));
            if of_this.is_some_and(|rest| rest.starts_with('-')) {
                copies.push(entry.path());
            }
        }
        copies.sort();
        Ok(copies)
    }
}

/// The folder of all packages, which only the user can change.
fn all() -> anyhow::Result<PathBuf> {
    let data = data_folder().ok_or_else(|| anyhow!(no_home()))?;
    Ok(data.join("agents"))
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || !is_ours(&found) {
        return Err(io::Error::other("it is not a folder of yours"));
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Waits until nobody else installs anything; nobody else does while this is kept.
fn alone_in(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = own_file::open(&folder.join(".lock"), &mut options)?;
    file.lock()?;
    Ok(file)
}

/// Removes what is temporary.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a folder, or a link, but not what the link leads to.
fn remove(folder: &Path) -> io::Result<()> {
    let done = match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(error) => Err(error),
    };
    match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `npm ci` in a folder. No package runs anything there, and no project's settings are read: npm looks
/// for them where it works.
async fn run_npm(
    npm: &Path,
    folder: &Path,
    here: &Path,
    progress: Progress<'_>,
) -> anyhow::Result<()> {
    // What runs npm is asked for on the PATH, where a project may have put something.
    let path = join_paths(on_path::folders(here)).context("the PATH cannot be used")?;
    let mut command = Command::new(npm);
    command
        .args(["ci", "--ignore-scripts", "--include=optional"])
        .args(["--no-audit", "--no-fund", "--no-update-notifier"])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut running = command.spawn().with_context(|| shown_path(npm))?;
    let (out, errors) = (running.stdout.take(), running.stderr.take());
    let (_, last, ended) =
        tokio::join!(tell(out, progress), tell(errors, progress), running.wait());
    let ended = ended.with_context(|| shown_path(npm))?;
    if ended.success() {
        return Ok(());
    }
    let last = last.join("\n");
    bail!("npm could not install it ({ended}):\n{last}")
}

/// Passes on the lines that come, until there are no more, and returns the last ones.
async fn tell(from: Option<impl AsyncRead + Unpin>, progress: Progress<'_>) -> Vec<String> {
    let mut last = Vec::new();
    let Some(from) = from else {
        return last;
    };
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.trim().is_empty() {
            continue;
        }
        progress(&line);
        last.push(line);
        if last.len() > LAST_LINES {
            last.remove(0);
        }
    }
    last
}
