//! Which paths the file tools touch.

use std::{fs, os::unix::fs::symlink, os::unix::net::UnixListener};

use rstest::rstest;
use serde_json::{Value, json};

use crate::workbench::Workbench;

/// A workspace from which links lead out.
fn bench() -> Workbench {
    let bench = Workbench::new();
    symlink(&bench.outside, bench.workspace.join("folder")).expect("a link");
    symlink(bench.outside.join("precious"), bench.workspace.join("file")).expect("a link");
    symlink(bench.outside.join("new"), bench.workspace.join("dangling")).expect("a link");
    symlink("..", bench.workspace.join("up")).expect("a link");
    symlink("loop", bench.workspace.join("loop")).expect("a link");
    bench
}

#[rstest]
#[case::absolute("{outside}/precious")]
#[case::parent("../outside/precious")]
#[case::parent_of_what_is_not_there("not/there/../../../outside/precious")]
#[case::through_a_linked_folder("folder/precious")]
#[case::through_a_linked_file("file")]
#[case::through_a_link_upwards("up/outside/precious")]
#[case::parent_of_a_link("folder/../outside/precious")]
#[tokio::test]
async fn a_file_outside_is_out_of_reach(
    #[case] path: &str,
    #[values("read", "grep", "write", "edit")] tool: &str,
) {
    let bench = bench();
    let path = bench.filled(path);
    let input =
        json!({"path": path, "pattern": ".", "content": "x", "old": "precious", "new": "x"});
    let error = bench.failed(tool, input.clone()).await;
    let leads = if path == bench.filled("{outside}/precious") {
        String::new()
    } else {
        bench.filled(" (it leads to {outside}/precious)")
    };
    let begin = format!("{path} is outside of the workspace{leads}. Files can be ");
    assert!(error.starts_with(&begin), "{error}");
    let end = "The user can allow more folders with `tools.allowed` in the configuration.";
    assert!(error.ends_with(end), "{error}");
    let precious = fs::read_to_string(bench.outside.join("precious"));
    assert_eq!(precious.expect("untouched"), "precious\n");

    let prepared = bench.prepared(tool, &input);
    let target = bench.filled("{outside}/precious");
    assert_eq!(prepared.info().target, target);
}

/// Rules about a file see where a path leads, however it is spelled.
#[rstest]
#[case::dots("src/../.git/config")]
#[case::link("hooks/../config")]
#[case::linked_folder("inside/config")]
#[case::absolute("{workspace}/.git/config")]
fn a_need_names_the_file_itself(#[case] path: &str) {
    let bench = bench();
    bench.file(".git/config", "");
    bench.file(".git/hooks/x", "");
    symlink(".git", bench.workspace.join("inside")).expect("a link");
    symlink(".git/hooks", bench.workspace.join("hooks")).expect("a link");
    let input = json!({"path": bench.filled(path), "content": "x"});
    let prepared = bench.prepared("write", &input);
    assert_eq!(prepared.info().target, ".git/config");
}

#[rstest]
#[case::dangling_link("dangling")]
#[case::new_file("folder/new")]
#[case::new_folder("folder/new/deep/file")]
#[tokio::test]
async fn nothing_is_made_outside(#[case] path: &str) {
    let bench = bench();
    bench
        .failed("write", json!({"path": path, "content": "x"}))
        .await;
    assert!(!bench.outside.join("new").exists());
}

#[rstest]
#[case::glob("glob", json!({"pattern": "**/*"}))]
#[case::grep("grep", json!({"pattern": "precious"}))]
#[tokio::test]
async fn a_search_does_not_follow_links(#[case] tool: &str, #[case] input: Value) {
    let text = bench().done(tool, input).await;
    assert!(text.starts_with("No "), "{text}");
}

#[tokio::test]
async fn a_link_to_itself_is_an_error() {
    let error = bench().failed("read", json!({"path": "loop"})).await;
    assert_eq!(error, "cannot resolve loop: too many symbolic links");
}

/// A model that went astray should not get all of it back.
#[rstest]
#[case::missing("read", "path", "")]
#[case::outside("write", "path", "/")]
#[case::secret("read", "path", "~/.ssh/")]
#[case::zero("read", "path", "\0")]
#[case::folder("glob", "path", "")]
#[case::where_to_search("grep", "path", "")]
#[case::to_edit("edit", "path", "")]
#[case::names("glob", "pattern", "[")]
#[case::names_to_search("grep", "glob", "[")]
#[case::expression("grep", "pattern", "(")]
#[case::unknown_group("grep", "pattern", "(?P<")]
#[tokio::test]
async fn a_long_argument_is_cut_in_the_error(
    #[case] tool: &str,
    #[case] argument: &str,
    #[case] begin: &str,
) {
    let bench = Workbench::new();
    let mut input = json!({"pattern": "x", "content": "x", "old": "a", "new": "b"});
    if tool == "edit" || tool == "read" || tool == "write" {
        input["path"] = "x".into();
    }
    input[argument] = format!("{begin}{}", "x".repeat(100_000)).into();
    let error = bench.failed(tool, input).await;
    assert!(error.contains(" more characters]"), "{error}");
    assert!(error.len() < 1_200, "{}", error.len());
}

#[tokio::test]
async fn a_long_name_of_a_tool_is_cut() {
    let error = Workbench::new()
        .failed(&"x".repeat(100_000), json!({}))
        .await;
    assert!(error.len() < 1_000, "{}", error.len());
}

#[tokio::test]
async fn the_rules_see_all_of_a_long_path() {
    let bench = Workbench::new();
    let path = "x".repeat(1_000);
    let prepared = bench.prepared("read", &json!({"path": path}));
    assert_eq!(prepared.info().target, path);
}

#[rstest]
#[case::in_home("~/.ssh/id")]
#[case::database("~/.pgpass")]
#[case::browser("~/.mozilla/firefox/x/logins.json")]
#[case::typed("~/.bash_history")]
#[case::of_the_container("/run/secrets/token")]
#[case::whole_folder("~/.ssh")]
#[case::system("/etc/shadow")]
#[case::inside("secrets/token")]
#[tokio::test]
async fn credentials_are_out_of_reach_also_in_allowed_folders(#[case] path: &str) {
    let bench = Workbench::with(|settings| {
        settings.allowed = vec!["../home".into(), "/etc".into()];
        settings.secret_paths = vec!["secrets".into()];
    });
    bench.file("secrets/token", "hush");
    let error = bench.failed("read", json!({"path": path})).await;
    assert_eq!(
        error,
        format!("{path} may hold credentials and is kept from tools")
    );
    assert!(
        bench
            .toolbox
            .prepare("read", &json!({"path": path}).to_string())
            .is_err()
    );
    let input = json!({"pattern": "hush|PRIVATE", "path": "{workspace}"});
    for folder in [&bench.workspace, &bench.home] {
        let mut input = input.clone();
        input["path"] = folder.display().to_string().into();
        let text = bench.done("grep", input).await;
        assert!(text.starts_with("No line"), "{text}");
    }
    bench.done("read", json!({"path": "~/.profile"})).await;
}

#[tokio::test]
async fn a_workspace_within_a_secret_folder_is_a_workspace() {
    let bench = Workbench::with(|settings| {
        settings.secret_paths = vec!["..".into()];
    });
    bench.file("a", "text\n");
    bench.done("read", json!({"path": "a"})).await;
    let error = bench
        .failed("read", json!({"path": "../outside/precious"}))
        .await;
    assert!(error.contains("may hold credentials"), "{error}");
}

#[tokio::test]
async fn allowed_folders_are_written_and_readable_ones_only_read() {
    let allowed = Workbench::with(|settings| settings.allowed = vec!["../outside".into()]);
    let path = allowed.filled("{outside}/precious");
    allowed.done("read", json!({"path": path})).await;
    allowed
        .done("write", json!({"path": path, "content": "x"}))
        .await;

    let readable = Workbench::with(|settings| settings.readable = vec!["../outside".into()]);
    let path = readable.filled("{outside}/precious");
    readable.done("read", json!({"path": path})).await;
    let error = readable
        .failed("write", json!({"path": path, "content": "x"}))
        .await;
    assert!(error.contains("Files can be written in: "), "{error}");
    assert!(!error.contains("outside,"), "{error}");
}

#[tokio::test]
async fn special_files_are_never_opened() {
    let bench = Workbench::with(|settings| settings.allowed = vec!["/dev".into()]);
    let _socket = UnixListener::bind(bench.workspace.join("socket")).expect("a socket");
    let pipe = bench.workspace.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    for path in ["pipe", "socket", "/dev/null"] {
        let expected =
            format!("{path} is a pipe, socket or device; only files and folders can be used");
        let input = json!({"path": path, "content": "x", "old": "a", "new": "b"});
        for tool in ["read", "write", "edit"] {
            assert_eq!(bench.failed(tool, input.clone()).await, expected);
        }
    }
    let text = bench.done("grep", json!({"pattern": "."})).await;
    assert!(text.starts_with("No line"), "{text}");
}

#[test]
fn the_temporary_folder_is_private_and_goes_with_the_toolbox() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Workbench::new();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let command = json!({"command": "echo -n $TMPDIR; touch $TMPDIR/file"});
    let folder = runtime.block_on(bench.done("bash", command));
    let folder = std::path::PathBuf::from(folder.trim());
    let mode = fs::metadata(&folder)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let input = json!({"path": folder.join("file")});
    assert_eq!(
        runtime.block_on(bench.done("read", input)).lines().count(),
        1
    );
    drop(bench);
    assert!(!folder.exists());
}
