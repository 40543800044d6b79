//! Runs the tools that a model has called: whether it may, one by one or together, and what
//! is saved when.

use std::sync::Arc;

use asyncagents_core::{
    agent::{Call, Entry, Kind, Mode, Reach, ToolOutcome, Verdict},
    skill::{ErrorCode, name_key},
    tool_set::{self, ToolRequest},
};
use asyncagents_tools::Reaching;
use futures_util::future::join_all;
use tokio::time;

use crate::{
    Details, Live, PrintedLines, Question, Reply,
    drive::{Driver, Over},
    engine::{Halt, lock},
};

/// What is kept of an answer about background tasks.
const MOST_CHARS: usize = 60_000;

/// What the model is told of a call that it could not finish.
const CUT: &str = "Your answer was cut at its greatest length, before the parameters of this call \
    were complete. Nothing was done. Do it in smaller pieces.";

/// A call that makes sense.
struct Prepared {
    kind: Kind,
    /// What it touches or runs.
    target: String,
    /// It changes nothing: it may run beside others, and again after a crash.
    looks: bool,
}

impl Driver {
    /// Runs the first of these calls; what is left is looked at again afterwards, for by then
    /// the run may have been ended. Calls that only look and stand together run together;
    /// whatever changes something runs alone.
    pub(crate) async fn run_tools(&mut self, calls: Vec<Call>) -> Result<(), Over> {
        let mut looking: Vec<(Call, Prepared)> = Vec::new();
        for call in calls {
            match self.prepare(&call) {
                Ok(prepared) if prepared.looks => looking.push((call, prepared)),
                Ok(_) | Err(_) if !looking.is_empty() => break,
                Ok(prepared) => return self.change(call, prepared).await,
                Err(why) => return self.refuse(call, why).await,
            }
        }
        self.look(looking).await
    }

    /// What a call means, or what is wrong with it.
    fn prepare(&self, call: &Call) -> Result<Prepared, String> {
        let failures = self.failures(call);
        if let Some(terms) = &self.session.terms
            && terms.is_used_up(failures)
        {
            return Err(format!(
                "this call has failed {failures} times and was not run again: go another way"
            ));
        }
        if !self.tools.iter().any(|spec| spec.name == call.name) {
            let names: Vec<&str> = self.tools.iter().map(|spec| spec.name.as_str()).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            let name = &call.name;
            return Err(format!("there is no tool `{name}` here; there are {names}"));
        }
        if self.is_delegation(&call.name) {
            return Ok(Prepared {
                kind: Kind::Note,
                target: self.about(call),
                looks: tool_set::only_looks(&self.engine.settings.prefix, &call.name),
            });
        }
        if self.was_cut() && serde_json::from_str::<serde_json::Value>(&call.input).is_err() {
            return Err(CUT.to_owned());
        }
        let need = self.engine.toolbox.needs(&call.name, &call.input)?;
        let kind = match need.kind {
            asyncagents_tools::Kind::Read => Kind::Read,
            asyncagents_tools::Kind::Edit => Kind::Edit,
            asyncagents_tools::Kind::Run => Kind::Run,
            asyncagents_tools::Kind::Note => Kind::Note,
        };
        Ok(Prepared {
            kind,
            target: need.target,
            looks: matches!(kind, Kind::Read | Kind::Note),
        })
    }

    /// What a call about tasks or skills is about, for rules and for people.
    fn about(&self, call: &Call) -> String {
        match tool_set::parse(&self.engine.settings.prefix, &call.name, &call.input) {
            Ok(ToolRequest::Skill(skill)) => name_key(&skill.name),
            Ok(_) | Err(_) => about_task(&call.input),
        }
    }

    fn is_delegation(&self, tool: &str) -> bool {
        self.delegation.iter().any(|name| name == tool)
    }

    async fn look(&mut self, calls: Vec<(Call, Prepared)>) -> Result<(), Over> {
        if calls.is_empty() {
            return Ok(());
        }
        let results = join_all(calls.iter().map(|(call, prepared)| async {
            let begun = time::Instant::now();
            match self.permitted(call, prepared).await {
                Ok(by) => {
                    let until = self.until.map(|until| until + begun.elapsed());
                    self.advised(call, self.call(call, prepared, by, until).await)
                }
                Err(why) => {
                    self.show_refusal(call, &why);
                    ToolOutcome::Failed(why)
                }
            }
        }));
        let outcomes = self.unless_halted(results).await?;
        let ended = |((call, _), outcome): ((Call, Prepared), ToolOutcome)| Entry::ToolEnded {
            call: call.id,
            outcome,
        };
        let entries = calls.into_iter().zip(outcomes).map(ended).collect();
        self.save(entries).await
    }

    async fn change(&mut self, call: Call, prepared: Prepared) -> Result<(), Over> {
        let begun = time::Instant::now();
        let permitted = self.unless_halted(self.permitted(&call, &prepared)).await?;
        // A person who thinks does not take the iteration's time.
        self.until = self.until.map(|until| until + begun.elapsed());
        let by = match permitted {
            Ok(by) => by,
            Err(why) => return self.refuse(call, why).await,
        };
        // From here on it may have happened.
        self.save(vec![Entry::ToolBegan {
            call: call.id.clone(),
        }])
        .await?;
        let begun = time::Instant::now();
        let called = self.call(&call, &prepared, by, self.until);
        let outcome = self.unless_halted(called).await?;
        if self.is_delegation(&call.name) {
            // Nor does a sub-agent that is waited for.
            self.until = self.until.map(|until| until + begun.elapsed());
        }
        let outcome = self.advised(&call, outcome);
        self.end(call, outcome).await
    }

    /// What is not done is told to the model, and to the one who watches.
    async fn refuse(&mut self, call: Call, why: String) -> Result<(), Over> {
        self.show_refusal(&call, &why);
        self.end(call, ToolOutcome::Failed(why)).await
    }

    fn show_refusal(&self, call: &Call, why: &str) {
        self.show(Live::ToolEnded {
            call: call.id.clone(),
            name: call.name.clone(),
            error: Some(why.lines().next().unwrap_or_default().to_owned()),
            result: Some(why.to_owned()),
        });
    }

    async fn end(&mut self, call: Call, outcome: ToolOutcome) -> Result<(), Over> {
        self.save(vec![Entry::ToolEnded {
            call: call.id,
            outcome,
        }])
        .await
    }

    /// Where a skill runs, a failure says how often the same call may be tried again.
    fn advised(&self, call: &Call, outcome: ToolOutcome) -> ToolOutcome {
        match (outcome, &self.session.terms) {
            // What no try can change is not tried again.
            (ToolOutcome::Failed(why), Some(_))
                if self.is_delegation(&call.name)
                    && ErrorCode::of_answer(&why).is_some_and(ErrorCode::is_final) =>
            {
                ToolOutcome::Failed(why)
            }
            (ToolOutcome::Failed(why), Some(terms)) => {
                let advice = terms.advice(self.failures(call) + 1);
                ToolOutcome::Failed(format!("{why}\n{advice}"))
            }
            (outcome, _) => outcome,
        }
    }

    /// Whether the agent may do this. Err is what the model is told.
    async fn permitted(&self, call: &Call, prepared: &Prepared) -> Result<By, String> {
        let Prepared { kind, target, .. } = prepared;
        let tool = call.name.as_str();
        let acting = self.acting();
        if !acting.tools.allows(tool, *kind, target) {
            let uses = acting.tools.uses(tool);
            let uses = uses.map_or_else(String::new, |uses| format!(" ({uses})"));
            let outer = &acting.tools.within;
            return Err(match &self.session.terms {
                _ if !outer.iter().all(|outer| outer.allows(tool, *kind, target)) => {
                    format!(
                        "{tool} may not be used for this: a skill above does not allow it{uses}"
                    )
                }
                Some(terms) => format!(
                    "the skill {} may not use {tool} for this: its tools do not allow it{uses}",
                    terms.skill
                ),
                None => format!(
                    "the agent {} may not use {tool} for this: its profile does not allow it",
                    acting.name
                ),
            });
        }
        match self.engine.settings.permissions.judge(tool, *kind, target) {
            Verdict::Allow => Ok(By::Rules),
            Verdict::Deny(why) => Err(format!("not permitted: {why}")),
            Verdict::Ask { by_rule } => {
                let scope = Scope::new(*kind, by_rule);
                let granted = scope.grant(tool, target);
                if lock(&self.engine.always).contains(&granted) {
                    return Ok(By::Rules);
                }
                self.ask_person(call, prepared, scope).await?;
                Ok(By::Person)
            }
        }
    }

    async fn ask_person(
        &self,
        call: &Call,
        prepared: &Prepared,
        scope: Scope,
    ) -> Result<(), String> {
        let tool = call.name.as_str();
        let target = prepared.target.as_str();
        let Some(approver) = &self.engine.approver else {
            let permissions = &self.engine.settings.permissions;
            let modes = permissions.freeing_modes(tool, prepared.kind, target);
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
            agent: self.acting().name,
            tool: tool.to_owned(),
            target: target.to_owned(),
            details: details(call, target),
            always: match scope {
                Scope::Tool => format!("every {tool} in this run"),
                Scope::Target => "exactly this".to_owned(),
            },
        };
        match approver.ask(question).await {
            Reply::Yes => Ok(()),
            Reply::Always => {
                lock(&self.engine.always).insert(scope.grant(tool, target));
                Ok(())
            }
            Reply::No(why) => Err(format!("not permitted: {why}")),
        }
    }

    async fn call(
        &self,
        call: &Call,
        prepared: &Prepared,
        by: By,
        until: Option<time::Instant>,
    ) -> ToolOutcome {
        let name = call.name.clone();
        self.show(Live::Tool {
            call: call.id.clone(),
            name: name.clone(),
            target: pattern(call).unwrap_or_else(|| prepared.target.clone()),
            input: call.input.clone(),
            approved: by == By::Person,
        });
        let work = self.work(call, prepared);
        // A sub-agent that is waited for would go on, and be paid for, without its caller.
        let until = until.filter(|_| !self.is_delegation(&name));
        let iteration = until.map(|until| (until, "stopped: the iteration's time is up"));
        let all = self.work_until();
        let all = all.map(|until| (until, "stopped: the time for the task is up"));
        let first = [iteration, all].into_iter().flatten();
        let outcome = match first.min_by_key(|(until, _)| *until) {
            Some((until, why)) => {
                let worked = time::timeout_at(until, work).await;
                worked.unwrap_or_else(|_| ToolOutcome::Failed(why.to_owned()))
            }
            None => work.await,
        };
        let error = outcome.is_error().then(|| last_line(outcome.text()));
        self.show(Live::ToolEnded {
            call: call.id.clone(),
            name,
            error,
            result: Some(outcome.text().to_owned()),
        });
        outcome
    }

    async fn work(&self, call: &Call, prepared: &Prepared) -> ToolOutcome {
        let session = &self.session.id;
        if self.is_delegation(&call.name) {
            let delegation = &self.engine.delegation;
            return within(delegation.call(session, &call.name, &call.input).await);
        }
        let progress = |line: &str| self.show(Live::Lines(PrintedLines::one(line)));
        let toolbox = &self.engine.toolbox;
        let reaching = self.reaching(call, prepared);
        let (session, tool) = (session.as_str(), call.name.as_str());
        let called = toolbox.call_within(reaching, session, tool, &call.input, &progress);
        called.await
    }

    /// What a search may do with the files in the folder that it was permitted for.
    fn reaching(&self, call: &Call, prepared: &Prepared) -> Reaching {
        let engine = self.engine.clone();
        let tools = self.acting().tools;
        // Whatever names a file reads its folder.
        let tool = match call.name.as_str() {
            search @ ("grep" | "glob") => search.to_owned(),
            _ => "read".to_owned(),
        };
        let searched = prepared.target.clone();
        Arc::new(move |file| {
            if tools.hides(&tool, file) {
                return Reach::Hide;
            }
            match engine.settings.permissions.reach(&tool, &searched, file) {
                Reach::Ask if engine.is_always_read(&tool, file) => Reach::Show,
                reach => reach,
            }
        })
    }

    /// Waits for something, unless the driver is halted: at once, or after a while if it may
    /// finish first. What is dropped here is stopped.
    async fn unless_halted<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        let halted = async {
            if self.hand.halted(Halt::Soon).await == Halt::Soon {
                let now = self.hand.halted(Halt::Now);
                let _ = time::timeout(self.engine.settings.farewell, now).await;
            }
        };
        tokio::select! {
            done = work => Ok(done),
            () = halted => Err(Over::Halted),
        }
    }
}

/// By whom a call is permitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The mode, a rule, or what was said for good.
    Rules,
    /// Someone who was asked about this very call.
    Person,
}

/// What a user can change so that nobody has to be asked.
fn how_to_allow(tool: &str, modes: &[Mode]) -> String {
    let modes: Vec<String> = modes.iter().map(|mode| format!("`{mode}`")).collect();
    match modes.is_empty() {
        // Such a rule holds in every mode, and over one that allows.
        true => "a rule in `permissions.ask` wants it to be asked for every time".to_owned(),
        false => format!(
            "permission mode {}, or a rule such as `permissions.allow = [\"{tool}\"]`",
            modes.join(" or ")
        ),
    }
}

/// What `always` covers: a whole tool, or this use of it alone. Programs are allowed one by
/// one, and so is what a rule wants to be asked for every time.
#[derive(Clone, Copy)]
enum Scope {
    Tool,
    Target,
}

impl Scope {
    fn new(kind: Kind, by_rule: bool) -> Self {
        match kind {
            Kind::Run => Scope::Target,
            _ if by_rule => Scope::Target,
            Kind::Read | Kind::Edit | Kind::Note => Scope::Tool,
        }
    }

    fn grant(self, tool: &str, target: &str) -> (String, Option<String>) {
        let target = match self {
            Scope::Tool => None,
            Scope::Target => Some(target.to_owned()),
        };
        (tool.to_owned(), target)
    }
}

/// What a call about tasks is about, for people.
fn about_task(input: &str) -> String {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let said = |name: &str| input.get(name)?.as_str().filter(|text| !text.is_empty());
    match said("resume") {
        Some(task) => format!("resume {task}"),
        None => {
            let names = ["description", "task_id", "status"];
            names
                .into_iter()
                .find_map(said)
                .unwrap_or_default()
                .to_owned()
        }
    }
}

fn within(outcome: ToolOutcome) -> ToolOutcome {
    let cut = |text: String| match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => {
            let kept = text.get(..end).unwrap_or_default();
            format!("{kept}\n[cut at {MOST_CHARS} characters; ask for less, with message_limit]")
        }
        None => text,
    };
    match outcome {
        ToolOutcome::Done(text) => ToolOutcome::Done(cut(text)),
        ToolOutcome::Failed(text) => ToolOutcome::Failed(cut(text)),
        ToolOutcome::Unknown => ToolOutcome::Unknown,
    }
}

/// What a search looks for says more than where it looks.
fn pattern(call: &Call) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(&call.input).ok()?;
    let searches = matches!(call.name.as_str(), "glob" | "grep");
    let pattern = input.get("pattern")?.as_str()?;
    searches.then(|| pattern.to_owned())
}

/// Where a program says how it ended.
fn last_line(text: &str) -> String {
    let filled = |line: &&str| !line.trim().is_empty();
    let code = text
        .lines()
        .rev()
        .find(|line| line.starts_with("[exit code"));
    let last = code.or(text.lines().rev().find(filled));
    last.unwrap_or_default().to_owned()
}

/// What a call would do, for the one who is asked.
fn details(call: &Call, target: &str) -> Details {
    let input: serde_json::Value = serde_json::from_str(&call.input).unwrap_or_default();
    let text = |name: &str| {
        let text = input.get(name).and_then(serde_json::Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    match call.name.as_str() {
        // What was judged, and what will be run.
        "bash" => Details::Command(target.to_owned()),
        "write" => Details::Write {
            content: text("content"),
        },
        "edit" => Details::Edit {
            old: text("old"),
            new: text("new"),
            // The tool takes the word for it too.
            everywhere: input.get("replace_all").is_some_and(|flag| {
                let word = flag.as_str().unwrap_or_default();
                flag.as_bool() == Some(true) || word.eq_ignore_ascii_case("true")
            }),
        },
        _ => {
            let arguments = input.as_object().into_iter().flatten();
            let arguments = arguments.map(|(name, value)| match value.as_str() {
                Some(text) => (name.clone(), text.to_owned()),
                None => (name.clone(), value.to_string()),
            });
            Details::Arguments(arguments.filter(|(_, value)| value != target).collect())
        }
    }
}
