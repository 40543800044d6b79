//! `edit`: replaces a piece of a file.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use asyncagents_core::{
    agent::{Kind, Preview},
    arguments::Arguments,
    lock::lock,
};

use super::{Call, Site, Tool, nearest, numbered::numbered, similar_name, write::must_be_current};
use crate::{exact_file, fit_answer::cut_line, memory::Stamp, places::Place};

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    description: "Replaces text in a file that you have read. `old` must be exactly what the \
    file has, without line numbers, and be there once: add lines around it until it is, or set \
    `replace_all`.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["path","old","new"]}"#,
    example: r#"{"path": "src/main.rs", "old": "let a = 1;", "new": "let a = 2;"}"#,
    read,
};

const LARGEST: u64 = 64 * 1024 * 1024;
/// Lines shown before and after a change.
const AROUND: usize = 3;
const MOST_SHOWN: usize = 40;
/// What is shown of a line.
pub(super) const LONGEST_LINE: usize = 400;

/// What to replace with what.
struct Edit {
    old: String,
    new: String,
    all: bool,
}

fn read(arguments: &Arguments) -> Result<Call, String> {
    let path = arguments.filled_text("path")?;
    let edit = Edit {
        old: arguments.text("old")?,
        new: arguments.text("new")?,
        all: arguments.flag("replace_all")?,
    };
    if edit.old.is_empty() {
        let why = "is empty; to make or replace a whole file use `write`";
        return Err(arguments.wrong("old", why));
    }
    if edit.old == edit.new {
        return Err(arguments.wrong("new", "is the same as `old`, so nothing would change"));
    }
    Ok(Call {
        preview: Some(Preview::Edit {
            old: edit.old.clone(),
            new: edit.new.clone(),
            everywhere: edit.all,
        }),
        ..Call::on_path(Kind::Edit, path, |site, place| edit.work(site, place))
    })
}

impl Edit {
    fn work(self, site: &Site, place: &Place) -> Result<String, String> {
        let workspace = site.workspace;
        let _alone = lock(&workspace.changing);
        let shown = &place.shown;
        if !place.path.exists() {
            let missing = similar_name::missing(place, site);
            return Err(format!("{missing}. To make a file use `write`."));
        }
        let (before, stamp) = load(&place.path, shown)?;
        let seen = workspace.memory.compare(&place.path, stamp);
        must_be_current(seen, shown)?;

        let (old, new) = self.with_line_ends_of(&before);
        let found: Vec<_> = before.match_indices(&old).map(|(at, _)| at).collect();
        let first = match (&found[..], self.all) {
            ([], _) => return Err(nearest::not_found(&before, &self.old, shown)),
            ([first], _) | ([first, ..], true) => *first,
            ([_, ..], false) => return Err(ambiguous(&before, &found, shown)),
        };
        let grown = (before.len() - found.len() * old.len())
            .saturating_add(found.len().saturating_mul(new.len()));
        if grown as u64 > LARGEST {
            return Err(format!(
                "{} with all of these changes: nothing was changed",
                too_large(&format!("{shown} would be"))
            ));
        }
        let after = before.replace(&old, &new);
        let stamp = exact_file::replace(&place.path, after.as_bytes())
            .map_err(|error| format!("cannot write {shown}: {error}"))?;
        workspace.memory.saw(&place.path, stamp);

        let done = match found.len() {
            1 => format!("{shown} changed"),
            times => format!("{shown} changed in {times} places; the first"),
        };
        Ok(format!(
            "{done}:\n{}",
            surroundings(&after, first, new.len())
        ))
    }

    /// A model writes plain line ends; in a file with CRLF they mean CRLF.
    fn with_line_ends_of(&self, file: &str) -> (String, String) {
        let only_returns = file.matches('\n').count() == file.matches("\r\n").count();
        let given = format!("{}{}", self.old, self.new);
        if file.contains("\r\n") && only_returns && !given.contains('\r') {
            let ends = |text: &str| text.replace('\n', "\r\n");
            (ends(&self.old), ends(&self.new))
        } else {
            (self.old.clone(), self.new.clone())
        }
    }
}

fn load(path: &Path, shown: &str) -> Result<(String, Stamp), String> {
    let broken = |error: io::Error| format!("cannot read {shown}: {error}");
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(format!("{shown} is a folder")),
        Ok(found) if !found.is_file() => return Err(super::read::special(shown)),
        Ok(_) => {}
        Err(error) => return Err(broken(error)),
    }
    let file = exact_file::open(path).map_err(broken)?;
    let stamp = Stamp::of(&file.metadata().map_err(broken)?);
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let mut within_bounds = file.take(LARGEST + 1);
    within_bounds.read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 > LARGEST {
        let too_large = too_large(&format!("{shown} is"));
        return Err(format!("{too_large}: change it with bash"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{shown} is not UTF-8 text: change it with bash"))?;
    Ok((text, stamp))
}

fn too_large(what: &str) -> String {
    format!("{what} larger than {} MB", LARGEST / 1024 / 1024)
}

fn ambiguous(text: &str, found: &[usize], shown: &str) -> String {
    let line = |at: &usize| (line_of(text, *at) + 1).to_string();
    let mut lines: Vec<_> = found.iter().take(20).map(line).collect();
    if found.len() > lines.len() {
        lines.push("…".to_owned());
    }
    format!(
        "`old` is in {shown} {} times, at lines {}: add lines around it until it is unique, or set \
         `replace_all`",
        found.len(),
        lines.join(", ")
    )
}

fn surroundings(text: &str, at: usize, length: usize) -> String {
    let first = line_of(text, at).saturating_sub(AROUND);
    let last = line_of(text, at + length) + AROUND;
    let shown = (last - first + 1).min(MOST_SHOWN);
    let lines = text.lines().skip(first).take(shown);
    let mut lines = numbered(lines.map(|line| cut_line(line, LONGEST_LINE)), first + 1);
    if shown < last - first + 1 {
        lines.push_str("[…]\n");
    }
    lines
}

/// The line in which a byte is, from 0.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
}
