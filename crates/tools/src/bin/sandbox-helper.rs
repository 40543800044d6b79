//! For the tests of this crate: a program with the verb `sandbox-exec`, as asyncagents has it.
//! The program also plays asyncagents itself, for tests that kill it, and a program in the sandbox that
//! tries sockets.

use std::{
    ffi::OsString,
    io::{Result, Write},
    net::{SocketAddr, TcpListener},
    num::NonZeroU32,
    os::unix::net::{UnixDatagram, UnixStream},
    path::Path,
    process::ExitCode,
};

use asyncagents_tools::{
    AgentCommand, AgentProcess, Resources, SandboxMode, Settings, Toolbox, sandbox_exec,
};
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketType, connect, listen, sendto, socket,
};

/// A stream over several paths at once, which only Linux has.
const MPTCP: Option<Protocol> = match NonZeroU32::new(262) {
    Some(number) => Some(Protocol::from_raw(number)),
    None => None,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match (verb.to_str(), &rest[..]) {
        (Some("sandbox-exec"), _) => {
            ExitCode::from(u8::try_from(sandbox_exec(rest)).unwrap_or(u8::MAX))
        }
        (Some("bash"), [workspace, input]) => exit_code(bash(workspace.as_ref(), input, |_| {})),
        (Some("sandboxed"), [input, home, secrets @ ..]) => {
            exit_code(bash(Path::new("."), input, |settings| {
                settings.sandbox = SandboxMode::Required;
                settings.home = Some(home.into());
                settings.secret_paths = secrets.iter().map(Into::into).collect();
            }))
        }
        (Some("stream"), [to, what]) => {
            exit_code(UnixStream::connect(to).and_then(|mut s| s.write(what.as_encoded_bytes())))
        }
        (Some("datagram"), [to, what]) => {
            exit_code(UnixDatagram::unbound().and_then(|s| s.send_to(what.as_encoded_bytes(), to)))
        }
        (Some("pair"), [to, what]) => exit_code(
            UnixDatagram::pair().and_then(|(s, _)| s.send_to(what.as_encoded_bytes(), to)),
        ),
        (Some("agent"), [program, arguments @ ..]) => exit_code(agent(program, arguments)),
        (Some("tcp" | "mptcp" | "fast-open" | "udp"), [to, what]) => {
            exit_code(say(&verb.to_string_lossy(), &to.to_string_lossy(), what))
        }
        (Some("bind"), [at]) => exit_code(TcpListener::bind(&*at.to_string_lossy())),
        (Some("listen"), []) => exit_code(listen_anywhere()),
        _ => ExitCode::from(2),
    }
}

/// Starts an agent as asyncagents does, prints its number, and waits for ever.
fn agent(program: &OsString, arguments: &[OsString]) -> Result<()> {
    let command = AgentCommand {
        program: program.into(),
        arguments: arguments.to_vec(),
        folder: std::env::current_dir()?,
        environment: std::env::vars_os().collect(),
        helper: std::env::current_exe()?,
        resources: Resources::default(),
        sandbox: None,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let agent = AgentProcess::start(command).await;
        let mut agent = agent.map_err(std::io::Error::other)?;
        let number = agent.life.pid().unwrap_or_default();
        let mut output = std::io::stdout();
        output.write_all(format!("{number}\n").as_bytes())?;
        output.flush()?;
        agent.life.wait().await;
        Ok(())
    })
}

/// Connects in one of several ways and says something.
fn say(how: &str, to: &str, what: &OsString) -> Result<()> {
    let to: SocketAddr = to.parse().map_err(std::io::Error::other)?;
    let what = what.as_encoded_bytes();
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let (kind, protocol) = match how {
        "udp" => (SocketType::DGRAM, None),
        "mptcp" => (SocketType::STREAM, MPTCP),
        _ => (SocketType::STREAM, None),
    };
    let made = socket(family, kind, protocol)?;
    if how == "fast-open" {
        // No constant of the library has this flag.
        sendto(&made, what, SendFlags::from_bits_retain(0x2000_0000), &to)?;
    } else {
        connect(&made, &to)?;
        rustix::net::send(&made, what, SendFlags::empty())?;
    }
    Ok(())
}

/// On a port that the kernel chooses, as nobody has asked for one.
fn listen_anywhere() -> Result<()> {
    let made = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(listen(made, 1)?)
}

/// Calls the tool and prints what it answers.
fn bash(workspace: &Path, input: &OsString, change: impl FnOnce(&mut Settings)) -> Result<()> {
    let mut settings = Settings::new(workspace, std::env::current_exe()?);
    change(&mut settings);
    let toolbox = Toolbox::new(settings)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let input = input.to_string_lossy();
    let outcome = runtime.block_on(toolbox.call("bash", &input, &|_| {}));
    std::io::stdout().write_all(outcome.text().as_bytes())
}

fn exit_code<T>(result: Result<T>) -> ExitCode {
    match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error}\n");
            std::io::stderr().write_all(text.as_bytes()).ok();
            ExitCode::FAILURE
        }
    }
}
