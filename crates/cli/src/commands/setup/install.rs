//! Installs and removes the plugin.

use std::{env, fs, path::Path};

use anyhow::{Context, anyhow};
use asyncagents_core::agent::ToolSpec;
use asyncagents_hosts::plugin;

use super::{
    copies::{ONLY_ONE, PluginCopy, Twin, copies, entries},
    place::{Place, Surroundings, Whose},
    plugin_file::{self, Draft, Found},
};
use crate::{
    exit::{Exit, Failure},
    make_visible::shown_path,
    print,
};

const TRY: &str = "try \"Launch two background agents: one lists what this project does, one looks \
                   for dead code.\"";

/// One installation: what there is, and where the plugin goes.
pub(super) struct Plan<'a> {
    around: &'a Surroundings,
    copies: Vec<PluginCopy>,
    place: Place,
}

impl<'a> Plan<'a> {
    /// To install in a place; or, for the user, where a copy is that all environments load. That is
    /// kept rather than one that a single environment loads.
    pub(super) fn new(around: &'a Surroundings, place: Place) -> Result<Self, Failure> {
        let mut copies = copies(&around.all())?;
        copies.sort_by_key(|copy| !around.is_usual(&copy.place));
        let usual = copies.first().filter(|copy| around.is_usual(&copy.place));
        let place = match usual {
            Some(usual) if place.whose != Whose::Project => usual.place.clone(),
            _ => place,
        };
        Ok(Self {
            around,
            copies,
            place,
        })
    }

    /// Where the plugin goes.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Puts the plugin there, or a newer one in its place, and takes away what would be loaded beside
    /// it. Returns whether anything has changed.
    pub(super) fn install(&self, tools: &[ToolSpec]) -> Result<bool, Failure> {
        let Self {
            around,
            copies,
            place,
        } = self;
        let mut elsewhere = copies.iter().filter(|copy| copy.place != *place);
        if let (Whose::Project, Some(copy)) = (place.whose, elsewhere.next()) {
            return leave_to(copy, around, copies);
        }
        let program = own_program().map_err(Failure::Machine)?;
        let file = place.file();
        may_change(place, &file)?;
        let wanted = plugin::render(&program, tools);
        let (happened, draft) = match plugin_file::find(&file)? {
            Found::Foreign(what) => return Err(plugin_file::foreign(&file, what)),
            Found::Ours(text) if text == wanted => ("is up to date", None),
            Found::Ours(_) => ("is updated", Some(Draft::write(&file, &wanted)?)),
            Found::Nothing => ("is installed", Some(Draft::write(&file, &wanted)?)),
        };
        // A running OpenCode 2 looks at once, and would find two if they went later.
        let removed = remove_others(copies, &file)?;
        let changed = draft.is_some() || removed;
        draft.map_or(Ok(()), Draft::put)?;
        print::answer(&format!("{} {happened}.", shown_path(&file)))?;
        if is_in_build_folder(Path::new(&program)) {
            print::remark(&format!(
                "It names {program}, which is in a build folder: install it again when that is \
                 gone.\n"
            ));
        }
        if place.whose == Whose::User && around.has_own() {
            print::remark("OpenCode loads it while OPENCODE_CONFIG_DIR is set as it is now.\n");
        }
        remark_entries(around, &file);
        Ok(changed)
    }
}

/// A project gets no copy of its own where another one is loaded.
fn leave_to(
    copy: &PluginCopy,
    around: &Surroundings,
    copies: &[PluginCopy],
) -> Result<bool, Failure> {
    let removed = remove_others(copies, &copy.file)?;
    print::answer(&format!(
        "{} serves this folder too, so it gets none of its own: {ONLY_ONE}. {} updates that one.",
        shown_path(&copy.file),
        copy.place.command("")
    ))?;
    remark_entries(around, &copy.file);
    Ok(removed)
}

fn remark_entries(around: &Surroundings, kept: &Path) {
    for entry in entries(around) {
        print::remark(&format!("{}\n", entry.remark(kept)));
    }
}

/// What to do after an installation that has changed something, for the generations of OpenCode
/// that there may be.
pub(super) fn say_next(one: bool, two: bool) {
    let restart = match (one, two) {
        (true, true) => "restart OpenCode (OpenCode 2 has loaded it by now) and ",
        (true, false) => "restart OpenCode and ",
        (false, _) => "",
    };
    print::remark(&format!("Next: {restart}{TRY}\n"));
}

/// How to see whether an installation has helped.
pub(super) fn say_check() {
    print::remark("`asyncagents setup opencode --check` shows whether OpenCode sees the tools.\n");
}

/// Removes what OpenCode would load beside the file that stays. Returns whether there was any.
fn remove_others(copies: &[PluginCopy], kept: &Path) -> Result<bool, Failure> {
    let mut removed = false;
    for copy in copies {
        let file = shown_path(&copy.file);
        match copy.twin(kept) {
            Twin::Itself => {}
            Twin::Second if copy.place.leads_outside(&copy.file) => print::remark(&format!(
                "{file} is another copy, and OpenCode loads both here; it was left alone: {OUTSIDE}.\n"
            )),
            Twin::Second => {
                plugin_file::remove(&copy.file)?;
                remove_empty_folders(&copy.place, &copy.file);
                print::answer(&format!(
                    "{file} was another copy and is removed: {ONLY_ONE}."
                ))?;
                removed = true;
            }
            Twin::ByLinkedFolder | Twin::Target => print::remark(&format!(
                "{file} is the same file by a link, and OpenCode loads both here: {ONLY_ONE}. \
                 Remove the link.\n"
            )),
        }
    }
    Ok(removed)
}

/// Takes the plugin away, and the folders that were only there for it.
pub(super) fn remove(place: &Place) -> Result<Exit, Failure> {
    let found = copies(std::slice::from_ref(place))?;
    for PluginCopy { file, .. } in &found {
        if file.symlink_metadata().is_err() {
            // Its folder is a link to another, and it is removed already.
            continue;
        }
        may_change(place, file)?;
        plugin_file::remove(file)?;
        let path = shown_path(file);
        print::answer(&format!("{path} is removed. Restart OpenCode."))?;
        remove_empty_folders(place, file);
    }
    for file in place.files() {
        if let Found::Foreign(what) = plugin_file::find(&file)? {
            return Err(plugin_file::foreign(&file, what));
        }
    }
    if found.is_empty() {
        let path = place.file();
        print::answer(&format!(
            "There is no plugin to remove: {} is not there.",
            shown_path(&path)
        ))?;
    }
    Ok(Exit::Done)
}

/// Why a file of a project is left alone.
const OUTSIDE: &str = "a link of the project leads out of it";

fn may_change(place: &Place, file: &Path) -> Result<(), Failure> {
    if !place.leads_outside(file) {
        return Ok(());
    }
    let file = shown_path(file);
    Err(Failure::Input(anyhow!(
        "{file} was left alone: {OUTSIDE}. Remove the link and try again"
    )))
}

/// Only an empty folder can be removed, so nothing is lost.
fn remove_empty_folders(place: &Place, file: &Path) {
    let Some(folder) = file.parent() else { return };
    // OpenCode makes the user's folder itself; `.opencode` in a project may be our doing.
    if fs::remove_dir(folder).is_ok() && place.whose == Whose::Project {
        let _ = fs::remove_dir(place.folder());
    }
}

/// This program, by the path that stays when the folder or the PATH changes.
fn own_program() -> anyhow::Result<String> {
    let program = env::current_exe().and_then(|program| program.canonicalize());
    let program = program.context("the path of this program cannot be found")?;
    let text = program.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        anyhow!(
            "{} is not a path that a plugin can name: it is not UTF-8",
            shown_path(&program)
        )
    })
}

/// Whether cargo works in the program's folder, whatever that is called.
fn is_in_build_folder(program: &Path) -> bool {
    let folder = program.parent();
    folder.is_some_and(|folder| folder.join(".cargo-lock").exists())
}
