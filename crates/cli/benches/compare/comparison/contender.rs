//! Who is compared: which programs there are, and whether they run.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{
    agents::{Agent, Claude, Codex, OpenCode, Ours, Pi},
    figures::say,
    options::Options,
    place::Place,
    run::{Play, Stage},
    sampler::Watch,
    script,
    tables::machine,
};

const OURS: &str = "asyncagents";

/// An agent in a way to be measured.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) agent: Box<dyn Agent>,
    pub(crate) place: Rc<Place>,
    kind: Kind,
}

/// In which tables it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// As its users have it: in all of them.
    Usual,
    /// Only where steps are measured.
    WithoutSandbox,
    /// Only where sub-agents are measured.
    Background,
}

/// All of them, and who could not be had.
pub(crate) struct Contenders {
    all: Vec<Contender>,
    versions: Vec<(&'static str, String)>,
    left_out: Vec<(&'static str, String)>,
}

/// An agent, and its ways to be measured.
struct Known {
    key: &'static str,
    ways: Vec<(&'static str, Kind, Box<dyn Agent>)>,
}

fn known() -> Vec<Known> {
    fn way(
        name: &'static str,
        kind: Kind,
        agent: impl Agent + 'static,
    ) -> (&'static str, Kind, Box<dyn Agent>) {
        (name, kind, Box::new(agent))
    }
    use Kind::{Background, Usual, WithoutSandbox};
    let ours = vec![
        way("asyncagents", Usual, Ours { sandbox: true }),
        way(
            "asyncagents, sandbox off",
            WithoutSandbox,
            Ours { sandbox: false },
        ),
    ];
    let codex = vec![
        way("Codex", Usual, Codex { sandbox: true }),
        way(
            "Codex, sandbox off",
            WithoutSandbox,
            Codex { sandbox: false },
        ),
    ];
    let claude = vec![
        way("Claude Code", Usual, Claude { background: false }),
        way(
            "Claude Code, background agents",
            Background,
            Claude { background: true },
        ),
    ];
    let opencode = vec![way("OpenCode", Usual, OpenCode)];
    let pi = vec![way("pi", Usual, Pi)];
    let keys = [OURS, "codex", "claude", "opencode", "pi"];
    let ways = [ours, codex, claude, opencode, pi];
    let pairs = keys.into_iter().zip(ways);
    pairs.map(|(key, ways)| Known { key, ways }).collect()
}

impl Contenders {
    /// Those that are wanted, installed, and answer a prompt.
    pub(crate) fn find(options: &Options, stage: &Stage) -> Result<Self> {
        let mut found = Self {
            all: Vec::new(),
            versions: Vec::new(),
            left_out: Vec::new(),
        };
        for known in known() {
            let key = known.key;
            let ours = key == OURS;
            if !ours && !options.wants(key) {
                continue;
            }
            match found.add(known, stage) {
                Ok(()) => {}
                // Without ourselves there is nothing to compare.
                Err(error) if ours => return Err(error),
                Err(error) => {
                    say(&format!("!!! {key} IS LEFT OUT: {error:#}"));
                    found.left_out.push((key, format!("{error:#}")));
                }
            }
        }
        Ok(found)
    }

    fn add(&mut self, known: Known, stage: &Stage) -> Result<()> {
        let program = program(known.key)?;
        let place = Rc::new(Place::new(stage.folder().join(known.key))?);
        let mut version = stage.version(&program, &place)?;
        if known.key == OURS {
            version.extend(commit().map(|commit| format!(" ({commit})")));
        }
        let contenders = known.ways.into_iter().map(|(name, kind, agent)| Contender {
            name,
            program: program.clone(),
            agent,
            place: Rc::clone(&place),
            kind,
        });
        let contenders: Vec<Contender> = contenders.collect();
        for contender in &contenders {
            // The first start makes databases and caches, and may take its time.
            let hello = Play {
                prompts: vec!["Say hello.".to_owned()],
                script: script::answer(),
                watch: Watch::Not,
                patience: Duration::from_secs(120),
            };
            say(&format!("{} {version}: first start", contender.name));
            stage.play(contender, hello).context(contender.name)?;
        }
        self.versions.push((known.key, version));
        self.all.extend(contenders);
        Ok(())
    }

    /// Everybody, as users have them.
    pub(crate) fn usual(&self) -> Vec<&Contender> {
        self.of(&[Kind::Usual])
    }

    pub(crate) fn for_steps(&self) -> Vec<&Contender> {
        self.of(&[Kind::Usual, Kind::WithoutSandbox])
    }

    pub(crate) fn for_sub_agents(&self) -> Vec<&Contender> {
        self.of(&[Kind::Usual, Kind::Background])
    }

    fn of(&self, kinds: &[Kind]) -> Vec<&Contender> {
        let wanted = |contender: &&Contender| kinds.contains(&contender.kind);
        self.all.iter().filter(wanted).collect()
    }

    /// Who takes part, in which version, and on which machine.
    pub(crate) fn shown(&self, options: &Options) -> Result<String> {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(key, version)| format!("{key} {version}"))
            .collect();
        let mut text = format!("{}.\n\n{}\n", versions.join(", "), machine()?);
        for (key, why) in &self.left_out {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "\n**Left out: {key}**, {why}");
        }
        let _ = writeln!(
            text,
            "\nOne scripted model on loopback; agents in turns, the shortest runs {} times. Medians, the best \
             in brackets; processor time is user and system of all processes, mean.",
            options.rounds(1)
        );
        Ok(text)
    }
}

/// What of this repository is measured, if git can say it.
fn commit() -> Option<String> {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()?;
    let commit = String::from_utf8(described.stdout).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| !commit.is_empty())
}

/// Where `scripts/compare` has put it.
fn program(key: &str) -> Result<PathBuf> {
    if key == OURS {
        return Ok(env!("CARGO_BIN_EXE_asyncagents").into());
    }
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let program = peers.join(key).join("program");
    // Some look at the name by which they were started.
    match program.canonicalize() {
        Ok(program) => Ok(program),
        Err(_) => {
            bail!("it is not installed; `scripts/compare` does that, and says what went wrong")
        }
    }
}
