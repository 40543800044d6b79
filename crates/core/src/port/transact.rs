//! Transactions with an answer.

use std::sync::{Arc, Mutex};

use super::{Journal, Store, StoreError, StoreErrorKind, Work};
use crate::lock::lock;

/// Looks something up, in one transaction. Like all work for a store, `work` may be run more than
/// once.
///
/// # Errors
/// With the work's own, or when the store fails.
pub async fn query<T, E>(
    store: &dyn Store,
    work: impl Fn(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let (work, answer) = answering(work);
    store.read(work).await?;
    taken(&answer)
}

/// Decides and saves, in one transaction. An error undoes everything.
///
/// # Errors
/// With the work's own, or when the store fails.
pub async fn transact<T, E>(
    store: &dyn Store,
    work: impl Fn(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let (work, answer) = answering(work);
    store.write(work).await?;
    taken(&answer)
}

/// The same for what [`Store::write_unsynced`] is for.
///
/// # Errors
/// With the work's own, or when the store fails.
pub async fn transact_unsynced<T, E>(
    store: &dyn Store,
    work: impl Fn(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let (work, answer) = answering(work);
    store.write_unsynced(work).await?;
    taken(&answer)
}

/// Where work leaves its answer: a store only knows whether to keep what was done.
type Slot<T, E> = Arc<Mutex<Option<Result<T, E>>>>;

fn answering<T, E>(
    work: impl Fn(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> (Work, Slot<T, E>)
where
    T: Send + 'static,
    E: Send + 'static,
{
    let slot = Slot::default();
    let answer = slot.clone();
    let work = Box::new(move |journal: &mut dyn Journal| {
        let done = work(journal);
        let keep = done.is_ok();
        *lock(&slot) = Some(done);
        keep
    });
    (work, answer)
}

fn taken<T, E: From<StoreError>>(answer: &Slot<T, E>) -> Result<T, E> {
    lock(answer).take().unwrap_or_else(|| {
        let why = "a transaction broke off";
        Err(StoreError::new(StoreErrorKind::Failed, "the database", why).into())
    })
}
