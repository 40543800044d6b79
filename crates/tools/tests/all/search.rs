//! Stories about `glob` and `grep`.

use std::{
    fs::File,
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};

use asyncagents_core::agent::{Reach, ToolOutcome};
use asyncagents_tools::Reaching;
use rstest::rstest;
use serde_json::{Value, json};

use crate::workbench::Workbench;

fn bench() -> Workbench {
    let bench = Workbench::new();
    let files = [
        ("src/main.rs", "fn main() {\n    // Hello\n    run();\n}\n"),
        ("src/deep/run.rs", "fn run() {}\n"),
        ("README.md", "hello\n"),
        (".hidden/note.md", "hello\n"),
        (".gitignore", "target/\n"),
        ("target/out.rs", "fn main() {}\n"),
        (".git/config.rs", "fn main() {}\n"),
    ];
    for (age, (name, content)) in files.iter().enumerate() {
        let path = bench.file(name, content);
        let time = SystemTime::now() - Duration::from_secs(100 * (age as u64 + 1));
        let file = File::options().write(true).open(path).expect("the file");
        file.set_modified(time).expect("its time");
    }
    bench.file("binary.rs", b"fn main\0");
    bench
}

#[rstest]
#[case::newest_first("**/*.md", "README.md\n.hidden/note.md\n")]
#[case::no_slash_fits_everywhere("*.rs", "binary.rs\nsrc/main.rs\nsrc/deep/run.rs\n")]
#[case::star_stays_in_a_folder("src/*.rs", "src/main.rs\n")]
#[case::either("{README,x}.md", "README.md\n")]
#[case::leading_dot("./src/**", "src/main.rs\nsrc/deep/run.rs\n")]
#[case::nothing("*.py", "No file fits `*.py` in the workspace.\n")]
#[tokio::test]
async fn glob_finds_files_by_name(#[case] pattern: &str, #[case] expected: &str) {
    assert_eq!(
        bench().done("glob", json!({"pattern": pattern})).await,
        expected
    );
}

#[rstest]
#[case::bad_pattern(json!({"pattern": "a[b"}), "`a[b` is not a file pattern: unclosed character class; missing ']'")]
#[case::file(json!({"pattern": "*", "path": "README.md"}), "README.md is not a folder")]
#[tokio::test]
async fn glob_says_what_is_wrong(#[case] input: Value, #[case] expected: &str) {
    assert_eq!(bench().failed("glob", input).await, expected);
}

#[tokio::test]
async fn glob_says_that_there_are_more() {
    let bench = Workbench::new();
    (0..250).for_each(|n| drop(bench.file(&format!("f{n}"), "")));
    let text = bench.done("glob", json!({"pattern": "f*"})).await;
    assert_eq!(text.lines().count(), 201);
    let end = "[200 of 250 files; use a narrower pattern for the others]\n";
    assert!(text.ends_with(end));
}

#[rstest]
#[case::lines(json!({"pattern": "fn \\w+"}), "src/deep/run.rs:1:fn run() {}\nsrc/main.rs:1:fn main() {\n")]
#[case::any_case(json!({"pattern": "hello", "ignore_case": true, "path": "src"}), "src/main.rs:2:    // Hello\n")]
#[case::context(json!({"pattern": "Hello", "context": 1}), "src/main.rs-1-fn main() {\nsrc/main.rs:2:    // Hello\nsrc/main.rs-3-    run();\n")]
#[case::files(json!({"pattern": "hello", "mode": "files"}), ".hidden/note.md\nREADME.md\n")]
#[case::count(json!({"pattern": "run|main", "mode": "count"}), "src/deep/run.rs: 1\nsrc/main.rs: 2\n")]
#[case::names(json!({"pattern": "(?i)hello", "glob": "*.rs"}), "src/main.rs:2:    // Hello\n")]
#[case::one_file(json!({"pattern": "main", "path": "src/main.rs"}), "src/main.rs:1:fn main() {\n")]
#[case::one_file_by_name(json!({"pattern": "main", "path": "src/main.rs", "glob": "*.rs"}), "src/main.rs:1:fn main() {\n")]
#[case::nothing(json!({"pattern": "xyz"}), "No line fits `xyz` in the workspace.\n")]
#[tokio::test]
async fn grep_finds_lines(#[case] input: Value, #[case] expected: &str) {
    assert_eq!(bench().done("grep", input).await, expected);
}

#[rstest]
#[case::bad_expression(json!({"pattern": "fn main("}), "`fn main(` is not a regular expression: unclosed group; put \\ before signs that stand for themselves\n    fn main(\n           ^")]
#[case::bad_glob(json!({"pattern": "a", "glob": "{a"}), "`{a` is not a file pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")]
#[case::missing(json!({"pattern": "a", "path": "scr"}), "scr does not exist. Similar names in its folder: src")]
#[tokio::test]
async fn grep_says_what_is_wrong(#[case] input: Value, #[case] expected: &str) {
    assert_eq!(bench().failed("grep", input).await, expected);
}

/// The walker would wait for the pipe, and read the device until no memory is left.
#[rstest]
#[case::pipe("mkfifo {file}")]
#[case::device("ln -s /dev/zero {file}")]
#[case::file_of_the_kernel("ln -s /proc/kmsg {file}")]
#[case::huge("truncate -s 2M {file}")]
#[tokio::test]
async fn ignore_files_that_cannot_be_read_are_not(
    #[case] make: &str,
    #[values(".gitignore", ".ignore", ".git/info/exclude")] file: &str,
    #[values("", "sub")] folder: &str,
    #[values(".", "sub/deep")] path: &str,
) {
    let bench = Workbench::new();
    bench.file("top.rs", "x\n");
    bench.file("sub/deep/low.rs", "x\n");
    let file = bench.workspace.join(folder).join(file);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let make = make.replace("{file}", &file.display().to_string());
    let made = Command::new("sh").args(["-c", &make]).status();
    assert!(made.expect("sh").success());
    let search = bench.done("glob", json!({"pattern": "*.rs", "path": path}));
    let found = tokio::time::timeout(Duration::from_secs(5), search).await;
    let found = found.expect("in time");
    let expected: &[&str] = match (path, folder) {
        (".", "sub") => &["top.rs"],
        (".", _) => &["sub/deep/low.rs", "top.rs"],
        _ => &["sub/deep/low.rs"],
    };
    let mut found: Vec<_> = found.lines().collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[rstest]
#[case::link(&[("rules", "*.log\n")], "ln -s rules .gitignore")]
#[case::exclude(&[(".git/info/exclude", "*.log\n")], "true")]
#[case::work_tree(
    &[
        ("main/info/exclude", "*.log\n"),
        ("main/worktrees/w/commondir", "../..\n"),
    ],
    "echo gitdir: $PWD/main/worktrees/w > .git"
)]
#[tokio::test]
async fn ignore_files_are_used(#[case] files: &[(&str, &str)], #[case] make: &str) {
    let bench = Workbench::new();
    for (name, content) in files {
        bench.file(name, content);
    }
    bench.file("a.log", "");
    bench.file("a.rs", "");
    let made = Command::new("sh")
        .args(["-c", make])
        .current_dir(&bench.workspace)
        .status();
    assert!(made.expect("sh").success());
    let found = bench.done("glob", json!({"pattern": "a.*"})).await;
    assert_eq!(found, "a.rs\n");
}

#[tokio::test]
async fn a_work_tree_that_leads_to_a_pipe_is_not_followed() {
    let bench = Workbench::new();
    bench.file("a.rs", "");
    let make = "mkdir far && mkfifo far/commondir && echo gitdir: $PWD/far > .git";
    let made = Command::new("sh")
        .args(["-c", make])
        .current_dir(&bench.workspace)
        .status();
    assert!(made.expect("sh").success());
    let search = bench.done("glob", json!({"pattern": "*.rs"}));
    let found = tokio::time::timeout(Duration::from_secs(5), search).await;
    assert_eq!(found.expect("in time"), "a.rs\n");
}

#[tokio::test]
async fn grep_keeps_within_its_limit() {
    let bench = Workbench::with(|settings| settings.output_limit = 3_000);
    bench.file("many", "needle\n".repeat(10_000));
    let text = bench.done("grep", json!({"pattern": "needle"})).await;
    assert!(text.chars().count() <= 3_000);
    let end = "[there is more; narrow the search with `glob`, `path` or `pattern`]\n";
    assert!(text.ends_with(end));

    bench.file("many", "");
    bench.file("wide", format!("needle{}", "x".repeat(1_000_000)));
    let text = bench.done("grep", json!({"pattern": "needle"})).await;
    assert!(text.ends_with("x [… 999606 more characters]\n"), "{text}");
}

/// A call where `src/deep` has to be asked for, and notes are forbidden.
async fn within(bench: &Workbench, tool: &str, input: Value) -> String {
    match outcome_within(bench, tool, input).await {
        ToolOutcome::Done(text) => text,
        other => panic!("{tool}: {other:?}"),
    }
}

async fn outcome_within(bench: &Workbench, tool: &str, input: Value) -> ToolOutcome {
    let reaching: Reaching = Arc::new(|file| match file {
        "src/deep/run.rs" => Reach::Ask,
        ".hidden/note.md" | ".hidden" => Reach::Hide,
        _ => Reach::Show,
    });
    bench.prepared(tool, &input).run(reaching, &|_| {}).await
}

const ASK: &str =
    "[1 file left out: reading has to be allowed first; name a file with `path` to ask for it]\n";
const FORBIDDEN: &str = "[1 file left out: a rule forbids reading]\n";

#[rstest]
#[case::lines(json!({"pattern": "hello|fn run", "glob": "*.{md,rs}"}), "README.md:1:hello\n", &[ASK, FORBIDDEN])]
#[case::files(json!({"pattern": "hello|fn run", "mode": "files"}), "README.md\n", &[ASK, FORBIDDEN])]
#[case::counts(json!({"pattern": "hello|fn run", "mode": "count"}), "README.md: 1\n", &[ASK, FORBIDDEN])]
#[case::only_files_of_that_name(json!({"pattern": "hello", "glob": "*.md"}), "README.md:1:hello\n", &[FORBIDDEN])]
#[case::nothing_else(json!({"pattern": "fn run", "path": "src/deep"}), "No line fits `fn run` in src/deep.\n", &[ASK])]
#[case::whether_it_would_fit_or_not(json!({"pattern": "x", "path": "src/deep"}), "No line fits `x` in src/deep.\n", &[ASK])]
#[tokio::test]
async fn grep_passes_over_what_may_not_be_shown(
    #[case] input: Value,
    #[case] found: &str,
    #[case] remarks: &[&str],
) {
    let text = within(&bench(), "grep", input).await;
    assert_eq!(text, format!("{found}{}", remarks.concat()));
}

#[tokio::test]
async fn glob_and_read_do_not_list_what_is_forbidden() {
    let bench = bench();
    let files = within(&bench, "glob", json!({"pattern": "{*.md,run.rs}"})).await;
    assert_eq!(files, "src/deep/run.rs\nREADME.md\n");
    let list = within(&bench, "read", json!({"path": "."})).await;
    assert!(
        list.starts_with(". is a folder with 6 entries:\n"),
        "{list}"
    );
    assert!(!list.contains(".hidden"), "{list}");
}

#[tokio::test]
async fn what_is_forbidden_is_not_named_by_a_link_or_a_guess() {
    let bench = bench();
    let folder = bench.workspace.join("src");
    std::os::unix::fs::symlink("../.hidden/note.md", folder.join("link")).expect("a link");
    std::os::unix::fs::symlink("../README.md", folder.join("free")).expect("a link");
    let list = within(&bench, "read", json!({"path": "src"})).await;
    assert!(list.contains("free -> ../README.md\n"), "{list}");
    assert!(!list.contains("hidden"), "{list}");
    for (tool, input) in [
        ("read", json!({"path": ".hiden"})),
        ("grep", json!({"path": ".hiden", "pattern": "x"})),
        ("edit", json!({"path": ".hiden", "old": "x", "new": "y"})),
    ] {
        let missing = outcome_within(&bench, tool, input).await;
        assert!(
            missing.text().starts_with(".hiden does not exist"),
            "{missing:?}"
        );
        assert!(!missing.text().contains(".hidden"), "{missing:?}");
    }
}
