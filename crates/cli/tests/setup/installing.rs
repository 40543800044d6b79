//! The plugin goes where OpenCode loads it, once, and away again.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use asyncagents_hosts::plugin;
use rstest::rstest;

use super::{Home, ONLY_ONE, Said, TOOLS, current, fake::FakeOpencode, rendered};

#[test]
fn it_is_installed_once_and_removed_without_a_trace() {
    let home = Home::new();
    let file = home.user_file();
    let path = file.display();
    let said = home.run(&[]).done(&format!("{path} is installed."));
    said.remarks("restart OpenCode");
    said.remarks("`asyncagents setup opencode --check`");
    said.remarks("in a build folder");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
    let mode = fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o400, 0o400, "{mode:o}");
    let other = fs::read_dir(file.parent().expect("a folder")).expect("read");
    assert_eq!(other.count(), 1, "nothing is left of the writing");

    let before = fs::metadata(&file).expect("there").ino();
    home.run(&["--user"])
        .done(&format!("{path} is up to date."));
    let after = fs::metadata(&file).expect("there").ino();
    assert_eq!(before, after, "it was not written again");

    home.run(&["--remove"])
        .done(&format!("{path} is removed. Restart OpenCode."));
    assert!(!home.path("config/opencode/plugins").exists());
    assert!(home.path("config/opencode").exists(), "OpenCode's own");
    let nothing = format!("There is no plugin to remove: {path} is not there.");
    home.run(&["--remove"]).done(&nothing);
}

#[test]
fn an_older_one_is_updated() {
    let home = Home::new();
    let file = home.user_file();
    home.write(&file, &rendered("/somewhere/else/asyncagents"));
    let said = home
        .run(&[])
        .done(&format!("{} is updated.", file.display()));
    said.remarks("restart OpenCode");
    assert_eq!(fs::read_to_string(&file).expect("read"), current());
}

#[test]
fn there_is_one_copy_however_often_it_is_installed() {
    let home = Home::new();
    let (user, project) = (home.user_file(), home.project_file());
    let said = home.run(&["--project"]);
    said.done(&format!("{} is installed.", project.display()));
    home.run(&[]).done(&format!(
        "{} was another copy and is removed: {ONLY_ONE}.\n{} is installed.",
        project.display(),
        user.display()
    ));
    assert!(!home.path("project/.opencode").exists());
    // The user's copy serves the project, and a second one would switch OpenCode 2 off there.
    home.run(&["--project"]).done(&format!(
        "{} serves this folder too, so it gets none of its own: {ONLY_ONE}. `asyncagents setup \
         opencode` updates that one.",
        user.display()
    ));
    assert!(!project.exists());
    let renamed = project.with_file_name("mine.ts");
    home.write(&renamed, &rendered("/old"));
    home.run(&["--project"]);
    assert!(!renamed.exists(), "a copy under another name is one too");
    assert_eq!(fs::read_to_string(&user).expect("read"), current());
}

#[test]
fn a_copy_of_an_older_version_goes_from_where_that_put_it() {
    let home = Home::new();
    let old = home.path("config/opencode/plugin/asyncagents.js");
    let other = old.with_file_name("mine.js");
    home.write(&old, &rendered("/old"));
    home.write(&other, "export const Mine = async () => ({});\n");
    home.run(&[]).done(&format!(
        "{} was another copy and is removed: {ONLY_ONE}.\n{} is installed.",
        old.display(),
        home.user_file().display()
    ));
    assert!(!old.exists() && other.exists());
    // A copy in one environment's folder gives way to the one that all have.
    let own = home.path("elsewhere/plugin/asyncagents.js");
    home.write(&own, &rendered("/old"));
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(&mut command);
    assert!(
        said.answer
            .ends_with(&format!("{} is up to date.", home.user_file().display()))
    );
    assert!(!own.exists(), "{said:?}");
}

#[test]
fn a_project_leaves_the_plugin_to_the_copy_that_all_environments_load() {
    let home = Home::new();
    home.run(&[]);
    let user = home.user_file();
    let own = home.path("elsewhere/plugins/asyncagents.js");
    home.write(&own, &rendered("/old"));
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(command.arg("--project"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let removed = format!("{} was another copy and is removed", own.display());
    assert!(said.answer.contains(&removed), "{said:?}");
    assert_eq!(fs::read_to_string(&user).expect("read"), current());
    assert!(!own.exists() && !home.project_file().exists());
}

#[test]
fn a_copy_that_only_a_link_makes_is_told_of() {
    let home = Home::new();
    home.run(&[]);
    let link = home.path("config/opencode/plugin");
    symlink("plugins", &link).expect("linked");
    let said = home.run(&[]);
    said.remarks("plugin/asyncagents.js is the same file by a link");
    assert!(home.user_file().exists());
    home.run(&["--remove"]);
    assert!(!home.user_file().exists());
}

#[test]
fn what_else_is_in_the_folder_stays() {
    let home = Home::new();
    let other = home.path("project/.opencode/plugins/mine.js");
    home.write(&other, "export const Mine = async () => ({});\n");
    let file = other.with_file_name("asyncagents.js");
    let installed = format!("{} is installed.", file.display());
    home.run(&["--project"]).done(&installed);
    home.run(&["--project", "--remove"])
        .done(&format!("{} is removed. Restart OpenCode.", file.display()));
    assert!(other.exists());
}

#[test]
fn the_folder_of_opencode_can_be_another_one() {
    let home = Home::new();
    let file = home.path("elsewhere/plugins/asyncagents.js");
    let mut command = home.command();
    command.env("OPENCODE_CONFIG_DIR", home.path("elsewhere"));
    let said = Said::of(&mut command).done(&format!("{} is installed.", file.display()));
    said.remarks("while OPENCODE_CONFIG_DIR is set");
    let mut command = home.command();
    command.env_remove("XDG_CONFIG_HOME");
    let file = home
        .folder
        .path()
        .join(".config/opencode/plugins/asyncagents.js");
    Said::of(&mut command).done(&format!("{} is installed.", file.display()));
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_updated() {
    let home = Home::new();
    let real = home.path("dotfiles/asyncagents.js");
    home.write(&real, &rendered("/old"));
    let file = home.user_file();
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    symlink(&real, &file).expect("linked");
    home.run(&[])
        .done(&format!("{} is updated.", file.display()));
    assert!(file.is_symlink());
    assert_eq!(fs::read_to_string(&real).expect("read"), current());
}

#[test]
fn settings_that_name_it_too_are_worth_a_remark() {
    let home = Home::new();
    let settings = home.path("project/opencode.jsonc");
    home.write(
        &settings,
        "{ // \"x\"\n\"plugin\": [\"./asyncagents.js\"] }\n",
    );
    let unused = home.path("config/opencode/opencode.json");
    home.write(&unused, "{\n  // \"plugin\": [\"./asyncagents.js\"]\n}\n");
    let said = home.run(&[]);
    said.remarks(&format!("{} names asyncagents.js", settings.display()));
    assert!(!said.remarks.contains("opencode.json names"), "{said:?}");
    let copy = home.path("project/asyncagents.js");
    home.write(&copy, &rendered("/old"));
    let said = home.run(&[]);
    said.remarks(&format!(
        "names {} among its plugins",
        home.path("project/./asyncagents.js").display()
    ));
    said.remarks("take the entry out");
}

/// Something else where the plugin should be.
enum Other {
    File,
    FileWithTheMarkBelow,
    NotText,
    Folder,
    DeadLink,
}

#[rstest]
#[case(Other::File, "not a file that asyncagents wrote")]
#[case(Other::FileWithTheMarkBelow, "not a file that asyncagents wrote")]
#[case(Other::NotText, "not a file that asyncagents wrote")]
#[case(Other::Folder, "a folder")]
#[case(Other::DeadLink, "a link that leads nowhere")]
fn what_is_not_ours_is_left_alone(#[case] other: Other, #[case] what: &str) {
    let home = Home::new();
    let file = home.user_file();
    let below = format!("export default 1\n// {}\n", plugin::MARK);
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    match other {
        Other::File => fs::write(&file, "export default 1\n").expect("written"),
        Other::FileWithTheMarkBelow => fs::write(&file, below).expect("written"),
        Other::NotText => fs::write(&file, b"\xff\xfe").expect("written"),
        Other::Folder => fs::create_dir(&file).expect("a folder"),
        Other::DeadLink => symlink(home.path("nowhere"), &file).expect("linked"),
    }
    let before = fs::read(&file).ok();
    let why = format!(
        "{} is {what}; it was left alone. Move it away and try again",
        file.display()
    );
    home.run(&[]).refused(2, &why);
    home.run(&["--remove"]).refused(2, &why);
    assert!(file.symlink_metadata().is_ok());
    assert_eq!(fs::read(&file).ok(), before);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_left_alone() {
    let home = Home::new();
    let wall = home.path("project/.opencode");
    home.write(&wall, "mine");
    let why = format!(
        "{} is a file, not a folder; it was left alone. Move it away and try again",
        wall.display()
    );
    home.run(&["--project"]).refused(2, &why);
    let file = home.project_file();
    let nothing = format!(
        "There is no plugin to remove: {} is not there.",
        file.display()
    );
    home.run(&["--project", "--remove"]).done(&nothing);
    assert_eq!(fs::read_to_string(wall).expect("read"), "mine");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_clear_error() {
    let home = Home::new();
    let folder = home.path("config/opencode/plugins");
    let file = folder.join("asyncagents.js");
    home.write(&file, &rendered("/old"));
    // Permissions do not bind root; and whoever else it is has to find the program.
    let program = home.path("asyncagents");
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents")]);
    assert!(install.arg(&program).status().expect("it runs").success());
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    set(&home.path(""), 0o755);
    set(&folder, 0o555);
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["setup", "opencode"]).args(args);
        command.env_clear().env("HOME", "/nowhere");
        command.env("XDG_CONFIG_HOME", home.path("config"));
        if fs::metadata("/proc/self").expect("own").uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        Said::of(command.current_dir("/"))
    };
    let path = file.display();
    run(&[]).refused(
        1,
        &format!("{path} cannot be written: you may not write there; nothing was changed"),
    );
    let removing = run(&["--remove"]);
    assert_eq!(removing.code, Some(1), "{removing:?}");
    removing.remarks(&format!(
        "{path} cannot be removed: you may not write there"
    ));
    let text = fs::read_to_string(&file).expect("read");
    assert_eq!(text, rendered("/old"));
    set(&folder, 0o755);
}

#[rstest]
#[case::no_home(None, "HOME is not set")]
#[case::relative(Some("here"), "XDG_CONFIG_HOME is not an absolute path")]
fn without_a_configuration_folder_there_is_the_project(
    #[case] config: Option<&str>,
    #[case] why: &str,
) {
    let home = Home::new();
    let command = || {
        let mut command = home.command();
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command.envs(config.map(|config| ("XDG_CONFIG_HOME", config)));
        command
    };
    let why = format!("{why}, so there is no configuration folder; --project needs none");
    Said::of(&mut command()).refused(2, &why);
    Said::of(command().arg("--remove")).refused(2, &why);
    let installed = format!("{} is installed.", home.project_file().display());
    Said::of(command().arg("--project")).done(&installed);
}

#[rstest]
#[case(&["setup", "emacs"], "emacs")]
#[case(&["setup", "opencode", "--user", "--project"], "--project")]
#[case(&["setup", "opencode", "--remove", "--check"], "--check")]
#[case(&["setup", "opencode", "--opencode-bin", "x"], "--check")]
fn wrong_words_are_refused_with_what_is_wrong(#[case] args: &[&str], #[case] named: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    let said = Said::of(command.args(args));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.remarks.starts_with("error: "), "{said:?}");
    said.remarks(named);
}

#[test]
fn a_path_with_quotes_and_spaces_is_named_as_it_is() {
    let home = Home::new();
    let program = home.path("a \"folder\"\\with é/asyncagents");
    fs::create_dir(program.parent().expect("a folder")).expect("a folder");
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents")]);
    assert!(install.arg(&program).status().expect("it runs").success());
    let mut command = Command::new(&program);
    command.env_clear().env("HOME", home.path(""));
    let said = Said::of(command.args(["setup", "opencode"]).current_dir("/"));
    assert!(!said.remarks.contains("build folder"), "{said:?}");
    let opencode = FakeOpencode::new(&home, "1.18.33", &TOOLS);
    let mut check = opencode.check(&home);
    check.env_remove("XDG_CONFIG_HOME");
    let said = Said::of(&mut check);
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = format!("program: {}, asyncagents ", program.display());
    assert!(said.answer.contains(&line), "{said:?}");
}
