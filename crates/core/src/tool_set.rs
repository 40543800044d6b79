//! The tools an agent sees for background tasks: how they are described to a model, and what
//! a call means. They are the same in every host.

use serde::{Deserialize, Deserializer, de};

use crate::{
    agent::ToolSpec,
    refusal::Refusal,
    request::{ConversationRequest, OutputRequest, TaskArgs},
    task::Status,
};

/// What a call of one of the tools wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Launch a task, or go on with one.
    Task(TaskArgs),
    /// Where a task stands, or its result.
    Output(OutputRequest),
    /// The tasks of the session.
    List(Option<Status>),
    /// Stop a task.
    Cancel(String),
    /// Stop and forget all tasks of the session.
    Clear,
    /// Use a skill.
    Skill(SkillCall),
}

/// What a call of the tool for skills wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillCall {
    /// The skill.
    pub name: String,
    /// What is said behind its name.
    pub arguments: String,
    /// Whether a sub-agent goes on in the background, if the model says so.
    pub background: Option<bool>,
}

/// The tool for skills in the built-in agent. Elsewhere it has the prefix of the others.
pub const SKILL: &str = "skill";

/// A tool: its name after the prefix, what it does, what it takes.
struct Tool {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
    /// Whether it only looks.
    looks: bool,
    parse: fn(&str) -> Result<ToolRequest, String>,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "task",
        description: "Launch a background agent and get its task ID at once; you are told when it \
            has finished, so go on with other work. The agent starts with its prompt alone, \
            or with `fork: true` with this conversation as well (what was read and found out \
            so far). With `resume`, the ID of a finished task, it goes on in that task's \
            session with its full history instead. Launch independent tasks together.",
        schema: r#"{"type":"object","properties":{"description":{"type":"string","description":"A few words for people"},"prompt":{"type":"string","description":"What to do, complete in itself unless forked"},"agent":{"type":"string","description":"Who does it; see the list of agents"},"fork":{"type":"boolean","description":"Let it inherit this conversation"},"resume":{"type":"string","description":"A finished task to go on with; not together with fork"}},"required":["description","prompt","agent"]}"#,
        looks: false,
        parse: |input| read::<TaskCall>(input).map(TaskCall::request),
    },
    Tool {
        name: "output",
        description: "Where a background task stands, or its result once it has ended. Answers at \
            once, unless `block` is true: then it waits until the task has ended or `timeout` \
            seconds (30 by default, 600 at most) are over. With `full_session`, the child's \
            conversation too.",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string","description":"The ID, or the beginning of it"},"block":{"type":"boolean"},"timeout":{"type":"integer","minimum":0,"maximum":600},"full_session":{"type":"boolean"},"include_tool_results":{"type":"boolean"},"since_message_id":{"type":"string"},"message_limit":{"type":"integer","minimum":1}},"required":["task_id"]}"#,
        looks: true,
        parse: |input| read::<OutputCall>(input)?.request(),
    },
    Tool {
        name: "list",
        description: "The background tasks of this conversation, newest first.",
        schema: r#"{"type":"object","properties":{"status":{"type":"string","enum":["queued","running","resumed","completed","error","cancelled"]}}}"#,
        looks: true,
        parse: |input| read::<ListCall>(input)?.request(),
    },
    Tool {
        name: "cancel",
        description: "Stop a background task and everything below it.",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string","description":"The ID, or the beginning of it"}},"required":["task_id"]}"#,
        looks: false,
        parse: |input| read::<CancelCall>(input).map(|call| ToolRequest::Cancel(call.task_id)),
    },
    Tool {
        name: "clear",
        description: "Stop all background tasks of this conversation and forget them.",
        schema: r#"{"type":"object","properties":{}}"#,
        looks: false,
        parse: |_| Ok(ToolRequest::Clear),
    },
];

const SKILLS: &str = "Use a skill: instructions for a kind of work. Its text comes back as the \
    result; follow it. A skill that runs as a sub-agent comes back with a task ID at once, and you \
    are told when it has finished; with `background: false` the call waits for its summary \
    instead. Use a skill when its description fits what you are asked to do.";

const SKILL_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The skill"},"arguments":{"type":"string","description":"What is said behind its name: the request, or what its description asks for"},"background":{"type":"boolean","description":"false: wait for a sub-agent's summary"}},"required":["name"]}"#;

/// The tool for skills as a model sees it, under a name. `disclosed` lists the skills.
pub fn skill_spec(name: &str, disclosed: Option<&str>) -> ToolSpec {
    let list = disclosed.unwrap_or("(none are installed here)");
    ToolSpec {
        name: name.to_owned(),
        description: format!("{SKILLS}\n\nSkills:\n{list}"),
        schema: SKILL_SCHEMA.to_owned(),
    }
}

/// The tools as a model sees them, their names with a prefix.
pub fn specs(prefix: &str) -> Vec<ToolSpec> {
    let spec = |tool: &Tool| ToolSpec {
        name: format!("{prefix}{}", tool.name),
        description: tool.description.to_owned(),
        schema: tool.schema.to_owned(),
    };
    TOOLS.iter().map(spec).collect()
}

/// All tools, that for skills included, their names with a prefix. `disclosed` lists the skills.
pub fn specs_with_skill(prefix: &str, disclosed: Option<&str>) -> Vec<ToolSpec> {
    let mut tools = specs(prefix);
    tools.push(skill_spec(&format!("{prefix}{SKILL}"), disclosed));
    tools
}

/// Whether a tool of this set only looks and can be called again without harm.
pub fn only_looks(prefix: &str, name: &str) -> bool {
    find(prefix, name).is_some_and(|tool| tool.looks)
}

/// What a call means.
///
/// # Errors
/// With a sentence for the model that made it.
pub fn parse(prefix: &str, name: &str, input: &str) -> Result<ToolRequest, String> {
    if name == SKILL || name.strip_prefix(prefix) == Some(SKILL) {
        let call = read::<SkillInput>(input).and_then(SkillInput::request);
        return call.map_err(|why| format!("{name}: {why}"));
    }
    let Some(tool) = find(prefix, name) else {
        let known: Vec<String> = specs(prefix).into_iter().map(|spec| spec.name).collect();
        return Err(format!(
            "there is no tool {name}; there are {}",
            known.join(", ")
        ));
    };
    (tool.parse)(input).map_err(|why| format!("{name}: {why}"))
}

fn find(prefix: &str, name: &str) -> Option<&'static Tool> {
    let name = name.strip_prefix(prefix)?;
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Models write nothing at all where there is nothing to say.
fn read<'a, T: Deserialize<'a>>(input: &'a str) -> Result<T, String> {
    let input = match input.trim() {
        "" | "null" => "{}",
        _ => input,
    };
    serde_json::from_str(input).map_err(|error| {
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or_default();
        format!("the parameters do not fit: {what}")
    })
}

#[derive(Deserialize)]
struct TaskCall {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default, deserialize_with = "switch")]
    fork: bool,
    #[serde(default)]
    resume: Option<String>,
}

impl TaskCall {
    fn request(self) -> ToolRequest {
        ToolRequest::Task(TaskArgs {
            description: self.description.unwrap_or_default(),
            prompt: self.prompt.unwrap_or_default(),
            agent: self.agent.unwrap_or_default(),
            fork: self.fork,
            resume: self.resume.filter(|id| !id.trim().is_empty()),
            ..TaskArgs::default()
        })
    }
}

#[derive(Deserialize)]
struct OutputCall {
    task_id: String,
    #[serde(default, deserialize_with = "switch")]
    block: bool,
    #[serde(default, deserialize_with = "number")]
    timeout: Option<u64>,
    #[serde(default, deserialize_with = "switch")]
    full_session: bool,
    #[serde(default, deserialize_with = "switch")]
    include_tool_results: bool,
    #[serde(default)]
    since_message_id: Option<String>,
    #[serde(default, deserialize_with = "number")]
    message_limit: Option<u64>,
}

impl OutputCall {
    fn request(self) -> Result<ToolRequest, String> {
        let request = OutputRequest::new(&self.task_id, self.block, self.timeout);
        let mut request = request.map_err(|refusal: Refusal| refusal.to_string())?;
        let filtered = self.since_message_id.is_some() || self.message_limit.is_some();
        if self.full_session || filtered {
            request.conversation = Some(ConversationRequest {
                since: self.since_message_id,
                limit: self
                    .message_limit
                    .and_then(|most| usize::try_from(most).ok()),
                tool_results: self.include_tool_results,
            });
        }
        Ok(ToolRequest::Output(request))
    }
}

#[derive(Deserialize)]
struct ListCall {
    #[serde(default)]
    status: Option<String>,
}

impl ListCall {
    fn request(self) -> Result<ToolRequest, String> {
        let status = self.status.filter(|status| !status.is_empty());
        let parsed = status.map(|status| {
            let parsed: Result<Status, _> = status.parse();
            parsed.map_err(|known| format!("`{status}` is no status; {known}"))
        });
        Ok(ToolRequest::List(parsed.transpose()?))
    }
}

#[derive(Deserialize)]
struct SkillInput {
    #[serde(alias = "skill")]
    name: String,
    #[serde(default, alias = "args")]
    arguments: serde_json::Value,
    #[serde(default, deserialize_with = "maybe_switch")]
    background: Option<bool>,
}

impl SkillInput {
    fn request(self) -> Result<ToolRequest, String> {
        if self.name.trim().is_empty() {
            return Err("`name` is empty; say which skill".to_owned());
        }
        // Some models write what the skill takes as JSON.
        let arguments = match self.arguments {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(ToolRequest::Skill(SkillCall {
            // As rules and catalogs spell it.
            name: self.name.trim().trim_start_matches('/').to_lowercase(),
            arguments,
            background: self.background,
        }))
    }
}

#[derive(Deserialize)]
struct CancelCall {
    task_id: String,
}

/// A switch that may be left open.
fn maybe_switch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    struct Said(#[serde(deserialize_with = "switch")] bool);
    let said = Option::<Said>::deserialize(from)?;
    Ok(said.map(|Said(on)| on))
}

/// `true`, and `"true"` as some models write it.
fn switch<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Switch {
        Plain(bool),
        Text(String),
        None(()),
    }
    match Switch::deserialize(from) {
        Ok(Switch::Plain(on)) => Ok(on),
        Ok(Switch::Text(text)) if text == "true" => Ok(true),
        Ok(Switch::Text(text)) if text == "false" || text.is_empty() => Ok(false),
        Ok(Switch::None(())) => Ok(false),
        Ok(Switch::Text(_)) | Err(_) => Err(de::Error::custom("a switch is true or false")),
    }
}

/// `30`, and `"30"` or `30.0` as some models write it.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(u64),
        Float(f64),
        Text(String),
        None(()),
    }
    let wrong = || de::Error::custom("a number is a whole number from 0 on");
    match Number::deserialize(from) {
        Ok(Number::Whole(number)) => Ok(Some(number)),
        Ok(Number::Float(number)) if number >= 0.0 && number.fract() == 0.0 => {
            Ok(Some(number as u64))
        }
        Ok(Number::Text(text)) if text.is_empty() => Ok(None),
        Ok(Number::Text(text)) => text.parse().map(Some).map_err(|_| wrong()),
        Ok(Number::None(())) => Ok(None),
        Ok(Number::Float(_)) | Err(_) => Err(wrong()),
    }
}
