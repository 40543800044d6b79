//! `grep`: text in files.

use std::{
    io::{self, Read},
    path::Path,
};

use asyncagents_core::{
    agent::{Kind, Reach},
    arguments::Arguments,
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::{
    Call, Site, Tool,
    glob::folder,
    similar_name::missing,
    walk::{Deadline, out_of_time, pattern, walk},
};
use crate::{
    exact_file,
    fit_answer::cut_line,
    places::{Place, echo},
};

pub(super) const TOOL: Tool = Tool {
    name: "grep",
    description: "Searches files, but those that .gitignore leaves out, for a regular \
    expression (Rust syntax). `mode`: the lines (`content`, the default), with `context` lines \
    around each; the names of files; or the count of lines in each.",
    schema: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder or file"},"glob":{"type":"string","description":"as *.rs"},"ignore_case":{"type":"boolean"},"context":{"type":"integer"},"mode":{"type":"string","enum":["content","files","count"]}},"required":["pattern"]}"#,
    example: r#"{"pattern": "fn main", "glob": "*.rs", "mode": "content"}"#,
    read,
};

const LONGEST_LINE: usize = 400;
const MOST_FILES: usize = 1_000;
const MOST_CONTEXT: u64 = 20;
/// A file with a longer line is left out.
const MOST_MEMORY: usize = 64 * 1024 * 1024;

/// What to search for.
struct Grep {
    pattern: String,
    glob: Option<String>,
    ignore_case: bool,
    context: usize,
    mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Content,
    Files,
    Count,
}

const MODES: [(&str, Mode); 3] = [
    ("content", Mode::Content),
    ("files", Mode::Files),
    ("count", Mode::Count),
];

fn read(arguments: &Arguments) -> Result<Call, String> {
    let context = arguments.number("context", 0)?.unwrap_or(0);
    let pattern = arguments.filled_text("pattern")?;
    let path = folder(arguments)?;
    let title = Some(pattern.clone());
    let glob = arguments.optional_text("glob")?;
    let grep = Grep {
        pattern,
        glob: glob.filter(|glob| !glob.is_empty()),
        ignore_case: arguments.flag("ignore_case")?,
        context: context.min(MOST_CONTEXT) as usize,
        mode: arguments.one_of("mode", &MODES)?,
    };
    Ok(Call {
        title,
        ..Call::on_path(Kind::Read, path, |site, place| grep.work(site, place))
    })
}

impl Grep {
    fn work(self, site: &Site, place: &Place) -> Result<String, String> {
        let Site {
            workspace,
            reaching,
            abandoned,
        } = site;
        if !place.path.exists() {
            return Err(missing(place, site));
        }
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            .line_terminator(Some(b'\n'))
            .build(&self.pattern)
            .map_err(|error| not_an_expression(&self.pattern, &error.to_string()))?;
        let names = self.glob.as_deref().map(pattern).transpose()?;
        let mut search = Search {
            mode: self.mode,
            matcher,
            searcher: searcher(self.context),
            found: Found::new(workspace.settings.output_limit),
        };
        let in_time = walk(workspace, &place.path, abandoned, |entry, deadline| {
            let path = entry.path();
            let below = if path == place.path {
                Path::new(entry.file_name())
            } else {
                path.strip_prefix(&place.path).unwrap_or(path)
            };
            if names.as_ref().is_none_or(|names| names.is_match(below)) {
                let shown = workspace.places.shown(path);
                match reaching(&shown) {
                    Reach::Show => search.file(path, &shown, deadline),
                    Reach::Ask => search.found.to_be_asked_for += 1,
                    Reach::Hide => search.found.forbidden += 1,
                }
            }
            !search.found.full
        });
        let mut text = String::new();
        if search.found.text.is_empty() && !search.found.full {
            let pattern = echo(&self.pattern);
            text = format!("No line fits `{pattern}` in {}.\n", place.named());
        }
        text.push_str(&search.found.finish());
        if !in_time {
            text.push_str(&out_of_time());
        }
        Ok(text)
    }
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MOST_MEMORY))
        .build()
}

/// The message of the parser, without its frame.
fn not_an_expression(pattern: &str, error: &str) -> String {
    // The searcher puts a group around the pattern and then complains about that.
    let plain = regex::Regex::new(pattern)
        .err()
        .map(|error| error.to_string());
    let error = plain.as_deref().unwrap_or(error);
    let is_frame = |line: &&str| line.trim().is_empty() || line.starts_with("regex parse error");
    let lines: Vec<_> = error.lines().filter(|line| !is_frame(line)).collect();
    let (reason, caret) = match &lines[..] {
        [caret @ .., last] => (last.trim_start_matches("error: "), caret),
        [] => ("it cannot be read", &[][..]),
    };
    let mut text = format!(
        "`{}` is not a regular expression: {}; put \\ before signs that stand for themselves",
        echo(pattern),
        echo(reason)
    );
    // The pattern and the sign that points at the place; more would be a pattern of many lines.
    if caret.len() == 2 && caret.iter().all(|line| line.len() <= 200) {
        text.push_str(&format!("\n{}", caret.join("\n")));
    }
    text
}

struct Search {
    mode: Mode,
    matcher: RegexMatcher,
    searcher: Searcher,
    found: Found,
}

impl Search {
    fn file(&mut self, path: &Path, shown: &str, deadline: Deadline) {
        // What cannot be opened is passed over, as a link that took the file's place would be.
        let Ok(file) = exact_file::open(path) else {
            return;
        };
        let mut hits = Hits {
            mode: self.mode,
            shown,
            lines: 0,
            found: &mut self.found,
            deadline,
        };
        let file = InTime { file, deadline };
        let searched = self.searcher.search_reader(&self.matcher, file, &mut hits);
        let lines = hits.lines;
        match self.mode {
            _ if lines == 0 => {}
            Mode::Content => {}
            Mode::Files => self.found.add_file(shown),
            Mode::Count => self.found.add_file(&format!("{shown}: {lines}")),
        }
        let given_up = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        if searched.is_err_and(|error| !given_up(&error)) {
            self.found.skipped += 1;
        }
    }
}

/// A file that cannot be read on once there is no time, or no caller waits: it may have
/// gigabytes without a hit.
struct InTime<'a, F> {
    file: F,
    deadline: Deadline<'a>,
}

impl<F: Read> Read for InTime<'_, F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(into)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    text: String,
    used: usize,
    room: usize,
    files: usize,
    full: bool,
    skipped: usize,
    to_be_asked_for: usize,
    forbidden: usize,
}

impl Found {
    fn new(limit: usize) -> Self {
        Self {
            // Room for the remarks.
            room: limit.saturating_sub(400),
            ..Self::default()
        }
    }

    fn add(&mut self, line: &str) {
        let length = line.chars().count() + 1;
        if self.used + length > self.room {
            self.full = true;
        }
        if self.full {
            return;
        }
        self.used += length;
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn add_file(&mut self, line: &str) {
        if self.files == MOST_FILES {
            self.full = true;
        }
        self.files += 1;
        self.add(line);
    }

    fn finish(mut self) -> String {
        if self.full {
            let more = "[there is more; narrow the search with `glob`, `path` or `pattern`]\n";
            self.text.push_str(more);
        }
        if self.skipped > 0 {
            let skipped = self.skipped;
            self.text
                .push_str(&format!("[{skipped} files could not be searched]\n"));
        }
        if self.to_be_asked_for > 0 {
            self.text.push_str(&format!(
                "[{} left out: reading has to be allowed first; name a file with `path` to ask for \
                 it]\n",
                counted(self.to_be_asked_for)
            ));
        }
        if self.forbidden > 0 {
            let forbidden = counted(self.forbidden);
            let remark = format!("[{forbidden} left out: a rule forbids reading]\n");
            self.text.push_str(&remark);
        }
        self.text
    }
}

fn counted(files: usize) -> String {
    match files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    }
}

/// The lines of one file.
struct Hits<'a> {
    mode: Mode,
    shown: &'a str,
    lines: u64,
    found: &'a mut Found,
    deadline: Deadline<'a>,
}

impl Hits<'_> {
    fn add(&mut self, sign: char, number: Option<u64>, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = cut_line(text.trim_end_matches(['\n', '\r']), LONGEST_LINE);
        let (shown, number) = (self.shown, number.unwrap_or(0));
        self.found
            .add(&format!("{shown}{sign}{number}{sign}{text}"));
    }

    fn goes_on(&self) -> bool {
        !self.found.full && !self.deadline.is_over()
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        self.lines += 1;
        match self.mode {
            Mode::Content => self.add(':', hit.line_number(), hit.bytes()),
            Mode::Files => return Ok(false),
            Mode::Count => {}
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if self.mode == Mode::Content {
            self.add('-', line.line_number(), line.bytes());
        }
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.mode == Mode::Content {
            self.found.add("--");
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read},
        time::{Duration, Instant},
    };

    use grep_regex::RegexMatcher;
    use grep_searcher::sinks::Bytes;

    use super::{super::Abandoned, Deadline, InTime, searcher};

    /// Lines without end; nobody waits for the answer after some of them.
    struct Endless<'a> {
        reads: usize,
        abandoned: &'a Abandoned,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.reads += 1;
            if self.reads == 100 {
                self.abandoned.set();
            }
            assert!(self.reads <= 100, "it reads on");
            into.fill(b'\n');
            Ok(into.len())
        }
    }

    #[test]
    fn a_file_without_hits_is_given_up() {
        let matcher = RegexMatcher::new("needle").expect("an expression");
        let now = Instant::now();
        for until in [now + Duration::from_secs(600), now] {
            let abandoned = Abandoned::default();
            let file = Endless {
                reads: 0,
                abandoned: &abandoned,
            };
            let deadline = Deadline {
                at: until,
                abandoned: &abandoned,
            };
            let file = InTime { file, deadline };
            let ignored = Bytes(|_, _| Ok(true));
            let searched = searcher(0).search_reader(&matcher, file, ignored);
            let error = searched.expect_err("it never ends");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
}
