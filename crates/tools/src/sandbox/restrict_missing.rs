//! Where the kernel has no means that are known here.

use std::path::{Path, PathBuf};

use super::{order::Limits, unrestricted::Unrestricted};

const WHY: &str = "commands can be sandboxed on Linux only";

/// There are none.
pub(crate) fn is_likely() -> bool {
    false
}

/// The reason why not.
pub(super) fn restrict(_: &Limits) -> Result<String, Unrestricted> {
    Err(Unrestricted::Lacking(WHY.to_owned()))
}

/// The reason why not.
pub(super) fn restrict_command(_: &Limits) -> Result<(), Unrestricted> {
    Err(Unrestricted::Lacking(WHY.to_owned()))
}

/// The reason why not.
pub(crate) fn restrict_thread(_: &Limits, _: &Path) -> Result<String, Unrestricted> {
    Err(Unrestricted::Lacking(WHY.to_owned()))
}

/// Rules that cannot be made.
pub(crate) enum FileRules {}

impl FileRules {
    pub(crate) fn make(_: &Limits, _: &Path, _: Option<PathBuf>) -> Result<Self, Unrestricted> {
        Err(Unrestricted::Lacking(WHY.to_owned()))
    }

    pub(crate) fn are_for(&self, _: &Limits) -> bool {
        match *self {}
    }

    pub(crate) fn still_hold(&self) -> bool {
        match *self {}
    }

    pub(crate) fn enforce(&self) -> Result<(), Unrestricted> {
        match *self {}
    }
}
