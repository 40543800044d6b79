//! A `SKILL.md`: what its head says, and the body below it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{name, value};
use crate::{
    agent::{Effort, Rule, Tools},
    frontmatter::{self, Unsplit},
    id::ModelName,
    similar::nearest,
    wording::{counted, grouped},
};

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub manifest: Manifest,
    /// What it tells the model, before anything is filled in.
    pub body: String,
    /// What the Agent Skills standard refuses, so that other tools will. It is loaded all the
    /// same, as far as it can be understood.
    pub refused_elsewhere: Vec<Flaw>,
    /// What is odd about it and does no harm.
    pub remarks: Vec<Flaw>,
    /// In which line each key is, by its spelling here.
    pub lines: BTreeMap<String, usize>,
}

/// What the head of a skill says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    /// What it is called in lists for people, if it has another name for that.
    pub title: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    pub license: Option<String>,
    /// What it needs around it.
    pub compatibility: Option<String>,
    /// What its author notes for others.
    pub metadata: BTreeMap<String, String>,
    /// The tools it may use: in a fork the complete set; the agent's own if there is no list.
    pub tools: Tools,
    pub context: SkillContext,
    /// The agent that runs it in a fork.
    pub agent: Option<String>,
    /// The model; without, the agent's own or the caller's.
    pub model: Option<String>,
    /// How hard the model of a fork thinks.
    pub effort: Option<Effort>,
    /// How often the model may answer, before that is reduced for sub-agents.
    pub max_iterations: Option<u64>,
    /// How often the same failing call may be tried again.
    pub max_retries: Option<u32>,
    /// How long one answer and its tools may take.
    pub iteration_time: Option<Duration>,
    /// How long it may take in all.
    pub time: Option<Duration>,
    /// The model may invoke it.
    pub for_model: bool,
    /// The user may invoke it.
    pub for_user: bool,
    /// What to type behind its name.
    pub argument_hint: Option<String>,
    /// The names of its arguments, in order.
    pub arguments: Vec<String>,
    /// When to use it, beside what the description says.
    pub when_to_use: Option<String>,
    /// Whether a fork goes on in the background, if it says so.
    pub background: Option<bool>,
    /// The higher comes first within a layer.
    pub priority: i64,
    /// What it can be found by.
    pub tags: Vec<String>,
    /// Keys that mean nothing here.
    pub unknown: Vec<String>,
}

/// Where a skill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkillContext {
    /// Its body joins the calling conversation.
    #[default]
    Inherit,
    /// As a sub-agent of its own, which inherits nothing of the conversation: `context: fork` in
    /// the file.
    Isolated,
}

impl SkillContext {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            SkillContext::Inherit => "inherit",
            SkillContext::Isolated => "fork",
        }
    }
}

/// What is wrong, and in which line of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw {
    /// From 1.
    pub line: usize,
    pub why: String,
}

/// How long a description may be, by the standard.
const DESCRIPTION: usize = 1_024;
/// How much of a description is kept.
const KEPT_DESCRIPTION: usize = 1_536;
/// How long it may be what a skill needs, by the standard.
const COMPATIBILITY: usize = 500;
/// How long a name for people may be.
const TITLE: usize = 64;
/// How many bytes the head may have.
const HEAD: usize = 64 * 1024;

/// Keys that Claude Code acts on and nothing does here.
const ELSEWHERE: &[&str] = &["hooks", "paths", "shell"];

/// Keys that are notes of the author's, wherever they are.
const NOTES: &[&str] = &["version", "author"];

impl Skill {
    /// Reads a `SKILL.md`; `folder` is the name of the folder it is in. What other agents load is
    /// loaded, with remarks.
    ///
    /// # Errors
    /// All its flaws, in the order of their lines.
    pub fn parse(folder: &str, text: &str) -> Result<Skill, Vec<Flaw>> {
        let split = match frontmatter::split(text) {
            Ok(split) => split,
            Err(unsplit) => return Self::without_head(folder, text, unsplit),
        };
        if split.front.len() > HEAD {
            return Err(vec![flaw(1, "its head is longer than 64 kB")]);
        }
        let body = split.body.trim();
        let read = frontmatter::read::<BTreeMap<String, Value>>(split.front);
        let settings = match read {
            Ok(settings) => settings,
            Err(unreadable) => {
                // The fence is the first line.
                let line = unreadable.line.unwrap_or(0) + 1;
                let why = format!("its head is not YAML: {}", unreadable.why);
                return Self::unread_head(folder, body, flaw(line, &why));
            }
        };
        let mut head = Head::new(split.front, settings.values);
        if let Some(unreadable) = settings.mended {
            let line = unreadable.line.unwrap_or(0) + 1;
            let why = "it is not quite YAML, and other tools will not read it: a value with `: ` in \
                       it needs quotes around it";
            head.remarks.push(flaw(line, why));
        }
        let manifest = head.manifest(folder, body);
        if body.is_empty() {
            let line = split.front.lines().count() + 2;
            let nothing = flaw(line, "it has nothing to say below its head");
            head.remarks.push(nothing);
        }
        head.into_skill(manifest, body)
    }

    /// A file without a head is all body.
    fn without_head(folder: &str, text: &str, unsplit: Unsplit) -> Result<Skill, Vec<Flaw>> {
        let body = text.trim_start_matches('\u{feff}').trim();
        match unsplit {
            Unsplit::NoFence => {
                let mut head = Head::new("", BTreeMap::new());
                let manifest = head.manifest(folder, body);
                head.remarks.clear();
                let no_head = flaw(1, "it does not begin with a line `---`");
                head.refused_elsewhere.push(no_head);
                head.into_skill(manifest, body)
            }
            Unsplit::Unclosed => {
                let why = flaw(1, "its head has no end: a line `---` is missing");
                Self::unread_head(folder, body, why)
            }
        }
    }

    /// A file whose head cannot be read. It may say that the skill is not for models, so it is
    /// not.
    fn unread_head(folder: &str, body: &str, why: Flaw) -> Result<Skill, Vec<Flaw>> {
        let mut head = Head::new("", BTreeMap::new());
        let mut manifest = head.manifest(folder, body);
        head.remarks.clear();
        manifest.for_model = false;
        let used = "it is used without its head, by you alone: no model is offered it";
        head.remarks.push(flaw(why.line, used));
        head.refused_elsewhere.push(why);
        head.into_skill(manifest, body)
    }
}

/// In one line, whatever the file has in it.
fn flaw(line: usize, why: &str) -> Flaw {
    const MOST: usize = 400;
    let why = name::seen(why, MOST);
    Flaw { line, why }
}

/// A head that is being read.
struct Head<'a> {
    front: &'a str,
    /// Under its spelling here, each key as it was written and its value.
    keys: BTreeMap<String, (String, Value)>,
    /// The keys that were asked for: they mean something here.
    known: Vec<&'static str>,
    lines: BTreeMap<String, usize>,
    flaws: Vec<Flaw>,
    refused_elsewhere: Vec<Flaw>,
    remarks: Vec<Flaw>,
}

impl<'a> Head<'a> {
    fn new(front: &'a str, keys: BTreeMap<String, Value>) -> Self {
        let mut head = Self {
            front,
            keys: BTreeMap::new(),
            known: Vec::new(),
            lines: BTreeMap::new(),
            flaws: Vec::new(),
            refused_elsewhere: Vec::new(),
            remarks: Vec::new(),
        };
        for (written, value) in keys {
            let key = written.to_lowercase().replace('_', "-");
            let line = head.line(&written);
            if let Some((before, _)) = head.keys.get(&key) {
                let why = format!("`{written}` and `{before}` are the same key");
                head.flaws.push(flaw(line, &why));
                continue;
            }
            // A key without a value says nothing.
            if !value.is_null() {
                head.lines.insert(key.clone(), line);
                head.keys.insert(key, (written, value));
            }
        }
        head
    }

    fn into_skill(mut self, manifest: Manifest, body: &str) -> Result<Skill, Vec<Flaw>> {
        self.flaws.sort();
        self.refused_elsewhere.sort();
        self.remarks.sort();
        if !self.flaws.is_empty() {
            return Err(self.flaws);
        }
        Ok(Skill {
            manifest,
            body: body.replace("\r\n", "\n"),
            refused_elsewhere: self.refused_elsewhere,
            remarks: self.remarks,
            lines: self.lines,
        })
    }

    fn manifest(&mut self, folder: &str, body: &str) -> Manifest {
        let number = |least, most| move |value: &Value| value::number(value, least, most);
        let (name, title) = self.names(folder);
        let mut manifest = Manifest {
            name,
            title,
            description: self.description(body),
            license: self.note("license", value::text),
            compatibility: self.limited("compatibility", COMPATIBILITY, COMPATIBILITY),
            metadata: self.note("metadata", value::table).unwrap_or_default(),
            tools: Tools {
                only: self.allowed_tools(),
                not: self
                    .take("disallowed-tools", value::tools)
                    .unwrap_or_default(),
                within: Vec::new(),
            },
            context: self.note("context", context).unwrap_or_default(),
            agent: self
                .take("agent", value::text)
                .filter(|agent| is_filled(agent)),
            model: self
                .take("model", value::text)
                .filter(|model| is_filled(model))
                .map(inherit_in_small_letters),
            effort: self.note("effort", effort),
            max_iterations: self
                .take("max-iterations", number(1, 100))
                .and_then(|most| u64::try_from(most).ok()),
            max_retries: self
                .take("max-retries-per-tool", number(0, 10))
                .and_then(|most| u32::try_from(most).ok()),
            iteration_time: self.take("timeout-per-iteration", value::duration),
            time: self.take("timeout", value::duration),
            for_model: !self
                .take("disable-model-invocation", value::switch)
                .unwrap_or(false),
            for_user: self.take("user-invocable", value::switch).unwrap_or(true),
            argument_hint: self.note("argument-hint", hint),
            arguments: self.note("arguments", value::words).unwrap_or_default(),
            when_to_use: self.note("when-to-use", value::text),
            background: self.take("background", value::switch),
            priority: self
                .take("priority", number(-1_000_000, 1_000_000))
                .unwrap_or(0),
            tags: self.note("tags", value::words).unwrap_or_default(),
            unknown: Vec::new(),
        };
        for (key, (written, value)) in std::mem::take(&mut self.keys) {
            if let Some(why) = unknown_key(&key, &written, &value, &self.known) {
                let line = self.line(&written);
                self.remarks.push(flaw(line, &why));
            }
            manifest.unknown.push(written);
        }
        manifest
    }

    /// What it is called by, and what people are shown. A name that is none by the standard is
    /// one for people; then the folder's is what it is called by.
    fn names(&mut self, folder: &str) -> (String, Option<String>) {
        let line = self.line_of("name");
        let written = self.refused_note("name", value::text);
        let Some(written) = written.filter(|name| is_filled(name)) else {
            let why = "it has no `name`, which the Agent Skills standard requires";
            self.remarks.push(flaw(1, why));
            return (self.folders_name(folder), None);
        };
        let Err(why) = name::check(&written) else {
            let name = name::normal(&written);
            if name != name::normal(folder) {
                let why = format!("its name is `{name}` and its folder's is `{folder}`");
                self.remarks.push(flaw(line, &why));
            }
            return (name, None);
        };
        self.refused_elsewhere
            .push(flaw(line, &format!("`name`: {why}")));
        let title = name::seen(&written, TITLE);
        let name = name::usable(folder).or_else(|| name::usable(&written));
        match name {
            Some(name) => {
                let title = Some(title).filter(|title| *title != name && !title.is_empty());
                (name, title)
            }
            None => (self.folders_name(folder), None),
        }
    }

    fn folders_name(&mut self, folder: &str) -> String {
        name::usable(folder).unwrap_or_else(|| {
            let why = "it has no `name` that can be used, and its folder's will not do: it is \
                       empty, too long, or has characters that cannot be seen";
            self.flaws.push(flaw(1, why));
            String::new()
        })
    }

    fn description(&mut self, body: &str) -> String {
        let text = self.limited("description", DESCRIPTION, KEPT_DESCRIPTION);
        text.filter(|text| is_filled(text)).unwrap_or_else(|| {
            let why = "it has no `description`, which the Agent Skills standard requires";
            self.remarks.push(flaw(1, why));
            first_paragraph(body)
        })
    }

    /// The beginning of a text that may have `allowed` characters by the standard.
    fn limited(&mut self, key: &'static str, allowed: usize, kept: usize) -> Option<String> {
        let line = self.line_of(key);
        let text = self.refused_note(key, value::text)?;
        let length = text.chars().count();
        if length > allowed {
            let length = counted(length, "character", "characters");
            let why = format!("`{key}` has {length}; allowed: {}", grouped(allowed));
            self.refused_elsewhere.push(flaw(line, &why));
        }
        Some(text.chars().take(kept).collect())
    }

    /// A tool that cannot be read is not allowed; the others are.
    fn allowed_tools(&mut self) -> Option<Vec<Rule>> {
        let (written, value) = self.remove("allowed-tools")?;
        let (rules, wrong) = value::known_tools(&value);
        let line = self.line(&written);
        for why in wrong {
            let why = format!("`{written}`: {why}; it is not allowed");
            self.remarks.push(flaw(line, &why));
        }
        Some(rules)
    }

    /// The value of a key that does no harm if it cannot be used.
    fn note<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, read, |head| &mut head.remarks)
    }

    /// The same for one that the standard has something to say about.
    fn refused_note<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, read, |head| &mut head.refused_elsewhere)
    }

    /// The value of a key, if it is there and will do.
    fn take<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, read, |head| &mut head.flaws)
    }

    /// The value of a key. If it will not do, that is noted in one of the lists.
    fn read<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, String>,
        list: fn(&mut Self) -> &mut Vec<Flaw>,
    ) -> Option<T> {
        let (written, value) = self.remove(key)?;
        let wrong = |why| {
            let flaw = flaw(self.line(&written), &format!("`{written}`: {why}"));
            list(self).push(flaw);
        };
        read(&value).map_err(wrong).ok()
    }

    /// A key as it was written, and its value. From here on it is one that means something.
    fn remove(&mut self, key: &'static str) -> Option<(String, Value)> {
        self.known.push(key);
        self.keys.remove(key)
    }

    fn line_of(&self, key: &str) -> usize {
        let written = self.keys.get(key).map_or(key, |(written, _)| written);
        self.line(written)
    }

    /// The line of the file in which a key is.
    fn line(&self, written: &str) -> usize {
        let is_here = |line: &str| {
            let line = line.trim_start_matches(['"', '\'']);
            let rest = line.strip_prefix(written);
            let rest = rest.map(|rest| rest.trim_start_matches(['"', '\'']).trim_start());
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let at = self.front.lines().position(is_here);
        // The fence is the first line.
        at.map_or(1, |at| at + 2)
    }
}

fn inherit_in_small_letters(model: String) -> String {
    if model.eq_ignore_ascii_case(ModelName::INHERIT) {
        return ModelName::INHERIT.to_owned();
    }
    model
}

fn is_filled(text: &str) -> bool {
    !text.trim().is_empty()
}

/// What is said of a key that means nothing here.
fn unknown_key(key: &str, written: &str, value: &Value, known: &[&str]) -> Option<String> {
    let is_bash = key == "shell" && value == "bash";
    if NOTES.contains(&key) || is_bash {
        return None;
    }
    if ELSEWHERE.contains(&key) {
        return Some(format!(
            "`{written}` does something in Claude Code, not here"
        ));
    }
    let meant = match key {
        "tools" => Some("allowed-tools"),
        "args" => Some("arguments"),
        key => nearest(key, known.iter().copied()).first().copied(),
    };
    let hint = meant.map(|meant| format!("; did you mean `{meant}`?"));
    let hint = hint.unwrap_or_default();
    Some(format!("the key `{written}` means nothing here{hint}"))
}

/// A word of another tool's means that the body joins the conversation.
fn context(value: &Value) -> Result<SkillContext, String> {
    match value::text(value)?.to_lowercase().as_str() {
        "inherit" => Ok(SkillContext::Inherit),
        "fork" => Ok(SkillContext::Isolated),
        _ => {
            let shown = value::shown(value);
            Err(format!(
                "{shown} means nothing here, only inherit and fork do"
            ))
        }
    }
}

fn effort(value: &Value) -> Result<Effort, String> {
    let wrong = || {
        let shown = value::shown(value);
        format!("{shown} means nothing here, only low, medium, high, xhigh and max do")
    };
    value::text(value)
        .ok()
        .and_then(|word| Effort::named(&word))
        .ok_or_else(wrong)
}

/// `argument-hint: [issue]` is a list to YAML, and a text to people.
fn hint(value: &Value) -> Result<String, String> {
    match value {
        Value::Array(_) => Ok(format!("[{}]", value::words(value)?.join(", "))),
        other => value::text(other),
    }
}

/// The first paragraph that is no heading; the heading if there is nothing else.
fn first_paragraph(body: &str) -> String {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let lines = body.lines().skip_while(|line| !is_text(line));
    let lines: Vec<&str> = lines.take_while(is_text).map(str::trim).collect();
    let text = if lines.is_empty() {
        let heading = body.lines().next().unwrap_or_default();
        heading.trim_matches(['#', ' ']).to_owned()
    } else {
        lines.join(" ")
    };
    text.chars().take(KEPT_DESCRIPTION).collect()
}
