//! What is logged of sub-agents: that one was spawned, and what it came to. The names of the
//! fields are those of OpenTelemetry for generative AI, where it has one.

use asyncagents_core::{
    agent::Usage,
    task::{State, Task},
    trace::TraceTotals,
};

use crate::{manager::Traces, shared::Shared};

/// What all sub-agents do, in the words of the conventions.
const OPERATION: &str = "invoke_agent";

/// A sub-agent is spawned.
pub(crate) fn spawned(task: &Task) {
    let terms = task.skill.as_ref();
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
pub(crate) async fn ended(shared: &Shared, task: &Task) {
    let (id, run) = (task.id.clone(), task.run);
    let looked = shared.read(move |journal| {
        let Some(task) = journal.task(&id)?.filter(|task| task.run == run) else {
            return Ok(None);
        };
        if task.is_live() {
            return Ok(None);
        }
        // The run by itself, without those below it.
        let now = task.launched_at;
        let trace = Traces { journal, now }.summary_of_run(&task, run, None)?;
        Ok(Some((task, trace.own)))
    });
    match looked.await {
        Ok(Some((task, used))) => log(&task, used),
        Ok(None) => {}
        Err(problem) => tracing::warn!(%problem, "cannot read what a sub-agent used"),
    }
}

fn log(task: &Task, used: TraceTotals) {
    let State::Ended { ran, outcome, .. } = &task.state else {
        return;
    };
    let status = outcome.status().to_string();
    let error = outcome.why();
    // Hosts that do not say the kind of tokens say how many there were.
    let known = (used.unsplit() == 0).then_some(used.usage);
    let read = |usage: Usage| usage.context().saturating_sub(usage.output);
    tracing::info!(
        gen_ai.operation.name = OPERATION,
        gen_ai.agent.name = %task.brief.agent,
        gen_ai.agent.id = %task.id,
        gen_ai.conversation.id = %task.place.parent,
        gen_ai.usage.input_tokens = known.map(read),
        gen_ai.usage.cache_read.input_tokens = known.map(|usage| usage.cache_read),
        gen_ai.usage.output_tokens = known.map(|usage| usage.output),
        gen_ai.client.operation.duration = ran.as_secs_f64(),
        "error.type" = error.map(|_| status.as_str()),
        asyncagents.error = error,
        asyncagents.outcome = status,
        asyncagents.tokens = used.spent.tokens,
        asyncagents.cost_usd = used.spent.price().dollars(),
        asyncagents.turns = used.spent.turns,
        asyncagents.tool_calls = used.spent.tool_calls,
        asyncagents.skill = task.skill.as_ref().map(|terms| terms.skill.as_str()),
        asyncagents.chain.id = task.chain.as_ref().map(|chain| chain.as_str()),
        asyncagents.depth = task.place.depth,
        asyncagents.run = task.run,
        "sub-agent ended"
    );
}
