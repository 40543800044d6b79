//! The fork pipeline: what a child inherits of its parent's conversation.
//!
//! `steps` is the list of what is done to messages; each step has a file of its own.

mod cut_results;
mod cut_text;
mod edit;
mod error;
mod fit_budget;
mod format;
mod inherited;
mod limits;
mod parent;
mod pipeline;
mod plan;
mod preamble;
mod reach;
mod repeated_reads;
mod since_compaction;
mod stats;

pub use edit::{CutResult, Edits, Excerpt, edits, excerpt};
pub use error::{ForkError, LimitError};
pub use limits::{Limits, OverBudget, Preset, Setting};
pub use parent::Parent;
pub use plan::{Mode, Plan};
pub use preamble::BRANCHED;
pub use reach::Reach;
pub use stats::{Amount, Compacted, CutToFit, Messages, Results, Stats, TokenAmount};

/// Every step, in the order in which a message goes through them.
fn steps(limits: &Limits) -> Vec<Box<dyn pipeline::Step + '_>> {
    vec![
        Box::new(cut_results::CutResults::new(limits)),
        Box::new(repeated_reads::RepeatedReads::new(limits)),
    ]
}

/// What a forked child is given before its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The parent's conversation, wrapped and within the limits.
    pub context: String,
    /// What the child must know about the context.
    pub preamble: String,
    pub stats: Stats,
}

/// Makes what a child inherits of `parent`.
///
/// `count_tokens` is usually [`crate::tokens::o200k`]. It has to be additive where a
/// line ends and the next one begins with a letter or `<`, as all vocabularies that
/// split text before they encode it are.
///
/// # Errors
/// Only if the limits say to refuse what does not fit, as preset `exact` does.
pub fn fork(
    parent: &Parent,
    limits: &Limits,
    count_tokens: impl Fn(&str) -> usize,
) -> Result<Fork, ForkError> {
    let recent = since_compaction::recent(parent);
    let inherited = pipeline::run(&recent, limits);
    let fitted = fit_budget::fit(inherited, limits, &count_tokens)?;
    let stats = stats::gather(parent, &recent, &fitted, limits);
    Ok(Fork {
        preamble: preamble::write(&stats, limits, preamble::Form::Text),
        context: format::wrap(&fitted.blocks),
        stats,
    })
}
