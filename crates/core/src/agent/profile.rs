//! Agent profiles: who works, with which prompt, model and tools.

use std::{collections::BTreeMap, str::FromStr};

use serde::Deserialize;

use super::{Kind, Rule, permission::pieces};
use crate::{
    frontmatter::{self, Unreadable},
    id::AgentName,
    wording::listed,
};

/// Who works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub name: AgentName,
    /// When to use it.
    pub description: String,
    /// What it is told to be.
    pub prompt: String,
    /// Its own model, if it has one.
    pub model: Option<String>,
    pub tools: Tools,
    /// How often its model may answer in one run.
    pub max_turns: Option<u64>,
    /// A project declares it: it may narrow what the user has set, not widen it.
    pub of_project: bool,
}

/// The tools of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// Only these; all if there is no such list.
    pub only: Option<Vec<Rule>>,
    pub not: Vec<Rule>,
    /// And nothing that any of these would not allow: the tools of the skills above, which bind
    /// everything that they launch.
    pub within: Vec<Tools>,
}

impl Tools {
    /// Whether the model is offered a tool.
    pub fn offers(&self, tool: &str) -> bool {
        let only = self.only.as_ref();
        let listed = only.is_none_or(|rules| rules.iter().any(|rule| rule.names(tool)));
        listed
            && !self.not.iter().any(|rule| rule.stops_all(tool))
            && self.within.iter().all(|outer| outer.offers(tool))
    }

    /// Whether anything is excluded.
    pub(crate) fn is_limit(&self) -> bool {
        self.only.is_some() || !self.not.is_empty() || !self.within.is_empty()
    }

    /// The same, and nothing that these would not allow, by whatever names.
    #[must_use]
    pub fn bounded(self, within: &[Tools]) -> Tools {
        let within = within.iter().map(Tools::called_here);
        let within = self.within.into_iter().chain(within);
        Tools {
            within: within.collect(),
            ..self
        }
    }

    /// Which uses of a tool are allowed, and which are not, for a model to read; nothing if all
    /// of them are.
    pub fn uses(&self, tool: &str) -> Option<String> {
        let patterns = |rules: &[Rule]| -> Option<String> {
            let named = rules.iter().filter(|rule| rule.names(tool));
            let patterns: Option<Vec<String>> = named
                .map(|rule| rule.pattern().map(|pattern| format!("`{pattern}`")))
                .collect();
            let patterns = patterns.filter(|patterns| !patterns.is_empty())?;
            Some(listed(&patterns, "and"))
        };
        let only = self.only.as_deref().and_then(patterns);
        let only = only.map(|patterns| format!("only {patterns}"));
        let not = patterns(&self.not).map(|patterns| format!("not {patterns}"));
        let outer = self.within.iter().filter_map(|outer| outer.uses(tool));
        let uses: Vec<String> = only.into_iter().chain(not).chain(outer).collect();
        (!uses.is_empty()).then(|| uses.join("; "))
    }

    /// The same in our names for tools, where other agents have their own.
    #[must_use]
    pub fn called_here(&self) -> Tools {
        self.called_with(ANY_PREFIX)
    }

    /// The same where the prefix of the tools for background tasks is known: tools of others may
    /// end like them.
    #[must_use]
    pub fn called_with(&self, prefix: &str) -> Tools {
        let here = |rules: &[Rule]| -> Vec<Rule> {
            let rules = rules.iter().cloned();
            rules.flat_map(|rule| rule.called_here(prefix)).collect()
        };
        let within = self.within.iter().map(|tools| tools.called_with(prefix));
        Tools {
            only: self.only.as_deref().map(here),
            not: here(&self.not),
            within: within.collect(),
        }
    }

    /// Whether a use of a tool is within what the agent may do.
    pub fn allows(&self, tool: &str, kind: Kind, target: &str) -> bool {
        let only = self.only.as_ref();
        let passes = |rule: &Rule| rule.lets_pass(tool, kind, target);
        let stops = |rule: &Rule| rule.stops(tool, kind, target);
        only.is_none_or(|rules| rules.iter().any(passes))
            && !self.not.iter().any(stops)
            && self
                .within
                .iter()
                .all(|outer| outer.allows(tool, kind, target))
    }

    /// Whether a search must not show a file that it comes upon. What is allowed was decided for
    /// the folder that is searched; what is excluded stays so within it.
    pub fn hides(&self, tool: &str, file: &str) -> bool {
        let stops = |rule: &Rule| rule.stops(tool, Kind::Read, file);
        self.not.iter().any(stops) || self.within.iter().any(|outer| outer.hides(tool, file))
    }
}

/// Why a file is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("it does not begin with `---` and end its settings with `---`")]
    NoFrontmatter,
    /// The frontmatter cannot be read.
    #[error("its settings cannot be read: {0}")]
    Broken(String),
    /// A tool is written in a way that means nothing.
    #[error("its tools: {0}")]
    Tools(String),
    /// It has nothing to say to the model.
    #[error("it has no prompt below its settings")]
    NoPrompt,
}

impl ProfileError {
    fn broken(unreadable: Unreadable) -> Self {
        // The line with the fence comes first.
        let line = unreadable.line.map(|line| format!("line {}: ", line + 1));
        let line = line.unwrap_or_default();
        ProfileError::Broken(format!("{line}{}", unreadable.why))
    }
}

/// The settings of a profile as asyncagents, Claude Code and OpenCode write them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Front {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
    tools: Option<Listed>,
    disallowed_tools: Option<Listed>,
    #[serde(alias = "max_turns", alias = "steps", alias = "maxSteps")]
    max_turns: Option<u64>,
    disable: bool,
    permission: Option<Asked>,
}

/// What OpenCode's `permission` says: for all tools, or tool by tool, or pattern by pattern.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Asked {
    All(String),
    Tools(BTreeMap<String, Asked>),
}

/// Tools as a list, as one line, or as switches.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Listed {
    Line(String),
    Names(Vec<String>),
    Switches(BTreeMap<String, bool>),
}

impl Profile {
    /// The agents that are always there.
    pub fn built_in() -> Vec<Profile> {
        let read_only = || Tools {
            only: Some(READING.iter().map(|name| Rule::tool(name)).collect()),
            ..Tools::default()
        };
        let profile = |name: &str, description: &str, prompt: &str, tools| Profile {
            name: name.into(),
            description: description.to_owned(),
            prompt: prompt.trim().to_owned(),
            model: None,
            tools,
            max_turns: None,
            of_project: false,
        };
        vec![
            profile(
                "general",
                "does any task: reads, changes files, runs commands, delegates",
                include_str!("prompts/general.md"),
                Tools::default(),
            ),
            profile(
                "explore",
                "finds things out; reads and searches, changes nothing",
                include_str!("prompts/explore.md"),
                read_only(),
            ),
            profile(
                "plan",
                "works out how to do something, step by step; changes nothing",
                include_str!("prompts/plan.md"),
                read_only(),
            ),
        ]
    }

    /// Reads a Markdown file with frontmatter; `stem` is its name without `.md`. A file that
    /// switches its agent off is no profile.
    ///
    /// # Errors
    /// When it is not such a file.
    pub fn parse(stem: &str, text: &str) -> Result<Option<Profile>, ProfileError> {
        let split = frontmatter::split(text).map_err(|_| ProfileError::NoFrontmatter)?;
        let read = frontmatter::read::<Front>(split.front);
        let front = read.map_err(ProfileError::broken)?.values;
        if front.disable {
            return Ok(None);
        }
        let prompt = split.body.trim();
        if prompt.is_empty() {
            return Err(ProfileError::NoPrompt);
        }
        let mut tools = Tools::default();
        match front.tools {
            None => {}
            Some(Listed::Switches(switches)) if switches.get("*") != Some(&false) => {
                tools.not = switched(&switches, false)?;
            }
            Some(listed) => tools.only = Some(listed.rules()?),
        }
        if let Some(listed) = front.disallowed_tools {
            tools.not.extend(listed.rules()?);
        }
        match front.permission {
            Some(Asked::All(word)) if word == "deny" => tools.only = Some(Vec::new()),
            Some(Asked::Tools(asked)) => tools.not.extend(denied(&asked)?),
            Some(Asked::All(_)) | None => {}
        }
        let filled = |text: &String| !text.trim().is_empty();
        let model = front.model.filter(filled);
        Ok(Some(Profile {
            name: front
                .name
                .filter(filled)
                .unwrap_or(stem.to_owned())
                .trim()
                .into(),
            description: front.description.unwrap_or_default().trim().to_owned(),
            prompt: prompt.to_owned(),
            model: model.filter(|model| model != "inherit"),
            tools,
            max_turns: front.max_turns,
            of_project: false,
        }))
    }
}

/// What changes nothing.
const READING: &[&str] = &["read", "glob", "grep", "todo"];

impl Listed {
    fn rules(self) -> Result<Vec<Rule>, ProfileError> {
        match self {
            Listed::Line(line) => rules(pieces(&line).iter().map(String::as_str)),
            Listed::Names(names) => rules(names.iter().map(String::as_str)),
            Listed::Switches(switches) => switched(&switches, true),
        }
    }
}

fn switched(switches: &BTreeMap<String, bool>, on: bool) -> Result<Vec<Rule>, ProfileError> {
    let those = switches.iter().filter(|(_, switch)| **switch == on);
    rules(those.map(|(name, _)| name.as_str()))
}

fn rules<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Rule>, ProfileError> {
    let mut rules = Vec::new();
    for name in names {
        let rule = Rule::from_str(name).map_err(|error| ProfileError::Tools(error.to_string()))?;
        rules.extend(rule.called_here(ANY_PREFIX));
    }
    Ok(rules)
}

/// What `permission` forbids: `edit: deny`, or `bash: {"git push*": deny}`.
fn denied(asked: &BTreeMap<String, Asked>) -> Result<Vec<Rule>, ProfileError> {
    let is_deny = |asked: &Asked| matches!(asked, Asked::All(word) if word == "deny");
    let mut names = Vec::new();
    for (tool, asked) in asked {
        match asked {
            Asked::Tools(patterns) => {
                let patterns = patterns.iter().filter(|(_, asked)| is_deny(asked));
                names.extend(patterns.map(|(pattern, _)| format!("{tool}({pattern})")));
            }
            Asked::All(_) if is_deny(asked) => names.push(tool.clone()),
            Asked::All(_) => {}
        }
    }
    rules(names.iter().map(String::as_str))
}

/// The tools for background tasks, without their prefix. Who may launch tasks may do with them what
/// there is to do.
pub const TASK_TOOLS: [&str; 7] = [
    "task", "output", "list", "cancel", "message", "answer", "clear",
];

/// Where it is not known which prefix these tools have.
const ANY_PREFIX: &str = "*";

impl Rule {
    /// Other agents' names for the same tools. Those for background tasks have a prefix of
    /// the user's choice.
    fn called_here(self, prefix: &str) -> Vec<Rule> {
        let here = match self.tool_name() {
            "multiedit" => "edit",
            "todowrite" | "todoread" | "todolist" => "todo",
            "ls" | "list" => "glob",
            "shell" => "bash",
            "task" | "agent" => {
                let names = TASK_TOOLS.iter().map(|name| format!("{prefix}{name}"));
                return names.map(|name| self.clone().renamed(&name)).collect();
            }
            _ => return vec![self],
        };
        vec![self.renamed(here)]
    }
}
