//! Transactions with an answer.

use asyncagents_core::port::{Journal, Store, StoreError, typed};

/// Decides and saves in one transaction. An error undoes everything.
pub(crate) async fn write<T, E>(
    store: &dyn Store,
    work: impl FnOnce(&mut dyn Journal) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let (work, answer) = typed(work);
    store.write(work).await?;
    answer.take()
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
    let (work, answer) = typed(work);
    store.read(work).await?;
    answer.take()
}
