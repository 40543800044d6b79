//! Which process an OpenCode is. Its children work in it, so they end with it.

use rustix::process::{Pid, test_kill_process};

/// A process under a name that no other gets, also after its end.
pub fn identity(pid: u32) -> String {
    match started(pid) {
        Some(start) => format!("{pid}@{start}"),
        None => pid.to_string(),
    }
}

/// Whether the process of this name is there.
pub fn is_alive(identity: &str) -> bool {
    let (pid, start) = match identity.split_once('@') {
        Some((pid, start)) => (pid, Some(start)),
        None => (identity, None),
    };
    let Ok(pid) = pid.parse::<u32>() else {
        return false;
    };
    if let Some(start) = start {
        // A zombie could still be signalled.
        return started(pid).as_deref() == Some(start);
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process that may not be signalled exists all the same.
    let there = |pid| match test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    pid.is_some_and(there)
}

/// When a process was started, where the system says so; nothing for a zombie.
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold anything; what follows it does not.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, id};

    #[test]
    fn a_process_is_alive_until_it_is_not() {
        let own = identity(id());
        assert!(is_alive(&own), "{own}");
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let name = identity(child.id());
        assert!(is_alive(&name));
        child.kill().expect("killed");
        // On Linux also before its parent has waited for it.
        if cfg!(not(target_os = "linux")) {
            child.wait().expect("ended");
        }
        while is_alive(&name) {
            std::thread::yield_now();
        }
        child.wait().expect("ended");
        assert!(!is_alive(&name));
        assert!(!is_alive("nonsense"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_of_the_same_number_is_another() {
        assert!(!is_alive(&format!("{}@1", id())));
    }
}
