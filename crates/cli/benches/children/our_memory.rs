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

/// A process of this program that the worker has started, but not the agent in it.
fn is_helper(process: &Path, worker: u32) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let parent = after_name.and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
    let program = fs::read_link(process.join("exe")).unwrap_or_default();
    parent == Some(worker) && program == Path::new(env!("CARGO_BIN_EXE_asyncagents"))
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
