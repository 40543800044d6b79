//! Where the kernel has no means that are known here.

use super::{order::Limits, unrestricted::Unrestricted};

/// The reason why not.
pub(super) fn restrict(_: &Limits) -> Result<String, Unrestricted> {
    let why = "commands can be sandboxed on Linux only";
    Err(Unrestricted::Lacking(why.to_owned()))
}
