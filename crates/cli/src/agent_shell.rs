//! Whether this command runs in the shell of an agent: then a model has typed it, not a person.
//!
//! The environment tells, and so do the chain of processes above this one and the leaders of its
//! group and session, with the environment that each of them was started with: unsetting a variable
//! is not enough to look like a person. On systems without `/proc` only the environment of this process is known.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::Path,
};

use asyncagents_core::id::SessionId;
use asyncagents_hosts::agent::CHILD_VARIABLE;
use asyncagents_tools::SESSION_VARIABLE;

/// The agent in whose shell this command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentShell {
    /// As people call it.
    pub(crate) agent: &'static str,
    /// The session that called the shell, if it is one of the built-in agent's. Only the system's
    /// list of processes tells: a command can set a variable to any session.
    pub(crate) session: Option<SessionId>,
}

/// The agent around this process, if there is one.
pub(crate) fn around() -> Option<AgentShell> {
    let variables: Vec<String> = env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    find(&variables, &ancestors(), &leaders())
}

/// Whether this process belongs to a child of another vendor. Some of them give the servers that they start
/// few variables, so those that the processes above this one were started with tell, too.
pub(crate) fn is_in_child() -> bool {
    let is_set = |process: &Process| value(&process.variables, CHILD_VARIABLE).is_some();
    env::var_os(CHILD_VARIABLE).is_some_and(|value| !value.is_empty())
        || ancestors().iter().any(is_set)
}

/// The verb that our own bash tool runs commands with.
const OWN_SHELL: &str = "sandbox-exec";

const OURS: &str = "asyncagents";

/// Variables that agents set in their shells. Those that people set to configure an agent are not
/// among them.
const VARIABLES: &[(&str, &str)] = &[
    (SESSION_VARIABLE, OURS),
    (CHILD_VARIABLE, OURS),
    ("CLAUDECODE", "Claude Code"),
    ("CLAUDE_CODE_ENTRYPOINT", "Claude Code"),
    ("OPENCODE", "OpenCode"),
    ("OPENCODE_PID", "OpenCode"),
    ("OPENCODE_TERMINAL", "OpenCode"),
    ("CODEX_SANDBOX", "Codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "Codex"),
    ("CODEX_THREAD_ID", "Codex"),
    ("CODEX_CI", "Codex"),
    ("GEMINI_CLI", "Gemini CLI"),
    ("QWEN_CODE", "Qwen Code"),
    ("GOOSE_TERMINAL", "Goose"),
    ("CURSOR_AGENT", "Cursor"),
    ("COPILOT_CLI", "Copilot"),
    ("COPILOT_AGENT", "Copilot"),
    ("CLINE_ACTIVE", "Cline"),
    ("AUGMENT_AGENT", "Augment"),
    ("CRUSH", "Crush"),
    ("AMP_CURRENT_THREAD_ID", "Amp"),
    ("KILO_PID", "Kilo"),
    ("PI_CODING_AGENT", "Pi"),
    ("TRAE_AI_SHELL_ID", "Trae"),
    ("AI_AGENT", "an agent"),
];

/// The programs of agents, by the beginning of their names up to a `-`, a `.` or a digit.
const PROGRAMS: &[(&str, &str)] = &[
    (OURS, OURS),
    ("opencode", "OpenCode"),
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("qwen", "Qwen Code"),
    ("goose", "Goose"),
    ("goosed", "Goose"),
    ("crush", "Crush"),
    ("amp", "Amp"),
    ("copilot", "Copilot"),
    ("aider", "Aider"),
    ("auggie", "Augment"),
    ("kilo", "Kilo"),
];

/// Programs that run another one, which is their first argument.
const INTERPRETERS: &[&str] = &["node", "bun", "deno", "python", "python3", "bash", "sh"];

/// A process above this one.
#[derive(Debug, Default)]
struct Process {
    /// The file name of its program.
    program: String,
    /// Whether that is the program of this process.
    is_ours: bool,
    /// As it was started.
    words: Vec<String>,
    /// `NAME=value`, as it was started.
    variables: Vec<String>,
}

/// `variables` are this process's own; `above` are the processes above it, the nearest first;
/// `leaders` are those that lead its group and its session.
fn find(variables: &[String], above: &[Process], leaders: &[Process]) -> Option<AgentShell> {
    let by_variable = |variables: &[String]| {
        let mut known = VARIABLES.iter();
        let found = known.find(|(name, _)| value(variables, name).is_some());
        found.map(|(_, agent)| *agent)
    };
    let agent = by_variable(variables).or_else(|| {
        let mut others = above.iter().chain(leaders);
        others.find_map(|process| process.agent().or_else(|| by_variable(&process.variables)))
    })?;
    // What a command has not started itself it cannot change: the outermost is none of its own.
    let mut shells = above.iter().rev().filter(|process| process.is_own_shell());
    let named = shells.find_map(|shell| value(&shell.variables, SESSION_VARIABLE));
    Some(AgentShell {
        agent,
        session: named.map(SessionId::from),
    })
}

impl Process {
    fn agent(&self) -> Option<&'static str> {
        if self.is_ours || self.has_own_verb() {
            return Some(OURS);
        }
        let started = self.words.iter().map(|word| file_name(word));
        // The program's file may have another name than it was called by.
        let mut names: Vec<&str> = started.take(1).chain([&*self.program]).collect();
        let interprets = names.iter().any(|name| INTERPRETERS.contains(name));
        let script = self.words.get(1).filter(|_| interprets);
        names.extend(script.map(|script| file_name(script)));
        names.into_iter().find_map(agent_called)
    }

    /// Anybody can start a process that looks so: it says that there is an agent, not which.
    fn has_own_verb(&self) -> bool {
        self.words.get(1).is_some_and(|verb| verb == OWN_SHELL)
    }

    fn is_own_shell(&self) -> bool {
        self.is_ours && self.has_own_verb()
    }
}

fn agent_called(name: &str) -> Option<&'static str> {
    let end = |c: char| !c.is_ascii_alphabetic();
    let word = name.split(end).next().unwrap_or_default();
    let mut known = PROGRAMS.iter();
    let found = known.find(|(program, _)| *program == word);
    found.map(|(_, agent)| *agent)
}

fn file_name(path: &str) -> &str {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    // A login shell is called `-bash`.
    name.unwrap_or_default().trim_start_matches('-')
}

/// What a variable is set to, if it is not empty.
fn value<'a>(variables: &'a [String], name: &str) -> Option<&'a str> {
    let mut values = variables.iter().filter_map(|variable| {
        let (known, value) = variable.split_once('=')?;
        (known == name && !value.is_empty()).then_some(value)
    });
    values.next()
}

/// A chain that is longer would be a circle.
const MOST_ANCESTORS: usize = 500;

/// The processes above this one, the nearest first, as far as the system shows them.
fn ancestors() -> Vec<Process> {
    let ours = own_program();
    let first = related(Relation::Parent, "self");
    std::iter::successors(first, |process| related(Relation::Parent, process))
        .take(MOST_ANCESTORS)
        .map(|process| read(&process, ours))
        .collect()
}

/// The processes that lead the group and the session of this one. A process whose parent has ended
/// is still in them.
fn leaders() -> Vec<Process> {
    let ours = own_program();
    let own = std::process::id().to_string();
    [Relation::GroupLeader, Relation::SessionLeader]
        .into_iter()
        .filter_map(|relation| related(relation, "self"))
        .filter(|process| *process != own)
        .map(|process| read(&process, ours))
        .collect()
}

fn own_program() -> Option<(u64, u64)> {
    let file = fs::metadata("/proc/self/exe").ok();
    file.map(|file| (file.dev(), file.ino()))
}

#[derive(Debug, Clone, Copy)]
enum Relation {
    Parent,
    GroupLeader,
    SessionLeader,
}

/// The process that is this to another one, if it has one that can be seen.
fn related(relation: Relation, process: &str) -> Option<String> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name before it may have anything in it, brackets too.
    let (_, behind) = stat.rsplit_once(')')?;
    let field = match relation {
        Relation::Parent => 1,
        Relation::GroupLeader => 2,
        Relation::SessionLeader => 3,
    };
    let other = behind.split_whitespace().nth(field)?;
    (other != "0").then(|| other.to_owned())
}

fn read(process: &str, ours: Option<(u64, u64)>) -> Process {
    let folder = Path::new("/proc").join(process);
    let texts = |file: &str| -> Vec<String> {
        let bytes = fs::read(folder.join(file)).unwrap_or_default();
        let texts = bytes.split(|byte| *byte == 0);
        let texts = texts.filter(|text| !text.is_empty());
        let text = |text: &[u8]| OsString::from_vec(text.to_vec());
        texts
            .map(|bytes| text(bytes).to_string_lossy().into_owned())
            .collect()
    };
    let program = fs::read_link(folder.join("exe")).unwrap_or_default();
    let file = fs::metadata(folder.join("exe")).ok();
    Process {
        program: file_name(&program.to_string_lossy()).to_owned(),
        is_ours: ours.is_some() && file.map(|file| (file.dev(), file.ino())) == ours,
        words: texts("cmdline"),
        variables: texts("environ"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Process, find};

    fn process(words: &[&str], variables: &[&str]) -> Process {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Process {
            program: super::file_name(words[0]).to_owned(),
            is_ours: false,
            words: owned(words),
            variables: owned(variables),
        }
    }

    fn agent(variables: &[&str], above: &[Process]) -> Option<&'static str> {
        let variables: Vec<String> = variables.iter().map(|text| (*text).to_owned()).collect();
        find(&variables, above, &[]).map(|found| found.agent)
    }

    #[rstest]
    #[case::login(&["-bash"], &["HOME=/home/me"])]
    #[case::terminal(&["tmux", "new"], &["TERM=xterm"])]
    #[case::editor(&["vim", "claude.md"], &[])]
    #[case::settings(&["zsh"], &["CODEX_HOME=/x", "OPENCODE_SERVER_PASSWORD=x", "GEMINI_API_KEY=x"])]
    #[case::switched_off(&["zsh"], &["CLAUDECODE="])]
    #[case::longer_name(&["/usr/bin/amplify"], &[])]
    #[case::script(&["node", "/srv/server.js"], &[])]
    fn a_person_is_a_person(#[case] words: &[&str], #[case] variables: &[&str]) {
        let shell = process(words, variables);
        assert_eq!(agent(variables, &[shell]), None);
    }

    #[rstest]
    #[case::claude("CLAUDECODE=1", "Claude Code")]
    #[case::opencode("OPENCODE=1", "OpenCode")]
    #[case::opencode_2("OPENCODE_TERMINAL=1", "OpenCode")]
    #[case::codex("CODEX_SANDBOX_NETWORK_DISABLED=1", "Codex")]
    #[case::gemini("GEMINI_CLI=1", "Gemini CLI")]
    #[case::goose("GOOSE_TERMINAL=1", "Goose")]
    #[case::others("AI_AGENT=new", "an agent")]
    fn an_agent_is_known_by_a_variable_also_where_it_was_unset(
        #[case] variable: &str,
        #[case] name: &str,
    ) {
        assert_eq!(agent(&[variable], &[]), Some(name));
        let started_with_it = process(&["bash", "-c", "env -i asyncagents"], &[variable]);
        assert_eq!(agent(&[], &[started_with_it]), Some(name));
    }

    #[rstest]
    #[case::opencode(&["/usr/lib/opencode", "serve"], "OpenCode")]
    #[case::opencode_2(&["/home/me/.opencode/bin/opencode2"], "OpenCode")]
    #[case::by_node(&["node", "--no-warnings", "/usr/bin/x"], "")]
    #[case::gemini(&["/usr/bin/node", "/usr/local/bin/gemini"], "Gemini CLI")]
    #[case::codex(&["codex-linux-sandbox", "--"], "Codex")]
    #[case::worker(&["/opt/asyncagents", "worker"], "asyncagents")]
    #[case::own_shell(&["/proc/self/exe", "sandbox-exec", "guard"], "asyncagents")]
    fn an_agent_is_known_by_its_program(#[case] words: &[&str], #[case] name: &str) {
        let above = [process(&["bash"], &[]), process(words, &[])];
        assert_eq!(agent(&[], &above).unwrap_or_default(), name);
    }

    #[test]
    fn an_agent_that_leads_the_group_of_a_process_is_around_it() {
        let init = [process(&["/sbin/init"], &[])];
        let agent = |leader: &[&str]| find(&[], &init, &[process(leader, &[])]);
        assert_eq!(agent(&["-bash"]), None);
        let found = agent(&["claude"]).map(|found| (found.agent, found.session));
        assert_eq!(found, Some(("Claude Code", None)));
    }

    fn own_shell(variables: &[&str]) -> Process {
        let words = ["/proc/self/exe", "sandbox-exec", "supervise"];
        Process {
            is_ours: true,
            ..process(&words, variables)
        }
    }

    #[test]
    fn the_session_is_the_one_that_the_shell_was_started_for() {
        let other = "ASYNCAGENTS_IN_SESSION=s_other";
        let above = [
            process(&["bash"], &[other]),
            // A command can start these as well.
            own_shell(&[other]),
            process(&["sh", "sandbox-exec"], &[other]),
            own_shell(&["ASYNCAGENTS_IN_SESSION=s_own"]),
            process(&["sh", "sandbox-exec"], &[other]),
        ];
        let own = ["ASYNCAGENTS_IN_SESSION=s_other".to_owned()];
        let session = find(&own, &above, &[]).and_then(|found| found.session);
        assert_eq!(session, Some("s_own".into()), "a command cannot rename it");
    }

    #[rstest]
    #[case::of_opencode(&["opencode", "serve"])]
    #[case::that_looks_like_ours(&["/proc/self/exe", "sandbox-exec", "supervise"])]
    fn an_agent_that_is_not_ours_cannot_say_that_it_is_a_session(#[case] words: &[&str]) {
        let named = "ASYNCAGENTS_IN_SESSION=s_other";
        let above = [process(&["bash"], &[named]), process(words, &[named])];
        let found = find(&[named.to_owned()], &above, &[]).expect("an agent");
        assert_eq!(found.session, None);
    }
}
