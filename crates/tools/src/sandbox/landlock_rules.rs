//! Landlock: which files a command may read and write. Landlock only allows, so to keep a
//! secret, everything beside the way to it is allowed instead.

use std::{
    collections::HashSet,
    fs::{self, File, FileType},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::{order::Limits, unrestricted::Unrestricted};
use crate::exact_file;

/// The newest rules that were tried. Older kernels enforce what they know of them.
const RULES: ABI = ABI::V6;

const NO_LANDLOCK: &str =
    "the kernel has no Landlock (Linux 5.13 and newer have it, if it is turned on)";

/// Devices that programs expect to read and write. The disks are not among them.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Restricts this process to the limits and returns what is enforced.
pub(super) fn enforce(limits: &Limits) -> Result<String, Unrestricted> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?;
    if !limits.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(RULES))?;
    }
    let secrets = secrets(&limits.secret);
    let mut rules = Rules {
        ruleset: ruleset.create()?,
        above_secrets: above(&secrets),
        secrets,
    };
    let read = AccessFs::from_read(RULES);
    let write = AccessFs::from_all(RULES) & !(AccessFs::MakeChar | AccessFs::MakeBlock);

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

    let status = rules.ruleset.restrict_self()?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(Unrestricted::Lacking(NO_LANDLOCK.to_owned())),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(describe(effective_abi, limits)),
        (_, _) => Err(Unrestricted::Lacking(NO_LANDLOCK.to_owned())),
    }
}

/// The rules so far.
struct Rules {
    ruleset: RulesetCreated,
    secrets: HashSet<PathBuf>,
    above_secrets: HashSet<PathBuf>,
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
}

/// The secrets that are there, as real paths, and the devices.
fn secrets(given: &[PathBuf]) -> HashSet<PathBuf> {
    let there = given.iter().filter_map(|path| fs::canonicalize(path).ok());
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
fn is_out_of_reach(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let foreign = |file: fs::Metadata| file.uid() != rustix::process::geteuid().as_raw();
    File::open(path).is_err_and(refused) && fs::metadata(path).is_ok_and(foreign)
}

fn describe(enforced: ABI, limits: &Limits) -> String {
    let folders: Vec<_> = limits
        .writable
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let network = if limits.network {
        "network allowed, local sockets not"
    } else {
        "no network, no local sockets"
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
