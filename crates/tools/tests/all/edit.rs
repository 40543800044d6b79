use rstest::rstest;
use serde_json::{Value, json};

use crate::workbench::Workbench;

const POEM: &str = "fn main() {\n    let a = 1;\n    let b = 2;\n\n    print(a + b);\n}\n";

/// A workspace whose files the session has read.
async fn bench(files: &[(&str, &str)]) -> Workbench {
    let bench = Workbench::new();
    for (name, content) in files {
        bench.file(name, content);
        bench.done("read", json!({"path": name})).await;
    }
    bench
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "a", "old": old, "new": new})
}

#[tokio::test]
async fn shows_the_lines_around_the_change() {
    let bench = bench(&[("a", POEM)]).await;
    let text = bench
        .done("edit", edit("let b = 2;", "let b = 3;\n    let c = 4;"))
        .await;
    let expected = "a changed:\n1\tfn main() {\n2\t    let a = 1;\n3\t    let b = 3;\n\
        4\t    let c = 4;\n\n6\t    print(a + b);\n}\n";
    assert_eq!(text, expected);
    assert_eq!(bench.content("a"), POEM.replace("2;", "3;\n    let c = 4;"));
    // What it wrote, it knows.
    bench.done("edit", edit("let c = 4;", "let c = 5;")).await;
}

#[rstest]
#[case::windows_line_ends("one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", "1\r\n2\r\nthree\r\n")]
#[case::byte_order_mark("\u{feff}one\ntwo\n", "one", "1", "\u{feff}1\ntwo\n")]
#[case::no_final_line_end("one\ntwo", "two", "2", "one\n2")]
#[case::mixed_line_ends("one\r\ntwo\nthree\n", "two\nthree", "2\n3", "one\r\n2\n3\n")]
#[case::to_nothing("one\ntwo\n", "one\n", "", "two\n")]
#[case::not_a_pattern("a.b $1\n", "a.b", "$1 \\0", "$1 \\0 $1\n")]
#[tokio::test]
async fn keeps_the_rest_of_the_file(
    #[case] before: &str,
    #[case] old: &str,
    #[case] new: &str,
    #[case] after: &str,
) {
    let bench = bench(&[("a", before)]).await;
    bench.done("edit", edit(old, new)).await;
    assert_eq!(bench.content("a"), after);
}

#[tokio::test]
async fn several_places_are_named_or_all_changed() {
    let bench = bench(&[("a", "x = 1\ny = x\nz = x\n")]).await;
    let error = bench.failed("edit", edit("x", "n")).await;
    let expected = "`old` is in a 3 times, at lines 1, 2, 3: add lines around it until it is \
        unique, or set `replace_all`";
    assert_eq!(error, expected);
    let mut all = edit("x", "n");
    all["replace_all"] = true.into();
    let text = bench.done("edit", all).await;
    assert!(
        text.starts_with("a changed in 3 places; the first:\n1\tn = 1\n"),
        "{text}"
    );
    assert_eq!(bench.content("a"), "n = 1\ny = n\nz = n\n");
}

#[rstest]
#[case::white_space(
    POEM,
    "let a = 1;\n  let b = 2;",
    "`old` is not in a, but these lines differ only in white space:\n2\t    let a = 1;\n3\t    let b = 2;\n"
)]
#[case::tabs(
    "if x:\n\treturn\n",
    "if x:\n    return\n",
    "`old` is not in a, but these lines differ only in white space:\n1\tif x:\n2\t\treturn\n"
)]
#[case::line_ends(
    "one\r\ntwo\nthree\n",
    "one\ntwo",
    "`old` is not in a because of the line ends (CRLF and LF are mixed); copy a piece within one line, or change the file with bash. These lines match otherwise:\n1\tone\n2\ttwo\n"
)]
#[case::line_numbers(
    POEM,
    "     2\t    let a = 1;\n3\t    let b = 2;\n\n5\t    print(a + b);",
    "`old` is not in a: leave out the line numbers that `read` puts before lines. Nearest:\n2\t    let a = 1;\n3\t    let b = 2;\n\n5\t    print(a + b);\n"
)]
#[case::one_line_differs(
    POEM,
    "    let a = 1;\n    let b = 7;\n",
    "`old` is not in a. The nearest lines:\n2\t    let a = 1;\n3\t    let b = 2;\n"
)]
#[case::similar(
    POEM,
    "    print(a - b);",
    "`old` is not in a. The nearest lines:\n5\t    print(a + b);\n"
)]
#[case::nothing(
    POEM,
    "SELECT * FROM users",
    "`old` is not in a, and nothing in it is similar: read it again"
)]
#[tokio::test]
async fn shows_what_comes_nearest(#[case] file: &str, #[case] old: &str, #[case] expected: &str) {
    let bench = bench(&[("a", file)]).await;
    assert_eq!(bench.failed("edit", edit(old, "new")).await, expected);
    assert_eq!(bench.content("a"), file);
}

#[tokio::test]
async fn refuses_what_was_not_read_or_changed_meanwhile() {
    let bench = bench(&[]).await;
    bench.file("a", POEM);
    let error = bench.failed("edit", edit("main", "start")).await;
    assert_eq!(
        error,
        "a exists and you have not read it in this session: read it first"
    );
    bench.done("read", json!({"path": "a"})).await;
    bench.file("a", format!("{POEM}// more\n"));
    let error = bench.failed("edit", edit("main", "start")).await;
    assert_eq!(
        error,
        "a has changed since you last read or wrote it: read it again first"
    );
}

#[tokio::test]
async fn says_what_cannot_be_edited() {
    let bench = bench(&[]).await;
    let error = bench.failed("edit", edit("main", "start")).await;
    assert_eq!(error, "a does not exist. To make a file use `write`.");
    std::fs::create_dir(bench.workspace.join("a")).expect("a folder");
    assert_eq!(
        bench.failed("edit", edit("main", "start")).await,
        "a is a folder"
    );
    bench.file("latin", b"caf\xe9");
    bench.done("read", json!({"path": "latin"})).await;
    let mut input = edit("caf", "tea");
    input["path"] = "latin".into();
    let error = bench.failed("edit", input).await;
    assert_eq!(error, "latin is not UTF-8 text: change it with bash");
}

#[tokio::test]
async fn a_file_does_not_grow_without_bound() {
    let file = "a".repeat(3_000_000);
    let bench = bench(&[("a", &file)]).await;
    let mut all = edit("a", &"b".repeat(20_000));
    all["replace_all"] = true.into();
    let error = bench.failed("edit", all).await;
    let expected = "a would be larger than 64 MB with all of these changes: nothing was changed";
    assert_eq!(error, expected);
    assert!(bench.content("a") == file);
}

#[tokio::test]
async fn a_large_file_is_not_loaded() {
    let bench = bench(&[]).await;
    let file = std::fs::File::create(bench.workspace.join("a")).expect("a file");
    file.set_len(65 * 1024 * 1024).expect("room");
    let error = bench.failed("edit", edit("a", "b")).await;
    assert_eq!(error, "a is larger than 64 MB: change it with bash");
}

#[tokio::test]
async fn edits_at_the_same_time_do_not_lose_each_other() {
    let words: Vec<_> = (0..20).map(|n| format!("<word {n}>\n")).collect();
    let bench = bench(&[("a", &words.concat())]).await;
    let edits: Vec<_> = (0..20)
        .map(|n| {
            let toolbox = bench.toolbox.clone();
            let input = edit(&format!("<word {n}>"), &format!("<done {n}>")).to_string();
            tokio::spawn(async move { toolbox.call("edit", &input, &|_| {}).await })
        })
        .collect();
    for edit in edits {
        let outcome = edit.await.expect("an answer");
        assert!(!outcome.is_error(), "{}", outcome.text());
    }
    assert_eq!(bench.content("a"), words.concat().replace("word", "done"));
}
