//! The life of an agent's process, and its end.

use std::time::Duration;

use tokio::{
    io::AsyncReadExt,
    net::UnixStream,
    process::{Child, ChildStdout},
    runtime::Handle,
    time::timeout,
};

use crate::{
    sandbox::{Report, Sandbox},
    temporary::Temporary,
    tool::signal_name,
};

/// How long the end of all processes is waited for. They are ended also if that takes longer.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const MOST_REPORT: u64 = 16 * 1024;

/// The life of an agent's process. When it is dropped, the process ends, with all that it has started.
pub struct AgentLife {
    /// Closing it ends all: the guard and the supervisor wait for that.
    pub(super) control: Option<UnixStream>,
    pub(super) guard: Child,
    pub(super) report: Option<ChildStdout>,
    pub(super) pid: Option<u32>,
    pub(super) sandbox: Sandbox,
    /// Goes when the processes are told to end.
    pub(super) temporary: Option<Temporary>,
}

impl AgentLife {
    /// The number of the process, if it has begun.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What is enforced: never [`Sandbox::Missing`].
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Waits until it has ended, with all that it has started, and says how: «exited with code 1».
    pub async fn wait(&mut self) -> String {
        let mut line = String::new();
        if let Some(report) = &mut self.report {
            // Where nothing can be read nobody has reported. It ends with the supervisor, also if the
            // guard is gone.
            let _ = report.take(MOST_REPORT).read_to_string(&mut line).await;
        }
        let _ = self.guard.wait().await;
        in_words(Report::read(&line))
    }

    /// Ends it, with all that it has started, and waits for that, but not for ever.
    pub async fn kill(mut self) {
        drop(self.control.take());
        let _ = timeout(END_TIMEOUT, self.wait()).await;
    }
}

impl Drop for AgentLife {
    fn drop(&mut self) {
        drop(self.control.take());
        let temporary = self.temporary.take();
        // There may be much in it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(|| drop(temporary));
        }
    }
}

fn in_words(report: Option<Report>) -> String {
    match report {
        Some(Report::Exited(code)) => format!("exited with code {code}"),
        Some(Report::Killed(signal)) => format!("was ended by {}", signal_name(signal)),
        Some(Report::Failed(why)) => why,
        Some(Report::Exceeded(limit)) => format!("was ended because {limit}"),
        Some(Report::Lost(how)) => format!("was ended: its supervisor {how}"),
        Some(Report::Left(why)) => format!("has ended, but not all that it has started: {why}"),
        None => "has ended; how is unknown".to_owned(),
    }
}
