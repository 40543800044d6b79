//! Whether OpenCode sees the tools, and if not, why.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use asyncagents_core::agent::ToolSpec;
use asyncagents_hosts::{opencode::version::Generation, plugin};

use super::{
    copies::{ONLY_ONE, PluginCopy, copies, entries},
    loader,
    opencode2::{self, State},
    place::{Place, Surroundings, Whose},
    plugin_file::{self, Found},
    programs::Program,
};
use crate::{
    exit::{Exit, Failure},
    make_visible::shown_path,
    print,
    version_line::version_line,
};

/// Where and how to look.
pub(super) struct Check<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) places: &'a [Place],
    /// The folder that OpenCode is asked about.
    pub(super) folder: &'a Path,
    pub(super) tools: &'a [ToolSpec],
}

impl Check<'_> {
    /// Checks all that has to be there, with these programs, and prints each finding.
    pub(super) async fn run(&self, programs: &[Program]) -> Result<Exit, Failure> {
        let mut advice = Vec::new();
        for program in programs {
            advice.extend(say_version(program)?);
        }
        let plugins = look_at_plugins(self.places, self.tools).await?;
        let second = self.second_copies(&plugins);
        for program in programs {
            let of_program = match program.generation {
                Err(_) => None,
                Ok(Generation::One) => self.opencode1(program, &plugins).await?,
                Ok(Generation::Two) => self.opencode2(program, &plugins, &second).await?,
            };
            advice.extend(of_program);
        }
        advice.extend(second);
        if advice.is_empty() {
            return Ok(Exit::Done);
        }
        Err(Failure::Machine(anyhow!(advice.join("\nasyncagents: "))))
    }

    /// Whether an OpenCode 1 that is started for it sees the tools; what to do if not.
    async fn opencode1(
        &self,
        program: &Program,
        plugins: &[Plugin],
    ) -> Result<Option<String>, Failure> {
        let loaded = loader::load(&program.path, self.folder).await;
        let loaded = loaded.map_err(Failure::Machine)?;
        let mut missing = 0;
        for tool in self.tools {
            let is_seen = loaded.tools.contains(&tool.name);
            missing += usize::from(!is_seen);
            let how = if is_seen { "seen" } else { "not seen" };
            print::answer(&format!("tool {}: {how} by OpenCode", tool.name))?;
        }
        let advice = what_to_do(missing, self.tools.len(), plugins, loaded.complaint);
        if advice.is_none() {
            print::answer(&format!("All {} tools are seen.", self.tools.len()))?;
        }
        Ok(advice)
    }

    /// Whether an OpenCode 2 has loaded the plugin: the one that runs, or one that is started for
    /// it. What to do if not.
    async fn opencode2(
        &self,
        program: &Program,
        plugins: &[Plugin],
        second: &[String],
    ) -> Result<Option<String>, Failure> {
        let asked = opencode2::ask(&program.path, self.folder).await;
        let asked = asked.map_err(Failure::Machine)?;
        let files = plugins.iter().map(|plugin| plugin.file.as_path());
        let state = asked.state_of(&files.collect::<Vec<_>>());
        let who = &asked.who;
        print::answer(&format!("plugin: {} by {who}", state.word()))?;
        let broken = plugins.iter().find(|plugin| plugin.is_broken);
        Ok(match state {
            State::Loaded => {
                broken.map(|broken| format!("OpenCode 2 has the plugin, but {}", broken.advice()))
            }
            _ if !second.is_empty() => Some(format!(
                "{who} has not loaded the plugin, of which there is more than one copy"
            )),
            _ if plugins.is_empty() => Some(NOT_THERE.to_owned()),
            State::Failed(why) => Some(match plugins.iter().find(|plugin| !plugin.is_current) {
                Some(old) => format!(
                    "{who} could not load the plugin, which is not of this version; {} updates it",
                    old.place.command("")
                ),
                None => format!("{who} could not load the plugin: {why}"),
            }),
            State::Missing => Some(format!(
                "{who} has not loaded the plugin and does not say why; restart it (`opencode \
                 service restart`) and look at what `opencode plugin list` shows in this folder"
            )),
            State::NothingAtAll => Some(format!(
                "{who} has loaded nothing at all in this folder: a plugin hangs, or two have one \
                 name; look at its log, and restart it with `opencode service restart`"
            )),
        })
    }

    /// What OpenCode loads beside the first copy, wherever that is.
    fn second_copies(&self, plugins: &[Plugin]) -> Vec<String> {
        let Some(first) = plugins.first().map(|plugin| &plugin.file) else {
            return Vec::new();
        };
        let copies = copies(&self.around.all()).unwrap_or_default();
        let others = copies.into_iter().filter(|copy| copy.file != *first);
        let said = others.map(|PluginCopy { file, .. }| {
            format!(
                "there is a second copy, {}: {ONLY_ONE}; `asyncagents setup opencode` leaves one",
                shown_path(&file)
            )
        });
        let entries = entries(self.around).into_iter();
        let entries = entries.filter(|entry| entry.is_second(first));
        let said_of_entries = entries.map(|entry| entry.remark(first));
        said.chain(said_of_entries.collect::<Vec<_>>()).collect()
    }
}

const NOT_THERE: &str = "OpenCode sees none of the tools: the plugin is not there; `asyncagents \
                         setup opencode` installs it";

/// A copy of the plugin.
struct Plugin {
    place: Place,
    file: PathBuf,
    /// This version would write the same.
    is_current: bool,
    /// The program it names cannot be used.
    is_broken: bool,
}

impl Plugin {
    /// What to do about a program that cannot be used.
    fn advice(&self) -> String {
        let command = self.place.command("");
        format!("the program that the plugin names cannot be used; {command} names this one")
    }
}

/// Prints which OpenCode it is; returns why it is not supported, if it is not.
fn say_version(program: &Program) -> Result<Option<String>, Failure> {
    let unknown = program.generation.as_ref().err().cloned();
    let known = if unknown.is_some() {
        "not supported"
    } else {
        "supported"
    };
    let (path, version) = (shown_path(&program.path), &program.version);
    print::answer(&format!("OpenCode: {path}, version {version}: {known}"))?;
    Ok(unknown)
}

/// Prints of every copy whether it is as it should be.
async fn look_at_plugins(places: &[Place], tools: &[ToolSpec]) -> Result<Vec<Plugin>, Failure> {
    let mut plugins = Vec::new();
    let mut foreign = 0;
    for place in places {
        for file in place.files() {
            if let Found::Foreign(what) = plugin_file::find(&file)? {
                foreign += 1;
                print::answer(&format!("plugin: {} is {what}", shown_path(&file)))?;
            }
        }
    }
    for copy in copies(places)? {
        plugins.push(look_at_plugin(copy, tools).await?);
    }
    if plugins.is_empty() && foreign == 0 {
        let wanted = places.first().map(Place::file).unwrap_or_default();
        print::answer(&format!("plugin: {} is not there", shown_path(&wanted)))?;
    }
    Ok(plugins)
}

async fn look_at_plugin(copy: PluginCopy, tools: &[ToolSpec]) -> Result<Plugin, Failure> {
    let PluginCopy { place, file, text } = copy;
    let program = plugin_file::program_in(&text, tools);
    let is_current = program
        .as_deref()
        .is_some_and(|program| plugin::render(program, tools) == text);
    let age = if is_current {
        "up to date"
    } else {
        "of another version, or changed by hand"
    };
    print::answer(&format!("plugin: {}, {age}", shown_path(&file)))?;
    let version = match &program {
        Some(program) => Some(version_of(&place, Path::new(program)).await),
        None => None,
    };
    match (&program, &version) {
        (Some(program), Some(Ok(version))) => {
            print::answer(&format!("program: {program}, {version}"))?;
        }
        (_, Some(Err(error))) => print::answer(&format!("program: {error:#}"))?,
        (None, _) | (_, None) => print::answer("program: the plugin does not say which")?,
    }
    Ok(Plugin {
        place,
        file,
        is_current,
        is_broken: matches!(version, Some(Err(_))),
    })
}

/// The version of a plugin's program. One that a project's file names is run only if it is this
/// one: another user may have written the file.
async fn version_of(place: &Place, program: &Path) -> anyhow::Result<String> {
    let this = env::current_exe().and_then(fs::canonicalize).ok();
    let is_this = this.is_some() && this == fs::canonicalize(program).ok();
    if place.whose == Whose::User || is_this {
        return version_line(program).await;
    }
    let name = shown_path(program);
    fs::metadata(program).with_context(|| format!("{name} cannot be started"))?;
    Ok("which is another program than this one, and was not run".to_owned())
}

/// What is left to do, if not all is well.
fn what_to_do(
    missing: usize,
    all: usize,
    plugins: &[Plugin],
    complaint: Option<String>,
) -> Option<String> {
    let broken = plugins.iter().find(|plugin| plugin.is_broken);
    let old = plugins.iter().find(|plugin| !plugin.is_current);
    let why = if let Some(broken) = broken {
        broken.advice()
    } else if missing == 0 {
        return None;
    } else if plugins.is_empty() {
        "the plugin is not there; `asyncagents setup opencode` installs it".to_owned()
    } else if let Some(switch) = switched_off(plugins) {
        format!("{switch} is set, and keeps it from loading the plugin; unset it")
    } else if let Some(old) = old {
        let command = old.place.command("");
        format!("the plugin is not of this version; {command} updates it")
    } else if let Some(complaint) = complaint {
        format!("it could not load the plugin: {complaint}")
    } else {
        "it has not loaded the plugin and does not say why; look at what `opencode` shows when \
         it starts in this folder"
            .to_owned()
    };
    Some(match missing {
        0 => format!("OpenCode sees the tools, but {why}"),
        _ if missing == all => format!("OpenCode sees none of the tools: {why}"),
        _ => format!("OpenCode does not see {missing} of the {all} tools: {why}"),
    })
}

/// The switch that keeps OpenCode from loading any of these.
fn switched_off(plugins: &[Plugin]) -> Option<&'static str> {
    let is_set = |name: &&str| {
        let value = env::var(name).unwrap_or_default();
        !matches!(value.as_str(), "" | "0" | "false")
    };
    let only_projects = plugins
        .iter()
        .all(|plugin| plugin.place.whose != Whose::User);
    let of_projects = only_projects.then_some("OPENCODE_DISABLE_PROJECT_CONFIG");
    let mut switches = ["OPENCODE_PURE"].into_iter().chain(of_projects);
    switches.find(is_set)
}
