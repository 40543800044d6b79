//! The official conformance suite, through a bridge from its HTTP to the pipes of the real program.

use std::{collections::BTreeMap, fs, path::Path, thread};

use asyncagents_scripted_model::{Reply, Script, When};
use serde::Deserialize;
use serde_json::json;

use crate::{
    bridge::Bridge,
    client::{Home, STATELESS},
    npm,
    scenarios::{Expected, SCENARIOS},
};

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

/// In each run the scenarios of one version of the protocol. Without one it is 2025-11-25 for those
/// that it has, and the newest for the others and for extensions.
const RUNS: [&str; 4] = ["", "2025-03-26", "2025-06-18", STATELESS];

/// Each message that the program sends is also checked by the protocol's schema, in every scenario.
const MESSAGES: &str = "wire-schema-valid";

/// One thing that a scenario looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    error_message: String,
}

impl Check {
    fn holds(&self) -> bool {
        self.status == "SUCCESS" || self.status == "INFO"
    }
}

#[test]
fn every_scenario_of_the_official_suite_that_applies_passes() {
    let Some(mut list) = npm::node(SUITE) else {
        return;
    };
    let list = list.args(["list", "--server"]).output().expect("runs");
    let list = scenarios(&String::from_utf8_lossy(&list.stdout));
    let home = furnished();
    let command = home.command(&["mcp", "--session", "suite"]);
    let bridge = home.block_on(Bridge::start(command));
    let runs: BTreeMap<&str, _> = thread::scope(|scope| {
        let run = |version| {
            let (home, url) = (&home, bridge.url());
            (version, scope.spawn(move || run(home, url, version)))
        };
        let runs = RUNS.map(run).into_iter();
        runs.map(|(version, run)| (version, run.join().expect("a run")))
            .collect()
    });
    let mut problems = Vec::new();
    for (scenario, versions) in &list {
        for version in versions {
            let run = runs.get(version.as_str()).unwrap_or(&runs[""]);
            match run.get(scenario) {
                Some(checks) => {
                    println!("{}", summary(scenario, version, checks));
                    problems.extend(judge(scenario, version, checks));
                }
                None => problems.push(format!("{scenario}: was not run for {version}")),
            }
        }
    }
    for (scenario, _) in SCENARIOS {
        if !list.contains_key(*scenario) {
            problems.push(format!("{scenario}: the suite does not have it any more"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let asked = bridge.requests();
    assert!(
        asked.is_empty(),
        "something was asked of a client: {asked:?}"
    );
}

/// A home with something of each kind: a task with its trace, and skills of the names that some
/// scenarios want a prompt of.
fn furnished() -> Home {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    for (name, text) in [
        ("test_simple_prompt", "Look at the tests."),
        ("test_prompt_with_arguments", "Look at $ARGUMENTS."),
    ] {
        home.write(
            &format!(".claude/skills/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: Looks at something\n---\n{text}"),
        );
    }
    let mut client = home.client_of("2025-11-25", &["--session", "suite"]);
    let task = client.launch("Work", "Work").task();
    client.done("output", json!({"task_id": task, "block": true}));
    home
}

/// The scenarios that the suite says it has, each with the versions it is for.
fn scenarios(list: &str) -> BTreeMap<String, Vec<String>> {
    let row = regex::Regex::new(r"(?m)^  - (\S+) \[(.*)\]$").expect("a pattern");
    let rows = row.captures_iter(list);
    let found: BTreeMap<_, _> = rows
        .map(|row| {
            let versions = row[2].split(',').map(str::to_owned);
            (row[1].to_owned(), versions.collect())
        })
        .collect();
    assert!(!found.is_empty(), "{list}");
    found
}

/// Runs all scenarios of a version; returns what each of them looked at.
fn run(home: &Home, url: &str, version: &str) -> BTreeMap<String, Vec<Check>> {
    let results = home.path(&format!("results-{version}"));
    let mut suite = npm::node(SUITE).expect("it was here before");
    suite.args(["server", "--suite", "all", "--url", url]);
    suite.arg("--output-dir").arg(&results);
    if !version.is_empty() {
        suite.args(["--spec-version", version]);
    }
    // It fails when anything fails, whether it applies or not.
    suite.output().expect("runs");
    let folders = fs::read_dir(&results).expect("results").flatten();
    folders.map(|folder| read(&folder.path())).collect()
}

/// The results of a scenario, from the folder `server-NAME-TIME`.
fn read(folder: &Path) -> (String, Vec<Check>) {
    let name = folder.file_name().expect("a name").to_string_lossy();
    let name = regex::Regex::new(r"^server-(.+)-\d{4}-\d\d-\d\dT").map(|pattern| {
        let found = pattern.captures(&name).expect("a scenario and a time");
        found[1].to_owned()
    });
    let checks = fs::read_to_string(folder.join("checks.json")).expect("checks");
    let checks = serde_json::from_str(&checks).expect("checks");
    (name.expect("a pattern"), checks)
}

fn expected(scenario: &str) -> Option<Expected> {
    let row = SCENARIOS.iter().find(|(name, _)| *name == scenario);
    row.map(|(_, expected)| *expected)
}

/// What came of a scenario, in a line; and why, where it does not apply.
fn summary(scenario: &str, version: &str, checks: &[Check]) -> String {
    let passed = checks.iter().filter(|check| check.holds()).count();
    let all = checks.len();
    let line = format!("{scenario} {version}: {passed} of {all}");
    match expected(scenario) {
        Some(Expected::NotOurs(why)) => format!("{line}; does not apply: {why}"),
        Some(Expected::PassesBut(but)) => {
            let but = but
                .iter()
                .map(|(check, why)| format!("\n  but {check}: {why}"));
            line + &but.collect::<String>()
        }
        Some(Expected::Passes) | None => line,
    }
}

/// What is wrong about the results of a scenario.
fn judge(scenario: &str, version: &str, checks: &[Check]) -> Vec<String> {
    let Some(expected) = expected(scenario) else {
        return vec![format!("{scenario}: is not in scenarios.rs")];
    };
    let may_fail = |check: &str| match expected {
        Expected::Passes => false,
        Expected::PassesBut(checks) => checks.iter().any(|(name, _)| *name == check),
        Expected::NotOurs(_) => check != MESSAGES,
    };
    let wrong = checks
        .iter()
        .filter(|check| !check.holds() && !may_fail(&check.id));
    let mut problems: Vec<String> = wrong
        .map(|check| {
            let Check { id, status, .. } = check;
            format!(
                "{scenario} {version}: {id}: {status}: {}",
                check.error_message
            )
        })
        .collect();
    let applies = !matches!(expected, Expected::NotOurs(_));
    if applies && !checks.iter().any(|check| check.status == "SUCCESS") {
        problems.push(format!("{scenario} {version}: it looked at nothing"));
    }
    problems
}
