//! A call that was read once: judged, shown and run as it is.

use std::sync::Arc;

use asyncagents_core::{
    agent::{CallInfo, Kind, Preview, ToolOutcome},
    arguments::CallError,
};

use crate::{
    places::Place,
    tool::{self, Abandoned, Bash, Call, PathWork, Site, Work},
    workspace::{Reaching, Workspace},
};

/// A call that makes sense, with its path resolved. It cannot be changed, is never read from JSON
/// again, and running it consumes it: what was permitted is what is done.
pub struct Prepared {
    info: CallInfo,
    job: Job,
    workspace: Arc<Workspace>,
}

/// The work of a call, with the place that it was permitted for.
enum Job {
    Path { place: Place, work: PathWork },
    Command(Bash),
    Answer(String),
}

impl Prepared {
    pub(crate) fn new(
        workspace: &Arc<Workspace>,
        tool: &str,
        input: &str,
    ) -> Result<Self, CallError> {
        let (arguments, call) = tool::read(tool, input)?;
        let Call {
            title,
            preview,
            work,
        } = call;
        let (kind, target, job) = match work {
            Work::Path { kind, path, work } => {
                let place = workspace.places.find(kind, &path)?;
                let target = workspace.places.shown(&place.path);
                (kind, target, Job::Path { place, work })
            }
            Work::Command(bash) => (Kind::Run, bash.command.clone(), Job::Command(bash)),
            Work::Answer(text) => (Kind::Note, String::new(), Job::Answer(text)),
        };
        let arguments = || Preview::of_arguments(arguments.shown(), &target);
        Ok(Self {
            info: CallInfo {
                kind,
                title: title.unwrap_or_else(|| target.clone()),
                preview: preview.unwrap_or_else(arguments),
                target,
            },
            job,
            workspace: Arc::clone(workspace),
        })
    }

    /// What the call would do.
    pub fn info(&self) -> &CallInfo {
        &self.info
    }

    /// Does what the call asks for. Files that it was not asked for by name are shown only as far
    /// as `reaching` says. Lines of output go to `progress` as they come. Dropping the future ends
    /// what it runs.
    pub async fn run(
        self,
        reaching: Reaching,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        match self.job {
            Job::Path { place, work } => on_disk(self.workspace, reaching, place, work).await,
            Job::Command(bash) => bash.run(&self.workspace, progress).await,
            Job::Answer(text) => ToolOutcome::Done(text),
        }
    }
}

async fn on_disk(
    workspace: Arc<Workspace>,
    reaching: Reaching,
    place: Place,
    work: PathWork,
) -> ToolOutcome {
    let waiting = Waiting::default();
    let abandoned = Arc::clone(&waiting.abandoned);
    let work = move || {
        let site = Site {
            workspace: &workspace,
            reaching: &reaching,
            abandoned: &abandoned,
        };
        workspace.places.enter(&place)?;
        work(&site, &place)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(text)) => ToolOutcome::Done(text),
        Ok(Err(why)) => ToolOutcome::Failed(why),
        Err(error) => ToolOutcome::Failed(format!("the tool broke down: {error}")),
    }
}

/// Sets the flag for the work when its caller has gone.
#[derive(Default)]
struct Waiting {
    abandoned: Arc<Abandoned>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.abandoned.set();
    }
}
