//! Skills: which there are, what one says, and what is wrong with them.

use std::{borrow::Cow, collections::BTreeMap};

use asyncagents_core::{
    agent::{Effort, Rule},
    skill::{Catalog, Flaw, Listed},
};
use serde::Serialize;

use crate::values::millis;

/// The skills there are, and the files that cannot be used.
#[derive(Debug, Serialize)]
pub struct SkillsView<'a> {
    broken: Vec<BrokenSkill<'a>>,
    skills: Vec<SkillView<'a>>,
}

#[derive(Debug, Serialize)]
struct BrokenSkill<'a> {
    file: Cow<'a, str>,
    flaws: Vec<FlawView>,
}

/// What is wrong, and in which line.
#[derive(Debug, Serialize)]
pub struct FlawView {
    pub line: usize,
    pub reason: String,
}

/// A skill in a list.
#[derive(Debug, Serialize)]
pub struct SkillView<'a> {
    context: &'static str,
    description: &'a str,
    file: Cow<'a, str>,
    layer: &'static str,
    model_invocable: bool,
    name: &'a str,
    priority: i64,
    refused_elsewhere: Vec<FlawView>,
    shadowed_by: Option<Cow<'a, str>>,
    tags: &'a [String],
    title: Option<&'a str>,
    user_invocable: bool,
}

/// All of a skill. What its head does not say is null, and a list is a list.
#[derive(Debug, Serialize)]
#[serde(remote = "Self")]
pub struct SkillDetails<'a> {
    #[serde(flatten)]
    listed: SkillView<'a>,
    when_to_use: Option<&'a str>,
    agent: Option<&'a str>,
    model: Option<&'a str>,
    effort: Option<&'static str>,
    allowed_tools: Option<Vec<String>>,
    disallowed_tools: Vec<String>,
    max_iterations: Option<u64>,
    max_retries_per_tool: Option<u32>,
    timeout_per_iteration_ms: Option<u64>,
    timeout_ms: Option<u64>,
    background: Option<bool>,
    argument_hint: Option<&'a str>,
    arguments: &'a [String],
    license: Option<&'a str>,
    compatibility: Option<&'a str>,
    metadata: &'a BTreeMap<String, String>,
    unknown_keys: &'a [String],
    remarks: Vec<FlawView>,
    body: &'a str,
}

/// What a check of skills has found.
#[derive(Debug, Serialize)]
pub struct CheckView {
    pub bad: usize,
    pub checked: usize,
    pub skills: Vec<CheckedSkill>,
}

/// What there is to say about one file. It is bad if it has flaws: it cannot be used, here or
/// where others keep to the standard.
#[derive(Debug, Serialize)]
pub struct CheckedSkill {
    bad: bool,
    pub file: String,
    pub flaws: Vec<FlawView>,
    name: Option<String>,
    pub remarks: Vec<FlawView>,
}

impl CheckView {
    /// The sum of what was found in each file.
    pub fn new(skills: Vec<CheckedSkill>) -> Self {
        Self {
            bad: skills.iter().filter(|skill| skill.bad).count(),
            checked: skills.len(),
            skills,
        }
    }
}

impl CheckedSkill {
    /// A file, the skill in it if it can be used at all, and what was found.
    pub fn new(file: String, name: Option<&str>, flaws: &[Flaw], remarks: &[Flaw]) -> Self {
        Self {
            bad: !flaws.is_empty(),
            file,
            flaws: FlawView::all(flaws),
            name: name.map(str::to_owned),
            remarks: FlawView::all(remarks),
        }
    }
}

impl<'a> SkillsView<'a> {
    /// These skills, and what is broken in their catalog.
    pub fn new(skills: &[&'a Listed], catalog: &'a Catalog) -> Self {
        let broken = catalog.broken.iter().map(|(file, flaws)| BrokenSkill {
            file: file.to_string_lossy(),
            flaws: FlawView::all(flaws),
        });
        Self {
            broken: broken.collect(),
            skills: skills.iter().copied().map(SkillView::from).collect(),
        }
    }
}

impl FlawView {
    fn all(flaws: &[Flaw]) -> Vec<Self> {
        let view = |flaw: &Flaw| Self {
            line: flaw.line,
            reason: flaw.why.clone(),
        };
        flaws.iter().map(view).collect()
    }
}

impl<'a> From<&'a Listed> for SkillView<'a> {
    fn from(listed: &'a Listed) -> Self {
        let manifest = &listed.skill.manifest;
        let shadowed_by = listed.shadowed_by.as_deref();
        Self {
            context: manifest.context.name(),
            description: &manifest.description,
            file: listed.file.to_string_lossy(),
            layer: listed.layer.name(),
            model_invocable: manifest.for_model,
            name: &manifest.name,
            priority: manifest.priority,
            refused_elsewhere: FlawView::all(&listed.skill.refused_elsewhere),
            shadowed_by: shadowed_by.map(|file| file.to_string_lossy()),
            tags: &manifest.tags,
            title: manifest.title.as_deref(),
            user_invocable: manifest.for_user,
        }
    }
}

impl<'a> From<&'a Listed> for SkillDetails<'a> {
    fn from(listed: &'a Listed) -> Self {
        let manifest = &listed.skill.manifest;
        let written = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect();
        Self {
            listed: listed.into(),
            when_to_use: manifest.when_to_use.as_deref(),
            agent: manifest.agent.as_deref(),
            model: manifest.model.as_deref(),
            effort: manifest.effort.map(Effort::word),
            allowed_tools: manifest.tools.only.as_deref().map(written),
            disallowed_tools: written(&manifest.tools.not),
            max_iterations: manifest.max_iterations,
            max_retries_per_tool: manifest.max_retries,
            timeout_per_iteration_ms: manifest.iteration_time.map(millis),
            timeout_ms: manifest.time.map(millis),
            background: manifest.background,
            argument_hint: manifest.argument_hint.as_deref(),
            arguments: &manifest.arguments,
            license: manifest.license.as_deref(),
            compatibility: manifest.compatibility.as_deref(),
            metadata: &manifest.metadata,
            unknown_keys: &manifest.unknown,
            remarks: FlawView::all(&listed.skill.remarks),
            body: &listed.skill.body,
        }
    }
}
