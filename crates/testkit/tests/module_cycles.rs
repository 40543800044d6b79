//! The top-level modules of each crate depend on each other in one direction only.
//! `cargo test -p asyncagents-testkit --test module_cycles -- --nocapture` shows the picture.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// For each module, those that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_depend_on_each_other_in_one_direction() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in names(&crates) {
        let graph = graph(&crates.join(&name).join("src"));
        println!("{name}");
        for (module, uses) in &graph {
            let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
            println!("  {module} -> {}", uses.join(" "));
        }
        found.extend(
            cycles(&graph)
                .into_iter()
                .map(|cycle| (name.clone(), cycle)),
        );
    }
    assert_eq!(found, [], "crates with cycles, and the modules in them");
}

/// The rules are decided at once: what waits is somewhere else.
#[test]
fn core_awaits_only_in_its_ports() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let mut found = Vec::new();
    files(&src, &[], &mut found);
    let is_port = |module: &[String]| module.first().is_some_and(|first| first == "port");
    let (ports, rules): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(module, _)| is_port(module));
    // Nothing can await without that word.
    let awaits = |path: &Path| code(&fs::read_to_string(path).expect("a file")).contains("async ");
    assert!(
        ports.iter().any(|(_, path)| awaits(path)),
        "this would see it"
    );
    let waiting: Vec<_> = rules.iter().filter(|(_, path)| awaits(path)).collect();
    assert!(waiting.is_empty(), "{waiting:?}");
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    let text = "use crate::{\na::B, c, D,\n};\nuse super::e::{F, g};\n// crate::comment\n\
                fn f() { crate::h::i() }\n#[cfg(test)] mod tests { use crate::j; }";
    let of = |depth| heads(&code(text), depth).into_iter().collect::<Vec<_>>();
    assert_eq!(of(1), ["D", "a", "c", "e", "h"]);
    assert_eq!(of(2), ["D", "a", "c", "h"]);
}

fn names(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = found.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// The files of a crate, by the modules that they are.
fn files(folder: &Path, module: &[String], found: &mut Vec<(Vec<String>, PathBuf)>) {
    for name in names(folder) {
        let path = folder.join(&name);
        let mut inner = module.to_vec();
        inner.extend((name != "mod.rs").then(|| name.trim_end_matches(".rs").to_owned()));
        if path.is_dir() {
            files(&path, &inner, found);
        } else if name.ends_with(".rs") {
            found.push((inner, path));
        }
    }
}

fn graph(src: &Path) -> Graph {
    let mut found = Vec::new();
    files(src, &[], &mut found);
    let is_root = |module: &[String]| module == ["lib"] || module == ["main"];
    let (roots, modules): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(module, _)| is_root(module));
    let read = |path: &Path| code(&fs::read_to_string(path).expect("a file"));
    let exported: BTreeMap<String, String> = roots
        .iter()
        .flat_map(|(_, path)| exports(&read(path)))
        .collect();
    let mut graph: Graph = modules
        .iter()
        .map(|(module, _)| (module[0].clone(), BTreeSet::new()))
        .collect();
    let tops: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, path) in &modules {
        for head in heads(&read(path), module.len()) {
            let used = exported.get(&head).unwrap_or(&head);
            if tops.contains(used) && *used != module[0] {
                let uses = graph.entry(module[0].clone()).or_default();
                uses.insert(used.clone());
            }
        }
    }
    graph
}

/// The code of a file, without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that a file takes from the root of its crate, `depth` modules up.
fn heads(code: &str, depth: usize) -> BTreeSet<String> {
    let up = vec!["super"; depth].join("::");
    let mut heads = BTreeSet::new();
    for root in ["crate", up.as_str()] {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                heads.extend(first_names(&code[at + root.len() + 2..]));
            }
        }
    }
    heads.remove("super");
    heads
}

/// The first name of a path, or of each path of a list in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut names = vec![name(list)];
    let mut depth = 0;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&list[at + 1..])),
            _ => {}
        }
    }
    // After the last comma of a list that is several lines long.
    names.retain(|name| !name.is_empty());
    names
}

/// What a root exports, with the module that it comes from.
fn exports(code: &str) -> Vec<(String, String)> {
    let uses = code.split("pub use ").skip(1);
    let uses = uses.filter_map(|text| text.split_once(';')?.0.split_once("::"));
    let all = uses.flat_map(|(module, names)| {
        let names = first_names(names);
        names.into_iter().map(|name| (name, module.to_owned()))
    });
    all.collect()
}

/// The sets of modules that can each be reached from every other.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let mut cycles = BTreeSet::new();
    for (module, from_here) in &reach {
        if from_here.contains(*module) {
            let back = from_here
                .iter()
                .filter(|other| reach[**other].contains(*module));
            cycles.insert(back.map(|other| (*other).clone()).collect());
        }
    }
    cycles.into_iter().collect()
}

fn reachable<'g>(graph: &'g Graph, from: &String) -> BTreeSet<&'g String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = graph[from].iter().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&graph[module]);
        }
    }
    reached
}
