//! Polls what the processes of a command use.

use std::{
    fs, io,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use super::{
    group,
    order::Streams,
    processes::{self, Process},
};
use crate::resources::{Bytes, MemoryLimit, Resources};

/// Between two polls.
const INTERVAL: Duration = Duration::from_millis(50);
/// Between two polls that take long, and those of a program that runs for hours.
const LONGEST_INTERVAL: Duration = Duration::from_millis(250);
/// A poll may take one part in so many of the time.
const SHARE: u32 = 10;

/// How many threads a process may have on average.
pub(super) const THREADS: u64 = 16;

/// Polls what the processes of a command use.
pub(super) struct Watch {
    processes: Option<u64>,
    memory: Option<(MemoryLimit, Bytes)>,
    /// Between two polls at least.
    interval: Duration,
    /// Until the next poll.
    pub(super) pause: Duration,
}

impl Watch {
    pub(super) fn new(resources: &Resources, streams: Streams) -> Self {
        let interval = match streams {
            Streams::Output => INTERVAL,
            Streams::Pipes => LONGEST_INTERVAL,
        };
        let memory = resources.memory;
        let memory = memory.and_then(|limit| Some((limit, in_bytes(limit)?)));
        Self {
            processes: resources.processes,
            memory,
            interval,
            pause: interval,
        }
    }

    /// The limit that this process's descendants do not keep, if there is one, as a remark.
    pub(super) fn exceeded(&mut self) -> Option<String> {
        let began = Instant::now();
        let most = self.processes.unwrap_or(u64::MAX);
        // Those that fork and end at once are gone before they can be read, but each is on this
        // list, until it is reaped.
        if processes::children().is_ok_and(|children| children.len() as u64 > most) {
            return Some(too_many_processes(most));
        }
        let mut all = Vec::new();
        // To read all of a fork bomb would take longer than it needs to grow. What cannot be
        // listed now may be listed the next time.
        let _ = processes::walk(|process| {
            all.push(*process);
            if all.len() as u64 > most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let exceeded = self.too_many(&all).or_else(|| self.too_large(&all));
        self.pause = (began.elapsed() * SHARE).clamp(self.interval, LONGEST_INTERVAL);
        exceeded
    }

    fn too_many(&self, all: &[Process]) -> Option<String> {
        let most = self.processes?;
        let threads: u64 = all.iter().map(|process| process.threads).sum();
        if all.len() as u64 > most {
            return Some(too_many_processes(most));
        }
        let most = most.saturating_mul(THREADS);
        (threads > most).then(|| format!("its processes had more than {most} threads"))
    }

    fn too_large(&self, all: &[Process]) -> Option<String> {
        let (limit, Bytes(most)) = self.memory?;
        let pages: u64 = all.iter().map(|process| process.pages).sum();
        let page = rustix::param::page_size() as u64;
        // Shared memory is in it many times, so that it can be too much.
        if pages.saturating_mul(page) <= most {
            return None;
        }
        let is_too_much = |all: &[Process]| {
            let parts = all.iter().map(|process| proportional(process, page));
            parts.sum::<u64>() > most
        };
        // Twice: when some end during the first count, what they shared is counted more often.
        let again = || processes::descendants().is_ok_and(|all| is_too_much(&all));
        (is_too_much(all) && again()).then(|| too_much_memory(limit))
    }
}

fn too_many_processes(most: u64) -> String {
    format!("it had more than {most} processes")
}

pub(super) fn too_much_memory(most: MemoryLimit) -> String {
    match most {
        MemoryLimit::Bytes(most) => format!("its processes had more than {most} of memory"),
        MemoryLimit::Percent(most) => {
            format!("its processes had more than {most}% of the machine's memory")
        }
    }
}

/// The memory of a process that is not in files, each page divided among those who share it. The
/// kernel has to count for this.
fn proportional(process: &Process, page: u64) -> u64 {
    let pid = process.pid.as_raw_nonzero();
    match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        // Nothing, if it is about to end.
        Ok(text) => {
            let parts = ["Pss_Anon:", "Pss_Shmem:"].map(|name| in_kilobytes(&text, name));
            parts.into_iter().flatten().sum()
        }
        // Another user's.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => process.pages * page,
        Err(_) => 0,
    }
}

/// How much memory that is on this machine.
pub(super) fn in_bytes(limit: MemoryLimit) -> Option<Bytes> {
    limit.of(machine_memory())
}

/// What the machine has, or what this process is left of it.
fn machine_memory() -> Option<Bytes> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let all = in_kilobytes(&text, "MemTotal:").map(Bytes);
    all.into_iter().chain(group::memory_around()).min()
}

fn in_kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number = line.trim().strip_suffix("kB")?.trim_end();
    number.parse::<u64>().ok()?.checked_mul(1024)
}
