//! `read`: lines of a file, or what is in a folder.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
};

use asyncagents_core::{
    agent::{Kind, Reach},
    arguments::Arguments,
};

use super::{Call, Site, Tool, numbered::Numbered, similar_name::missing};
use crate::{exact_file, memory::Stamp, places::Place};

pub(super) const TOOL: Tool = Tool {
    name: "read",
    description: "Reads a file (2000 lines from line `offset`, or `limit`) or lists a folder. \
    Before each line come its number and a tab, which are not in the file; lines without a word \
    have none. Read a file before you edit or replace it.",
    schema: r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}"#,
    example: r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"#,
    read,
};

const LINES: u64 = 2_000;
const LONGEST_LINE: usize = 2_000;
/// No more of a file is looked at in one call.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
const MOST_ENTRIES: usize = 1_000;
/// How much of a file tells whether it is text.
const SAMPLE: usize = 8 * 1024;

/// Which lines of which file.
struct Read {
    offset: u64,
    limit: u64,
}

fn read(arguments: &Arguments) -> Result<Call, String> {
    let path = arguments.filled_text("path")?;
    let read = Read {
        offset: arguments.number("offset", 0)?.unwrap_or(1).max(1),
        limit: arguments.number("limit", 1)?.unwrap_or(LINES),
    };
    Ok(Call::on_path(Kind::Read, path, |site, place| {
        read.work(site, place)
    }))
}

impl Read {
    fn work(self, site: &Site, place: &Place) -> Result<String, String> {
        let workspace = site.workspace;
        let shown = &place.shown;
        match fs::symlink_metadata(&place.path) {
            Ok(found) if found.is_dir() => list(place, site),
            Ok(found) if found.is_file() => {
                let broken = |error: io::Error| format!("cannot read {shown}: {error}");
                let file = exact_file::open(&place.path).map_err(broken)?;
                let stamp = Stamp::of(&file.metadata().map_err(broken)?);
                let text = self.lines(file, shown, workspace.settings.output_limit)?;
                workspace.memory.saw(&place.path, stamp);
                Ok(text)
            }
            Ok(_) => Err(special(shown)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(place, site)),
            Err(error) => Err(format!("cannot read {shown}: {error}")),
        }
    }

    fn lines(&self, file: File, shown: &str, limit: usize) -> Result<String, String> {
        let broken = |error: io::Error| format!("cannot read {shown}: {error}");
        let size = file.metadata().map_err(broken)?.len();
        let mut lines = Lines::new(file);
        let sample = lines.sample().map_err(broken)?;
        if sample.is_empty() {
            return Ok(format!("[{shown} is empty]"));
        }
        if sample.contains(&0) {
            let kind = kind_of(sample);
            return Err(format!(
                "{shown} is not text but {kind} of {size} bytes, so its content is not shown"
            ));
        }

        let last = self.offset.saturating_add(self.limit).saturating_sub(1);
        // Room for the remarks below.
        let room = limit.saturating_sub(400);
        let mut shown_lines = Numbered::new();
        let mut remarks = Vec::new();
        let goes_on = |end: u64| {
            let (first, next) = (self.offset, end + 1);
            format!("lines {first} to {end}; the file goes on: read on with offset={next}")
        };
        loop {
            if lines.number == last || shown_lines.used() >= room {
                if lines.has_more().map_err(broken)? {
                    remarks.push(goes_on(lines.number));
                }
                break;
            }
            let wanted = lines.number + 1 >= self.offset;
            match lines.next(wanted).map_err(broken)? {
                Next::Line(line) if wanted => {
                    if !shown_lines.add(lines.number, &line, room) {
                        remarks.push(goes_on(lines.number - 1));
                        break;
                    }
                }
                Next::Line(_) => {}
                Next::End => break,
                Next::TooFar => {
                    remarks.push(format!(
                        "stopped at line {} after {} MB; use bash (sed, tail, cut) for the rest",
                        lines.number,
                        MOST_BYTES / 1024 / 1024
                    ));
                    break;
                }
            }
        }
        let mut text = shown_lines.into_text();
        if text.is_empty() && remarks.is_empty() {
            let (offset, total) = (self.offset, lines.number);
            return Err(format!(
                "line {offset} is past the end: {shown} has {total} lines"
            ));
        }
        if lines.returns {
            remarks.push("the lines end with CRLF; edits keep that".to_owned());
        }
        if lines.lossy {
            remarks.push("not all of it is UTF-8; what is not is shown as \u{fffd}".to_owned());
        }
        for remark in remarks {
            text.push_str(&format!("[{remark}]\n"));
        }
        Ok(text)
    }
}

/// The error about pipes, devices and sockets.
pub(super) fn special(shown: &str) -> String {
    format!("{shown} is a pipe, socket or device; only files and folders can be used")
}

/// Lines of a file, in bounded memory however long they are.
struct Lines {
    file: BufReader<File>,
    number: u64,
    left: u64,
    /// A line ended with CRLF.
    returns: bool,
    /// A line was not UTF-8.
    lossy: bool,
}

enum Next {
    Line(String),
    End,
    TooFar,
}

impl Lines {
    fn new(file: File) -> Self {
        Self {
            file: BufReader::with_capacity(64 * 1024, file),
            number: 0,
            left: MOST_BYTES,
            returns: false,
            lossy: false,
        }
    }

    fn sample(&mut self) -> io::Result<&[u8]> {
        let buffered = self.file.fill_buf()?;
        Ok(&buffered[..buffered.len().min(SAMPLE)])
    }

    fn has_more(&mut self) -> io::Result<bool> {
        Ok(!self.file.fill_buf()?.is_empty())
    }

    fn next(&mut self, wanted: bool) -> io::Result<Next> {
        // Four bytes for each character, and the end of the line.
        let most = LONGEST_LINE * 4 + 2;
        let mut line = Vec::new();
        let mut dropped = 0;
        loop {
            let buffered = self.file.fill_buf()?;
            if buffered.is_empty() {
                if line.is_empty() && dropped == 0 {
                    return Ok(Next::End);
                }
                break;
            }
            if self.left == 0 {
                return Ok(Next::TooFar);
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffered.len(), |end| end + 1);
            let kept = if wanted {
                taken.min(most.saturating_sub(line.len()))
            } else {
                0
            };
            line.extend_from_slice(&buffered[..kept]);
            dropped += taken - kept;
            self.left = self.left.saturating_sub(taken as u64);
            self.file.consume(taken);
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        Ok(Next::Line(if wanted {
            self.text(&line, dropped)
        } else {
            String::new()
        }))
    }

    fn text(&mut self, line: &[u8], dropped: usize) -> String {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = match line.strip_suffix(b"\r") {
            Some(line) => {
                self.returns = true;
                line
            }
            None => line,
        };
        let text = String::from_utf8_lossy(line);
        // A cut may have hit the middle of a character.
        self.lossy |= dropped == 0 && matches!(text, std::borrow::Cow::Owned(_));
        match text.char_indices().nth(LONGEST_LINE) {
            Some((end, _)) => format!("{} [… the line goes on]", &text[..end]),
            None if dropped > 0 => format!("{text} [… the line goes on]"),
            None => text.into_owned(),
        }
    }
}

fn list(place: &Place, site: &Site) -> Result<String, String> {
    let Site {
        workspace,
        reaching,
        ..
    } = site;
    let shown = &place.shown;
    let broken = |error: io::Error| format!("cannot list {shown}: {error}");
    let mut names = Vec::new();
    for entry in fs::read_dir(&place.path).map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let hides = |path: &Path| reaching(&workspace.places.shown(path)) == Reach::Hide;
        let kind = entry.file_type().map_err(broken)?;
        // A link would name what it leads to.
        let leads_to_hidden = || fs::canonicalize(entry.path()).is_ok_and(|real| hides(&real));
        if hides(&entry.path()) || (kind.is_symlink() && leads_to_hidden()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(match (kind.is_dir(), kind.is_symlink()) {
            (true, _) => format!("{name}/"),
            (_, true) => format!("{name} -> {}", target(&entry.path())),
            (false, false) => name,
        });
    }
    names.sort();
    if names.is_empty() {
        return Ok(format!("[{shown} is an empty folder]"));
    }
    let total = names.len();
    names.truncate(MOST_ENTRIES);
    let mut text = format!("{shown} is a folder with {total} entries:\n");
    let mut left = 0;
    for name in names {
        if text.len() + name.len() + 200 > workspace.settings.output_limit {
            break;
        }
        text.push_str(&name);
        text.push('\n');
        left += 1;
    }
    if left < total {
        text.push_str(&format!("[{} more; use glob to find some]\n", total - left));
    }
    Ok(text)
}

fn target(link: &Path) -> String {
    fs::read_link(link).map_or_else(|_| "?".to_owned(), |to| to.display().to_string())
}

fn kind_of(sample: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 17] = [
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"RIFF", "a RIFF file (WebP, WAV, AVI)"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
        (b"\xfd7zXZ", "an xz archive"),
        (b"BZh", "a bzip2 archive"),
        (b"\x7fELF", "an ELF program"),
        (b"\xca\xfe\xba\xbe", "a Java class"),
        (b"\0asm", "a WebAssembly module"),
        (b"SQLite format 3", "an SQLite database"),
        (b"OTTO", "a font"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    let kind = KINDS.iter().find(|(magic, _)| sample.starts_with(magic));
    kind.map_or("a binary file", |(_, kind)| kind)
}
