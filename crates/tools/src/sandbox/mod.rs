//! The sandbox around commands, in three processes of the hidden verb `sandbox-exec`: a guard that
//! stands in for the supervisor, the supervisor that ends every process of a command, and a stage
//! that restricts itself and becomes the command. They are started for the next command while there
//! is none: to start them takes longer than many a command.

mod become_command;
mod command_line;
mod descendants;
mod group;
mod guard;
mod helper;
mod known_rules;
mod order;
mod probe;
mod report;
mod streams;
mod supervise;
mod unrestricted;
mod watch;

#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(not(target_os = "linux"))]
#[path = "processes_missing.rs"]
mod processes;
#[cfg(target_os = "linux")]
mod restrict;
#[cfg(not(target_os = "linux"))]
#[path = "restrict_missing.rs"]
mod restrict;
#[cfg(target_os = "linux")]
mod system_calls;

use std::{
    ffi::{OsStr, OsString},
    io,
};

pub(crate) use command_line::CommandLine;
pub use command_line::SESSION_VARIABLE;
pub(crate) use helper::{Begun, HelperKind, Helpers};
pub(crate) use order::{Limits, Network, Order, Stage, Streams};
pub(crate) use probe::probe;
pub(crate) use report::Report;
pub(crate) use restrict::{is_likely, restrict_thread};
pub(crate) use streams::{Pipes, send_pipes};
pub(crate) use unrestricted::Unrestricted;

/// The first file descriptor after input, output and errors.
const FIRST_AFTER_ERRORS: i32 = 3;

/// Whether commands run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// The kernel enforces it.
    Enforced {
        /// What is enforced, and what this kernel cannot.
        what: String,
    },
    /// This machine cannot sandbox commands.
    Missing { why: String },
    /// The settings switch it off.
    Off,
}

/// The verb `sandbox-exec`: takes what follows it on the command line, and returns the exit
/// code. For the toolbox only; its arguments may change at any time.
pub fn sandbox_exec(arguments: Vec<OsString>) -> i32 {
    // What asyncagents was started with may be open files outside; no command gets them.
    close_fds::set_fds_cloexec(FIRST_AFTER_ERRORS, &[]);
    match Order::read(arguments) {
        Ok((Stage::Guard, order)) => guard::guard(&order),
        Ok((Stage::Supervise, order)) => supervise::supervise(&order),
        Ok((Stage::Become, order)) => become_command::become_command(&order),
        Ok((Stage::Probe, order)) => probe::answer(&order),
        Err(why) => {
            report::write_text(io::stderr(), &format!("sandbox-exec: {why}\n"));
            2
        }
    }
}

fn this_program() -> io::Result<impl AsRef<OsStr>> {
    #[cfg(target_os = "linux")]
    // The very same program, also if its file has been replaced meanwhile.
    return Ok("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    std::env::current_exe()
}
