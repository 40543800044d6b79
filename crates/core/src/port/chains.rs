//! The traces of runs, in the same journal as tasks and sessions. A chain is a name for what is
//! there already: nothing is written for it but where it begins.

use super::Stored;
use crate::{
    id::{ChainId, SessionId, TaskId},
    trace::Chain,
};

/// The chains, as one transaction sees them.
pub trait Chains {
    /// The chains whose name begins like this, oldest first.
    fn chains_beginning_with(&mut self, beginning: &str) -> Stored<Vec<Chain>>;
    /// The chains that were begun from within a chain, in order.
    fn chains_below(&mut self, chain: &ChainId) -> Stored<Vec<Chain>>;
    /// The chains of a task, one for each run, in order.
    fn chains_of(&mut self, task: &TaskId) -> Stored<Vec<Chain>>;
    /// The newest chains that were begun from within no other, newest first.
    fn newest_chains(&mut self, most: usize) -> Stored<Vec<Chain>>;
    /// The chain of what a session is doing: of the task that works in it, or of a person's
    /// run that is not over.
    fn open_chain(&mut self, session: &SessionId) -> Stored<Option<ChainId>>;
}
