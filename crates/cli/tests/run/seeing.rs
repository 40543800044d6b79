//! What a person sees of a run on a terminal, and a program of its output.

use std::time::{Duration, Instant};

use asyncagents_scripted_model::{Fault, Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{Home, terminal::Terminal, text};

/// Takes the lines of a terminal off it.
const ERASE: &str = "\u{1b}[J";

fn child(description: &str) -> Reply {
    let launch = json!({"description": description, "prompt": "Child:\nx", "agent": "general"});
    Reply::call("asyncagents_task", launch)
}

fn has(lines: &[String], words: &str) -> bool {
    lines.iter().any(|line| line.contains(words))
}

#[test]
fn while_the_model_thinks_a_line_says_so() {
    let gate = Gate::closed();
    let script = Script::new().rule(When::always(), Reply::text("Here it is.").behind(&gate));
    let home = Home::new(script);
    let mut terminal = Terminal::start(&home.command(&["run", "Think"]));
    let begun = Instant::now();
    terminal.until_seen("it thinks for a while", |lines| has(lines, "thinking 2 s"));
    let drawn = terminal.written().matches(" thinking ").count();
    let most = 4 * (begun.elapsed().as_secs() as usize + 1) + 2;
    assert!((2..=most).contains(&drawn), "{drawn} times, at most {most}");
    gate.open();
    let (status, _) = terminal.until_ended();
    let lines = terminal.lines();
    assert!(status.success() && has(&lines, "Here it is."), "{lines:?}");
    assert!(!has(&lines, "thinking"), "{lines:?}");
    // Nobody watches a file.
    let output = home.run(&["run", "Think"]);
    assert!(!text(&output.stderr).contains("thinking"), "{output:?}");
}

#[rstest]
#[case(80)]
#[case(40)]
fn a_wide_description_stays_in_its_line(#[case] columns: u16) {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::text("done").behind(&gate),
        )
        .rule(
            When::turn(0),
            child("ログインが遅い原因を三つのサービスで並行して調べる"),
        )
        .rule(When::always(), Reply::text("All done."));
    let home = Home::new(script);
    let mut terminal = Terminal::of_size(&home.command(&["run", "Delegate"]), 24, columns);
    terminal.until_shown("running 2 s", 1);
    let lines = terminal.until_seen("the task is there", |lines| has(lines, "running"));
    let of_task: Vec<&String> = lines.iter().filter(|line| line.contains("task_")).collect();
    assert_eq!(of_task.len(), 1, "{lines:?}");
    assert!(of_task[0].contains("ログイン"), "{lines:?}");
    gate.open();
    let (status, _) = terminal.until_ended();
    assert!(status.success(), "{:?}", terminal.lines());
    assert!(terminal.lines().len() < 16, "{:?}", terminal.lines());
}

#[test]
fn lines_of_tasks_are_drawn_four_times_a_second_at_most() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::text("done").behind(&gate),
        )
        .rule(
            When::turn(0),
            child("one").and_call(
                "asyncagents_task",
                json!({"description": "two", "prompt": "Child:\ny", "agent": "general"}),
            ),
        )
        .rule(When::always(), Reply::text("All done."));
    let home = Home::new(script);
    let mut terminal = Terminal::start(&home.command(&["run", "Delegate"]));
    let begun = Instant::now();
    terminal.until_shown("running 3 s", 1);
    let drawn = terminal.written().matches(ERASE).count();
    let most = 4 * (begun.elapsed().as_secs() as usize + 1) + 4;
    assert!((3..=most).contains(&drawn), "{drawn} times, at most {most}");
    gate.open();
    assert!(terminal.until_ended().0.success());
}

#[test]
fn of_a_failed_command_the_end_is_seen() {
    let failing = json!({"command": "seq 1 1000; exit 3"});
    let script = Script::new()
        .rule(When::turn(0), Reply::call("bash", failing))
        .rule(When::always(), Reply::text("It failed."));
    let home = Home::new(script);
    let output = home.run(&["run", "Count"]);
    let shown = text(&output.stderr);
    let expected = "  │ 5\n  │ … 980 lines left out\n  │ 986\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(
        shown.contains("  │ 1000\n· bash failed: [exit code 3]"),
        "{shown}"
    );
}

#[test]
fn what_was_just_allowed_is_not_told_again() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "echo once > log; echo printed"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    let mut command = home.command(&["run", "Write"]);
    command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
    let mut terminal = Terminal::start(&command);
    terminal.until_shown("or [n]o (and why): ", 1);
    terminal.sends("y\n");
    let (status, _) = terminal.until_ended();
    let lines = terminal.lines();
    assert!(status.success(), "{lines:?}");
    let told = lines.iter().filter(|line| line.contains("echo once"));
    assert_eq!(told.count(), 1, "{lines:?}");
    assert!(has(&lines, "  │ printed"), "{lines:?}");
}

#[test]
fn no_line_is_glued_to_another() {
    let (gate, child_gate) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::text("done").behind(&child_gate),
        )
        .rule(When::turn(0), child("child"))
        .rule(When::turn(1), Reply::text("This is what it came to."))
        .rule(When::always(), Reply::text("All done.").behind(&gate));
    let home = Home::new(script);
    let mut terminal = Terminal::start(&home.command(&["run", "Delegate"]));
    terminal.until_seen("it waits", |lines| has(lines, "came to."));
    child_gate.open();
    terminal.until_seen("the end of the task", |lines| has(lines, "✓"));
    gate.open();
    let (status, _) = terminal.until_ended();
    let lines = terminal.lines();
    assert!(status.success(), "{lines:?}");
    assert!(
        lines.contains(&"This is what it came to.".to_owned()),
        "{lines:?}"
    );
    assert!(lines.contains(&"All done.".to_owned()), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("✓ task_")),
        "{lines:?}"
    );
}

/// An answer that breaks off, and then comes whole.
fn breaking() -> Script {
    let cut = Reply::fault(Fault::Cut).and_text("This never comes to its end, for it breaks off.");
    Script::new()
        .rule(When::turn(0).times(1), cut.chunk(4))
        .rule(When::always(), Reply::text("The whole answer."))
}

#[test]
fn an_answer_that_breaks_off_is_not_in_the_output() {
    let home = Home::new(breaking());
    let output = home.run(&["run", "Answer"]);
    assert_eq!(text(&output.stdout), "The whole answer.", "{output:?}");
}

#[test]
fn on_a_terminal_an_answer_that_breaks_off_is_called_so() {
    let home = Home::new(breaking());
    let mut terminal = Terminal::start(&home.command(&["run", "Answer"]));
    let (status, _) = terminal.until_ended();
    let lines = terminal.lines();
    assert!(status.success(), "{lines:?}");
    let at = |words: &str| lines.iter().position(|line| line.contains(words));
    let (broken, void, whole) = (
        at("This never"),
        at("does not count"),
        at("The whole answer."),
    );
    assert!(
        broken.is_some() && broken < void && void < whole,
        "{lines:?}"
    );
}

#[test]
fn programs_hear_every_piece_and_what_does_not_count() {
    let home = Home::new(breaking());
    let events = home.ask(&["run", "--json", "Answer"]);
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut said = String::new();
    let mut resets = 0;
    for event in &events {
        match event["type"].as_str() {
            Some("text_delta") => said.push_str(event["text"].as_str().expect("text")),
            Some("reset") => {
                assert!(said.starts_with("This never"), "{said}");
                said.clear();
                resets += 1;
            }
            Some("text") => assert_eq!(event["text"], said.as_str()),
            _ => {}
        }
    }
    assert_eq!((resets, said.as_str()), (1, "The whole answer."));
}

#[test]
fn programs_hear_what_tools_are_given_and_answer() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "echo hello"})),
        )
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    let events = home.ask(&["run", "--json", "Greet"]);
    let event = |kind: &str| -> Value {
        let events = events.lines().map(serde_json::from_str::<Value>);
        let mut events = events.map(|event| event.expect("JSON"));
        events.find(|event| event["type"] == kind).expect(kind)
    };
    assert_eq!(event("tool")["arguments"], json!({"command": "echo hello"}));
    let ended = event("tool_ended");
    assert_eq!(ended["call"], event("tool")["call"]);
    assert!(
        ended["result"]
            .as_str()
            .expect("a result")
            .contains("hello"),
        "{ended}"
    );
    // Nobody knows what this model costs.
    let end = event("end");
    assert_eq!(end["cost_usd"], Value::Null, "{end}");
    assert_eq!(end["unpriced_tokens"], end["tokens"], "{end}");
}

#[test]
fn an_unknown_price_is_called_so() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    let shown = text(&home.run(&["run", "Cost"]).stderr);
    assert!(shown.contains(", cost unknown, "), "{shown}");
    let free = home.path("free.json");
    std::fs::write(&free, r#"{"test/model": {"input": 0, "output": 0}}"#).expect("written");
    let prices = format!("models.prices={}", free.display());
    let shown = text(&home.run(&["-c", &prices, "run", "Cost"]).stderr);
    assert!(shown.contains(", $0.00, "), "{shown}");
}

#[rstest]
#[case::terminal(&[], &[], true)]
#[case::no_color(&[("NO_COLOR", "1")], &[], false)]
#[case::dumb(&[("TERM", "dumb")], &[], false)]
#[case::never(&[], &["--color", "never"], false)]
#[case::always(&[("NO_COLOR", "1")], &["--color", "always"], true)]
fn colours_are_for_those_who_see_them(
    #[case] variables: &[(&str, &str)],
    #[case] flags: &[&str],
    #[case] colours: bool,
) {
    let script = Script::new().rule(When::always(), Reply::text("# Found\n\nIt is **here**."));
    let home = Home::new(script);
    let mut args = vec!["run", "Look"];
    args.extend(flags);
    let mut command = home.command(&args);
    command.envs(variables.iter().copied());
    let mut terminal = Terminal::start(&command);
    let (status, written) = terminal.until_ended();
    assert!(status.success(), "{written}");
    let bold = written.contains("\u{1b}[1m# Found") && written.contains("\u{1b}[1m**here**");
    assert_eq!(bold, colours, "{written:?}");
    assert_eq!(written.contains("\u{1b}[1m"), colours, "{written:?}");
    if variables.contains(&("TERM", "dumb")) {
        assert!(!written.contains('\u{1b}'), "{written:?}");
    }
    assert!(has(&terminal.lines(), "It is **here**."), "{written:?}");
    // A file gets them only if they are asked for.
    let output = home.run(&args);
    let painted = text(&output.stdout).contains('\u{1b}');
    assert_eq!(painted, flags.contains(&"always"), "{output:?}");
}

#[test]
fn control_characters_reach_neither_terminals_nor_files_unless_asked_for() {
    let script = Script::new().rule(
        When::always(),
        Reply::text("a\u{1b}[2Jb\tc\u{9b}31m\nd\r\u{7}"),
    );
    let home = Home::new(script);
    assert_eq!(home.ask(&["run", "Say"]), "a[2Jb\tc31m\nd");
    assert_eq!(
        home.ask(&["run", "--raw", "Say"]),
        "a\u{1b}[2Jb\tc\u{9b}31m\nd\r\u{7}"
    );
    let id = home.ask(&["task", "Say"]);
    let output = home.ask(&["output", &id, "--block"]);
    assert!(output.ends_with("a[2Jb\tc31m\nd"), "{output:?}");
    let raw = home.ask(&["output", &id, "--raw"]);
    assert!(
        raw.ends_with("a\u{1b}[2Jb\tc\u{9b}31m\nd\r\u{7}"),
        "{raw:?}"
    );
}

#[test]
fn a_skill_is_seen_while_it_runs_and_its_question_stays_whole() {
    let said = Reply::text("It streams one. It streams two.");
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "echo asked >> log"})).and_text("Checking."),
        )
        .rule(
            When::always(),
            said.chunk(15).pace(Duration::from_millis(700)),
        );
    let home = Home::new(script);
    let folder = home.path(".claude/skills/check");
    std::fs::create_dir_all(&folder).expect("a folder");
    let skill = "---\nname: check\ndescription: Checks.\ncontext: fork\n---\nCheck it.\n";
    std::fs::write(folder.join("SKILL.md"), skill).expect("written");
    let mut command = home.command(&["skill", "run", "check", "all"]);
    command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
    let mut terminal = Terminal::start(&command);
    terminal.until_shown("or [n]o (and why): ", 1);
    let lines = terminal.lines();
    let asked = lines
        .iter()
        .position(|line| line.starts_with("? the background task"));
    let (Some(asked), Some(said)) = (asked, lines.iter().position(|line| line == "Checking."))
    else {
        panic!("{lines:?}");
    };
    assert!(said < asked, "{lines:?}");
    assert_eq!(lines[asked + 1], "  $ echo asked >> log", "{lines:?}");
    assert!(
        lines[asked + 2].ends_with("or [n]o (and why): "),
        "{lines:?}"
    );
    assert_eq!(lines.len(), asked + 3, "{lines:?}");
    terminal.sends("y\n");
    let lines = terminal.until_seen("the first half", |lines| has(lines, "It streams one."));
    assert!(!has(&lines, "It streams two."), "{lines:?}");
    let (status, _) = terminal.until_ended();
    let lines = terminal.lines();
    assert!(status.success(), "{lines:?}");
    assert!(has(&lines, "It streams one. It streams two."), "{lines:?}");
    let whole = lines.iter().filter(|line| line.contains("It streams"));
    assert_eq!(whole.count(), 1, "{lines:?}");
}
