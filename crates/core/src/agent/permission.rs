//! What an agent may do without asking.

use std::{fmt, str::FromStr};

use super::{
    glob::fits,
    guarded_files::{guarded_part, speaks_of},
    risky_options,
};
use crate::words::words;

/// What a call would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Edit,
    Run,
    /// Nothing outside the conversation: notes, background tasks.
    Note,
}

/// What is allowed where no rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reads need no approval; changes and commands do.
    #[default]
    Ask,
    /// Changes to files are free too.
    AutoEdit,
    /// Everything is free.
    Yolo,
}

words! {
    Mode { Ask = "ask", AutoEdit = "auto-edit", Yolo = "yolo" }
}

/// A tool, or some uses of it: `bash`, `bash(cargo test*)`, `edit(src/*)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

/// Not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule; rules look like `bash`, `bash(cargo test*)` or `edit(src/*)`")]
pub struct RuleError(String);

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = || RuleError(text.to_owned());
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(wrong)?)),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(wrong());
        }
        let pattern = pattern.map(str::trim);
        let pattern = pattern.filter(|pattern| !matches!(*pattern, "" | "*" | ":*"));
        let tool = tool.to_lowercase();
        let spelled = |pattern: &str| match pattern.strip_suffix(":*") {
            // `git:*` is how some write `git *`.
            Some(word) => format!("{word} *"),
            // Skills have their names in small letters, and some write a slash before them.
            None if tool == "skill" => pattern.trim_start_matches('/').to_lowercase(),
            // Paths are relative to the workspace, however that is written.
            None if FILE_TOOLS.contains(&tool.as_str()) => {
                pattern.strip_prefix("./").unwrap_or(pattern).to_owned()
            }
            None => pattern.to_owned(),
        };
        let pattern = pattern.map(spelled);
        Ok(Rule { tool, pattern })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.tool)?;
        self.pattern
            .as_ref()
            .map_or(Ok(()), |pattern| write!(f, "({pattern})"))
    }
}

impl Rule {
    /// A rule about every use of a tool.
    pub fn tool(name: &str) -> Self {
        Self {
            tool: name.to_owned(),
            pattern: None,
        }
    }

    /// Rules separated by commas or blanks, but not within brackets.
    ///
    /// # Errors
    /// For the first that is none.
    pub fn list(text: &str) -> Result<Vec<Self>, RuleError> {
        pieces(text).iter().map(|piece| piece.parse()).collect()
    }

    /// The tool, in small letters.
    pub fn tool_name(&self) -> &str {
        &self.tool
    }

    /// Which uses of it; all of them without one.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    /// Whether its patterns are paths.
    pub(crate) fn is_about_files(&self) -> bool {
        FILE_TOOLS.contains(&self.tool.as_str())
    }

    /// The same about other uses.
    pub(crate) fn with_pattern(self, pattern: &str) -> Self {
        Self {
            pattern: Some(pattern.to_owned()),
            ..self
        }
    }

    pub(super) fn renamed(self, tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            ..self
        }
    }

    /// Whether it is about this tool, in whatever use.
    pub fn names(&self, tool: &str) -> bool {
        let tool = tool.to_lowercase();
        // A rule about edits is about every way to change a file.
        fits(&self.tool, &tool) || (self.tool == "edit" && tool == "write")
    }

    /// Whether it can stop this tool. A rule that forbids reading a file stops every tool that
    /// shows what is in it. A rule that lets `read` pass says nothing of the others.
    fn binds(&self, tool: &str, kind: Kind) -> bool {
        self.names(tool) || (kind == Kind::Read && self.names("read"))
    }

    /// Whether it stops every use of this tool.
    pub(super) fn stops_all(&self, tool: &str) -> bool {
        let reads = READERS.contains(&tool.to_lowercase().as_str());
        let kind = if reads { Kind::Read } else { Kind::Note };
        self.pattern.is_none() && self.binds(tool, kind)
    }

    /// Whether it lets this use pass. A command that is more than one command, or has parts
    /// that the shell works out, is never let pass by a pattern: what it runs cannot be told. Nor
    /// is an option by a wildcard that makes a program write a file or run another.
    pub fn lets_pass(&self, tool: &str, kind: Kind, target: &str) -> bool {
        let Some(pattern) = &self.pattern else {
            return self.names(tool);
        };
        let plain = kind != Kind::Run
            || (!target.contains(COMBINING)
                && !climbs(pattern, target)
                && !risky_options::are_used_unnamed(pattern, target));
        self.names(tool) && plain && is_meant(pattern, target.trim())
    }

    /// The same where guarded files are asked for: only a rule that speaks of them lets them pass.
    fn frees(&self, tool: &str, kind: Kind, target: &str) -> bool {
        let guarded = guarded_part(target).filter(|_| kind == Kind::Edit);
        let pattern = self.pattern.as_deref().unwrap_or_default();
        self.lets_pass(tool, kind, target)
            && guarded.is_none_or(|guarded| speaks_of(pattern, guarded))
    }

    /// Whether it stops this use: any of the commands that it is made of.
    pub fn stops(&self, tool: &str, kind: Kind, target: &str) -> bool {
        if !self.binds(tool, kind) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        match kind {
            Kind::Run => commands(target)
                .chain([target])
                .any(|command| is_meant(pattern, &plainly(command))),
            Kind::Read | Kind::Edit | Kind::Note => covers(pattern, target),
        }
    }
}

/// Whether a path, or a folder that it is in, fits a pattern of one who forbids or wants to be
/// asked: a rule that names a folder means what is in it, and `**/` is any folder or none.
fn covers(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
    let anywhere = pattern.strip_prefix("**/");
    let fits = |path: &str| is_meant(pattern, path) || anywhere.is_some_and(|p| is_meant(p, path));
    let folders = path.match_indices('/').map(|(end, _)| path.get(..end));
    fits(path) || folders.flatten().any(fits)
}

/// The tools that show what is in files, or which files there are: without `read` they are not
/// offered either. A use of any other tool is known by its kind.
const READERS: &[&str] = &["read", "grep", "glob"];

/// The tools whose rules have paths as patterns.
const FILE_TOOLS: &[&str] = &["read", "grep", "glob", "edit", "write"];

/// `git *` means `git` with anything behind it, or nothing; never `gitk`.
fn is_meant(pattern: &str, target: &str) -> bool {
    fits(pattern, target) || pattern.strip_suffix(" *") == Some(target)
}

/// Whether a command leaves the folder that a pattern speaks of: `scripts/*` does not mean
/// `scripts/../../bin/sh`.
fn climbs(pattern: &str, command: &str) -> bool {
    // A shell takes quotes away, and fills in what stands for other characters.
    let plain: String = command
        .chars()
        .filter(|c| !matches!(c, '"' | '\'' | '\\'))
        .collect();
    let up = |part: &str| part == ".." || (part.starts_with('.') && part.contains(['*', '?', '[']));
    let climbs = |word: &str| word.split(['/', '=', ':']).any(up);
    pattern.contains('/') && plain.split_whitespace().any(climbs)
}

/// A command without what may stand before it, and with single blanks: `X=1 sudo  git push` is
/// `git push`. A rule that forbids is a reminder, not a wall: a shell has more ways to say the
/// same than a list can hold.
fn plainly(command: &str) -> String {
    const BEFORE: &[&str] = &[
        "if", "then", "else", "elif", "while", "until", "do", "!", "sudo", "env", "command",
        "exec", "nohup", "time", "nice", "builtin", "eval",
    ];
    let stands_before = |word: &&str| {
        let assigns = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        BEFORE.contains(word) || word.split_once('=').is_some_and(|(name, _)| assigns(name))
    };
    let words = command.split_whitespace().skip_while(stands_before);
    words.collect::<Vec<_>>().join(" ")
}

/// The commands that a line is made of, also behind a file that something is read from or written
/// to: `> log git push` is `git push`.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    let mut redirects = false;
    line.split_inclusive(COMBINING).flat_map(move |piece| {
        let command = piece.trim_end_matches(COMBINING);
        let sign = piece.chars().next_back();
        let file_first = redirects;
        // `>&` and `>|` are one sign.
        let same_sign = redirects && command.is_empty() && matches!(sign, Some('&' | '|'));
        redirects = same_sign || matches!(sign, Some('<' | '>'));
        let behind = command.trim_start().split_once(char::is_whitespace);
        let behind = behind.filter(|_| file_first).map(|(_, command)| command);
        [Some(command), behind].into_iter().flatten()
    })
}

/// Names separated by commas or blanks, but not within brackets: `Read, Bash(git log *)`. A line
/// break always separates: a rule with an open bracket must not take in the one behind it.
pub(crate) fn pieces(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut depth = 0_usize;
    for c in line.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '\n' => depth = 0,
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            pieces.push(String::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// What makes more than one command out of a line, or something else than it shows.
const COMBINING: &[char] = &[
    ';', '&', '|', '\n', '\r', '`', '$', '(', ')', '{', '}', '<', '>',
];

/// What an agent may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// What is allowed where no rule says otherwise.
    pub mode: Mode,
    /// Free in every mode.
    pub allow: Vec<Rule>,
    /// Asked for in every mode.
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
}

/// What is to be done about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Someone has to be asked: because of the mode, or of a rule that wants it every time.
    Ask {
        by_rule: bool,
    },
    /// It is forbidden, for a reason.
    Deny(String),
}

/// What a search may do with a file that it comes upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Search it, and show what is found.
    Show,
    /// Pass it over and say so: a person would have to be asked first.
    Ask,
    /// Pass it over, and do not name it: it is forbidden.
    Hide,
}

impl Permissions {
    /// What a search that was permitted for `searched`, a folder or a file, may do with a file in
    /// it. A rule that asks for the folder has been answered for what is in it.
    pub fn reach(&self, tool: &str, searched: &str, file: &str) -> Reach {
        let stops = |rule: &Rule, target: &str| rule.stops(tool, Kind::Read, target);
        if self.deny.iter().any(|rule| stops(rule, file)) {
            return Reach::Hide;
        }
        let asks = |rule: &Rule| stops(rule, file) && !stops(rule, searched);
        if self.ask.iter().any(asks) {
            Reach::Ask
        } else {
            Reach::Show
        }
    }

    /// The modes in which this call would be free, with the same rules.
    pub fn freeing_modes(&self, tool: &str, kind: Kind, target: &str) -> Vec<Mode> {
        let frees = |mode: &Mode| {
            let permissions = Self {
                mode: *mode,
                ..self.clone()
            };
            permissions.judge(tool, kind, target) == Verdict::Allow
        };
        let modes = Mode::ALL.iter().map(|(_, mode)| *mode);
        modes.filter(frees).collect()
    }

    /// Whether a rule forbids that something is read, or wants to be asked first.
    pub fn restrict_reading(&self) -> bool {
        READERS.iter().any(|reader| self.restrict(reader))
    }

    /// Whether a rule forbids something that a tool does, or wants to be asked first.
    pub fn restrict(&self, tool: &str) -> bool {
        let mut rules = self.deny.iter().chain(&self.ask);
        rules.any(|rule| rule.names(tool))
    }

    /// Whether a rule lets a call pass, whatever the mode is.
    pub fn frees(&self, tool: &str, kind: Kind, target: &str) -> bool {
        self.allow.iter().any(|rule| rule.frees(tool, kind, target))
    }

    /// Judges a call. A rule that forbids wins over one that asks, and that over one that
    /// allows; the mode decides about the rest. Guarded files are asked for, unless the mode is
    /// that everything is free or a rule speaks of them.
    pub fn judge(&self, tool: &str, kind: Kind, target: &str) -> Verdict {
        let stops = |rule: &&Rule| rule.stops(tool, kind, target);
        if let Some(rule) = self.deny.iter().find(stops) {
            return Verdict::Deny(format!("the rule `{rule}` forbids it"));
        }
        if self.ask.iter().any(|rule| rule.stops(tool, kind, target)) {
            return Verdict::Ask { by_rule: true };
        }
        if self.frees(tool, kind, target) {
            return Verdict::Allow;
        }
        if self.mode != Mode::Yolo && kind == Kind::Edit && guarded_part(target).is_some() {
            return Verdict::Ask { by_rule: true };
        }
        match (self.mode, kind) {
            (_, Kind::Read | Kind::Note) | (Mode::Yolo, _) | (Mode::AutoEdit, Kind::Edit) => {
                Verdict::Allow
            }
            (Mode::Ask, Kind::Edit | Kind::Run) | (Mode::AutoEdit, Kind::Run) => {
                Verdict::Ask { by_rule: false }
            }
        }
    }
}
