//! What our own processes need of memory, without what they share with each other.

use std::{fs, path::Path};

/// In KB.
pub(crate) struct OurMemory {
    pub(crate) worker: u64,
    /// The processes of the sandbox around agents.
    pub(crate) helpers: u64,
}

pub(crate) fn of(worker: u32) -> OurMemory {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let helpers = all.filter(|process| is_helper(&process.path(), worker));
    OurMemory {
        worker: private(&Path::new("/proc").join(worker.to_string())),
        helpers: helpers.map(|process| private(&process.path())).sum(),
    }
}

/// A process of this program that the worker has started, or that such a one has: not the agent in it.
fn is_helper(process: &Path, worker: u32) -> bool {
    let program = fs::read_link(process.join("exe")).unwrap_or_default();
    let above = parent(process);
    let is_below = above.is_some_and(|above| {
        above == worker || parent(&Path::new("/proc").join(above.to_string())) == Some(worker)
    });
    is_below && program == Path::new(env!("CARGO_BIN_EXE_asyncagents"))
}

fn parent(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(1)?.parse().ok()
}

fn private(process: &Path) -> u64 {
    let maps = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
    let of = |name: &str| {
        let line = maps.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or_default()
    };
    of("Private_Dirty:") + of("Private_Clean:")
}
