use std::{fs, os::unix::fs::PermissionsExt, os::unix::fs::symlink};

use serde_json::json;

use crate::workbench::Workbench;

#[tokio::test]
async fn makes_a_file_and_its_folders() {
    let bench = Workbench::new();
    let input = json!({"path": "a/b/c.txt", "content": "one\ntwo\n"});
    assert_eq!(
        bench.done("write", input).await,
        "a/b/c.txt created (2 lines)"
    );
    assert_eq!(bench.content("a/b/c.txt"), "one\ntwo\n");
    let mode = fs::metadata(bench.workspace.join("a/b/c.txt"))
        .expect("it")
        .permissions()
        .mode();
    assert_ne!(
        mode & 0o044,
        0,
        "others may read it as any new file: {mode:o}"
    );
}

#[tokio::test]
async fn overwrites_what_this_session_wrote_or_read() {
    let bench = Workbench::new();
    bench
        .done("write", json!({"path": "own", "content": "1"}))
        .await;
    let input = json!({"path": "own", "content": "2"});
    assert_eq!(bench.done("write", input).await, "own overwritten (1 line)");

    bench.file("read", "old");
    bench.done("read", json!({"path": "read"})).await;
    bench
        .done("write", json!({"path": "read", "content": "new"}))
        .await;
    assert_eq!(bench.content("read"), "new");
}

#[tokio::test]
async fn refuses_a_file_that_was_not_read() {
    let bench = Workbench::new();
    bench.file("a", "old");
    let refusal = "a exists and you have not read it in this session: read it first";
    let input = json!({"path": "a", "content": "new"});
    assert_eq!(bench.failed("write", input.clone()).await, refusal);

    bench.done("read", json!({"path": "a"})).await;
    let text = input.to_string();
    let other = bench.toolbox.for_session();
    let refused = other.call("write", &text, &|_| {}).await;
    assert_eq!(refused.text(), refusal);
    assert_eq!(bench.content("a"), "old");
}

#[tokio::test]
async fn refuses_a_file_that_changed_meanwhile() {
    let bench = Workbench::new();
    bench
        .done("write", json!({"path": "a", "content": "mine"}))
        .await;
    bench.file("a", "theirs, and longer");
    let refusal = "a has changed since you last read or wrote it: read it again first";
    let input = json!({"path": "a", "content": "new"});
    assert_eq!(bench.failed("write", input.clone()).await, refusal);
    assert_eq!(bench.content("a"), "theirs, and longer");
    bench.done("read", json!({"path": "a"})).await;
    bench.done("write", input).await;
}

#[tokio::test]
async fn keeps_permissions_and_the_link_to_the_file() {
    let bench = Workbench::new();
    let path = bench.file("real/script", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).expect("chmod");
    symlink("real/script", bench.workspace.join("link")).expect("a link");
    bench.done("read", json!({"path": "link"})).await;
    let answer = bench
        .done("write", json!({"path": "link", "content": "new"}))
        .await;
    assert_eq!(answer, "real/script overwritten (1 line)");
    assert_eq!(fs::read_to_string(&path).expect("it"), "new");
    assert_eq!(
        fs::metadata(&path).expect("it").permissions().mode() & 0o777,
        0o751
    );
    assert!(bench.workspace.join("link").is_symlink());
    let left = fs::read_dir(bench.workspace.join("real"))
        .expect("it")
        .count();
    assert_eq!(left, 1, "no temporary file is left");
}

#[tokio::test]
async fn says_that_a_folder_is_no_file() {
    let bench = Workbench::new();
    bench.file("a/b", "");
    let write = |path: &str| bench.failed("write", json!({"path": path, "content": ""}));
    assert_eq!(write("a").await, "a is a folder");
    assert_eq!(
        write("a/b/c").await,
        "cannot write a/b/c: Not a directory (os error 20)"
    );
}
