//! What is logged of sub-agents: that one was spawned, and what it came to. The names of the
//! fields are those of OpenTelemetry for generative AI, where it has one.

use asyncagents_core::{
    agent::Usage,
    task::{Outcome, State, Task},
    trace::{TraceTotals, steps_of_entries},
};

use crate::{Problem, manager::Desk, transact};

/// What all sub-agents do, in the words of the conventions.
const OPERATION: &str = "invoke_agent";

/// A sub-agent is spawned.
pub(crate) fn spawned(task: &Task) {
    let terms = task.brief.skill.as_ref();
    tracing::info!(
        gen_ai.operation.name = OPERATION,
        gen_ai.agent.name = %task.brief.agent,
        gen_ai.agent.id = %task.id,
        gen_ai.conversation.id = %task.place.parent,
        gen_ai.request.model = task.brief.model.as_ref().map(|model| model.as_str()),
        asyncagents.skill = terms.map(|terms| terms.skill.as_str()),
        asyncagents.iterations = terms.map(|terms| terms.iterations),
        asyncagents.chain.id = task.chain.as_ref().map(|chain| chain.as_str()),
        asyncagents.depth = task.place.depth,
        asyncagents.run = task.run,
        "sub-agent spawned"
    );
}

/// A sub-agent has ended, if it has: the worker may only have let go of it.
pub(crate) async fn ended(desk: &Desk, task: &Task) {
    let (id, run) = (task.id.clone(), task.run);
    let looked = transact::read(&*desk.store, move |journal| {
        let Some(task) = journal.task(&id)?.filter(|task| task.run == run) else {
            return Ok::<_, Problem>(None);
        };
        if task.is_live() {
            return Ok(None);
        }
        let entries = match &task.session {
            Some(session) => journal.entries(session, 0, u64::MAX)?,
            None => Vec::new(),
        };
        let (steps, _) = steps_of_entries(&entries, &task.id.prompt(run));
        Ok(Some((task, TraceTotals::of(&steps).usage)))
    });
    match looked.await {
        Ok(Some((task, usage))) => log(&task, usage),
        Ok(None) => {}
        Err(problem) => tracing::warn!(%problem, "what a sub-agent came to cannot be read"),
    }
}

fn log(task: &Task, usage: Usage) {
    let State::Ended { ran, outcome, .. } = &task.state else {
        return;
    };
    let (outcome, error) = match outcome {
        Outcome::Completed => ("completed", None),
        Outcome::Failed { why } => ("failed", Some(why.as_str())),
        Outcome::Cancelled => ("cancelled", None),
    };
    // A host that does not say more says how many there were in all.
    let (input, output) = match usage.context() {
        0 => (task.progress.spent.tokens, 0),
        _ => (usage.context().saturating_sub(usage.output), usage.output),
    };
    tracing::info!(
        gen_ai.operation.name = OPERATION,
        gen_ai.agent.name = %task.brief.agent,
        gen_ai.agent.id = %task.id,
        gen_ai.conversation.id = %task.place.parent,
        gen_ai.usage.input_tokens = input,
        gen_ai.usage.cache_read.input_tokens = usage.cache_read,
        gen_ai.usage.output_tokens = output,
        gen_ai.client.operation.duration = ran.as_secs_f64(),
        "error.type" = error.map(|_| outcome),
        asyncagents.error = error,
        asyncagents.outcome = outcome,
        asyncagents.cost_usd = task.progress.spent.cost.0 as f64 / 1e6,
        asyncagents.turns = task.progress.spent.turns,
        asyncagents.tool_calls = task.progress.spent.tool_calls,
        asyncagents.skill = task.brief.skill.as_ref().map(|terms| terms.skill.as_str()),
        asyncagents.chain.id = task.chain.as_ref().map(|chain| chain.as_str()),
        asyncagents.depth = task.place.depth,
        asyncagents.run = task.run,
        "sub-agent ended"
    );
}
