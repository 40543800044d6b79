//! What there is of OpenCode and our plugin, for `doctor`. Nothing is changed, and no OpenCode is
//! started.

use std::{env, path::Path};

use asyncagents_core::agent::ToolSpec;
use asyncagents_hosts::{
    opencode::version,
    opencode2::service::{ServiceError, Unusable},
    plugin,
};
use asyncagents_views::{FindingState, FindingView};

use super::{
    super::doctor::{finding, problem},
    copies::{PluginCopy, copies, entries},
    opencode2::{self, State},
    place::{Surroundings, is_same},
    plugin_file::{self, Found},
    programs,
};
use crate::{exit::Failure, on_path::is_program};

/// What there is of OpenCode and our plugin.
pub(in crate::commands) async fn findings(tools: &[ToolSpec]) -> Result<Vec<FindingView>, Failure> {
    let around = Surroundings::look()?;
    let mut found = opencodes(&around.here).await;
    let has_opencode = found
        .iter()
        .any(|finding| finding.state == FindingState::Ok);
    let looked = copies(&around.all()).and_then(|copies| Ok((copies, foreign(&around)?)));
    let (copies, foreign) = match looked {
        Ok(found) => found,
        Err(error) => {
            let mend = "make it readable, or move it away".to_owned();
            found.push(problem("plugin", error.to_string(), mend));
            return Ok(found);
        }
    };
    found.extend(foreign);
    if copies.is_empty() {
        let text = "the plugin is not installed here".to_owned();
        found.push(if has_opencode {
            problem("plugin", text, "`asyncagents setup` installs it".to_owned())
        } else {
            finding("plugin", FindingState::Note, text)
        });
        return Ok(found);
    }
    found.extend(copies.iter().map(|copy| of_copy(copy, tools)));
    found.extend(second_copies(&around, &copies));
    found.extend(loaded(&around, &copies).await);
    Ok(found)
}

async fn opencodes(here: &Path) -> Vec<FindingView> {
    let about = "opencode";
    let (programs, problems) = programs::installed(here).await;
    let mut found: Vec<FindingView> = programs
        .iter()
        .map(|program| {
            let version = version::in_line(&program.version);
            let text = format!("{version}, {}", program.path.display());
            match &program.generation {
                Ok(_) => finding(about, FindingState::Ok, text),
                Err(why) => problem(about, text, why.clone()),
            }
        })
        .collect();
    let mute = |why: String| {
        let mend = "install it again, or take it from the PATH".to_owned();
        problem(about, why, mend)
    };
    found.extend(problems.into_iter().map(mute));
    if found.is_empty() {
        let text = "none on the PATH".to_owned();
        found.push(finding(about, FindingState::Note, text));
    }
    found
}

/// Files of others where the plugin would be.
fn foreign(around: &Surroundings) -> Result<Vec<FindingView>, Failure> {
    let mut found = Vec::new();
    for file in around.all().iter().flat_map(|place| place.files()) {
        if let Found::Foreign(what) = plugin_file::find(&file)? {
            let text = format!("{} is {what}", file.display());
            found.push(finding("plugin", FindingState::Note, text));
        }
    }
    Ok(found)
}

/// Whether a copy is as this version writes it, and its program is there.
fn of_copy(copy: &PluginCopy, tools: &[ToolSpec]) -> FindingView {
    let name = copy.file.display();
    let command = copy.place.command("");
    let Some(program) = plugin_file::program_in(&copy.text, tools) else {
        let text = format!("{name}, of another version, or changed by hand");
        return problem("plugin", text, format!("{command} updates it"));
    };
    if !is_program(Path::new(&program)) {
        let text = format!("{name} names {program}, which cannot be started: there is no bridge");
        return problem("plugin", text, format!("{command} names this program"));
    }
    if plugin::render(&program, tools) != copy.text {
        let text = format!("{name}, of another version, or changed by hand");
        return problem("plugin", text, format!("{command} updates it"));
    }
    let text = format!("{name}, up to date, starts {program}");
    if is_same(Path::new(&program), &env::current_exe().unwrap_or_default()) {
        return finding("plugin", FindingState::Ok, text);
    }
    let text = format!("{text}, which is another program than this one");
    if copy.place.is_users() {
        return finding("plugin", FindingState::Note, text);
    }
    problem(
        "plugin",
        text,
        format!("remove it, or {command} names this program"),
    )
}

fn second_copies(around: &Surroundings, copies: &[PluginCopy]) -> Vec<FindingView> {
    let Some((first, others)) = copies.split_first() else {
        return Vec::new();
    };
    let others = others.iter().map(|copy| {
        problem(
            "plugin",
            format!("{} is a second copy", copy.file.display()),
            "`asyncagents setup opencode` leaves one".to_owned(),
        )
    });
    let entries = entries(around).into_iter();
    let entries = entries.filter(|entry| entry.is_second(&first.file));
    let entries = entries.map(|entry| {
        let (settings, file) = (entry.settings.display(), entry.file.display());
        problem(
            "plugin",
            format!("{settings} names {file}, a second copy"),
            "take the entry out".to_owned(),
        )
    });
    others.chain(entries).collect()
}

/// Whether the background server of OpenCode 2 has loaded it, if one runs.
async fn loaded(around: &Surroundings, copies: &[PluginCopy]) -> Option<FindingView> {
    let about = "plugin";
    let asked = match opencode2::ask_running(&around.here).await {
        Ok(asked) => asked?,
        Err(error) => return Some(not_asked(about, &error)),
    };
    let files: Vec<&Path> = copies.iter().map(|copy| copy.file.as_path()).collect();
    let who = &asked.who;
    let restart = || "`asyncagents setup opencode --check` says more".to_owned();
    Some(match asked.state_of(&files) {
        State::Loaded => finding(about, FindingState::Ok, format!("loaded by {who}")),
        State::Failed(why) => problem(about, format!("refused by {who}: {why}"), restart()),
        State::Missing | State::NothingAtAll => {
            problem(about, format!("not loaded by {who}"), restart())
        }
    })
}

/// A server that was not asked. One that has ended leaves its file, which is no problem; but nobody
/// else is to read or write that.
fn not_asked(about: &'static str, error: &anyhow::Error) -> FindingView {
    let text = format!("the background server of OpenCode 2 was not asked: {error:#}");
    let service = error.downcast_ref::<ServiceError>();
    match service.map(|service| &service.why) {
        Some(Unusable::Open(_)) => {
            let mend = "`opencode service restart` when it is closed".to_owned();
            problem(about, text, mend)
        }
        Some(Unusable::OtherUser | Unusable::NotAFile) => {
            let mend = "remove it, then `opencode service restart`".to_owned();
            problem(about, text, mend)
        }
        _ => finding(about, FindingState::Note, text),
    }
}
