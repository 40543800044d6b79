//! The supervisor: starts the command, and ends every process that comes of it when it ends or
//! when asyncagents closes the supervisor's input, which also happens when asyncagents dies.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::fd::AsFd,
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid},
};

use super::{
    order::{Order, Stage},
    report::{Report, say},
};

/// Between two looks at processes that were sent the signal and are not gone.
const PAUSE: Duration = Duration::from_millis(1);

/// How long to try if the processes cannot be listed: the machine may be short of files. Less
/// than asyncagents waits for the report.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs the command and everything that comes of it to the end.
pub(super) fn supervise(order: &Order) -> i32 {
    // No terminal: a command can neither ask the user nor get the keys meant for asyncagents.
    rustix::process::setsid().ok();
    let report = match run(order) {
        Ok(report) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    say(io::stdout(), &report.line());
    match report {
        Report::Exited(code) => code,
        Report::Killed(signal) => 128 + signal,
        Report::Failed(_) | Report::Left(_) => 125,
    }
}

/// The processes of a command.
#[derive(Default)]
struct Family {
    /// Held while a list of processes is in use, and while one is buried: a number on the list
    /// must not be given to another process meanwhile.
    list: Mutex<()>,
    /// The first of them.
    command: OnceLock<Pid>,
}

fn run(order: &Order) -> io::Result<Report> {
    adopt_orphans()?;
    let family = Arc::new(Family::default());
    end_all_at_end_of_input(Arc::clone(&family));

    let (mut failure, failed) = io::pipe()?;
    let mut command = command(order, failed)?;
    let started = command.spawn();
    // It holds the other end of the pipe.
    drop(command);
    let started = Pid::from_child(&started?);
    let started = *family.command.get_or_init(|| started);
    let mut why = String::new();
    failure.read_to_string(&mut why)?;

    let status = family.wait_for(started)?;
    if let Err(error) = family.end_all() {
        return Ok(Report::Left(error.to_string()));
    }
    if !why.is_empty() {
        return Ok(Report::Failed(why));
    }
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(Report::Exited(code)),
        (None, Some(signal)) => Ok(Report::Killed(signal)),
        (None, None) => Err(io::Error::other("nobody knows how the command ended")),
    }
}

/// The restricted stage, or the command itself if nothing restricts it. Both write to where the
/// errors of the supervisor go; its own output is for the report.
fn command(order: &Order, failed: io::PipeWriter) -> io::Result<Command> {
    let mut command = match (&order.limits, &order.command[..]) {
        (_, []) => return Err(io::Error::other("there is no command")),
        (Some(_), _) => {
            let mut stage = Command::new(this_program()?);
            stage.args(order.arguments(Stage::Restrict));
            // Where the stage tells why it failed; the command gets an empty input.
            stage.stdin(failed);
            stage
        }
        (None, [program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null());
            command
        }
    };
    let output = || io::stderr().as_fd().try_clone_to_owned();
    command.stdout(output()?).stderr(output()?);
    #[cfg(not(target_os = "linux"))]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

fn this_program() -> io::Result<impl AsRef<OsStr>> {
    #[cfg(target_os = "linux")]
    // The very same program, also if its file has been replaced meanwhile.
    return Ok("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    std::env::current_exe()
}

fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

fn end_all_at_end_of_input(family: Arc<Family>) {
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut ignored = [0; 64];
        while matches!(input.read(&mut ignored), Ok(1..)) {}
        // The main thread ends the process once the command has ended.
        loop {
            // What cannot be listed now may be listed the next time.
            family.kill().ok();
            thread::sleep(PAUSE);
        }
    });
}

impl Family {
    /// Waits until the command has ended, and buries the orphans on the way.
    fn wait_for(&self, command: Pid) -> io::Result<WaitStatus> {
        loop {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            match waitid(WaitId::All, ended) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some((ended, status)) = self.bury()?
                && ended == command
            {
                return Ok(status);
            }
        }
    }

    /// Kills until no process is left. Orphans become children of this process, so when there
    /// are no children, there are no descendants.
    fn end_all(&self) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.bury() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    match self.kill() {
                        Err(error) if Instant::now() > until => return Err(error),
                        Ok(()) | Err(_) => {}
                    }
                    thread::sleep(PAUSE);
                }
                Err(Errno::CHILD) => break,
                Err(error) => return Err(error.into()),
            }
        }
        // Elsewhere orphans are not ours, but they are still in the group.
        #[cfg(not(target_os = "linux"))]
        self.kill()?;
        Ok(())
    }

    fn bury(&self) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
        let _held = self.hold();
        wait(WaitOptions::NOHANG)
    }

    /// Kills the children; their children become ours and are next.
    #[cfg(target_os = "linux")]
    fn kill(&self) -> io::Result<()> {
        let _held = self.hold();
        for child in listed_children().or_else(|_| searched_children())? {
            rustix::process::kill_process(child, Signal::KILL).ok();
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn kill(&self) -> io::Result<()> {
        let _held = self.hold();
        if let Some(command) = self.command.get() {
            rustix::process::kill_process_group(*command, Signal::KILL).ok();
        }
        Ok(())
    }

    fn hold(&self) -> MutexGuard<'_, ()> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the kernel lists them: quick, so that a process which forks without end is still caught.
#[cfg(target_os = "linux")]
fn listed_children() -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task")? {
        let list = std::fs::read_to_string(thread?.path().join("children"))?;
        children.extend(list.split_ascii_whitespace().filter_map(process));
    }
    Ok(children)
}

/// For kernels without the list: all processes whose parent is this one.
#[cfg(target_os = "linux")]
fn searched_children() -> io::Result<Vec<Pid>> {
    let own = std::process::id().to_string();
    let is_child = |stat: &str| {
        // The name is in parentheses and may contain anything; state and parent follow.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_ascii_whitespace().nth(1) == Some(&own)
    };
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(process) else {
            continue;
        };
        match std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
            Ok(stat) if is_child(&String::from_utf8_lossy(&stat)) => children.push(pid),
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(children)
}

/// Whether a process ended while it was looked at.
#[cfg(target_os = "linux")]
fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::SRCH)
    )
}

#[cfg(target_os = "linux")]
fn process(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}
