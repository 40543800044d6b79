//! The most memory that the processes below this one had at once.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::processes::{self, Memory};

const SHORTEST_PAUSE: Duration = Duration::from_millis(2);

/// Looks again and again, until it is asked.
pub(crate) struct Sampler {
    stop: Sender<()>,
    looking: JoinHandle<Memory>,
}

/// How closely memory is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Watch {
    /// Not at all: nothing is held up.
    Not,
    /// So that nothing is missed. The run becomes slower by it.
    Closely,
    /// So that a run of seconds hardly becomes slower.
    Loosely,
}

impl Sampler {
    pub(crate) fn start(watch: Watch) -> Option<Self> {
        // Looking holds the processes up, the larger the longer. So the pauses are longer as well.
        let pauses = match watch {
            Watch::Not => return None,
            Watch::Closely => 1,
            Watch::Loosely => 20,
        };
        let (stop, stopped) = mpsc::channel();
        let looking = thread::spawn(move || {
            let mut most = Memory::default();
            let mut pause = SHORTEST_PAUSE;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                let began = Instant::now();
                most = most.or_more(Memory::of(&processes::descendants()));
                pause = (began.elapsed() * pauses).max(SHORTEST_PAUSE);
            }
            most
        });
        Some(Self { stop, looking })
    }

    pub(crate) fn most(self) -> Memory {
        // If it has ended, it is not waiting for this.
        let _ = self.stop.send(());
        self.looking.join().unwrap_or_default()
    }
}
