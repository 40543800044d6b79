//! `asyncagents setup` without a name finds what is installed.

use std::{fs, process::Command};

use super::{
    Home, Said, current,
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
        "Found OpenCode 2.0.26: {}.\nIts plugin goes to {}; nothing else is changed.\n{} is \
         installed.\n",
        opencode.bin.display(),
        file.display(),
        file.display()
    );
    assert!(said.answer.starts_with(&begins), "{said:?}");
    assert!(
        said.answer
            .ends_with("loaded by an OpenCode 2 that was started for it")
    );
    said.remarks("Next: restart OpenCode");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
}

#[test]
fn without_an_opencode_nothing_is_written_and_nothing_of_a_project_is_run() {
    let home = Home::new();
    let proof = home.path("ran");
    let script = format!("#!/bin/sh\ntouch {}\necho 1.18.33\n", proof.display());
    let trap = home.path("project/node_modules/.bin/opencode");
    fs::create_dir_all(trap.parent().expect("a folder")).expect("folders");
    fs::rename(program(&home, &script), &trap).expect("moved");
    let bin = trap.parent().expect("a folder").display();
    let path = format!("{bin}:node_modules/.bin:/usr/bin:/bin");
    let said = Said::of(&mut setup_all(&home, &path));
    assert_eq!(said.code, Some(1), "{said:?}");
    said.remarks("there is no OpenCode here that asyncagents works with");
    assert!(!proof.exists(), "a project's program was run");
    assert!(!home.path("config").exists());
}
