//! Which paths a call may touch.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use crate::{
    fit_answer::cut_line, need::Kind, private_files::PrivateFiles, secret_paths, settings::Settings,
};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// The folders of a workspace and what may be done in them. All paths are real: no links.
pub(crate) struct Places {
    pub(crate) workspace: PathBuf,
    /// May be read and written: the workspace, the allowed folders, the temporary folder.
    pub(crate) writable: Vec<PathBuf>,
    /// May be read.
    pub(crate) readable: Vec<PathBuf>,
    /// Hold credentials.
    pub(crate) secret: Vec<PathBuf>,
    /// Look like credentials.
    pub(crate) private: Arc<PrivateFiles>,
    home: Option<PathBuf>,
}

/// A path that a call named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Without links.
    pub(crate) path: PathBuf,
    /// As people read it: relative to the workspace if inside, and cut if it is long.
    pub(crate) shown: String,
    /// In none of the folders that may be touched so.
    pub(crate) outside: bool,
}

impl Place {
    /// For a sentence.
    pub(crate) fn named(&self) -> &str {
        match self.shown.as_str() {
            "." => "the workspace",
            shown => shown,
        }
    }
}

impl Places {
    /// Resolves the folders of the settings.
    pub(crate) fn new(settings: &Settings, temporary: &Path) -> io::Result<Self> {
        let workspace = fs::canonicalize(&settings.workspace)?;
        if !workspace.is_dir() {
            let why = format!("{} is not a folder", workspace.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
        }
        let real = |path: &PathBuf| real(&workspace.join(path));
        let all_real = |paths: &[PathBuf]| paths.iter().map(real).collect::<io::Result<Vec<_>>>();

        let mut writable = vec![workspace.clone(), fs::canonicalize(temporary)?];
        writable.extend(all_real(&settings.allowed)?);
        let readable = all_real(&settings.readable)?;
        let mut secret = secret_paths::usual(settings.home.as_deref());
        secret.extend(settings.secret_paths.iter().cloned());
        let home = settings.home.as_ref().map(real).transpose()?;
        Ok(Self {
            private: Arc::new(PrivateFiles::new(
                home,
                &[&writable, &readable],
                settings.private_before.clone(),
            )),
            writable,
            readable,
            secret: all_real(&secret)?,
            home: settings.home.clone(),
            workspace,
        })
    }

    /// The place that a call names. The error is for the model.
    pub(crate) fn find(&self, kind: Kind, given: &str) -> Result<Place, String> {
        if given.contains('\0') {
            return Err(format!("{:?} is not a path", echo(given)));
        }
        let path = match (given.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.workspace.join(given),
        };
        let path =
            real(&path).map_err(|error| format!("cannot resolve {}: {error}", echo(given)))?;
        if self.is_secret(&path) {
            return Err(format!(
                "{} may hold credentials and is kept from tools",
                echo(given)
            ));
        }
        Ok(Place {
            outside: !self.may_touch(kind, &path),
            shown: echo(&self.shown(&path)),
            path,
        })
    }

    /// The place that a call names, refused if it is outside.
    pub(crate) fn enter(&self, kind: Kind, given: &str) -> Result<Place, String> {
        let place = self.find(kind, given)?;
        if place.outside {
            return Err(self.refusal(kind, given, &place.path));
        }
        Ok(place)
    }

    /// Whether commands may change the settings of programs in the home folder.
    pub(crate) fn home_is_writable(&self) -> bool {
        let home = self.home.as_deref().map(real).and_then(Result::ok);
        home.is_some_and(|home| deepest(&self.writable, &home).is_some())
    }

    /// The path as people read it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Whether credentials may be in it. The deepest folder decides, so that a workspace within
    /// a secret folder is still a workspace; a private file in the home's configuration is secret
    /// unless its folder was granted.
    pub(crate) fn is_secret(&self, path: &Path) -> bool {
        let secret = deepest(&self.secret, path);
        let granted = deepest(&self.writable, path).max(deepest(&self.readable, path));
        secret > granted || self.private.includes(path)
    }

    fn may_touch(&self, kind: Kind, path: &Path) -> bool {
        let writable = deepest(&self.writable, path).is_some();
        match kind {
            Kind::Edit => {
                // A folder that may only be read stays so within one that may be written.
                let readable = deepest(&self.readable, path);
                writable && readable <= deepest(&self.writable, path)
            }
            Kind::Read | Kind::Run | Kind::Note => {
                writable || deepest(&self.readable, path).is_some()
            }
        }
    }

    fn refusal(&self, kind: Kind, given: &str, path: &Path) -> String {
        let shown = path.display().to_string();
        let leads = match given == shown {
            true => String::new(),
            false => format!(" (it leads to {})", echo(&shown)),
        };
        let (what, folders) = match kind {
            Kind::Edit => ("written", self.writable.clone()),
            Kind::Read | Kind::Run | Kind::Note => (
                "read",
                [self.writable.clone(), self.readable.clone()].concat(),
            ),
        };
        let folders: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
        format!(
            "{} is outside of the workspace{leads}. Files can be {what} in: {}. The user can allow \
             more folders with `tools.allowed` in the configuration.",
            echo(given),
            folders.join(", ")
        )
    }
}

/// What a call gave, for an answer: long enough to know it again.
pub(crate) fn echo(given: &str) -> String {
    cut_line(given, 200)
}

/// How deep the deepest of these folders is that contains the path.
fn deepest(folders: &[PathBuf], path: &Path) -> Option<usize> {
    folders
        .iter()
        .filter(|folder| path.starts_with(folder))
        .map(|folder| folder.components().count())
        .max()
}

/// Where an absolute path leads, following links as the kernel does. What does not exist yet is
/// taken as it is written.
fn real(path: &Path) -> io::Result<PathBuf> {
    let mut found = PathBuf::from("/");
    let mut ahead: VecDeque<OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            found.pop();
            continue;
        }
        found.push(&part);
        let Ok(target) = fs::read_link(&found) else {
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        found.pop();
        if target.is_absolute() {
            found = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            ahead.push_front(part);
        }
    }
    Ok(found)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(part) => Some(part.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}
