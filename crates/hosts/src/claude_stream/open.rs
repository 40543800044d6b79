//! Starts Claude Code with a session.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use asyncagents_core::id::PostId;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    arguments::{arguments, instructions},
    connection::{SessionFacts, StreamConnection},
    history,
};
use crate::agent::{
    Connection, EventSender, OpenSession, Programs, SessionOpened, ToolsFor, Which, Wire, WireError,
};

/// Claude Code by its own records, without an adapter.
pub struct ClaudeStream {
    programs: Arc<dyn Programs>,
    config: PathBuf,
    asks_to_read: bool,
}

impl ClaudeStream {
    /// The Claude Code that is started so, with its configuration folder. In that it keeps its
    /// sessions. `asks_to_read`: whether it is to ask also before it reads.
    pub fn new(programs: Arc<dyn Programs>, config: PathBuf, asks_to_read: bool) -> Self {
        Self {
            programs,
            config,
            asks_to_read,
        }
    }

    /// Which posts a session was told.
    async fn told(&self, id: &str, posts: &[PostId]) -> Result<BTreeSet<PostId>, WireError> {
        let (config, session, posts) = (self.config.clone(), id.to_owned(), posts.to_vec());
        let told = spawn_blocking(move || history::told(&config, &session, &posts)).await;
        match told {
            Ok(Ok(Some(told))) => Ok(told),
            Ok(Ok(None)) => Err(WireError::NoSession(id.to_owned())),
            Ok(Err(error)) => Err(unreadable(id, &error)),
            Err(error) => Err(unreadable(id, &error)),
        }
    }
}

fn unreadable(id: &str, error: &dyn std::error::Error) -> WireError {
    WireError::Failed(format!("its session {id} cannot be read: {error}"))
}

#[async_trait]
impl Wire for ClaudeStream {
    async fn start(
        &self,
        open: &OpenSession,
        events: EventSender,
    ) -> Result<Box<dyn Connection>, WireError> {
        if let Some(process) = &open.ends {
            self.programs.end(process).await;
        }
        let new = Uuid::new_v4();
        let (id, found) = match &open.which {
            Which::New => (new.to_string(), BTreeSet::new()),
            Which::Load(id) => (id.clone(), self.told(id, &open.look_for).await?),
            Which::Fork(id) => {
                self.told(id, &[]).await?;
                (new.to_string(), BTreeSet::new())
            }
        };
        let tools = if open.may_delegate {
            ToolsFor::Session(open.ours.clone())
        } else {
            ToolsFor::Nobody
        };
        let arguments = arguments(open, &new, self.asks_to_read);
        let program = self.programs.start(&arguments, tools).await?;
        let tools = program.tools.clone();
        let opened = SessionOpened {
            id,
            found,
            process: program.process.clone(),
            forks: true,
        };
        let facts = SessionFacts {
            opened,
            is_new: open.which == Which::New,
            config: self.config.clone(),
        };
        let connection = StreamConnection::new(program, facts, events);
        match connection
            .prepare(&instructions(open), tools.as_ref())
            .await
        {
            Ok(()) => Ok(Box::new(connection)),
            Err(WireError::Failed(why)) => Err(WireError::NotStarted(why)),
            // Two that begin at once get in each other's way: what has gone is started again.
            Err(error) => Err(error),
        }
    }
}
