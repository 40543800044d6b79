//! Tries a table of tricks, all of them in one command: in a plain shell, where each must get
//! out, and then in the sandbox, where none may. Root tries them as an ordinary user too.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use tempfile::TempDir;

use crate::workbench::{HELPER, can_sandbox};

/// A way out: its name, what it needs, and the command. It needs programs; `root` if only root
/// can go this way, and `maybe` if not every machine has it, even where the programs are there.
///
/// The command runs in a folder of its own in the workspace. It can name `{outside}`, a folder of
/// its own with the files `precious` and `folder/inner` and the folder `empty`; `{vault}`, a
/// secret folder with the file `id`; `{home}` with `.ssh/id`; and `{helper}`.
pub(super) type Trick<'t> = (&'t str, &'t str, &'t str);

const ROOT: &str = "root";
const MAYBE: &str = "maybe";

/// What is in a secret file.
pub(super) const CANARY: &str = "PRIVATE KEY";

/// What the tricks of a table are after.
pub(super) trait Goal {
    /// Prepares for a trick and fills in what only this table knows.
    fn prepare(&mut self, _name: &str, command: &str, _who: Who) -> String {
        command.to_owned()
    }

    /// Whether a trick got out.
    fn got_out(&mut self, left: &Left) -> bool;
}

impl<G: FnMut(&Left) -> bool> Goal for G {
    fn got_out(&mut self, left: &Left) -> bool {
        self(left)
    }
}

/// What a trick left behind.
pub(super) struct Left {
    pub(super) name: String,
    /// Whether its folder outside is another than before.
    pub(super) changed: bool,
    pub(super) said: String,
    /// Its folder in the workspace.
    pub(super) folder: PathBuf,
}

/// Who tries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever runs the tests.
    Own,
    /// Somebody without rights, if root runs the tests.
    Ordinary,
}

const NOBODY: &str = "65534";

impl Who {
    pub(super) fn all() -> Vec<Self> {
        match (is_root(), is_there("setpriv")) {
            (false, _) => vec![Self::Own],
            (true, true) => vec![Self::Own, Self::Ordinary],
            (true, false) => {
                println!("skipped as an ordinary user: no setpriv");
                vec![Self::Own]
            }
        }
    }

    fn is_root(self) -> bool {
        self == Self::Own && is_root()
    }

    /// A program of this user's.
    pub(super) fn command(self, program: impl AsRef<Path>) -> Command {
        match self {
            Self::Own => Command::new(program.as_ref()),
            Self::Ordinary => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
                command.arg(program.as_ref());
                command
            }
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(super) fn is_there(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Tries every trick of a table.
pub(super) fn are_stopped<G: Goal>(table: &str, tricks: &[Trick], goal: impl Fn() -> G) {
    if !can_sandbox() {
        return;
    }
    for who in Who::all() {
        let (tried, mut skipped) = possible(tricks, who);
        let free = run(&tried, who, false, &mut goal());
        let sandboxed = run(&tried, who, true, &mut goal());
        let mut wrong = Vec::new();
        let mut stopped = 0;
        for (trick, (free, sandboxed)) in tried.iter().zip(free.iter().zip(&sandboxed)) {
            let (name, needs, command) = trick;
            match (free, sandboxed) {
                (_, Outcome { out: true, said }) => {
                    wrong.push(format!("{name} got out: {command}\n{said}"));
                }
                (Outcome { out: true, .. }, _) => stopped += 1,
                (Outcome { said, .. }, _) if words(needs).any(|need| need == MAYBE) => {
                    skipped.push(format!("{name} (not here: {})", said.trim()));
                }
                (Outcome { said, .. }, _) => wrong.push(format!(
                    "{name} is no way out without the sandbox either: {command}\n{said}"
                )),
            }
        }
        println!(
            "{table}, as {who:?}: {} tricks, {stopped} stopped",
            tricks.len()
        );
        for row in skipped {
            println!("  skipped: {row}");
        }
        assert!(wrong.is_empty(), "as {who:?}:\n{}", wrong.join("\n"));
        assert!(stopped > 0, "nothing was tried");
    }
}

/// What one trick says.
pub(super) fn said(trick: Trick, who: Who, sandboxed: bool) -> String {
    let mut said = run(&[trick], who, sandboxed, &mut |_: &Left| false);
    said.remove(0).said
}

/// The tricks that can be tried here, and why the others cannot.
fn possible<'t>(tricks: &[Trick<'t>], who: Who) -> (Vec<Trick<'t>>, Vec<String>) {
    let (mut tried, mut skipped) = (Vec::new(), Vec::new());
    for trick in tricks {
        let lacking = words(trick.1).find(|need| match *need {
            ROOT => !who.is_root(),
            MAYBE => false,
            program => !is_there(program),
        });
        match lacking {
            None => tried.push(*trick),
            Some(lacking) => skipped.push(format!("{} (no {lacking})", trick.0)),
        }
    }
    (tried, skipped)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

struct Outcome {
    out: bool,
    said: String,
}

/// Each in its own folder, and none for longer than it should take.
const ALL: &str = "for row in rows/*; do
    (cd $row; exec timeout -k 1 20 bash ./trick) > said/${row#rows/} 2>&1 < /dev/null
done";

/// Runs the tricks one after the other, and looks what came of them when all have run.
fn run(tricks: &[Trick], who: Who, sandboxed: bool, goal: &mut impl Goal) -> Vec<Outcome> {
    let folder = TempDir::new().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("it exists");
    let [workspace, home, outside] = ["workspace", "home", "outside"].map(|name| root.join(name));
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    // Whoever tries it may not be able to reach where it was built.
    let helper = root.join("helper");
    fs::copy(HELPER, &helper).expect("a helper");
    write(home.join(".ssh/id"), CANARY);
    fs::create_dir_all(workspace.join("said")).expect("a folder");
    for (name, _, command) in tricks {
        let own = outside.join(name);
        write(own.join("precious"), "precious\n");
        write(own.join("folder/inner"), "inner\n");
        write(own.join("vault/id"), CANARY);
        fs::create_dir(own.join("empty")).expect("a folder");
        let command = goal.prepare(name, command, who);
        let command = fill(&command, &[("{vault}", &own.join("vault"))]);
        let places = [
            ("{outside}", &own),
            ("{home}", &home),
            ("{helper}", &helper),
        ];
        write(
            workspace.join("rows").join(name).join("trick"),
            &fill(&command, &places),
        );
    }
    if who == Who::Ordinary {
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("ours");
        let mut give = Command::new("chown");
        let given = give.args(["-R", NOBODY]).arg(&root).status();
        assert!(given.expect("chown").success());
    }
    let before: Vec<Tree> = tricks
        .iter()
        .map(|row| tree(&outside.join(row.0)))
        .collect();
    let mut command = if sandboxed {
        let input = json!({"command": ALL, "timeout": 300}).to_string();
        let mut command = who.command(&helper);
        command.args(["sandboxed", &input]).arg(&home);
        command.args(tricks.iter().map(|row| outside.join(row.0).join("vault")));
        command
    } else {
        let mut command = who.command("bash");
        command.args(["-c", ALL]);
        command
    };
    let ran = command.current_dir(&workspace).output().expect("a shell");
    let left = tricks.iter().zip(before).map(|((name, ..), before)| {
        let said = fs::read(workspace.join("said").join(name)).unwrap_or_else(|_| {
            panic!("{name} was not tried: {ran:?}");
        });
        let left = Left {
            name: (*name).to_owned(),
            changed: tree(&outside.join(name)) != before,
            said: String::from_utf8_lossy(&said).into_owned(),
            folder: workspace.join("rows").join(name),
        };
        let out = goal.got_out(&left);
        Outcome {
            out,
            said: left.said,
        }
    });
    left.collect()
}

fn fill(text: &str, places: &[(&str, &PathBuf)]) -> String {
    places.iter().fold(text.to_owned(), |text, (name, path)| {
        text.replace(name, &path.display().to_string())
    })
}

/// What is in a folder: kinds of files and what is in them. Modes, owners and times are not kept
/// from commands.
type Tree = BTreeMap<PathBuf, String>;

fn tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    add(folder, &mut tree);
    tree
}

fn add(path: &Path, tree: &mut Tree) {
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    let kind = found.file_type();
    let content = match () {
        () if kind.is_file() => fs::read(path).map(|bytes| format!("{bytes:?}")),
        () if kind.is_symlink() => fs::read_link(path).map(|to| format!("{}", to.display())),
        () => Ok(String::new()),
    };
    tree.insert(path.to_owned(), format!("{kind:?} {content:?}"));
    if kind.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add(&entry.path(), tree);
        }
    }
}
