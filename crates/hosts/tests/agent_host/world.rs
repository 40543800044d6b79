//! A journal, an agent, and the process of ours that has both.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::{
    agent::Entry,
    budget::{Budget, Cost},
    event::{Event, Launched},
    host_ref::HostRef,
    id::{OwnerId, PostId, SessionId, TaskId},
    lifecycle::Standing,
    port::{Clock, Host, Report, Session, SessionEvent, Store, StoreError, query, transact},
    task::{Brief, Context, Outcome, Place, Task},
};
use asyncagents_hosts::{
    OutsideHost,
    acp::{Acp, AcpSettings},
    agent::{
        AgentHost, AgentSettings, AskedCall, JournalSessions, Judge, Parts, Prices, Profile,
        Verdict, Wire,
    },
};
use asyncagents_store::Sqlite;
use asyncagents_testkit::{answered_person::answered_person, clock::SetClock, plain};
use tempfile::TempDir;
use tokio::time;

use crate::fake::FakeAgent;

/// A journal, an agent, and the process of ours that has both.
pub(crate) struct World {
    pub(crate) agent: FakeAgent,
    store: Arc<Sqlite>,
    clock: Arc<SetClock>,
    prices: Arc<Prices>,
    wire: Arc<dyn Wire>,
    host: Mutex<AgentHost>,
    _folder: TempDir,
}

/// Nothing is decided before somebody is asked.
struct AskAlways;

impl Judge for AskAlways {
    fn judge(&self, _: &AskedCall) -> Verdict {
        Verdict::Ask
    }
}

impl World {
    pub(crate) fn new(agent: FakeAgent) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Sqlite::open(folder.path().join("tasks.db")).expect("a store");
        let (store, clock) = (Arc::new(store), Arc::new(SetClock::start()));
        let prices: Arc<Prices> = Arc::new(|_, _| None);
        let wire = acp(&agent);
        let host = connect(&wire, &store, &clock, (Arc::new(AskAlways), prices.clone()));
        Self {
            agent,
            store,
            clock,
            prices,
            wire,
            host: Mutex::new(host),
            _folder: folder,
        }
    }

    /// The sessions of the journal, as a process has them that does not drive the agent.
    pub(crate) fn journal(&self) -> OutsideHost {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let prefix = "asyncagents_".to_owned();
        OutsideHost::new(JournalSessions::new(store, clock, prefix))
    }

    /// With another agent in the place of the fake one.
    pub(crate) fn driving(mut self, wire: impl Wire + 'static) -> Self {
        self.wire = Arc::new(wire);
        *self.host.lock().expect("not poisoned") = self.connected(AskAlways);
        self
    }

    /// Where a token costs so much.
    pub(crate) fn priced_at(mut self, token: Option<Cost>) -> Self {
        self.prices = Arc::new(move |_, usage| Some(Cost(token?.0 * usage.context())));
        *self.host.lock().expect("not poisoned") = self.connected(AskAlways);
        self
    }

    pub(crate) fn judged_by(self, judge: impl Judge + 'static) -> Self {
        *self.host.lock().expect("not poisoned") = self.connected(judge);
        self
    }

    fn connected(&self, judge: impl Judge + 'static) -> AgentHost {
        let by = (Arc::new(judge) as Arc<dyn Judge>, self.prices.clone());
        connect(&self.wire, &self.store, &self.clock, by)
    }

    pub(crate) fn host(&self) -> AgentHost {
        self.host.lock().expect("not poisoned").clone()
    }

    /// Kills the process of ours and starts another one.
    pub(crate) async fn restart(&self) {
        self.host().stop().await;
        *self.host.lock().expect("not poisoned") = self.connected(AskAlways);
    }

    /// What is in a session, but for how its run ended: as a process of ours leaves it that dies
    /// before it has saved that.
    pub(crate) async fn copied_without_end(&self, from: &SessionId, to: &SessionId) {
        let (from, to, now) = (from.clone(), to.clone(), Clock::now(&*self.clock));
        let copied = transact(&*self.store as &dyn Store, move |journal| {
            for filed in journal.entries(&from, 0, u64::MAX)? {
                if !matches!(filed.entry, Entry::Ended { .. }) {
                    journal.file(&to, &filed.entry, now)?;
                }
            }
            Ok::<_, StoreError>(())
        });
        copied.await.expect("it is copied");
    }

    /// Waits until an entry of a session has these words.
    pub(crate) async fn until_kept(&self, session: &SessionId, words: &str) {
        let (session, words) = (session.clone(), words.to_owned());
        let kept = async {
            loop {
                let id = session.clone();
                let entries = query(&*self.store as &dyn Store, move |journal| {
                    journal.entries(&id, 0, u64::MAX)
                });
                let entries = entries.await.expect("they are read");
                if format!("{entries:?}").contains(&words) {
                    return;
                }
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        let kept = time::timeout(Duration::from_secs(60), kept).await;
        assert!(kept.is_ok(), "never: an entry has {words:?}");
    }

    /// A session, as the journal has it.
    pub(crate) async fn session(&self, id: &SessionId) -> Session {
        let id = id.clone();
        let read: Result<_, StoreError> = query(&*self.store as &dyn Store, move |journal| {
            journal.session(&id)
        })
        .await;
        read.expect("read").expect("a session")
    }

    pub(crate) async fn parent(&self) -> SessionId {
        answered_person(&*self.store, Clock::now(&*self.clock)).await
    }

    /// The session of a task, of which somebody has said in the database that it is elsewhere.
    pub(crate) async fn moved(&self, task: &TaskId) -> SessionId {
        let id = task.session();
        let session = Session {
            id: id.clone(),
            task: Some(task.clone()),
            title: "moved".to_owned(),
            agent: "general".into(),
            model: "fake".into(),
            system: String::new(),
            delegates: false,
            workspace: "/elsewhere".to_owned(),
            terms: None,
            base: None,
            begun: Clock::now(&*self.clock),
        };
        let made = transact(&*self.store as &dyn Store, move |journal| {
            journal.begin_session(&session)
        });
        made.await.expect("a session");
        id
    }

    /// A process before has opened the session under a name of the agent's, and nothing more.
    pub(crate) async fn opened_before(&self, session: &SessionId, theirs: &str) {
        let (session, begun) = (session.clone(), Clock::now(&*self.clock));
        let opened = Entry::AgentSession {
            id: theirs.to_owned(),
            process: None,
            forks: true,
        };
        let filed = transact(&*self.store as &dyn Store, move |journal| {
            journal.file(&session, &opened, begun)?;
            Ok::<_, StoreError>(())
        });
        filed.await.expect("it is filed");
    }

    /// A session has launched a task.
    pub(crate) async fn launched(&self, parent: &SessionId, id: TaskId) -> Task {
        let now = Clock::now(&*self.clock);
        let place = Place {
            parent: parent.clone(),
            above: None,
            root: id.as_str().into(),
            depth: 2,
            outside: None,
            above_in: None,
        };
        let brief = Brief {
            description: "look around".to_owned(),
            agent: "general".into(),
            model: None,
            effort: None,
            context: Context::Fresh,
            host: HostRef::from("scripted").into(),
        };
        let launched = Launched {
            place,
            brief,
            prompt: "Look around".to_owned(),
            fork: None,
            budget: Budget::default(),
            batch: 0,
            owner: None,
            chain: None,
            from: None,
            role: None,
        };
        let inserted = transact(&*self.store as &dyn Store, move |journal| {
            journal.insert(id.clone(), launched.clone(), now)
        });
        inserted.await.expect("a task")
    }

    /// A task has ended.
    pub(crate) async fn task_ended(&self, task: Task) {
        let now = Clock::now(&*self.clock);
        let over = Event::Ended {
            outcome: Outcome::Completed,
            answer: Some("seen".to_owned()),
            stop: false,
        };
        let saved = transact(&*self.store as &dyn Store, move |journal| {
            journal.append(&mut task.clone(), std::slice::from_ref(&over), now)
        });
        saved.await.expect("it is saved");
    }

    /// What the agent's model was shown in the session of a task.
    pub(crate) fn shown(&self, session: &SessionId) -> String {
        let digits = session.as_str().rsplit('_').next().expect("digits");
        self.agent.shown(&format!("{}{digits}", TaskId::KIND))
    }
}

/// The fake agent, by its protocol.
fn acp(agent: &FakeAgent) -> Arc<dyn Wire> {
    let settings = AcpSettings {
        name: "fake".to_owned(),
        mode: Some("ask".to_owned()),
        read_only_mode: Some("look".to_owned()),
        ..AcpSettings::default()
    };
    Arc::new(Acp::new(settings, Arc::new(agent.clone())))
}

fn connect(
    wire: &Arc<dyn Wire>,
    store: &Arc<Sqlite>,
    clock: &Arc<SetClock>,
    (judge, prices): (Arc<dyn Judge>, Arc<Prices>),
) -> AgentHost {
    let profile = |name: &str, reads_only| Profile {
        name: name.into(),
        instructions: format!("You are {name}."),
        reads_only,
    };
    let owner: Option<OwnerId> = None;
    AgentHost::new(Parts {
        settings: AgentSettings {
            name: "fake".to_owned(),
            folder: "/project".to_owned(),
            prefix: "asyncagents_".to_owned(),
            profiles: vec![profile("general", false), profile("explore", true)],
        },
        store: store.clone(),
        clock: clock.clone(),
        wire: wire.clone(),
        judge,
        prices,
        owner: Arc::new(move || owner.clone()),
    })
}

/// A session for a task.
pub(crate) async fn child(world: &World, task: &TaskId) -> SessionId {
    let new = plain::new_session(task, &"ses_parent".into());
    world.host().create(new).await.expect("a session")
}

/// What a prompt came to.
pub(crate) async fn ended(host: &AgentHost, session: &SessionId, prompt: &PostId) -> Standing {
    let mut events = host.subscribe();
    loop {
        let seen = host.inspect(session, prompt).await.expect("it is known");
        if seen.standing != Standing::Working {
            return seen.standing;
        }
        while !matches!(
            events.next().await.expect("the host lives"),
            Report::Session(_, SessionEvent::Idle) | Report::Missed
        ) {}
    }
}

/// Waits until something is so; for a minute at most.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = time::timeout(Duration::from_secs(60), waited).await;
    assert!(waited.is_ok(), "never: {what}");
}
