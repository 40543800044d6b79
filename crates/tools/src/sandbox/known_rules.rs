//! The rules about files that were made for earlier commands.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use asyncagents_core::lock::lock;

use super::{group, order::Limits, restrict::FileRules};

/// How many are kept, each with an open file: those of the folders that were used last.
const MOST: usize = 8;

/// The rules about files that were made for earlier commands.
#[derive(Default)]
pub(super) struct KnownRules {
    /// The one used last is at the end.
    kept: Mutex<Vec<Arc<FileRules>>>,
}

impl KnownRules {
    /// Restricts this thread and all that it starts from now on as the limits say: a thread that is
    /// for nothing else. The program is the helper that it will start. Returns the rules.
    ///
    /// # Errors
    /// With why it is not restricted. Then nothing may be started by it.
    pub(super) fn restrict_thread(
        &self,
        limits: &Limits,
        helper: &Path,
    ) -> Result<Arc<FileRules>, String> {
        let make = || FileRules::make(limits, helper, group::folder_of_groups()).map(Arc::new);
        let known = self.take(limits).filter(|rules| rules.still_hold());
        let rules = known.map_or_else(make, Ok);
        let rules = rules.map_err(|why| why.to_string())?;
        self.keep(Arc::clone(&rules));
        rules.enforce().map_err(|why| why.to_string())?;
        Ok(rules)
    }

    pub(super) fn forget(&self) {
        lock(&self.kept).clear();
    }

    fn take(&self, limits: &Limits) -> Option<Arc<FileRules>> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|rules| rules.are_for(limits))?;
        Some(kept.remove(at))
    }

    fn keep(&self, rules: Arc<FileRules>) {
        let mut kept = lock(&self.kept);
        kept.push(rules);
        if kept.len() > MOST {
            kept.remove(0);
        }
    }
}
