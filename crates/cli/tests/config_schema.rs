//! The JSON Schema of `asyncagents.toml` says what the program accepts.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

use std::{fs, path::Path, process::Output};

use assert_cmd::Command;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// The program, with a home that holds this file of settings.
fn run(file: &str, arguments: &[&str]) -> Output {
    let home = TempDir::new().expect("a folder");
    let folder = home.path().join(".config/asyncagents");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("asyncagents.toml"), file).expect("written");
    let mut command = Command::cargo_bin("asyncagents").expect("built");
    command.current_dir(home.path()).env_clear();
    command.env("HOME", home.path()).args(arguments);
    command.output().expect("run")
}

fn schema() -> Value {
    serde_json::from_slice(&run("", &["config", "--schema"]).stdout).expect("JSON")
}

/// Whether a value fits a schema. It knows the words that ours has, and no others.
fn fits(schema: &Value, value: &Value) -> bool {
    let keywords = schema.as_object().expect("an object");
    keywords.iter().all(|(word, says)| match word.as_str() {
        "$schema" | "title" | "description" | "default" => true,
        "type" => match says.as_str().expect("a type") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("the type {other}"),
        },
        "enum" => says.as_array().expect("a list").contains(value),
        "const" => says == value,
        "anyOf" => {
            let mut any = says.as_array().expect("a list").iter();
            any.any(|one| fits(one, value))
        }
        "minimum" => value.as_f64() >= says.as_f64() || !value.is_number(),
        "maximum" => value.as_f64() <= says.as_f64() || !value.is_number(),
        "minLength" => value != "",
        "pattern" => {
            let pattern = regex::Regex::new(says.as_str().expect("a text")).expect("a pattern");
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        "items" => value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| fits(says, item))),
        "properties" | "additionalProperties" => value.as_object().is_none_or(|table| {
            table.iter().all(|(key, value)| {
                let known = schema["properties"].get(key);
                match (known, &schema["additionalProperties"]) {
                    (Some(known), _) => fits(known, value),
                    (None, Value::Bool(allowed)) => *allowed,
                    (None, others) => fits(others, value),
                }
            })
        }),
        other => panic!("the word {other}"),
    })
}

#[test]
fn the_copy_in_docs_is_the_newest() {
    let printed = run("", &["config", "--schema"]).stdout;
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/asyncagents.schema.json");
    let copy = fs::read(copy).unwrap_or_default();
    assert!(
        copy == printed,
        "renew it: cargo run -- config --schema > docs/asyncagents.schema.json"
    );
}

#[test]
fn every_setting_is_described_and_its_default_fits() {
    let schema = schema();
    let settings = run("", &["config", "--json"]).stdout;
    let settings: Vec<Value> = serde_json::from_slice(&settings).expect("a list");
    assert!(settings.len() > 60);
    for setting in settings {
        let key = setting["key"].as_str().expect("a key");
        let place = format!("/properties/{}", key.replace('.', "/properties/"));
        let described = schema.pointer(&place).expect(key);
        assert!(described["description"].as_str() > Some(""), "{key}");
        match described.get("default") {
            Some(default) => assert!(fits(described, default), "{key}: {default}"),
            None => assert!(key == "db" || setting["value"] == "", "{key}"),
        }
    }
}

#[rstest]
#[case::nothing("")]
#[case::numbers(
    "[limits]\ndepth = 1\nsame_calls = 2\nper_parent = \"none\"\n[run]\ncompact_at = 95"
)]
#[case::counts("[limits]\nper_model = { \"anthropic/claude-opus\" = 2 }")]
#[case::budgets("[budget]\ntime = \"1h 30m\"\ncost = 0.50\ntokens = 1000")]
#[case::dollars("[budget]\ncost = \"$2\"")]
#[case::words(
    "color = \"never\"\neffort = \"none\"\n[fork]\npreset = \"flat\"\nwhen_over = \"refuse\""
)]
#[case::lists("[permissions]\nallow = [\"bash(cargo test*)\"]\ndeny = \"read(x),edit(y)\"")]
#[case::sizes("[sandbox]\nmemory = \"75%\"\nfile_size = \"10GB\"\nnetwork = true")]
#[case::models(
    "[providers.x]\nbase_url = \"http://x\"\nwire = \"chat\"\n[aliases]\nfast = \"x/y\""
)]
fn what_the_program_accepts_fits(#[case] file: &str) {
    let output = run(file, &["config"]);
    assert!(output.status.success(), "{output:?}");
    assert!(fits(&schema(), &json(file)), "{file}");
}

#[rstest]
#[case::unknown("dept = 1")]
#[case::unknown_in_a_table("[limits]\ndept = 1")]
#[case::not_a_number("[limits]\ndepth = \"deep\"")]
#[case::negative("[limits]\ndepth = -1")]
#[case::too_few("[limits]\nsame_calls = 1")]
#[case::too_much("[run]\ncompact_at = 96")]
#[case::none_of_the_words("color = \"sometimes\"")]
#[case::no_duration("[worker]\nidle = \"soon\"")]
#[case::no_dollars("[budget]\ncost = \"much\"")]
#[case::no_size("[sandbox]\nmemory = \"much\"")]
#[case::no_limit_of_a_fork("[fork]\nmax_chars = 5")]
#[case::no_address("[providers.x]\nbase_url = \"nowhere\"")]
fn what_the_program_refuses_does_not_fit(#[case] file: &str) {
    let output = run(file, &["config"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!fits(&schema(), &json(file)), "{file}");
}

fn json(file: &str) -> Value {
    let table: toml::Table = file.parse().expect("TOML");
    serde_json::to_value(table).expect("JSON")
}
