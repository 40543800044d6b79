//! The restricted stage: gives up rights, one mechanism after the other, and becomes the
//! command.

use std::{
    fs::File, io, os::fd::AsFd, os::unix::process::CommandExt, process::Command, process::Stdio,
};

use rustix::{
    process::{Signal, set_parent_process_death_signal},
    thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs},
};

use super::{
    landlock_rules,
    order::{Limits, Order},
    report::say,
    system_calls,
    unrestricted::Unrestricted,
};

/// What root does without in the sandbox: each would undo it or change the machine.
const GIVEN_UP: [CapabilitySet; 17] = [
    CapabilitySet::AUDIT_CONTROL,
    CapabilitySet::BPF,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::LINUX_IMMUTABLE,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::MKNOD,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::PERFMON,
    CapabilitySet::SYSLOG,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_TIME,
];

/// Restricts this process and becomes the command. Returns only if that fails, and tells why
/// through the input, which is a pipe to the supervisor.
pub(super) fn become_command(order: &Order) -> i32 {
    let why = match &order.limits {
        None => "nothing is restricted".to_owned(),
        Some(limits) => match restrict(limits) {
            Ok(_) => execute(order),
            Err(why) => format!("the sandbox cannot be set up: {why}"),
        },
    };
    if let Ok(failed) = io::stdin().as_fd().try_clone_to_owned() {
        say(File::from(failed), &why);
    }
    125
}

/// Restricts this process and tells what is enforced.
pub(super) fn restrict(limits: &Limits) -> Result<String, Unrestricted> {
    // Should the supervisor be killed, the command goes with it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    give_up_capabilities();
    set_no_new_privs(true)?;
    let what = landlock_rules::enforce(limits)?;
    system_calls::enforce(limits.network)?;
    Ok(what)
}

fn give_up_capabilities() {
    for capability in GIVEN_UP {
        // Only who has capabilities may give them up; others have none to lose.
        remove_capability_from_bounding_set(capability).ok();
    }
}

fn execute(order: &Order) -> String {
    let [program, arguments @ ..] = &order.command[..] else {
        return "there is no command".to_owned();
    };
    let error = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .exec();
    format!("{} cannot be started: {error}", program.display())
}
