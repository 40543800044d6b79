//! The processes of a world, as the kernel knows them.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process};

/// All processes that were started in this folder's world: they have it in their environment.
pub(super) fn of(folder: &Path) -> Vec<Pid> {
    let folder = folder.as_os_str().as_encoded_bytes();
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let ours = all.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.windows(folder.len()).any(|part| part == folder)
    });
    let number = |name: std::ffi::OsString| Pid::from_raw(name.to_str()?.parse().ok()?);
    let ours = ours.filter_map(|process| number(process.file_name()));
    ours.filter(|pid| is_at_work(*pid)).collect()
}

/// What a process was called with.
pub(super) fn command_line(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Sends a signal. A process that is gone needs none.
pub(super) fn signal(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// What has ended and was not collected yet does nothing any more.
fn is_at_work(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
