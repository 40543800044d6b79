//! Which sessions are driven in this process, and what their drivers are told.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::{
    id::SessionId,
    lock::lock,
    question::{Question, Reply},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{self, Instant},
};

/// How long it is waited for an agent to tell of the call by which it has launched a task.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(1);

/// For how long such a call is the one that has launched what begins now.
const LAUNCH_RECENT: Duration = Duration::from_secs(2);

/// What a driver is told.
pub(super) enum Command {
    /// There may be something new in its session.
    Look,
    /// Stop the work, and say when that is done.
    Abort(oneshot::Sender<()>),
    /// Somebody has answered a question.
    Reply(String, Reply),
}

/// The drivers of a host, one for each session that has something to do.
#[derive(Default)]
pub(super) struct Drivers {
    handles: Mutex<HashMap<SessionId, Handle>>,
    running: Mutex<JoinSet<()>>,
}

struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    questions: Questions,
    activity: Arc<watch::Sender<Activity>>,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Activity {
    pub(super) is_at_work: bool,
    /// When it has told of the newest call by which it launches a task. What it had found out by then is
    /// saved.
    pub(super) launched: Option<Instant>,
}

/// What a session waits for, by our names for the questions.
pub(super) type Questions = Arc<Mutex<BTreeMap<String, Question>>>;

/// A driver's end of what it is told.
pub(super) struct Orders {
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) questions: Questions,
    pub(super) activity: Arc<watch::Sender<Activity>>,
}

impl Orders {
    /// Those of a driver that is told nothing any more.
    pub(super) fn closed() -> Self {
        Self {
            commands: mpsc::unbounded_channel().1,
            questions: Questions::default(),
            activity: Arc::default(),
        }
    }
}

impl Drivers {
    /// Makes sure that a session is driven: tells its driver to look, or spawns one.
    pub(super) fn attend<F>(&self, session: &SessionId, drive: impl FnOnce(Orders) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut handles = lock(&self.handles);
        if let Some(handle) = handles.get(session)
            && handle.commands.send(Command::Look).is_ok()
        {
            return;
        }
        let (sender, commands) = mpsc::unbounded_channel();
        let (questions, activity) = (Questions::default(), Arc::default());
        let handle = Handle {
            commands: sender,
            questions: Arc::clone(&questions),
            activity: Arc::clone(&activity),
        };
        handles.insert(session.clone(), handle);
        let mut running = lock(&self.running);
        while running.try_join_next().is_some() {}
        running.spawn(drive(Orders {
            commands,
            questions,
            activity,
        }));
    }

    /// Tells a driver something. False if the session is not driven here.
    pub(super) fn tell(&self, session: &SessionId, command: Command) -> bool {
        let handles = lock(&self.handles);
        handles
            .get(session)
            .is_some_and(|handle| handle.commands.send(command).is_ok())
    }

    /// What a session that is driven here waits for.
    pub(super) fn questions(&self, session: &SessionId) -> Option<BTreeMap<String, Question>> {
        let handles = lock(&self.handles);
        let handle = handles.get(session)?;
        Some(lock(&handle.questions).clone())
    }

    /// Waits until a session at work has told of the call by which it launches a task, and so of all that
    /// it had found out before: our tools are called on another way, which may be the faster one.
    pub(super) async fn until_launch_told(&self, session: &SessionId) {
        let activity = {
            let handles = lock(&self.handles);
            handles
                .get(session)
                .map(|handle| handle.activity.subscribe())
        };
        let Some(mut activity) = activity else {
            return;
        };
        let is_told = |activity: &Activity| {
            let launched = activity.launched;
            !activity.is_at_work || launched.is_some_and(|at| at.elapsed() < LAUNCH_RECENT)
        };
        // An agent may tell of it under another name: then it was time enough for the rest.
        let _ = time::timeout(LAUNCH_TIMEOUT, activity.wait_for(is_told)).await;
    }

    /// Takes a question that is open, so that nobody else answers it.
    pub(super) fn take_question(&self, session: &SessionId, name: &str) -> bool {
        let handles = lock(&self.handles);
        let questions = handles.get(session).map(|handle| handle.questions.clone());
        questions.is_some_and(|questions| lock(&questions).remove(name).is_some())
    }

    /// Whether a driver that has nothing to do may end: not if it was told something since.
    pub(super) fn may_end(&self, session: &SessionId, orders: &mut Orders) -> bool {
        let mut handles = lock(&self.handles);
        if !orders.commands.is_empty() {
            return false;
        }
        orders.commands.close();
        handles.remove(session);
        true
    }

    /// Forgets a driver that is told nothing any more, unless another has taken its place.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut handles = lock(&self.handles);
        if handles
            .get(session)
            .is_some_and(|handle| handle.commands.is_closed())
        {
            handles.remove(session);
        }
    }

    /// Ends all drivers at once, and with them the processes of their agents.
    pub(super) async fn stop(&self) {
        let mut running = std::mem::take(&mut *lock(&self.running));
        running.shutdown().await;
        lock(&self.handles).clear();
    }
}
