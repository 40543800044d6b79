//! The real agents as children: in our sandbox, with a proxy as their only network, and what they are
//! known to need. Judged by what their commands report to the model.

use std::{env, ffi::OsString, fs, time::Duration};

use asyncagents_hosts::{
    agent_needs::needs,
    proxy::{Proxy, ProxySetup, WayOut},
};
use asyncagents_scripted_model::{Reply, Script};
use asyncagents_tools::{
    AgentCommand, AgentFiles, AgentLimits, AgentNetwork, AgentProcess, AgentStartError, Resources,
    Settings, agent_environment,
};
use rstest::rstest;
use serde_json::json;
use tokio::{io::AsyncReadExt, time::timeout};

use crate::harness::{Agent, World, asked};

const PATIENCE: Duration = Duration::from_secs(60);

/// Tries what it must not, says so, and does what it should.
const COMMAND: &str = "\
    curl -sS -m 9 https://example.com; \
    curl -sS -m 9 --noproxy '*' http://127.0.0.1:$MODEL_PORT; \
    cat $HOME/database; cat $HOME/.OTHER/login; \
    echo bad >> $HOME/.bashrc; echo bad >> $HOME/.SETTINGS; \
    echo good > made && echo all was tried";

#[rstest]
#[case::claude_code(Agent::ClaudeCode, "claude", ".claude/settings.json")]
#[case::codex(Agent::Codex, "codex", ".codex/config.toml")]
fn the_agent_works_and_its_commands_reach_nothing(
    #[case] agent: Agent,
    #[case] name: &str,
    #[case] settings_file: &str,
) {
    let command = COMMAND
        .replace(
            ".OTHER/login",
            match agent {
                Agent::ClaudeCode => ".codex/auth.json",
                Agent::Codex => ".claude/.credentials.json",
            },
        )
        .replace(".SETTINGS", settings_file);
    let call = match agent {
        Agent::ClaudeCode => Reply::call("Bash", json!({"command": command, "description": "try"})),
        Agent::Codex => Reply::call("exec_command", json!({"cmd": command})),
    };
    let script = Script::new()
        .rule(asked(agent, "all was tried"), Reply::text("It was tried."))
        .rule(asked(agent, "Try it"), call);
    let Some(world) = World::without_plugin(agent, script) else {
        return;
    };
    for (file, text) in [
        ("home/database", "CONVERSATIONS"),
        ("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"LOGIN\"}"),
        ("home/.claude/.credentials.json", "{\"LOGIN\": {}}"),
        ("home/.claude/settings.json", "{}"),
    ] {
        world.write(file, text);
    }
    let before = fs::read_to_string(world.path("home").join(settings_file)).expect("settings");
    let Some((printed, how, refused)) = world.block_on(run(&world, name)) else {
        return;
    };
    assert_eq!(how, "exited with code 0", "{printed}");
    assert!(printed.contains("It was tried."), "{printed}");
    assert!(
        refused.contains(&"example.com:443".to_owned()),
        "{refused:?}"
    );

    let requests = world.requests();
    let told = requests.last().expect("it asked").last();
    assert!(told.contains("all was tried"), "{told}");
    assert!(told.contains("response 403"), "{told}");
    assert!(told.contains("ailed to connect"), "{told}");
    assert_eq!(told.matches("ermission denied").count(), 4, "{told}");
    for secret in ["CONVERSATIONS", "LOGIN"] {
        assert!(!told.contains(secret), "{told}");
    }
    let read = |file: &str| fs::read_to_string(world.path(file)).unwrap_or_default();
    assert_eq!(read("project/made"), "good\n");
    assert_eq!(read("home/.bashrc"), "");
    assert_eq!(read(&format!("home/{settings_file}")), before);
}

/// What it printed, how it ended, and what it tried to reach. Nothing if there is no sandbox here.
async fn run(world: &World, name: &str) -> Option<(String, String, Vec<String>)> {
    let needs = needs(name).expect("known");
    let (home, workspace) = (world.path("home"), world.path("project"));
    let url = world.model.url();
    let port = url.rsplit_once(':').expect("a port").1.to_owned();
    let set: Vec<(OsString, OsString)> = [
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("ANTHROPIC_API_KEY", "key"),
        ("SCRIPTED_KEY", "key"),
        ("LANG", "C.UTF-8"),
        ("SHELL", "/bin/sh"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into_iter()
    .chain([("HOME".into(), home.clone().into())])
    .chain(env::var_os("PATH").map(|path| ("PATH".into(), path)))
    .collect();
    let variable = |name: &str| {
        let found = set.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let project = workspace.canonicalize().expect("it is there");
    needs
        .make_files(&home, &project, variable)
        .expect("its files");
    let proxy = Proxy::start(ProxySetup {
        allowed: needs.allowed_hosts(&home, variable).expect("hosts"),
        tools: None,
        permissions: None,
        way_out: WayOut::direct(),
    })
    .expect("a proxy");

    let helper = env!("CARGO_BIN_EXE_asyncagents");
    let mut settings = Settings::new(&workspace, helper);
    settings.home = Some(home.clone());
    settings.secret_paths = vec![home.join("database")];
    let keys = needs.keys_in_settings(&home, variable);
    let own: Vec<&str> = keys.iter().map(String::as_str).collect();
    let own = [needs.variables, &own].concat();
    let mut environment = agent_environment(&settings, &own, set.clone());
    let files = needs.files(&home, &project, variable);
    let set = needs.set.iter();
    environment.extend(set.map(|(name, value)| (name.into(), value.into())));
    environment.extend(files.variables);
    environment.push(("MODEL_PORT".into(), port.into()));
    let of_proxy = proxy.environment().into_iter();
    environment.extend(of_proxy.map(|(name, value)| (name.into(), value.into())));

    let files = AgentFiles {
        writable: files.writable,
        readable: files.readable,
        program: Vec::new(),
        closed: files.closed,
    };
    let network = AgentNetwork::Only {
        port: proxy.port(),
        listens: None,
    };
    let limits = AgentLimits::of(&settings, &files, network).expect("limits");
    let program = world.path("bin").join(name).canonicalize();
    let arguments: &[&str] = match world.agent {
        Agent::ClaudeCode => &["-p", "Try it", "--allowedTools", "Bash"],
        // Its own sandbox cannot be made within ours, which holds.
        Agent::Codex => &[
            "exec",
            "--skip-git-repo-check",
            "-s",
            "danger-full-access",
            "Try it",
        ],
    };
    let started = AgentProcess::start(AgentCommand {
        program: program.expect("the program"),
        arguments: arguments.iter().map(Into::into).collect(),
        folder: workspace,
        environment,
        helper: helper.into(),
        resources: Resources::default(),
        sandbox: Some(limits),
    });
    let mut agent = match started.await {
        Err(AgentStartError::CannotSandbox(why)) => {
            eprintln!("skipped: {why}");
            return None;
        }
        started => started.expect("started"),
    };
    drop(agent.input);
    let talk = async {
        let (mut printed, mut errors) = (String::new(), String::new());
        let (output, complaints) = tokio::join!(
            agent.output.read_to_string(&mut printed),
            agent.errors.read_to_string(&mut errors),
        );
        output.expect("text");
        complaints.expect("text");
        (printed + &errors, agent.life.wait().await)
    };
    let (printed, how) = timeout(PATIENCE, talk).await.expect("in time");
    Some((printed, how, proxy.refused()))
}
