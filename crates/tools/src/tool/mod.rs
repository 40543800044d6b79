//! The tools, one file each.

mod bash;
mod command;
mod edit;
mod glob;
mod grep;
mod ignore_files;
mod nearest;
mod numbered;
mod read;
mod read_only;
mod similar_name;
mod todo;
mod walk;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use asyncagents_core::{
    agent::{Kind, Preview, ToolSpec},
    arguments::{Arguments, CallError},
};

pub(crate) use self::{
    bash::{Bash, signal_name},
    read_only::run_read_only,
};
use crate::{
    places::{Place, echo},
    workspace::{Reaching, Workspace},
};

/// The tools, in the order in which a model sees them.
const TOOLS: &[Tool] = &[
    read::TOOL,
    write::TOOL,
    edit::TOOL,
    glob::TOOL,
    grep::TOOL,
    bash::TOOL,
    todo::TOOL,
];

/// A tool: how a model sees it, and how a call of it is read.
pub(crate) struct Tool {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
    /// A call that fits, shown with every error.
    example: &'static str,
    read: fn(&Arguments) -> Result<Call, String>,
}

/// What the arguments of a call mean.
pub(crate) struct Call {
    /// For a person who watches, if its target says less.
    pub(crate) title: Option<String>,
    /// For a person who is asked, if there is more to see than arguments.
    pub(crate) preview: Option<Preview>,
    pub(crate) work: Work,
}

/// What there is to do.
pub(crate) enum Work {
    /// Something with a file or folder, on a thread that may wait for the disk.
    Path {
        kind: Kind,
        path: String,
        work: PathWork,
    },
    Command(Bash),
    /// Nothing: the answer is known.
    Answer(String),
}

pub(crate) type PathWork = Box<dyn FnOnce(&Site, &Place) -> Result<String, String> + Send>;

/// Where a call is run.
pub(crate) struct Site<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) reaching: &'a Reaching,
    pub(crate) abandoned: &'a Abandoned,
}

/// Set when no caller waits for the answer any more.
#[derive(Default)]
pub(crate) struct Abandoned(AtomicBool);

impl Abandoned {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The tools as a model sees them: always the same bytes in the same order.
pub fn specs() -> Vec<ToolSpec> {
    let spec = |tool: &Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tool.schema.to_owned(),
    };
    TOOLS.iter().map(spec).collect()
}

/// Reads a call: its arguments, and what they mean.
pub(crate) fn read(tool: &str, input: &str) -> Result<(Arguments, Call), CallError> {
    let Some(known) = TOOLS.iter().find(|known| known.name == tool) else {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        let (tool, names) = (echo(tool), names.join(", "));
        return Err(format!("there is no tool `{tool}`. The tools are: {names}.").into());
    };
    let arguments = Arguments::read(input, known.example)?;
    let call = (known.read)(&arguments)?;
    Ok((arguments, call))
}

impl Call {
    /// A call that does something with a file or folder.
    fn on_path(
        kind: Kind,
        path: String,
        work: impl FnOnce(&Site, &Place) -> Result<String, String> + Send + 'static,
    ) -> Self {
        let work = Box::new(work);
        Work::Path { kind, path, work }.into()
    }
}

impl From<Work> for Call {
    fn from(work: Work) -> Self {
        Self {
            title: None,
            preview: None,
            work,
        }
    }
}
