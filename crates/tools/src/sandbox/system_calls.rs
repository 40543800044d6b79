//! seccomp: which system calls a command may not make. Landlock knows files, TCP and signals;
//! here are the other ways out.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, EPERM, IPPROTO_TCP, MSG_FASTOPEN, NETLINK_ROUTE,
    SOCK_DGRAM, SOCK_RAW, SOCK_STREAM, SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_settime,
    SYS_clone, SYS_clone3, SYS_delete_module, SYS_finit_module, SYS_fsconfig, SYS_fsmount,
    SYS_fsopen, SYS_fspick, SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_io_uring_setup, SYS_ioctl, SYS_ioprio_set, SYS_kexec_load, SYS_keyctl, SYS_listen,
    SYS_mount, SYS_mount_setattr, SYS_move_mount, SYS_mq_open, SYS_mq_unlink, SYS_msgctl,
    SYS_msgget, SYS_msgrcv, SYS_msgsnd, SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open,
    SYS_pidfd_getfd, SYS_pivot_root, SYS_prlimit64, SYS_quotactl, SYS_reboot, SYS_request_key,
    SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_semctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_sendmmsg, SYS_sendmsg, SYS_sendto,
    SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_setpriority, SYS_settimeofday, SYS_shmat,
    SYS_shmctl, SYS_shmget, SYS_socket, SYS_socketpair, SYS_swapoff, SYS_swapon, SYS_syslog,
    SYS_umount2, SYS_unshare,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{order::Network, unrestricted::Unrestricted};

/// Refused whatever the arguments.
const REFUSED: [libc::c_long; 50] = [
    // Would make other calls past this filter.
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // Keys of the session, programs in the kernel, files past their folders.
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_open_by_handle_at,
    SYS_pidfd_getfd,
    // Memory, queues and semaphores (System V) of all programs of this user, by number and not by
    // name in a folder. What a command leaves there outlives it.
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    // Queues with names (POSIX), which are in no folder that Landlock knows.
    SYS_mq_open,
    SYS_mq_unlink,
    // What is mounted where.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_setns,
    // The machine.
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_acct,
    SYS_quotactl,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    // Those that libc does not name everywhere: `open_tree_attr`, `kexec_file_load`.
    467,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(not(target_arch = "x86_64"))]
    294,
];

/// Each asks for a namespace: mounts, control groups, host name, messages, users, processes,
/// network.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that type into a terminal (TIOCSTI) or paste there (TIOCLINUX).
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Each takes the process it concerns as its first argument; 0 is the caller.
const SCHEDULING: [libc::c_long; 4] = [
    SYS_sched_setaffinity,
    SYS_sched_setattr,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
];

/// How calls of `setpriority` and `ioprio_set` mean one process, not a group or a user.
const PRIO_PROCESS: u64 = 0;
const IOPRIO_PROCESS: u64 = 1;

/// The kind of a socket, without what else can be asked for with it.
const KIND_MASK: u64 = 0xf;

/// 64-bit processors of this kind take each call under a second number as well.
const SECOND_NUMBER: libc::c_long = 0x4000_0000;

/// Filters the calls of this process and of all that come of it.
pub(super) fn enforce(network: Network) -> Result<(), Unrestricted> {
    let refuse = filter(refused(network)?, EPERM)?;
    // The flags of `clone3` cannot be seen from here. Programs for which it does not exist use
    // `clone`.
    let hide = filter(vec![(SYS_clone3, Vec::new())], libc::ENOSYS)?;
    for program in [hide, refuse] {
        seccompiler::apply_filter(&program).map_err(seccomp)?;
    }
    Ok(())
}

type Rules = Vec<(libc::c_long, Vec<SeccompRule>)>;

fn refused(network: Network) -> Result<Rules, Unrestricted> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = || {
        let asks = |flag: &libc::c_int| {
            let flag = word(*flag);
            rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
        };
        NAMESPACES.iter().map(asks).collect::<Result<Vec<_>, _>>()
    };
    rules.push((SYS_clone, namespaces()?));
    rules.push((SYS_unshare, namespaces()?));
    let typed = |request: &u64| rule(&[(1, SeccompCmpOp::Eq, *request)]);
    let typed = TERMINAL_INPUT.iter().map(typed).collect::<Result<_, _>>()?;
    rules.push((SYS_ioctl, typed));
    // Own limits only: without file descriptors the supervisor would not see what it has to end.
    let others = rule(&[(0, SeccompCmpOp::Ne, 0)])?;
    rules.push((SYS_prlimit64, vec![others.clone()]));
    // Own priority and processors only: a supervisor that gets no time cannot end anything.
    for call in SCHEDULING {
        rules.push((call, vec![others.clone()]));
    }
    for (call, process) in [
        (SYS_setpriority, PRIO_PROCESS),
        (SYS_ioprio_set, IOPRIO_PROCESS),
    ] {
        let group_or_user = rule(&[(0, SeccompCmpOp::Ne, process)])?;
        let other = rule(&[(1, SeccompCmpOp::Ne, 0)])?;
        rules.push((call, vec![group_or_user, other]));
    }
    rules.push((SYS_socket, refused_sockets(network)?));
    if let Network::Port { listen, .. } = network {
        rules.extend(connecting_by_sending()?);
        if listen.is_none() {
            // Landlock sees `bind`, but not listening on a port that the kernel chooses.
            rules.push((SYS_listen, Vec::new()));
        }
    }
    rules.push((SYS_socketpair, refused_pairs()?));
    Ok(rules)
}

/// Sockets of this machine are refused with the network too: behind one there may be an agent
/// with keys, or a program that starts others outside. No rule: all are.
fn refused_sockets(network: Network) -> Result<Vec<SeccompRule>, Unrestricted> {
    let only_tcp = match network {
        Network::Nothing => return Ok(Vec::new()),
        Network::Port { .. } => refused_but_tcp()?,
        Network::All => Vec::new(),
    };
    let others = [AF_INET, AF_INET6, AF_NETLINK].map(|family| (0, SeccompCmpOp::Ne, word(family)));
    // Name lookups ask which addresses this machine has.
    let other_than_routes = [
        (0, SeccompCmpOp::Eq, word(AF_NETLINK)),
        (2, SeccompCmpOp::Ne, word(NETLINK_ROUTE)),
    ];
    Ok([only_tcp, vec![rule(&others)?, rule(&other_than_routes)?]].concat())
}

/// All that is not plain TCP, which is all that Landlock restricts: a connection by several paths at
/// once (MPTCP) is a stream too.
fn refused_but_tcp() -> Result<Vec<SeccompRule>, Unrestricted> {
    let internet = (0, SeccompCmpOp::Ne, word(AF_NETLINK));
    let kinds = (0..=KIND_MASK).filter(|kind| *kind != word(SOCK_STREAM));
    let kinds = kinds.map(|kind| {
        rule(&[
            internet.clone(),
            (1, SeccompCmpOp::MaskedEq(KIND_MASK), kind),
        ])
    });
    let mut rules = kinds.collect::<Result<Vec<_>, _>>()?;
    rules.push(rule(&[
        internet,
        (2, SeccompCmpOp::Ne, 0),
        (2, SeccompCmpOp::Ne, word(IPPROTO_TCP)),
    ])?);
    Ok(rules)
}

/// Landlock sees `connect`, but not a connection that is made by sending (TCP Fast Open).
fn connecting_by_sending() -> Result<Rules, Unrestricted> {
    let by_sending = |flags: u8| {
        let fast_open = word(MSG_FASTOPEN);
        rule(&[(flags, SeccompCmpOp::MaskedEq(fast_open), fast_open)])
    };
    Ok(vec![
        (SYS_sendto, vec![by_sending(3)?]),
        (SYS_sendmsg, vec![by_sending(2)?]),
        (SYS_sendmmsg, vec![by_sending(3)?]),
    ])
}

/// Pairs of streams are pipes; a pair of datagram sockets can also send to any other socket.
fn refused_pairs() -> Result<Vec<SeccompRule>, Unrestricted> {
    let kind = |kind| rule(&[(1, SeccompCmpOp::MaskedEq(KIND_MASK), word(kind))]);
    let other_family = rule(&[(0, SeccompCmpOp::Ne, word(AF_UNIX))])?;
    Ok(vec![other_family, kind(SOCK_DGRAM)?, kind(SOCK_RAW)?])
}

fn word(number: libc::c_int) -> u64 {
    number.unsigned_abs().into()
}

/// All of these hold: the number of the argument, how it compares, with what.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Unrestricted> {
    let conditions = conditions
        .iter()
        .map(|(argument, compare, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compare.clone(), *value)
        })
        .collect::<Result<_, _>>()
        .map_err(seccomp)?;
    SeccompRule::new(conditions).map_err(seccomp)
}

fn filter(rules: Rules, error: libc::c_int) -> Result<BpfProgram, Unrestricted> {
    let mut all = BTreeMap::new();
    for (call, rules) in rules {
        if cfg!(target_arch = "x86_64") {
            all.insert(call | SECOND_NUMBER, rules.clone());
        }
        all.insert(call, rules);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(seccomp)?;
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(all, SeccompAction::Allow, refuse, arch).map_err(seccomp)?;
    BpfProgram::try_from(filter).map_err(seccomp)
}

fn seccomp(error: impl std::fmt::Display) -> Unrestricted {
    Unrestricted::Lacking(format!("seccomp: {error}"))
}
