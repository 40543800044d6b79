//! `asyncagents setup agents`: what other agents are driven by. npm and Node.js are scripts, but for one
//! story.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use super::{Home, Said};

/// A Node.js of a version.
fn node(version: &str) -> String {
    format!("#!/bin/sh\necho {version}\n")
}

/// An npm that says where and how it was called, and installs a script of each program.
const NPM: &str = r##"#!/bin/sh
{ echo "npm $*"; echo "in $(basename "$(dirname "$PWD")")"; echo "PATH $PATH"; } >>"$HOME/npm.log"
mkdir -p node_modules/.bin
for program in claude-agent-acp codex-acp gemini; do
  if grep -q "$program\|gemini-cli" package.json; then
    printf '#!/usr/bin/env node\n' >node_modules/.bin/$program
    chmod 755 node_modules/.bin/$program
  fi
done
"##;

/// A user who has these programs.
struct User {
    home: Home,
}

impl User {
    fn new(programs: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let user = Self { home };
        for (name, text) in programs {
            user.program(&format!("bin/{name}"), text);
        }
        user
    }

    /// One with a Node.js that is new enough, and npm.
    fn with_npm(npm: &str) -> Self {
        Self::new(&[("node", &node("v24.21.0")), ("npm", npm)])
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let file = self.home.path(name);
        self.home.write(&file, text);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
        file
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.setup_of("agents");
        let bin = self.home.path("bin");
        command
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("XDG_DATA_HOME", self.home.path("data"))
            .args(args);
        command
    }

    fn setup(&self, args: &[&str]) -> Said {
        // What the machine has of agents, npm and Node.js must not be found: only these two are.
        let mut command = self.command(args);
        let tools = self.home.path("tools");
        fs::create_dir_all(&tools).expect("a folder");
        for tool in [
            "sh", "echo", "mkdir", "chmod", "grep", "basename", "dirname", "sleep",
        ] {
            let real = [Path::new("/bin"), Path::new("/usr/bin")].map(|folder| folder.join(tool));
            let real = real.iter().find(|program| program.exists()).expect(tool);
            let _ = symlink(real, tools.join(tool));
        }
        let path = format!("{}:{}", self.home.path("bin").display(), tools.display());
        Said::of(command.env("PATH", path))
    }

    fn installed(&self, name: &str) -> PathBuf {
        self.home.path("data/asyncagents/agents").join(name)
    }

    /// All that is in the folder of what was installed.
    fn folders(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.installed("")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.expect("read").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }

    /// What the user is shown, without where this test is.
    fn shown(&self, said: &Said) -> String {
        let home = self.home.path("").display().to_string();
        let home = home.trim_end_matches('/');
        let text = format!("{}\n--\n{}", said.answer, said.remarks);
        format!(
            "exit code {:?}\n{}",
            said.code.unwrap_or(-1),
            text.replace(home, "~")
        )
    }
}

#[test]
fn one_that_is_named_is_installed_checked_and_removed() {
    let user = User::with_npm(NPM);
    let said = user.setup(&["codex"]);
    insta::assert_snapshot!("setup-agents-installed", user.shown(&said));
    assert_eq!(user.folders(), ["codex-2.6.0"]);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&user.installed("")), 0o700);
    assert_eq!(mode(&user.installed("codex-2.6.0")), 0o700);
    let log = fs::read_to_string(user.home.path("npm.log")).expect("npm was called");
    let called = "npm ci --ignore-scripts --include=optional --no-audit --no-fund \
                  --no-update-notifier\nin agents\n";
    assert!(log.starts_with(called), "{log}");

    let again = user.setup(&["codex"]);
    insta::assert_snapshot!("setup-agents-installed-already", user.shown(&again));
    let calls = fs::read_to_string(user.home.path("npm.log")).expect("read");
    assert_eq!(calls.matches("npm ci").count(), 1, "{calls}");

    let check = user.setup(&["codex", "--check"]);
    insta::assert_snapshot!("setup-agents-check-one", user.shown(&check));
    let check = user.setup(&["--check"]);
    insta::assert_snapshot!("setup-agents-check-all", user.shown(&check));

    let removed = user.setup(&["codex", "--remove"]);
    insta::assert_snapshot!("setup-agents-removed", user.shown(&removed));
    assert!(user.folders().is_empty(), "{:?}", user.folders());
    let again = user.setup(&["--remove"]);
    insta::assert_snapshot!("setup-agents-nothing-to-remove", user.shown(&again));
}

#[test]
fn without_a_name_it_is_what_drives_the_agents_that_are_here() {
    let user = User::with_npm(NPM);
    let nobody = user.setup(&[]);
    insta::assert_snapshot!("setup-agents-no-agent-here", user.shown(&nobody));
    user.program("bin/claude", "#!/bin/sh\n");
    let alone = user.setup(&["claude", "--check"]);
    insta::assert_snapshot!("setup-agents-check-claude-alone", user.shown(&alone));
    assert_eq!(user.setup(&[]).code, Some(0));
    assert_eq!(user.folders(), ["claude-0.99.1"]);
    let again = user.setup(&[]);
    insta::assert_snapshot!("setup-agents-nothing-is-missing", user.shown(&again));
}

#[test]
fn what_is_missing_or_unknown_is_said_in_a_sentence() {
    let nothing = User::new(&[]);
    let all = [
        nothing.shown(&nothing.setup(&["claude"])),
        nothing.shown(&nothing.setup(&["--check"])),
        nothing.shown(&nothing.setup(&["opencode"])),
        nothing.shown(&nothing.setup(&["cursor"])),
    ];
    insta::assert_snapshot!("setup-agents-nothing-is-there", all.join("\n====\n"));
    assert!(nothing.folders().is_empty());

    let old = User::new(&[("node", &node("v20.20.2")), ("npm", NPM)]);
    old.program("bin/codex-acp", "#!/usr/bin/env node\n");
    let all = [
        old.shown(&old.setup(&["claude"])),
        old.shown(&old.setup(&["codex", "--check"])),
    ];
    insta::assert_snapshot!("setup-agents-old-node", all.join("\n====\n"));
    assert!(old.folders().is_empty());

    let without = User::new(&[("node", &node("v24.21.0"))]);
    insta::assert_snapshot!(
        "setup-agents-no-npm",
        without.shown(&without.setup(&["claude"]))
    );
}

/// What npm leaves behind when it fails is not taken for the program, and the next one succeeds.
#[test]
fn what_npm_could_not_finish_is_not_there() {
    let failing = "#!/bin/sh\nmkdir -p node_modules/.bin\necho 'no network' >&2\nexit 7\n";
    let user = User::with_npm(failing);
    let said = user.setup(&["claude"]);
    insta::assert_snapshot!("setup-agents-npm-fails", user.shown(&said));
    assert!(user.folders().is_empty(), "{:?}", user.folders());
    // It says that it has done it, and has not.
    user.program("bin/npm", "#!/bin/sh\n");
    let said = user.setup(&["claude"]);
    insta::assert_snapshot!("setup-agents-npm-installs-nothing", user.shown(&said));
    assert!(user.folders().is_empty(), "{:?}", user.folders());
    user.program("bin/npm", NPM);
    assert_eq!(user.setup(&["claude"]).code, Some(0));
    assert_eq!(user.folders(), ["claude-0.99.1"]);
}

/// An older version, one by another lock file, and what a process left that was killed: all go.
#[test]
fn what_was_there_before_is_replaced() {
    let user = User::with_npm(NPM);
    let old = user.installed("codex-2.5.0/package-lock.json");
    user.home.write(&old, "{}");
    let other = user.installed("codex-2.6.0/package-lock.json");
    user.home.write(&other, "{}");
    let left = user.installed(".tmp-x/package.json");
    user.home.write(&left, "{}");
    let another = user.installed("codexical-1/package.json");
    user.home.write(&another, "{}");
    assert_eq!(user.setup(&["codex"]).code, Some(0));
    assert_eq!(user.folders(), ["codex-2.6.0", "codexical-1"]);
    assert!(fs::read_to_string(&other).expect("read").len() > 1_000);
}

/// A folder that others can write may have anything in it.
#[test]
fn a_copy_that_others_can_change_is_not_used() {
    let user = User::with_npm(NPM);
    assert_eq!(user.setup(&["codex"]).code, Some(0));
    let folder = user.installed("codex-2.6.0");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("set");
    let said = user.setup(&["codex", "--check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    // A link to a folder that is as it should be.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("set");
    assert_eq!(user.setup(&["codex", "--check"]).code, Some(0));
    fs::rename(&folder, user.home.path("elsewhere")).expect("moved");
    symlink(user.home.path("elsewhere"), &folder).expect("a link");
    let said = user.setup(&["codex", "--check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
}

/// A project cannot bring npm, Node.js or an adapter, however the PATH leads there.
#[test]
fn nothing_of_the_project_is_run() {
    let user = User::with_npm(NPM);
    let evil = "#!/bin/sh\ntouch \"$HOME/evil\"\necho v24.0.0\n";
    for folder in ["tools", "node_modules/.bin"] {
        for name in ["npm", "node", "claude-agent-acp", "claude"] {
            user.program(&format!("project/{folder}/{name}"), evil);
        }
    }
    // Nor is what a link of the user's leads to.
    fs::create_dir_all(user.home.path("linked")).expect("a folder");
    for name in ["npm", "node", "claude-agent-acp"] {
        let program = user.home.path(&format!("project/tools/{name}"));
        symlink(program, user.home.path(&format!("linked/{name}"))).expect("a link");
    }
    let mut path = vec![PathBuf::from("tools"), PathBuf::from(".")];
    path.push(user.home.path("linked"));
    path.push(user.home.path("project/tools"));
    path.push(user.home.path("project/node_modules/.bin"));
    path.push(user.home.path("bin"));
    path.extend(["/usr/bin", "/bin"].map(PathBuf::from));
    let path = std::env::join_paths(path).expect("a path");
    for args in [&["claude"][..], &["claude", "--check"]] {
        let said = Said::of(user.command(args).env("PATH", &path));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(!said.answer.contains("project"), "{said:?}");
    }
    assert!(!user.home.path("evil").exists());
    // Nor does npm find any of it.
    let log = fs::read_to_string(user.home.path("npm.log")).expect("npm was called");
    let path = log
        .lines()
        .find(|line| line.starts_with("PATH"))
        .expect("said");
    assert!(
        !path.contains("project") && !path.contains("tools"),
        "{path}"
    );
}

/// Two at once: one waits for the other, and both succeed.
#[test]
fn two_at_once_install_it_once() {
    let slow = NPM.replace("mkdir", "sleep 0.3; mkdir");
    let user = User::with_npm(&slow);
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| user.setup(&["codex"]));
        let two = scope.spawn(|| user.setup(&["codex"]));
        (one.join().expect("ran"), two.join().expect("ran"))
    });
    assert_eq!((one.code, two.code), (Some(0), Some(0)), "{one:?} {two:?}");
    assert_eq!(user.folders(), ["codex-2.6.0"]);
    let calls = fs::read_to_string(user.home.path("npm.log")).expect("read");
    assert_eq!(calls.matches("npm ci").count(), 1, "{calls}");
}

/// With the real npm: what is installed answers. `scripts/acp-for-tests` has fetched the Node.js, and
/// npm has what it needs in its cache since then.
#[test]
fn the_real_npm_installs_what_answers() {
    let test = std::thread::current();
    let skip = |why: &str| {
        // Past the test's own capture, so that `scripts/test` counts it, and on a line of its own.
        let name = test.name().unwrap_or_default();
        let line = format!("\nskipped: {name}: {why}\n");
        let _ = io::stderr().write_all(line.as_bytes());
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let repository = repository.expect("the repository");
    let fetched = Command::new(repository.join("scripts/acp-for-tests")).status();
    assert!(fetched.expect("the script runs").success());
    let node = repository.join("target/acp-for-tests/node");
    let npm = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("npm"))
        .find(|npm| npm.exists());
    let (true, Some(npm)) = (node.exists(), npm) else {
        return skip("there is no npm, or no Node.js that is new enough");
    };
    let user = User::new(&[]);
    fs::create_dir_all(user.home.path("bin")).expect("a folder");
    symlink(node, user.home.path("bin/node")).expect("a link");
    symlink(npm, user.home.path("bin/npm")).expect("a link");
    let mut command = user.command(&["gemini"]);
    for (name, value) in std::env::vars_os() {
        let lower = name.to_string_lossy().to_lowercase();
        if lower.starts_with("npm_config") || lower.ends_with("_proxy") || lower.contains("_ca") {
            command.env(name, value);
        }
    }
    let said = Said::of(&mut command);
    if said.code != Some(0) && said.remarks.contains("npm could not install it") {
        eprintln!("{said:?}");
        return skip("npm's registry cannot be reached");
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    let program = user.installed("gemini-0.61.0/node_modules/.bin/gemini");
    let mut command = Command::new(user.home.path("bin/node"));
    command
        .arg(program)
        .arg("--version")
        .env("HOME", user.home.path(""));
    let answered = command.output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&answered.stdout).trim(), "0.61.0");
    assert_eq!(user.setup(&["gemini", "--remove"]).code, Some(0));
    assert!(user.folders().is_empty());
}
