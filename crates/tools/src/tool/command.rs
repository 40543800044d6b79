//! Runs a command with its guard and supervisor, to its end or its timeout.

use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::unix::pipe,
    process::{Child, ChildStdin, ChildStdout},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    clean_output::Cleaner,
    fit_answer::HeadAndTail,
    sandbox::{Begun, CommandLine, HelperKind, Limits, Order, Report, SESSION_VARIABLE, Sandbox},
    variables,
    workspace::Workspace,
};

/// How long an answer waits for all processes to end once the guard's input is closed. They are
/// ended also if that takes longer.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const MOST_REPORT: u64 = 16 * 1024;

/// Whether commands run in a sandbox, and what they may do there.
pub(super) async fn sandbox_and_limits(
    workspace: &Arc<Workspace>,
) -> Result<(Sandbox, Limits), String> {
    let workspace = Arc::clone(workspace);
    let found = move || Ok((workspace.sandbox()?, workspace.limits()));
    let found = tokio::task::spawn_blocking(found).await;
    let found = found.map_err(|error| error.to_string()).flatten();
    found.map_err(|why| format!("bash cannot be started: {why}"))
}

/// The helpers that run commands with these limits here.
pub(super) fn helper_kind(workspace: &Workspace, limits: Option<Limits>) -> HelperKind {
    HelperKind {
        program: workspace.settings.helper.clone(),
        folder: workspace.places.workspace.clone(),
        environment: environment(workspace, limits.is_some()),
        order: Order {
            limits,
            resources: workspace.settings.resources,
            ..Order::default()
        },
    }
}

/// A command with its guard and supervisor.
pub(super) struct Running {
    guard: Child,
    /// The input of the guard. Closing it ends all.
    input: Option<ChildStdin>,
    output: pipe::Receiver,
}

/// A command that has ended.
pub(super) struct Ended {
    pub(super) output: String,
    pub(super) how: How,
}

pub(super) enum How {
    Reported(Report),
    TimedOut {
        after: Duration,
        rest: Rest,
    },
    /// Guard and supervisor are gone without a report.
    Lost,
    /// The supervisor is still ending what came of it.
    BeingEnded,
}

/// What became of the processes of a command.
pub(super) enum Rest {
    Ended,
    BeingEnded,
    MayRun,
}

impl Running {
    /// Runs a command with bash or the plain shell.
    pub(super) async fn start(
        workspace: &Workspace,
        kind: &HelperKind,
        command: &str,
    ) -> io::Result<Self> {
        let line = CommandLine {
            session: workspace.session.as_deref().map(OsString::from),
            words: vec![shell().into(), "-c".into(), command.into()],
        };
        let begun = workspace.helpers.begin(kind, &line).await?;
        let Begun {
            guard,
            input,
            output,
        } = begun;
        Ok(Self {
            guard,
            input: Some(input),
            output,
        })
    }

    pub(super) async fn finish(
        mut self,
        time: Duration,
        limit: usize,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> io::Result<Ended> {
        let mut printed = Output::new(limit, progress);
        let report = report(self.guard.stdout.take());
        tokio::pin!(report);
        let mut reported = None;
        let ended = async {
            tokio::select! {
                read = printed.take_all(&mut self.output) => read,
                // Something that could not be ended may hold the output.
                line = &mut report => {
                    reported = Some(line);
                    Ok(())
                }
            }
        };
        let ended = timeout(time, ended).await;
        let in_time = ended.is_ok();
        ended.unwrap_or(Ok(()))?;
        drop(self.input.take());

        let until = Instant::now() + END_TIMEOUT;
        let (rest, report) = tokio::join!(
            // What was printed before the end.
            timeout_at(until, printed.take_all(&mut self.output)),
            timeout_at(until, async {
                match reported {
                    Some(report) => report,
                    None => report.await,
                }
            }),
        );
        rest.unwrap_or(Ok(()))?;
        // A guard that is still at work stays: without it nothing would end the rest.
        let gone = timeout_at(until, self.guard.wait()).await.is_ok();
        let rest = match &report {
            Ok(Some(Report::Left(_)) | None) => Rest::MayRun,
            Ok(Some(_)) if gone => Rest::Ended,
            Ok(Some(_)) | Err(_) => Rest::BeingEnded,
        };
        let how = match (report, rest) {
            (_, rest) if !in_time => How::TimedOut { after: time, rest },
            (Err(_), _) | (_, Rest::BeingEnded) => How::BeingEnded,
            (Ok(Some(report)), _) => How::Reported(report),
            (Ok(None), _) => How::Lost,
        };
        Ok(Ended {
            output: printed.finish(),
            how,
        })
    }
}

async fn report(output: Option<ChildStdout>) -> Option<Report> {
    let mut line = String::new();
    let mut output = output?.take(MOST_REPORT);
    output.read_to_string(&mut line).await.ok()?;
    Report::read(&line)
}

/// Output as it comes, cleaned and within bounds.
struct Output<'a> {
    cleaner: Cleaner,
    text: HeadAndTail,
    progress: &'a (dyn Fn(&str) + Send + Sync),
}

impl<'a> Output<'a> {
    fn new(limit: usize, progress: &'a (dyn Fn(&str) + Send + Sync)) -> Self {
        Self {
            cleaner: Cleaner::default(),
            // Room for the remarks.
            text: HeadAndTail::new(limit.saturating_sub(1_000)),
            progress,
        }
    }

    async fn take_all(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            let (text, progress) = (&mut self.text, self.progress);
            self.cleaner.take(&bytes[..count], |line| {
                text.push(line);
                progress(line.trim_end_matches('\n'));
            });
        }
    }

    fn finish(self) -> String {
        let (mut text, progress) = (self.text, self.progress);
        self.cleaner.finish(|line| {
            text.push(line);
            progress(line);
        });
        text.finish()
    }
}

/// What every command finds in its environment: nothing that looks like a secret, nothing that
/// would ask a person, and in the sandbox only what is listed.
pub(super) fn environment(workspace: &Workspace, sandboxed: bool) -> Vec<(OsString, OsString)> {
    let is_passed_on = |(name, value): &(OsString, OsString)| {
        let Some(name) = name.to_str() else {
            return false;
        };
        let named = workspace
            .settings
            .secret_variables
            .iter()
            .any(|n| n == name);
        let value = value.to_string_lossy();
        !named
            // That of the session whose command has started this process.
            && name != SESSION_VARIABLE
            && (name, &*value) != variables::WORKERS_MEMORY
            && if sandboxed {
                variables::passes_sandbox(name, &value, &workspace.settings.variables)
            } else {
                !variables::is_secret(name, &value)
            }
    };
    let mut variables: Vec<_> = std::env::vars_os().filter(is_passed_on).collect();
    let temporary = workspace.temporary.path().as_os_str();
    variables.push(("TMPDIR".into(), temporary.to_owned()));
    let fixed = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    variables.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    variables
}

/// bash, or else the plain shell that every system has.
fn shell() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("bash"))
        .find(|program| program.is_absolute() && program.is_file());
    found.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}
