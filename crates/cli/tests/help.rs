//! Every `--help`, as it is printed; completions and manual pages that know every command.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::fs;

use assert_cmd::Command;
use rstest::rstest;
use tempfile::TempDir;

/// What the program prints in an empty home, for 100 columns.
fn printed(arguments: &[&str]) -> String {
    let home = TempDir::new().expect("a folder");
    // What is set, or set wrongly, does not matter.
    fs::write(home.path().join("asyncagents.toml"), "nonsense").expect("written");
    let mut command = Command::cargo_bin("asyncagents").expect("built");
    command.current_dir(home.path()).env_clear();
    command.env("HOME", home.path()).env("COLUMNS", "100");
    let output = command.args(arguments).output().expect("run");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn help(verbs: &[String]) -> String {
    let mut arguments: Vec<&str> = verbs.iter().map(String::as_str).collect();
    arguments.push("--help");
    printed(&arguments)
}

/// The commands below a command, as its help lists them.
fn below(help: &str) -> Vec<&str> {
    let lines = help.lines();
    let mut lines = lines.skip_while(|line| !matches!(*line, "Commands:" | "Hosts:"));
    lines.next();
    let lines = lines.take_while(|line| !line.is_empty());
    // A name is indented by two; what goes on with the line before, by more.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !matches!(*name, "" | "help")).collect()
}

/// What other programs run, and people do not.
const HIDDEN: [&str; 3] = ["opencode-bridge", "notices", "hook"];

/// Every command, by the words that lead to it; the hidden ones too.
fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    open.extend(HIDDEN.map(|verb| vec![verb.to_owned()]));
    while let Some(verbs) = open.pop() {
        for verb in below(&help(&verbs)) {
            let verb = [verbs.as_slice(), &[verb.to_owned()]].concat();
            open.push(verb);
        }
        found.push(verbs);
    }
    found
}

#[test]
fn every_help_is_as_it_was() {
    let commands = commands();
    assert!(commands.len() > 25, "{commands:?}");
    for verbs in commands {
        let name = [&["asyncagents".to_owned()], verbs.as_slice()].concat();
        insta::assert_snapshot!(name.join("-"), help(&verbs));
    }
}

#[rstest]
#[case("bash")]
#[case("zsh")]
#[case("fish")]
#[case("elvish")]
#[case("powershell")]
fn a_shell_can_complete_every_command(#[case] shell: &str) {
    let script = printed(&["completions", shell]);
    for verb in commands().iter().flatten() {
        assert!(script.contains(verb), "{verb}");
    }
    assert!(script.contains("set-config"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().expect("a folder");
    let pages = folder.path().join("man1");
    printed(&["man", pages.to_str().expect("a name")]);
    let is_shown = |verbs: &&Vec<String>| {
        !HIDDEN
            .iter()
            .any(|hidden| verbs.first().is_some_and(|verb| verb == hidden))
    };
    for verbs in commands().iter().filter(is_shown) {
        let name = [&["asyncagents".to_owned()], verbs.as_slice()].concat();
        let page = pages.join(format!("{}.1", name.join("-")));
        let page = fs::read_to_string(&page).expect("a page");
        assert!(page.contains("set\\-config"), "{name:?}");
    }
    assert!(printed(&["man"]).contains(".TH asyncagents 1"));
}
