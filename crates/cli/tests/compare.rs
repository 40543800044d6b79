//! The comparison with other agents still runs: our own part of it.
#![cfg(target_os = "linux")]

#[path = "../benches/compare/comparison/mod.rs"]
mod comparison;

use clap::Parser;
use comparison::{Options, compare};

#[test]
fn our_own_rows_are_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_string_lossy();
    let options = ["compare", "--quick", "--peers", "none", "--folder", &folder];
    let options = Options::parse_from(options);
    let mut output = Vec::new();
    compare(&options, &mut output).expect("all tables");
    let output = String::from_utf8(output).expect("text");
    let rows = output
        .lines()
        .filter(|line| line.starts_with("| asyncagents |"));
    assert_eq!(rows.count(), 7, "{output}");
    let summary = output.split("### Summary").nth(1).unwrap_or_default();
    assert_eq!(
        summary
            .lines()
            .filter(|line| line.starts_with("| "))
            .count(),
        10,
        "{output}"
    );
    assert!(!output.contains("failed"), "{output}");
    let told = output.matches("| 3 of 3 |").count();
    assert_eq!(told, 2, "with both models: {output}");
}
