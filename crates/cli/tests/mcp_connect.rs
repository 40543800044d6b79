//! `asyncagents mcp --connect`, which an agent in the sandbox starts for our tools, and `asyncagents hook
//! ask`, by which it asks before a call: they pass on what is said, and read and write nothing on disk.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_hosts::{
    agent::hook_door,
    proxy::{AllowedHosts, DoorStream, Proxy, ProxySetup, TwoWay, WayOut},
};
use asyncagents_tools::{
    AgentCommand, AgentFiles, AgentLimits, AgentNetwork, AgentProcess, AgentStartError, Resources,
    Settings,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

const ASYNCAGENTS: &str = env!("CARGO_BIN_EXE_asyncagents");

/// After this a story has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Greets, and answers in capitals.
struct Worker;

#[async_trait]
impl DoorStream for Worker {
    async fn serve(&self, mut stream: Box<dyn TwoWay>) {
        let mut said = String::new();
        let _ = stream.write_all(b"ready\n").await;
        let _ = stream.flush().await;
        let _ = stream.read_to_string(&mut said).await;
        let _ = stream.write_all(said.to_ascii_uppercase().as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

/// Greets and goes.
struct Leaving;

#[async_trait]
impl DoorStream for Leaving {
    async fn serve(&self, mut stream: Box<dyn TwoWay>) {
        let _ = stream.write_all(b"ready\n").await;
        let _ = stream.shutdown().await;
    }
}

fn proxy(tools: Arc<dyn DoorStream>) -> Proxy {
    Proxy::start(ProxySetup {
        allowed: AllowedHosts::new(),
        tools: Some(tools),
        permissions: None,
        way_out: WayOut::direct(),
    })
    .expect("a proxy")
}

/// In a home whose configuration is broken.
fn relay(home: &Path, doors: Option<&Proxy>) -> Command {
    program(&["mcp", "--connect"], home, doors)
}

/// The same for the hook of an agent.
fn hook(home: &Path, doors: Option<&Proxy>) -> Command {
    program(&["hook", "ask"], home, doors)
}

fn program(arguments: &[&str], home: &Path, doors: Option<&Proxy>) -> Command {
    let folder = home.join(".config/asyncagents");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("asyncagents.toml"), "no = [toml").expect("written");
    let mut command = Command::new(ASYNCAGENTS);
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .envs(doors.map(Proxy::doors_environment))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

async fn ended(mut command: Command, said: &str, then_silent: bool) -> Output {
    let mut relay = command.spawn().expect("started");
    let mut input = relay.stdin.take().expect("its input");
    input.write_all(said.as_bytes()).await.expect("said");
    let held = then_silent.then_some(input);
    let output = timeout(PATIENCE, relay.wait_with_output()).await;
    drop(held);
    output.expect("in time").expect("ended")
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Agents make a call whose hook fails, unless it fails with this code.
const FORBIDS: Option<i32> = Some(2);

#[tokio::test]
async fn a_hook_prints_the_answer_and_forbids_its_call_without_one() {
    let home = tempfile::tempdir().expect("a folder");
    let (door, mut asked) = hook_door();
    let answers = Proxy::start(ProxySetup {
        allowed: AllowedHosts::new(),
        tools: None,
        permissions: Some(door),
        way_out: WayOut::direct(),
    })
    .expect("a proxy");
    let answering = tokio::spawn(async move {
        let call = asked.recv().await.expect("a call");
        call.answer.send("{}".to_owned()).expect("it waits");
        // Nobody answers the next one.
        asked.recv().await.map(|call| call.input)
    });
    let output = ended(hook(home.path(), Some(&answers)), "a call", false).await;
    assert_eq!(shown(&output), (Some(0), "{}".to_owned(), String::new()));
    let unanswered = ended(hook(home.path(), Some(&answers)), "another", false).await;
    assert_eq!(answering.await.expect("joined"), Some(b"another".to_vec()));
    let gone = {
        let proxy = proxy(Arc::new(Worker));
        hook(home.path(), Some(&proxy))
    };
    let gone = ended(gone, "a call", false).await;
    // The agent has the tools' door only.
    let other = proxy(Arc::new(Worker));
    let other = ended(hook(home.path(), Some(&other)), "a call", false).await;
    let alone = ended(hook(home.path(), None), "a call", false).await;
    for output in [unanswered, gone, other, alone] {
        let (code, printed, why) = shown(&output);
        assert_eq!((code, printed), (FORBIDS, String::new()), "{why}");
        let words = "the call is forbidden, because nobody could be asked";
        assert!(why.contains(words), "{why}");
    }
}

#[tokio::test]
async fn what_an_agent_and_the_worker_say_is_passed_on() {
    let home = tempfile::tempdir().expect("a folder");
    let proxy = proxy(Arc::new(Worker));
    let output = ended(relay(home.path(), Some(&proxy)), "hello\n", false).await;
    let all = (Some(0), "ready\nHELLO\n".to_owned(), String::new());
    assert_eq!(shown(&output), all);
    assert!(!home.path().join(".local").exists(), "nothing was made");
}

#[tokio::test]
async fn a_worker_that_goes_or_is_gone_is_told() {
    let home = tempfile::tempdir().expect("a folder");
    let leaving = proxy(Arc::new(Leaving));
    let gone = relay(home.path(), Some(&proxy(Arc::new(Worker))));
    for command in [relay(home.path(), Some(&leaving)), gone] {
        let (code, _, said) = shown(&ended(command, "", true).await);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("the worker of asyncagents is gone: "),
            "{said}"
        );
    }
}

#[tokio::test]
async fn without_an_address_it_says_whom_it_is_for() {
    let home = tempfile::tempdir().expect("a folder");
    let (code, printed, said) = shown(&ended(relay(home.path(), None), "", false).await);
    assert_eq!((code, printed.as_str()), (Some(2), ""));
    assert!(
        said.contains("asyncagents starts `mcp --connect` itself"),
        "{said}"
    );
}

#[tokio::test]
async fn it_works_in_the_sandbox_of_an_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace).expect("a folder");
    let proxy = proxy(Arc::new(Worker));
    let mut settings = Settings::new(&workspace, ASYNCAGENTS);
    settings.home = Some(folder.path().into());
    let network = AgentNetwork::Only {
        port: proxy.port(),
        listens: None,
    };
    let limits = AgentLimits::of(&settings, &AgentFiles::default(), network).expect("limits");
    let (name, address) = proxy.doors_environment();
    let started = AgentProcess::start(AgentCommand {
        program: ASYNCAGENTS.into(),
        arguments: ["mcp", "--connect"].map(Into::into).to_vec(),
        folder: workspace,
        environment: vec![(name.into(), address.into())],
        helper: ASYNCAGENTS.into(),
        resources: Resources::default(),
        sandbox: Some(limits),
    });
    let mut agent = match started.await {
        // This machine has no sandbox.
        Err(AgentStartError::CannotSandbox(_)) => return,
        started => started.expect("started"),
    };
    agent.input.write_all(b"hello\n").await.expect("said");
    drop(agent.input);
    let talk = async {
        let (mut printed, mut errors) = (String::new(), String::new());
        agent
            .output
            .read_to_string(&mut printed)
            .await
            .expect("text");
        agent
            .errors
            .read_to_string(&mut errors)
            .await
            .expect("text");
        (printed, errors, agent.life.wait().await)
    };
    let (printed, errors, how) = timeout(PATIENCE, talk).await.expect("in time");
    assert_eq!((printed.as_str(), errors.as_str()), ("ready\nHELLO\n", ""));
    assert_eq!(how, "exited with code 0");
}
