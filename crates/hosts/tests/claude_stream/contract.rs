//! Claude Code keeps what the port promises of a host.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use asyncagents_core::{
    fork::{Mode, Plan, Preset},
    id::{OwnerId, SessionId, TaskId},
    lifecycle::Standing,
    port::{Clock, Host, Report, SessionEvent},
    task::Outcome,
};
use asyncagents_hosts::agent::{
    AgentHost, AgentSettings, AskedCall, Judge, Parts, Profile, Verdict,
};
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use asyncagents_store::Sqlite;
use asyncagents_testkit::{
    answered_person::answered_person,
    clock::SetClock,
    host_contract::{Abilities, Does, SCRIPT, Site, host_contract},
    plain,
};
use serde_json::json;

use crate::world::World;

/// On this it asks for a permission.
const ASKS: &str = "Make the program";
/// How the words begin by which an agent is told that it was interrupted.
const INTERRUPTED: &str = "You were interrupted";

struct ClaudeSite {
    world: World,
    store: Arc<Sqlite>,
    clock: Arc<SetClock>,
    host: Mutex<AgentHost>,
}

/// Nothing is decided before somebody is asked.
struct AskAlways;

impl Judge for AskAlways {
    fn judge(&self, _: &AskedCall) -> Verdict {
        Verdict::Ask
    }
}

impl ClaudeSite {
    async fn new() -> Option<Self> {
        let world = World::new(script()).await?;
        world.write("project/notes", "the notes are here\n");
        world.write("project/endless", "there is no end\n");
        let store = Sqlite::open(world.path("tasks.db")).expect("a store");
        let (store, clock) = (Arc::new(store), Arc::new(SetClock::start()));
        let host = Mutex::new(connect(&world, &store, &clock));
        Some(Self {
            world,
            store,
            clock,
            host,
        })
    }

    fn now(&self) -> AgentHost {
        self.host.lock().expect("not poisoned").clone()
    }
}

/// What the model says, by the script of the contract.
fn script() -> Script {
    let own = || When::always().tools(true);
    let read = |file: &str| Reply::call("Read", json!({"file_path": file}));
    let mut script = Script::new()
        .rule(own().last("there is no end"), Reply::fault(Fault::Hang))
        .rule(own().last("completed with no output"), Reply::text("Made."));
    for (words, does) in SCRIPT {
        let reply = match does {
            Does::Answer(text) => Reply::text(*text),
            Does::AnswerAfter(time, text) => Reply::text(*text).delay(*time),
            Does::Fail(why) => Reply::status(400).message(*why),
            Does::CallAndAnswer(text) => {
                script = script.rule(own().last("the notes are here"), Reply::text(*text));
                read("notes")
            }
            Does::CallAndHang => read("endless"),
        };
        let again = own().last(INTERRUPTED).contains(*words);
        script = script
            .rule(again, reply.clone())
            .rule(own().last(*words), reply);
    }
    let make = json!({"command": "touch made", "description": "Makes"});
    script.rule(own().last(ASKS), Reply::call("Bash", make))
}

fn connect(world: &World, store: &Arc<Sqlite>, clock: &Arc<SetClock>) -> AgentHost {
    let profile = |name: &str, reads_only| Profile {
        name: name.into(),
        instructions: format!("You are {name}."),
        reads_only,
    };
    let owner: Option<OwnerId> = None;
    AgentHost::new(Parts {
        settings: AgentSettings {
            name: "claude".to_owned(),
            folder: world.path("project").display().to_string(),
            prefix: "asyncagents_".to_owned(),
            profiles: vec![profile("general", false), profile("explore", true)],
        },
        store: store.clone(),
        clock: clock.clone(),
        wire: Arc::new(world.wire()),
        judge: Arc::new(AskAlways),
        prices: Arc::new(|_, _| None),
        owner: Arc::new(move || owner.clone()),
    })
}

#[async_trait]
impl Site for ClaudeSite {
    fn abilities(&self) -> Abilities {
        Abilities {
            keeps_posts_once: true,
            has_foreign_sessions: true,
            ..Abilities::default()
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(self.now())
    }

    async fn parent(&self) -> SessionId {
        answered_person(&*self.store, self.clock.now()).await
    }

    async fn shown(&self, session: &SessionId) -> String {
        let digits = session.as_str().rsplit('_').next().expect("digits");
        let task = format!("{}{digits}", TaskId::KIND);
        let requests = self.world.requests().into_iter();
        let mut texts = requests.map(|request| request.text());
        let newest = texts.rfind(|text| text.contains(&task));
        newest.unwrap_or_default()
    }

    fn tool(&self) -> &'static str {
        "Read"
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASKS
    }

    async fn restart(&self) {
        self.now().stop().await;
        let next = connect(&self.world, &self.store, &self.clock);
        *self.host.lock().expect("not poisoned") = next;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_keeps_the_promises_of_a_host() {
    if ClaudeSite::new().await.is_none() {
        return;
    }
    host_contract(async || ClaudeSite::new().await.expect("it was there")).await;
}

/// A child of the same agent has its parent's own messages, each once.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_has_the_messages_of_its_parent() {
    let Some(site) = ClaudeSite::new().await else {
        return;
    };
    let host = site.now();
    site.parent().await;
    let (first, second) = (TaskId::from_random(1), TaskId::from_random(2));
    let new = plain::new_session(&first, &"ses_parent".into());
    let parent = host.create(new).await.expect("a session");
    answered(&host, &parent, &first, "Read the notes").await;
    let plan = Plan {
        limits: Preset::Exact.limits(),
        mode: Mode::Messages,
        asked_in: None,
    };
    let new = plain::new_session(&second, &parent);
    let branch = host.branch(new, &plan).await.expect("it can");
    let branch = branch.expect("a branch");
    answered(&host, &branch, &second, "Name the author").await;
    let shown = site.shown(&branch).await;
    assert!(shown.contains("the notes are here"), "{shown}");
    assert_eq!(shown.matches("Read the notes").count(), 1, "{shown}");
    assert_eq!(shown.matches("Name the author").count(), 1, "{shown}");
}

async fn answered(host: &AgentHost, session: &SessionId, task: &TaskId, text: &str) {
    let mut events = host.subscribe();
    let prompt = plain::prompt(task.prompt(0), text);
    host.prompt(session, prompt).await.expect("it is taken");
    loop {
        let seen = host.inspect(session, &task.prompt(0)).await;
        match seen.expect("it is known").standing {
            Standing::Working => {}
            Standing::Done {
                outcome: Outcome::Completed,
                ..
            } => return,
            other => panic!("{other:?}"),
        }
        while !matches!(
            events.next().await.expect("the host lives"),
            Report::Session(_, SessionEvent::Idle) | Report::Missed
        ) {}
    }
}
