//! One session that a client has open.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use agent_client_protocol::{
    Client, Error, RequestCancellation,
    v1::{
        ConnectionTo,
        schema::{PromptResponse, SessionNotification, SessionUpdate, StopReason, ToolCall},
    },
};
use asyncagents_core::{id::SessionId, lock::lock};
use asyncagents_runtime::Manager;
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    BuiltInAgent, CallQuestion, Place, SessionMode, replay::replay, stdio::Unsent, tasks::Tasks,
    updates::Updates,
};

/// Where a session gets what it needs.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) client: ConnectionTo<Client>,
    pub(super) agent: Arc<dyn BuiltInAgent>,
    pub(super) manager: Manager,
    pub(super) unsent: Unsent,
}

/// A session that a client has open.
pub(super) struct Session {
    pub(super) id: SessionId,
    /// Without links.
    pub(super) folder: String,
    mode: Mutex<SessionMode>,
    /// Whether it is in the journal. One that nothing was said in need not be kept.
    pub(super) begun: AtomicBool,
    pub(super) client: ConnectionTo<Client>,
    pub(super) agent: Arc<dyn BuiltInAgent>,
    pub(super) manager: Manager,
    pub(super) unsent: Unsent,
    pub(super) updates: Mutex<Updates>,
    pub(super) tasks: tokio::sync::Mutex<Tasks>,
    /// One prompt after the other.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How often it was cancelled.
    cancels: watch::Sender<u64>,
    closed: watch::Sender<bool>,
    /// Where it is asked that all that has happened be shown, while a turn runs.
    pub(super) flush: Mutex<Option<mpsc::UnboundedSender<oneshot::Sender<()>>>>,
}

/// Whether a prompt was cancelled after it came.
pub(super) struct Cancelled {
    session: watch::Receiver<u64>,
    request: RequestCancellation,
    is_cancelled: bool,
}

impl Cancelled {
    /// Returns when it is cancelled, or at once if it was.
    pub(super) async fn wait(&mut self) {
        if self.is_cancelled {
            return;
        }
        tokio::select! {
            // A session that is gone cancels nothing any more.
            changed = self.session.changed() => if changed.is_err() {
                self.request.cancelled().await;
            },
            () = self.request.cancelled() => {}
        }
        self.is_cancelled = true;
    }

    /// Whether it is cancelled by now.
    pub(super) async fn is_now(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.wait() => true,
            () = ready(()) => false,
        }
    }
}

impl Session {
    pub(super) fn new(around: &Around, place: Place, begun: bool) -> Arc<Self> {
        let Around {
            client,
            agent,
            manager,
            unsent,
        } = around.clone();
        let updates = Updates::new(&place.folder, &manager.settings().wording.prefix);
        Arc::new(Self {
            id: place.session,
            folder: place.folder,
            mode: Mutex::new(place.mode),
            begun: AtomicBool::new(begun),
            client,
            agent,
            manager,
            unsent,
            updates: Mutex::new(updates),
            tasks: tokio::sync::Mutex::default(),
            turn: Arc::default(),
            cancels: watch::Sender::new(0),
            closed: watch::Sender::new(false),
            flush: Mutex::default(),
        })
    }

    fn new_updates(&self) -> Updates {
        Updates::new(&self.folder, &self.manager.settings().wording.prefix)
    }

    /// Where it works, and how.
    pub(super) fn place(&self) -> Place {
        Place {
            session: self.id.clone(),
            folder: self.folder.clone(),
            mode: *lock(&self.mode),
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Asks for less or more from now on.
    pub(super) fn set_mode(&self, mode: SessionMode) {
        *lock(&self.mode) = mode;
        self.agent.mode_changed(&self.place());
    }

    /// Stops the turn that runs, its background tasks, and the prompts that wait for it.
    pub(super) fn cancel(self: &Arc<Self>) {
        self.cancels.send_modify(|count| *count += 1);
        // A turn stops its tasks itself, after what would launch more of them.
        if let Ok(turn) = self.turn.clone().try_lock_owned() {
            let session = self.clone();
            self.spawn(async move {
                session.cancel_tasks().await;
                drop(turn);
            });
        }
    }

    /// Whether a prompt that has just come is cancelled.
    pub(super) fn cancelled(&self, request: RequestCancellation) -> Cancelled {
        Cancelled {
            session: self.cancels.subscribe(),
            request,
            is_cancelled: false,
        }
    }

    /// It is not open any more.
    pub(super) fn close(self: &Arc<Self>) {
        self.cancel();
        self.closed.send_replace(true);
        let session = self.clone();
        self.spawn(async move { session.leave_tasks().await });
    }

    pub(super) fn has_closed(&self) -> bool {
        *self.closed.borrow()
    }

    pub(super) async fn is_closed(&self) {
        // The sender is here.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Does what a prompt asks for, after those that came before it.
    pub(super) fn prompt(
        self: Arc<Self>,
        text: String,
        mut cancelled: Cancelled,
    ) -> impl Future<Output = Result<PromptResponse, Error>> + Send + 'static {
        let mut turn = Box::pin(self.turn.clone().lock_owned());
        // Polled once, it has its place in the queue, whenever it is polled again.
        let at_once = (&mut turn).now_or_never();
        async move {
            let turn = tokio::select! {
                biased;
                () = cancelled.wait() => None,
                turn = async { match at_once { Some(turn) => turn, None => turn.await } } => Some(turn),
            };
            match turn {
                Some(_turn) => self.run_turn(text, &mut cancelled).await,
                None => Ok(PromptResponse::new(StopReason::Cancelled)),
            }
        }
    }

    /// Tells the client everything that has happened in it.
    pub(super) async fn replay(&self) -> Result<(), Error> {
        // A call that launched a task is told of before the end of that.
        let _tasks = self.tasks.lock().await;
        let entries = self.agent.entries(&self.folder, &self.id).await?;
        // A client that loads an open session again has forgotten what it was told.
        let is_idle = self.turn.try_lock().is_ok();
        let mut updates = self.new_updates();
        let mut told = replay(&entries, &mut updates);
        // Else its open calls are at work, and the turn goes on telling of them.
        if is_idle {
            told.extend(updates.close_calls());
            *lock(&self.updates) = updates;
        } else {
            lock(&self.updates).take_launched(updates.launched);
        }
        for update in told {
            self.unsent.room().await;
            self.send(update);
        }
        Ok(())
    }

    /// Returns when all that has happened is shown.
    pub(super) async fn all_shown(&self) {
        let (done, shown) = oneshot::channel();
        let sent = lock(&self.flush).as_ref().map(|flush| flush.send(done));
        if matches!(sent, Some(Ok(()))) {
            // If the turn is over, everything is shown.
            let _ = shown.await;
        }
    }

    /// Shows a call that a person is about to be asked about.
    pub(super) fn show_asked(&self, question: &CallQuestion) -> ToolCall {
        let mut updates = lock(&self.updates);
        let call = updates.asked(
            &question.call,
            &question.tool,
            &question.target,
            &question.preview,
        );
        self.send(SessionUpdate::ToolCall(call.clone()));
        call
    }

    pub(super) fn send_all(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        updates.into_iter().for_each(|update| self.send(update));
    }

    pub(super) fn send(&self, update: SessionUpdate) {
        let told = SessionNotification::new(self.id.as_str().to_owned(), update);
        // First: it may be written at once.
        self.unsent.add();
        // A client that has gone needs no updates.
        if self.client.send_notification(told).is_err() {
            self.unsent.less();
        }
    }

    /// Does something beside, as long as the client is there.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let spawned = self.client.spawn(async move {
            work.await;
            Ok(())
        });
        if spawned.is_err() {
            tracing::debug!("the client has gone");
        }
    }
}
