//! Clients of MCP servers that have no plugin.

use std::{fs, os::unix::fs::PermissionsExt};

use rstest::rstest;

use super::{Home, Said};

#[rstest]
#[case::cursor("cursor", ".cursor/mcp.json")]
#[case::vscode("vscode", "config/Code/User/mcp.json")]
#[case::zed("zed", "config/zed/settings.json")]
#[case::gemini("gemini", ".gemini/settings.json")]
#[case::goose("goose", "config/goose/config.yaml")]
fn a_client_gets_an_entry_and_loses_it_again(#[case] client: &str, #[case] file: &str) {
    let home = Home::new();
    let file = home.path(file);
    let setup = |more: &[&str]| Said::of(home.setup_of(client).args(more));
    let missing = format!(
        "{} does not have the entry; `asyncagents setup {client}` writes it",
        file.display()
    );
    setup(&["--check"]).refused(1, &missing);
    let said = setup(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.answer.contains("cannot be woken"), "{said:?}");
    let written = fs::read_to_string(&file).expect("a file");
    assert!(
        written.contains(env!("CARGO_BIN_EXE_asyncagents")),
        "{written}"
    );
    assert_eq!(setup(&["--check"]).code, Some(0));
    assert!(setup(&[]).answer.contains("has the entry already"));
    assert_eq!(fs::read_to_string(&file).expect("a file"), written);
    assert_eq!(setup(&["--remove"]).code, Some(0));
    setup(&["--check"]).refused(1, &missing);
}

#[test]
fn a_file_with_comments_is_left_alone_and_the_entry_is_shown() {
    let home = Home::new();
    let file = home.path("config/zed/settings.json");
    home.write(&file, "{ // mine\n}\n");
    let said = Said::of(&mut home.setup_of("zed"));
    assert_eq!(said.code, Some(2), "{said:?}");
    said.remarks("Enter this below `context_servers` yourself: \"asyncagents\": {");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "{ // mine\n}\n");
}

/// Such files often have the keys of other servers in them.
#[test]
fn a_file_that_only_its_user_can_read_stays_so() {
    let home = Home::new();
    let file = home.path(".cursor/mcp.json");
    home.write(&file, r#"{"mcpServers": {"x": {"env": {"TOKEN": "t"}}}}"#);
    for mode in [0o600, 0o664] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("changed");
        for more in [&[][..], &["--remove"]] {
            let said = Said::of(home.setup_of("cursor").args(more));
            assert_eq!(said.code, Some(0), "{said:?}");
            let found = fs::metadata(&file).expect("a file").permissions().mode();
            assert_eq!(found & 0o777, mode, "{more:?}");
        }
    }
}

/// Written by hand, it may be YAML that an entry of ours would become a part of.
#[rstest]
#[case::further_in("extensions:\n    developer:\n        enabled: true\n")]
#[case::in_one_line("{extensions: {developer: {enabled: true}}}\n")]
#[case::in_quotes("\"extensions\":\n  developer:\n    enabled: true\n")]
#[case::there_in_quotes("extensions:\n  \"asyncagents\":\n    cmd: x\n")]
#[case::there_after_a_comment("extensions:\n# mine\n  asyncagents:\n    cmd: x\n")]
#[case::ended("extensions:\n  developer:\n    enabled: true\n...\n--- \nb: 1\n")]
fn a_file_that_goose_would_not_write_is_left_alone(#[case] text: &str) {
    let home = Home::new();
    let file = home.path("config/goose/config.yaml");
    home.write(&file, text);
    let said = Said::of(&mut home.setup_of("goose"));
    assert_eq!(said.code, Some(2), "{said:?}");
    said.remarks("is not written as goose writes it; it was left alone");
    assert_eq!(fs::read_to_string(&file).expect("a file"), text);
}

#[test]
fn a_projects_link_leads_nobody_out_of_it() {
    let home = Home::new();
    fs::create_dir_all(home.path("elsewhere")).expect("a folder");
    let link = home.path("project/.cursor");
    std::os::unix::fs::symlink(home.path("elsewhere"), &link).expect("a link");
    let said = Said::of(home.setup_of("cursor").arg("--project"));
    let why = format!(
        "{} leads out of this folder; it was left alone",
        link.display()
    );
    said.refused(2, &why);
    assert_eq!(
        fs::read_dir(home.path("elsewhere"))
            .expect("a folder")
            .count(),
        0
    );
}
