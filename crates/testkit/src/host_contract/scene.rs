//! What every story begins with: a host whose reports are collected, and a parent.

use std::sync::Arc;

use asyncagents_core::{
    id::{PostId, SessionId, TaskId},
    lifecycle::Standing,
    notify::Message,
    port::{Delivery, Host, Inheritance, Inspection, NewSession, Notice, Report, SessionEvent},
    progress::Observation,
    task::Outcome,
    transcript::{Part, Role, Transcript},
};
use tokio::{sync::watch, task::AbortHandle, time};

use crate::plain::{self, prompt};

use super::{
    Site,
    script::{HANG, NOTICE},
};

/// A host whose reports are read all the time, as the runtime does.
pub(super) struct Scene {
    pub(super) site: Arc<dyn Site>,
    pub(super) host: Arc<dyn Host>,
    pub(super) parent: SessionId,
    reports: watch::Sender<Vec<Report>>,
    listener: AbortHandle,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Scene {
    pub(super) async fn begin(site: Arc<dyn Site>) -> Self {
        let host = site.host();
        let (reports, listener) = listen(&*host);
        let parent = site.parent().await;
        Self {
            site,
            host,
            parent,
            reports,
            listener,
        }
    }

    /// Another process of ours, to which nothing was reported yet.
    pub(super) async fn restart(&mut self) {
        self.listener.abort();
        self.site.restart().await;
        self.host = self.site.host();
        (self.reports, self.listener) = listen(&*self.host);
    }

    /// The session of a task.
    pub(super) async fn child(&self, task: &TaskId) -> SessionId {
        let made = self.host.create(self.new_session(task)).await;
        made.expect("a session")
    }

    pub(super) fn new_session(&self, task: &TaskId) -> NewSession {
        NewSession {
            may_delegate: false,
            ..plain::new_session(task, &self.parent)
        }
    }

    /// Sends a prompt of a run.
    pub(super) async fn prompt(
        &self,
        session: &SessionId,
        (task, run): (&TaskId, u32),
        text: &str,
    ) -> PostId {
        let prompt = prompt(task.prompt(run), text);
        self.host
            .prompt(session, prompt)
            .await
            .expect("it is taken");
        task.prompt(run)
    }

    /// A new child that was set to work.
    pub(super) async fn at_work(&self, number: u128, text: &str) -> (SessionId, PostId) {
        let task = task(number);
        let session = self.child(&task).await;
        let prompt = self.prompt(&session, (&task, 0), text).await;
        (session, prompt)
    }

    /// A new child that has called its tool and never ends.
    pub(super) async fn hanging(&self, number: u128) -> (SessionId, PostId) {
        let (session, prompt) = self.at_work(number, HANG).await;
        self.until_reported(|report| called_a_tool(report, &session))
            .await;
        (session, prompt)
    }

    /// A new child that has answered.
    pub(super) async fn answered(&self, number: u128, text: &str) -> (SessionId, PostId) {
        let (session, prompt) = self.at_work(number, text).await;
        let end = self.ended(&session, &prompt).await;
        assert_eq!(outcome(&end), Outcome::Completed);
        (session, prompt)
    }

    pub(super) async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Inspection {
        let seen = self.host.inspect(session, prompt).await;
        seen.expect("it is known")
    }

    pub(super) async fn standing(&self, session: &SessionId, prompt: &PostId) -> Standing {
        self.inspect(session, prompt).await.standing
    }

    /// Waits for the end of a run as the runtime does: the host is asked only after a report that
    /// says so.
    pub(super) async fn ended(&self, session: &SessionId, prompt: &PostId) -> Inspection {
        loop {
            let before = self.reports.borrow().len();
            let seen = self.inspect(session, prompt).await;
            match seen.standing {
                Standing::Working => {}
                Standing::Unprompted => panic!("a prompt that was taken is in the history"),
                Standing::Gone
                | Standing::Done { .. }
                | Standing::ModelUnavailable(_)
                | Standing::Interrupted => return seen,
            }
            let mut reports = self.reports.subscribe();
            let news = |all: &Vec<Report>| all[before..].iter().any(|one| is_idle(one, session));
            reports.wait_for(news).await.expect("the host lives");
        }
    }

    /// Waits for a report.
    pub(super) async fn until_reported(&self, fits: impl Fn(&Report) -> bool) {
        let mut reports = self.reports.subscribe();
        let reported = reports.wait_for(|all| all.iter().any(&fits));
        reported.await.expect("the host lives");
    }

    /// What was reported until now.
    pub(super) fn reports(&self) -> Vec<Report> {
        self.reports.borrow().clone()
    }

    /// What was observed in a session until now, with the keys.
    pub(super) fn observed(&self, session: &SessionId) -> Vec<(String, Observation)> {
        let of_session = |report| match report {
            Report::Session(of, SessionEvent::Observed { key, what }) if of == *session => {
                Some((key, what))
            }
            _ => None,
        };
        self.reports().into_iter().filter_map(of_session).collect()
    }

    pub(super) async fn messages(&self, session: &SessionId) -> Transcript<'static> {
        let messages = self.host.messages(session).await;
        messages.expect("a conversation")
    }

    /// Delivers a notice and sees that it is in the history.
    pub(super) async fn tell(&self, session: &SessionId, task: &TaskId) {
        let delivered = self.host.deliver(session, notice(task)).await;
        assert_eq!(delivered, Ok(Delivery::Taken));
        self.until_confirmed(session, task).await;
    }

    /// A notice may take a moment to show.
    pub(super) async fn until_confirmed(&self, session: &SessionId, task: &TaskId) {
        while self.host.confirm(session, &task.notice(0)).await != Ok(true) {
            time::sleep(time::Duration::from_millis(10)).await;
        }
    }
}

/// Collects what a host reports.
fn listen(host: &dyn Host) -> (watch::Sender<Vec<Report>>, AbortHandle) {
    let mut events = host.subscribe();
    let reports = watch::Sender::new(Vec::new());
    let all = reports.clone();
    let listener = tokio::spawn(async move {
        while let Some(report) = events.next().await {
            all.send_modify(|all| all.push(report));
        }
    });
    (reports, listener.abort_handle())
}

pub(super) fn task(number: u128) -> TaskId {
    TaskId::from_random(number)
}

pub(super) fn inheritance(task: &TaskId) -> Inheritance {
    Inheritance {
        id: task.inheritance(),
        preamble: "You know what your parent knew.".to_owned(),
        context: "The parent likes tea.".to_owned(),
    }
}

/// That a task has ended.
pub(super) fn notice(task: &TaskId) -> Notice {
    Notice {
        id: task.notice(0),
        message: Message {
            visible: format!("{NOTICE}: {task}."),
            hidden: format!("Ask for the result of {task}."),
        },
    }
}

/// Whether the runtime would ask the host about a session after this report.
pub(super) fn is_idle(report: &Report, session: &SessionId) -> bool {
    match report {
        Report::Session(of, SessionEvent::Idle | SessionEvent::Deleted) => of == session,
        Report::Session(..) => false,
        Report::Missed => true,
    }
}

pub(super) fn called_a_tool(report: &Report, session: &SessionId) -> bool {
    let Report::Session(of, SessionEvent::Observed { what, .. }) = report else {
        return false;
    };
    of == session && matches!(what, Observation::ToolCalled { .. })
}

pub(super) fn outcome(seen: &Inspection) -> Outcome {
    match &seen.standing {
        Standing::Done { outcome, .. } => outcome.clone(),
        // A host may know that this was because of the model.
        Standing::ModelUnavailable(unavailable) if !unavailable.retrying => Outcome::Failed {
            why: unavailable.why.clone(),
        },
        other => panic!("the run has not ended: {other:?}"),
    }
}

pub(super) fn answer(seen: &Inspection) -> &str {
    match &seen.standing {
        Standing::Done {
            outcome: Outcome::Completed,
            answer: Some(answer),
        } => answer,
        other => panic!("the run has no answer: {other:?}"),
    }
}

/// What was said by one side, one text for each message that has any.
pub(super) fn texts(messages: &Transcript<'_>, role: Role) -> Vec<String> {
    let of_role = messages.messages().iter().filter(|one| one.role == role);
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.as_str().to_owned()),
        _ => None,
    };
    let texts = of_role.map(|one| one.parts.iter().filter_map(text).collect::<String>());
    texts.filter(|text| !text.is_empty()).collect()
}

/// How often words are in a text.
pub(super) fn times(text: &str, words: &str) -> usize {
    text.matches(words).count()
}
