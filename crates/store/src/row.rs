//! A task as a row, and back.

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use asyncagents_core::{
    budget::{Budget, Cost, Spent},
    id::TaskId,
    moment::Moment,
    progress::{Progress, Repeated},
    skill::Terms,
    task::{Brief, Context, Outcome, Place, Stage, State, Task},
};
use rusqlite::{Row, ToSql, types::Value};
use serde::{Deserialize, Serialize};

use crate::{record::unpriced_of, terms::TermsRecord};

/// The columns of a task, in the order of [`values`] and [`task`].
pub(crate) const COLUMNS: &str = "id, parent, above, root, depth, description, agent, model, \
    context, host, max_tokens, max_cost, max_time, max_turns, max_calls, launched_at, batch, run, \
    session, state, since, stage, ended_at, ran, error, stopping, tokens, cost, turns, calls, \
    tools, last_activity, below_tokens, below_cost, below_turns, below_calls, before_tokens, \
    before_cost, before_turns, before_calls, retrieved_at, cleared, owner, seq, live, taken, \
    unfinished, skill, chain";
/// How many there are.
pub(crate) const COUNT: usize = 49;

/// Inserts a task; the last parameter is the event that began it.
pub(crate) static INSERT: LazyLock<String> = LazyLock::new(|| {
    let holders: Vec<String> = (1..=COUNT).map(|at| format!("?{at}")).collect();
    let (holders, last) = (holders.join(", "), COUNT + 1);
    format!("INSERT INTO tasks ({COLUMNS}, born, place) VALUES ({holders}, ?{last}, ?{last})")
});
/// Writes all columns of a task.
pub(crate) static UPDATE: LazyLock<String> = LazyLock::new(|| {
    let columns = COLUMNS.split(", ").enumerate().skip(1);
    let set = columns.map(|(at, column)| format!("{column} = ?{}", at + 1));
    let set = set.collect::<Vec<_>>().join(", ");
    format!("UPDATE tasks SET {set} WHERE id = ?1")
});

/// Writes what progress changes; none of it is in an index.
pub(crate) const UPDATE_PROGRESS: &str = "UPDATE tasks SET tokens = ?2, cost = ?3, turns = ?4, calls = ?5, tools = ?6, \
    last_activity = ?7, below_tokens = ?8, below_cost = ?9, below_turns = ?10, \
    below_calls = ?11, seq = ?12 WHERE id = ?1";

/// The tokens of a row that nobody knows the price of, as [`unpriced_of`] says.
pub(crate) const UNPRICED: &str =
    "coalesce(json_extract(tools, '$.unpriced'), iif(cost = 0, tokens, 0))";
/// The same of the tasks below it.
pub(crate) const UNPRICED_BELOW: &str =
    "coalesce(json_extract(tools, '$.unpriced_below'), iif(below_cost = 0, below_tokens, 0))";

/// What is kept of progress beside the sums.
#[derive(Serialize, Deserialize)]
struct Tools {
    by_tool: BTreeMap<String, u64>,
    recent: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    using: Option<String>,
    call: u64,
    times: u64,
    #[serde(default)]
    turns_before: u64,
    #[serde(default)]
    worker_deaths: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unattended_since: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    asking: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced_below: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unpriced_before: Option<u64>,
    /// Tokens, cost, tokens without a price and turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beside: Option<[u64; 4]>,
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn maybe_text(value: Option<&impl ToString>) -> Value {
    value.map_or(Value::Null, |value| Value::Text(value.to_string()))
}

fn maybe(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

/// The values of a task, in the order of [`COLUMNS`].
pub(crate) fn values(task: &Task) -> [Value; COUNT] {
    let (state, since, stage, ended_at, ran, error) = match &task.state {
        State::Queued { since } => ("queued", Some(*since), None, None, None, None),
        State::Running { since, stage } => {
            let (stage, why) = match stage {
                Stage::Creating => ("creating", None),
                Stage::Prompting => ("prompting", None),
                Stage::Working => ("working", None),
                Stage::SummingUp { why } => ("summing_up", Some(why)),
            };
            ("running", Some(*since), Some(stage), None, None, why)
        }
        State::Ended { at, ran, outcome } => {
            let (state, error) = match outcome {
                Outcome::Completed => ("completed", None),
                Outcome::Failed { why } => ("failed", Some(why)),
                Outcome::Cancelled => ("cancelled", None),
            };
            (state, None, None, Some(*at), Some(*ran), error)
        }
    };
    let live = task.is_live();
    let taken = state == "running" || task.stopping;
    let [tokens, cost, turns, calls] = spent(task.progress.spent);
    let [below_tokens, below_cost, below_turns, below_calls] = spent(task.below);
    let [before_tokens, before_cost, before_turns, before_calls] = spent(task.spent_before);
    [
        text(&task.id),
        text(&task.place.parent),
        maybe_text(task.place.above.as_ref()),
        text(&task.place.root),
        Value::Integer(task.place.depth.into()),
        text(&task.brief.description),
        text(&task.brief.agent),
        maybe_text(task.brief.model.as_ref()),
        text(match task.brief.context {
            Context::Fresh => "fresh",
            Context::Forked => "forked",
        }),
        text(&task.brief.host),
        maybe(task.budget.tokens.map(number)),
        maybe(task.budget.cost.map(|cost| number(cost.0))),
        maybe(task.budget.time.map(millis)),
        maybe(task.budget.turns.map(number)),
        maybe(task.budget.tool_calls.map(number)),
        Value::Integer(task.launched_at.as_millis()),
        Value::Integer(number(task.batch)),
        Value::Integer(task.run.into()),
        maybe_text(task.session.as_ref()),
        text(state),
        maybe(since.map(Moment::as_millis)),
        maybe_text(stage.as_ref()),
        maybe(ended_at.map(Moment::as_millis)),
        maybe(ran.map(millis)),
        maybe_text(error),
        Value::Integer(task.stopping.into()),
        tokens,
        cost,
        turns,
        calls,
        text(tools(task)),
        maybe(task.progress.last_activity.map(Moment::as_millis)),
        below_tokens,
        below_cost,
        below_turns,
        below_calls,
        before_tokens,
        before_cost,
        before_turns,
        before_calls,
        maybe(task.retrieved_at.map(Moment::as_millis)),
        Value::Integer(task.cleared.into()),
        maybe_text(task.owner.as_ref()),
        Value::Integer(number(task.seq)),
        Value::Integer(live.into()),
        Value::Integer(taken.into()),
        Value::Integer((live || task.stopping).into()),
        maybe_text(task.brief.skill.as_ref().map(terms).as_ref()),
        maybe_text(task.chain.as_ref()),
    ]
}

/// The ID and the values of [`UPDATE_PROGRESS`].
pub(crate) fn progress_values(task: &Task) -> [Value; 12] {
    let [tokens, cost, turns, calls] = spent(task.progress.spent);
    let [below_tokens, below_cost, below_turns, below_calls] = spent(task.below);
    [
        text(&task.id),
        tokens,
        cost,
        turns,
        calls,
        text(tools(task)),
        maybe(task.progress.last_activity.map(Moment::as_millis)),
        below_tokens,
        below_cost,
        below_turns,
        below_calls,
        Value::Integer(number(task.seq)),
    ]
}

/// Values as parameters of a statement.
pub(crate) fn params(values: &[Value]) -> Vec<&dyn ToSql> {
    values.iter().map(|value| value as &dyn ToSql).collect()
}

fn spent(spent: Spent) -> [Value; 4] {
    [spent.tokens, spent.cost.0, spent.turns, spent.tool_calls]
        .map(|sum| Value::Integer(number(sum)))
}

fn tools(task: &Task) -> String {
    let progress = &task.progress;
    let tools = Tools {
        by_tool: progress.by_tool.clone(),
        recent: progress.recent.iter().cloned().collect(),
        using: progress.using.clone(),
        call: progress.repeated.call,
        times: progress.repeated.times,
        turns_before: progress.turns_before,
        worker_deaths: progress.worker_deaths,
        unattended_since: progress.unattended_since.map(Moment::as_millis),
        asking: progress.asking.clone(),
        beside: (progress.beside != Spent::default()).then_some([
            progress.beside.tokens,
            progress.beside.cost.0,
            progress.beside.unpriced,
            progress.beside.turns,
        ]),
        unpriced: Some(progress.spent.unpriced),
        unpriced_below: Some(task.below.unpriced),
        unpriced_before: Some(task.spent_before.unpriced),
    };
    serde_json::to_string(&tools).unwrap_or_default()
}

pub(crate) fn terms(terms: &Terms) -> String {
    serde_json::to_string(&TermsRecord::from(terms)).unwrap_or_default()
}

/// Reads a task from a row of [`COLUMNS`].
pub(crate) fn task(row: &Row) -> rusqlite::Result<Task> {
    let string = |at: usize| row.get::<_, String>(at);
    let maybe_string = |at: usize| row.get::<_, Option<String>>(at);
    let count = |at: usize| row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0));
    let maybe_count = |at: usize| {
        let value = row.get::<_, Option<i64>>(at);
        value.map(|value| value.map(|n| u64::try_from(n).unwrap_or(0)))
    };
    let moment = |at: usize| row.get::<_, i64>(at).map(Moment::from_millis);
    let maybe_moment = |at: usize| {
        let value = row.get::<_, Option<i64>>(at);
        value.map(|value| value.map(Moment::from_millis))
    };
    let spent = |at: usize, unpriced: Option<u64>| -> rusqlite::Result<Spent> {
        let (tokens, cost) = (count(at)?, count(at + 1)?);
        Ok(Spent {
            tokens,
            cost: Cost(cost),
            unpriced: unpriced_of(unpriced, tokens, cost),
            turns: count(at + 2)?,
            tool_calls: count(at + 3)?,
        })
    };
    let ended = |outcome: Outcome| -> rusqlite::Result<State> {
        Ok(State::Ended {
            at: moment(22)?,
            ran: Duration::from_millis(count(23)?),
            outcome,
        })
    };
    let state = match string(19)?.as_str() {
        "queued" => State::Queued { since: moment(20)? },
        "running" => State::Running {
            since: moment(20)?,
            stage: match string(21)?.as_str() {
                "creating" => Stage::Creating,
                "prompting" => Stage::Prompting,
                "summing_up" => Stage::SummingUp {
                    why: maybe_string(24)?.unwrap_or_default(),
                },
                _ => Stage::Working,
            },
        },
        "completed" => ended(Outcome::Completed)?,
        "cancelled" => ended(Outcome::Cancelled)?,
        _ => ended(Outcome::Failed {
            why: maybe_string(24)?.unwrap_or_default(),
        })?,
    };
    let tools: Tools = serde_json::from_str(&string(30)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(30, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Task {
        id: TaskId::from(string(0)?),
        place: Place {
            parent: string(1)?.into(),
            above: maybe_string(2)?.map(Into::into),
            root: string(3)?.into(),
            depth: row.get(4)?,
        },
        brief: Brief {
            description: string(5)?,
            agent: string(6)?.into(),
            model: maybe_string(7)?.map(Into::into),
            context: match string(8)?.as_str() {
                "forked" => Context::Forked,
                _ => Context::Fresh,
            },
            host: string(9)?.into(),
            skill: terms_at(row, 47)?,
        },
        budget: Budget {
            tokens: maybe_count(10)?,
            cost: maybe_count(11)?.map(Cost),
            time: maybe_count(12)?.map(Duration::from_millis),
            turns: maybe_count(13)?,
            tool_calls: maybe_count(14)?,
        },
        launched_at: moment(15)?,
        batch: count(16)?,
        run: row.get(17)?,
        session: maybe_string(18)?.map(Into::into),
        state,
        stopping: row.get(25)?,
        progress: Progress {
            spent: spent(26, tools.unpriced)?,
            by_tool: tools.by_tool,
            recent: tools.recent.into(),
            using: tools.using,
            turns_before: tools.turns_before,
            worker_deaths: tools.worker_deaths,
            unattended_since: tools.unattended_since.map(Moment::from_millis),
            last_activity: maybe_moment(31)?,
            repeated: Repeated {
                call: tools.call,
                times: tools.times,
            },
            asking: tools.asking,
            beside: tools.beside.map_or_else(Spent::default, |sums| {
                let [tokens, cost, unpriced, turns] = sums;
                Spent {
                    tokens,
                    cost: Cost(cost),
                    unpriced,
                    turns,
                    tool_calls: 0,
                }
            }),
        },
        below: spent(32, tools.unpriced_below)?,
        spent_before: spent(36, tools.unpriced_before)?,
        retrieved_at: maybe_moment(40)?,
        cleared: row.get(41)?,
        owner: maybe_string(42)?.map(Into::into),
        chain: maybe_string(48)?.map(Into::into),
        seq: count(43)?,
    })
}

/// The terms of a skill in a column.
pub(crate) fn terms_at(row: &Row, at: usize) -> rusqlite::Result<Option<Terms>> {
    let Some(text) = row.get::<_, Option<String>>(at)? else {
        return Ok(None);
    };
    let record: TermsRecord = serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(at, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Some(record.into()))
}
