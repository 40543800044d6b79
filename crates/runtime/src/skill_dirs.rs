//! Finds skills in folders. What has not changed since it was read is not read again.

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use asyncagents_core::{
    lock::lock,
    owner_rule::may_instruct,
    skill::{Catalog, Flaw, Found, Layer, Skill},
};

/// What a skill's file is called; the first counts.
const FILES: [&str; 2] = ["SKILL.md", "skill.md"];
/// How many bytes it may have.
const LARGEST: u64 = 1_000_000;
/// How deep folders of skills may hold folders.
const DEEPEST: usize = 6;
/// And how deep they are looked into when all of them are to be checked.
const MAX_DEPTH: usize = 64;
/// How many skills are looked at in one folder of skills.
const MOST: usize = 10_000;
/// How many folders behind links are looked into, there: links can multiply.
const MOST_LINKED: usize = 2_000;

/// Below a home or a project, where tools of several makers keep skills; the first counts more.
const FOLDERS: &[&str] = &[
    ".asyncagents/skills",
    ".agents/skills",
    ".claude/skills",
    ".opencode/skills",
    ".opencode/skill",
];

/// Where skills are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillPlaces {
    /// In order: the first of a layer counts more.
    places: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    layer: Layer,
    folder: PathBuf,
    /// Links may not lead out of this folder.
    within: Option<PathBuf>,
}

/// What decides where skills are looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct SkillAround<'a> {
    /// The folder an agent works in.
    pub workspace: Option<&'a Path>,
    pub home: Option<&'a Path>,
    /// The user's configuration of asyncagents.
    pub config: Option<&'a Path>,
    /// Skills of the administrator of the machine.
    pub enterprise: Option<&'a Path>,
    /// Folders of plugins; their skills are in `skills`.
    pub plugins: &'a [PathBuf],
}

impl SkillPlaces {
    /// The usual places: the enterprise's, the user's, the project's from the workspace up to
    /// the root of its repository, the plugins'.
    pub fn usual(around: &SkillAround) -> Self {
        let mut places = Self::default();
        if let Some(folder) = around.enterprise {
            places.add(Layer::Enterprise, folder.to_owned(), None);
        }
        if let Some(config) = around.config {
            places.add(Layer::User, config.join("skills"), None);
        }
        if let Some(home) = around.home {
            for folder in FOLDERS {
                places.add(Layer::User, home.join(folder), None);
            }
            for folder in ["skills", "skill"] {
                let folder = home.join(".config/opencode").join(folder);
                places.add(Layer::User, folder, None);
            }
        }
        if let Some(workspace) = around.workspace {
            let root = repository(workspace);
            let up = workspace.ancestors();
            let up: Vec<&Path> = up.take_while(|folder| folder.starts_with(root)).collect();
            for base in up {
                for folder in FOLDERS {
                    let within = Some(root.to_owned());
                    places.add(Layer::Project, base.join(folder), within);
                }
            }
        }
        for plugin in around.plugins {
            places.add(Layer::Plugin, plugin.join("skills"), None);
        }
        places
    }

    /// A folder is whose it was first: a home may be a project too.
    fn add(&mut self, layer: Layer, folder: PathBuf, within: Option<PathBuf>) {
        if !self.places.iter().any(|place| place.folder == folder) {
            self.places.push(Place {
                layer,
                folder,
                within,
            });
        }
    }
}

/// The root of the repository that a folder is in; the folder itself if it is in none. Another
/// user could put one around our folders.
fn repository(folder: &Path) -> &Path {
    let trusted = |folder: &&Path| fs::metadata(folder).is_ok_and(|about| is_trusted(&about));
    let mut up = folder.ancestors().take_while(trusted);
    let root = up.find(|folder| folder.join(".git").exists());
    root.unwrap_or(folder)
}

fn is_trusted(about: &Metadata) -> bool {
    may_instruct(about.uid(), rustix::process::geteuid().as_raw())
}

/// The skills of some places.
#[derive(Debug, Default)]
pub struct SkillDirs {
    places: SkillPlaces,
    known: Mutex<HashMap<PathBuf, Known>>,
}

/// A file as it was read.
#[derive(Debug, Clone)]
struct Known {
    stamp: Stamp,
    skill: Result<Arc<Skill>, Vec<Flaw>>,
}

/// What changes with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

impl SkillDirs {
    /// The skills of these places.
    pub fn new(places: SkillPlaces) -> Self {
        Self {
            places,
            known: Mutex::default(),
        }
    }

    /// The folders that skills are in, as far as they are there and not a project's own; also
    /// those that links lead to.
    pub fn folders(&self) -> Vec<PathBuf> {
        let others = |place: &&Place| place.within.is_none() && place.folder.is_dir();
        let places = self.places.places.iter().filter(others);
        let mut folders: Vec<PathBuf> = places.map(|place| place.folder.clone()).collect();
        for listed in self.catalog().skills {
            let Some(folder) = listed.file.parent() else {
                continue;
            };
            let real = folder.canonicalize().ok();
            let real = real.filter(|real| real != folder && listed.layer != Layer::Project);
            folders.extend(real);
        }
        folders
    }

    /// The skills there are now. Looks at every file, and reads those that are new or changed.
    pub fn catalog(&self) -> Catalog {
        let mut files = Vec::new();
        for (number, place) in self.places.places.iter().enumerate() {
            let mut walk = Walk::new(place.within.clone());
            walk.folder(&place.folder);
            let plugin = place.plugin();
            let seen = walk.seen.into_iter();
            files.extend(seen.map(|seen| seen.found(place.layer, number, plugin.clone())));
        }
        Catalog::new(self.read(files))
    }

    /// Puts in what is in each file, read now unless it is known.
    fn read(&self, files: Vec<(Found, Option<Stamp>)>) -> Vec<Found> {
        let mut known = lock(&self.known);
        let mut found = Vec::with_capacity(files.len());
        let mut unread = Vec::new();
        for (at, stamp) in files {
            let Some(stamp) = stamp else {
                found.push(at);
                continue;
            };
            match known.get(&at.file).filter(|known| known.stamp == stamp) {
                Some(Known { skill, .. }) => {
                    let skill = skill.clone();
                    found.push(Found { skill, ..at });
                }
                None => unread.push((at, stamp)),
            }
        }
        let skills = in_parallel(&unread, |(at, _)| read(&at.file));
        for ((at, stamp), skill) in unread.into_iter().zip(skills) {
            let skill = skill.map(Arc::new);
            let read = Known {
                stamp,
                skill: skill.clone(),
            };
            known.insert(at.file.clone(), read);
            found.push(Found { skill, ..at });
        }
        found
    }
}

impl Place {
    /// The folder of the plugin whose skills these are.
    fn plugin(&self) -> Option<PathBuf> {
        let folder = self.folder.parent().map(Path::to_owned);
        folder.filter(|_| self.layer == Layer::Plugin)
    }
}

/// One skill by its file or folder, or all in a folder, in the order of their paths.
///
/// # Errors
/// When there is nothing of this name.
pub fn check_skills(path: &Path) -> io::Result<Vec<Found>> {
    let about = fs::metadata(path)?;
    let mut walk = Walk::new(None);
    walk.everywhere = true;
    if about.is_dir() {
        walk.one_or_many(path, 0)
    } else {
        walk.file(path.to_owned())
    }
    let mut files: Vec<Seen> = walk.seen;
    files.sort_by(|one, other| one.file.cmp(&other.file));
    let found = |seen: Seen| match seen.found(Layer::Project, 0, None) {
        (found, Some(_)) => Found {
            skill: read(&found.file).map(Arc::new),
            ..found
        },
        (found, None) => found,
    };
    Ok(files.into_iter().map(found).collect())
}

/// A file that was seen, and its stamp or what is wrong with it.
struct Seen {
    file: PathBuf,
    what: Result<Stamp, Flaw>,
}

impl Seen {
    /// What was found, and its stamp if it has to be read yet.
    fn found(self, layer: Layer, place: usize, plugin: Option<PathBuf>) -> (Found, Option<Stamp>) {
        let found = Found {
            layer,
            place,
            plugin,
            file: self.file,
            skill: Err(self.what.as_ref().err().cloned().into_iter().collect()),
        };
        (found, self.what.ok())
    }
}

/// A walk through folders.
struct Walk {
    /// Links may not lead out of this folder.
    within: Option<PathBuf>,
    /// The real paths of the folders that were entered through links.
    through: Vec<PathBuf>,
    /// Whether all folders are looked into: those whose name begins with a dot, as a project
    /// keeps skills in `.claude`; deep ones; and those in the folder of a skill.
    everywhere: bool,
    /// How many folders behind links were looked into.
    linked: usize,
    seen: Vec<Seen>,
}

impl Walk {
    fn new(within: Option<PathBuf>) -> Self {
        let real = |folder: PathBuf| folder.canonicalize().unwrap_or(folder);
        Self {
            within: within.map(real),
            through: Vec::new(),
            everywhere: false,
            linked: 0,
            seen: Vec::new(),
        }
    }

    /// A folder of skills, which need not be there.
    fn folder(&mut self, folder: &Path) {
        let is_link = fs::symlink_metadata(folder).is_ok_and(|about| about.is_symlink());
        if is_link && folder.is_dir() {
            self.link(folder, 0)
        } else {
            self.many(folder, 0)
        }
    }

    /// The skill in a folder, or those in the folders below.
    fn one_or_many(&mut self, folder: &Path, depth: usize) {
        let mut files = FILES.iter().map(|name| folder.join(name));
        let file = files.find(|file| fs::symlink_metadata(file).is_ok());
        let descends = file.is_none() || self.everywhere;
        if let Some(file) = file {
            self.file(file);
        }
        if descends {
            self.many(folder, depth);
        }
    }

    fn many(&mut self, folder: &Path, depth: usize) {
        if !self.through.is_empty() {
            self.linked += 1;
        }
        if self.linked == MOST_LINKED + 1 {
            let why = format!("more than {MOST_LINKED} folders are behind links");
            self.refuse(folder, &why);
        }
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if self.linked > MOST_LINKED {
                return;
            }
            if self.seen.len() >= MOST {
                self.refuse(
                    folder,
                    &format!("more than {MOST} skills are in one folder"),
                );
                return;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let hidden = name.starts_with('.') && !self.everywhere;
            if hidden || name == ".git" || name == "node_modules" {
                continue;
            }
            let path = entry.path();
            if self.everywhere && depth >= MAX_DEPTH && kind.is_dir() {
                let why = format!("it is more than {MAX_DEPTH} folders deep: not looked into");
                self.refuse(&path, &why);
                continue;
            }
            if !self.everywhere && depth >= DEEPEST {
                continue;
            }
            if kind.is_dir() {
                self.one_or_many(&path, depth + 1);
            } else if kind.is_symlink() {
                self.link(&path, depth + 1);
            }
        }
    }

    /// What a link leads to, if that is a folder.
    fn link(&mut self, link: &Path, depth: usize) {
        let real = match link.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.refuse(link, &format!("a link that leads nowhere: {error}")),
        };
        if !real.is_dir() {
            return;
        }
        let out = |within: &PathBuf| !real.starts_with(within);
        if self.within.as_ref().is_some_and(out) {
            return self.refuse(link, "a link that leads out of the project");
        }
        let here = link.parent().and_then(|folder| folder.canonicalize().ok());
        let around = here.is_some_and(|here| here.starts_with(&real));
        if around || self.through.contains(&real) {
            return self.refuse(link, "a link that leads back to where it came from");
        }
        self.through.push(real);
        self.one_or_many(link, depth);
        self.through.pop();
    }

    fn file(&mut self, file: PathBuf) {
        let is_link = fs::symlink_metadata(&file).is_ok_and(|about| about.is_symlink());
        let out = |within: &PathBuf| {
            let real = file.canonicalize();
            real.is_ok_and(|real| !real.starts_with(within))
        };
        let what = match fs::metadata(&file) {
            _ if is_link && self.within.as_ref().is_some_and(out) => {
                Err("a link that leads out of the project".to_owned())
            }
            Err(error) => Err(format!("it cannot be read: {error}")),
            Ok(about) if !about.is_file() => Err("it is not a file".to_owned()),
            // A skill of a project can run commands, which only look, but at all that we can read.
            Ok(about) if self.within.is_some() && !is_trusted(&about) => {
                Err("it belongs to another user".to_owned())
            }
            Ok(about) if about.len() > LARGEST => {
                Err(format!("it has {} bytes; allowed: {LARGEST}", about.len()))
            }
            Ok(about) => Ok(Stamp::from(&about)),
        };
        let what = what.map_err(|why| Flaw { line: 1, why });
        self.seen.push(Seen { file, what });
    }

    fn refuse(&mut self, file: &Path, why: &str) {
        let flaw = Flaw {
            line: 1,
            why: why.to_owned(),
        };
        let (file, what) = (file.to_owned(), Err(flaw));
        self.seen.push(Seen { file, what });
    }
}

fn read(file: &Path) -> Result<Skill, Vec<Flaw>> {
    let flaw = |line: usize, why: String| vec![Flaw { line, why }];
    let unreadable = |error: io::Error| flaw(1, format!("it cannot be read: {error}"));
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    // It may have grown since it was looked at.
    let taken = opened.take(LARGEST + 1).read_to_end(&mut bytes);
    taken.map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(flaw(1, format!("it has more than {LARGEST} bytes")));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        flaw(line, "it is not UTF-8 text".to_owned())
    })?;
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    Skill::parse(&folder.to_string_lossy(), text)
}

/// How few are not worth a thread.
const FEW: usize = 50;

/// Does something with each, on all cores if there are many.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    if items.len() < FEW || cores < 2 {
        return items.iter().map(work).collect();
    }
    let share = items.len().div_ceil(cores);
    let work = &work;
    thread::scope(|scope| {
        let begin = |part| scope.spawn(move || Vec::from_iter(<[T]>::iter(part).map(work)));
        let begun: Vec<_> = items.chunks(share).map(begin).collect();
        let done = begun.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.flatten().collect()
    })
}
