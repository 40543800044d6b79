//! Private files in the home's configuration. What a program keeps there for the user alone is taken
//! for a credential, whatever its name: a list knows only some programs.

use std::{
    collections::VecDeque,
    fs::{self, DirEntry, Metadata},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};

use asyncagents_core::lock::lock;

use crate::{lists, private_before::PrivateBefore};

/// What commands are kept from is found anew if it is older than this. A file that is made
/// meanwhile is not closed to commands before then; the file tools look at each file themselves.
const FRESH: Duration = Duration::from_secs(30);
/// How deep a program's folder is looked through.
const DEPTH: usize = 4;
/// How many entries of a program's folder are looked at. One that has more holds data.
const MOST_IN_FOLDER: usize = 1_000;
/// How many are looked at in all.
const MOST: usize = 20_000;
/// A program that has more private files than this is closed as a whole.
const MOST_OF_PROGRAM: usize = 16;
/// A folder with more entries than this is closed as a whole if one of them is private: each other
/// entry would need a rule of its own, for every command.
const MOST_BESIDE: usize = 200;

/// Folders of the home whose entries are the programs' folders.
const SHARED: [&str; 4] = [".config", ".local", ".local/share", ".local/state"];

/// What is private at most because everything is, and is needed: caches and toolchains, programs,
/// and settings that hold no credentials.
static OPEN: LazyLock<Vec<&str>> =
    LazyLock::new(|| lists::entries(include_str!("lists/open_paths.txt")));

/// Knows which files of the home are private.
pub(crate) struct PrivateFiles {
    home: Option<PathBuf>,
    /// Folders in the configuration that tools may use: the user has said so.
    granted: Vec<PathBuf>,
    last: Mutex<Option<(Instant, Arc<Found>)>>,
    /// What was private once stays closed: commands cannot read it, but may change its mode.
    before: Arc<PrivateBefore>,
}

/// What was found, as real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Private files, and folders with many of them.
    pub(crate) private: Vec<PathBuf>,
    /// Folders that are too large to be looked through, in which nothing private was found.
    pub(crate) too_large: Vec<PathBuf>,
}

impl PrivateFiles {
    /// For a home and the folders that tools may use, all as real paths. In `before` it is kept what
    /// was private.
    pub(crate) fn new(
        home: Option<PathBuf>,
        granted: &[&[PathBuf]],
        before: Option<PathBuf>,
    ) -> Self {
        Self {
            granted: in_configuration(home.as_deref(), granted),
            last: Mutex::new(None),
            before: Arc::new(PrivateBefore::new(before)),
            home,
        }
    }

    /// The same home where tools may use other folders. What was found is shared unless that makes
    /// a difference: looking through a home takes a while.
    pub(crate) fn with_granted(self: &Arc<Self>, granted: &[&[PathBuf]]) -> Arc<Self> {
        let granted = in_configuration(self.home.as_deref(), granted);
        if granted == self.granted {
            return Arc::clone(self);
        }
        Arc::new(Self {
            home: self.home.clone(),
            granted,
            last: Mutex::new(None),
            before: Arc::clone(&self.before),
        })
    }

    /// Whether this is a private file, or was one.
    pub(crate) fn includes(&self, path: &Path) -> bool {
        self.is_searched(path) && (is_private_now(path) || self.before.includes(path))
    }

    /// All private files, as they were a short while ago at most.
    pub(crate) fn recently_found(&self) -> Arc<Found> {
        let mut last = lock(&self.last);
        match &*last {
            Some((at, found)) if at.elapsed() < FRESH => Arc::clone(found),
            Some(_) | None => {
                let mut found = self.find();
                self.before.add(&found.private);
                let before = self.before.all();
                let is_there = |path: &PathBuf| self.is_searched(path) && path.exists();
                found.private.extend(before.into_iter().filter(is_there));
                found.private.sort();
                found.private.dedup();
                let found = Arc::new(found);
                *last = Some((Instant::now(), Arc::clone(&found)));
                found
            }
        }
    }

    /// Whether private files are looked for there.
    fn is_searched(&self, path: &Path) -> bool {
        let Some(relative) = self.home.as_deref().and_then(|home| relative(home, path)) else {
            return false;
        };
        !OPEN.iter().any(|open| relative.starts_with(open))
            && !self.granted.iter().any(|granted| path.starts_with(granted))
    }

    fn find(&self) -> Found {
        let mut search = Search {
            files: self,
            left: MOST,
            found: Found::default(),
        };
        if let Some(home) = &self.home {
            search.look_at_programs(home);
        }
        search.found
    }
}

struct Search<'a> {
    files: &'a PrivateFiles,
    /// How many entries may still be looked at.
    left: usize,
    found: Found,
}

impl Search<'_> {
    /// The entries of the home or of a folder that programs share.
    fn look_at_programs(&mut self, folder: &Path) {
        for entry in entries(folder) {
            let path = entry.path();
            if !self.files.is_searched(&path) {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && self.is_shared(&path) => self.look_at_programs(&path),
                Ok(kind) if kind.is_dir() => self.look_through(path),
                Ok(kind) if kind.is_file() && is_private_now(&path) => {
                    self.found.private.push(path);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn is_shared(&self, path: &Path) -> bool {
        let home = self.files.home.as_deref();
        let relative = home.and_then(|home| path.strip_prefix(home).ok());
        relative.is_some_and(|relative| SHARED.iter().any(|shared| relative == Path::new(shared)))
    }

    /// One program's folder: what is nearest to its top first.
    fn look_through(&mut self, program: PathBuf) {
        let mut private = Vec::new();
        let mut folders = VecDeque::from([(program.clone(), 1)]);
        let mut left = MOST_IN_FOLDER.min(self.left);
        let mut whole = true;
        while let Some((folder, depth)) = folders.pop_front() {
            let entries = entries(&folder).take(left + 1);
            let entries: Vec<DirEntry> = entries.collect();
            if entries.len() > left {
                whole = false;
            }
            let looked_at = entries.len().min(left);
            left -= looked_at;
            self.left -= looked_at;
            let before = private.len();
            let paths = entries.iter().take(looked_at).map(DirEntry::path);
            for path in paths.filter(|path| self.files.is_searched(path)) {
                match fs::symlink_metadata(&path) {
                    Ok(file) if file.is_dir() && depth < DEPTH => {
                        folders.push_back((path, depth + 1));
                    }
                    Ok(file) if is_private(&file) => private.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
            if private.len() > before && looked_at > MOST_BESIDE {
                private.truncate(before);
                private.push(folder);
            }
            if !whole {
                break;
            }
        }
        match (private.is_empty(), whole) {
            (true, true) => {}
            (true, false) => self.found.too_large.push(program),
            (false, true) if private.len() <= MOST_OF_PROGRAM => self.found.private.extend(private),
            (false, _) => self.found.private.push(program),
        }
    }
}

/// Those of the folders that are in the home's configuration.
fn in_configuration(home: Option<&Path>, folders: &[&[PathBuf]]) -> Vec<PathBuf> {
    let is_configuration =
        |path: &&PathBuf| home.is_some_and(|home| relative(home, path).is_some());
    let folders = folders.iter().copied().flatten();
    folders.filter(is_configuration).cloned().collect()
}

fn is_private_now(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| is_private(&file))
}

/// A path below the home that begins with a dot there, seen from the home.
fn relative<'a>(home: &Path, path: &'a Path) -> Option<&'a Path> {
    let relative = path.strip_prefix(home).ok()?;
    match relative.components().next()? {
        Component::Normal(first) if first.as_encoded_bytes().starts_with(b".") => Some(relative),
        _ => None,
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Whether only its owner may read a file, and it is not a program.
fn is_private(file: &Metadata) -> bool {
    let mode = file.permissions().mode();
    file.is_file() && mode & 0o077 == 0 && mode & 0o111 == 0
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        path::{Path, PathBuf},
        slice::from_ref,
    };

    use rstest::rstest;
    use tempfile::TempDir;

    use super::{Found, MOST_BESIDE, MOST_IN_FOLDER, MOST_OF_PROGRAM, PrivateFiles};

    /// A home with a file of this mode.
    fn home(path: &str, mode: u32) -> (TempDir, PathBuf) {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path().canonicalize().expect("it is there");
        file(&home.join(path), mode);
        (folder, home)
    }

    fn file(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "x").expect("a file");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn found(home: &Path, granted: &[PathBuf]) -> Vec<PathBuf> {
        let files = PrivateFiles::new(Some(home.to_owned()), &[granted], None);
        let Found { private, too_large } = (*files.recently_found()).clone();
        assert!(too_large.is_empty());
        private
    }

    #[rstest]
    #[case::in_the_home(".someapp", 0o600, true)]
    #[case::read_only(".someapp", 0o400, true)]
    #[case::configuration(".config/someapp/auth", 0o600, true)]
    #[case::beside_programs(".config/someapp.json", 0o600, true)]
    #[case::data(".local/share/someapp/db/token", 0o600, true)]
    #[case::state(".local/state/someapp/token", 0o600, true)]
    #[case::folder_of_a_program(".someapp/a/b/token", 0o600, true)]
    #[case::for_others_too(".config/someapp/auth", 0o640, false)]
    #[case::a_program(".config/someapp/run", 0o700, false)]
    #[case::no_configuration("documents/letter", 0o600, false)]
    #[case::toolchain(".cargo/registry/x", 0o600, false)]
    #[case::needed(".gitconfig", 0o600, false)]
    #[case::cache(".cache/x", 0o600, false)]
    fn what_is_private(#[case] path: &str, #[case] mode: u32, #[case] private: bool) {
        let (_folder, home) = home(path, mode);
        let expected: Vec<PathBuf> = private.then(|| home.join(path)).into_iter().collect();
        assert_eq!(found(&home, &[]), expected);
        let files = PrivateFiles::new(Some(home.clone()), &[], None);
        assert_eq!(files.includes(&home.join(path)), private);
    }

    #[rstest]
    #[case::its_folder(".config/someapp", true)]
    #[case::the_file(".config/someapp/auth", true)]
    #[case::above(".config", true)]
    #[case::another(".config/other", false)]
    #[case::the_home_itself("", false)]
    fn what_tools_may_use_is_open(#[case] granted: &str, #[case] open: bool) {
        let (_folder, home) = home(".config/someapp/auth", 0o600);
        let granted = [home.join(granted)];
        assert_eq!(found(&home, &granted).is_empty(), open);
        let files = PrivateFiles::new(Some(home.clone()), &[&granted], None);
        assert_eq!(files.includes(&home.join(".config/someapp/auth")), !open);
    }

    #[test]
    fn many_private_files_close_their_program() {
        let (_folder, home) = home(".config/someapp/open", 0o644);
        for number in 0..=MOST_OF_PROGRAM {
            file(&home.join(format!(".config/someapp/{number}/x")), 0o600);
        }
        assert_eq!(found(&home, &[]), [home.join(".config/someapp")]);
    }

    #[test]
    fn a_private_file_among_many_closes_their_folder() {
        let (_folder, home) = home(".config/someapp/many/token", 0o600);
        for number in 0..MOST_BESIDE {
            file(&home.join(format!(".config/someapp/many/{number}")), 0o644);
        }
        assert_eq!(found(&home, &[]), [home.join(".config/someapp/many")]);
    }

    #[rstest]
    #[case::with_a_private_file(0o600)]
    #[case::without(0o644)]
    fn a_folder_that_is_too_large_is_closed_or_told(#[case] mode: u32) {
        let (_folder, home) = home(".config/someapp/first", mode);
        for number in 0..=MOST_IN_FOLDER {
            file(&home.join(format!(".config/someapp/below/{number}")), 0o644);
        }
        let files = PrivateFiles::new(Some(home.clone()), &[], None);
        let Found { private, too_large } = (*files.recently_found()).clone();
        let program = vec![home.join(".config/someapp")];
        match mode {
            0o600 => assert_eq!((private, too_large), (program, vec![])),
            _ => assert_eq!((private, too_large), (vec![], program)),
        }
    }

    /// A command in the sandbox cannot read it, but may change its mode.
    #[test]
    fn what_was_private_once_stays_closed_also_to_the_next_process() {
        let (_folder, home) = home(".config/someapp/auth", 0o600);
        let (path, kept) = (home.join(".config/someapp/auth"), home.join("kept"));
        let files = |granted: &[PathBuf]| {
            PrivateFiles::new(Some(home.clone()), &[granted], Some(kept.clone()))
        };
        let first = files(&[]);
        assert_eq!(first.recently_found().private, from_ref(&path));
        file(&path, 0o644);
        assert!(first.includes(&path));
        let second = files(&[]);
        assert_eq!(second.recently_found().private, from_ref(&path));
        assert!(second.includes(&path));
        // The user may open it, and one that is gone is gone.
        assert!(!files(from_ref(&path)).includes(&path));
        fs::remove_file(&path).expect("removed");
        assert!(files(&[]).recently_found().private.is_empty());
    }

    #[test]
    fn links_are_not_followed() {
        let (_folder, home) = home("elsewhere/token", 0o600);
        fs::create_dir(home.join(".config")).expect("a folder");
        symlink(home.join("elsewhere"), home.join(".config/someapp")).expect("a link");
        assert_eq!(found(&home, &[]), Vec::<PathBuf>::new());
    }
}
