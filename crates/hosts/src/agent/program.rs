//! A process of another agent, as the wires need it: pipes, and what ends it. Where it runs, in
//! which sandbox and with which environment, is for others to say.

use std::{
    any::Any,
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, lock::lock, make_visible::make_visible, shorten::shorten};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader},
    sync::mpsc,
    task::JoinSet,
};

use super::{HookCall, WireError};

/// Set for all that a child of another vendor is and starts. What the user has installed of ours in that
/// agent offers nothing there: the child has our tools from its worker, as the child that it is, and
/// would otherwise be a session of its own with all of a user's depth and budget.
pub const CHILD_VARIABLE: &str = "ASYNCAGENTS_CHILD";

/// Starts processes of one agent.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Starts one, with these arguments after its own. With `tools`, it can be given ours.
    ///
    /// # Errors
    /// [`WireError::NotStarted`] where it cannot be started, and [`WireError::Gone`] if its process has ended
    /// before it began.
    async fn start(&self, arguments: &[String], tools: ToolsFor) -> Result<Program, WireError>;

    /// Ends a process that another process of ours has started, if it is still there: two must not
    /// work in one session.
    async fn end(&self, process: &str) {
        let _ = process;
    }
}

/// For whom a process is given our tools for tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolsFor {
    Nobody,
    /// This session of ours.
    Session(SessionId),
}

/// A process that was started.
pub struct Program {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub errors: ErrorTail,
    /// A name for it that no other process gets, so that it can be ended by others.
    pub process: Option<String>,
    /// The MCP server that the agent is to start, for our tools.
    pub tools: Option<ToolServer>,
    /// What its hook asks before each call, if that is how it asks.
    pub hook: Option<mpsc::UnboundedReceiver<HookCall>>,
    /// Ends the process and all that it has started, when it is dropped.
    pub end: Box<dyn Any + Send + Sync>,
}

/// An MCP server that an agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    pub name: String,
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// How many of the last lines of errors are kept, and how much of each.
const LINES: usize = 5;
const LONGEST_LINE: u64 = 2_000;
const SHOWN: usize = 600;

/// The last lines that a process has written to its standard error.
#[derive(Debug, Clone, Default)]
pub struct ErrorTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Reads them as long as anyone may want to know.
    _reading: Option<Arc<JoinSet<()>>>,
}

fn push(lines: &Mutex<VecDeque<String>>, text: String) {
    let mut lines = lock(lines);
    lines.push_back(text);
    if lines.len() > LINES {
        lines.pop_front();
    }
}

impl ErrorTail {
    /// Reads them as they come, until the process closes its end.
    pub fn read(from: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (mut reading, read) = (JoinSet::new(), lines.clone());
        reading.spawn(async move {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            loop {
                line.clear();
                let mut bounded = (&mut from).take(LONGEST_LINE);
                match bounded.read_until(b'\n', &mut line).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                if text.is_empty() {
                    continue;
                }
                push(&read, text);
            }
        });
        Self {
            lines,
            _reading: Some(Arc::new(reading)),
        }
    }

    /// Something that is known of the process, as if it had said so.
    pub fn note(&self, text: &str) {
        push(&self.lines, text.to_owned());
    }

    /// A sentence, with what the process has said last.
    pub fn explain(&self, what: &str) -> String {
        let lines = lock(&self.lines);
        if lines.is_empty() {
            return what.to_owned();
        }
        let said = Vec::from_iter(lines.iter().map(String::as_str)).join("; ");
        let said = make_visible(&shorten(&said, SHOWN, "…"));
        format!("{what}; it said last: {said}")
    }
}
