//! System calls that a command may not make, made by number, so that no library comes between.
//! What they are given would do no harm where they are not refused: there they fail otherwise.

use std::{collections::HashMap, fmt::Write};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET,
    CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, CLONE_THREAD, EACCES, ENOSYS, EPERM,
    EXDEV, c_int, c_long,
};

use super::tricks::{Who, is_there, said};
use crate::workbench::can_sandbox;

/// A call: its name, its number, what it is given, and how it must fail in the sandbox. It is given
/// numbers, `"text`, `&` for room of 4096 zero bytes, and `%` with bytes in hexadecimal digits. It
/// can name `{outside}`, a folder that may not be written, and `{pid}`, a process outside.
type Call<'c> = (&'c str, c_long, &'c str, c_int);

/// One process for each call: some would end it, or change who it is.
const TRY: &str = r#"perl - <<'END'
use POSIX ();
while (<DATA>) {
    chomp;
    my ($name, $number, @given) = split / /;
    if (!fork) {
        alarm 5;
        my @given = map {
            /^"(.*)/ ? "$1\0" : /^%(.*)/ ? pack("H*", $1) : /^&/ ? "\0" x 4096 : $_ + 0
        } @given;
        my $came = syscall($number + 0, @given);
        syswrite STDOUT, "$name " . ($came == -1 ? $! + 0 : 0) . "\n";
        POSIX::_exit(0);
    }
    wait;
}
__DATA__
"#;

/// The errors of calls, by their names; 0 is none.
fn errors(calls: &[Call], who: Who, sandboxed: bool) -> HashMap<String, c_int> {
    let mut command = TRY.to_owned();
    for (name, number, given, _) in calls {
        let given = given.replace("{pid}", &std::process::id().to_string());
        writeln!(command, "{name} {number} {given}").expect("room");
    }
    command.push_str("END\n");
    let said = said(("calls", "perl", &command), who, sandboxed);
    let error = |line: &str| {
        let (name, error) = line.rsplit_once(' ')?;
        Some((name.to_owned(), error.parse().ok()?))
    };
    let errors: HashMap<_, _> = said.lines().filter_map(error).collect();
    assert_eq!(errors.len(), calls.len(), "{said}");
    errors
}

/// All of these fail as they must, and outside of the sandbox not like that.
fn are_refused(table: &str, calls: &[Call]) {
    if !can_sandbox() {
        return;
    }
    if !is_there("perl") {
        println!("skipped: {table} (no perl)");
        return;
    }
    for who in Who::all() {
        let (free, sandboxed) = (errors(calls, who, false), errors(calls, who, true));
        let mut wrong = Vec::new();
        let mut refused = 0;
        let mut skipped = Vec::new();
        for (name, _, given, wanted) in calls {
            match (free[*name], sandboxed[*name]) {
                (_, is) if is != *wanted => wrong.push(format!(
                    "{name} {given}: error {is}, not {wanted}; {} without the sandbox",
                    free[*name]
                )),
                (free, _) if free == *wanted => skipped.push(*name),
                (_, _) => refused += 1,
            }
        }
        println!(
            "{table}, as {who:?}: {} calls, {refused} refused",
            calls.len()
        );
        println!("  skipped, refused without the sandbox too: {skipped:?}");
        assert!(wrong.is_empty(), "as {who:?}:\n{}", wrong.join("\n"));
        assert!(refused > 0, "nothing was tried");
    }
}

#[test]
fn calls_that_would_undo_the_sandbox_are_refused() {
    are_refused("system calls", CALLS);
}

/// On 64-bit processors of one kind each call has a second number.
#[cfg(target_arch = "x86_64")]
#[test]
fn their_second_numbers_are_refused_too() {
    let filtered = CALLS.iter().filter(|(.., error)| *error == EPERM);
    let by_filter = filtered.filter(|(name, ..)| !name.ends_with("_of_another"));
    let calls: Vec<Call> = by_filter
        .map(|(name, number, given, error)| (*name, *number | 0x4000_0000, *given, *error))
        .collect();
    are_refused("system calls by their second numbers", &calls);
}

#[test]
fn calls_about_files_outside_are_refused() {
    are_refused("system calls about files", FILES);
}

/// Every family of addresses and every kind of socket, those that nobody knows too.
#[test]
fn no_socket_is_made() {
    let known = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK];
    let mut given = Vec::new();
    for family in 0..=46 {
        for kind in [1, 2, 3, 5, 1 | 0x800, 2 | 0x8_0000] {
            let name = if known.contains(&family) {
                format!("known_{family}_{kind}")
            } else {
                format!("other_{family}_{kind}")
            };
            given.push((name, format!("{family} {kind} 0")));
        }
    }
    let calls: Vec<Call> = given
        .iter()
        .map(|(name, given)| (name.as_str(), libc::SYS_socket, given.as_str(), EPERM))
        .collect();
    are_refused("sockets", &calls);
}

/// Pairs of streams are pipes; all others are refused.
#[test]
fn only_pairs_of_streams_are_made() {
    let refused: &[Call] = &[
        ("datagrams", libc::SYS_socketpair, "1 2 0 &", EPERM),
        ("raw", libc::SYS_socketpair, "1 3 0 &", EPERM),
        (
            "datagrams_closed_on_exec",
            libc::SYS_socketpair,
            "1 524290 0 &",
            EPERM,
        ),
        (
            "datagrams_that_do_not_wait",
            libc::SYS_socketpair,
            "1 2050 0 &",
            EPERM,
        ),
        (
            "datagrams_with_high_bits",
            libc::SYS_socketpair,
            "4294967297 4294967298 0 &",
            EPERM,
        ),
        ("internet", libc::SYS_socketpair, "2 1 0 &", EPERM),
        ("cluster", libc::SYS_socketpair, "30 1 0 &", EPERM),
    ];
    are_refused("pairs of sockets", refused);
}

/// What programs need is not refused with the rest. These show too that the calls are made.
#[test]
fn what_programs_need_goes_on() {
    if !can_sandbox() || !is_there("perl") {
        println!("skipped: no sandbox or no perl");
        return;
    }
    for who in Who::all() {
        let errors = errors(NEEDED, who, true);
        for (name, _, given, wanted) in NEEDED {
            assert_eq!(errors[*name], *wanted, "{name} {given}, as {who:?}");
        }
    }
}

const NEEDED: &[Call] = &[
    ("own_number", libc::SYS_getpid, "", 0),
    ("pair_of_streams", libc::SYS_socketpair, "1 1 0 &", 0),
    ("own_priority", libc::SYS_setpriority, "0 0 5", 0),
    ("own_schedule", libc::SYS_sched_setscheduler, "0 3 &", 0),
    ("own_disk_priority", libc::SYS_ioprio_set, "1 0 16388", 0),
    ("own_limits", libc::SYS_prlimit64, "0 4 0 &", 0),
    ("own_files", libc::SYS_unshare, "1024", 0),
    ("own_signal", libc::SYS_kill, "0 0", 0),
    (
        "read_outside",
        libc::SYS_openat,
        "-100 \"{outside}/precious 0",
        0,
    ),
    (
        "list_outside",
        libc::SYS_openat,
        "-100 \"{outside} 65536",
        0,
    ),
    ("memory_file", libc::SYS_memfd_create, "\"x 0", 0),
    // A thread without what threads share: the call is made, and wrong.
    ("clone", libc::SYS_clone, "65536 0 0 0 0", libc::EINVAL),
];

#[rustfmt::skip]
const CALLS: &[Call] = &[
    // Would make calls past the filter.
    ("io_uring_setup", libc::SYS_io_uring_setup, "0 0", EPERM),
    ("io_uring_enter", libc::SYS_io_uring_enter, "-1 0 0 0 0 0", EPERM),
    ("io_uring_register", libc::SYS_io_uring_register, "-1 0 0 0", EPERM),
    // Keys, programs in the kernel, files past their folders, files of other processes.
    ("add_key", libc::SYS_add_key, "0 0 0 0 0", EPERM),
    ("request_key", libc::SYS_request_key, "0 0 0 0", EPERM),
    ("keyctl", libc::SYS_keyctl, "99999 0 0 0 0", EPERM),
    ("bpf", libc::SYS_bpf, "99999 0 0", EPERM),
    ("perf_event_open", libc::SYS_perf_event_open, "0 0 0 -1 0", EPERM),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1 0 0", EPERM),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, "-1 0 0", EPERM),
    ("opened_files_of_another", libc::SYS_fanotify_init, "4 0", EPERM),
    // Memory, queues and semaphores of all programs.
    ("shmget", libc::SYS_shmget, "0 0 0", EPERM),
    ("shmat", libc::SYS_shmat, "-1 0 0", EPERM),
    ("shmctl", libc::SYS_shmctl, "-1 0 0", EPERM),
    ("msgget", libc::SYS_msgget, "77777 0", EPERM),
    ("msgsnd", libc::SYS_msgsnd, "-1 & 1 0", EPERM),
    ("msgrcv", libc::SYS_msgrcv, "-1 & 1 0 2048", EPERM),
    ("msgctl", libc::SYS_msgctl, "-1 2 &", EPERM),
    ("semget", libc::SYS_semget, "77777 0 0", EPERM),
    ("semop", libc::SYS_semop, "-1 & 1", EPERM),
    ("semtimedop", libc::SYS_semtimedop, "-1 & 1 0", EPERM),
    ("semctl", libc::SYS_semctl, "-1 0 0 0", EPERM),
    ("mq_open", libc::SYS_mq_open, "\"asyncagents-escapes 66 384 0", EPERM),
    ("mq_unlink", libc::SYS_mq_unlink, "\"asyncagents-escapes", EPERM),
    // What is mounted where.
    ("mount", libc::SYS_mount, "\"none \"/nonexistent/x \"tmpfs 0 0", EPERM),
    ("mount_bound", libc::SYS_mount, "\"/ \"/nonexistent/x 0 4096 0", EPERM),
    ("umount2", libc::SYS_umount2, "\"/nonexistent/x 0", EPERM),
    ("pivot_root", libc::SYS_pivot_root, "\"/nonexistent/x \"/nonexistent/y", EPERM),
    ("move_mount", libc::SYS_move_mount, "-1 \"x -1 \"y 0", EPERM),
    ("open_tree", libc::SYS_open_tree, "-1 \"x 0", EPERM),
    ("open_tree_attr", 467, "-1 \"x 0 0 0", EPERM),
    ("fsopen", libc::SYS_fsopen, "0 0", EPERM),
    ("fsconfig", libc::SYS_fsconfig, "-1 0 0 0 0", EPERM),
    ("fsmount", libc::SYS_fsmount, "-1 0 0", EPERM),
    ("fspick", libc::SYS_fspick, "-1 \"x 0", EPERM),
    ("mount_setattr", libc::SYS_mount_setattr, "-1 \"x 0 0 0", EPERM),
    // Namespaces. A thread that shares nothing is always wrong, and so is a new time with more.
    ("setns", libc::SYS_setns, "-1 0", EPERM),
    ("unshare_mounts", libc::SYS_unshare, "131072", EPERM),
    ("unshare_users", libc::SYS_unshare, "268435456", EPERM),
    ("unshare_network", libc::SYS_unshare, "1073741824", EPERM),
    ("unshare_high_bits", libc::SYS_unshare, "4563402752", EPERM),
    ("clone_mounts", libc::SYS_clone, flags::MOUNTS, EPERM),
    ("clone_control_groups", libc::SYS_clone, flags::CONTROL_GROUPS, EPERM),
    ("clone_host_name", libc::SYS_clone, flags::HOST_NAME, EPERM),
    ("clone_messages", libc::SYS_clone, flags::MESSAGES, EPERM),
    ("clone_users", libc::SYS_clone, flags::USERS, EPERM),
    ("clone_processes", libc::SYS_clone, flags::PROCESSES, EPERM),
    ("clone_network", libc::SYS_clone, flags::NETWORK, EPERM),
    ("clone3", libc::SYS_clone3, "0 0", ENOSYS),
    // The machine.
    ("init_module", libc::SYS_init_module, "0 0 0", EPERM),
    ("finit_module", libc::SYS_finit_module, "-1 0 0", EPERM),
    ("delete_module", libc::SYS_delete_module, "\"asyncagents_escapes 2048", EPERM),
    ("kexec_load", libc::SYS_kexec_load, "0 99 0 0", EPERM),
    ("reboot", libc::SYS_reboot, "0 0 0 0", EPERM),
    ("swapon", libc::SYS_swapon, "\"/nonexistent/x 0", EPERM),
    ("swapoff", libc::SYS_swapoff, "\"/nonexistent/x", EPERM),
    ("settimeofday", libc::SYS_settimeofday, "%ffffffffffffffffffffffffffffffff 0", EPERM),
    ("clock_settime", libc::SYS_clock_settime, "99999 &", EPERM),
    ("acct", libc::SYS_acct, "\"/nonexistent/x", EPERM),
    ("quotactl", libc::SYS_quotactl, "0 0 0 0", EPERM),
    ("sethostname", libc::SYS_sethostname, "0 -1", EPERM),
    ("setdomainname", libc::SYS_setdomainname, "0 -1", EPERM),
    ("syslog", libc::SYS_syslog, "99999 0 0", EPERM),
    // Typing into a terminal. The kernel looks at half of the number.
    ("type_ahead", libc::SYS_ioctl, "0 21522 &", EPERM),
    ("type_ahead_with_high_bits", libc::SYS_ioctl, "0 4294988818 &", EPERM),
    ("paste", libc::SYS_ioctl, "0 21532 &", EPERM),
    // Other processes.
    ("limits_of_another", libc::SYS_prlimit64, "{pid} 4 0 &", EPERM),
    ("priority_of_another", libc::SYS_setpriority, "0 {pid} 0", EPERM),
    ("priority_of_a_group", libc::SYS_setpriority, "1 99999999 0", EPERM),
    ("priority_of_a_user", libc::SYS_setpriority, "2 99999999 0", EPERM),
    ("schedule_of_another", libc::SYS_sched_setscheduler, "{pid} 0 &", EPERM),
    ("parameters_of_another", libc::SYS_sched_setparam, "{pid} &", EPERM),
    ("attributes_of_another", libc::SYS_sched_setattr, "{pid} 0 0", EPERM),
    ("processors_of_another", libc::SYS_sched_setaffinity, "{pid} 8 0", EPERM),
    ("disk_priority_of_another", libc::SYS_ioprio_set, "1 {pid} 16388", EPERM),
    ("disk_priority_of_a_user", libc::SYS_ioprio_set, "3 99999999 16388", EPERM),
    ("signal_of_another", libc::SYS_kill, "{pid} 23", EPERM),
    ("existence_of_another", libc::SYS_kill, "{pid} 0", EPERM),
    ("thread_signal_of_another", libc::SYS_tgkill, "{pid} {pid} 23", EPERM),
    ("any_thread_signal_of_another", libc::SYS_tkill, "{pid} 23", EPERM),
    ("trace_of_another", libc::SYS_ptrace, "16902 {pid} 0 0", EPERM),
    ("comparison_of_another", libc::SYS_kcmp, "{pid} {pid} 2 0 0", EPERM),
    ("memory_of_another", libc::SYS_process_vm_readv, "{pid} %00000000000000000800000000000000 1 %01000000000000000800000000000000 1 0", EPERM),
    ("written_memory_of_another", libc::SYS_process_vm_writev, "{pid} %00000000000000000800000000000000 1 %01000000000000000800000000000000 1 0", EPERM),
    ("pages_of_another", libc::SYS_move_pages, "{pid} 0 0 0 0 2", EPERM),
    ("locks_of_another", libc::SYS_get_robust_list, "{pid} & &", EPERM),
];

/// What `clone` is given: a namespace, and a thread that shares nothing.
mod flags {
    pub(super) const MOUNTS: &str = "196608 0 0 0 0";
    pub(super) const CONTROL_GROUPS: &str = "33619968 0 0 0 0";
    pub(super) const HOST_NAME: &str = "67174400 0 0 0 0";
    pub(super) const MESSAGES: &str = "134283264 0 0 0 0";
    pub(super) const USERS: &str = "268500992 0 0 0 0";
    pub(super) const PROCESSES: &str = "536936448 0 0 0 0";
    pub(super) const NETWORK: &str = "1073807360 0 0 0 0";
}

#[test]
fn the_flags_are_those_of_the_kernel() {
    let flags = [
        (flags::MOUNTS, CLONE_NEWNS),
        (flags::CONTROL_GROUPS, CLONE_NEWCGROUP),
        (flags::HOST_NAME, CLONE_NEWUTS),
        (flags::MESSAGES, CLONE_NEWIPC),
        (flags::USERS, CLONE_NEWUSER),
        (flags::PROCESSES, CLONE_NEWPID),
        (flags::NETWORK, CLONE_NEWNET),
    ];
    for (given, flag) in flags {
        assert_eq!(given, format!("{} 0 0 0 0", flag | CLONE_THREAD));
    }
}

#[rustfmt::skip]
const FILES: &[Call] = &[
    ("create", libc::SYS_openat, "-100 \"{outside}/new1 65 384", EACCES),
    ("write", libc::SYS_openat, "-100 \"{outside}/precious 1", EACCES),
    ("append", libc::SYS_openat, "-100 \"{outside}/precious 1025", EACCES),
    ("read_and_empty", libc::SYS_openat, "-100 \"{outside}/precious 512", EACCES),
    ("unnamed", libc::SYS_openat, "-100 \"{outside} 4259841 384", EACCES),
    ("openat2", libc::SYS_openat2, "-100 \"{outside}/precious %010000000000000000000000000000000000000000000000 24", EACCES),
    ("truncate", libc::SYS_truncate, "\"{outside}/precious 3", EACCES),
    ("folder", libc::SYS_mkdirat, "-100 \"{outside}/new2 448", EACCES),
    ("pipe", libc::SYS_mknodat, "-100 \"{outside}/new3 4480 0", EACCES),
    ("socket", libc::SYS_mknodat, "-100 \"{outside}/new4 49536 0", EACCES),
    ("file", libc::SYS_mknodat, "-100 \"{outside}/new5 33152 0", EACCES),
    ("soft_link", libc::SYS_symlinkat, "\"x -100 \"{outside}/new6", EACCES),
    ("hard_link_beside", libc::SYS_linkat, "-100 \"{outside}/precious -100 \"{outside}/new7 0", EACCES),
    ("hard_link_deeper", libc::SYS_linkat, "-100 \"{outside}/precious -100 \"{outside}/folder/new 0", EACCES),
    ("hard_link_in", libc::SYS_linkat, "-100 \"{outside}/precious -100 \"new8 0", EXDEV),
    ("hard_link_out", libc::SYS_linkat, "-100 \"trick -100 \"{outside}/new9 0", EACCES),
    ("rename_out", libc::SYS_renameat2, "-100 \"trick -100 \"{outside}/new10 0", EACCES),
    ("rename_beside", libc::SYS_renameat2, "-100 \"{outside}/folder/inner -100 \"{outside}/folder/other 0", EACCES),
    ("remove_a_folder", libc::SYS_unlinkat, "-100 \"{outside}/empty 512", EACCES),
    ("exchange", libc::SYS_renameat2, "-100 \"{outside}/folder -100 \"{outside}/precious 2", EACCES),
    ("remove", libc::SYS_unlinkat, "-100 \"{outside}/precious 0", EACCES),
    ("read_a_secret", libc::SYS_openat, "-100 \"{vault}/id 0", EACCES),
    ("write_a_device", libc::SYS_openat, "-100 \"/dev/kmsg 1", EACCES),
    ("write_its_settings", libc::SYS_openat, "-100 \"/proc/sys/kernel/printk 1", EACCES),
];
