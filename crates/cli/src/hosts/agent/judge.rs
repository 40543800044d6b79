//! The user's rules, applied to what another agent asks.

use std::{
    iter,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    agent::{Kind, Permissions, Rule, Verdict as Ruled},
    lock::lock,
};
use asyncagents_hosts::agent::{AskedCall, Judge, Verdict};
use asyncagents_tools::real_path;

/// Decides by the user's rules, which are about our own tools: a command is one of `bash`.
pub(super) struct Rules {
    /// As the user's files had them when a process of the agent was started last.
    pub(super) permissions: Arc<Mutex<Permissions>>,
    pub(super) folder: PathBuf,
    /// Whether the agent has no tools to read with, only commands.
    pub(super) reads_by_commands: bool,
    /// Whether a sandbox keeps secrets from its commands.
    pub(super) is_sandboxed: bool,
    /// Tools that the agent does not get.
    pub(super) refused: &'static [&'static str],
}

/// Commands that change nothing, as rules. Such a rule lets no option pass that makes more of them.
const READING: [&str; 26] = [
    "bash(cat *)",
    "bash(diff *)",
    "bash(du *)",
    "bash(file *)",
    "bash(find *)",
    "bash(find)",
    "bash(git blame *)",
    "bash(git diff *)",
    "bash(git diff)",
    "bash(git log *)",
    "bash(git log)",
    "bash(git ls-files *)",
    "bash(git ls-files)",
    "bash(git show *)",
    "bash(git status *)",
    "bash(git status)",
    "bash(grep *)",
    "bash(head *)",
    "bash(ls *)",
    "bash(ls)",
    "bash(nl *)",
    "bash(pwd)",
    "bash(rg *)",
    "bash(sed *)",
    "bash(tail *)",
    "bash(wc *)",
];

/// Of how many files each is judged.
const MOST_FILES: usize = 1_000;

/// What joins commands that run one after the other, or into each other.
const JOINING: [char; 3] = ['|', ';', '&'];

/// Whether a command changes nothing: each that it is made of is one of the above.
fn only_reads(command: &str) -> bool {
    let rules = READING.map(|rule| rule.parse::<Rule>());
    let reads = |piece: &str| {
        let mut rules = rules.iter().flatten();
        rules.any(|rule| rule.lets_pass("bash", Kind::Run, piece))
    };
    let pieces = command.split(JOINING).map(str::trim);
    let mut pieces = pieces.filter(|piece| !piece.is_empty()).peekable();
    pieces.peek().is_some() && pieces.all(reads)
}

impl Judge for Rules {
    /// The strictest of what the rules say about each file, under each of its names.
    fn judge(&self, call: &AskedCall) -> Verdict {
        // Nobody looks through so many files.
        if call.also.len() > MOST_FILES {
            return Verdict::AskEach;
        }
        let targets = iter::once(&call.target).chain(&call.also);
        let targets = targets.flat_map(|target| self.names_of(call, target));
        let permissions = lock(&self.permissions).clone();
        let each = targets.map(|target| self.judge_one(&permissions, call, &target));
        each.fold(Verdict::Allow, |strictest, next| match (strictest, next) {
            (Verdict::Deny(why), _) | (_, Verdict::Deny(why)) => Verdict::Deny(why),
            (Verdict::AskEach, _) | (_, Verdict::AskEach) => Verdict::AskEach,
            (Verdict::Ask, _) | (_, Verdict::Ask) => Verdict::Ask,
            (Verdict::Allow, Verdict::Allow) => Verdict::Allow,
        })
    }

    fn only_reads(&self, call: &AskedCall) -> bool {
        match call.kind {
            Some(Kind::Read) => true,
            Some(Kind::Run) => self.reads_by_commands && call.is_exact && only_reads(&call.target),
            Some(Kind::Edit | Kind::Note) | None => false,
        }
    }
}

impl Rules {
    /// What a call is about: as it is said, and where links lead from there. Those of a project may lead
    /// anywhere.
    fn names_of(&self, call: &AskedCall, target: &str) -> Vec<String> {
        let mut names = vec![target.to_owned()];
        let is_path = matches!(call.kind, Some(Kind::Edit | Kind::Read)) && call.is_exact;
        if let Some(said) = in_full(&self.folder, target).filter(|_| is_path) {
            // Some take detours away before they follow links.
            let leads = [Path::new(&said), &self.folder.join(target)].map(real_path);
            // One that leads nowhere has no name.
            let names_of_leads = leads.map(|path| {
                let path = path
                    .ok()
                    .and_then(|path| path.into_os_string().into_string().ok());
                path.unwrap_or_default()
            });
            names.extend(names_of_leads);
        }
        names
    }

    fn judge_one(&self, permissions: &Permissions, call: &AskedCall, target: &str) -> Verdict {
        // They ask for themselves, where there is something to ask for.
        if call.is_ours {
            return Verdict::Allow;
        }
        if self.refused.contains(&&*call.tool) {
            return Verdict::Deny(format!("`{}` may not be used here", call.tool));
        }
        // Words about it are no command and no path: only what is said of the tool as a whole counts.
        let target = if call.is_exact { target } else { "" };
        let (tool, kind) = match call.kind {
            Some(Kind::Run) => ("bash", Kind::Run),
            Some(Kind::Edit) => ("edit", Kind::Edit),
            Some(Kind::Read) => ("read", Kind::Read),
            Some(Kind::Note) | None => (call.tool.as_str(), Kind::Run),
        };
        let is_path = matches!(kind, Kind::Edit | Kind::Read);
        let path = in_full(&self.folder, target);
        let inside = path.as_deref().and_then(|path| inside(&self.folder, path));
        let target = match (&inside, &path) {
            (Some(inside), _) if is_path => inside,
            (None, Some(path)) if is_path => path,
            _ => target,
        };
        let ruled = permissions.judge(tool, kind, target);
        let is_outside = is_path && inside.is_none();
        match ruled {
            // Outside of its folder nothing is free by a mode.
            Ruled::Allow if is_outside && !permissions.frees(tool, kind, target) => {
                Verdict::AskEach
            }
            // What is below has rules of its own, and nobody can leave it out.
            Ruled::Allow
                if kind == Kind::Read
                    && permissions.restrict_reading()
                    && path.as_deref().is_some_and(|path| Path::new(path).is_dir()) =>
            {
                Verdict::AskEach
            }
            // A rule may be about what it does, which is not said.
            Ruled::Allow
                if kind == Kind::Run
                    && !call.is_exact
                    && permissions.restrict(tool)
                    && !permissions.frees(tool, kind, target) =>
            {
                Verdict::AskEach
            }
            Ruled::Allow => Verdict::Allow,
            // Our own agent reads freely with its tools, this one with commands. Which files they read
            // is for a sandbox to say.
            Ruled::Ask { by_rule: false }
                if kind == Kind::Run
                    && self.is_sandboxed
                    && self.only_reads(call)
                    && !permissions.restrict_reading() =>
            {
                Verdict::Allow
            }
            // What is always allowed is what is in its folder.
            Ruled::Ask { by_rule } if by_rule || is_outside => Verdict::AskEach,
            Ruled::Ask { .. } => Verdict::Ask,
            Ruled::Deny(why) => Verdict::Deny(why),
        }
    }
}

/// A path without detours, as all its names are one: rules are about files, however they are written.
fn in_full(folder: &Path, target: &str) -> Option<String> {
    // Some agents take this for the home folder.
    if target.is_empty() || target == "~" || target.starts_with("~/") {
        return None;
    }
    let mut full = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => {
                full.pop();
            }
            Component::CurDir => {}
            part => full.push(part),
        }
    }
    full.into_os_string().into_string().ok()
}

/// A path within the folder, as rules have it.
fn inside(folder: &Path, path: &str) -> Option<String> {
    let inside = Path::new(path).strip_prefix(folder).ok()?;
    let inside = inside.to_str()?;
    (!inside.is_empty()).then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use asyncagents_core::agent::Mode;

    use super::*;

    fn shared(permissions: Permissions) -> Arc<Mutex<Permissions>> {
        Arc::new(Mutex::new(permissions))
    }

    fn call(kind: Kind, target: &str) -> AskedCall {
        AskedCall {
            tool: "theirs".to_owned(),
            kind: Some(kind),
            target: target.to_owned(),
            is_exact: true,
            also: Vec::new(),
            is_ours: false,
            details: String::new(),
        }
    }

    #[test]
    fn rules_about_our_tools_hold_for_theirs() {
        let rules = Rules {
            permissions: shared(Permissions {
                allow: vec![
                    "bash(cargo test*)".parse().expect("a rule"),
                    "read(/usr/share/*)".parse().expect("a rule"),
                ],
                ask: vec!["edit(Cargo.toml)".parse().expect("a rule")],
                deny: vec!["edit(secret/*)".parse().expect("a rule")],
                ..Permissions::default()
            }),
            folder: "/project".into(),
            reads_by_commands: false,
            is_sandboxed: true,
            refused: &["mcp__summon__delegate"],
        };
        let judged = |kind, target| rules.judge(&call(kind, target));
        assert_eq!(judged(Kind::Run, "cargo test --lib"), Verdict::Allow);
        assert_eq!(judged(Kind::Run, "rm -rf /"), Verdict::Ask);
        assert_eq!(judged(Kind::Read, "/project/src/lib.rs"), Verdict::Allow);
        assert_eq!(judged(Kind::Read, "/home/me/.ssh/id"), Verdict::AskEach);
        assert_eq!(judged(Kind::Read, "/usr/share/dict"), Verdict::Allow);
        assert_eq!(
            judged(Kind::Read, "/usr/share/../../etc/passwd"),
            Verdict::AskEach
        );
        assert_eq!(
            judged(Kind::Read, "/project/../etc/passwd"),
            Verdict::AskEach
        );
        assert_eq!(judged(Kind::Edit, "/home/me/.profile"), Verdict::AskEach);
        assert_eq!(judged(Kind::Edit, "/project/Cargo.toml"), Verdict::AskEach);
        assert_eq!(
            judged(Kind::Edit, "/project/.git/hooks/x"),
            Verdict::AskEach
        );
        assert_eq!(judged(Kind::Edit, "/project/src/lib.rs"), Verdict::Ask);
        for path in [
            "/project/secret/key",
            "secret/key",
            "./secret/key",
            "src/../secret/key",
            "src//..//secret/./key",
            "/project/src/../secret/key",
        ] {
            let denied = judged(Kind::Edit, path);
            assert!(matches!(denied, Verdict::Deny(_)), "{path}: {denied:?}");
        }
        for path in ["src/../../home/.bashrc", "~/.bashrc", "..", ""] {
            assert_eq!(judged(Kind::Edit, path), Verdict::AskEach, "{path}");
        }
        let patch = AskedCall {
            also: vec![
                "/project/src/a".to_owned(),
                "/project/secret/key".to_owned(),
            ],
            ..call(Kind::Edit, "/project/src/a")
        };
        assert!(
            matches!(rules.judge(&patch), Verdict::Deny(_)),
            "each file counts"
        );
        // A title is what a model has written.
        for (kind, title) in [
            (Kind::Run, "cargo test --lib"),
            (Kind::Read, "Read /etc/shadow"),
            (Kind::Edit, "src/a"),
        ] {
            let titled = AskedCall {
                is_exact: false,
                ..call(kind, title)
            };
            let judged = rules.judge(&titled);
            assert!(
                matches!(judged, Verdict::Ask | Verdict::AskEach),
                "{title}: {judged:?}"
            );
        }
        let unknown = AskedCall {
            kind: None,
            ..call(Kind::Note, "https://example.com")
        };
        assert_eq!(rules.judge(&unknown), Verdict::Ask);
        let refused = AskedCall {
            tool: "mcp__summon__delegate".to_owned(),
            ..unknown.clone()
        };
        let refused = rules.judge(&refused);
        assert!(matches!(refused, Verdict::Deny(_)), "{refused:?}");
        let ours = AskedCall {
            is_ours: true,
            ..unknown
        };
        assert_eq!(rules.judge(&ours), Verdict::Allow);
    }

    /// A project may have links that lead out of it, or to files that are asked about.
    #[test]
    fn a_link_is_what_it_leads_to() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path().canonicalize()?;
        let project = home.join("project");
        fs::create_dir_all(project.join("docs"))?;
        fs::write(home.join("key"), "")?;
        fs::write(project.join("AGENTS.md"), "")?;
        symlink("../AGENTS.md", project.join("docs/todo.md"))?;
        symlink(&home, project.join("out"))?;
        symlink(".git/hooks/pre-commit", project.join("new"))?;
        symlink("round", project.join("round"))?;
        let rules = Rules {
            permissions: shared(Permissions {
                mode: Mode::AutoEdit,
                ..Permissions::default()
            }),
            folder: project,
            reads_by_commands: false,
            is_sandboxed: true,
            refused: &[],
        };
        assert_eq!(
            rules.judge(&call(Kind::Edit, "docs/plan.md")),
            Verdict::Allow
        );
        assert_eq!(
            rules.judge(&call(Kind::Edit, "docs/../plan.md")),
            Verdict::Allow
        );
        for path in ["docs/todo.md", "new", "out/key", "out/../key", "round"] {
            let judged = rules.judge(&call(Kind::Edit, path));
            assert_eq!(judged, Verdict::AskEach, "{path}");
        }
        for path in ["out/key", "out"] {
            let judged = rules.judge(&call(Kind::Read, path));
            assert_eq!(judged, Verdict::AskEach, "{path}");
        }
        Ok(())
    }

    #[test]
    fn rules_about_reading_hold_for_searches_and_commands_too() -> std::io::Result<()> {
        let project = tempfile::tempdir()?;
        fs::create_dir(project.path().join("src"))?;
        fs::write(project.path().join("src/lib.rs"), "")?;
        let rules = Rules {
            permissions: shared(Permissions {
                deny: vec!["read(.env)".parse().expect("a rule")],
                ..Permissions::default()
            }),
            folder: project.path().canonicalize()?,
            reads_by_commands: true,
            is_sandboxed: true,
            refused: &[],
        };
        let judged = |kind, target| rules.judge(&call(kind, target));
        assert!(matches!(judged(Kind::Read, ".env"), Verdict::Deny(_)));
        assert_eq!(judged(Kind::Read, "src/lib.rs"), Verdict::Allow);
        assert_eq!(judged(Kind::Read, "src"), Verdict::AskEach);
        assert_eq!(judged(Kind::Read, ""), Verdict::AskEach);
        assert_eq!(judged(Kind::Run, "cat .e*"), Verdict::Ask);
        Ok(())
    }

    #[test]
    fn an_agent_that_reads_by_commands_reads_freely() {
        let mut rules = Rules {
            permissions: shared(Permissions {
                ask: vec!["bash(git log *)".parse().expect("a rule")],
                deny: vec!["bash(cat secret*)".parse().expect("a rule")],
                ..Permissions::default()
            }),
            folder: "/project".into(),
            reads_by_commands: true,
            is_sandboxed: true,
            refused: &[],
        };
        for (command, is_free) in [
            ("ls", true),
            ("cat src/lib.rs", true),
            ("sed -n '1,200p' src/lib.rs", true),
            ("rg -n \"fn main\" src | head -20", true),
            ("git status && git diff", true),
            ("cat a > b", false),
            ("cat $(rm -rf x)", false),
            ("rg --pre ./x y", false),
            ("find . -delete", false),
            ("sed -i s/a/b/ x", false),
            ("sed -n 'w x' y", false),
            ("git diff --output=x", false),
            ("git push", false),
            ("ls; touch x", false),
            ("ls\ntouch x", false),
            ("", false),
            ("|", false),
            ("git log -3", false),
        ] {
            let judged = rules.judge(&call(Kind::Run, command)) == Verdict::Allow;
            assert_eq!(judged, is_free, "{command}");
        }
        let denied = rules.judge(&call(Kind::Run, "ls && cat secret.txt"));
        assert!(matches!(denied, Verdict::Deny(_)), "{denied:?}");
        // Without a sandbox it would read the keys of its user.
        rules.is_sandboxed = false;
        assert_eq!(rules.judge(&call(Kind::Run, "ls")), Verdict::Ask);
        (rules.is_sandboxed, rules.reads_by_commands) = (true, false);
        assert_eq!(rules.judge(&call(Kind::Run, "ls")), Verdict::Ask);
    }
}
