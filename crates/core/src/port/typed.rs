//! Transactions with an answer.

use std::sync::{Arc, Mutex};

use crate::lock::lock;

use super::{Journal, StoreError, StoreErrorKind, Work};

/// Where a transaction leaves its answer.
pub struct Slot<T, E>(Arc<Mutex<Option<Result<T, E>>>>);

/// Work for a [`super::Store`], and where its answer will be. An error undoes everything.
pub fn typed<T, E>(
    work: impl Fn(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> (Work, Slot<T, E>)
where
    T: Send + 'static,
    E: Send + 'static,
{
    let slot = Arc::new(Mutex::new(None));
    let answer = Slot(slot.clone());
    let work = Box::new(move |journal: &mut dyn Journal| {
        let done = work(journal);
        let keep = done.is_ok();
        *lock(&slot) = Some(done);
        keep
    });
    (work, answer)
}

impl<T, E: From<StoreError>> Slot<T, E> {
    /// The answer, when the store has done the work.
    ///
    /// # Errors
    /// With the work's own, or when it broke off.
    pub fn take(self) -> Result<T, E> {
        let answer = lock(&self.0).take();
        answer.unwrap_or_else(|| {
            let why = "a transaction broke off";
            Err(StoreError::new(StoreErrorKind::Failed, "the database", why).into())
        })
    }
}
