//! Whether a call may be run: what the agent, the rules and a person say.

use std::sync::{Arc, atomic::Ordering};

use asyncagents_core::{
    agent::{Call, CallInfo, Conversation, Kind, Mode, Profile, Reach, Verdict},
    id::TaskId,
    port::{Session, SessionEvent},
    progress::Observation,
    question::Reply,
    tool_set,
};
use asyncagents_tools::Reaching;
use tokio::time::{self, Instant};

use crate::{
    Approver, Question, Unanswered, approve,
    drivers::{DriverHandle, Halt},
    grants::{Grant, Scope},
    questions::{self, OpenQuestion},
    shared::Shared,
};

/// A call that was read once, and is judged, shown and run as it is.
pub(crate) enum Prepared {
    /// Of a tool in the session's toolbox.
    Own(asyncagents_tools::Prepared),
    /// Of a tool for background tasks or skills.
    Delegated(tool_set::Prepared),
}

impl Prepared {
    pub(crate) fn info(&self) -> &CallInfo {
        match self {
            Prepared::Own(prepared) => prepared.info(),
            Prepared::Delegated(prepared) => &prepared.info,
        }
    }

    /// Whether the call changes nothing: it may run beside others, and again after a crash.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Prepared::Own(prepared) => matches!(prepared.info().kind, Kind::Read | Kind::Note),
            Prepared::Delegated(prepared) => prepared.request.only_looks(),
        }
    }
}

/// A call that may be run. Only [`Judge::permit`] makes one, of the very call that was judged.
pub(crate) struct Permitted {
    prepared: Prepared,
    by_person: bool,
    reaching: Reaching,
}

impl Permitted {
    pub(crate) fn info(&self) -> &CallInfo {
        self.prepared.info()
    }

    /// Whether a person was asked about this very call.
    pub(crate) fn by_person(&self) -> bool {
        self.by_person
    }

    pub(crate) fn is_delegation(&self) -> bool {
        matches!(self.prepared, Prepared::Delegated(_))
    }

    /// The call, and what it may do with files that it comes upon.
    pub(crate) fn into_parts(self) -> (Prepared, Reaching) {
        (self.prepared, self.reaching)
    }
}

/// Why a call is not run.
pub(crate) enum NotPermitted {
    /// For the model.
    Refused(String),
    /// Nobody has answered this in the time for the task.
    Unanswered(String),
    /// The driver is to stop. Whoever drives the session next asks again.
    Halted,
}

impl From<String> for NotPermitted {
    fn from(why: String) -> Self {
        NotPermitted::Refused(why)
    }
}

/// The answer to a question.
struct Answer {
    says: Reply,
    from: Origin,
}

/// Where an answer came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The person who is here, and has seen all of the call.
    Here,
    Elsewhere,
}

/// Judges the calls of one session.
pub(crate) struct Judge<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) session: &'a Session,
    pub(crate) conversation: &'a Conversation,
    pub(crate) handle: &'a DriverHandle,
    /// The outermost task above the session, if it is for one.
    pub(crate) tree: Option<&'a TaskId>,
    /// The agent that calls.
    pub(crate) acting: Profile,
    /// Until when an answer can be waited for.
    pub(crate) deadline: Option<Instant>,
}

impl Judge<'_> {
    /// Whether a person may be asked about a call, which takes time.
    pub(crate) fn asks(&self, call: &Call, info: &CallInfo) -> bool {
        let permissions = self.shared.permissions(&self.session.id);
        let verdict = permissions.judge(&call.name, info.kind, &info.target);
        matches!(verdict, Verdict::Ask { .. })
    }

    /// Permits a call.
    pub(crate) async fn permit(
        &self,
        call: &Call,
        prepared: Prepared,
    ) -> Result<Permitted, NotPermitted> {
        let tool = call.name.as_str();
        let info = prepared.info();
        let CallInfo { kind, target, .. } = info;
        if !self.acting.tools.allows(tool, *kind, target) {
            return Err(self.not_allowed(tool, info).into());
        }
        let permissions = self.shared.permissions(&self.session.id);
        let by_person = match permissions.judge(tool, *kind, target) {
            Verdict::Allow => false,
            Verdict::Deny(why) => return Err(format!("not permitted: {why}").into()),
            Verdict::Ask { by_rule } => {
                let is_scope_of_tool = *kind != Kind::Run && !by_rule;
                let grant = if is_scope_of_tool {
                    Grant::Tool(tool.to_owned())
                } else {
                    Grant::of_use(self.session, tool, target)
                };
                !self.shared.grants.has(&grant, self.tree)
                    && self.ask(call, info, grant).await? == Origin::Here
            }
        };
        Ok(Permitted {
            by_person,
            reaching: self.reaching(tool, target),
            prepared,
        })
    }

    /// Why the agent may not do this, whatever the rules say.
    fn not_allowed(&self, tool: &str, info: &CallInfo) -> String {
        let tools = &self.acting.tools;
        let uses = tools.uses(tool);
        let uses = uses.map_or_else(String::new, |uses| format!(" ({uses})"));
        let mut outer = tools.within.iter();
        match &self.session.terms {
            _ if !outer.all(|outer| outer.allows(tool, info.kind, &info.target)) => {
                format!("{tool} may not be used for this: a skill above does not allow it{uses}")
            }
            Some(terms) => format!(
                "the skill {} may not use {tool} for this: its tools do not allow it{uses}",
                terms.skill
            ),
            None => format!(
                "the agent {} may not use {tool} for this: its profile does not allow it",
                self.acting.name
            ),
        }
    }

    /// Asks whether a call may be run, whoever can answer, and returns where the yes came from.
    async fn ask(
        &self,
        call: &Call,
        info: &CallInfo,
        grant: Grant,
    ) -> Result<Origin, NotPermitted> {
        let approver = self.shared.approver.as_deref();
        let waits = self.shared.settings.unanswered == Unanswered::Wait;
        // Only what a task asks can be answered from elsewhere.
        if approver.is_none() && !(waits && self.session.task.is_some()) {
            return Err(self.nobody_to_ask(&call.name, info).into());
        }
        let name = questions::name_of(&self.session.id, self.conversation, call);
        let always = grant.covers("this tree of tasks");
        let asked = questions::question_about(&call.name, info, &always);
        let all = &self.shared.questions;
        let Some(mut open) = all.open(&self.session.id, name, asked.clone()) else {
            let why = "not permitted: the same call is being asked for; call it again later";
            return Err(why.to_owned().into());
        };
        self.handle.has_acted.store(true, Ordering::SeqCst);
        self.report(open.name(), |id| Observation::Asked {
            id,
            question: asked,
        });
        let question = self.question(call, info, &grant);
        let reply = self.first_reply(&mut open, approver, &question).await?;
        let reply = reply.ok_or_else(|| {
            let asked = questions::text_about(&call.name, info, None);
            NotPermitted::Unanswered(asked)
        })?;
        self.report(open.name(), |id| Observation::Answered { id });
        if let (Origin::Elsewhere, Some(approver)) = (reply.from, approver) {
            approver.answered_elsewhere(&question);
        }
        match reply.says {
            Reply::Once => Ok(reply.from),
            Reply::Always => {
                self.shared.grants.add(grant, self.scope(reply.from));
                Ok(reply.from)
            }
            Reply::Reject { text } => {
                let why = text.unwrap_or_else(|| "the user says no".to_owned());
                Err(format!("not permitted: {why}").into())
            }
            Reply::Values(_) => Err("not permitted: that was no clear answer".to_owned().into()),
        }
    }

    /// Waits for the first answer, from here or elsewhere. Nothing if there is none in time.
    async fn first_reply(
        &self,
        open: &mut OpenQuestion<'_>,
        approver: Option<&dyn Approver>,
        question: &Question,
    ) -> Result<Option<Answer>, NotPermitted> {
        let here = tokio::select! {
            biased;
            halt = self.handle.halted(Halt::Soon) => {
                // What was taken from elsewhere is not asked for again after a restart.
                let taken = open.taken().filter(|_| halt == Halt::Soon);
                let taken = taken.map(|says| Answer { says, from: Origin::Elsewhere });
                return taken.map(Some).ok_or(NotPermitted::Halted);
            }
            says = open.answered() => return Ok(Some(Answer { says, from: Origin::Elsewhere })),
            says = ask_approver(approver, question) => Some(Answer { says, from: Origin::Here }),
            () = until(self.deadline) => None,
        };
        // What was taken from elsewhere before is not taken back.
        let elsewhere = open.withdraw().map(|says| Answer {
            says,
            from: Origin::Elsewhere,
        });
        Ok(elsewhere.or(here))
    }

    /// Where an `always` counts.
    fn scope(&self, from: Origin) -> Scope {
        match (from, self.tree) {
            (Origin::Elsewhere, Some(task)) => Scope::Tree(task.clone()),
            (Origin::Here, _) | (Origin::Elsewhere, None) => Scope::Process,
        }
    }

    fn report(&self, question: &str, what: impl FnOnce(String) -> Observation) {
        let event = SessionEvent::Observed {
            key: self.shared.questions.report_key(question),
            what: what(question.to_owned()),
        };
        self.shared.report(&self.session.id, event);
    }

    fn nobody_to_ask(&self, tool: &str, info: &CallInfo) -> String {
        let permissions = self.shared.permissions(&self.session.id);
        let modes = permissions.freeing_modes(tool, info.kind, &info.target);
        format!(
            "not permitted: {tool} has to be allowed by a person, and nobody can be asked \
             here. Go on without it, or tell the user to allow it: {}",
            how_to_allow(tool, &modes)
        )
    }

    /// What the person who is here is asked.
    fn question(&self, call: &Call, info: &CallInfo, grant: &Grant) -> Question {
        Question {
            session: self.session.id.clone(),
            title: self.session.title.clone(),
            background: self.session.task.is_some(),
            agent: self.acting.name.clone(),
            call: call.id.clone(),
            tool: call.name.clone(),
            target: info.target.clone(),
            preview: info.preview.clone(),
            always: grant.covers("this run"),
        }
    }

    /// What a search may do with the files in the folder that it was permitted for.
    fn reaching(&self, tool: &str, searched: &str) -> Reaching {
        let shared = self.shared.clone();
        let tools = self.acting.tools.clone();
        // A call that names a file reads its folder.
        let tool = match tool {
            search @ ("grep" | "glob") => search.to_owned(),
            _ => "read".to_owned(),
        };
        let (searched, session) = (searched.to_owned(), self.session.clone());
        let tree = self.tree.cloned();
        Arc::new(move |file| {
            if tools.hides(&tool, file) {
                return Reach::Hide;
            }
            // A person may have said that this file may always be read, in whatever way.
            let granted = |tool| {
                let grant = Grant::of_use(&session, tool, file);
                shared.grants.has(&grant, tree.as_ref())
            };
            match shared
                .permissions(&session.id)
                .reach(&tool, &searched, file)
            {
                Reach::Ask if granted(&tool) || granted("read") => Reach::Show,
                reach => reach,
            }
        })
    }
}

/// Waits for the answer of the person who is here, if there is one.
async fn ask_approver(approver: Option<&dyn Approver>, question: &Question) -> Reply {
    let Some(approver) = approver else {
        return std::future::pending().await;
    };
    match approver.ask(question.clone()).await {
        approve::Reply::Yes => Reply::Once,
        approve::Reply::Always => Reply::Always,
        approve::Reply::No(why) => Reply::Reject { text: Some(why) },
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// What a user can change so that the call is not asked about.
fn how_to_allow(tool: &str, modes: &[Mode]) -> String {
    if modes.is_empty() {
        // Such a rule holds in every mode, and over one that allows.
        return "a rule in `permissions.ask` wants it to be asked for every time".to_owned();
    }
    let modes: Vec<String> = modes.iter().map(|mode| format!("`{mode}`")).collect();
    format!(
        "permission mode {}, or a rule such as `permissions.allow = [\"{tool}\"]`",
        modes.join(" or ")
    )
}
