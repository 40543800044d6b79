//! However a path is written, rules are asked about the file that it leads to.

use std::{fs, os::unix::fs::symlink};

use asyncagents_core::agent::{Permissions, Rule, ToolSpec, Verdict};
use asyncagents_tools::specs;
use serde_json::json;

use crate::workbench::Workbench;

#[test]
fn a_rule_finds_a_file_however_it_is_written() {
    let bench = bench();
    let rules = Rule::list("read(keys/*) edit(keys/*)").expect("rules");
    let permissions = Permissions {
        deny: rules,
        ..Permissions::default()
    };
    // A new tool that takes a path is among them by itself.
    let takes_path = |spec: &ToolSpec| spec.schema.contains(r#""path""#);
    let tools: Vec<String> = specs()
        .into_iter()
        .filter(takes_path)
        .map(|spec| spec.name)
        .collect();
    for known in ["read", "grep", "glob", "edit", "write"] {
        assert!(tools.iter().any(|tool| tool == known), "{known}: {tools:?}");
    }
    let mut wrong = Vec::new();
    for (name, path, kept) in PATHS {
        let path = bench.filled(path);
        for tool in &tools {
            let input =
                json!({"path": path, "pattern": "x", "content": "x", "old": "x", "new": "y"});
            let info = bench.prepared(tool, &input).info().clone();
            let verdict = permissions.judge(tool, info.kind, &info.target);
            if matches!(verdict, Verdict::Deny(_)) != *kept {
                wrong.push((name, tool, path.clone(), info.target));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A workspace with a file that rules keep, and links to it.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.file("keys/id", "PRIVATE");
    fs::create_dir(bench.workspace.join("x")).expect("a folder");
    for (to, link) in [
        ("keys", "folder"),
        ("keys/id", "file"),
        ("folder", "x/again"),
    ] {
        let to = bench.workspace.join(to);
        symlink(to, bench.workspace.join(link)).expect("a link");
    }
    symlink("../folder", bench.workspace.join("x/beside")).expect("a link");
    symlink("../workspace", bench.workspace.join("itself")).expect("a link");
    bench
}

/// A name, a path, and whether it leads to what is kept.
#[rustfmt::skip]
const PATHS: &[(&str, &str, bool)] = &[
    ("plain", "keys/id", true),
    ("here", "./keys/id", true),
    ("here_twice", "././keys/./id", true),
    ("slashes", "keys///id", true),
    ("slash_at_the_end", "keys/id/", true),
    ("dot_at_the_end", "keys/id/.", true),
    ("and_back", "keys/../keys/id", true),
    ("through_another", "x/../keys/id", true),
    ("through_nothing", "nothing/../keys/id", true),
    ("through_the_parent", "../workspace/keys/id", true),
    ("absolute", "{workspace}/keys/id", true),
    ("absolute_slashes", "/{workspace}//keys//id", true),
    ("absolute_and_back", "{outside}/../workspace/keys/id", true),
    ("from_the_root", "/../..{workspace}/keys/id", true),
    ("from_home", "~/../workspace/keys/id", true),
    ("linked_file", "file", true),
    ("linked_folder", "folder/id", true),
    ("linked_twice", "x/again/id", true),
    ("linked_beside", "x/beside/id", true),
    ("parent_of_a_link", "folder/../keys/id", true),
    ("linked_workspace", "itself/keys/id", true),
    ("linked_workspace_twice", "itself/itself/folder/id", true),
    ("not_there_yet", "keys/new", true),
    ("not_there_yet_deeper", "keys/new/deeper", true),
    ("not_there_yet_linked", "folder/new", true),
    // Other files, where the file system tells them apart.
    ("other_file", "x/id", false),
    ("capitals", "KEYS/id", false),
    ("blank_before", " keys/id", false),
    ("blank_in_it", "keys /id", false),
    ("backslash", "keys\\id", false),
    ("composed", "k\u{e9}ys/id", false),
    ("decomposed", "ke\u{301}ys/id", false),
    ("invisible", "keys\u{200b}/id", false),
    ("percent", "%6beys/id", false),
];
