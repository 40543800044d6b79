//! The processes that come of this one, as the kernel lists them.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    ops::ControlFlow,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal},
};

/// A process at the time it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: Pid,
    /// When it began: numbers are given again, but not for the same time.
    began: u64,
    pub(super) threads: u64,
    /// Memory that is not on disk, in pages, some of them shared with others.
    pub(super) pages: u64,
}

impl Process {
    /// What distinguishes the process from all others.
    pub(super) fn identity(&self) -> (i32, u64) {
        (self.pid.as_raw_nonzero().get(), self.began)
    }

    /// Sends the process a signal. To have ended meanwhile is no error, and a process that got its
    /// number since gets no signal.
    pub(super) fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        let sent = match pidfd_open(self.pid, PidfdFlags::empty()) {
            // What is read now is what was opened, or came after it: then the signal goes to
            // one that has ended.
            Ok(opened) if self.is_there() => pidfd_send_signal(opened, signal),
            // Linux before 5.3.
            Err(Errno::NOSYS) if self.is_there() => kill_process(self.pid, signal),
            Ok(_) | Err(Errno::NOSYS) => Ok(()),
            Err(error) => Err(error),
        };
        match sent {
            Err(Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }

    fn is_there(&self) -> bool {
        matches!(read_process(self.pid), Ok(Some(now)) if now.began == self.began)
    }
}

/// The children of this process: quick, so that one that forks and ends without pause is caught.
pub(super) fn children() -> io::Result<Vec<Pid>> {
    listed_children(getpid(), None).or_else(|_| {
        let all = all_processes()?;
        let own = all.into_iter().filter(|process| process.parent == getpid());
        Ok(own.map(|process| process.pid).collect())
    })
}

/// The children of this process, their children, and so on. Each is shown to `visit` before its
/// children are looked for, so that a walk which stops them is not outrun by a fork bomb; at
/// `Break` the walk ends. Those that come and go meanwhile may be missing.
pub(super) fn walk(mut visit: impl FnMut(&Process) -> ControlFlow<()>) -> io::Result<()> {
    let mut seen = HashSet::new();
    let listed = walk_lists(&mut |process| {
        seen.insert(process.identity());
        visit(process)
    });
    if listed.is_ok() {
        return Ok(());
    }
    for process in searched_descendants()? {
        if !seen.contains(&process.identity()) && visit(&process).is_break() {
            break;
        }
    }
    Ok(())
}

/// All that a walk finds.
pub(super) fn descendants() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    walk(|process| {
        found.push(*process);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn walk_lists(visit: &mut dyn FnMut(&Process) -> ControlFlow<()>) -> io::Result<()> {
    let mut known = HashSet::from([getpid()]);
    let mut pending = listed_children(getpid(), None)?;
    while let Some(pid) = pending.pop() {
        // One that has ended may have left its number to another process.
        match read_process(pid)? {
            Some(process) if known.contains(&process.parent) && known.insert(pid) => {
                if visit(&process).is_break() {
                    break;
                }
                pending.extend(listed_children(pid, Some(process.threads))?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// As the kernel lists them, for each thread that made some.
fn listed_children(parent: Pid, threads: Option<u64>) -> io::Result<Vec<Pid>> {
    let parent = parent.as_raw_nonzero();
    let tasks = format!("/proc/{parent}/task");
    let mut children = Vec::new();
    let mut read = |thread: &str| -> io::Result<()> {
        let list = or_none(fs::read_to_string(format!("{tasks}/{thread}/children")))?;
        let list = list.unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(number));
        Ok(())
    };
    if threads == Some(1) {
        read(&parent.to_string())?;
        return Ok(children);
    }
    let Some(threads) = or_none(fs::read_dir(&tasks))? else {
        return Ok(children);
    };
    for thread in threads {
        if let Some(thread) = or_none(thread)? {
            read(&thread.file_name().to_string_lossy())?;
        }
    }
    Ok(children)
}

/// For kernels without that list: all processes whose parent is known to be one of them.
fn searched_descendants() -> io::Result<Vec<Process>> {
    let mut by_parent: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in all_processes()? {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = by_parent.remove(&getpid()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let children = by_parent.remove(&process.pid).unwrap_or_default();
        found.extend(children);
        next += 1;
    }
    Ok(found)
}

fn all_processes() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(number)
            && let Some(process) = read_process(pid)?
        {
            all.push(process);
        }
    }
    Ok(all)
}

/// `None`: the process has ended.
fn read_process(pid: Pid) -> io::Result<Option<Process>> {
    let stat = or_none(fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())))?;
    Ok(stat.and_then(|stat| parse(pid, &String::from_utf8_lossy(&stat))))
}

fn parse(pid: Pid, stat: &str) -> Option<Process> {
    // The name is in parentheses and may contain anything; the other fields follow, from the
    // third on.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3);
    Some(Process {
        pid,
        // 0 for those of the kernel.
        parent: number(field(4)?)?,
        threads: field(20)?.parse().ok()?,
        began: field(22)?.parse().ok()?,
        pages: field(24)?.parse().unwrap_or(0),
    })
}

fn or_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a process ended while it was read.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::SRCH)
    )
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use rustix::process::{Pid, Signal};

    use super::{Process, descendants, parse, read_process, searched_descendants};

    #[test]
    fn a_name_cannot_pretend_to_be_fields() {
        let stat = "7 (a) R 1 (b)) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 1234 99 42 0";
        let process = parse(Pid::INIT, stat).expect("it has all fields");
        assert_eq!(process.parent.as_raw_nonzero().get(), 3);
        assert_eq!(
            (process.threads, process.began, process.pages),
            (9, 1234, 42)
        );
    }

    #[test]
    fn both_ways_find_children_and_theirs() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & wait"])
            .stdout(Stdio::null())
            .spawn()
            .expect("sh");
        let shell_pid = Pid::from_child(&shell);
        let below = |found: Vec<Process>| {
            let child = found.iter().find(|process| process.parent == shell_pid);
            let is_listed = found.iter().any(|process| process.pid == shell_pid);
            child.filter(|_| is_listed).copied()
        };
        let until = Instant::now() + Duration::from_secs(20);
        let child = loop {
            if let Some(child) = below(descendants().expect("a list")) {
                break child;
            }
            assert!(Instant::now() < until, "still waiting for the child");
        };
        let searched = below(searched_descendants().expect("a list"));
        assert_eq!(searched.map(|p| p.identity()), Some(child.identity()));

        let other = Process {
            began: child.began + 1,
            ..child
        };
        other.send(Signal::KILL).expect("nobody is not an error");
        assert!(child.is_there(), "another one's signal came here");
        child.send(Signal::KILL).expect("it is ours");
        ended(&mut shell);
        assert!(
            read_process(child.pid)
                .expect("/proc")
                .is_none_or(|p| p.began != child.began)
        );
        child.send(Signal::KILL).expect("to have ended is no error");
    }

    fn ended(child: &mut Child) {
        child.wait().expect("it ends with its child");
    }
}
