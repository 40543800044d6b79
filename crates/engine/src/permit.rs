//! Whether a call may be run: what the agent, the rules and a person say.

use std::sync::Arc;

use asyncagents_core::{
    agent::{CallInfo, Kind, Mode, Profile, Reach, Verdict},
    port::Session,
    tool_set,
};
use asyncagents_tools::Reaching;

use crate::{Question, Reply, grants::Grant, shared::Shared};

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

/// Judges the calls of one session.
pub(crate) struct Judge<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) session: &'a Session,
    /// The agent that calls.
    pub(crate) acting: Profile,
}

impl Judge<'_> {
    /// Permits a call to this tool. The error is for the model.
    pub(crate) async fn permit(&self, tool: &str, prepared: Prepared) -> Result<Permitted, String> {
        let info = prepared.info();
        let CallInfo { kind, target, .. } = info;
        if !self.acting.tools.allows(tool, *kind, target) {
            return Err(self.not_allowed(tool, info));
        }
        let by_person = match self.shared.settings.permissions.judge(tool, *kind, target) {
            Verdict::Allow => false,
            Verdict::Deny(why) => return Err(format!("not permitted: {why}")),
            Verdict::Ask { by_rule } => {
                let is_scope_of_tool = *kind != Kind::Run && !by_rule;
                let grant = if is_scope_of_tool {
                    Grant::Tool(tool.to_owned())
                } else {
                    Grant::of_use(self.session, tool, target)
                };
                let granted = self.shared.grants.has(&grant);
                if !granted {
                    self.ask_person(tool, info, grant).await?;
                }
                !granted
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

    async fn ask_person(&self, tool: &str, info: &CallInfo, grant: Grant) -> Result<(), String> {
        let Some(approver) = &self.shared.approver else {
            let permissions = &self.shared.settings.permissions;
            let modes = permissions.freeing_modes(tool, info.kind, &info.target);
            return Err(format!(
                "not permitted: {tool} has to be allowed by a person, and nobody can be asked \
                 here. Go on without it, or tell the user to allow it: {}",
                how_to_allow(tool, &modes)
            ));
        };
        let question = Question {
            session: self.session.id.clone(),
            title: self.session.title.clone(),
            background: self.session.task.is_some(),
            agent: self.acting.name.clone(),
            tool: tool.to_owned(),
            target: info.target.clone(),
            preview: info.preview.clone(),
            always: match grant {
                Grant::Tool(_) => format!("every {tool} in this run"),
                Grant::Use { .. } => "exactly this".to_owned(),
            },
        };
        match approver.ask(question).await {
            Reply::Yes => Ok(()),
            Reply::Always => {
                self.shared.grants.add(grant);
                Ok(())
            }
            Reply::No(why) => Err(format!("not permitted: {why}")),
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
        Arc::new(move |file| {
            if tools.hides(&tool, file) {
                return Reach::Hide;
            }
            // A person may have said that this file may always be read, in whatever way.
            let granted = |tool| shared.grants.has(&Grant::of_use(&session, tool, file));
            match shared.settings.permissions.reach(&tool, &searched, file) {
                Reach::Ask if granted(&tool) || granted("read") => Reach::Show,
                reach => reach,
            }
        })
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
