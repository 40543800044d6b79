//! Which processes of ours have a database open, where the system tells (Linux).

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// How long processes may take to end after they were told to.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveProcess {
    pub(crate) pid: u32,
    pub(crate) role: Role,
    /// It runs the same program file as this one.
    pub(crate) is_this_program: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Worker,
    /// Of an OpenCode.
    Bridge,
    Other,
}

/// The other processes of ours that have this file open.
pub(crate) fn with_open(db: &Path) -> Vec<LiveProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path();
        (pid != std::process::id() && is_ours(&folder) && has_open(&folder, db)).then(|| {
            LiveProcess {
                pid,
                role: role(&folder),
                is_this_program: which(&folder) == which(Path::new("/proc/self")),
            }
        })
    });
    processes.collect()
}

/// Whether no other process of ours has this file open, as far as can be told: where the system does
/// not tell, there may be one.
pub(crate) fn is_alone(db: &Path) -> bool {
    cfg!(target_os = "linux") && with_open(db).is_empty()
}

/// Tells workers and bridges of another program file to end, and waits until they have: a database
/// in a new format is not for them. Others start again by themselves, or are started where there is
/// work. Returns how many there were.
pub(crate) fn end_older(db: &Path) -> usize {
    let is_older = |process: &LiveProcess| !process.is_this_program && process.role != Role::Other;
    let older: Vec<LiveProcess> = with_open(db).into_iter().filter(is_older).collect();
    for process in &older {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    let begun = Instant::now();
    let is_there = |process: &LiveProcess| {
        let folder = Path::new("/proc").join(process.pid.to_string());
        is_ours(&folder) && has_open(&folder, db)
    };
    while older.iter().any(is_there) && begun.elapsed() < END_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
    }
    older.len()
}

/// Whether a process runs this program, or another version of it.
fn is_ours(process: &Path) -> bool {
    let Ok(program) = fs::read_link(process.join("exe")) else {
        return false;
    };
    let name = program.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b"asyncagents") || which(process) == which(Path::new("/proc/self"))
}

/// The file of a process's program, also after it was replaced.
fn which(process: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(process.join("exe")).ok()?;
    Some((found.dev(), found.ino()))
}

fn role(process: &Path) -> Role {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let has = |word: &[u8]| line.split(|byte| *byte == 0).skip(1).any(|arg| arg == word);
    if has(b"opencode-bridge") {
        Role::Bridge
    } else if has(b"worker") {
        Role::Worker
    } else {
        Role::Other
    }
}

/// Whether a process has a file open.
pub(crate) fn has_open(process: &Path, file: &Path) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten();
    let mut files = files.flatten().map(|fd| fs::read_link(fd.path()));
    files.any(|open| open.is_ok_and(|open| open == file))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn older_workers_and_bridges_are_ended_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let db = folder.join("tasks.db");
        fs::write(&db, "").unwrap();
        let program = folder.join("asyncagents-older");
        let mut copy = Command::new("cp");
        let copied = copy.arg("/bin/bash").arg(&program).status().unwrap();
        assert!(copied.success());
        let script = format!("exec 3<{}; read", db.display());
        let mut children = ["worker", "opencode-bridge", "run"].map(|verb| {
            let mut command = Command::new(&program);
            command.args(["-c", &script, verb, verb]);
            command.stdin(Stdio::piped()).spawn().unwrap()
        });
        let begun = Instant::now();
        while with_open(&db).len() < children.len() {
            assert!(begun.elapsed() < Duration::from_secs(30), "not started");
            std::thread::yield_now();
        }
        let mut roles: Vec<Role> = with_open(&db).iter().map(|found| found.role).collect();
        roles.sort_by_key(|role| *role as u8);
        assert_eq!(roles, [Role::Worker, Role::Bridge, Role::Other]);
        assert!(with_open(&db).iter().all(|found| !found.is_this_program));
        assert_eq!(end_older(&db), 2);
        let left: Vec<Role> = with_open(&db).iter().map(|found| found.role).collect();
        assert_eq!(left, [Role::Other]);
        for child in &mut children {
            let _ = child.kill();
            child.wait().unwrap();
        }
        assert!(with_open(&folder.join("other.db")).is_empty());
    }
}
