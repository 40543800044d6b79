//! Skills for clients that follow them by themselves.

use std::{fs, os::unix::fs::symlink};

use asyncagents_scripted_model::Script;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, Home, STATELESS, pretty};

const SKILLS: &str = "io.modelcontextprotocol/skills";

fn with_skills() -> Home {
    let home = Home::new(Script::new());
    let skill = |name: &str, more: &str, body: &str| {
        let text = format!("---\nname: {name}\ndescription: About {name}\n{more}---\n{body}");
        home.write(&format!(".claude/skills/{name}/SKILL.md"), &text);
    };
    skill("release", "license: MIT\n", "Write the notes.");
    skill("audit", "context: fork\n", "Audit the code.");
    skill("deploy", "disable-model-invocation: true\n", "Deploy it.");
    skill("loose", "note: it is: loose\n", "Not quite YAML.");
    home.write(".claude/skills/release/notes/a file.txt", "one\n");
    home.write(".claude/skills/release/.env", "KEY=secret\n");
    let picture = home.path(".claude/skills/release/picture.png");
    fs::write(picture, [0x89, 0x50, 0xff]).expect("written");
    home
}

fn listed(client: &mut Client) -> Value {
    client.ask("skills/list", json!({}))
}

fn uris(listed: &Value) -> Vec<&str> {
    let skills = listed["skills"].as_array().expect("skills");
    skills
        .iter()
        .filter_map(|skill| skill["uri"].as_str())
        .collect()
}

/// Those that a model may use in its own conversation, and the one that teaches to delegate.
#[rstest]
#[case::older("2025-11-25")]
#[case::stateless(STATELESS)]
fn a_client_lists_skills_with_the_digests_of_their_files(#[case] version: &str) {
    let home = with_skills();
    let mut client = home.client_of(version, &[]);
    let skills = listed(&mut client);
    assert_eq!(
        uris(&skills),
        [
            "skill://asyncagents/delegate/SKILL.md",
            "skill://release/SKILL.md"
        ]
    );
    insta::assert_snapshot!("served_skill", pretty(&skills["skills"][1]));
    let got = client.ask("skills/get", json!({"uri": "skill://release/SKILL.md"}));
    assert_eq!(got["skill"], skills["skills"][1]);
}

#[test]
fn the_files_of_a_skill_are_read_as_they_were_listed() {
    let home = with_skills();
    let mut client = home.client_of(STATELESS, &[]);
    let skills = listed(&mut client);
    let files = skills["skills"][1]["resources"].as_array();
    for file in files.expect("files") {
        let read = client.ask("resources/read", json!({"uri": file["uri"]}));
        let content = &read["contents"][0];
        let size = match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), None) => text.len(),
            (None, Some(blob)) => blob.trim_end_matches('=').len() * 3 / 4,
            other => panic!("{other:?}"),
        };
        assert_eq!(json!(size), file["size"], "{read}");
    }
    let own = client.ask(
        "resources/read",
        json!({"uri": "skill://asyncagents/delegate/SKILL.md"}),
    );
    let text = own["contents"][0]["text"].as_str().expect("a text");
    assert!(text.contains("# Delegate to background agents"), "{text}");
}

/// A project's folder cannot lead out of it, and what is not served is not read.
#[test]
fn links_hidden_files_and_other_skills_are_not_read() {
    let home = with_skills();
    home.write("secret.txt", "a secret\n");
    let link = home.path(".claude/skills/release/link.txt");
    symlink(home.path("secret.txt"), link).expect("a link");
    let folder = home.path(".claude/skills/release/more");
    symlink(home.path(".."), folder).expect("a link");
    let mut client = home.client_of(STATELESS, &[]);
    assert!(!listed(&mut client).to_string().contains("link"));
    for uri in [
        "skill://release/link.txt",
        "skill://release/more/work/secret.txt",
        "skill://release/.env",
        "skill://release/../../../secret.txt",
        "skill://release/%2e%2e/%2e%2e/%2e%2e/secret.txt",
        "skill://release/notes/a file.txt",
        "skill://release/notes",
        "skill://release",
        "skill://audit/SKILL.md",
        "skill://deploy/SKILL.md",
        "skill://loose/SKILL.md",
        "skill:///SKILL.md",
        "skill://",
    ] {
        for method in ["resources/read", "skills/get"] {
            let refused = client.request(method, json!({"uri": uri}));
            let code = &refused["error"]["code"];
            assert_eq!(*code, json!(-32602), "{method} {uri}: {refused}");
        }
    }
    let refused = client.request("skills/get", json!({}));
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
}

#[test]
fn a_skill_with_more_than_clients_must_take_is_left_out() {
    let home = with_skills();
    let large = home.path(".claude/skills/release/large.bin");
    let file = fs::File::create(large).expect("made");
    file.set_len(17 * 1024 * 1024).expect("made long");
    let mut client = home.client_of(STATELESS, &[]);
    let skills = listed(&mut client);
    assert_eq!(uris(&skills), ["skill://asyncagents/delegate/SKILL.md"]);
}

#[test]
fn many_skills_are_listed_page_by_page() {
    let home = Home::new(Script::new());
    for number in 0..120 {
        let text = format!("---\nname: skill-{number:03}\ndescription: One of many\n---\nDo it.");
        home.write(&format!(".claude/skills/skill-{number:03}/SKILL.md"), &text);
    }
    let mut client = home.client_of(STATELESS, &[]);
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.ask("skills/list", params.clone());
        all.extend(uris(&page).into_iter().map(str::to_owned));
        if page["nextCursor"].is_null() {
            break;
        }
        params["cursor"] = page["nextCursor"].clone();
    }
    assert_eq!(all.len(), 121);
    all.dedup();
    assert_eq!(all.len(), 121);
}

/// Others would show each of them to their user.
#[test]
fn skills_are_among_the_resources_of_clients_that_know_what_they_are() {
    let home = with_skills();
    for (extensions, expected) in [(&[][..], 0), (&[SKILLS][..], 2)] {
        let mut client = home.client_with(STATELESS, &[], extensions);
        let listed = client.ask("resources/list", json!({}));
        let resources = listed["resources"].as_array().expect("resources");
        assert_eq!(resources.len(), expected, "{listed}");
    }
}
