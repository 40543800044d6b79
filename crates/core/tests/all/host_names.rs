//! Names of hosts are in databases: what was written once is read for ever.

use asyncagents_core::host_ref::HostRef;
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::engine("engine:/home/me/a project", HostRef::engine("/home/me/a project"))]
#[case::bridge(
    r#"opencode:/home/me//?{"process":"77@boot","data":"/home/me/.local/share"}"#,
    HostRef::OpenCodeBridge {
        folder: "/home/me".into(),
        process: "77@boot".into(),
        data: "/home/me/.local/share".into(),
    }
)]
#[case::url_in_a_folder(
    r#"opencode:http://127.0.0.1:4096//?{"directory":"/srv"}"#,
    HostRef::OpenCodeUrl { url: "http://127.0.0.1:4096".into(), folder: Some("/srv".into()) }
)]
#[case::url(
    r#"opencode:https://host//?{"directory":null}"#,
    HostRef::OpenCodeUrl { url: "https://host".into(), folder: None }
)]
#[case::bridge_of_opencode_2(
    r#"opencode2:/home/me//?{"process":"77@boot","data":"/home/me/.local/share"}"#,
    HostRef::OpenCode2Bridge {
        folder: "/home/me".into(),
        process: "77@boot".into(),
        data: "/home/me/.local/share".into(),
        background: false,
    }
)]
#[case::background_server_of_opencode_2(
    r#"opencode2:/home/me//?{"process":"77@boot","data":"/d","background":true}"#,
    HostRef::OpenCode2Bridge {
        folder: "/home/me".into(),
        process: "77@boot".into(),
        data: "/d".into(),
        background: true,
    }
)]
#[case::url_of_opencode_2_in_a_folder(
    r#"opencode2:http://127.0.0.1:49374//?{"directory":"/srv"}"#,
    HostRef::OpenCode2Url { url: "http://127.0.0.1:49374".into(), folder: Some("/srv".into()) }
)]
#[case::url_of_opencode_2(
    r#"opencode2:https://host//?{"directory":null}"#,
    HostRef::OpenCode2Url { url: "https://host".into(), folder: None }
)]
#[case::claude_code(
    "claude-code:/home/me/.claude",
    HostRef::ClaudeCode { config: "/home/me/.claude".into() }
)]
#[case::codex("codex:/home/me/.codex", HostRef::Codex { home: "/home/me/.codex".into() })]
#[case::mcp_client("mcp", HostRef::McpClient)]
#[case::agent(
    "agent:codex:/home/me/a: project",
    HostRef::Agent { name: "codex".into(), folder: "/home/me/a: project".into(), bridge: None,
        unsandboxed: false }
)]
#[case::agent_of_an_opencode(
    r#"agent:codex:/a//?{"bridge":"opencode:/a//?{\"process\":\"7\",\"data\":\"/d\"}"}"#,
    HostRef::Agent {
        name: "codex".into(),
        folder: "/a".into(),
        bridge: Some(Box::new(HostRef::OpenCodeBridge {
            folder: "/a".into(),
            process: "7".into(),
            data: "/d".into(),
        })),
        unsandboxed: false,
    }
)]
#[case::agent_without_a_sandbox(
    r#"agent:codex:/a//?{"unsandboxed":true}"#,
    HostRef::Agent { name: "codex".into(), folder: "/a".into(), bridge: None, unsandboxed: true }
)]
#[case::of_another_kind("scripted", HostRef::Other("scripted".into()))]
#[case::of_another_kind_with_more(
    "scripted:/a#b.toml#0123abcd",
    HostRef::Other("scripted:/a#b.toml#0123abcd".into())
)]
fn a_name_on_disk_stays_what_it_is(#[case] text: &str, #[case] host: HostRef) {
    assert_eq!(host.to_string(), text);
    assert_eq!(HostRef::from(text), host);
    // A new kind needs a case above: nothing else notices if it is written and not read.
    match host {
        HostRef::Engine { .. }
        | HostRef::OpenCodeBridge { .. }
        | HostRef::OpenCodeUrl { .. }
        | HostRef::OpenCode2Bridge { .. }
        | HostRef::OpenCode2Url { .. }
        | HostRef::ClaudeCode { .. }
        | HostRef::Codex { .. }
        | HostRef::McpClient
        | HostRef::Agent { .. }
        | HostRef::Other(_) => {}
    }
}

#[rstest]
#[case("engine:/a", "engine:/a")]
#[case(r#"opencode:/a//?{"process":"7","data":"/d"}"#, "opencode:/a")]
#[case(r#"opencode2:/a//?{"process":"7","data":"/d"}"#, "opencode:/a")]
#[case(r#"opencode2:http://h//?{"directory":null}"#, "opencode:http://h")]
#[case("agent:codex:/a", "codex:/a")]
fn people_see_one_opencode(#[case] text: &str, #[case] label: &str) {
    assert_eq!(HostRef::from(text).label(), label);
}

#[rstest]
#[case("")]
#[case("engine")]
#[case("engine:")]
#[case("opencode:/folder")]
#[case("opencode:/folder//?{}")]
#[case("opencode:http://host//?nonsense")]
#[case("opencode2:/folder//?{}")]
#[case("claude:/folder")]
#[case("agent:")]
#[case("agent:codex")]
#[case("agent:codex:/a//?nonsense")]
#[case("scripted:/a.toml")]
fn a_host_of_another_version_keeps_its_name(#[case] text: &str) {
    let host = HostRef::from(text);
    assert_eq!(host, HostRef::Other(text.into()));
    assert_eq!(host.to_string(), text);
}

proptest! {
    #[test]
    fn every_folder_has_a_name(folder in "/[^/]{1,12}(/[^/]{1,12}){0,3}", process in ".*") {
        let engine = HostRef::engine(&folder);
        prop_assert_eq!(HostRef::from(engine.to_string().as_str()), engine);
        let bridge = HostRef::OpenCodeBridge {
            folder: folder.as_str().into(),
            process: process.as_str().into(),
            data: folder.as_str().into(),
        };
        prop_assert_eq!(HostRef::from(bridge.to_string().as_str()), bridge);
        let bridge = HostRef::OpenCode2Bridge {
            folder: folder.as_str().into(),
            process: process.into(),
            data: folder.as_str().into(),
            background: folder.len() % 2 == 0,
        };
        prop_assert_eq!(HostRef::from(bridge.to_string().as_str()), bridge);
    }
}
