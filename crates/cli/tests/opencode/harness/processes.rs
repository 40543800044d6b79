//! The processes of a world, as the kernel knows them.

use std::{fs, path::Path, time::Duration};

use rustix::process::{Signal, kill_process};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

pub(crate) use rustix::process::Pid;

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
    // What has ended and was not collected yet does nothing any more.
    ours.filter(|pid| !matches!(state(*pid), None | Some('Z')))
        .collect()
}

/// What a process was called with.
pub(super) fn command_line(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Who started it, if that lives.
pub(super) fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(stat(pid)?.get(1)?.parse().ok()?)
}

/// Ends a process as no process can prevent. One that is gone already is ended.
pub(super) fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Lets what is started from here hear Ctrl-C. A shell without job control has what it starts in the
/// background ignore it, and that is inherited; what is caught is not.
pub(super) fn hear_ctrl_c(runtime: &Runtime) {
    let status = fs::read_to_string("/proc/self/status").expect("our own status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let interrupt = 1 << (SignalKind::interrupt().as_raw_value() - 1);
    if ignored.expect("a mask") & interrupt != 0 {
        let _context = runtime.enter();
        // It stays caught.
        drop(signal(SignalKind::interrupt()).expect("caught"));
    }
}

/// How much of a processor a process has used so far.
pub(crate) fn cpu_time(pid: Pid) -> Duration {
    // Linux counts in hundredths of a second towards user space, on every architecture.
    const TICK: Duration = Duration::from_millis(10);
    let stat = stat(pid).expect("the process lives");
    let ticks = |at: usize| stat.get(at).and_then(|field| field.parse::<u32>().ok());
    // utime and stime are fields 14 and 15; the first two are not among these.
    TICK * (ticks(11).expect("a number") + ticks(12).expect("a number"))
}

/// How much memory a process has that is in use, in bytes.
pub(crate) fn memory(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: Option<u64> = kilobytes.and_then(|number| number.parse().ok());
    kilobytes.expect("a number") * 1024
}

fn state(pid: Pid) -> Option<char> {
    stat(pid)?.first()?.chars().next()
}

/// The fields after the name, which may have spaces in it.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}
