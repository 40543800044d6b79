//! `asyncagents setup` without a name finds what is installed.

use std::{fs, process::Command};

use super::{
    Home, ONLY_ONE, Said, TOOLS, current,
    fake::{FakeOpencode, Quirks, program},
};

/// `asyncagents setup`, with OpenCode on the PATH.
fn setup_all(home: &Home, path: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    command
        .current_dir(home.path("project"))
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.folder.path())
        .env("XDG_CONFIG_HOME", home.path("config"))
        .arg("setup");
    command
}

#[test]
fn without_a_name_what_is_installed_is_set_up_and_checked() {
    let home = Home::new();
    let quirks = Quirks {
        plugin_failed: Some(false),
        ..Quirks::default()
    };
    let opencode = FakeOpencode::with(&home, "2.0.26", &[], quirks);
    let bin = opencode.bin.parent().expect("a folder").display();
    let said = Said::of(&mut setup_all(&home, &format!("{bin}:/usr/bin:/bin")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let file = home.user_file();
    let begins = format!(
        "Found OpenCode 2.0.26: {}.\nThe plugin goes to {}. Other copies of it that OpenCode would \
         load here are removed; nothing else is changed.\n{} is installed.\n",
        opencode.bin.display(),
        file.display(),
        file.display()
    );
    assert!(said.answer.starts_with(&begins), "{said:?}");
    assert!(
        said.answer
            .ends_with("loaded by an OpenCode 2 that was started for it")
    );
    // It has loaded the plugin by itself.
    said.remarks("Next: try \"Launch two background agents");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
}

/// An OpenCode 1 that sees the tools, and the PATH it is on.
fn opencode1(home: &Home) -> (FakeOpencode, String) {
    let opencode = FakeOpencode::new(home, "1.18.33", &TOOLS);
    let bin = opencode.bin.parent().expect("a folder").display();
    let path = format!("{bin}:/usr/bin:/bin");
    (opencode, path)
}

#[test]
fn an_opencode_1_has_to_be_restarted() {
    let home = Home::new();
    let (_opencode, path) = opencode1(&home);
    let said = Said::of(&mut setup_all(&home, &path));
    assert_eq!(said.code, Some(0), "{said:?}");
    said.remarks("Next: restart OpenCode and try \"Launch two background agents");
    // Nothing has changed, so there is nothing to do.
    let again = Said::of(&mut setup_all(&home, &path));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(!again.remarks.contains("Next:"), "{again:?}");
}

#[test]
fn a_second_copy_is_found_by_a_check_and_removed() {
    let home = Home::new();
    let (_opencode, path) = opencode1(&home);
    Said::of(&mut setup_all(&home, &path));
    home.write(&home.project_file(), &current());
    let check = || Said::of(setup_all(&home, &path).arg("--check"));
    let said = check();
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks(&format!(
        "there is a second copy, {}: {ONLY_ONE}; `asyncagents setup opencode` leaves one",
        home.project_file().display()
    ));
    let said = Said::of(&mut setup_all(&home, &path));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!home.project_file().exists());
    let said = check();
    assert_eq!(said.code, Some(0), "{said:?}");
    Said::of(setup_all(&home, &path).args(["--check", "opencode", "--remove"])).refused(
        2,
        "--check goes behind the host, as in `asyncagents setup opencode --check`",
    );
}

#[test]
fn where_the_plugin_goes_is_where_it_is_kept() {
    let home = Home::new();
    let (_opencode, path) = opencode1(&home);
    Said::of(&mut setup_all(&home, &path));
    let mut command = setup_all(&home, &path);
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(&mut command);
    let goes = format!("The plugin goes to {}.", home.user_file().display());
    assert!(said.answer.contains(&goes), "{said:?}");
    assert!(!home.path("elsewhere").exists());
}

#[test]
fn without_an_agent_nothing_is_written_and_nothing_of_a_project_is_run() {
    let home = Home::new();
    let proof = home.path("ran");
    let script = format!("#!/bin/sh\ntouch {}\necho 1.18.33\n", proof.display());
    let bin = home.path("project/node_modules/.bin");
    fs::create_dir_all(&bin).expect("folders");
    for name in ["opencode", "claude", "codex"] {
        fs::rename(program(&home, &script), bin.join(name)).expect("moved");
    }
    let path = format!("{}:node_modules/.bin:/usr/bin:/bin", bin.display());
    let said = Said::of(&mut setup_all(&home, &path));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks("there is no OpenCode, Claude Code or Codex here that asyncagents works with");
    for (host, missing) in [
        (
            "claude-code",
            "there is no `claude` on the PATH; install Claude Code first",
        ),
        (
            "codex",
            "there is no `codex` on the PATH; install Codex first",
        ),
    ] {
        Said::of(setup_all(&home, &path).arg(host)).refused(1, missing);
    }
    let no_project = "Codex installs plugins for its user, not for a folder; leave out --project";
    Said::of(setup_all(&home, &path).args(["codex", "--project"])).refused(2, no_project);
    assert!(!proof.exists(), "a project's program was run");
    assert!(!home.path("config").exists());
}
