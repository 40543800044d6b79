//! Gives up rights, one mechanism after the other.

use std::path::Path;

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};

pub(crate) use super::landlock_rules::FileRules;
use super::{group, landlock_rules, order::Limits, system_calls, unrestricted::Unrestricted};

/// What root does without in the sandbox: each would undo it or change the machine.
const GIVEN_UP: [CapabilitySet; 19] = [
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
    CapabilitySet::SYS_NICE,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_RESOURCE,
    CapabilitySet::SYS_TIME,
];

/// Whether this machine seems to have the means: without a process that tries, in microseconds.
pub(crate) fn is_likely() -> bool {
    landlock_rules::are_known()
}

/// Restricts this process in all ways, and returns what is enforced.
pub(super) fn restrict(limits: &Limits) -> Result<String, Unrestricted> {
    set_no_new_privs(true)?;
    let enforced = FileRules::make(limits, Path::new(""), None)?.enforce()?;
    restrict_command(limits)?;
    Ok(landlock_rules::describe(enforced, limits))
}

/// Restricts this thread, which is for nothing else, and all that it starts to what the limits say
/// about files and ports. The helper is what it will start. Returns what will be enforced when the
/// helper has done its part.
pub(crate) fn restrict_thread(limits: &Limits, helper: &Path) -> Result<String, Unrestricted> {
    let rules = FileRules::make(limits, helper, group::folder_of_groups())?;
    let enforced = rules.enforce()?;
    Ok(landlock_rules::describe(enforced, limits))
}

/// Restricts this process, which has the rules about files already, to what a command may do.
pub(super) fn restrict_command(limits: &Limits) -> Result<(), Unrestricted> {
    give_up_capabilities();
    set_no_new_privs(true)?;
    landlock_rules::enforce_on_command(limits)?;
    system_calls::enforce(limits.network)
}

fn give_up_capabilities() {
    for capability in GIVEN_UP {
        // Only who has capabilities may give them up; others have none to lose.
        remove_capability_from_bounding_set(capability).ok();
    }
}
