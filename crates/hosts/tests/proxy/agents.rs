//! What known agents are given.

use std::{collections::HashSet, ffi::OsString, fs, os::unix::fs::symlink, path::Path};

use asyncagents_hosts::agent_needs::{known, needs};

const PROJECT: &str = "/home/me/project";

fn unset(_: &str) -> Option<OsString> {
    None
}

#[test]
fn their_hosts_can_be_allowed_and_their_files_are_their_own() {
    let home = Path::new("/home/me");
    for agent in known() {
        assert!(agent.allowed_hosts(home, unset).is_ok(), "{}", agent.name);
        let files = agent.files(home, Path::new(PROJECT), unset);
        for path in files.writable.iter().chain(&files.readable) {
            assert!(
                path.starts_with(home) && path != home,
                "{}: {path:?}",
                agent.name
            );
        }
    }
    assert_eq!(needs("nobody"), None);
}

/// A hook in its settings would run outside of the sandbox the next time.
#[test]
fn no_agent_may_write_what_it_carries_out_later() {
    let home = Path::new("/home/me");
    let carried_out = [
        ".claude/settings.json",
        ".claude/hooks/hook.sh",
        ".claude/commands/c.md",
        ".claude/shell-snapshots/snapshot.sh",
        ".claude.json",
        ".codex/config.toml",
        ".codex/hooks.json",
        ".codex/shell_snapshots/snapshot.sh",
        ".gemini/settings.json",
        ".config/opencode/opencode.json",
        // Git is run on it, and its settings name commands.
        ".local/share/opencode/snapshot/project/config",
        ".local/share/opencode/opencode.db",
        ".local/share/opencode/auth.json",
        ".local/share/opencode/bin/server",
        ".local/state/opencode/model.json",
        ".local/share/goose/sessions/sessions.db",
        ".claude/projects/-home-me-other/memory/MEMORY.md",
        ".cache/opencode/bin/server",
        ".config/goose/config.yaml",
        ".bashrc",
    ];
    for agent in known() {
        let files = agent.files(home, Path::new(PROJECT), unset);
        for path in carried_out.map(|path| home.join(path)) {
            let writes = files.writable.iter().any(|own| path.starts_with(own));
            assert!(!writes, "{}: {path:?}", agent.name);
        }
    }
}

#[test]
fn what_an_agent_writes_is_made_and_what_is_there_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let (home, project) = (home.path(), Path::new(PROJECT));
    for agent in known() {
        agent.make_files(home, project, unset).expect(agent.name);
        let again = agent.make_files(home, project, unset);
        again.expect("twice is as good");
    }
    assert!(home.join(".claude/projects/-home-me-project").is_dir());
    let id = home.join(".codex/installation_id");
    assert_eq!(fs::read_to_string(&id).expect("it is there"), "");
    fs::write(&id, "id").expect("written");
    needs("codex")
        .expect("known")
        .make_files(home, project, unset)
        .expect("made");
    assert_eq!(fs::read_to_string(&id).expect("it is there"), "id");
    assert!(
        !home.join(".codex/auth.json").exists(),
        "no login is made up"
    );
}

/// What one project makes a child write must not be what a child in another project goes by.
#[test]
fn projects_do_not_share_what_their_agents_write() {
    let home = Path::new("/home/me");
    // Logins, and what Codex keeps by date.
    let shared = HashSet::from([
        ".codex/sessions",
        ".codex/thread-writer-locks",
        ".codex/auth.lock",
        ".codex/installation_id",
        ".codex/auth.json",
        ".codex/asyncagents",
        ".gemini/google_accounts.json",
        ".gemini/oauth_creds.json",
    ]);
    for agent in known() {
        let one = agent.files(home, Path::new("/home/me/one"), unset);
        let other = agent.files(home, Path::new("/home/me/other"), unset);
        let is_shared = |path: &&std::path::PathBuf| {
            let relative = path.strip_prefix(home).ok().and_then(Path::to_str);
            relative.is_some_and(|relative| shared.contains(relative))
        };
        let own = one.writable.iter().filter(|path| !is_shared(path));
        for path in own {
            let reached =
                |other: &std::path::PathBuf| other.starts_with(path) || path.starts_with(other);
            assert!(!other.writable.iter().any(reached), "{path:?}");
        }
    }
    let claude = needs("claude").expect("known");
    let files = claude.files(home, Path::new(PROJECT), unset);
    let all = home.join(".claude/projects");
    assert!(files.writable.contains(&all.join("-home-me-project")));
    assert_eq!(files.closed, [all], "nor does it read those of others");
}

/// A child can put links and files where it writes. Nobody may follow them outside of the sandbox.
#[test]
fn what_a_child_has_left_behind_is_not_followed() {
    let home = tempfile::tempdir().expect("a folder");
    let (home, project) = (home.path(), Path::new(PROJECT));
    let gemini = needs("gemini").expect("known");
    let users = home.join(".gemini/settings.json");
    fs::create_dir_all(home.join(".gemini")).expect("a folder");
    fs::write(&users, r#"{"model": {"name": "the user's"}}"#).expect("written");
    let victim = home.join("victim");
    fs::create_dir(&victim).expect("a folder");
    fs::write(victim.join("settings.json"), "kept").expect("written");

    gemini.make_files(home, project, unset).expect("made");
    let files = gemini.files(home, project, unset);
    let variable = files.variables.first().expect("it is told");
    let own = Path::new(&variable.1).join(".gemini");
    let settings = || fs::read_to_string(own.join("settings.json")).expect("it is there");
    assert!(settings().contains("the user's"), "{}", settings());

    fs::remove_file(own.join("settings.json")).expect("removed");
    fs::write(own.join("settings.json"), r#"{"hooks": {}}"#).expect("written");
    gemini.make_files(home, project, unset).expect("made");
    assert!(settings().contains("the user's"), "{}", settings());

    fs::remove_file(own.join("settings.json")).expect("removed");
    fs::create_dir(own.join("settings.json")).expect("a folder");
    gemini.make_files(home, project, unset).expect("made");
    assert!(settings().contains("the user's"), "{}", settings());

    fs::remove_file(own.join("settings.json")).expect("removed");
    symlink(victim.join("settings.json"), own.join("settings.json")).expect("a link");
    gemini.make_files(home, project, unset).expect("made");
    assert!(settings().contains("the user's"), "{}", settings());

    fs::remove_dir_all(&own).expect("removed");
    symlink(&victim, &own).expect("a link");
    gemini.make_files(home, project, unset).expect("made");
    assert!(settings().contains("the user's"), "{}", settings());
    assert!(!own.is_symlink());
    let kept = fs::read_to_string(victim.join("settings.json"));
    assert_eq!(kept.expect("it is there"), "kept");
    let again = gemini.files(home, project, unset);
    let inside = |path: &&std::path::PathBuf| own.starts_with(path) && **path != own;
    assert!(again.writable.iter().any(|path| inside(&path)));
    assert!(
        !again.writable.contains(&own),
        "what it can replace is not granted by its name"
    );
}

#[test]
fn folders_that_variables_move_are_found() {
    let home = Path::new("/home/me");
    let moved = |name: &str| (name == "CODEX_HOME").then(|| OsString::from("/data/codex"));
    let codex = needs("codex").expect("known");
    let files = codex.files(home, Path::new(PROJECT), moved);
    assert!(files.writable.contains(&"/data/codex/auth.json".into()));
    assert!(
        files
            .writable
            .iter()
            .all(|path| path.starts_with("/data/codex"))
    );
    let databases = ("CODEX_SQLITE_HOME".into(), "/data/codex/asyncagents".into());
    assert!(files.variables.contains(&databases));
}

#[test]
fn servers_that_the_user_has_set_are_allowed() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    fs::create_dir_all(home.join(".codex")).expect("a folder");
    let config = "[model_providers.own]\nbase_url = \"http://127.0.0.1:8080/v1\" # here\nenv_key='OWN_KEY'\n";
    fs::write(home.join(".codex/config.toml"), config).expect("written");
    let codex = needs("codex").expect("known");
    let shown = |hosts| format!("{hosts:?}");
    let allowed = shown(codex.allowed_hosts(home, unset).expect("hosts"));
    assert!(allowed.contains("8080"), "{allowed}");
    assert_eq!(codex.keys_in_settings(home, unset), ["OWN_KEY"]);

    let claude = needs("claude").expect("known");
    let gateway = |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "https://gate.intern".into());
    let allowed = shown(claude.allowed_hosts(home, gateway).expect("hosts"));
    assert!(allowed.contains("gate.intern"), "{allowed}");
    let nonsense = |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "gate intern".into());
    let why = claude
        .allowed_hosts(home, nonsense)
        .expect_err("no address");
    assert!(why.starts_with("ANTHROPIC_BASE_URL: "), "{why}");

    fs::create_dir_all(home.join(".claude")).expect("a folder");
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"http://10.0.0.1:4000"}}"#;
    fs::write(home.join(".claude/settings.json"), settings).expect("written");
    let allowed = shown(claude.allowed_hosts(home, unset).expect("hosts"));
    assert!(allowed.contains("4000"), "{allowed}");
}
