//! The last stage: limits itself, restricts itself, waits for a command and becomes it.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, Stdio},
};
#[cfg(target_os = "linux")]
use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{
    command_line::{CommandLine, SESSION_VARIABLE},
    group::Group,
    order::{Order, Streams},
    report::write_text,
    restrict,
    streams::{Pipes, receive_pipes},
};
use crate::resources::{Bytes, Resources};

/// How much sooner than others a command is killed when the machine has no memory left: before
/// everything that takes less than half of it, and so before asyncagents and the supervisor.
#[cfg(target_os = "linux")]
const SOONER: i32 = 500;

/// Then the supervisor is gone, and this process soon too.
#[cfg(target_os = "linux")]
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Becomes the command. Returns only if there is none or that fails, and reports why through the
/// output, which is a pipe to the supervisor.
pub(super) fn become_command(order: &Order) -> i32 {
    // To start the command gives this process another output, also if it fails.
    let to_supervisor = io::stdout().as_fd().try_clone_to_owned();
    let why = match prepare(order) {
        Ok(()) => match read(order) {
            Ok(Some((command, pipes))) => execute(&command, pipes),
            Ok(None) => return 0,
            Err(error) => format!("the command cannot be read: {error}"),
        },
        Err(why) => why,
    };
    match to_supervisor {
        Ok(to_supervisor) => write_text(File::from(to_supervisor), &why),
        Err(_) => write_text(io::stdout(), &why),
    }
    125
}

/// The command, and its pipes if it has some. `None`: there will be none.
fn read(order: &Order) -> io::Result<Option<(CommandLine, Option<Pipes>)>> {
    let pipes = match order.streams {
        Streams::Output => None,
        Streams::Pipes => match receive_pipes(io::stdin())? {
            None => return Ok(None),
            pipes => pipes,
        },
    };
    let command = CommandLine::read(input()?)?;
    if pipes.is_some() && command.is_some() {
        // Whoever talks to the program wants to know which it is.
        input()?.write_all(&std::process::id().to_le_bytes())?;
    }
    Ok(command.map(|command| (command, pipes)))
}

/// Not buffered: no more is read than the command.
fn input() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

fn prepare(order: &Order) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // Should the supervisor be killed, the command goes at once.
        let set = set_parent_process_death_signal(Some(Signal::KILL));
        set.map_err(|error| format!("the signal at the supervisor's end: {error}"))?;
        be_killed_sooner();
        wait_until_alone();
    }
    if let Some(group) = &order.group {
        // Without it, the supervisor's own polls have to do.
        Group::at(group.clone()).join().ok();
    }
    limit(&order.resources).map_err(|error| format!("the limits cannot be set: {error}"))?;
    if let Some(limits) = &order.limits {
        let restricted = restrict::restrict_command(limits);
        restricted.map_err(|why| format!("the sandbox cannot be set up: {why}"))?;
    }
    Ok(())
}

/// Limits of each process. None is for memory: what programs reserve and do not use would count
/// (an address sanitizer reserves terabytes). None is for processes: all of the user's would
/// count, and root is not bound. The supervisor looks after both.
fn limit(resources: &Resources) -> io::Result<()> {
    lower(Resource::Core, 0)?;
    if let Some(Bytes(most)) = resources.file_size {
        lower(Resource::Fsize, most)?;
    }
    Ok(())
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let already = rustix::process::getrlimit(resource).maximum;
    let to = Some(already.unwrap_or(u64::MAX).min(to));
    let limit = Rlimit {
        current: to,
        maximum: to,
    };
    Ok(setrlimit(resource, limit)?)
}

/// Until the supervisor has left the session. It has by now, if the machine is not busy.
#[cfg(target_os = "linux")]
fn wait_until_alone() {
    use rustix::process::{getppid, getsid};
    let until = Instant::now() + SESSION_TIMEOUT;
    let own = getsid(None);
    while getppid().is_some_and(|parent| getsid(Some(parent)) == own) && Instant::now() < until {
        thread::sleep(Duration::from_micros(100));
    }
}

#[cfg(target_os = "linux")]
fn be_killed_sooner() {
    let file = "/proc/self/oom_score_adj";
    let inherited = std::fs::read_to_string(file).ok();
    let inherited = inherited.and_then(|score| score.trim().parse().ok());
    if inherited.is_some_and(|score: i32| score < SOONER) {
        // Where it cannot be written, all are equal.
        std::fs::write(file, SOONER.to_string()).ok();
    }
}

fn execute(line: &CommandLine, pipes: Option<Pipes>) -> String {
    let [program, arguments @ ..] = &line.words[..] else {
        return "there is no command".to_owned();
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(session) = &line.session {
        command.env(SESSION_VARIABLE, session);
    }
    let error = match pipes {
        Some(pipes) => command
            .stdin(pipes.input)
            .stdout(pipes.output)
            .stderr(pipes.errors)
            .exec(),
        None => match io::stderr().as_fd().try_clone_to_owned() {
            Ok(output) => command.stdin(Stdio::null()).stdout(output).exec(),
            Err(error) => error,
        },
    };
    format!("{} cannot be started: {error}", program.display())
}
