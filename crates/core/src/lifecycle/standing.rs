//! What to do about a running task whose host was asked.

use crate::{id::ModelName, task::Outcome};

/// What a host says about a session and a prompt of ours, when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is no such session.
    Gone,
    /// The prompt is not in its history.
    Unprompted,
    /// It is working on the prompt.
    Working,
    /// It has done with the prompt.
    Done {
        outcome: Outcome,
        /// What the child said last.
        answer: Option<String>,
    },
    /// Its model is out of quota or cannot be asked, so the prompt is not worked on.
    ModelUnavailable(Unavailable),
    /// The prompt is there, and it is neither answered nor worked on: the host itself was
    /// stopped in the middle.
    Interrupted,
}

/// What a host says about a model that it cannot ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Which model, where the host says so.
    pub model: Option<ModelName>,
    /// What the provider says.
    pub why: String,
    /// What the child said last.
    pub answer: Option<String>,
    /// Whether the host goes on asking, though in vain so far.
    pub retrying: bool,
}

/// What to do about a running task after its host was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Prompt,
    /// Wait for what the host reports.
    Wait,
    Finish {
        outcome: Outcome,
        /// What the child said last.
        answer: Option<String>,
    },
}

/// What to do about a running task whose host was asked, because reports may have been
/// missed: another process looked after it before, the connection broke, it was silent.
pub fn after_asking(standing: Standing) -> Next {
    let failed = |why: &str| Next::Finish {
        outcome: Outcome::Failed {
            why: why.to_owned(),
        },
        answer: None,
    };
    match standing {
        // Never in the history means never worked on, so this does nothing twice, if what may
        // have been on its way was given the time to arrive.
        Standing::Unprompted => Next::Prompt,
        Standing::Working => Next::Wait,
        Standing::Done { outcome, answer } => Next::Finish { outcome, answer },
        Standing::ModelUnavailable(unavailable) if unavailable.retrying => Next::Wait,
        Standing::ModelUnavailable(Unavailable { why, answer, .. }) => Next::Finish {
            outcome: Outcome::Failed { why },
            answer,
        },
        Standing::Gone => failed("its session no longer exists"),
        Standing::Interrupted => {
            failed("its host was stopped while it worked; resume it to go on from there")
        }
    }
}
