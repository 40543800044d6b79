//! The skills there are, and which of several with one name counts.

use std::{
    cmp::Reverse,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

use super::{Flaw, Skill, name_key};
use crate::wording::listed;

/// Whose a skill is. A higher layer always beats a lower one; the highest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Of the administrator of the machine.
    Enterprise,
    User,
    Project,
    Plugin,
}

impl Layer {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Enterprise => "enterprise",
            Layer::User => "user",
            Layer::Project => "project",
            Layer::Plugin => "plugin",
        }
    }
}

/// A `SKILL.md` that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub layer: Layer,
    /// Which folder of its layer it was found in, the nearest first.
    pub place: usize,
    pub file: PathBuf,
    /// The folder of the plugin that it is part of.
    pub plugin: Option<PathBuf>,
    /// What is in it, or what is wrong with it.
    pub skill: Result<Arc<Skill>, Vec<Flaw>>,
}

/// A skill that can be used, or could if another of its name were not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub layer: Layer,
    pub file: PathBuf,
    /// The folder of the plugin that it is part of.
    pub plugin: Option<PathBuf>,
    pub skill: Arc<Skill>,
    /// The file that counts in its place.
    pub shadowed_by: Option<PathBuf>,
}

/// The skills there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    /// In order: by layer, priority and name.
    pub skills: Vec<Listed>,
    /// The files that cannot be used, each with what is wrong.
    pub broken: Vec<(PathBuf, Vec<Flaw>)>,
}

/// There is no skill of a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownSkill {
    /// There is no file for it.
    #[error("there is no skill `{name}`; there {}", known(names))]
    Unknown { name: String, names: Vec<String> },
    /// Its file cannot be used.
    #[error("the skill `{name}` cannot be used: {}:{}: {}", file.display(), flaw.line, flaw.why)]
    Broken {
        name: String,
        file: PathBuf,
        /// The first thing that is wrong with it.
        flaw: Flaw,
    },
}

/// How many names are listed when an unknown one was asked for.
const NAMES: usize = 30;

fn known(names: &[String]) -> String {
    match names {
        [] => "are none".to_owned(),
        [one] => format!("is {one}"),
        names if names.len() > NAMES => {
            let (first, rest) = names.split_at(NAMES);
            format!("are {} and {} more", first.join(", "), rest.len())
        }
        names => format!("are {}", listed(names, "and")),
    }
}

impl Catalog {
    /// Sorts what was found, and says what counts.
    pub fn new(found: Vec<Found>) -> Self {
        let mut catalog = Catalog::default();
        let mut good = Vec::new();
        for found in found {
            match found.skill {
                Ok(skill) => {
                    let listed = Listed {
                        layer: found.layer,
                        file: found.file,
                        plugin: found.plugin,
                        skill,
                        shadowed_by: None,
                    };
                    good.push((found.place, listed));
                }
                Err(flaws) => catalog.broken.push((found.file, flaws)),
            }
        }
        // Which of one name counts is decided by layer, priority and place.
        let rank = |(place, listed): &(usize, Listed)| {
            let priority = Reverse(listed.skill.manifest.priority);
            (listed.layer, priority, *place, listed.file.clone())
        };
        good.sort_by_cached_key(rank);
        let mut counting: HashMap<String, PathBuf> = HashMap::new();
        for (_, mut listed) in good {
            let name = name_key(&listed.skill.manifest.name);
            listed.shadowed_by = counting.get(&name).cloned();
            if listed.shadowed_by.is_none() {
                counting.insert(name, listed.file.clone());
            }
            catalog.skills.push(listed);
        }
        catalog.skills.sort_by(|one, other| {
            let key = |listed: &Listed| (listed.layer, Reverse(listed.skill.manifest.priority));
            let by_name = || one.skill.manifest.name.cmp(&other.skill.manifest.name);
            key(one).cmp(&key(other)).then_with(by_name)
        });
        catalog.broken.sort();
        catalog
    }

    /// The skills that count.
    pub fn active(&self) -> impl Iterator<Item = &Listed> {
        let skills = self.skills.iter();
        skills.filter(|listed| listed.shadowed_by.is_none())
    }

    /// The skill of a name, in whatever case of letters.
    ///
    /// # Errors
    /// When there is none, or its file cannot be used.
    pub fn get(&self, name: &str) -> Result<&Listed, UnknownSkill> {
        let asked = name.trim().trim_start_matches('/');
        let key = name_key(asked);
        let is_it = |listed: &&Listed| name_key(&listed.skill.manifest.name) == key;
        if let Some(listed) = self.active().find(is_it) {
            return Ok(listed);
        }
        let in_folder = |(file, _): &&(PathBuf, Vec<Flaw>)| folder_key(file) == key;
        if let Some((file, flaws)) = self.broken.iter().find(in_folder)
            && let Some(flaw) = flaws.first()
        {
            return Err(UnknownSkill::Broken {
                name: asked.to_owned(),
                file: file.clone(),
                flaw: flaw.clone(),
            });
        }
        let names = self
            .active()
            .map(|listed| listed.skill.manifest.name.clone());
        Err(UnknownSkill::Unknown {
            name: asked.to_owned(),
            names: names.collect(),
        })
    }

    /// The skill that a person means, who may also know it by its folder or by its name in lists.
    /// For models a skill has one name: rules are about that.
    ///
    /// # Errors
    /// When there is none, or its file cannot be used.
    pub fn get_for_person(&self, name: &str) -> Result<&Listed, UnknownSkill> {
        let key = name_key(name);
        let is_it = |listed: &&Listed| {
            let title = listed.skill.manifest.title.as_deref();
            folder_key(&listed.file) == key || title.is_some_and(|title| name_key(title) == key)
        };
        self.get(name).or_else(|unknown| match unknown {
            UnknownSkill::Unknown { .. } => self.active().find(is_it).ok_or(unknown),
            UnknownSkill::Broken { .. } => Err(unknown),
        })
    }
}

fn folder_key(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    name_key(&folder.to_string_lossy())
}
