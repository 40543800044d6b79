//! What `doctor` found.

use serde::Serialize;

/// Everything that was checked.
#[derive(Debug, Serialize)]
pub struct DoctorView {
    pub checks: Vec<FindingView>,
    /// Nothing needs mending.
    pub well: bool,
}

/// One thing that was checked.
#[derive(Debug, Serialize)]
pub struct FindingView {
    /// What it is about: `asyncagents`, `opencode`, `plugin`, `bridge`, `database`, `worker`,
    /// `models`, `sandbox`.
    pub about: &'static str,
    /// What to do, if something is to be done.
    pub mend: Option<String>,
    pub state: FindingState,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    Ok,
    /// Worth knowing; it need not be mended.
    Note,
    Problem,
}
