//! A task as a row, and back.

use std::collections::BTreeMap;

use asyncagents_core::{
    budget::{Budget, Cost, Spent},
    fallback::Fallback,
    host_ref::HostRef,
    id::{ModelName, TaskId},
    moment::Moment,
    progress::{Progress, Repeated},
    skill::Terms,
    task::{Brief, Context, Outcome, Place, Stage, State, Task},
};
use serde::{Deserialize, Serialize};

use crate::{
    host_setup::host_setup,
    launched::effort,
    question::OpenRecord,
    record::{As, FallbackRecord, unpriced_of},
    sql::{Columns, Damage, Row, Sql, Value, unknown},
    terms::TermsRecord,
};

/// The columns of what a task has spent, of what those below it have, and of what both had when
/// its newest run began.
const OWN: [&str; 4] = ["tokens", "cost", "turns", "calls"];
const BELOW: [&str; 4] = ["below_tokens", "below_cost", "below_turns", "below_calls"];
const BEFORE: [&str; 4] = [
    "before_tokens",
    "before_cost",
    "before_turns",
    "before_calls",
];

/// The tokens of a task without a known price, as [`unpriced_of`] has it.
pub(crate) fn unpriced<S: Sql>() -> String {
    unpriced_sql::<S>("unpriced", OWN)
}

/// The same of the tasks below it.
pub(crate) fn unpriced_below<S: Sql>() -> String {
    unpriced_sql::<S>("unpriced_below", BELOW)
}

fn unpriced_sql<S: Sql>(key: &str, [tokens, cost, ..]: [&str; 4]) -> String {
    let known = S::json_number("tools", key);
    format!("coalesce({known}, CASE WHEN {cost} = 0 THEN {tokens} ELSE 0 END)")
}

/// The model that a task is asked with: the one that took the place of its own, or that.
pub(crate) fn model_in_use<S: Sql>() -> String {
    format!("coalesce({}, model)", S::json_text("tools", "model"))
}

/// The columns of [`task`], in the order it reads them: a search begins behind the one found last.
pub(crate) const READ: &str = "id, tools, parent, above, root, depth, description, agent, model, \
    context, host, settings, seal, skill, max_tokens, max_cost, max_time, max_turns, max_calls, \
    launched_at, batch, run, session, state, since, stage, error, ended_at, ran, stopping, \
    last_activity, tokens, cost, turns, calls, below_tokens, below_cost, below_turns, below_calls, \
    before_tokens, before_cost, before_turns, before_calls, retrieved_at, cleared, owner, seq, chain";

/// What is kept of progress beside the sums.
#[derive(Serialize, Deserialize)]
struct Tools {
    by_tool: BTreeMap<String, u64>,
    recent: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    using: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    command_queued: bool,
    /// Why it is still queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    call: u64,
    times: u64,
    #[serde(default)]
    turns_before: u64,
    #[serde(default)]
    worker_deaths: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unattended_since: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    asking: BTreeMap<String, OpenRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced_below: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced_before: Option<u64>,
    /// Tokens, cost, tokens without a price and turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beside: Option<[u64; 4]>,
    /// Of the launch: there is no column for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    /// Of its place: there is no column for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    above_in: Option<String>,
    /// The model that took the place of the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<SavedFallback>,
    #[serde(default, skip_serializing_if = "is_zero")]
    reprompted: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    asked: u32,
}

#[derive(Serialize, Deserialize)]
struct SavedFallback(#[serde(with = "FallbackRecord")] Fallback);

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// All columns of a task, its key first.
pub(crate) fn columns(task: &Task) -> Columns<'_> {
    let Brief {
        description,
        agent,
        model,
        effort: _,
        context,
        host,
    } = &task.brief;
    let context = match context {
        Context::Fresh => "fresh",
        Context::Forked => "forked",
    };
    let (live, is_running) = (task.is_live(), matches!(task.state, State::Running { .. }));
    let mut columns = progress_columns(task);
    columns.extend(state_columns(&task.state));
    columns.extend(spent_columns(BEFORE, task.spent_before));
    columns.extend([
        ("parent", Value::from(&task.place.parent)),
        ("above", task.place.above.as_ref().into()),
        ("root", (&task.place.root).into()),
        ("depth", task.place.depth.into()),
        ("description", description.into()),
        ("agent", agent.into()),
        ("model", model.as_ref().into()),
        ("context", context.into()),
        ("host", host.host.to_string().into()),
        ("settings", (&*host.settings.json).into()),
        ("seal", (&*host.settings.seal).into()),
        ("max_tokens", task.budget.tokens.into()),
        ("max_cost", task.budget.cost.into()),
        ("max_time", task.budget.time.into()),
        ("max_turns", task.budget.turns.into()),
        ("max_calls", task.budget.tool_calls.into()),
        ("launched_at", task.launched_at.into()),
        ("batch", task.batch.into()),
        ("run", task.run.into()),
        ("session", task.session.as_ref().into()),
        ("stopping", task.stopping.into()),
        ("retrieved_at", task.retrieved_at.into()),
        ("cleared", task.cleared.into()),
        ("owner", task.owner.as_ref().into()),
        ("live", live.into()),
        ("taken", (is_running || task.stopping).into()),
        ("unfinished", (live || task.stopping).into()),
        ("skill", task.skill.as_ref().map(terms).into()),
        ("chain", task.chain.as_ref().into()),
    ]);
    columns
}

/// The key, and the columns that progress changes; none of those is in an index.
pub(crate) fn progress_columns(task: &Task) -> Columns<'_> {
    let mut columns = vec![
        ("id", Value::from(&task.id)),
        ("tools", tools(task).into()),
        ("last_activity", task.progress.last_activity.into()),
        ("seq", task.seq.into()),
    ];
    columns.extend(spent_columns(OWN, task.progress.spent));
    columns.extend(spent_columns(BELOW, task.below));
    columns
}

fn state_columns(state: &State) -> [(&'static str, Value<'_>); 6] {
    let (word, since, stage, ended, error) = match state {
        State::Queued { since } => ("queued", Some(*since), None, None, None),
        State::Running { since, stage } => {
            let (stage, why) = match stage {
                Stage::Creating => ("creating", None),
                Stage::Prompting => ("prompting", None),
                Stage::Working => ("working", None),
                Stage::SummingUp { why } => ("summing_up", Some(why)),
            };
            ("running", Some(*since), Some(stage), None, why)
        }
        State::Ended { at, ran, outcome } => {
            let (word, error) = match outcome {
                Outcome::Completed => ("completed", None),
                Outcome::Failed { why } => ("error", Some(why)),
                Outcome::Cancelled => ("cancelled", None),
            };
            (word, None, None, Some((*at, *ran)), error)
        }
    };
    [
        ("state", word.into()),
        ("since", since.into()),
        ("stage", stage.into()),
        ("ended_at", ended.map(|(at, _)| at).into()),
        ("ran", ended.map(|(_, ran)| ran).into()),
        ("error", error.into()),
    ]
}

fn spent_columns(names: [&'static str; 4], spent: Spent) -> [(&'static str, Value<'static>); 4] {
    let [tokens, cost, turns, calls] = names;
    [
        (tokens, spent.tokens.into()),
        (cost, spent.cost.into()),
        (turns, spent.turns.into()),
        (calls, spent.tool_calls.into()),
    ]
}

fn tools(task: &Task) -> String {
    let progress = &task.progress;
    let tools = Tools {
        by_tool: progress.by_tool.clone(),
        recent: progress.recent.iter().cloned().collect(),
        using: progress.using.clone(),
        command_queued: progress.command_queued,
        held: progress.held.clone(),
        call: progress.repeated.call,
        times: progress.repeated.times,
        turns_before: progress.turns_before,
        worker_deaths: progress.worker_deaths,
        unattended_since: progress.unattended_since.map(Moment::as_millis),
        asking: (progress.asking.iter())
            .map(|(id, open)| (id.clone(), open.into()))
            .collect(),
        beside: (progress.beside != Spent::default()).then_some([
            progress.beside.tokens,
            progress.beside.cost.0,
            progress.beside.unpriced,
            progress.beside.turns,
        ]),
        unpriced: Some(progress.spent.unpriced),
        unpriced_below: Some(task.below.unpriced),
        unpriced_before: Some(task.spent_before.unpriced),
        effort: task.brief.effort.map(|effort| effort.word().to_owned()),
        outside: task.place.outside.as_ref().map(HostRef::to_string),
        above_in: task.place.above_in.as_ref().map(HostRef::to_string),
        model: progress.model.clone(),
        fallbacks: progress
            .fallbacks
            .iter()
            .cloned()
            .map(SavedFallback)
            .collect(),
        reprompted: progress.reprompted,
        asked: progress.asked,
    };
    serde_json::to_string(&tools).unwrap_or_default()
}

/// The terms of a skill as they are kept.
pub(crate) fn terms(terms: &Terms) -> String {
    serde_json::to_string(&TermsRecord::from(terms)).unwrap_or_default()
}

/// The terms of a skill in a column that may be empty.
pub(crate) fn terms_in(row: &Row<'_>, column: &str) -> Result<Option<Terms>, Damage> {
    if row.get::<Option<String>>(column)?.is_none() {
        return Ok(None);
    }
    row.json(column, |from| As::<TermsRecord>::deserialize(from))
        .map(Some)
}

/// Reads a task.
pub(crate) fn task(row: &Row<'_>) -> Result<Task, Damage> {
    let id: TaskId = row.get("id")?;
    let read = read_task(row, id.clone());
    read.map_err(|damage| damage.of("tasks", id))
}

fn read_task(row: &Row<'_>, id: TaskId) -> Result<Task, Damage> {
    let tools = row.json("tools", |from| Tools::deserialize(from))?;
    let (unpriced_below, unpriced_before) = (tools.unpriced_below, tools.unpriced_before);
    Ok(Task {
        id,
        place: Place {
            parent: row.get("parent")?,
            above: row.get("above")?,
            root: row.get("root")?,
            depth: row.get("depth")?,
            outside: tools.outside.as_deref().map(HostRef::from),
            above_in: tools.above_in.as_deref().map(HostRef::from),
        },
        brief: brief(row, tools.effort.as_deref())?,
        skill: terms_in(row, "skill")?,
        budget: Budget {
            tokens: row.get("max_tokens")?,
            cost: row.get("max_cost")?,
            time: row.get("max_time")?,
            turns: row.get("max_turns")?,
            tool_calls: row.get("max_calls")?,
        },
        launched_at: row.get("launched_at")?,
        batch: row.get("batch")?,
        run: row.get("run")?,
        session: row.get("session")?,
        state: state(row)?,
        stopping: row.get("stopping")?,
        progress: progress(row, tools)?,
        below: spent(row, BELOW, unpriced_below)?,
        spent_before: spent(row, BEFORE, unpriced_before)?,
        retrieved_at: row.get("retrieved_at")?,
        cleared: row.get("cleared")?,
        owner: row.get("owner")?,
        seq: row.get("seq")?,
        chain: row.get("chain")?,
    })
}

fn brief(row: &Row<'_>, word: Option<&str>) -> Result<Brief, Damage> {
    let damaged = |_| unknown("effort", word.unwrap_or_default());
    Ok(Brief {
        description: row.get("description")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        effort: effort(word).map_err(damaged)?,
        context: match &*row.text("context")? {
            "fresh" => Context::Fresh,
            "forked" => Context::Forked,
            word => return Err(unknown("context", word)),
        },
        host: host_setup(row)?,
    })
}

fn state(row: &Row<'_>) -> Result<State, Damage> {
    let why = || Ok(row.get::<Option<String>>("error")?.unwrap_or_default());
    let outcome = match &*row.text("state")? {
        "queued" => {
            let since = row.get("since")?;
            return Ok(State::Queued { since });
        }
        "running" => {
            let (since, stage) = (row.get("since")?, stage(row)?);
            return Ok(State::Running { since, stage });
        }
        "completed" => Outcome::Completed,
        // A process of the version before that has not ended yet writes `failed`.
        "error" | "failed" => Outcome::Failed { why: why()? },
        "cancelled" => Outcome::Cancelled,
        word => return Err(unknown("state", word)),
    };
    Ok(State::Ended {
        at: row.get("ended_at")?,
        ran: row.get("ran")?,
        outcome,
    })
}

fn stage(row: &Row<'_>) -> Result<Stage, Damage> {
    Ok(match &*row.text("stage")? {
        "creating" => Stage::Creating,
        "prompting" => Stage::Prompting,
        "working" => Stage::Working,
        "summing_up" => Stage::SummingUp {
            why: row.get::<Option<String>>("error")?.unwrap_or_default(),
        },
        word => return Err(unknown("stage", word)),
    })
}

fn progress(row: &Row<'_>, tools: Tools) -> Result<Progress, Damage> {
    let [tokens, cost, unpriced, turns] = tools.beside.unwrap_or_default();
    let last_activity = row.get("last_activity")?;
    Ok(Progress {
        last_activity,
        spent: spent(row, OWN, tools.unpriced)?,
        by_tool: tools.by_tool,
        recent: tools.recent.into(),
        using: tools.using,
        command_queued: tools.command_queued,
        held: tools.held,
        turns_before: tools.turns_before,
        worker_deaths: tools.worker_deaths,
        unattended_since: tools.unattended_since.map(Moment::from_millis),
        repeated: Repeated {
            call: tools.call,
            times: tools.times,
        },
        asking: (tools.asking.into_iter())
            .map(|(id, asked)| (id, asked.open(last_activity)))
            .collect(),
        model: tools.model,
        fallbacks: tools
            .fallbacks
            .into_iter()
            .map(|SavedFallback(one)| one)
            .collect(),
        reprompted: tools.reprompted,
        asked: tools.asked,
        beside: Spent {
            tokens,
            cost: Cost(cost),
            unpriced,
            turns,
            tool_calls: 0,
        },
    })
}

fn spent(row: &Row<'_>, names: [&str; 4], unpriced: Option<u64>) -> Result<Spent, Damage> {
    let [tokens, cost, turns, calls] = names;
    let (tokens, cost): (u64, Cost) = (row.get(tokens)?, row.get(cost)?);
    Ok(Spent {
        tokens,
        cost,
        unpriced: unpriced_of(unpriced, tokens, cost),
        turns: row.get(turns)?,
        tool_calls: row.get(calls)?,
    })
}

/// Sums that a statement has made.
pub(crate) fn sums(row: &Row<'_>) -> Result<Spent, Damage> {
    spent(row, OWN, Some(row.get("unpriced")?))
}
