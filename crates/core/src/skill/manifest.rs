//! A `SKILL.md`: what its head says, and the body below it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::value;
use crate::{
    agent::Tools,
    frontmatter::{self, Unsplit},
    id::ModelName,
    wording::counted,
};

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What its head says.
    pub manifest: Manifest,
    /// What it tells the model, before anything is filled in.
    pub body: String,
    /// What is odd about it and does no harm.
    pub remarks: Vec<Flaw>,
}

/// What the head of a skill says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its licence.
    pub license: Option<String>,
    /// What it needs around it.
    pub compatibility: Option<String>,
    /// What its author notes for others.
    pub metadata: BTreeMap<String, String>,
    /// The tools it may use: in a fork the complete set; the agent's own if there is no list.
    pub tools: Tools,
    /// Where it runs.
    pub context: SkillContext,
    /// The agent that runs it in a fork.
    pub agent: Option<String>,
    /// The model; without, the agent's own or the caller's.
    pub model: Option<String>,
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
    /// As a sub-agent of its own.
    Fork,
}

/// What is wrong, and in which line of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// How long a name may be.
const NAME: usize = 64;
/// How long a description may be.
const DESCRIPTION: usize = 1_024;
/// How many bytes the head may have.
const HEAD: usize = 64 * 1024;

impl Skill {
    /// Reads a `SKILL.md`; `folder` is the name of the folder it is in.
    ///
    /// # Errors
    /// All its flaws, in the order of their lines.
    pub fn parse(folder: &str, text: &str) -> Result<Skill, Vec<Flaw>> {
        let split = frontmatter::split(text).map_err(|unsplit| match unsplit {
            Unsplit::NoFence => vec![flaw(1, "it does not begin with a line `---`")],
            Unsplit::Unclosed => vec![flaw(1, "its head has no end: a line `---` is missing")],
        })?;
        if split.front.len() > HEAD {
            return Err(vec![flaw(1, "its head is longer than 64 kB")]);
        }
        let keys: BTreeMap<String, Value> =
            frontmatter::read(split.front).map_err(|unreadable| {
                // The fence is the first line.
                let line = unreadable.line.unwrap_or(0) + 1;
                let why = format!("its head is not YAML: {}", unreadable.why);
                vec![Flaw { line, why }]
            })?;
        let mut head = Head::new(split.front, keys);
        let body = split.body.trim();
        let manifest = head.manifest(folder, body);
        if body.is_empty() {
            let line = split.front.lines().count() + 2;
            let nothing = flaw(line, "it has nothing to say below its head");
            head.flaws.push(nothing);
        }
        head.flaws.sort();
        head.remarks.sort();
        match head.flaws.is_empty() {
            true => Ok(Skill {
                manifest,
                body: body.replace("\r\n", "\n"),
                remarks: head.remarks,
            }),
            false => Err(head.flaws),
        }
    }
}

fn flaw(line: usize, why: &str) -> Flaw {
    Flaw {
        line,
        why: why.to_owned(),
    }
}

/// A head that is being read.
struct Head<'a> {
    front: &'a str,
    /// Under its spelling here, each key as it was written and its value.
    keys: BTreeMap<String, (String, Value)>,
    flaws: Vec<Flaw>,
    remarks: Vec<Flaw>,
}

impl<'a> Head<'a> {
    fn new(front: &'a str, keys: BTreeMap<String, Value>) -> Self {
        let mut head = Self {
            front,
            keys: BTreeMap::new(),
            flaws: Vec::new(),
            remarks: Vec::new(),
        };
        for (written, value) in keys {
            let key = written.to_lowercase().replace('_', "-");
            if let Some((before, _)) = head.keys.get(&key) {
                let why = format!("`{written}` and `{before}` are the same key");
                let line = head.line(&written);
                head.flaws.push(Flaw { line, why });
                continue;
            }
            // A key without a value says nothing.
            if !value.is_null() {
                head.keys.insert(key, (written, value));
            }
        }
        head
    }

    fn manifest(&mut self, folder: &str, body: &str) -> Manifest {
        let number = |least, most| move |value: &Value| value::number(value, least, most);
        let mut manifest = Manifest {
            name: self.name(folder),
            description: self.description(body),
            license: self.take("license", value::text),
            compatibility: self.take("compatibility", value::text),
            metadata: self.take("metadata", value::table).unwrap_or_default(),
            tools: Tools {
                only: self.take("allowed-tools", value::tools),
                not: self
                    .take("disallowed-tools", value::tools)
                    .unwrap_or_default(),
            },
            context: self.take("context", context).unwrap_or_default(),
            agent: self
                .take("agent", value::text)
                .filter(|agent| is_filled(agent)),
            model: self
                .take("model", value::text)
                .filter(|model| is_filled(model))
                .map(
                    |model| match model.eq_ignore_ascii_case(ModelName::INHERIT) {
                        true => ModelName::INHERIT.to_owned(),
                        false => model,
                    },
                ),
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
            argument_hint: self.take("argument-hint", hint),
            arguments: self.take("arguments", value::words).unwrap_or_default(),
            when_to_use: self.take("when-to-use", value::text),
            background: self.take("background", value::switch),
            priority: self
                .take("priority", number(-1_000_000, 1_000_000))
                .unwrap_or(0),
            tags: self.take("tags", value::words).unwrap_or_default(),
            unknown: Vec::new(),
        };
        for (written, _) in std::mem::take(&mut self.keys).into_values() {
            let line = self.line(&written);
            let why = format!("the key `{written}` means nothing here");
            self.remarks.push(Flaw { line, why });
            manifest.unknown.push(written);
        }
        manifest
    }

    fn name(&mut self, folder: &str) -> String {
        let line = self.line_of("name");
        match self.take("name", value::text) {
            Some(name) => {
                if let Err(why) = check_name(&name) {
                    let why = format!("`name`: {why}");
                    self.flaws.push(Flaw { line, why });
                } else if name != folder {
                    let why = format!("its name is `{name}` and its folder's is `{folder}`");
                    self.remarks.push(Flaw { line, why });
                }
                name
            }
            None => {
                if let Err(why) = check_name(folder) {
                    let why = format!("it has no `name`, and its folder's will not do: {why}");
                    self.flaws.push(Flaw { line: 1, why });
                }
                folder.to_owned()
            }
        }
    }

    fn description(&mut self, body: &str) -> String {
        let line = self.line_of("description");
        let said = self.take("description", value::text);
        let Some(said) = said.filter(|said| is_filled(said)) else {
            return first_paragraph(body);
        };
        let length = said.chars().count();
        if length > DESCRIPTION {
            let why = format!(
                "`description` has {}; allowed: 1,024",
                counted(length, "character", "characters"),
            );
            self.flaws.push(Flaw { line, why });
        }
        said
    }

    /// The value of a key, if it is there and will do.
    fn take<T>(&mut self, key: &str, read: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        let (written, value) = self.keys.remove(key)?;
        match read(&value) {
            Ok(value) => Some(value),
            Err(why) => {
                let line = self.line(&written);
                let why = format!("`{written}`: {why}");
                self.flaws.push(Flaw { line, why });
                None
            }
        }
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

fn is_filled(text: &str) -> bool {
    !text.trim().is_empty()
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let wrong = !name.chars().all(plain)
        || !(1..=NAME).contains(&name.len())
        || name.starts_with('-')
        || name.ends_with('-')
        || name.contains("--");
    if !wrong {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME + 1).collect();
    Err(format!(
        "`{shown}` is refused; allowed: 1 to 64 of a-z, 0-9 and single hyphens between them"
    ))
}

fn context(value: &Value) -> Result<SkillContext, String> {
    match value::text(value)?.to_lowercase().as_str() {
        "inherit" => Ok(SkillContext::Inherit),
        "fork" => Ok(SkillContext::Fork),
        _ => {
            let shown = value::shown(value);
            Err(format!("{shown} is refused; allowed: inherit or fork"))
        }
    }
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
    let text = match lines.is_empty() {
        true => body
            .lines()
            .next()
            .unwrap_or_default()
            .trim_matches(['#', ' '])
            .to_owned(),
        false => lines.join(" "),
    };
    text.chars().take(DESCRIPTION).collect()
}
