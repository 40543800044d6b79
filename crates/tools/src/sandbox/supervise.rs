//! The supervisor: starts the command, and ends every process that comes of it when it ends, when
//! they use more than they may, or when asyncagents closes the supervisor's input, which also
//! happens when asyncagents dies.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    process::Command,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, WaitStatus},
};

use super::{
    descendants::Descendants,
    order::{Order, Stage},
    report::{Report, write_text},
    this_program,
    watch::{self, Watch},
};

/// Runs the command and everything that comes of it to the end, and reports. An exit code other
/// than 0 means to the guard that it was not to the end.
pub(super) fn supervise(order: &Order) -> i32 {
    let report = match run(order) {
        Ok(Some(report)) => report,
        // The guard tries again and reports.
        Ok(None) => return 1,
        Err(error) => Report::Failed(error.to_string()),
    };
    write_text(io::stdout(), &report.line());
    0
}

/// `None`: not all could be ended.
fn run(order: &Order) -> io::Result<Option<Report>> {
    let descendants = Arc::new(Descendants::adopt_orphans(order.group.clone())?);
    let (mut failure, failed) = io::pipe()?;
    let exceeded = watch(&descendants, order, failure.try_clone()?);

    let mut command = command(order, failed)?;
    let started = command.spawn();
    // The command holds the other end of the pipe.
    drop(command);
    let started = Pid::from_child(&started?);
    // Leaves its session to the command, which waits for that: signals to the command's group do
    // not reach it, and where the kernel shares the processor among sessions, a thousand
    // processes do not starve it. Were it the command that leaves, it would lead a group, and
    // `setsid` would not wait for what it starts.
    rustix::process::setsid().ok();
    let mut why = String::new();
    failure.read_to_string(&mut why)?;

    let status = descendants.wait_for(started)?;
    let group = descendants.group();
    let short_of_memory = group.is_some_and(|group| group.was_short_of_memory());
    if descendants.end_all().is_err() {
        return Ok(None);
    }
    if !why.is_empty() {
        return Ok(Some(Report::Failed(why)));
    }
    Ok(Some(match (exceeded.get(), order.resources.memory) {
        (Some(limit), _) => Report::Exceeded(limit.clone()),
        (None, Some(most)) if short_of_memory => Report::Exceeded(watch::too_much_memory(most)),
        (None, _) => ended(status)?,
    }))
}

fn ended(status: WaitStatus) -> io::Result<Report> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(Report::Exited(code)),
        (None, Some(signal)) => Ok(Report::Killed(signal)),
        (None, None) => Err(io::Error::other("the command's exit status is unknown")),
    }
}

/// The stage that becomes the command, which it reads from the supervisor's own input. It writes to
/// where the errors of the supervisor go; the supervisor's own output is for the report.
fn command(order: &Order, failed: io::PipeWriter) -> io::Result<Command> {
    let mut command = Command::new(this_program()?);
    let output = || io::stderr().as_fd().try_clone_to_owned();
    command
        .args(order.arguments(Stage::Become))
        // Where the stage writes why it failed; the command gets another output.
        .stdout(failed)
        .stderr(output()?);
    #[cfg(not(target_os = "linux"))]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// Ends everything at the end of the input, or when the processes use more than they may; which
/// limit that was, will be in what is returned.
fn watch(
    descendants: &Arc<Descendants>,
    order: &Order,
    failure: io::PipeReader,
) -> Arc<OnceLock<String>> {
    let exceeded = Arc::new(OnceLock::new());
    let (descendants, noted) = (Arc::clone(descendants), Arc::clone(&exceeded));
    let (resources, streams) = (order.resources, order.streams);
    thread::spawn(move || {
        wait_until_begun(&failure);
        drop(failure);
        let mut watch = Watch::new(&resources, streams);
        while !is_input_closed(watch.pause) {
            if let Some(limit) = watch.exceeded() {
                noted.get_or_init(|| limit);
                break;
            }
        }
        descendants.end_until_noticed();
    });
    exceeded
}

/// Waits until the last stage has become its command, which closes the pipe for its failures, or
/// until the end of the input. Before, there is nothing to look at.
fn wait_until_begun(failure: &io::PipeReader) {
    let input = io::stdin();
    loop {
        let mut ends = [
            PollFd::new(&input, PollFlags::empty()),
            PollFd::new(failure, PollFlags::empty()),
        ];
        match poll(&mut ends, None) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Waits for the end of the input, but no longer than this. What is in it is for the last stage.
fn is_input_closed(wait: Duration) -> bool {
    let input = io::stdin();
    let wait = Timespec::try_from(wait).ok();
    let mut inputs = [PollFd::new(&input, PollFlags::empty())];
    // An error counts too: at least its end has to be noticed, whenever that is.
    !matches!(
        poll(&mut inputs, wait.as_ref()),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}
