//! Whether OpenCode sees the tools, and what to do if not.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use asyncagents_hosts::plugin;
use rstest::rstest;

use super::{
    Home, ONLY_ONE, Said, TOOLS,
    fake::{FakeOpencode, Quirks, check_with, nothing_is_left, program},
    rendered,
};

#[test]
fn a_check_says_what_there_is_and_that_the_tools_are_seen() {
    let home = Home::new();
    home.run(&[]);
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let program = Path::new(env!("CARGO_BIN_EXE_asyncagents"));
    let program = program.canonicalize().expect("a program");
    let mut lines = vec![
        format!(
            "OpenCode: {}, version 1.18.33: supported",
            opencode.bin.display()
        ),
        format!("plugin: {}, up to date", home.user_file().display()),
        format!(
            "program: {}, asyncagents {}",
            program.display(),
            env!("CARGO_PKG_VERSION")
        ),
    ];
    lines.extend(TOOLS.map(|tool| format!("tool {tool}: seen by OpenCode")));
    lines.push("All 8 tools are seen.".to_owned());
    let said = Said::of(&mut opencode.check(&home)).done(&lines.join("\n"));
    assert_eq!(said.remarks, "");
    assert!(nothing_is_left(&home));
    let folder = fs::read_to_string(home.path("cwd")).expect("read");
    assert_eq!(Path::new(folder.trim()), home.path("project"));
}

#[test]
fn a_check_asks_again_and_says_why_it_takes_long() {
    let home = Home::new();
    home.run(&["--project"]);
    let quirks = Quirks {
        hangs_first: true,
        loading: Duration::from_secs(6),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "1.18.33", &TOOLS, quirks);
    let mut check = home.command();
    check.args(["--check", "--opencode-bin"]).arg(&opencode.bin);
    let said = Said::of(&mut check);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.remarks("Waiting for OpenCode: it may be installing @opencode-ai/plugin");
    assert_eq!(opencode.asked.load(Ordering::SeqCst), 3);
}

#[rstest]
#[case("3.0.0", "not supported")]
#[case("1.17.9", "not supported")]
#[case("v1.18.0-beta.2", "supported")]
#[case("1.20.1", "supported")]
#[case("local", "not supported")]
fn a_check_knows_the_versions_it_can_work_with(#[case] version: &str, #[case] known: &str) {
    let home = Home::new();
    home.run(&[]);
    let opencode = FakeOpencode::new(&home, version, &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    let code = if known == "supported" { 0 } else { 1 };
    assert_eq!(said.code, Some(code), "{said:?}");
    let line = format!(", version {version}: {known}");
    assert!(said.answer.contains(&line), "{said:?}");
}

#[test]
fn a_check_says_what_to_do_when_tools_are_missing() {
    let home = Home::new();
    let opencode = FakeOpencode::new(&home, "1.18.33", &["bash", "read"]);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    let missing = format!("plugin: {} is not there", home.user_file().display());
    assert!(said.answer.contains(&missing), "{said:?}");
    let not_seen = "tool asyncagents_skill: not seen by OpenCode";
    assert!(said.answer.ends_with(not_seen), "{said:?}");
    said.remarks("OpenCode sees none of the tools: the plugin is not there; `asyncagents setup opencode` installs it");
    assert!(nothing_is_left(&home));

    home.run(&["--project"]);
    let said = Said::of(&mut opencode.check(&home));
    said.remarks("it has not loaded the plugin and does not say why");
    for switch in ["OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG"] {
        let said = Said::of(opencode.check(&home).env(switch, "1"));
        said.remarks(&format!("{switch} is set, and keeps it from loading"));
    }
    let complaint = "level=ERROR message=\"failed to load plugin\" \
        path=file:///x/plugin/asyncagents.js error=\"no such module\"";
    let said = Said::of(opencode.check(&home).env("COMPLAINT", complaint));
    said.remarks("it could not load the plugin: \"no such module\"");
    // Where it should be is said. For that no OpenCode is started among a project's plugins.
    let said = Said::of(opencode.check(&home).arg("--user"));
    said.remarks("the plugin is not there");
    let folder = fs::read_to_string(home.path("cwd")).expect("read");
    assert!(!Path::new(folder.trim()).starts_with(home.path("project")));

    let some = FakeOpencode::new(&home, "1.18.33", &TOOLS[..3]);
    home.write(&home.project_file(), &format!("// {}\n", plugin::MARK));
    let said = Said::of(&mut some.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks("does not see 5 of the 8 tools: the plugin is not of this version; `asyncagents setup opencode --project` updates it");
}

#[test]
fn a_check_sees_that_the_program_is_gone() {
    let home = Home::new();
    home.write(&home.user_file(), &rendered("/nowhere/asyncagents"));
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    let line = "program: /nowhere/asyncagents cannot be started: No such file";
    assert!(said.answer.contains(line), "{said:?}");
    said.remarks("OpenCode sees the tools, but the program that the plugin names cannot be used");
}

#[test]
fn a_check_runs_no_program_that_a_project_names() {
    let home = Home::new();
    let proof = home.project_file().with_file_name("ran");
    let named = program(
        &home,
        &format!("#!/bin/sh\ntouch {}\necho x 1\n", proof.display()),
    );
    home.write(&home.project_file(), &rendered(&named.to_string_lossy()));
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let said = Said::of(&mut opencode.check(&home));
    assert!(said.answer.contains("and was not run"), "{said:?}");
    assert!(!proof.exists());
}

#[rstest]
#[case::ends(
    "echo 'database is locked' >&2; exit 1",
    "OpenCode ended before it had answered; it said: database is locked"
)]
#[case::bad_settings(
    r"printf '\033[91m\033[1mError: \033[0mx.json is not JSON: \n--- Input ---\n{\n--- End ---\n' >&2; exit 1",
    "OpenCode ended before it had answered; it said: x.json is not JSON:"
)]
#[case::silent("exit 1", "OpenCode ended before it had answered, and said nothing")]
#[case::nobody(
    "echo opencode server listening on http://127.0.0.1:1; sleep 300",
    "OpenCode does not answer: "
)]
#[case::ends_later(
    "echo opencode server listening on http://127.0.0.1:1; sleep 0.3; echo oops >&2",
    "OpenCode ended before it had answered; it said: oops"
)]
fn a_check_says_why_opencode_gave_no_answer(#[case] serve: &str, #[case] why: &str) {
    let home = Home::new();
    let script = format!("#!/bin/sh\ntest \"$1\" = --version && echo 1.18.33 && exit\n{serve}\n");
    let opencode = program(&home, &script);
    let said = Said::of(&mut check_with(&home, &opencode));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks(&format!("asyncagents: {why}"));
}

#[test]
fn a_check_without_an_opencode_says_how_to_name_it() {
    let home = Home::new();
    let said = Said::of(home.command().arg("--check").env("PATH", home.path("")));
    said.refused(
        1,
        "there is no `opencode` on the PATH; install OpenCode, or name it with --opencode-bin",
    );
    let mut named = home.command();
    named
        .arg("--check")
        .env("ASYNCAGENTS_OPENCODE_BIN", "/nowhere");
    Said::of(&mut named).refused(
        2,
        "/nowhere is not a program; name OpenCode with --opencode-bin",
    );
    let mute = program(&home, "#!/bin/sh\nexit 7\n");
    let said = Said::of(&mut check_with(&home, &mute));
    said.refused(
        1,
        &format!(
            "{} does not say its version: it ended with exit status: 7",
            mute.display()
        ),
    );
}

#[test]
fn a_check_that_is_stopped_leaves_nothing_running() {
    let home = Home::new();
    let quirks = Quirks {
        loading: Duration::from_secs(300),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "1.18.33", &TOOLS, quirks);
    let mut check = opencode.check(&home);
    let check = check.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut check = check.expect("runs");
    let begun = Instant::now();
    while opencode.asked.load(Ordering::SeqCst) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "never asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut kill = Command::new("kill");
    kill.args(["-INT", &check.id().to_string()]);
    assert!(kill.status().expect("runs").success());
    assert_eq!(check.wait().expect("ends").code(), Some(1));
    assert!(nothing_is_left(&home));
}

#[rstest]
#[case::loaded(
    Some(false),
    false,
    0,
    "loaded by an OpenCode 2 that was started for it",
    ""
)]
#[case::loaded_in_a_release(
    Some(false),
    true,
    0,
    "loaded by an OpenCode 2 that was started for it",
    ""
)]
#[case::failed(
    Some(true),
    false,
    1,
    "refused by",
    "could not load the plugin: Error: boom"
)]
#[case::failed_in_a_release(
    Some(true),
    true,
    1,
    "refused by",
    "could not load the plugin: Error: boom"
)]
fn a_check_asks_opencode_2_whether_it_has_loaded_the_plugin(
    #[case] plugin_failed: Option<bool>,
    #[case] is_release: bool,
    #[case] code: i32,
    #[case] answer: &str,
    #[case] remark: &str,
) {
    let home = Home::new();
    home.run(&[]);
    let quirks = Quirks {
        plugin_failed,
        is_release,
        ..Quirks::default()
    };
    let version = "opencode2 v2.0.0-source.20260819";
    let opencode = FakeOpencode::with(&home, version, &[], quirks);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(code), "{said:?}");
    let known = format!(", version {version}: supported");
    assert!(said.answer.contains(&known), "{said:?}");
    assert!(said.answer.contains(answer), "{said:?}");
    said.remarks(remark);
    assert!(nothing_is_left(&home));
}

#[test]
fn a_check_finds_the_copy_that_switches_opencode_2_off() {
    let home = Home::new();
    home.run(&[]);
    home.write(&home.project_file(), &rendered("/old"));
    let opencode = FakeOpencode::new(&home, "2.0.26", &[]);
    let said = Said::of(&mut opencode.check(&home));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks(&format!(
        "there is a second copy, {}: {ONLY_ONE}; `asyncagents setup opencode` leaves one",
        home.project_file().display()
    ));
    assert!(home.project_file().exists(), "a check changes nothing");
}
