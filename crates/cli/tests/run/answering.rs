//! What a task asks for while nobody is at its terminal is answered from another shell.

use std::process::{Command, Output};

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};

use super::{Home, terminal::Terminal, text};

/// A task that waits for a person, in a worker.
fn asking(home: &Home, prompt: &str) -> String {
    let launched = home
        .command(&["task", prompt])
        .env("ASYNCAGENTS_PERMISSIONS_MODE", "ask")
        .env("ASYNCAGENTS_PERMISSIONS_UNANSWERED", "wait")
        .output()
        .expect("runs");
    assert_eq!(launched.status.code(), Some(0), "{launched:?}");
    text(&launched.stdout)
}

/// The task that asks, once there is one.
fn who_asks(home: &Home) -> Value {
    let mut found = None;
    home.until("a task asks", || {
        let tasks: Value = serde_json::from_str(&home.ask(&["list", "--json"])).expect("JSON");
        let tasks = tasks.as_array().expect("a list").iter();
        let mut asking = tasks.filter(|task| {
            task["progress"]["asking"]
                .as_array()
                .is_some_and(|a| !a.is_empty())
        });
        found = asking.next().cloned();
        found.is_some()
    });
    found.expect("a task")
}

/// The question of a task, as its user would name it.
fn question(home: &Home, id: &str) -> String {
    let list = home.ask(&["list"]);
    let mut hints = list.lines().filter_map(|line| {
        let (_, hint) = line.split_once("asyncagents answer ")?;
        let (task, _) = hint.split_once(' ')?;
        let (_, question) = hint.split_once(" --question ")?;
        id.starts_with(task).then(|| question.trim().to_owned())
    });
    hints.next_back().expect("how to answer it")
}

fn writes(name: &str) -> Reply {
    Reply::call("write", json!({"path": name, "content": "x"}))
}

/// Whether these tests are run by an agent. Then what only a person may do is refused, and rightly.
fn is_agents_shell(home: &Home) -> bool {
    let (_, said) = typed(home, &["answer", "task_0", "once"]);
    said.contains("shell of")
}

/// Runs a command in a terminal, as a person does.
fn typed(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let (status, shown) = Terminal::start(&home.command(args)).until_ended();
    (status.code(), shown)
}

fn permit(home: &Home, id: &str, word: &str) {
    let question = question(home, id);
    let (code, shown) = typed(home, &["answer", id, word, "--question", &question]);
    assert_eq!(code, Some(0), "{shown}");
}

fn refused(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains(why), "{output:?}");
}

#[test]
fn a_yes_from_another_shell_lets_a_task_go_on() {
    let script = Script::new()
        .rule(When::turn(0), writes("a.txt"))
        .rule(When::turn(1), Reply::text("Written."));
    let home = Home::new(script);
    if is_agents_shell(&home) {
        return;
    }
    let id = asking(&home, "Write");
    let task = who_asks(&home);
    assert!(
        task["progress"]["asking"]
            .to_string()
            .contains("permission for write a.txt"),
        "{task}"
    );
    assert_eq!(home.read("a.txt"), "");
    permit(&home, &id, "once");
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(answer.contains("Written."), "{answer}");
    assert_eq!(home.read("a.txt"), "x");
    let (again, shown) = typed(&home, &["answer", &id, "once"]);
    assert_eq!(again, Some(2), "it was answered: {shown}");
}

#[test]
fn a_no_with_a_text_is_told_to_the_agent() {
    let script = Script::new().rule(When::turn(0), writes("a.txt")).rule(
        When::turn(1).last("not permitted: Use b.txt instead"),
        Reply::text("Then not."),
    );
    let home = Home::new(script);
    if is_agents_shell(&home) {
        return;
    }
    let id = asking(&home, "Write");
    who_asks(&home);
    home.ask(&["answer", &id, "reject", "Use b.txt instead"]);
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(answer.contains("Then not."), "{answer}");
    assert_eq!(home.read("a.txt"), "");
}

/// Whoever answers need not know who launched it.
#[test]
fn a_task_of_a_task_is_answered_from_the_shell() {
    let launch = |prompt: &str| {
        let call = json!({"description": prompt, "prompt": prompt, "agent": "general"});
        Reply::call("asyncagents_task", call)
    };
    let script = Script::new()
        .rule(When::turn(0).first("Grandchild"), writes("deep.txt"))
        .rule(When::turn(1).first("Grandchild"), Reply::text("Deep."))
        .rule(When::turn(0).first("Child"), launch("Grandchild"))
        .rule(When::always().first("Child"), Reply::text("Passed on."));
    let home = Home::new(script);
    if is_agents_shell(&home) {
        return;
    }
    let id = asking(&home, "Child");
    let asks = who_asks(&home);
    let grandchild = asks["id"].as_str().expect("an ID");
    assert_ne!(grandchild, id);
    permit(&home, grandchild, "always");
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(answer.contains("Passed on."), "{answer}");
    assert_eq!(home.read("deep.txt"), "x");
}

/// What has left the shell of an agent has no agent above it any more, and no terminal either.
#[test]
fn without_a_terminal_nothing_is_permitted() {
    let script = Script::new()
        .rule(When::turn(0), writes("a.txt"))
        .rule(When::turn(1), Reply::text("Then not."));
    let home = Home::new(script);
    let id = asking(&home, "Write");
    who_asks(&home);
    let code = home.path("code");
    for word in ["once", "always"] {
        let plain = home.command(&["answer", &id, word]);
        let mut shell = Command::new("sh");
        // It waits until the shell that has started it is gone.
        let left = "(setsid sh -c 'while kill -0 $0 2>&-; do sleep 0.01; done; \
            \"$@\" >said 2>&1; echo $? >code.new; mv code.new code' $$ \"$@\" >&- 2>&- &)";
        let variables = plain.get_envs();
        let status = shell
            .env_clear()
            .envs(variables.filter_map(|(name, value)| Some((name, value?))))
            .args(["-c", left, "sh"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(home.path(""))
            .status();
        assert!(status.expect("runs").success());
        home.until("the command ends", || code.exists());
        assert_eq!(home.read("code").trim(), "2", "{}", home.read("said"));
        let said = home.read("said");
        assert!(said.contains("a person at a terminal"), "{said}");
        std::fs::remove_file(&code).expect("removed");
    }
    home.ask(&["cancel", &id]);
    assert_eq!(home.read("a.txt"), "");
}

/// A model that types what a person would type permits nothing, also not without the variable that
/// gives it away.
#[test]
fn an_agents_shell_permits_nothing() {
    let script = Script::new()
        .rule(When::turn(0), writes("a.txt"))
        .rule(When::turn(1), Reply::text("Then not."));
    let home = Home::new(script);
    let id = asking(&home, "Write");
    who_asks(&home);
    for word in ["once", "always"] {
        let typed = home
            .command(&["answer", &id, word])
            .env("CLAUDECODE", "1")
            .output();
        refused(&typed.expect("runs"), "Claude Code");
    }
    if cfg!(target_os = "linux") {
        let plain = home.command(&["answer", &id, "once"]);
        let mut shell = Command::new("sh");
        let words = plain
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned());
        shell
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("CLAUDECODE", "1")
            .args(["-c", "env -u CLAUDECODE \"$0\" \"$@\"; exit $?"])
            .arg(plain.get_program())
            .args(words)
            .current_dir(home.folder.path().join("work"));
        refused(&shell.output().expect("runs"), "Claude Code");
    }
    assert_eq!(home.read("a.txt"), "");
    // Nor has it a say in tasks of others: which session it is, is not known.
    for args in [["answer", &id, "reject"], ["message", &id, "Write"]] {
        let typed = home.command(&args).env("CLAUDECODE", "1").output();
        let typed = typed.expect("runs");
        refused(&typed, "use the tools for background tasks");
    }
    who_asks(&home);
    home.ask(&["cancel", &id]);
    assert_eq!(home.read("a.txt"), "");
}
