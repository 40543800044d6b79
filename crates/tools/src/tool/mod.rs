//! The tools, one file each.

pub(crate) mod bash;
mod edit;
mod glob;
mod grep;
mod ignore_files;
mod nearest;
mod read;
mod similar_name;
mod todo;
mod walk;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use asyncagents_core::agent::{ToolOutcome, ToolSpec};

use crate::{
    need::{Kind, Need},
    places::{Places, echo},
    toolbox::{Inner, Reaching},
};

/// A call whose arguments fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Read(read::Read),
    Write(write::Write),
    Edit(edit::Edit),
    Glob(glob::Glob),
    Grep(grep::Grep),
    Bash(bash::Bash),
    Todo(todo::Todo),
}

/// Says when nobody waits for the answer any more.
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

/// The tools as a model sees them, always in this order.
pub(crate) fn specs() -> Vec<ToolSpec> {
    vec![
        read::spec(),
        write::spec(),
        edit::spec(),
        glob::spec(),
        grep::spec(),
        bash::spec(),
        todo::spec(),
    ]
}

impl Call {
    /// Reads the arguments. The error is for the model.
    pub(crate) fn read(tool: &str, input: &str) -> Result<Self, String> {
        match tool {
            read::NAME => read::Read::parse(input).map(Call::Read),
            write::NAME => write::Write::parse(input).map(Call::Write),
            edit::NAME => edit::Edit::parse(input).map(Call::Edit),
            glob::NAME => glob::Glob::parse(input).map(Call::Glob),
            grep::NAME => grep::Grep::parse(input).map(Call::Grep),
            bash::NAME => bash::Bash::parse(input).map(Call::Bash),
            todo::NAME => todo::Todo::parse(input).map(Call::Todo),
            _ => {
                let known: Vec<_> = specs().into_iter().map(|spec| spec.name).collect();
                Err(format!(
                    "there is no tool `{}`. The tools are: {}.",
                    echo(tool),
                    known.join(", ")
                ))
            }
        }
    }

    /// What the call would do.
    pub(crate) fn need(&self, places: &Places) -> Result<Need, String> {
        let at = |kind, path: &str| {
            let place = places.find(kind, path)?;
            Ok(Need {
                kind,
                target: places.shown(&place.path),
                outside: place.outside,
            })
        };
        let inside = |kind, target: &str| Need {
            kind,
            target: target.to_owned(),
            outside: false,
        };
        match self {
            Call::Read(call) => at(Kind::Read, &call.path),
            Call::Glob(call) => at(Kind::Read, &call.path),
            Call::Grep(call) => at(Kind::Read, &call.path),
            Call::Write(call) => at(Kind::Edit, &call.path),
            Call::Edit(call) => at(Kind::Edit, &call.path),
            Call::Bash(call) => Ok(inside(Kind::Run, &call.command)),
            Call::Todo(_) => Ok(inside(Kind::Note, "")),
        }
    }

    /// The work of a call that waits for the disk.
    pub(crate) fn work(
        &self,
        inner: &Inner,
        session: &str,
        reaching: &Reaching,
        abandoned: &Abandoned,
    ) -> ToolOutcome {
        let answer = match self {
            Call::Read(call) => call.work(inner, session, reaching),
            Call::Write(call) => call.work(inner, session),
            Call::Edit(call) => call.work(inner, session, reaching),
            Call::Glob(call) => call.work(inner, reaching, abandoned),
            Call::Grep(call) => call.work(inner, reaching, abandoned),
            Call::Todo(call) => Ok(call.answer()),
            Call::Bash(_) => Err("bash does not wait for the disk".to_owned()),
        };
        match answer {
            Ok(text) => ToolOutcome::Done(text),
            Err(text) => ToolOutcome::Failed(text),
        }
    }
}

fn spec(name: &str, description: &str, schema: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: schema.to_owned(),
    }
}
