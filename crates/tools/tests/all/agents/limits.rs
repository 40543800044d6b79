//! Which files an agent reads and writes.

use std::{fs, os::unix::fs::PermissionsExt};

use asyncagents_tools::AgentFiles;

use super::started::{Site, only, text};
use crate::workbench::can_sandbox;

fn own(site: &Site) -> AgentFiles {
    AgentFiles {
        writable: ["sessions", "login.json"]
            .map(|name| site.home.join(".agent").join(name))
            .to_vec(),
        readable: vec![site.home.join(".agent/settings.json")],
        ..AgentFiles::default()
    }
}

#[tokio::test]
async fn it_reads_its_own_login_and_nobody_elses() {
    if !can_sandbox() {
        return;
    }
    let mut site = Site::new();
    // Kept from commands, as its settings are.
    for name in ["login.json", "settings.json"] {
        site.settings
            .secret_paths
            .push(site.home.join(".agent").join(name));
    }
    let home = text(&site.home);
    let script = format!(
        "cd {home}; cat .agent/login.json .agent/settings.json notes; \
         cat .codex/auth.json .config/asyncagents/config.toml ../database"
    );
    let (read, _, _) = site.shell(None, &script).await;
    assert_eq!(
        read, "LOGIN{}harmlessANOTHER LOGINKEYCONVERSATIONS",
        "all are there"
    );
    let (read, refused, _) = site
        .shell(Some(site.limits(&own(&site), only(1))), &script)
        .await;
    assert_eq!(read, "LOGIN{}harmless");
    assert_eq!(refused.matches("Permission denied").count(), 3, "{refused}");
    let (read, _, _) = site.shell(Some(site.usual_limits()), &script).await;
    assert_eq!(read, "harmless", "to another agent they are secret");
}

#[tokio::test]
async fn it_writes_in_the_workspace_and_what_is_its_own() {
    if !can_sandbox() {
        return;
    }
    let site = Site::new();
    let home = text(&site.home);
    let script = format!(
        "echo new > here; cd {home}; echo new > .agent/login.json; echo new > .agent/sessions/new; \
         mv .agent/sessions/old .agent/sessions/older; \
         echo bad > .agent/settings.json; echo bad > .agent/new; echo bad > .bashrc; echo bad > ../beside; \
         rm .agent/login.json; mv .agent/sessions/new .agent/settings.json"
    );
    let limits = site.limits(&own(&site), only(1));
    let (_, refused, _) = site.shell(Some(limits), &script).await;
    assert_eq!(refused.lines().count(), 6, "{refused}");
    let read = |name: &str| fs::read_to_string(site.home.join(name)).unwrap_or_default();
    assert_eq!(read("../workspace/here"), "new\n");
    assert_eq!(read(".agent/login.json"), "new\n");
    assert_eq!(read(".agent/sessions/new"), "new\n");
    assert_eq!(read(".agent/sessions/older"), "said");
    assert_eq!(read(".agent/settings.json"), "{}");
    for name in [".agent/new", ".bashrc", "../beside"] {
        assert!(!site.home.join(name).exists(), "{name}");
    }
}

/// Conversations in other projects are for their own agents, and the user's settings stay readable
/// however many there are.
#[tokio::test]
async fn of_what_is_closed_it_has_only_its_own() {
    if !can_sandbox() {
        return;
    }
    let site = Site::new();
    let all = site.home.join(".agent/projects");
    for number in 0..20 {
        let other = all.join(format!("other-{number}"));
        fs::create_dir_all(&other).expect("a folder");
        let said = other.join("said");
        fs::write(&said, "OF OTHERS").expect("written");
        fs::set_permissions(said, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    fs::create_dir_all(all.join("own")).expect("a folder");
    fs::write(all.join("own/said"), "own ").expect("written");
    let files = AgentFiles {
        writable: vec![all.join("own")],
        closed: vec![all.clone()],
        ..AgentFiles::default()
    };
    let script = format!(
        "cd {}; cat projects/own/said projects/*/said settings.json; echo bad >> projects/other-1/said; \
         mkdir projects/new; echo more >> projects/own/said",
        text(&site.home.join(".agent"))
    );
    let (read, refused, _) = site
        .shell(Some(site.limits(&files, only(1))), &script)
        .await;
    assert_eq!(read, "own own {}", "{refused}");
    let said = |name: &str| fs::read_to_string(all.join(name).join("said")).expect("it is there");
    assert_eq!(said("other-1"), "OF OTHERS");
    assert_eq!(said("own"), "own more\n");
    assert!(!all.join("new").exists());
}

#[test]
fn a_workspace_that_is_not_there_is_an_error() {
    let mut site = Site::new();
    site.settings.workspace = site.workspace.join("nowhere");
    let limits =
        asyncagents_tools::AgentLimits::of(&site.settings, &AgentFiles::default(), only(1));
    assert!(limits.is_err());
}
