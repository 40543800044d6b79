//! Landlock: which files a command may read and write. Landlock only allows, so to keep a
//! secret, everything beside the way to it is allowed instead.

use std::{
    collections::HashSet,
    fs::{self, FileType},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, accessat},
    io::Errno,
};

use super::{
    order::{Limits, Network},
    unrestricted::Unrestricted,
};
use crate::exact_file;

/// The newest rules that were tried. Older kernels enforce what they know of them.
const RULES: ABI = ABI::V6;

const NO_LANDLOCK: &str =
    "the kernel has no Landlock (Linux 5.13 and newer have it, if it is turned on)";

const NO_PORTS: &str = "the kernel cannot restrict what is connected to (Linux 6.7 and newer can)";

/// Devices that programs expect to read and write. The disks are not among them.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Whether the kernel knows such rules. Nothing is restricted by asking.
pub(crate) fn are_known() -> bool {
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(RULES));
    let made = ruleset.and_then(Ruleset::create);
    made.is_ok_and(|made| Option::<OwnedFd>::from(made).is_some())
}

/// What may be done to a file that is written, and to a folder in which files are made.
fn write_rights() -> BitFlags<AccessFs> {
    AccessFs::from_all(RULES) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// The rules about files for commands with the same limits, made once: in a crowded home there is
/// one for each of thousands of entries.
///
/// They are for a thread that starts the helper, and so for guard, supervisor and command. The
/// first two may do a little more than the command, which [`enforce_on_command`] takes away again.
pub(crate) struct FileRules {
    ruleset: RulesetCreated,
    limits: Limits,
    /// What these rules were made of. If it has changed, they do not hold.
    secrets: HashSet<PathBuf>,
    granted: Vec<Option<Identity>>,
    listed: Vec<(PathBuf, Stamp)>,
    mounts: String,
}

impl FileRules {
    /// Makes the rules. The helper may be run under them, wherever it is; it makes a control group
    /// in the folder.
    pub(crate) fn make(
        limits: &Limits,
        helper: &Path,
        groups: Option<PathBuf>,
    ) -> Result<Self, Unrestricted> {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(RULES))?
            .scope(Scope::from_all(RULES))?;
        if limits.network != Network::All {
            ruleset = ruleset.handle_access(AccessNet::from_all(RULES))?;
        }
        let secrets = secrets(&limits.secret);
        let (granted, mounts) = (granted(limits), mounts());
        let mut rules = Rules {
            ruleset: ruleset.create()?,
            above_secrets: above(&secrets),
            secrets,
            listed: Vec::new(),
        };
        let read = AccessFs::from_read(RULES);
        let write = write_rights();

        rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
        rules.allow_tree(Path::new("/"), read)?;
        for path in &limits.readable {
            rules.allow_tree(path, read)?;
        }
        for path in &limits.writable {
            rules.allow_tree(path, write)?;
        }
        for device in DEVICES {
            rules.allow(Path::new(device), write & AccessFs::from_file(RULES))?;
        }
        if let Network::Port { connect, listen } = limits.network {
            (&mut rules.ruleset).add_rule(NetPort::new(connect, AccessNet::ConnectTcp))?;
            if let Some(listen) = listen {
                (&mut rules.ruleset).add_rule(NetPort::new(listen, AccessNet::BindTcp))?;
            }
        }
        rules.allow_helper(helper, groups.as_deref())?;
        let Rules {
            ruleset,
            secrets,
            listed,
            ..
        } = rules;
        Ok(Self {
            ruleset,
            limits: limits.clone(),
            secrets,
            granted,
            listed,
            mounts,
        })
    }

    /// Whether they were made for these limits.
    pub(crate) fn are_for(&self, limits: &Limits) -> bool {
        self.limits == *limits
    }

    /// Whether the same rules would be made now: no secret has come or gone, and nothing beside the
    /// way to one. A rule is about a file and not about its name, so one that has got a secret's
    /// name since would be readable.
    pub(crate) fn still_hold(&self) -> bool {
        self.granted == granted(&self.limits)
            && self.mounts == mounts()
            && self.secrets == secrets(&self.limits.secret)
            && self
                .listed
                .iter()
                .all(|(folder, stamp)| stamp.is_settled() && Stamp::of(folder) == Some(*stamp))
    }

    /// Restricts this thread, and what it starts from now on; returns which rules the kernel knows.
    pub(crate) fn enforce(&self) -> Result<ABI, Unrestricted> {
        let ruleset = self.ruleset.try_clone();
        let ruleset =
            ruleset.map_err(|error| Unrestricted::Failed(format!("Landlock: {error}")))?;
        let known = enforced(ruleset)?;
        match self.limits.network {
            // Without any network no socket is made at all; here nothing else would stop it.
            Network::Port { .. } if known < ABI::V4 => {
                Err(Unrestricted::Lacking(NO_PORTS.to_owned()))
            }
            Network::Nothing | Network::Port { .. } | Network::All => Ok(known),
        }
    }
}

/// Restricts this process, which becomes a command, to where it may write. It can also send no
/// signal to those that started it, which have other rules.
pub(super) fn enforce_on_command(limits: &Limits) -> Result<(), Unrestricted> {
    let write = AccessFs::from_write(RULES) & write_rights();
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_write(RULES))?
        .scope(Scope::from_all(RULES))?;
    let mut ruleset = ruleset.create()?;
    let files = AccessFs::from_file(RULES);
    let devices = DEVICES.iter().map(|device| Path::new(*device));
    let devices = devices.map(|device| (device, write & files));
    let writable = limits.writable.iter().map(|path| {
        let rights = if path.is_dir() { write } else { write & files };
        (path.as_path(), rights)
    });
    for (path, rights) in writable.chain(devices) {
        // What is not there needs no rule.
        if let Ok(file) = exact_file::name(path) {
            (&mut ruleset).add_rule(PathBeneath::new(file, rights))?;
        }
    }
    enforced(ruleset).map(drop)
}

fn enforced(ruleset: RulesetCreated) -> Result<ABI, Unrestricted> {
    let status = ruleset.restrict_self()?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(Unrestricted::Lacking(NO_LANDLOCK.to_owned())),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi),
        (_, _) => Err(Unrestricted::Lacking(NO_LANDLOCK.to_owned())),
    }
}

/// Which file or folder it is, whatever its name.
type Identity = (u64, u64);

/// What is mounted where: it hides what was there.
fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// What the allowed folders are now.
fn granted(limits: &Limits) -> Vec<Option<Identity>> {
    let granted = limits.readable.iter().chain(&limits.writable);
    let identity = |path: &PathBuf| {
        let file = fs::symlink_metadata(path).ok()?;
        Some((file.dev(), file.ino()))
    };
    granted.map(identity).collect()
}

/// A folder at the time its entries were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    identity: Identity,
    changed: (i64, i64),
    /// Taken so soon after a change that another one may have the same time.
    is_early: bool,
}

/// Clocks of file systems tick this often.
const TICK: Duration = Duration::from_millis(20);
/// Those that know only whole seconds.
const LONG_TICK: Duration = Duration::from_secs(2);

impl Stamp {
    fn of(folder: &Path) -> Option<Self> {
        let file = fs::symlink_metadata(folder).ok()?;
        Some(Self {
            identity: (file.dev(), file.ino()),
            changed: (file.ctime(), file.ctime_nsec()),
            is_early: false,
        })
    }

    /// The same, and whether it can be told from a later one.
    fn before_listing(folder: &Path) -> Option<Self> {
        let stamp = Self::of(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let (seconds, nanoseconds) = stamp.changed;
        let changed = Duration::new(
            u64::try_from(seconds).ok()?,
            u32::try_from(nanoseconds).ok()?,
        );
        let tick = if nanoseconds == 0 { LONG_TICK } else { TICK };
        let age = now.checked_sub(changed);
        Some(Self {
            is_early: age.is_none_or(|age| age < tick),
            ..stamp
        })
    }

    fn is_settled(self) -> bool {
        !self.is_early
    }
}

/// The rules so far.
struct Rules {
    ruleset: RulesetCreated,
    secrets: HashSet<PathBuf>,
    above_secrets: HashSet<PathBuf>,
    /// The folders whose entries have rules of their own.
    listed: Vec<(PathBuf, Stamp)>,
}

impl Rules {
    /// Allows something in a folder, except for the secrets in it.
    fn allow_tree(&mut self, root: &Path, rights: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        match fs::symlink_metadata(root) {
            Ok(root_is) => self.allow_beside(root, root_is.file_type(), rights),
            // An allowed folder that is not there yet.
            Err(_) => Ok(()),
        }
    }

    fn allow_beside(
        &mut self,
        path: &Path,
        kind: FileType,
        rights: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        if kind.is_dir() && self.above_secrets.contains(path) {
            // One that is gone has no entries.
            let Some(stamp) = Stamp::before_listing(path) else {
                return Ok(());
            };
            self.listed.push((path.to_owned(), stamp));
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let path = entry.path();
                // A link would allow what it leads to.
                if let Ok(kind) = entry.file_type()
                    && !kind.is_symlink()
                    && !self.secrets.contains(&path)
                {
                    self.allow_beside(&path, kind, rights)?;
                }
            }
            return Ok(());
        }
        let rights = if kind.is_dir() {
            rights
        } else {
            rights & AccessFs::from_file(RULES)
        };
        self.allow(path, rights)
    }

    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        // What vanished meanwhile, or cannot be reached, needs no rule. What has become a link
        // gets none: it would allow what it leads to.
        if let Ok(file) = exact_file::name(path) {
            (&mut self.ruleset).add_rule(PathBeneath::new(file, rights))?;
        }
        Ok(())
    }

    /// What guard and supervisor need besides: the program itself, their own files in `/proc`, and
    /// the control groups.
    fn allow_helper(&mut self, helper: &Path, groups: Option<&Path>) -> Result<(), RulesetError> {
        // Its name may be a link: the user's own, or the kernel's to a program that was replaced.
        if let Ok(file) = rustix::fs::open(helper, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            let run = AccessFs::Execute | AccessFs::ReadFile;
            (&mut self.ruleset).add_rule(PathBeneath::new(file, run))?;
        }
        let write = AccessFs::WriteFile | AccessFs::Truncate;
        self.allow(Path::new("/proc"), write)?;
        if let Some(groups) = groups {
            self.allow(groups, write | AccessFs::MakeDir | AccessFs::RemoveDir)?;
        }
        Ok(())
    }
}

/// The secrets that are there, as real paths, and the devices.
fn secrets(given: &[PathBuf]) -> HashSet<PathBuf> {
    // Most are not there, which one call says sooner than one for each folder above.
    let there = given.iter().filter(|path| path.exists());
    let there = there.filter_map(|path| fs::canonicalize(path).ok());
    let there = there.filter(|path| !is_out_of_reach(path));
    there.chain([PathBuf::from("/dev")]).collect()
}

/// The folders above the secrets.
fn above(secrets: &HashSet<PathBuf>) -> HashSet<PathBuf> {
    let mut folders = HashSet::new();
    for secret in secrets {
        for folder in secret.ancestors().skip(1) {
            // Those above it are known too, then.
            if !folders.insert(folder.to_owned()) {
                break;
            }
        }
    }
    folders
}

/// Another user's file that this user cannot read anyway, such as the password file: it would
/// cost a rule for everything beside it.
///
/// It is not opened: the database is among the secrets, and a process that closes a file gives up
/// all its locks there.
fn is_out_of_reach(path: &Path) -> bool {
    let readable = accessat(CWD, path, rustix::fs::Access::READ_OK, AtFlags::EACCESS);
    let foreign = |file: fs::Metadata| file.uid() != rustix::process::geteuid().as_raw();
    readable == Err(Errno::ACCESS) && fs::metadata(path).is_ok_and(foreign)
}

/// What is enforced, for people.
pub(super) fn describe(enforced: ABI, limits: &Limits) -> String {
    let folders: Vec<_> = limits
        .writable
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let network = match limits.network {
        Network::All => "network allowed, local sockets not".to_owned(),
        Network::Nothing => "no network, no local sockets".to_owned(),
        Network::Port { connect, listen } => {
            let listens = listen.map(|port| format!(" and listening on port {port}"));
            format!(
                "no network but TCP connections to port {connect} (whose address the kernel does not \
                 check){}, no local sockets",
                listens.unwrap_or_default()
            )
        }
    };
    let mut what = format!(
        "Landlock (version {}) and seccomp: writes only in {}; what usually holds credentials, and \
         private files of the home's configuration, unreadable; only usual variables; {network}; \
         not stopped: listing names, and changing modes, owners, times and attributes of files \
         elsewhere, or locking them",
        enforced as i32,
        folders.join(", "),
    );
    let gaps = [
        (ABI::V3, "truncating files elsewhere needs Linux 6.2"),
        (ABI::V6, "signals to processes outside need Linux 6.12"),
    ];
    for (since, gap) in gaps {
        if enforced < since {
            what.push_str(&format!("; not stopped by this kernel: {gap}"));
        }
    }
    for path in &limits.writable {
        if limits
            .secret
            .iter()
            .any(|s| s.starts_with(path) && s.exists())
        {
            what.push_str(&format!(
                "; {} contains secret paths: beside them nothing new can be made",
                path.display()
            ));
        }
    }
    what
}

#[cfg(test)]
mod tests {
    use std::{
        fs, io,
        path::Path,
        time::{Duration, Instant},
    };

    use super::{FileRules, Limits, are_known};

    /// Rules that hold as long as nothing changes: not made right after a change.
    fn settled(limits: &Limits) -> FileRules {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let made = FileRules::make(limits, Path::new("/proc/self/exe"), None);
            let rules = made.expect("rules");
            if rules.still_hold() {
                return rules;
            }
            assert!(Instant::now() < until, "they never hold");
        }
    }

    type Change = fn(&Path) -> io::Result<()>;

    const CHANGES: [(&str, Change, bool); 7] = [
        ("a new file", |home| fs::write(home.join("new"), ""), false),
        (
            "a new secret",
            |home| fs::write(home.join("below/key"), ""),
            false,
        ),
        (
            "a secret goes",
            |home| fs::remove_file(home.join("key")),
            false,
        ),
        (
            "a file gets a secret's name",
            |home| fs::rename(home.join("file"), home.join("key")),
            false,
        ),
        (
            "a folder is made anew",
            |home| {
                fs::remove_dir(home.join("work"))?;
                fs::create_dir(home.join("work"))
            },
            false,
        ),
        (
            "a file elsewhere",
            |home| fs::write(home.join("work/new"), ""),
            true,
        ),
        (
            "more in a file",
            |home| fs::write(home.join("file"), "more"),
            true,
        ),
    ];

    #[test]
    fn rules_hold_until_what_they_were_made_of_changes() {
        if !are_known() {
            return;
        }
        // Others are always at work in the usual folder for temporary files.
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        for (name, change, hold) in CHANGES {
            let home = folder.join(name);
            for name in ["work", "below"] {
                fs::create_dir_all(home.join(name)).expect("a folder");
            }
            for name in ["key", "file"] {
                fs::write(home.join(name), "").expect("a file");
            }
            let limits = Limits {
                writable: vec![home.join("work")],
                secret: ["key", "below/key"].map(|name| home.join(name)).to_vec(),
                ..Limits::default()
            };
            let rules = settled(&limits);
            assert!(rules.are_for(&limits));
            assert!(!rules.are_for(&Limits::default()));
            change(&home).expect("changed");
            assert_eq!(rules.still_hold(), hold, "{name}");
        }
    }
}
