//! Which paths a call may touch.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io, iter,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use asyncagents_core::agent::Kind;

use crate::{fit_answer::cut_line, private_files::PrivateFiles, secret_paths, settings::Settings};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// The folders of a workspace and what may be done in them. All paths are real: no links.
#[derive(Clone)]
pub(crate) struct Places {
    pub(crate) workspace: PathBuf,
    /// May be read and written: the workspace, the temporary folder, the allowed folders.
    pub(crate) writable: Vec<PathBuf>,
    /// May be read, besides.
    pub(crate) readable: Vec<PathBuf>,
    /// Usually hold credentials.
    pub(crate) secret: Vec<PathBuf>,
    /// Look like credentials, by their modes.
    pub(crate) private: Arc<PrivateFiles>,
    home: Option<PathBuf>,
}

/// A path that a call named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// For what it was looked up.
    kind: Kind,
    /// As the call named it.
    given: String,
    /// Without links.
    pub(crate) path: PathBuf,
    /// As people read it: relative to the workspace if inside, and cut if it is long.
    pub(crate) shown: String,
    /// In none of the folders that may be touched so.
    pub(crate) outside: bool,
}

impl Place {
    /// As the object of a sentence: `.` is the workspace.
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
        let workspace = real_folder(&settings.workspace)?;
        let real = |path: &PathBuf| real_path(&workspace.join(path));
        let all_real = |paths: &[PathBuf]| paths.iter().map(real).collect::<io::Result<Vec<_>>>();

        let mut writable = vec![workspace.clone(), fs::canonicalize(temporary)?];
        writable.extend(all_real(&settings.allowed)?);
        let readable = all_real(&settings.readable)?;
        let mut secret = secret_paths::usual(settings.home.as_deref());
        secret.extend(settings.secret_paths.iter().cloned());
        let secret = all_real(&secret)?;
        let home = settings.home.as_ref().map(real).transpose()?;
        Ok(Self {
            private: Arc::new(PrivateFiles::new(
                home,
                // What is secret is closed anyway, however much is in it.
                &[&writable, &readable, &secret],
                settings.private_before.clone(),
            )),
            writable,
            readable,
            secret,
            home: settings.home.clone(),
            workspace,
        })
    }

    /// The same for another workspace. What the settings allow stays where it was found.
    pub(crate) fn in_folder(&self, folder: &Path) -> io::Result<Self> {
        let workspace = real_folder(folder)?;
        if workspace != folder {
            let why = format!("{} leads to {}", folder.display(), workspace.display());
            return Err(io::Error::other(why));
        }
        let granted = self.writable.iter().skip(1).cloned();
        let writable: Vec<_> = iter::once(workspace.clone()).chain(granted).collect();
        Ok(Self {
            private: self
                .private
                .with_granted(&[&writable, &self.readable, &self.secret]),
            workspace,
            writable,
            ..self.clone()
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
            real_path(&path).map_err(|error| format!("cannot resolve {}: {error}", echo(given)))?;
        if self.is_secret(&path) {
            return Err(format!(
                "{} may hold credentials and is kept from tools",
                echo(given)
            ));
        }
        Ok(Place {
            kind,
            given: given.to_owned(),
            outside: !self.may_touch(kind, &path),
            shown: echo(&self.shown(&path)),
            path,
        })
    }

    /// Whether a place that was found may be touched now. A person may have been asked
    /// meanwhile: the path must still lead to itself, and not have become private.
    pub(crate) fn enter(&self, place: &Place) -> Result<(), String> {
        if place.outside {
            return Err(self.refusal(place));
        }
        let is_same = real_path(&place.path).is_ok_and(|now| now == place.path);
        if !is_same || self.is_secret(&place.path) {
            let shown = &place.shown;
            return Err(format!(
                "{shown} has become something else since this call was checked"
            ));
        }
        Ok(())
    }

    /// Whether commands may change the settings of programs in the home folder.
    pub(crate) fn home_is_writable(&self) -> bool {
        let home = self.home.as_deref().map(real_path).and_then(Result::ok);
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

    fn refusal(&self, place: &Place) -> String {
        let given = &place.given;
        let shown = place.path.display().to_string();
        let leads = if *given == shown {
            String::new()
        } else {
            format!(" (it leads to {})", echo(&shown))
        };
        let (what, folders) = match place.kind {
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

fn real_folder(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    if !path.is_dir() {
        let why = format!("{} is not a folder", path.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
    }
    Ok(path)
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
///
/// # Errors
/// When links lead round in circles.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
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
