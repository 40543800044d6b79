//! What somebody might have meant.

use asyncagents_core::similar::nearest;
use rstest::rstest;

#[rstest]
#[case::letter_missing("limits.dept", &["limits.depth"])]
#[case::letters_swapped("sandbox.mdoe", &["sandbox.mode"])]
#[case::only_the_end("depth", &["limits.depth"])]
#[case::several("mode", &["permissions.mode", "sandbox.mode"])]
#[case::nothing_like_it("colour-scheme", &[])]
#[case::nothing("", &[])]
#[case::another_word("web", &[])]
#[case::spelt_in_another_way("allowedTools", &["allowed-tools"])]
#[case::neighbours_swapped("bsah", &["bash"])]
fn a_name_is_found_by_what_was_written(#[case] written: &str, #[case] meant: &[&str]) {
    let names = [
        "db",
        "limits.depth",
        "permissions.mode",
        "sandbox.mode",
        "bash",
        "allowed-tools",
    ];
    assert_eq!(nearest(written, names), meant);
}
