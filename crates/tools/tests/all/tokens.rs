//! What a file costs in tokens when it is read, against the file itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use asyncagents_core::tokens::o200k;
use serde_json::json;

use crate::workbench::Workbench;

/// What line numbers may add to a file.
const MOST: f64 = 1.15;

/// Shorter files than this say little: each costs next to nothing.
const SHORTEST: usize = 500;

/// The source files of this crate and those beside it, the lists of data left out.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let is = |ending: &str| path.extension().is_some_and(|found| found == ending);
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if ["rs", "js", "md", "sql"].into_iter().any(is) {
            found.push(path);
        }
    }
}

/// `--nocapture` prints the table.
#[tokio::test]
async fn line_numbers_add_little_to_a_source_file() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for part in ["tools/src", "hosts/src/plugin", "store/src", "../docs"] {
        sources(&crates.join(part), &mut files);
    }
    files.sort();
    let bench = Workbench::new();
    let (mut raw, mut shown) = (0, 0);
    println!("| file | lines | tokens | as `read` shows it | with padded numbers |");
    for path in files {
        let text = fs::read_to_string(&path).expect("text");
        let own = o200k(&text);
        if own < SHORTEST || text.lines().count() > 2_000 {
            continue;
        }
        bench.file("source", &text);
        let read = bench.done("read", json!({"path": "source"})).await;
        if read.contains("the file goes on") {
            continue;
        }
        let read = o200k(&read);
        let padded = |(at, line)| format!("{:>6}\t{line}\n", at + 1);
        let padded = o200k(&text.lines().enumerate().map(padded).collect::<String>());
        let more = |tokens: usize| (tokens as f64 / own as f64 - 1.0) * 100.0;
        let (lines, name) = (text.lines().count(), path.display());
        println!(
            "| {name} | {lines} | {own} | +{:.0} % | +{:.0} % |",
            more(read),
            more(padded)
        );
        assert!(read as f64 <= own as f64 * MOST, "{name}: {own}, {read}");
        raw += own;
        shown += read;
    }
    let all = shown as f64 / raw as f64;
    println!("all of them: +{:.1} %", (all - 1.0) * 100.0);
    assert!(all <= 1.11, "{all}");
}
