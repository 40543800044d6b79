//! Launches a background task on the built-in agent, waits for its end and prints the answer.
//! The model is a scripted one and everything is in a temporary folder, so it runs offline:
//!
//! ```text
//! cargo run -p asyncagents-examples --example launch_and_wait
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    port::{Host, HostError},
    request::{Caller, OutputRequest, TaskArgs, TextPart},
};
use asyncagents_engine::{Engine, Parts, Settings};
use asyncagents_models::{KeySource, Models, Provider, Wire};
use asyncagents_runtime::{Hosts, Manager, SystemClock, ToolDoor, Worker};
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use asyncagents_store::Sqlite;
use asyncagents_tools::Toolbox;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let script = Script::new().rule(When::always(), Reply::text("The plants need water."));
    let server = ModelServer::start(script).await?;
    let mut models = asyncagents_models::Settings::default();
    models.providers.push(Provider {
        name: "scripted".to_owned(),
        wire: Wire::Anthropic,
        base_url: server.url(),
        key: KeySource::None,
        headers: Vec::new(),
    });

    // Everything that is decided is in the store: a task outlives the process that launched it.
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let store = Arc::new(Sqlite::open(workspace.join("tasks.db"))?);
    let (hosts, clock) = (Arc::new(BuiltIn::default()), Arc::new(SystemClock));
    let manager = Manager::new(store.clone(), hosts.clone(), clock.clone(), <_>::default());
    let host = HostSetup::from(HostRef::engine("example"));
    let tools = asyncagents_tools::Settings::new(workspace.clone(), Path::new("no-sandbox"));
    let mut settings = Settings::new(workspace);
    settings.model = Some("scripted/model".to_owned());
    let engine = Engine::new(Parts {
        settings,
        store,
        clock,
        models: Models::new(models)?,
        toolbox: Toolbox::new(tools)?,
        delegation: Arc::new(ToolDoor::new(&manager, host.clone())),
        commands: Arc::default(),
        approver: None,
        owner: Arc::new(|| None),
    });
    // The engine launches tasks through the manager, and the manager runs them in the engine.
    hosts.0.get_or_init(|| engine);
    let worker = Worker::start(&manager).await?;

    let session = "my-program".into();
    let caller = Caller::Shell { session, host };
    let args = TaskArgs {
        prompt: "What is there to do in the garden?".to_owned(),
        agent: "general".to_owned(),
        ..TaskArgs::default()
    };
    let launched = manager.task(&caller, args).await?;
    let request = OutputRequest {
        task: launched.shown.task.id.to_string(),
        wait: Some(Duration::from_secs(60)),
        conversation: None,
        part: TextPart::default(),
    };
    let report = manager.output(&caller, request).await?;
    println!("{}: {:?}", report.shown.task.status(), report.answer);
    worker.stop().await;
    Ok(())
}

/// Where the manager finds the host of a task.
#[derive(Default)]
struct BuiltIn(OnceLock<Engine>);

impl Hosts for BuiltIn {
    fn serves(&self, _: &HostRef) -> bool {
        true
    }

    fn open(&self, _: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let engine = self.0.get().cloned();
        let engine = engine.ok_or(HostError::Unreachable("not open yet".to_owned()))?;
        Ok(Arc::new(engine))
    }
}
