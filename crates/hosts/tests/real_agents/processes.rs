//! The processes of a story, as the kernel knows them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Ends all processes that have a text in their environment, and those that they start meanwhile.
pub(crate) fn end_all_with(text: &str) {
    while {
        let left = all_with(text);
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        !left.is_empty()
    } {}
}

/// All processes at work that have a text in their environment.
pub(crate) fn all_with(text: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let ours = all.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let text = text.as_bytes();
        environment.windows(text.len()).any(|part| part == text)
    });
    let number = |name: std::ffi::OsString| Pid::from_raw(name.to_str()?.parse().ok()?);
    let ours = ours.filter_map(|process| number(process.file_name()));
    ours.filter(|pid| is_at_work(*pid)).collect()
}

/// What a process was called with.
#[allow(dead_code, reason = "stories with the program ask")]
pub(crate) fn command_line(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The value of a variable of a process.
#[allow(dead_code, reason = "stories with the program ask")]
pub(crate) fn variable(pid: Pid, name: &str) -> Option<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let all = String::from_utf8_lossy(&all).into_owned();
    let mut all = all.split('\0').filter_map(|one| one.split_once('='));
    all.find_map(|(known, value)| (known == name).then(|| value.to_owned()))
}

/// What has ended and was not collected yet does nothing any more.
fn is_at_work(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let state = after_name.and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
