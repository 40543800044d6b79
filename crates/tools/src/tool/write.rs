//! `write`: a whole file.

use std::{fs, io, path::Path};

use asyncagents_core::{
    agent::{Kind, Preview},
    arguments::Arguments,
    lock::lock,
};

use super::{Call, Site, Tool};
use crate::{
    exact_file,
    memory::{Seen, Stamp},
    places::Place,
};

pub(super) const TOOL: Tool = Tool {
    name: "write",
    description: "Writes a whole file and makes its folders. Read a file before you \
    replace it; to change a part use `edit`.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#,
    example: r#"{"path": "notes/plan.md", "content": "First line\n"}"#,
    read,
};

fn read(arguments: &Arguments) -> Result<Call, String> {
    let path = arguments.filled_text("path")?;
    let content = arguments.text("content")?;
    let preview = Preview::Write {
        content: content.clone(),
    };
    Ok(Call {
        preview: Some(preview),
        ..Call::on_path(Kind::Edit, path, move |site, place| {
            write(&content, site, place)
        })
    })
}

fn write(content: &str, site: &Site, place: &Place) -> Result<String, String> {
    let workspace = site.workspace;
    let _alone = lock(&workspace.changing);
    let shown = &place.shown;
    let broken = |error: io::Error| format!("cannot write {shown}: {error}");
    let existed = match fs::symlink_metadata(&place.path) {
        Ok(found) if found.is_dir() => return Err(format!("{shown} is a folder")),
        Ok(found) if found.is_file() => {
            let seen = workspace.memory.compare(&place.path, Stamp::of(&found));
            must_be_current(seen, shown)?;
            true
        }
        Ok(_) => return Err(super::read::special(shown)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(broken(error)),
    };
    let folder = place.path.parent().unwrap_or(Path::new("/"));
    exact_file::make_folders(folder).map_err(broken)?;
    let stamp = exact_file::replace(&place.path, content.as_bytes()).map_err(broken)?;
    workspace.memory.saw(&place.path, stamp);
    let done = if existed { "overwritten" } else { "created" };
    let lines = match content.lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    Ok(format!("{shown} {done} ({lines})"))
}

/// Refuses to change a file that the session does not know as it is.
pub(super) fn must_be_current(seen: Seen, shown: &str) -> Result<(), String> {
    match seen {
        Seen::Current => Ok(()),
        Seen::Stale => Err(format!(
            "{shown} has changed since you last read or wrote it: read it again first"
        )),
        Seen::Never => Err(format!(
            "{shown} exists and you have not read it in this session: read it first"
        )),
    }
}
