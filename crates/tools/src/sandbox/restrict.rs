//! Gives up rights, one mechanism after the other.

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};

use super::{landlock_rules, order::Limits, system_calls, unrestricted::Unrestricted};

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

/// Restricts this process and returns what is enforced.
pub(super) fn restrict(limits: &Limits) -> Result<String, Unrestricted> {
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
