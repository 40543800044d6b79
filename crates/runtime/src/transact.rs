//! Transactions with an answer.

use std::sync::{Arc, Mutex, PoisonError};

use asyncagents_core::port::{Journal, Store, StoreError};

/// Decides and saves in one transaction. An error undoes everything.
pub(crate) async fn write<T, E>(
    store: &dyn Store,
    work: impl FnOnce(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let work = Box::new(move |journal: &mut dyn Journal| {
        let done = work(journal);
        let keep = done.is_ok();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        keep
    });
    store.write(work).await?;
    take(&answer)
}

/// Looks something up.
pub(crate) async fn read<T, E>(
    store: &dyn Store,
    work: impl FnOnce(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let work = Box::new(move |journal: &mut dyn Journal| {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(work(journal));
        true
    });
    store.read(work).await?;
    take(&answer)
}

fn take<T, E: From<StoreError>>(answer: &Mutex<Option<Result<T, E>>>) -> Result<T, E> {
    let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    answer.unwrap_or_else(|| {
        Err(E::from(StoreError::Failed {
            path: Default::default(),
            why: "a transaction broke off".to_owned(),
        }))
    })
}
