//! `glob`: files by name.

use std::{fs, path::PathBuf, time::SystemTime};

use asyncagents_core::{
    agent::{Kind, Reach},
    arguments::Arguments,
};

use super::{
    Call, Site, Tool,
    walk::{out_of_time, pattern, walk},
};
use crate::places::{Place, echo};

pub(super) const TOOL: Tool = Tool {
    name: "glob",
    description: "Finds files by name, the newest first, but those that .gitignore leaves \
    out. A pattern without a slash fits in every folder.",
    schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"as src/**/*.{ts,js}"},"path":{"type":"string"}},"required":["pattern"]}"#,
    example: r#"{"pattern": "src/**/*.rs"}"#,
    read,
};

const MOST: usize = 200;

fn read(arguments: &Arguments) -> Result<Call, String> {
    let pattern = arguments.filled_text("pattern")?;
    if pattern.starts_with('/') || pattern.starts_with("../") {
        let why = "must be relative to `path`; put the folder there";
        return Err(arguments.wrong("pattern", why));
    }
    let path = folder(arguments)?;
    Ok(Call {
        title: Some(pattern.clone()),
        ..Call::on_path(Kind::Read, path, move |site, place| {
            glob(&pattern, site, place)
        })
    })
}

fn glob(wanted: &str, site: &Site, place: &Place) -> Result<String, String> {
    let Site {
        workspace,
        reaching,
        ..
    } = site;
    if !place.path.is_dir() {
        return Err(format!("{} is not a folder", place.shown));
    }
    let pattern = pattern(wanted)?;
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let in_time = walk(workspace, &place.path, site.abandoned, |entry, _| {
        let path = entry.path();
        if path
            .strip_prefix(&place.path)
            .is_ok_and(|below| pattern.is_match(below))
            // A name may be known though what is in the file has to be asked for.
            && reaching(&workspace.places.shown(path)) != Reach::Hide
        {
            let modified = fs::symlink_metadata(path).and_then(|file| file.modified());
            found.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), path.to_owned()));
        }
        true
    });
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));

    let mut text = String::new();
    let mut shown = 0;
    for (_, path) in found.iter().take(MOST) {
        let line = workspace.places.shown(path);
        if text.len() + line.len() + 300 > workspace.settings.output_limit {
            break;
        }
        text.push_str(&line);
        text.push('\n');
        shown += 1;
    }
    if found.is_empty() {
        let pattern = echo(wanted);
        text = format!("No file fits `{pattern}` in {}.\n", place.named());
    }
    if shown < found.len() {
        let total = found.len();
        text.push_str(&format!(
            "[{shown} of {total} files; use a narrower pattern for the others]\n"
        ));
    }
    if !in_time {
        text.push_str(&out_of_time());
    }
    Ok(text)
}

/// The folder to search, the workspace if the call names none.
pub(super) fn folder(arguments: &Arguments) -> Result<String, String> {
    let path = arguments.optional_text("path")?;
    let path = path.filter(|path| !path.trim().is_empty());
    Ok(path.unwrap_or_else(|| ".".to_owned()))
}
