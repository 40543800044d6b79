//! Where the kernel has no means that are known here.

use std::{io, os::fd::AsFd};

use super::{
    order::{Limits, Order},
    report::say,
    unrestricted::Unrestricted,
};

const WHY: &str = "commands can be sandboxed on Linux only";

/// Refuses.
pub(super) fn become_command(_: &Order) -> i32 {
    if let Ok(failed) = io::stdin().as_fd().try_clone_to_owned() {
        say(std::fs::File::from(failed), WHY);
    }
    125
}

/// Says why not.
pub(super) fn restrict(_: &Limits) -> Result<String, Unrestricted> {
    Err(Unrestricted::Lacking(WHY.to_owned()))
}
