//! `asyncagents skill list`, `show` and `check`, as the author of a skill meets them.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Skills as people write them, good and bad; see the README beside them.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/skills")
}

/// A project with a home beside it.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("home")).expect("a home");
        fs::create_dir_all(folder.path().join("work/.git")).expect("a project");
        Self { folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn skill(&self, folder: &str, head: &str) -> PathBuf {
        let file = self.path(folder).join("SKILL.md");
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(&file, format!("---\n{head}\n---\nDo it.\n")).expect("written");
        file
    }

    fn run_in(&self, folder: &str, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("asyncagents").expect("built");
        command.current_dir(self.path(folder)).env_clear();
        command.env("HOME", self.path("home")).args(arguments);
        command.output().expect("run")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_in("work", arguments)
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn checking_a_tree_of_skills_names_file_line_and_reason() {
    let project = Project::new();
    let mut command = Command::cargo_bin("asyncagents").expect("built");
    command.current_dir(fixtures()).env_clear();
    command.env("HOME", project.path("home"));
    let output = command.args(["skill", "check", "."]).output().expect("run");
    insta::assert_snapshot!(stdout(&output).replace("./", ""));
    assert_eq!(output.status.code(), Some(1));
    let good = fixtures().join("code-review");
    let output = project.run(&["skill", "check", good.to_str().expect("text")]);
    assert_eq!(stdout(&output), "1 skill, 0 bad\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_fixture_that_is_not_bad_is_listed() {
    let project = Project::new();
    let skills = project.path("work/.claude/skills");
    for entry in fs::read_dir(fixtures()).expect("fixtures").flatten() {
        if entry.path().is_dir() {
            let to = skills.join(entry.file_name());
            fs::create_dir_all(&to).expect("made");
            for file in fs::read_dir(entry.path()).expect("a folder").flatten() {
                fs::copy(file.path(), to.join(file.file_name())).expect("copied");
            }
        }
    }
    let output = project.run(&["skill", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<&str> = listed["skills"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|skill| skill["name"].as_str())
        .collect();
    assert_eq!(names.len(), 34, "{names:?}");
    assert_eq!(listed["broken"].as_array().map(Vec::len), Some(3));
    insta::assert_snapshot!(stdout(&project.run(&["skill", "show", "dependency-audit"])));
}

#[test]
fn the_layers_hide_each_other_and_say_so() {
    let project = Project::new();
    project.skill(
        "work/.claude/skills/review",
        "name: review\ndescription: The project's.\npriority: 9",
    );
    project.skill(
        "work/deep/.agents/skills/review",
        "name: review\ndescription: Nearer.",
    );
    project.skill(
        "home/.claude/skills/review",
        "name: review\ndescription: My own.",
    );
    project.skill(
        "plug/skills/review",
        "name: review\ndescription: A plugin's.",
    );
    project.skill("plug/skills/extra", "name: extra\ndescription: Only there.");
    project.skill(
        "above/.claude/skills/other",
        "name: other\ndescription: Not in the repository.",
    );
    let plugins = format!("skills.plugins={}", project.path("plug").display());
    let output = project.run_in("work/deep", &["-c", &plugins, "skill", "list"]);
    let text = stdout(&output);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("hidden by"))
        .collect();
    assert_eq!(
        lines,
        [
            "review  user        My own.",
            "review  project     The project's. (hidden)",
            "review  project     Nearer. (hidden)",
            "extra   plugin      Only there.",
            "review  plugin      A plugin's. (hidden)",
        ]
    );
    assert!(
        text.contains(".agents/skills/review/SKILL.md is hidden by "),
        "{text}"
    );
    let enterprise = project.skill("boss/review", "name: review\ndescription: The boss's.");
    let boss = format!("skills.enterprise={}", project.path("boss").display());
    let shown = project.run(&["-c", &boss, "skill", "show", "Review", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["file"].as_str(), enterprise.to_str());
}

#[test]
fn files_that_are_traps_are_errors_and_hide_nothing() {
    let project = Project::new();
    project.skill("work/.claude/skills/fine", "description: Fine.");
    let skills = project.path("work/.claude/skills");
    fs::create_dir_all(skills.join("giant")).expect("made");
    let giant = fs::File::create(skills.join("giant/SKILL.md")).expect("made");
    giant.set_len(1 << 30).expect("a hole");
    fs::create_dir_all(skills.join("group/loop")).expect("made");
    let link =
        |to: &Path, name: &str| std::os::unix::fs::symlink(to, skills.join(name)).expect("linked");
    link(&skills, "group/loop/again");
    link(Path::new("round"), "round");
    let secret = project.skill("elsewhere/secret", "description: Not the project's.");
    link(secret.parent().expect("a folder"), "out");
    fs::create_dir_all(skills.join("leak")).expect("made");
    link(&secret, "leak/SKILL.md");
    fs::create_dir_all(skills.join("folder/SKILL.md")).expect("made");
    let output = project.run(&["skill", "list"]);
    let text = stdout(&output);
    assert!(text.starts_with("fine  project     Fine.\n"), "{text}");
    let wrong: Vec<&str> = text.lines().skip(1).collect();
    let expected = [
        "folder/SKILL.md:1: it is not a file",
        "giant/SKILL.md:1: it has 1073741824 bytes; allowed: 1000000",
        "group/loop/again:1: a link that leads back to where it came from",
        "leak/SKILL.md:1: a link that leads out of the project",
        "out:1: a link that leads out of the project",
        "round:1: a link that leads nowhere: Too many levels of symbolic links (os error 40)",
    ];
    let expected = expected.map(|line| format!(".claude/skills/{line}"));
    assert_eq!(wrong, expected);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn wrong_names_and_paths_are_told() {
    let project = Project::new();
    project.skill(
        "work/.claude/skills/review",
        "name: review\ndescription: Reviews.",
    );
    let output = project.run(&["skill", "show", "rewiev"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "asyncagents: there is no skill `rewiev`; there is review\n"
    );
    let output = project.run(&["skill", "check", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "asyncagents: nowhere: No such file or directory (os error 2)\n"
    );
    let output = project.run(&["skill", "check", "."]);
    assert_eq!(
        stdout(&output),
        "1 skill, 0 bad\n",
        "the project's, wherever it keeps it"
    );
    let output = project.run(&["skill", "check", ".git"]);
    assert_eq!(
        stderr(&output),
        "asyncagents: .git: there is no SKILL.md in it\n"
    );
}

/// A home that is a repository, with a folder of skills that is a link, as dotfiles have it.
#[test]
fn a_users_folder_of_skills_may_be_a_link() {
    let project = Project::new();
    project.skill("dotfiles/skills/notes", "description: Notes.");
    fs::create_dir_all(project.path("home/.claude")).expect("made");
    let link = project.path("home/.claude/skills");
    std::os::unix::fs::symlink(project.path("dotfiles/skills"), link).expect("linked");
    let text = stdout(&project.run(&["skill", "list"]));
    assert_eq!(text, "notes  user        Notes.\n");
}

#[test]
fn links_that_multiply_are_an_error_and_no_endless_search() {
    let project = Project::new();
    project.skill("work/.claude/skills/fine", "description: Fine.");
    let skills = project.path("work/.claude/skills");
    // Each folder leads ten times to the next one.
    for level in 0..6 {
        let folder = skills.join(format!("level{level}"));
        fs::create_dir_all(&folder).expect("made");
        for link in 0..10 {
            let to = skills.join(format!("level{}", level + 1));
            std::os::unix::fs::symlink(to, folder.join(format!("link{link}"))).expect("linked");
        }
    }
    fs::create_dir_all(skills.join("level6")).expect("made");
    let text = stdout(&project.run(&["skill", "list"]));
    assert!(text.starts_with("fine  project     Fine.\n"), "{text}");
    assert!(
        text.contains("more than 2000 folders are behind links"),
        "{text}"
    );
}

#[test]
fn programs_read_what_is_wrong_as_json() {
    let project = Project::new();
    project.skill(
        "work/skills/fine",
        "name: fine\ndescription: Fine.\nagent: general-purpose\nallowed-tools: Read, Bash(git *)",
    );
    project.skill(
        "work/skills/odd",
        "name: Odd One\ndescription: x\nagent: nobody",
    );
    let output = project.run(&["skill", "check", "skills", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let checked: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(checked["checked"], 2);
    assert_eq!(checked["bad"], 1);
    let [fine, odd] = checked["skills"].as_array().expect("a list").as_slice() else {
        unreachable!("{checked}");
    };
    assert_eq!(fine["bad"], false);
    assert_eq!(fine["remarks"], serde_json::json!([]));
    assert_eq!(odd["name"], "odd");
    assert_eq!(odd["flaws"][0]["line"], 2);
    assert_eq!(
        odd["remarks"][0]["reason"],
        "there is no agent `nobody` here"
    );
}

#[test]
fn a_list_and_a_skill_are_shown_under_the_same_names() {
    let project = Project::new();
    project.skill(
        "home/.claude/skills/review",
        "name: Review It\ndescription: Reviews.\nallowed-tools: Read, Bash(git log *)\n\
         when_to_use: Late.\ntimeout: 5s\nmetadata: {by: us}",
    );
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&project.run(arguments).stdout).expect("JSON")
    };
    let list = json(&["skill", "list", "--json"]);
    // A person may say what the list shows.
    let show = json(&["skill", "show", "review it", "--json"]);
    for (key, value) in list["skills"][0].as_object().expect("a skill") {
        assert_eq!(show[key], *value, "{key}");
    }
    assert_eq!(show["name"], "review");
    assert_eq!(show["title"], "Review It");
    assert_eq!(
        show["allowed_tools"],
        serde_json::json!(["read", "bash(git log *)"])
    );
    assert_eq!(show["timeout_ms"], 5_000);
    assert_eq!(show["metadata"]["by"], "us");
    assert_eq!(show["when_to_use"], "Late.");
    let text = stdout(&project.run(&["skill", "list"]));
    assert_eq!(text, "review  user        Review It: Reviews.\n");
}

/// A folder that is deep, hidden, or within a skill.
#[test]
fn checking_looks_everywhere() {
    let project = Project::new();
    let mut folder = "work/tree".to_owned();
    for level in 1..=9 {
        folder.push_str(&format!("/{level}"));
        project.skill(&folder, &format!("name: s{level}\ndescription: x"));
    }
    project.skill("work/tree/.hidden/deep", "name: deep\ndescription: x");
    let text = stdout(&project.run(&["skill", "check", "tree"]));
    assert!(text.ends_with("\n10 skills, 0 bad\n"), "{text}");
    for level in 10..80 {
        folder.push_str(&format!("/{level}"));
    }
    fs::create_dir_all(project.path(&folder)).expect("made");
    let output = project.run(&["skill", "check", "tree"]);
    let text = stdout(&output);
    assert!(
        text.contains("it is more than 64 folders deep: not looked into"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
}
