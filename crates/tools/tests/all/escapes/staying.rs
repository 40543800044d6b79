//! No process stays when its command has ended. A plain shell leaves each of them behind.

use super::tricks::{Goal, Left, Trick, Who, are_stopped};
use crate::workbench::{is_alive, kill, processes};

/// A trick writes the numbers of its processes into the file `pids`.
struct Stays;

impl Goal for Stays {
    fn prepare(&mut self, _: &str, command: &str, _: Who) -> String {
        format!("{command}\nfor _ in {{1..500}}; do [ -s pids ] && break; sleep 0.01; done")
    }

    fn got_out(&mut self, left: &Left) -> bool {
        let begun = processes(&left.folder.join("pids"));
        let name = &left.name;
        assert!(!begun.is_empty(), "{name} began nothing: {}", left.said);
        let alive: Vec<u32> = begun.into_iter().filter(|it| is_alive(*it)).collect();
        alive.iter().for_each(|process| kill(*process));
        !alive.is_empty()
    }
}

#[test]
fn no_process_stays() {
    are_stopped("staying", TRICKS, || Stays);
}

#[rustfmt::skip]
const TRICKS: &[Trick] = &[
    ("background", "", "sleep 1000 & echo $! > pids"),
    ("session", "setsid", "setsid sleep 1000 & echo $! > pids"),
    ("no_hangup", "nohup", "nohup sleep 1000 & echo $! > pids"),
    ("disowned", "", "sleep 1000 & disown; echo $! > pids"),
    ("own_group", "", "set -m; sleep 1000 & echo $! > pids"),
    ("orphan", "", "(sleep 1000 & echo $! > pids)"),
    ("orphan_of_orphans", "", "((((sleep 1000 & echo $! > pids) &) &) &)"),
    ("daemon", "perl", "perl -MPOSIX -e 'fork and exit; setsid; fork and exit; open F, q(>pids); print F $$; close $_ for *F, *STDIN, *STDOUT, *STDERR; sleep 1000'"),
    ("renamed", "perl", "perl -e '$0 = q([kworker/0:0]); open F, q(>pids); print F $$; close F; sleep 1000' &"),
    ("other_name", "", "bash -c 'echo $$ > pids; exec -a init sleep 1000' &"),
    ("deaf", "", "bash -c 'trap \"\" TERM HUP INT QUIT; echo $$ > pids; while :; do sleep 1; done' &"),
    ("stopped", "", "trap '' HUP; sleep 1000 & kill -STOP $!; echo $! > pids"),
    ("stops_itself", "", "trap '' HUP; bash -c 'echo $$ > pids; kill -STOP $$; sleep 1000' &"),
    ("coprocess", "", "coproc sleep 1000; echo $! > pids"),
    ("substitution", "", "exec 9> >(echo $BASHPID > pids; sleep 1000)"),
    ("waits_for_a_pipe", "mkfifo", "mkfifo p; cat p & echo $! > pids"),
    ("copied_program", "", "cp $(command -v sleep) s; ./s 1000 & echo $! > pids"),
    ("removed_program", "", "cp $(command -v sleep) s; ./s 1000 & echo $! > pids; until grep -q ^./s /proc/$!/cmdline; do :; done; rm s"),
    ("nicest", "nice", "nice -n 19 sleep 1000 & echo $! > pids"),
    ("idle", "chrt", "chrt -i 0 sleep 1000 & echo $! > pids"),
    ("timeout", "timeout", "timeout 1000 sleep 1000 & echo $! > pids"),
    ("elsewhere", "setsid", "(there=$PWD; cd /; setsid sleep 1000 & echo $! > $there/pids)"),
    ("no_files", "setsid", "setsid sleep 1000 <&- >&- 2>&- & echo $! > pids"),
    ("no_environment", "env", "env -i $(command -v sleep) 1000 & echo $! > pids"),
    ("no_signal_at_the_end", "setpriv", "setpriv --pdeathsig clear sleep 1000 & echo $! > pids"),
    ("many", "setsid", "for i in {1..30}; do setsid sleep 1000 & echo $! >> pids; done"),
    ("chain", "", "f() { [ $1 = 0 ] && { echo $BASHPID > pids; sleep 1000; } || f $(($1 - 1)) & }; f 20"),
    ("takes_in_orphans", "python3", "python3 -c 'import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1)
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    open(\"pids\", \"a\").write(f\"{os.getpid()}\\n\")
time.sleep(1000)' > /dev/null & echo $! >> pids"),
    ("ignores_its_children", "perl", "perl -e '$SIG{CHLD} = q(IGNORE); fork or exec qw(sleep 1000); open F, q(>pids); print F $$; close F; sleep 1000' &"),
    ("other_user", "root setpriv", "setpriv --reuid 65534 sleep 1000 & echo $! > pids"),
    ("node", "node", "node -e 'const c = require(\"child_process\").spawn(\"sleep\", [\"1000\"], {detached: true, stdio: \"ignore\"}); fs.writeFileSync(\"pids\", String(c.pid)); c.unref()'"),
];
