//! Rights that a command must not have. Each says `out` where it has them.

use std::process::Child;

use super::tricks::{Goal, Left, Trick, Who, are_stopped};

/// Somebody outside who stands for asyncagents.
#[derive(Default)]
struct Says(Option<Child>);

impl Goal for Says {
    fn prepare(&mut self, _: &str, command: &str, who: Who) -> String {
        let other = self.0.get_or_insert_with(|| {
            let other = who.command("sleep").arg("1000").spawn();
            other.expect("a process")
        });
        command.replace("{pid}", &other.id().to_string())
    }

    fn got_out(&mut self, left: &Left) -> bool {
        left.said.contains("out\n")
    }
}

impl Drop for Says {
    fn drop(&mut self) {
        if let Some(other) = &mut self.0 {
            other.kill().ok();
            other.wait().ok();
        }
    }
}

#[test]
fn no_right_is_left_over() {
    are_stopped("rights", TRICKS, Says::default);
}

#[rustfmt::skip]
const TRICKS: &[Trick] = &[
    // asyncagents itself.
    ("environment_of_asyncagents", "", "cat /proc/{pid}/environ > /dev/null && echo out"),
    ("memory_of_asyncagents", "maybe", "head -c 0 /proc/{pid}/mem && echo out"),
    ("map_of_asyncagents", "", "cat /proc/{pid}/maps > /dev/null && echo out"),
    ("files_of_asyncagents", "", "readlink /proc/{pid}/fd/1 > /dev/null && echo out"),
    ("folder_of_asyncagents", "", "ls /proc/{pid}/cwd/ > /dev/null && echo out"),
    ("root_of_asyncagents", "", "ls /proc/{pid}/root/ > /dev/null && echo out"),
    ("stack_of_asyncagents", "root", "cat /proc/{pid}/stack > /dev/null && echo out"),
    ("calls_of_asyncagents", "maybe", "cat /proc/{pid}/syscall > /dev/null && echo out"),
    ("credit_of_asyncagents", "", "cat /proc/{pid}/oom_score_adj > f && cat f > /proc/{pid}/oom_score_adj && echo out"),
    ("dump_of_asyncagents", "", "cat /proc/{pid}/coredump_filter > f && echo 0x$(cat f) > /proc/{pid}/coredump_filter && echo out"),
    ("traced", "gdb maybe", "gdb -p {pid} -batch -ex detach 2>&1 | grep -q 'Inferior 1' && echo out"),
    ("limits_of_asyncagents", "prlimit", "prlimit --pid {pid} --core=$(prlimit --pid {pid} --core -o SOFT,HARD --noheadings --raw | tr ' ' :) && echo out"),
    ("niceness_of_asyncagents", "renice", "renice -n 19 -p {pid} > /dev/null && echo out"),
    ("schedule_of_asyncagents", "chrt", "chrt -o -p 0 {pid} && echo out"),
    ("processors_of_asyncagents", "taskset", "taskset -p -c $(taskset -p -c {pid} | sed 's/.*: //') {pid} > /dev/null && echo out"),
    ("disk_of_asyncagents", "ionice", "ionice -c 2 -n 4 -p {pid} && echo out"),
    // The one who ends it.
    ("niceness_of_the_parent", "renice", "renice -n 19 -p $PPID > /dev/null && echo out"),
    ("idle_parent", "chrt", "chrt -i -p 0 $PPID && echo out"),
    ("disk_of_the_parent", "ionice", "ionice -c 3 -p $PPID && echo out"),
    ("limits_of_the_parent", "prlimit", "prlimit --pid $PPID --nofile=8:8 && echo out"),
    // What the kernel keeps.
    ("new_privileges", "grep", "grep -q 'NoNewPrivs:.0' /proc/self/status && echo out"),
    ("shared_memory", "perl", "perl -e 'my $id = shmget(0, 4096, 01600); defined $id or exit; shmctl($id, 0, 0); print qq(out\\n)'"),
    ("message_queue", "perl", "perl -e 'my $id = msgget(0, 01600); defined $id or exit; msgctl($id, 0, 0); print qq(out\\n)'"),
    ("semaphores", "perl", "perl -e 'my $id = semget(0, 1, 01600); defined $id or exit; semctl($id, 0, 0, 0); print qq(out\\n)'"),
    ("mounts", "root unshare maybe", "unshare -m true && echo out"),
    ("users", "unshare maybe", "unshare -U true && echo out"),
    ("network", "root unshare maybe", "unshare -n true && echo out"),
    ("processes", "root unshare maybe", "unshare -p -f true && echo out"),
    ("host_name", "root unshare maybe", "unshare -u true && echo out"),
    ("control_groups", "root unshare maybe", "unshare -C true && echo out"),
    ("messages", "root unshare maybe", "unshare -i true && echo out"),
    ("clocks", "root unshare maybe", "unshare -T true && echo out"),
    ("mounts_of_another", "root nsenter maybe", "nsenter -t {pid} -m true && echo out"),
    ("network_of_another", "root nsenter maybe", "nsenter -t {pid} -n true && echo out"),
    ("mount", "root mount umount maybe", "mkdir d; mount -t tmpfs none d && umount d && echo out"),
    ("device", "root mknod maybe", "mknod device c 1 5 && echo out"),
    ("disk", "root mknod maybe", "mknod device b 7 0 && echo out"),
    ("memory_of_the_kernel", "root maybe", "head -c 1 /proc/kcore > /dev/null && echo out"),
    ("messages_of_the_kernel", "root dmesg maybe", "dmesg > /dev/null && echo out"),
    ("settings_of_the_kernel", "root maybe", "cat /proc/sys/kernel/printk > f && cat f > /proc/sys/kernel/printk && echo out"),
    ("core_pattern", "root maybe", "cat /proc/sys/kernel/core_pattern > f && cat f > /proc/sys/kernel/core_pattern && echo out"),
    ("magic_keys", "root maybe", "cat /proc/sysrq-trigger 2> /dev/null; exec 9> /proc/sysrq-trigger && echo out"),
    ("own_control_group", "root maybe", "echo $$ > /sys/fs/cgroup/cgroup.procs && echo out"),
    ("larger_files", "root", "ulimit -f unlimited && ulimit -c unlimited && echo out"),
    ("before_all_others", "root chrt", "chrt -f 1 echo out"),
    ("less_nice", "root nice", "[ $(nice -n -5 nice 2> /dev/null) = -5 ] && echo out"),
    ("password_file", "root maybe", "head -c 1 /etc/shadow > /dev/null && echo out"),
    ("immutable_file", "root chattr maybe", "touch f && chattr +i f && chattr -i f && echo out"),
    ("other_user_by_setuid", "root maybe", "cp $(command -v id) ./id && chown 65534 ./id && chmod u+s ./id && [ $(./id -u) = 65534 ] && echo out"),
    ("capability_of_a_file", "root setcap capsh maybe", "cp $(command -v capsh) c && setcap cap_sys_admin+ep c && ./c --has-p=cap_sys_admin && echo out"),
    ("bounding_set", "root capsh", "capsh --has-b=cap_sys_admin && echo out"),
    ("raw_packets", "root python3", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); print(\"out\")'"),
    ("interfaces", "root ip maybe", "ip link set lo up && echo out"),
];
