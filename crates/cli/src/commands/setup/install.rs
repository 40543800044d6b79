//! Installs and removes the plugin.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use asyncagents_core::agent::ToolSpec;
use asyncagents_hosts::plugin;

use super::{
    place::{Place, Surroundings, Whose, is_same},
    plugin_file::{self, Found},
};
use crate::{
    exit::{Exit, Failure},
    print,
};

const NEXT: &str = "\
Next: restart OpenCode and try \"Launch two background agents: one lists what this project does, \
one looks for dead code.\"
`asyncagents setup opencode --check` shows whether OpenCode sees the tools.
";

/// Puts the plugin there, or a newer one in its place.
pub(super) fn install(
    around: &Surroundings,
    place: &Place,
    tools: &[ToolSpec],
) -> Result<Exit, Failure> {
    let program = own_program().map_err(Failure::Machine)?;
    let file = place.file();
    let wanted = plugin::render(&program, tools);
    let (happened, next) = match plugin_file::find(&file)? {
        Found::Foreign(what) => return Err(plugin_file::foreign(&file, what)),
        Found::Ours(text) if text == wanted => ("is up to date", ""),
        Found::Ours(_) => {
            plugin_file::write(&file, &wanted)?;
            ("is updated", NEXT)
        }
        Found::Nothing => {
            plugin_file::write(&file, &wanted)?;
            ("is installed", NEXT)
        }
    };
    print::answer(&format!("{} {happened}.", file.display()))?;
    if is_in_build_folder(Path::new(&program)) {
        print::remark(&format!(
            "It names {program}, which is in a build folder: install it again when that is gone.\n"
        ));
    }
    if place.whose == Whose::User && around.has_own() {
        print::remark("OpenCode loads it while OPENCODE_CONFIG_DIR is set as it is now.\n");
    }
    for remark in second_copies(around, &file)
        .into_iter()
        .chain(named_in_settings(around))
    {
        print::remark(&format!("{remark}\n"));
    }
    print::remark(next);
    Ok(Exit::Done)
}

/// Takes the plugin away, and the folders that were only there for it.
pub(super) fn remove(place: &Place) -> Result<Exit, Failure> {
    let mut removed = false;
    let mut foreign = None;
    for file in place.files() {
        match plugin_file::find(&file)? {
            Found::Nothing => {}
            Found::Foreign(what) => foreign = Some(plugin_file::foreign(&file, what)),
            Found::Ours(_) => {
                plugin_file::remove(&file)?;
                let path = file.display();
                print::answer(&format!("{path} is removed. Restart OpenCode."))?;
                remove_empty_folders(place, &file);
                removed = true;
            }
        }
    }
    if let Some(foreign) = foreign {
        return Err(foreign);
    }
    if !removed {
        let path = place.file();
        print::answer(&format!(
            "There is no plugin to remove: {} is not there.",
            path.display()
        ))?;
    }
    Ok(Exit::Done)
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
            program.display()
        )
    })
}

/// Whether cargo works in the program's folder, whatever that is called.
fn is_in_build_folder(program: &Path) -> bool {
    let folder = program.parent();
    folder.is_some_and(|folder| folder.join(".cargo-lock").exists())
}

/// Other copies that OpenCode loads in this folder: it runs all of them.
pub(super) fn second_copies(around: &Surroundings, file: &Path) -> Vec<String> {
    let mut remarks = Vec::new();
    for place in around.all() {
        for copy in place.files() {
            let is_ours = matches!(plugin_file::find(&copy), Ok(Found::Ours(_)));
            if !is_ours || is_same(&copy, file) {
                continue;
            }
            let remedy = if place.files().iter().any(|near| near == file) {
                // The command would remove both.
                "remove one of them".to_owned()
            } else {
                format!("{} removes it", place.command(" --remove"))
            };
            let copy = copy.display();
            remarks.push(format!(
                "There is a second copy, {copy}, and OpenCode runs both here; {remedy}."
            ));
        }
    }
    remarks
}

/// Files of settings that name the plugin although OpenCode finds it by itself.
fn named_in_settings(around: &Surroundings) -> Vec<String> {
    let names_it = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.trim().starts_with("//"));
        lines.any(|line| line.contains("asyncagents.js\""))
    };
    let files = around.settings().into_iter().filter(names_it);
    let remark = |file: PathBuf| {
        format!(
            "{} names asyncagents.js among its plugins; OpenCode finds it without that, so the \
             entry can go.",
            file.display()
        )
    };
    files.map(remark).collect()
}
