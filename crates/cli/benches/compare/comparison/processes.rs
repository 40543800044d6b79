//! What the kernel says of the processes that were started from here, by `/proc`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// Orphans become children of this process, so that nothing that a program leaves behind is missed.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> Result<()> {
    rustix::process::set_child_subreaper(Some(Pid::INIT))
        .context("this process cannot adopt orphans")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> Result<()> {
    anyhow::bail!("this measures by /proc, which only Linux has")
}

/// All processes below this one.
pub(crate) fn descendants() -> Vec<u32> {
    let mut found = children_of(std::process::id());
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children_of(pid));
        next += 1;
    }
    found
}

fn children_of(pid: u32) -> Vec<u32> {
    let lists = threads_of(pid)
        .into_iter()
        .map(|thread| thread.join("children"));
    let texts = lists.filter_map(|list| fs::read_to_string(list).ok());
    texts
        .flat_map(|text| {
            let pids: Vec<u32> = text.split_whitespace().flat_map(str::parse).collect();
            pids
        })
        .collect()
}

fn threads_of(pid: u32) -> Vec<PathBuf> {
    let threads = fs::read_dir(process(pid).join("task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.map(|thread| thread.path()).collect()
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Kills everything below this process.
pub(crate) fn kill_all() {
    for pid in descendants() {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // It may be gone by now.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// The same, and waits until it is gone.
pub(crate) fn end_all() {
    // What is killed may have started something a moment before.
    loop {
        kill_all();
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

/// Processor time, user and system, of all children that were waited for, and of theirs.
pub(crate) fn time_of_ended_children() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program comes first, in parentheses; it may have spaces.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("no name in /proc/self/stat")?;
    let fields: Vec<u64> = fields
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    const CHILDREN_USER: usize = 13;
    let ticks: u64 = fields.iter().skip(CHILDREN_USER).take(2).sum();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs(1) * u32::try_from(ticks)? / u32::try_from(per_second)?)
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The sum of what each process has in memory.
    pub(crate) resident: u64,
    /// The same, but what several share is counted once.
    pub(crate) proportional: u64,
}

impl Memory {
    /// What these processes have. It is slow for large ones, and holds them up.
    pub(crate) fn of(pids: &[u32]) -> Self {
        let mut memory = Self::default();
        for pid in pids {
            // It may be gone by now.
            let rollup = fs::read_to_string(process(*pid).join("smaps_rollup"));
            let rollup = rollup.unwrap_or_default();
            memory.resident += field(&rollup, "Rss:").unwrap_or(0) * 1024;
            memory.proportional += field(&rollup, "Pss:").unwrap_or(0) * 1024;
        }
        memory
    }

    /// The most of either.
    pub(crate) fn or_more(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            proportional: self.proportional.max(other.proportional),
        }
    }
}

/// What the threads below this process did so far.
pub(crate) struct Activity(BTreeMap<PathBuf, (u64, u64)>);

impl Activity {
    pub(crate) fn now() -> Self {
        let threads = descendants().into_iter().flat_map(threads_of);
        let one = |thread: PathBuf| {
            let status = fs::read_to_string(thread.join("status")).ok()?;
            let wakeups = field(&status, "voluntary_ctxt_switches:")?;
            let times = fs::read_to_string(thread.join("schedstat")).ok()?;
            let on_cpu = times.split_whitespace().next()?.parse().ok()?;
            Some((thread, (wakeups, on_cpu)))
        };
        Self(threads.filter_map(one).collect())
    }

    /// How often they woke up since, and how long they were on a processor.
    pub(crate) fn since(&self, before: &Self) -> (u64, Duration) {
        let none = (0, 0);
        let differences = self.0.iter().map(|(thread, (wakeups, on_cpu))| {
            let (wakeups_before, on_cpu_before) = before.0.get(thread).unwrap_or(&none);
            (
                wakeups.saturating_sub(*wakeups_before),
                on_cpu.saturating_sub(*on_cpu_before),
            )
        });
        let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        let (wakeups, on_cpu) = differences.fold(none, add);
        (wakeups, Duration::from_nanos(on_cpu))
    }
}

/// The number after this word, at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
