//! What holds credentials is not read, whoever asks and however it is named.

use super::tricks::{CANARY, Left, Trick, are_stopped};

#[test]
fn no_secret_is_read() {
    are_stopped("reading", TRICKS, || {
        |left: &Left| {
            // A line break may have come between.
            left.said.replace('\n', " ").contains(CANARY)
        }
    });
}

#[rustfmt::skip]
const TRICKS: &[Trick] = &[
    // Ways to say which.
    ("key", "", "cat {home}/.ssh/id"),
    ("named_secret", "", "cat {vault}/id"),
    ("parent", "", "cat ../../../home/.ssh/id"),
    ("dots_and_slashes", "", "cat {home}//.ssh/./../.ssh///id"),
    ("glob", "", "cat {home}/.s*/i?"),
    ("braces", "", "cat {home}/.s{s,t}h/id"),
    ("changed_folder", "", "cd {home}/.ssh && cat id"),
    ("link", "", "ln -s {home} link; cat link/.ssh/id"),
    ("link_to_the_folder", "", "ln -s {home}/.ssh link; cat link/id"),
    ("link_to_the_file", "", "ln -s {home}/.ssh/id link; cat link"),
    ("hard_link", "", "ln {vault}/id f && cat f"),
    ("move", "", "mv {vault}/id f && cat f"),
    ("move_the_folder", "", "mv {vault} f && cat f/id"),
    ("copy", "", "cp -r {vault} f; cat f/id"),
    ("root_of_proc", "", "cat /proc/self/root{vault}/id"),
    ("root_of_the_parent", "", "cat /proc/$PPID/root{vault}/id"),
    ("folder_held_open", "", "exec 9< {vault}; cat /proc/self/fd/9/id"),
    ("folder_of_another", "", "coproc (cd {vault} && echo there && sleep 9); read -r _ <&${COPROC[0]}; cat /proc/$COPROC_PID/cwd/id; kill $COPROC_PID"),
    ("mode_and_owner", "", "chmod -R 777 {vault}; cat {vault}/id"),
    // Ways to read.
    ("redirection", "", "cat < {vault}/id"),
    ("descriptor", "", "exec 7< {vault}/id; cat <&7"),
    ("substitution", "", "echo $(< {vault}/id)"),
    ("builtin", "", "read -r line < {vault}/id; echo $line; mapfile < {vault}/id; echo $MAPFILE"),
    ("here_string", "", "cat <<< $(cat {vault}/id)"),
    ("sourced", "", "echo 'echo PRIVATE KEY' > {vault}/id; . {vault}/id"),
    ("as_a_script", "", "sed -i 's/^/echo /' {vault}/id; bash {vault}/id"),
    ("environment_of_a_shell", "", "sed -i 's/^/echo /' {vault}/id; BASH_ENV={vault}/id bash -c true"),
    ("head", "head", "head -c 99 {vault}/id"),
    ("tail", "tail", "tail -n 1 {vault}/id"),
    ("dd", "dd", "dd if={vault}/id"),
    ("base64", "base64", "base64 {vault}/id | base64 -d"),
    ("sort", "sort", "sort {vault}/id"),
    ("paste", "paste", "paste {vault}/id"),
    ("rev", "rev", "rev {vault}/id | rev"),
    ("diff", "diff", "diff /dev/null {vault}/id"),
    ("grep", "grep", "grep -r PRIVATE {home}"),
    ("sed", "sed", "sed -n p {vault}/id"),
    ("awk", "awk", "awk 1 {vault}/id"),
    ("find", "find", "find {home} -type f -exec cat {} +"),
    ("xargs", "xargs", "xargs -a {vault}/id echo"),
    ("tar", "tar", "tar c {home} | cat"),
    ("zip", "zip unzip", "zip -q z {vault}/id; unzip -p z"),
    ("install", "install", "install -m 644 {vault}/id f; cat f"),
    ("split", "split", "split {vault}/id; cat xaa"),
    ("ed", "ed", "printf '%%p\\nq\\n' | ed -s {vault}/id"),
    ("vi", "ex", "ex -s -u NONE -c '%p' -c q! {vault}/id"),
    ("perl", "perl", "perl -pe 1 {vault}/id"),
    ("python", "python3", "python3 -c 'print(open(\"{vault}/id\").read())'"),
    ("python_mapped", "python3", "python3 -c 'import mmap, os; f = os.open(\"{vault}/id\", os.O_RDONLY); print(mmap.mmap(f, 0, prot=mmap.PROT_READ)[:])'"),
    ("python_sent", "python3", "python3 -c 'import os; f = os.open(\"{vault}/id\", 0); os.sendfile(1, f, 0, 99)'"),
    ("node", "node", "node -p 'fs.readFileSync(\"{vault}/id\", \"utf8\")'"),
    ("curl", "curl", "curl -s file://{vault}/id"),
    ("sqlite", "sqlite3", "sqlite3 '' \"select readfile('{vault}/id')\""),
    ("compiler", "cc", "cc -E -x c {vault}/id"),
    ("compiler_includes", "cc", "echo '#include \"{vault}/id\"' | cc -E -x c -"),
    ("openssl", "openssl", "openssl base64 -in {vault}/id | openssl base64 -d"),
    ("git_diff", "git", "git diff --no-index /dev/null {vault}/id"),
    ("git_object", "git", "git init -q .; git cat-file -p $(git hash-object -w {vault}/id)"),
    ("git_alternative", "git", "git --git-dir=x init -q; git --git-dir=x --work-tree={vault} add id && git --git-dir=x show :id"),
    ("other_root", "root perl", "perl -e 'chroot q({vault}); open F, q(/id); print <F>'"),
    ("mounted_here", "root unshare mount maybe", "mkdir d; unshare -m bash -c 'mount --bind {vault} d && cat d/id'"),
    ("mounted_twice", "root unshare mount maybe", "mkdir u w d; unshare -m bash -c 'mount -t overlay -o lowerdir={vault},upperdir=u,workdir=w none d && cat d/id'"),
    ("own_users", "unshare maybe", "unshare -Ur cat {vault}/id"),
    ("busybox", "busybox", "busybox cat {vault}/id"),
];
