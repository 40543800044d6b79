//! The tools an agent sees for background tasks: how they are described to a model, and what
//! a call means. They are the same in every host.

use crate::{
    agent::{CallInfo, Kind, Preview, ToolSpec},
    arguments::{Arguments, CallError},
    request::{
        AnswerRequest, ConversationRequest, MessageRequest, OutputRequest, TaskArgs, TextPart,
    },
    skill::name_key,
    task::Status,
    wording::listed,
};

/// A call that was parsed once: permissions are decided by its `info`, and `request` is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    pub info: CallInfo,
    pub request: ToolRequest,
}

/// What a call of one of the tools asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Launch or resume a task.
    Task(TaskArgs),
    /// Show a task's status, or its result.
    Output(OutputRequest),
    /// List the tasks of the session.
    List(Option<Status>),
    Cancel(String),
    /// Tell a task something.
    Message(MessageRequest),
    /// Answer what a task asks.
    Answer(AnswerRequest),
    /// Stop and forget all tasks of the session.
    Clear,
    Skill(SkillCall),
}

/// A call of the tool for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillCall {
    pub name: String,
    pub arguments: String,
    /// Whether a sub-agent runs in the background, if the model says so.
    pub background: Option<bool>,
}

/// The tool for skills in the built-in agent. Elsewhere it has the prefix of the others.
pub const SKILL: &str = "skill";

/// The tool that answers what a task asks, after the prefix.
pub const ANSWER: &str = "answer";

/// A tool: its name after the prefix, what it does, what it takes.
struct Tool {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
    /// A call that fits, shown with every error.
    example: &'static str,
    read: fn(&Arguments) -> Result<ToolRequest, String>,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "task",
        description: "Launch a background agent; you are told when it ends. It knows only its prompt; \
            with `fork`, this conversation too. `resume`: a finished task's ID. `host`: claude, \
            codex.",
        schema: r#"{"type":"object","properties":{"description":{"type":"string"},"prompt":{"type":"string"},"agent":{"type":"string"},"host":{"type":"string"},"fork":{"type":"boolean"},"resume":{"type":"string"},"model":{"type":"string"},"effort":{"enum":["low","medium","high"]}},"required":["description","prompt","agent"]}"#,
        example: r#"{"description": "Review parser", "prompt": "Review src/parser.rs", "agent": "general"}"#,
        read: task,
    },
    Tool {
        name: "output",
        description: "A task's status or result. `block` waits for its end, up to `timeout` \
            seconds (30; 600 at most).",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"block":{"type":"boolean"},"timeout":{"type":"integer"},"full_session":{"type":"boolean"},"offset":{"type":"integer"}},"required":["task_id"]}"#,
        example: r#"{"task_id": "task_4f1c", "block": true, "timeout": 60}"#,
        read: output,
    },
    Tool {
        name: "list",
        description: "Your tasks.",
        schema: r#"{"type":"object","properties":{"status":{"type":"string"}}}"#,
        example: r#"{"status": "running"}"#,
        read: list,
    },
    Tool {
        name: "cancel",
        description: "Stop a task and those below it.",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"]}"#,
        example: r#"{"task_id": "task_4f1c"}"#,
        read: |arguments| arguments.text("task_id").map(ToolRequest::Cancel),
    },
    Tool {
        name: "message",
        description: "Tell a running task something before its next step.",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"text":{"type":"string"}},"required":["task_id","text"]}"#,
        example: r#"{"task_id": "task_4f1c", "text": "Leave the tests alone"}"#,
        read: message,
    },
    Tool {
        name: ANSWER,
        description: "Answer what a task asks.",
        schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"question":{"type":"string"},"decision":{"type":"string"},"text":{"type":"string"}}}"#,
        example: r#"{"task_id": "task_4f1c", "decision": "reject", "text": "Use the mock instead"}"#,
        read: answer,
    },
    Tool {
        name: "clear",
        description: "Stop and forget all your tasks.",
        schema: r#"{"type":"object","properties":{}}"#,
        example: "{}",
        read: |_| Ok(ToolRequest::Clear),
    },
];

const SKILLS: &str = "Use a skill: instructions for a kind of work. Do so when its description \
    fits; follow the text that comes back. One that runs as a sub-agent returns a task ID, with \
    `background: false` its summary.";

const SKILL_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"string","description":"The request, or what its description asks for"},"background":{"type":"boolean"}},"required":["name"]}"#;

const SKILL_EXAMPLE: &str = r#"{"name": "review", "arguments": "src/parser.rs"}"#;

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

/// Reads a call of one of the tools, the one for skills included.
///
/// # Errors
/// With a sentence for the model that made it.
pub fn prepare(prefix: &str, name: &str, input: &str) -> Result<Prepared, CallError> {
    let is_skill = name == SKILL || name.strip_prefix(prefix) == Some(SKILL);
    let tool = find(prefix, name).map(|tool| (tool.example, tool.read));
    let skill: Option<(_, fn(&Arguments) -> _)> = is_skill.then_some((SKILL_EXAMPLE, skill));
    let Some((example, read)) = skill.or(tool) else {
        let known = specs_with_skill(prefix, None).into_iter();
        let known: Vec<String> = known.map(|spec| spec.name).collect();
        let known = known.join(", ");
        let why = format!("there is no tool {name}; there are {known}");
        return Err(CallError::NoTool(why));
    };
    let arguments = Arguments::read(input, example).map_err(|error| match error {
        CallError::NotJson(why) => CallError::NotJson(format!("{name}: {why}")),
        CallError::NoTool(why) => CallError::NoTool(why),
        CallError::Unfit(why) => CallError::Unfit(format!("{name}: {why}")),
    })?;
    let request = read(&arguments).map_err(|why| format!("{name}: {why}"))?;
    let target = request.target();
    Ok(Prepared {
        info: CallInfo {
            kind: Kind::Note,
            title: target.clone(),
            preview: Preview::of_arguments(arguments.shown(), &target),
            target,
        },
        request,
    })
}

fn find(prefix: &str, name: &str) -> Option<&'static Tool> {
    let name = name.strip_prefix(prefix)?;
    TOOLS.iter().find(|tool| tool.name == name)
}

impl ToolRequest {
    /// Whether the call is idempotent: it changes nothing.
    pub fn only_looks(&self) -> bool {
        match self {
            ToolRequest::Output(_) | ToolRequest::List(_) => true,
            ToolRequest::Task(_)
            | ToolRequest::Cancel(_)
            | ToolRequest::Message(_)
            | ToolRequest::Answer(_)
            | ToolRequest::Clear
            | ToolRequest::Skill(_) => false,
        }
    }

    /// What another host shows beside the name of the tool.
    pub fn title(&self) -> &str {
        match self {
            ToolRequest::Task(args) => &args.description,
            ToolRequest::Output(request) => &request.task,
            ToolRequest::Cancel(task) => task,
            ToolRequest::Message(request) => &request.task,
            ToolRequest::Answer(request) => &request.task,
            ToolRequest::Skill(skill) => &skill.name,
            ToolRequest::List(_) | ToolRequest::Clear => "",
        }
    }

    /// What the call is about, for rules and for people.
    fn target(&self) -> String {
        match self {
            ToolRequest::Task(TaskArgs {
                resume: Some(task), ..
            }) => format!("resume {task}"),
            ToolRequest::Task(args) => args.description.clone(),
            ToolRequest::Output(request) => request.task.clone(),
            ToolRequest::List(status) => status.map(|s| s.to_string()).unwrap_or_default(),
            ToolRequest::Cancel(task) => task.clone(),
            ToolRequest::Message(request) => request.task.clone(),
            ToolRequest::Answer(request) => request.task.clone(),
            ToolRequest::Clear => String::new(),
            ToolRequest::Skill(skill) => name_key(&skill.name),
        }
    }
}

fn task(arguments: &Arguments) -> Result<ToolRequest, String> {
    // What is missing is refused where the request is checked.
    let text = |name| arguments.optional_text(name).map(Option::unwrap_or_default);
    let resume = arguments.optional_text("resume")?;
    Ok(ToolRequest::Task(TaskArgs {
        description: text("description")?,
        prompt: text("prompt")?,
        agent: text("agent")?,
        host: arguments
            .optional_text("host")?
            .filter(|host| !host.trim().is_empty()),
        fork: arguments.flag("fork")?,
        resume: resume.filter(|id| !id.trim().is_empty()),
        model: arguments.optional_text("model")?,
        effort: arguments.optional_text("effort")?,
        ..TaskArgs::default()
    }))
}

fn output(arguments: &Arguments) -> Result<ToolRequest, String> {
    let timeout = arguments.number("timeout", 0)?;
    let task = arguments.text("task_id")?;
    let request = OutputRequest::new(&task, arguments.flag("block")?, timeout);
    let mut request = request.map_err(|refusal| refusal.to_string())?;
    let whole = arguments.flag("full_session")?;
    let tool_results = arguments.flag("include_tool_results")?;
    let since = arguments.optional_text("since_message_id")?;
    let limit = arguments.number("message_limit", 0)?;
    let offset = arguments.number("offset", 0)?;
    request.part = TextPart::new(offset, arguments.number("max_chars", 1)?);
    if whole || since.is_some() || limit.is_some() {
        request.conversation = Some(ConversationRequest {
            since,
            limit: limit.and_then(|most| usize::try_from(most).ok()),
            tool_results,
        });
    }
    Ok(ToolRequest::Output(request))
}

fn message(arguments: &Arguments) -> Result<ToolRequest, String> {
    let (task, text) = (arguments.text("task_id")?, arguments.text("text")?);
    let request = MessageRequest::new(&task, text);
    request
        .map(ToolRequest::Message)
        .map_err(|refusal| refusal.to_string())
}

fn answer(arguments: &Arguments) -> Result<ToolRequest, String> {
    let task = arguments.text("task_id")?;
    let decision = arguments.optional_text("decision")?;
    let text = arguments.optional_text("text")?;
    let values = arguments.values("values")?;
    let request = AnswerRequest::new(&task, decision.as_deref(), text, values);
    let question = arguments.any_text("question").trim().to_owned();
    let answer = |request| AnswerRequest {
        question: Some(question).filter(|question| !question.is_empty()),
        ..request
    };
    request
        .map(|request| ToolRequest::Answer(answer(request)))
        .map_err(|refusal| refusal.to_string())
}

fn list(arguments: &Arguments) -> Result<ToolRequest, String> {
    let status = arguments.optional_text("status")?;
    let parsed = status.filter(|status| !status.is_empty()).map(|status| {
        Status::of_word(&status).ok_or_else(|| {
            let known = listed(Status::ALL.iter().map(|(word, _)| word), "and");
            format!("`{status}` is no status; there are {known}")
        })
    });
    Ok(ToolRequest::List(parsed.transpose()?))
}

fn skill(arguments: &Arguments) -> Result<ToolRequest, String> {
    // Other agents' words for the same.
    let called = |ours, theirs| {
        let only_theirs = arguments.has(theirs) && !arguments.has(ours);
        if only_theirs { theirs } else { ours }
    };
    let name = arguments.text(called("name", "skill"))?;
    if name.trim().is_empty() {
        return Err("`name` is empty; say which skill".to_owned());
    }
    Ok(ToolRequest::Skill(SkillCall {
        // As rules and catalogs spell it.
        name: name.trim().trim_start_matches('/').to_lowercase(),
        arguments: arguments.any_text(called("arguments", "args")),
        background: arguments.optional_flag("background")?,
    }))
}
