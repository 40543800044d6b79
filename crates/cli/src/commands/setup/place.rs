//! Where OpenCode loads plugins from.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};

use super::plugin_file::FILE;
use crate::{exit::Failure, make_visible::shown_path};

/// What decides where OpenCode looks.
#[derive(Debug)]
pub(in crate::commands) struct Surroundings {
    /// The current folder.
    pub(in crate::commands) here: PathBuf,
    home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    config: Option<PathBuf>,
    /// `OPENCODE_CONFIG_DIR`: OpenCode loads from it too, after all other places.
    own: Option<PathBuf>,
}

/// A folder of OpenCode's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Place {
    folder: PathBuf,
    pub(in crate::commands) whose: Whose,
    /// The project that it is in, if it is not the user's.
    project: Option<PathBuf>,
}

/// How a place is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Whose {
    /// `--user`.
    User,
    /// `--project`.
    Project,
    /// Not at all: a folder above, the other one of the user's.
    Other,
}

impl Surroundings {
    /// Reads them from the environment.
    pub(in crate::commands) fn look() -> Result<Self, Failure> {
        let here = env::current_dir().context("the current folder cannot be found");
        // An empty variable is one that is not set, for OpenCode too.
        let path = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let here = here.map_err(Failure::Input)?;
        Ok(Self {
            own: path("OPENCODE_CONFIG_DIR").map(|own| here.join(own)),
            here,
            home: path("HOME").filter(|home| home.is_absolute()),
            config: path("XDG_CONFIG_HOME"),
        })
    }

    /// The place for all projects of the user.
    pub(super) fn user(&self) -> Result<Place, Failure> {
        let folder = match &self.own {
            Some(own) => own.clone(),
            None => self.config_folder()?,
        };
        Ok(Place {
            folder,
            whose: Whose::User,
            project: None,
        })
    }

    /// The place for the current folder.
    pub(super) fn project(&self) -> Place {
        Place {
            whose: Whose::Project,
            ..self.in_project(&self.here)
        }
    }

    /// Whether OpenCode loads from a place in all of the user's environments and projects.
    pub(super) fn is_usual(&self, place: &Place) -> bool {
        let usual = self.config_folder();
        usual.is_ok_and(|usual| is_same(&usual, &place.folder))
    }

    /// Whether the user's place is one that only this environment names.
    pub(super) fn has_own(&self) -> bool {
        self.own.is_some()
    }

    /// Every place that an OpenCode in the current folder loads plugins from; the user's and
    /// the project's first.
    pub(in crate::commands) fn all(&self) -> Vec<Place> {
        let mut all: Vec<Place> = self.user().into_iter().collect();
        all.push(self.project());
        let homes = self.home.iter().map(|home| home.join(".opencode"));
        let users = self.config_folder().into_iter().chain(homes);
        let users = users.map(|folder| Place {
            folder,
            whose: Whose::Other,
            project: None,
        });
        let above = self.project_folders().skip(1);
        let above = above.map(|folder| self.in_project(folder));
        for other in users.chain(above) {
            if all
                .iter()
                .all(|place| !is_same(&place.folder, &other.folder))
            {
                all.push(other);
            }
        }
        all
    }

    /// What a folder of a project has for OpenCode. A repository is one project; elsewhere each
    /// folder is its own.
    fn in_project(&self, folder: &Path) -> Place {
        let root = self.repository().unwrap_or(folder);
        Place {
            folder: folder.join(".opencode"),
            whose: Whose::Other,
            project: Some(root.to_owned()),
        }
    }

    /// The files in which OpenCode could be told of more plugins.
    pub(super) fn settings(&self) -> BTreeSet<PathBuf> {
        let places = self.all().into_iter().map(|place| place.folder);
        let folders = places.chain(self.project_folders().map(Path::to_owned));
        let files = |folder: PathBuf| {
            ["opencode.json", "opencode.jsonc", "config.json"].map(|name| folder.join(name))
        };
        folders.flat_map(files).collect()
    }

    /// The current folder and those above it, up to the root of the repository.
    fn project_folders(&self) -> impl Iterator<Item = &Path> {
        let root = self.repository();
        let within = move |folder: &&Path| root.is_none_or(|root| folder.starts_with(root));
        self.here.ancestors().take_while(within)
    }

    fn repository(&self) -> Option<&Path> {
        let mut above = self.here.ancestors();
        above.find(|folder| folder.join(".git").exists())
    }

    fn config_folder(&self) -> Result<PathBuf, Failure> {
        let refused = |why: &str| Failure::Input(anyhow!("{why}; --project needs none"));
        let base = match (&self.config, &self.home) {
            (Some(config), _) if config.is_absolute() => config.clone(),
            (Some(_), _) => {
                return Err(refused(
                    "XDG_CONFIG_HOME is not an absolute path, so there is no configuration \
                     folder",
                ));
            }
            (None, Some(home)) => home.join(".config"),
            (None, None) => {
                return Err(refused(
                    "HOME is not set, so there is no configuration folder",
                ));
            }
        };
        Ok(base.join("opencode"))
    }
}

impl Place {
    /// The folders that plugins are loaded from: both generations of OpenCode know both names.
    pub(super) fn plugin_folders(&self) -> [PathBuf; 2] {
        ["plugin", "plugins"].map(|folder| self.folder.join(folder))
    }

    /// Where the plugin can be.
    pub(super) fn files(&self) -> [PathBuf; 2] {
        self.plugin_folders().map(|folder| folder.join(FILE))
    }

    /// Where the plugin goes: into `plugins`, which OpenCode 2 prefers. A link of the user's in
    /// `plugin` stays where it is.
    pub(super) fn file(&self) -> PathBuf {
        let [first, second] = self.files();
        if first.is_symlink() && !is_same(&first, &second) {
            first
        } else {
            second
        }
    }

    /// Whether it is the user's, and not a project's.
    pub(super) fn is_users(&self) -> bool {
        self.project.is_none()
    }

    /// Whether a link that the project has there leads out of it: nothing is written or removed by
    /// such a link, since nobody but the project's author has asked for it.
    pub(super) fn leads_outside(&self, file: &Path) -> bool {
        let Some(project) = &self.project else {
            return false;
        };
        let mut folders = file.ancestors().skip(1);
        let nearest = folders.find(|folder| folder.exists());
        !real(nearest.unwrap_or(file)).starts_with(real(project))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What to type for this place, from the current folder.
    pub(super) fn command(&self, more: &str) -> String {
        let command = "asyncagents setup opencode";
        match (self.whose, self.folder.parent()) {
            (Whose::User, _) => format!("`{command}{more}`"),
            (Whose::Project, _) => format!("`{command} --project{more}`"),
            (Whose::Other, Some(above)) if self.folder.ends_with(".opencode") => {
                format!("`{command} --project{more}` in {}", shown_path(above))
            }
            (Whose::Other, _) => format!("`{command}{more}` without OPENCODE_CONFIG_DIR"),
        }
    }
}

/// Whether two paths lead to one file or folder.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    real(one) == real(other)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
