use std::os::unix::fs::symlink;

use rstest::rstest;
use serde_json::{Value, json};

use crate::workbench::Workbench;

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.file("four", "one\ntwo\nthree\nfour\n");
    bench.file("no-end", "one\ntwo");
    bench.file("code", "fn f() {\n    ()\n}\n\n// ä\n");
    bench.file("empty", "");
    bench.file("dos", "one\r\ntwo\r\n");
    bench.file("latin", b"caf\xe9\n");
    bench.file("image.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    bench.file("data", b"abc\0def");
    bench.file("folder/Main.java", "");
    bench.file("folder/sub/x", "");
    symlink("sub", bench.workspace.join("folder/link")).expect("a link");
    bench
}

#[rstest]
#[case::whole(json!({"path": "four"}), "1\tone\n2\ttwo\n3\tthree\n4\tfour\n")]
#[case::no_line_end(json!({"path": "no-end"}), "1\tone\n2\ttwo\n")]
#[case::part(json!({"path": "four", "offset": 2, "limit": 2}), "2\ttwo\n3\tthree\n[lines 2 to 3; the file goes on: read on with offset=4]\n")]
#[case::to_the_end(json!({"path": "four", "offset": 3, "limit": 2}), "3\tthree\n4\tfour\n")]
#[case::from_zero(json!({"path": "four", "offset": 0, "limit": 1}), "1\tone\n[lines 1 to 1; the file goes on: read on with offset=2]\n")]
#[case::lines_without_a_word(json!({"path": "code"}), "1\tfn f() {\n    ()\n}\n\n5\t// ä\n")]
#[case::the_first_line_has_a_number(json!({"path": "code", "offset": 3, "limit": 2}), "3\t}\n\n[lines 3 to 4; the file goes on: read on with offset=5]\n")]
#[case::empty(json!({"path": "empty"}), "[empty is empty]")]
#[case::windows(json!({"path": "dos"}), "1\tone\n2\ttwo\n[the lines end with CRLF; edits keep that]\n")]
#[case::not_utf8(json!({"path": "latin"}), "1\tcaf\u{fffd}\n[not all of it is UTF-8; what is not is shown as \u{fffd}]\n")]
#[case::folder(json!({"path": "folder"}), "folder is a folder with 3 entries:\nMain.java\nlink -> sub\nsub/\n")]
#[case::empty_folder(json!({"path": "folder/sub/.."}), "folder is a folder with 3 entries:\nMain.java\nlink -> sub\nsub/\n")]
#[tokio::test]
async fn gives_numbered_lines(#[case] input: Value, #[case] expected: &str) {
    assert_eq!(bench().done("read", input).await, expected);
}

#[rstest]
#[case::missing(json!({"path": "nothing"}), "nothing does not exist")]
#[case::misspelt(json!({"path": "fuor"}), "fuor does not exist. Similar names in its folder: four")]
#[case::other_case(json!({"path": "folder/main.java"}), "folder/main.java does not exist. Similar names in its folder: Main.java")]
#[case::other_ending(json!({"path": "image.jpg"}), "image.jpg does not exist. Similar names in its folder: image.png")]
#[case::past_the_end(json!({"path": "four", "offset": 9}), "line 9 is past the end: four has 4 lines")]
#[case::image(json!({"path": "image.png"}), "image.png is not text but a PNG image of 11 bytes, so its content is not shown")]
#[case::binary(json!({"path": "data"}), "data is not text but a binary file of 7 bytes, so its content is not shown")]
#[tokio::test]
async fn says_what_is_wrong(#[case] input: Value, #[case] expected: &str) {
    assert_eq!(bench().failed("read", input).await, expected);
}

#[tokio::test]
async fn names_the_folder_that_is_there() {
    let bench = bench();
    let error = bench
        .failed("read", json!({"path": "folder/not/there.rs"}))
        .await;
    let expected =
        "folder/not/there.rs does not exist; of its folders only {workspace}/folder does";
    assert_eq!(error, bench.filled(expected));
}

#[tokio::test]
async fn a_long_file_is_read_in_parts_that_join() {
    let bench = Workbench::with(|settings| settings.output_limit = 5_000);
    let lines: Vec<_> = (1..=1_000).map(|n| format!("line {n}")).collect();
    bench.file("long", lines.join("\n"));
    let mut seen = Vec::new();
    let mut offset = 1;
    loop {
        let text = bench
            .done("read", json!({"path": "long", "offset": offset}))
            .await;
        assert!(text.chars().count() <= 5_000);
        let numbered = text.lines().filter_map(|line| line.split_once('\t'));
        seen.extend(numbered.map(|(_, line)| line.to_owned()));
        match text.rsplit_once("read on with offset=") {
            Some((_, next)) => {
                let digits = next.trim_end_matches("]\n");
                offset = digits.parse().expect("a number");
            }
            None => break,
        }
    }
    assert_eq!(seen, lines);
}

#[tokio::test]
async fn at_most_two_thousand_lines_at_once() {
    let bench = bench();
    bench.file("long", "x\n".repeat(2_001));
    let text = bench.done("read", json!({"path": "long"})).await;
    let end = "\n2000\tx\n[lines 1 to 2000; the file goes on: read on with offset=2001]\n";
    assert!(text.ends_with(end));
}

#[tokio::test]
async fn a_long_line_is_cut() {
    let bench = bench();
    bench.file("wide", format!("{}\nnext\n", "ä".repeat(100_000)));
    let text = bench.done("read", json!({"path": "wide"})).await;
    let expected = format!("1\t{} [… the line goes on]\n2\tnext\n", "ä".repeat(2_000));
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_file_of_ten_gigabytes_is_not_read_whole() {
    let bench = bench();
    // Only its beginning takes room on the disk.
    let path = bench.file("huge", "first\n".repeat(100_000));
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("open");
    file.set_len(10 * 1024 * 1024 * 1024)
        .expect("a sparse file");
    let text = bench
        .done("read", json!({"path": "huge", "limit": 1}))
        .await;
    assert!(text.starts_with("1\tfirst\n[lines 1 to 1;"), "{text}");
    let text = bench
        .done("read", json!({"path": "huge", "offset": 200_000}))
        .await;
    let expected =
        "[stopped at line 100000 after 256 MB; use bash (sed, tail, cut) for the rest]\n";
    assert_eq!(text, expected);
}
