//! Starts an agent: guard and supervisor as for a command, and pipes of its own.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
    task::spawn_blocking,
    time::timeout,
};

use super::{
    command::{AgentCommand, AgentProcess, AgentStartError},
    life::AgentLife,
};
use crate::{
    sandbox::{
        CommandLine, Limits, Order, Pipes, Sandbox, Stage, Streams, Unrestricted, restrict_thread,
        send_pipes,
    },
    temporary::Temporary,
};

/// How long guard, supervisor and the agent's process may take until the program begins.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn start(command: AgentCommand) -> Result<AgentProcess, AgentStartError> {
    // It looks for those that were left behind.
    let temporary = spawn_blocking(Temporary::new);
    let temporary = temporary.await.map_err(io::Error::other)??;
    let (control, of_guard) = Socket::pair()?;
    let (guard, sandbox) = guarded(&command, &temporary, of_guard).await?;

    let (input_end, input) = io::pipe()?;
    let (output, output_end) = io::pipe()?;
    let (errors, errors_end) = io::pipe()?;
    let pipes = Pipes {
        input: input_end.into(),
        output: output_end.into(),
        errors: errors_end.into(),
    };
    send_pipes(&control, &pipes)?;
    drop(pipes);
    control.set_nonblocking(true)?;
    let mut life = begun(UnixStream::from_std(control)?, guard, temporary, sandbox);
    life.pid = tell(&mut life, &command).await?;
    Ok(AgentProcess {
        input: pipe::Sender::from_owned_fd(OwnedFd::from(input))?,
        output: pipe::Receiver::from_owned_fd(OwnedFd::from(output))?,
        errors: pipe::Receiver::from_owned_fd(OwnedFd::from(errors))?,
        life,
    })
}

fn begun(
    control: UnixStream,
    mut guard: Child,
    temporary: Temporary,
    sandbox: Sandbox,
) -> AgentLife {
    AgentLife {
        control: Some(control),
        report: guard.stdout.take(),
        guard,
        pid: None,
        sandbox,
        temporary: Some(temporary),
    }
}

/// Says which program it is. `None`: it has not begun, and the report says why.
async fn tell(life: &mut AgentLife, command: &AgentCommand) -> io::Result<Option<u32>> {
    let mut words = vec![command.program.clone().into_os_string()];
    words.extend(command.arguments.iter().cloned());
    let line = CommandLine {
        session: None,
        words,
    };
    let line = line.encode()?;
    let AgentLife { control, guard, .. } = life;
    let control = control.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut pid = [0; 4];
    let told = async {
        control.write_all(&line).await?;
        control.read_exact(&mut pid).await
    };
    tokio::select! {
        told = timeout(BEGIN_TIMEOUT, told) => match told {
            Ok(Ok(_)) => Ok(Some(u32::from_le_bytes(pid))),
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        },
        _ = guard.wait() => Ok(None),
    }
}

/// Starts the guard, from a thread that is restricted first: it is for nothing else.
async fn guarded(
    command: &AgentCommand,
    temporary: &Temporary,
    control: Socket,
) -> Result<(Child, Sandbox), AgentStartError> {
    let temporary = temporary.path().canonicalize()?;
    let limits = command.sandbox.as_ref();
    let limits = limits.map(|limits| limits.with_temporary(temporary.clone()));
    let mut guard = Command::new(&command.helper);
    guard
        .env_clear()
        .envs(
            command
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .env("TMPDIR", &temporary)
        .current_dir(&command.folder)
        .stdin(OwnedFd::from(control))
        .stdout(Stdio::piped())
        // It says what it has to say in its report.
        .stderr(Stdio::null());
    let (helper, resources) = (command.helper.clone(), command.resources);
    let (runtime, (sender, started)) = (Handle::current(), oneshot::channel());
    thread::Builder::new().spawn(move || {
        let _entered = runtime.enter();
        let start = || {
            let (limits, sandbox) = restrict(limits, &helper)?;
            let order = Order {
                limits,
                resources,
                streams: Streams::Pipes,
                ..Order::default()
            };
            let guard = guard.args(order.arguments(Stage::Guard)).spawn()?;
            Ok((guard, sandbox))
        };
        // Whoever has gone meanwhile does not want it: its input is closed, and it ends.
        let _ = sender.send(start());
    })?;
    started.await.map_err(io::Error::other)?
}

/// Restricts this thread, and says what is left for the agent's own process to do.
fn restrict(
    limits: Option<Limits>,
    helper: &Path,
) -> Result<(Option<Limits>, Sandbox), AgentStartError> {
    let Some(limits) = limits else {
        return Ok((None, Sandbox::Off));
    };
    let what = restrict_thread(&limits, helper).map_err(cannot_sandbox)?;
    // The rules about the others are in force when the guard starts.
    let left = Limits {
        network: limits.network,
        writable: limits.writable,
        ..Limits::default()
    };
    Ok((Some(left), Sandbox::Enforced { what }))
}

fn cannot_sandbox(why: Unrestricted) -> AgentStartError {
    match why {
        Unrestricted::Lacking(why) => AgentStartError::CannotSandbox(why),
        #[cfg(target_os = "linux")]
        Unrestricted::Failed(why) => AgentStartError::Failed(io::Error::other(why)),
    }
}
