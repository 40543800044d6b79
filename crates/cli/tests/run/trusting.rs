//! What an agent, or whoever else can write in its folder, cannot make of that.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::{Home, text};

/// An agent that runs one command.
fn runs(command: &str) -> Home {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": command})),
        )
        .rule(When::always(), Reply::text("ok"));
    Home::new(script)
}

/// Runs the agent in a folder of the home. False if commands are not kept from anything here.
#[expect(clippy::print_stdout, reason = "what is not tested is said")]
fn run_in(home: &Home, folder: &str) -> bool {
    let folder = home.folder.path().join("home").join(folder);
    let output = home.command(&["run", "go"]).current_dir(folder).output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let sandboxed = text(&output.stderr).contains("commands run in a sandbox");
    if !sandboxed {
        println!("SKIPPED: this machine has no sandbox");
    }
    sandboxed
}

#[rstest]
#[case::in_the_home(
    "",
    "mkdir -p .config/asyncagents; echo x > .config/asyncagents/asyncagents.toml"
)]
#[case::beside_it(
    ".config",
    "mkdir -p asyncagents; echo x > asyncagents/asyncagents.toml"
)]
#[case::in_its_place(
    "",
    "mv .config c; mkdir -p .config/asyncagents; echo x > .config/asyncagents/asyncagents.toml"
)]
fn a_command_does_not_write_a_configuration_that_is_not_there_yet(
    #[case] folder: &str,
    #[case] command: &str,
) {
    let home = runs(command);
    fs::create_dir(home.folder.path().join("home/.config")).expect("made");
    if run_in(&home, folder) {
        let written = home.folder.path().join("home/.config/asyncagents");
        assert!(!written.join("asyncagents.toml").exists());
    }
}

#[test]
fn a_command_does_not_write_a_configuration_that_is_linked_into_its_folder() {
    let home = runs("cat aa.toml; echo x > aa.toml; echo x > agents/new.md; ls > other");
    let at = |name: &str| home.folder.path().join("home").join(name);
    for folder in ["dotfiles/agents", ".config/asyncagents"] {
        fs::create_dir_all(at(folder)).expect("made");
    }
    // Beside secrets nothing new can be made.
    fs::write(at("dotfiles/other"), "").expect("written");
    fs::write(at("dotfiles/aa.toml"), "agent = \"general\"\n").expect("written");
    for (name, to) in [("asyncagents.toml", "aa.toml"), ("agents", "agents")] {
        let (to, link) = (
            at("dotfiles").join(to),
            at(".config/asyncagents").join(name),
        );
        symlink(to, link).expect("linked");
    }
    if run_in(&home, "dotfiles") {
        let kept = fs::read_to_string(at("dotfiles/aa.toml")).expect("read");
        assert_eq!(kept, "agent = \"general\"\n");
        assert!(!at("dotfiles/agents/new.md").exists());
        let other = fs::read_to_string(at("dotfiles/other")).expect("read");
        assert!(
            other.contains("aa.toml"),
            "the rest can be written: {other}"
        );
    }
}

#[test]
fn a_task_does_not_follow_its_folder_elsewhere() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "cat s.txt; echo x > written"})),
        )
        .rule(When::always(), Reply::text("ok"));
    let home = Home::new(script);
    let (sub, other) = (home.path("sub"), home.folder.path().join("other"));
    for folder in [&sub, &other] {
        fs::create_dir(folder).expect("made");
    }
    fs::write(other.join("s.txt"), "PRIVATE").expect("written");
    let launch = ["-c", "worker.autostart=false", "task", "go"];
    let launched = home.command(&launch).current_dir(&sub).output();
    let id = text(&launched.expect("runs").stdout);
    fs::remove_dir(&sub).expect("removed");
    symlink(&other, &sub).expect("linked");
    let output = home.run(&["output", &id, "--block"]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(said.contains("leads to"), "{said}");
    assert!(!other.join("written").exists());
    assert!(home.model.requests().is_empty());
}

/// Another user's number. Giving files away needs root.
const SOMEBODY: u32 = 54_321;

#[test]
fn what_another_user_tells_agents_is_not_read() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: giving files to another user needs root");
        return;
    }
    let home = Home::new(Script::new().rule(When::always(), Reply::text("ok")));
    fs::create_dir_all(home.path(".claude/agents")).expect("made");
    let agent = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nFOREIGN AGENT\n");
    for (name, content) in [
        ("AGENTS.md", "FOREIGN WORDS\n".to_owned()),
        (".claude/agents/general.md", agent("general")),
        (".claude/agents/planted.md", agent("planted")),
        ("CLAUDE.md", "OWN WORDS\n".to_owned()),
    ] {
        fs::write(home.path(name), content).expect("written");
        if name != "CLAUDE.md" {
            chown(home.path(name), Some(SOMEBODY), None).expect("given away");
        }
    }
    let output = home.run(&["run", "go"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("AGENTS.md is not read: it belongs to another user"),
        "{said}"
    );
    let request = home.model.requests().pop().expect("a request");
    let told = request.json().to_string();
    assert!(
        told.contains("OWN WORDS") && !told.contains("FOREIGN"),
        "{told}"
    );
    let refused = home.run(&["run", "--agent", "planted", "go"]);
    let said = text(&refused.stderr);
    assert!(
        said.contains("cannot be used: it belongs to another user"),
        "{said}"
    );
}

#[test]
fn many_agents_of_a_project_do_not_make_requests_dear() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("ok")));
    fs::create_dir_all(home.path(".claude/agents")).expect("made");
    for n in 0..100 {
        let long = "long ".repeat(1_000);
        let file = home.path(&format!(".claude/agents/agent-{n:02}.md"));
        fs::write(file, format!("---\ndescription: {long}\n---\nx\n")).expect("written");
    }
    home.ask(&["run", "go"]);
    let request = home.model.requests().pop().expect("a request");
    let system = request.system();
    assert!(system.len() < 30_000, "{} characters", system.len());
    assert!(system.contains("- agent-99: long long"), "{system}");
}
