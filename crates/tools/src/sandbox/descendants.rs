//! The processes of a command, from the view of the process that has to end them: its descendants,
//! because orphans become its children.

#[cfg(target_os = "linux")]
use std::{collections::HashSet, ops::ControlFlow};
use std::{
    io,
    path::PathBuf,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use asyncagents_core::lock::lock;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid},
};

use super::group::Group;
#[cfg(target_os = "linux")]
use super::processes::{self, Process};

/// Between two polls of processes that were sent the signal and are not gone, at first.
const PAUSE: Duration = Duration::from_millis(1);
/// And the longest: some wait for a disk that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How long to try what cannot be done: to list processes while the machine is short of files,
/// or to end those of other users. Guard and supervisor together take less time than asyncagents
/// waits for the report.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often to look for processes that were forked while others were stopped. If there are still
/// new ones, those that are stopped are killed, and it begins again.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 100;

/// The processes of a command.
pub(super) struct Descendants {
    /// The process that was started; all others come of it.
    first: OnceLock<Pid>,
    group: Option<Group>,
    /// How the first process ended. Held while a list of children is in use, and while one is
    /// reaped: a number on the list must not be given to another process meanwhile.
    first_status: Mutex<Option<WaitStatus>>,
    /// The main thread is ending all, so that no other thread has to.
    ending: AtomicBool,
}

impl Descendants {
    /// Orphans become children of this process from now on.
    pub(super) fn adopt_orphans(group: Option<PathBuf>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self {
            first: OnceLock::new(),
            group: group.map(Group::at),
            first_status: Mutex::new(None),
            ending: AtomicBool::new(false),
        })
    }

    pub(super) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Waits until the first process has ended, and reaps orphans on the way.
    pub(super) fn wait_for(&self, first: Pid) -> io::Result<WaitStatus> {
        self.first.get_or_init(|| first);
        loop {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = waitid(WaitId::All, ended);
            let mut first_status = lock(&self.first_status);
            while let Ok(Some(_)) = self.reap(&mut first_status) {}
            match (*first_status, waited) {
                (Some(status), _) => return Ok(status),
                (None, Ok(_) | Err(Errno::INTR)) => {}
                (None, Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Kills until no process is left. When there are no children, there are no descendants.
    pub(super) fn end_all(&self) -> io::Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let mut pause = PAUSE;
        while self.has_children()? {
            match self.stop_and_kill() {
                Err(error) if began.elapsed() > KILL_TIMEOUT => return Err(error),
                Ok(()) | Err(_) => {}
            }
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        // Elsewhere orphans are not ours, but they are still in the group.
        #[cfg(not(target_os = "linux"))]
        self.stop_and_kill()?;
        if let Some(group) = &self.group {
            group.remove();
        }
        Ok(())
    }

    /// Ends everything until the main thread has noticed that the first process is gone, and
    /// goes on with that itself.
    pub(super) fn end_until_noticed(&self) {
        let mut pause = PAUSE;
        while !self.ending.load(Ordering::Relaxed) {
            // What cannot be listed now may be listed the next time.
            self.stop_and_kill().ok();
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn has_children(&self) -> io::Result<bool> {
        let mut first_status = lock(&self.first_status);
        loop {
            match self.reap(&mut first_status) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reaps a child that has ended, if there is one. Keeps how the first process ended; its
    /// number may be given to an orphan later.
    fn reap(&self, first_status: &mut Option<WaitStatus>) -> rustix::io::Result<Option<Pid>> {
        let Some((pid, status)) = wait(WaitOptions::NOHANG)? else {
            return Ok(None);
        };
        if self.first.get() == Some(&pid) {
            first_status.get_or_insert(status);
        }
        Ok(Some(pid))
    }

    #[cfg(not(target_os = "linux"))]
    fn stop_and_kill(&self) -> io::Result<()> {
        let _held = lock(&self.first_status);
        if let Some(first) = self.first.get() {
            rustix::process::kill_process_group(*first, Signal::KILL).ok();
        }
        Ok(())
    }

    /// Stops everything first, because what is stopped makes no new processes, and then kills
    /// it. Killing one by one, those not yet killed could go on forking faster.
    #[cfg(target_os = "linux")]
    fn stop_and_kill(&self) -> io::Result<()> {
        if let Some(group) = &self.group {
            group.kill();
        }
        let mut held = lock(&self.first_status);
        let children = self.stop_children(&mut held)?;
        let descendants = self.stop_descendants(&mut held);
        // Also if there is no list of the others: their parents' end makes them children.
        let mut refused = HashSet::new();
        for child in &children {
            if let Err(Errno::PERM) = rustix::process::kill_process(*child, Signal::KILL) {
                refused.insert(*child);
            }
        }
        let descendants = descendants?;
        for process in &descendants {
            if let Err(Errno::PERM) = process.send(Signal::KILL) {
                refused.insert(process.pid);
            }
        }
        if refused.is_empty() || refused.len() < descendants.len() {
            return Ok(());
        }
        let refused: Vec<_> = refused.iter().map(|pid| pid.to_string()).collect();
        let why = format!("no signal may be sent to process {}", refused.join(", "));
        Err(io::Error::other(why))
    }

    /// Stops the children, and those that become children meanwhile: a process that forks and
    /// ends at once is always one, and soon gone.
    #[cfg(target_os = "linux")]
    fn stop_children(&self, first_status: &mut Option<WaitStatus>) -> io::Result<Vec<Pid>> {
        let mut stopped = HashSet::new();
        for _ in 1..ROUNDS {
            let mut found_more = false;
            let children = processes::children()?;
            for child in &children {
                if stopped.insert(*child) {
                    found_more = true;
                    rustix::process::kill_process(*child, Signal::STOP).ok();
                }
            }
            if !found_more {
                return Ok(children);
            }
            // Those that have ended would only make the list longer.
            while let Ok(Some(pid)) = self.reap(first_status) {
                stopped.remove(&pid);
            }
        }
        processes::children()
    }

    /// Stops all others, until no new one is found.
    #[cfg(target_os = "linux")]
    fn stop_descendants(&self, _held: &mut Option<WaitStatus>) -> io::Result<Vec<Process>> {
        let mut stopped = HashSet::new();
        for _ in 1..ROUNDS {
            let mut found_more = false;
            let mut all = Vec::new();
            processes::walk(|process| {
                if stopped.insert(process.identity()) {
                    found_more = true;
                    // One that may not be stopped may not be killed either, which is an error then.
                    process.send(Signal::STOP).ok();
                }
                all.push(*process);
                ControlFlow::Continue(())
            })?;
            if !found_more {
                return Ok(all);
            }
        }
        processes::descendants()
    }
}
