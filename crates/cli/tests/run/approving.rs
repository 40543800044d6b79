//! Questions at the terminal: what counts as an answer, and what is seen before.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::json;

use crate::{Home, append, terminal::Terminal};

/// The end of a question, after which an answer counts.
const ANSWERS: &str = "or [n]o (and why): ";

/// The built-in agent, which has to ask, in a terminal.
fn asks(home: &Home, args: &[&str]) -> Terminal {
    let mut command = home.command(args);
    command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
    Terminal::start(&command)
}

#[test]
fn a_question_is_asked_at_the_terminal_and_shows_what_it_is_about() {
    let launch = json!({"description": "child", "prompt": "Child:\nx", "agent": "general"});
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call(
                "write",
                json!({"path": "a.txt", "content": "written by a child"}),
            ),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("done"))
        .rule(When::turn(0), Reply::call("asyncagents_task", launch))
        .rule(When::always(), Reply::text("ok"));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Delegate"]);
    terminal.until_shown(ANSWERS, 1);
    let lines = terminal.lines();
    let asked = [
        "? the background task \"child\" wants to use write: a.txt",
        "  + written by a child",
    ];
    assert!(lines.windows(2).any(|pair| pair == asked), "{lines:?}");
    terminal.sends("perhaps\n");
    terminal.until_shown(ANSWERS, 2);
    terminal.sends("y\n");
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    assert_eq!(home.read("a.txt"), "written by a child");
}

/// It would answer its own questions.
#[test]
fn an_agent_in_a_terminal_of_its_own_is_not_asked() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(When::always(), Reply::text("Then not."));
    let home = Home::new(script);
    let mut command = home.command(&["run", "Append"]);
    command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
    command.env("CLAUDECODE", "1");
    let mut terminal = Terminal::start(&command);
    terminal.pastes("y\n".repeat(10));
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    assert!(!shown.contains(ANSWERS), "{shown}");
    assert!(shown.contains("Then not."), "{shown}");
    assert_eq!(home.read("log"), "");
}

#[test]
fn ctrl_c_at_a_question_stops_the_run() {
    let script = Script::new()
        .rule(When::turn(0), append("log", ""))
        .rule(When::always(), Reply::text("never"));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Append"]);
    terminal.until_shown(ANSWERS, 1);
    terminal.sends("\u{3}");
    let (status, shown) = terminal.until_ended();
    assert_eq!(status.code(), Some(4), "{shown}");
    assert!(shown.contains("stopping; Ctrl-C again"), "{shown}");
    assert_eq!(home.read("log"), "");
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let (first, second) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(When::turn(0), append("log", "").behind(&first))
        .rule(When::turn(1), append("log", " # again").behind(&second))
        .rule(When::turn(2), Reply::text("Twice."));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Append twice"]);

    // A whole line, and one that is finished only when the question is there.
    home.wait_for(|requests| requests.len() == 1);
    terminal.types("y\n");
    terminal.types("y");
    first.open();
    terminal.until_shown(ANSWERS, 1);
    terminal.sends("\n");
    // Empty, it is asked again.
    terminal.until_shown(ANSWERS, 2);
    assert_eq!(home.read("log"), "");
    terminal.sends("y\n");

    // By now someone has read from the terminal, and might still.
    home.wait_for(|requests| requests.len() == 2);
    assert_eq!(home.read("log"), "done\n");
    terminal.types("y\n");
    terminal.types("always");
    second.open();
    terminal.until_shown(ANSWERS, 3);
    terminal.sends("\n");
    terminal.until_shown(ANSWERS, 4);
    assert_eq!(home.read("log"), "done\n");
    terminal.sends("n not again\n");
    home.wait_for(|requests| requests.len() == 3);
    let told = home.model.requests().pop().expect("a request").last();
    assert!(told.contains("the user says no: not again"), "{told}");
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    assert_eq!(home.read("log"), "done\n");
}

#[test]
fn a_paste_longer_than_the_kernel_keeps_is_no_answer_either() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(When::turn(0), append("log", "").behind(&gate))
        .rule(When::turn(1), Reply::text("Done."));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Append once"]);
    home.wait_for(|requests| requests.len() == 1);
    // The kernel keeps about 12 kB that nobody reads, and takes the rest when these are gone.
    terminal.pastes("y\n".repeat(20_000));
    terminal.until_shown("y\r\n", 1_000);
    gate.open();
    terminal.until_shown(ANSWERS, 1);
    // If any of it had counted, there would be no room for more.
    terminal.pastes("\n".to_owned());
    terminal.until_shown(ANSWERS, 2);
    assert_eq!(home.read("log"), "");
    terminal.sends("y\n");
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    assert_eq!(home.read("log"), "done\n");
}

#[test]
fn all_of_a_long_command_can_be_seen_before_it_is_approved() {
    let lines: Vec<String> = (1..=18).map(|n| format!("echo {n} >> log")).collect();
    let command = format!("{}{}", "\n".repeat(40), lines.join("\n"));
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": command})),
        )
        .rule(When::turn(1), Reply::text("Done."));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Count"]);
    let shown = terminal.until_shown(ANSWERS, 1);
    for line in [
        "⏎ 40 blank lines",
        "$ echo 11 >> log",
        "… 7 more lines",
        "[v]iew all",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("echo 12"), "{shown}");
    terminal.sends("v\n");
    let shown = terminal.until_shown(ANSWERS, 2);
    let (_, whole) = shown.rsplit_once("wants to use bash").expect("asked again");
    for line in &lines {
        assert!(whole.contains(&format!("$ {line}\r\n")), "{line}: {whole}");
    }
    assert_eq!(home.read("log"), "");
    terminal.sends("y\n");
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    assert_eq!(home.read("log").lines().count(), 18);
}

#[test]
fn nothing_comes_between_a_question_and_its_answer() {
    let gate = Gate::closed();
    let child = json!({"description": "child", "prompt": "Child:\nx", "agent": "general"});
    let script = Script::new()
        .rule(When::turn(0).first("Child:\n"), append("log", ""))
        .rule(When::turn(1).first("Child:\n"), Reply::text("child done"))
        .rule(When::turn(0), Reply::call("asyncagents_task", child))
        .rule(
            When::turn(1),
            Reply::text("Meanwhile I talk.")
                .and_call("glob", json!({"pattern": "*"}))
                .behind(&gate),
        )
        .rule(When::always(), Reply::text("All done."));
    let home = Home::new(script);
    let mut terminal = asks(&home, &["run", "Delegate"]);
    terminal.until_shown(ANSWERS, 1);
    gate.open();
    // It goes on, so it has said that.
    home.wait_for(|requests| {
        requests
            .iter()
            .any(|request| request.body.contains("Meanwhile"))
    });
    terminal.sends("y\n");
    let (status, shown) = terminal.until_ended();
    assert!(status.success(), "{shown}");
    let (_, after) = shown.split_once(ANSWERS).expect("asked");
    assert!(after.starts_with("y\r\n"), "{shown}");
    assert_eq!(after.matches("Meanwhile I talk.").count(), 1, "{shown}");
    assert_eq!(home.read("log"), "done\n");
}
