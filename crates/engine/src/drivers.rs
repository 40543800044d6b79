//! The drivers of an engine: which sessions are driven here, and how they are stopped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use asyncagents_core::{id::SessionId, lock::lock, progress::Totals};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};

/// The drivers of an engine, one for each session that has something to do.
#[derive(Default)]
pub(crate) struct Drivers {
    /// No driver is spawned any more.
    closed: AtomicBool,
    handles: Mutex<HashMap<SessionId, Arc<DriverHandle>>>,
    running: Mutex<JoinSet<()>>,
}

/// Wakes, stops and observes a driver from outside.
#[derive(Default)]
pub(crate) struct DriverHandle {
    /// There may be something new in the session.
    pub(crate) wake: Notify,
    pub(crate) halt: watch::Sender<Halt>,
    /// The session is to be driven again: something came after the driver had looked for the last
    /// time.
    again: Mutex<bool>,
    /// Set when the driver has released its session.
    gone: watch::Sender<bool>,
    /// What the session has used, as far as the driver knows.
    pub(crate) totals: Mutex<Option<Totals>>,
    /// The driver has asked something or saved something: what it asks is known.
    pub(crate) has_acted: AtomicBool,
}

/// Whether a driver is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Halt {
    #[default]
    Go,
    /// After the tool that is running.
    Soon,
    Now,
}

impl DriverHandle {
    /// Returns when the driver is to stop, this urgently at least.
    pub(crate) async fn halted(&self, at_least: Halt) -> Halt {
        let mut halt = self.halt.subscribe();
        let halted = halt.wait_for(|halt| *halt >= at_least).await;
        halted.map_or(Halt::Now, |halt| *halt)
    }

    pub(crate) async fn is_gone(&self) {
        // The sender goes with its driver, which sets it or is dropped.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }
}

impl Drivers {
    /// Makes sure that a session is driven: wakes its driver, or spawns one.
    pub(crate) fn attend<F>(&self, session: &SessionId, drive: impl FnOnce(Arc<DriverHandle>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        let mut handles = lock(&self.handles);
        if let Some(handle) = handles.get(session) {
            *lock(&handle.again) = true;
            handle.wake.notify_one();
            return;
        }
        let handle = Arc::<DriverHandle>::default();
        handles.insert(session.clone(), handle.clone());
        let mut running = lock(&self.running);
        while running.try_join_next().is_some() {}
        running.spawn(drive(handle));
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<Arc<DriverHandle>> {
        lock(&self.handles).get(session).cloned()
    }

    /// What a session that is driven here has used.
    pub(crate) fn totals(&self, session: &SessionId) -> Option<Totals> {
        lock(&self.get(session)?.totals).clone()
    }

    /// Whether the driver of a session has come to where the one before it was.
    pub(crate) fn has_acted(&self, session: &SessionId) -> bool {
        let handle = self.get(session);
        handle.is_some_and(|handle| handle.has_acted.load(Ordering::SeqCst))
    }

    /// Wakes a driver that may be waiting for what has come.
    pub(crate) fn wake(&self, session: &SessionId) {
        if let Some(handle) = self.get(session) {
            handle.wake.notify_one();
        }
    }

    /// Whether a driver that has nothing to do may end: not if its session was attended to since
    /// it looked.
    pub(crate) fn may_end(&self, session: &SessionId, handle: &Arc<DriverHandle>) -> bool {
        let mut handles = lock(&self.handles);
        if std::mem::take(&mut *lock(&handle.again)) {
            return false;
        }
        remove(&mut handles, session, handle);
        true
    }

    /// A driver has ended, for whatever reason.
    pub(crate) fn release(&self, session: &SessionId, handle: &Arc<DriverHandle>) {
        remove(&mut lock(&self.handles), session, handle);
        handle.gone.send_replace(true);
    }

    /// Lets drivers finish their step, for so long at most. None begins after this.
    pub(crate) async fn close(&self, timeout: Duration) {
        self.closed.store(true, Ordering::SeqCst);
        let handles: Vec<_> = lock(&self.handles).values().cloned().collect();
        for handle in &handles {
            handle.halt.send_replace(Halt::Soon);
        }
        let gone = async {
            for handle in &handles {
                handle.is_gone().await;
            }
        };
        let _ = time::timeout(timeout, gone).await;
        self.kill();
    }

    /// Stops all drivers at once.
    pub(crate) fn kill(&self) {
        lock(&self.running).abort_all();
        lock(&self.handles).clear();
    }
}

/// Removes a session's driver, unless another has taken its place.
fn remove(
    handles: &mut HashMap<SessionId, Arc<DriverHandle>>,
    session: &SessionId,
    handle: &Arc<DriverHandle>,
) {
    let is_own = |own: &Arc<DriverHandle>| Arc::ptr_eq(own, handle);
    if handles.get(session).is_some_and(is_own) {
        handles.remove(session);
    }
}
