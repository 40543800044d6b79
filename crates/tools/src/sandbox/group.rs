//! A control group (cgroup v2) for a command, where this process may make one: limits that the
//! kernel itself keeps, and an end for all at once.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::watch;
use crate::resources::{Bytes, Resources};

/// The control group of a command.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Makes a group for a command, if that is permitted and would limit something.
    pub(super) fn make(resources: &Resources) -> Option<PathBuf> {
        let name = format!("asyncagents-{}", std::process::id());
        let parent = OwnGroup::find()?.parent_of_groups()?;
        make_in(&parent, &name, resources).map(|group| group.folder)
    }

    /// The group that was made there.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Moves this process there.
    pub(super) fn join(&self) -> io::Result<()> {
        self.write("cgroup.procs", "0")
    }

    /// Kills all processes in it. Linux before 5.14 cannot.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn kill(&self) {
        self.write("cgroup.kill", "1").ok();
    }

    /// Whether the kernel killed it for want of memory.
    pub(super) fn was_short_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events"));
        let killed = |line: &str| {
            let count = line.strip_prefix("oom_kill ");
            count.is_some_and(|count| count.trim() != "0")
        };
        events.is_ok_and(|events| events.lines().any(killed))
    }

    /// Removes it, if no process is left in it.
    pub(super) fn remove(&self) {
        remove(&self.folder);
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), value)
    }
}

/// The most memory that the groups around this process leave it: a container's, for example.
pub(super) fn memory_around() -> Option<Bytes> {
    OwnGroup::find()?.memory()
}

/// Where this process and those that it starts may make groups, if anywhere.
pub(super) fn folder_of_groups() -> Option<PathBuf> {
    Some(OwnGroup::find()?.parent_of_groups()?.folder)
}

/// The group this process is in.
#[derive(Debug, PartialEq, Eq)]
struct OwnGroup {
    folder: PathBuf,
    /// The folder of the uppermost group that can be seen.
    top: PathBuf,
}

/// Where groups can be made.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    folder: PathBuf,
    /// The root of all groups, which may limit others though it has processes itself.
    is_root: bool,
}

impl OwnGroup {
    fn find() -> Option<Self> {
        let read = |file| fs::read_to_string(file).ok();
        own_group(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    /// The group that a command's can be in. A group with processes cannot limit those within it,
    /// so it is beside the one of this process; where that is the uppermost of a container, there
    /// is none.
    fn parent_of_groups(&self) -> Option<Parent> {
        let is_root = |group: &Path| !group.join("cgroup.type").exists();
        let folder = if is_root(&self.folder) {
            &self.folder
        } else if self.folder == self.top {
            return None;
        } else {
            self.folder.parent()?
        };
        Some(Parent {
            is_root: is_root(folder),
            folder: folder.to_owned(),
        })
    }

    fn memory(&self) -> Option<Bytes> {
        let groups = self.folder.ancestors();
        let visible = groups.take_while(|group| group.starts_with(&self.top));
        let limit = |group: &Path| fs::read_to_string(group.join("memory.max")).ok();
        let limits = visible.filter_map(|group| limit(group)?.trim().parse().ok());
        limits.min().map(Bytes)
    }
}

fn own_group(own: &str, mounts: &str) -> Option<OwnGroup> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    // Outside of what is mounted here.
    if own.contains("/..") {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, folder) = (place.next()?, place.next()?);
        // What is mounted may be a part of the tree.
        let within = own.strip_prefix(root.trim_end_matches('/'))?;
        let is_ours =
            kind.starts_with("cgroup2 ") && (within.is_empty() || within.starts_with('/'));
        let folder_of = |within: &str| Path::new(folder).join(within.trim_matches('/'));
        is_ours.then(|| OwnGroup {
            folder: folder_of(within),
            top: folder_of(""),
        })
    })
}

fn make_in(parent: &Parent, name: &str, resources: &Resources) -> Option<Group> {
    let processes = resources.processes.filter(|_| enable(parent, "pids"));
    let memory = resources.memory.and_then(watch::in_bytes);
    let memory = memory.filter(|_| enable(parent, "memory"));
    if processes.is_none() && memory.is_none() {
        return None;
    }
    let group = Group::at(parent.folder.join(name));
    fs::create_dir(&group.folder).ok()?;
    let set = || {
        if let Some(most) = processes {
            // Threads count too.
            let most = most.saturating_mul(watch::THREADS);
            group.write("pids.max", &most.to_string())?;
        }
        if let Some(Bytes(most)) = memory {
            group.write("memory.max", &most.to_string())?;
            group.write("memory.oom.group", "1")?;
            // Not there if the machine has no swap.
            group.write("memory.swap.max", "0").ok();
        }
        io::Result::Ok(())
    };
    match set() {
        Ok(()) => Some(group),
        Err(_) => {
            group.remove();
            None
        }
    }
}

/// Whether groups in this one can have such limits. Only at the root they are enabled: another group is
/// its owner's.
fn enable(parent: &Parent, controller: &str) -> bool {
    let control = parent.folder.join("cgroup.subtree_control");
    let is_enabled = || {
        let enabled = fs::read_to_string(&control).unwrap_or_default();
        let mut enabled = enabled.split_ascii_whitespace();
        enabled.any(|name| name.trim_start_matches('+') == controller)
    };
    let enable = || parent.is_root && fs::write(&control, format!("+{controller}")).is_ok();
    is_enabled() || (enable() && is_enabled())
}

/// With the groups that a command made in it.
fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    fs::remove_dir(folder).ok();
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use tempfile::TempDir;

    use super::{Group, OwnGroup, Parent, make_in, own_group};
    use crate::resources::{Bytes, MemoryLimit, Resources};

    const LIMITS: Resources = Resources {
        processes: Some(100),
        memory: Some(MemoryLimit::Bytes(Bytes(5_000_000))),
        file_size: None,
    };

    /// A folder that takes what is written, as the kernel's does.
    fn fake(enabled: &str) -> TempDir {
        let own = TempDir::new().expect("a folder");
        fs::write(own.path().join("cgroup.subtree_control"), enabled).expect("a file");
        own
    }

    /// Where nothing can be enabled: a folder cannot be written. A file without the right to
    /// write would not stop root.
    fn fake_with_processes_of_its_own() -> TempDir {
        let own = TempDir::new().expect("a folder");
        fs::create_dir(own.path().join("cgroup.subtree_control")).expect("a folder");
        own
    }

    fn root(folder: &Path) -> Parent {
        Parent {
            folder: folder.to_owned(),
            is_root: true,
        }
    }

    fn content(folder: &Path, file: &str) -> Option<String> {
        fs::read_to_string(folder.join(file)).ok()
    }

    #[test]
    fn a_group_has_the_limits_of_its_command() {
        let own = fake("cpu memory pids\n");
        let group = make_in(&root(own.path()), "g", &LIMITS).expect("a group");
        assert_eq!(group.folder, own.path().join("g"));
        let content = |file| content(&group.folder, file);
        assert_eq!(content("pids.max").as_deref(), Some("1600"));
        assert_eq!(content("memory.max").as_deref(), Some("5000000"));
        assert_eq!(content("memory.oom.group").as_deref(), Some("1"));
        assert_eq!(content("memory.swap.max").as_deref(), Some("0"));
        group.join().expect("a file");
        assert_eq!(content("cgroup.procs").as_deref(), Some("0"));
        group.kill();
        assert_eq!(content("cgroup.kill").as_deref(), Some("1"));
    }

    #[test]
    fn only_what_can_be_limited_is() {
        let own = fake("pids");
        // Nothing more can be enabled here.
        fs::create_dir(own.path().join("g")).expect("a folder");
        assert!(
            make_in(&root(own.path()), "g", &LIMITS).is_none(),
            "it is somebody else's"
        );
        let only_processes = Resources {
            memory: None,
            ..LIMITS
        };
        let group = make_in(&root(own.path()), "h", &only_processes).expect("a group");
        assert_eq!(content(&group.folder, "pids.max").as_deref(), Some("1600"));
        assert_eq!(content(&group.folder, "memory.max"), None);
    }

    #[test]
    fn controllers_are_enabled_where_that_is_permitted() {
        let own = fake("");
        make_in(&root(own.path()), "g", &LIMITS).expect("a group");
        let asked = content(own.path(), "cgroup.subtree_control");
        assert_eq!(asked.as_deref(), Some("+memory"));
    }

    #[test]
    fn there_is_no_group_where_it_would_limit_nothing() {
        let own = fake_with_processes_of_its_own();
        assert!(make_in(&root(own.path()), "g", &LIMITS).is_none());
        let own = fake("cpu memory pids");
        assert!(make_in(&root(own.path()), "g", &Resources::UNLIMITED).is_none());
        assert!(!own.path().join("g").exists());
        assert!(make_in(&root(&own.path().join("not/there")), "g", &LIMITS).is_none());
    }

    #[test]
    fn an_end_for_want_of_memory_is_noticed() {
        let own = fake("memory");
        let group = make_in(&root(own.path()), "g", &LIMITS).expect("a group");
        assert!(!group.was_short_of_memory());
        for (events, short) in [
            ("oom 3\noom_kill 0\n", false),
            ("oom 1\noom_kill 2\n", true),
        ] {
            fs::write(group.folder.join("memory.events"), events).expect("a file");
            assert_eq!(group.was_short_of_memory(), short);
        }
    }

    #[test]
    fn groups_within_go_with_it() {
        let own = fake("");
        let group = Group::at(own.path().join("g"));
        fs::create_dir_all(group.folder.join("a/b")).expect("folders");
        group.remove();
        assert!(!group.folder.exists());
    }

    #[test]
    fn the_own_group_is_found() {
        let mounts = "30 1 0:1 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            31 1 0:2 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let part = mounts.replace("0:2 / ", "0:2 /user.slice ");
        for (own, mounts, expected) in [
            ("1:name=x:/y\n0::/a/b\n", mounts, Some("/sys/fs/cgroup/a/b")),
            ("0::/\n", mounts, Some("/sys/fs/cgroup/")),
            ("0::/user.slice/a\n", &part, Some("/sys/fs/cgroup/a")),
            ("0::/user.slicer\n", &part, None),
            ("0::/../a\n", mounts, None),
            ("1:pids:/a\n", mounts, None),
            ("0::/a\n", "", None),
        ] {
            let found = own_group(own, mounts).map(|own| own.folder);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{own}");
        }
    }

    /// The root of all groups has no type.
    #[test]
    fn a_command_has_its_group_beside_ours() {
        let top = TempDir::new().expect("a folder");
        let group = |name: &str| {
            let folder = top.path().join(name);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("cgroup.type"), "domain\n").expect("a file");
            folder
        };
        let [slice, scope] = ["slice", "slice/scope"].map(group);
        let parent = |own: &Path, top: &Path| {
            let own = OwnGroup {
                folder: own.to_owned(),
                top: top.to_owned(),
            };
            own.parent_of_groups()
        };
        let beside = Parent {
            folder: slice.clone(),
            is_root: false,
        };
        assert_eq!(parent(&scope, top.path()), Some(beside));
        assert_eq!(parent(&slice, top.path()), Some(root(top.path())));
        assert_eq!(parent(top.path(), top.path()), Some(root(top.path())));
        // In a container.
        assert_eq!(parent(&slice, &slice), None);
    }

    #[test]
    fn what_is_not_ours_is_not_told_to_limit() {
        let own = fake("");
        let parent = Parent {
            folder: own.path().to_owned(),
            is_root: false,
        };
        assert!(make_in(&parent, "g", &LIMITS).is_none());
        let asked = content(own.path(), "cgroup.subtree_control");
        assert_eq!(asked.as_deref(), Some(""));
    }

    #[test]
    fn the_memory_around_is_the_least() {
        let top = TempDir::new().expect("a folder");
        let own = OwnGroup {
            folder: top.path().join("a/b"),
            top: top.path().to_owned(),
        };
        fs::create_dir_all(&own.folder).expect("folders");
        assert_eq!(own.memory(), None);
        for (group, limit) in [("a/b", "max\n"), ("a", "7000\n"), ("", "9000\n")] {
            fs::write(top.path().join(group).join("memory.max"), limit).expect("a file");
        }
        assert_eq!(own.memory(), Some(Bytes(7_000)));
    }

    /// The kernel's own, where a test may make one.
    #[test]
    fn the_kernel_kills_a_group() {
        let parent = OwnGroup::find().and_then(|own| own.parent_of_groups());
        let name = format!("asyncagents-test-{}", std::process::id());
        let folder = parent.map(|parent| parent.folder.join(name));
        let Some(folder) = folder.filter(|folder| fs::create_dir(folder).is_ok()) else {
            println!("skipped: no control group can be made here");
            return;
        };
        let group = Group::at(folder);
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        let joined = group.write("cgroup.procs", &child.id().to_string());
        if joined.is_ok() && group.folder.join("cgroup.kill").exists() {
            group.kill();
        } else {
            println!("skipped: this kernel cannot");
            child.kill().expect("it is ours");
        }
        assert!(!child.wait().expect("it ended").success());
        group.remove();
        assert!(!group.folder.exists());
    }
}
