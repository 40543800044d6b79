//! No process outside is ended or stopped. For each trick there is one to be the victim.

use std::{collections::HashMap, fs, os::unix::process::CommandExt, process::Child};

use super::tricks::{Goal, Left, Trick, Who, are_stopped};
use crate::workbench::is_alive;

#[derive(Default)]
struct Ends(HashMap<String, Child>);

impl Goal for Ends {
    fn prepare(&mut self, name: &str, command: &str, who: Who) -> String {
        let victim = who.command("sleep").arg("1000").process_group(0).spawn();
        let victim = victim.expect("a process");
        let command = command.replace("{victim}", &victim.id().to_string());
        self.0.insert(name.to_owned(), victim);
        command
    }

    fn got_out(&mut self, left: &Left) -> bool {
        let mut victim = self.0.remove(&left.name).expect("it was prepared");
        let hit = !is_alive(victim.id()) || is_stopped(victim.id());
        victim.kill().ok();
        victim.wait().expect("it ended");
        hit
    }
}

fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with(['T', 't'])
}

#[test]
fn no_process_outside_is_hit() {
    are_stopped("signalling", TRICKS, Ends::default);
}

#[rustfmt::skip]
const TRICKS: &[Trick] = &[
    ("kill", "", "kill -9 {victim}"),
    ("terminate", "", "kill {victim}"),
    ("stop", "", "kill -STOP {victim}"),
    ("group", "", "kill -9 -- -{victim}"),
    ("program", "env kill", "env kill -9 {victim}"),
    ("pkill", "pkill", "echo {victim} > f; pkill -9 -F f"),
    ("perl", "perl", "perl -e 'kill 9, {victim}'"),
    ("perl_group", "perl", "perl -e 'kill -9, {victim}'"),
    ("python", "python3", "python3 -c 'import os; os.kill({victim}, 9)'"),
    ("handle", "python3", "python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({victim}), 9)'"),
    ("thread", "python3", "python3 -c 'import ctypes; ctypes.CDLL(None).tgkill({victim}, {victim}, 9)'"),
    ("queued", "python3", "python3 -c 'import ctypes; ctypes.CDLL(None).sigqueue({victim}, 9, None)'"),
    // The kernel tells the owner of a pipe that something has come, and the victim is made owner.
    ("owner_of_a_pipe", "perl", "perl -e 'pipe R, W; fcntl R, 8, {victim}; fcntl R, 4, 0x2800; syswrite W, q(x); select undef, undef, undef, 0.2'"),
    ("node", "node", "node -e 'process.kill({victim}, 9)'"),
    ("debugger", "gdb maybe", "gdb -p {victim} -batch -ex kill"),
    ("other_user", "root setpriv", "setpriv --reuid 0 kill -9 {victim}"),
];
