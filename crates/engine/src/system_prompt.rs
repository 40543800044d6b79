//! What a model is told before everything else. It is written once, when a session begins,
//! and kept with it: every request of the session begins with the same bytes.

use std::{fmt::Write, fs, path::Path};

use asyncagents_core::{agent::Profile, id::AgentName, moment::Moment};

/// What is kept of a project's own instructions.
const MOST_INSTRUCTIONS: usize = 32_000;

/// Where projects keep instructions for agents. The first that is there counts.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md"];

/// What goes into it.
pub(crate) struct Facts<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) workspace: &'a Path,
    pub(crate) now: Moment,
    /// Whom it may delegate to; nobody if it may not.
    pub(crate) agents: Vec<(&'a AgentName, &'a str)>,
    pub(crate) prefix: &'a str,
    /// How commands are run.
    pub(crate) sandbox: String,
}

pub(crate) fn write(facts: &Facts) -> String {
    let mut text = facts.profile.prompt.clone();
    let date = jiff::Timestamp::from_millisecond(facts.now.as_millis())
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n\n# Workspace\n\nYou work in {} on {}. This conversation began on {date} (UTC). {}\n",
        facts.workspace.display(),
        std::env::consts::OS,
        facts.sandbox,
    );
    if !facts.agents.is_empty() {
        let prefix = facts.prefix;
        let _ = write!(
            text,
            "\n# Background agents\n\n{prefix}task launches one and returns at once; you are told \
             when it has finished. You may end your turn while they work. Agents:\n",
        );
        for (name, description) in &facts.agents {
            let _ = writeln!(text, "- {name}: {description}");
        }
    }
    if let Some((name, instructions)) = instructions(facts.workspace) {
        let _ = write!(
            text,
            "\n# Instructions of this project ({name})\n\n{instructions}\n"
        );
    }
    text
}

fn instructions(workspace: &Path) -> Option<(&'static str, String)> {
    INSTRUCTIONS.iter().find_map(|name| {
        let text = read_inside(workspace, &workspace.join(name))?;
        let text = String::from_utf8_lossy(&text);
        let kept: String = text.trim().chars().take(MOST_INSTRUCTIONS).collect();
        (!kept.is_empty()).then_some((*name, kept))
    })
}

/// How large a file of instructions may be.
const LARGEST: u64 = 1_000_000;

/// A regular file of reasonable size that is really inside a folder: a project could have a
/// link to anything under this name, a private key, or a device without an end.
pub(crate) fn read_inside(folder: &Path, file: &Path) -> Option<Vec<u8>> {
    let (real, folder) = (file.canonicalize().ok()?, folder.canonicalize().ok()?);
    let about = fs::metadata(&real).ok()?;
    let fits = real.starts_with(&folder) && about.is_file() && about.len() <= LARGEST;
    fits.then(|| fs::read(&real).ok())?
}
