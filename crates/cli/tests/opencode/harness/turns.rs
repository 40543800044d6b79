//! Not too many at once: OpenCode takes its time to start, and 300 MB.

use std::sync::{Condvar, Mutex, PoisonError};

const AT_ONCE: usize = 4;

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// A test's turn, for as long as it has this.
pub(super) struct Turn(());

impl Turn {
    /// Waits for a turn.
    pub(super) fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = GIVEN_BACK.wait_while(taken, |taken| *taken >= AT_ONCE);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}
