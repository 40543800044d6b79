//! For the tests of this crate: a program with the verb `sandbox-exec`, as asyncagents has it.
//! The program also plays asyncagents itself, for a test that kills it, and a program in the sandbox that
//! tries sockets.

use std::{
    ffi::OsString,
    io::{Result, Write},
    os::unix::net::{UnixDatagram, UnixStream},
    path::Path,
    process::ExitCode,
};

use asyncagents_tools::{SandboxMode, Settings, Toolbox, sandbox_exec};

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
        _ => ExitCode::from(2),
    }
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
