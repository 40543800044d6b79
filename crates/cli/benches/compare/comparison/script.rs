//! What the model says.

use std::time::Duration;

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::Value;

/// A tool call as one of the agents knows it.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// What marks the conversation of an agent that delegates, and of nobody else.
pub(crate) const PARENT: &str = "Delegate-to-sub-agents.";

/// How many tool calls a sub-agent makes.
pub(crate) const STEPS_OF_A_CHILD: usize = 3;

/// What a sub-agent is told.
pub(crate) fn child_prompt(number: usize) -> String {
    format!("Look at the sample. You are CHILD-{number}.")
}

/// What a sub-agent answers.
pub(crate) fn result_of(number: usize) -> String {
    format!("RESULT-{number}-IS-FINE")
}

/// Nothing but an answer.
pub(crate) fn answer() -> Script {
    Script::new().rule(When::always(), Reply::text("Done."))
}

/// Nothing, for ever.
pub(crate) fn silence() -> Script {
    Script::new().rule(When::always(), Reply::text("").behind(&Gate::closed()))
}

/// These calls, one in each answer, and then words.
pub(crate) fn calls(calls: Vec<Call>) -> Script {
    let script = Script::new().rule(When::always().tools(false), Reply::text("A title"));
    let script = script.rule(When::turn(calls.len()), Reply::text("Done."));
    let turns = calls.into_iter().enumerate();
    turns.fold(script, |script, (turn, call)| {
        script.rule(When::turn(turn), Reply::call(call.tool, call.arguments))
    })
}

/// A parent that delegates to many in its first answer, if it can, and children that do some work.
/// Each answer takes this long.
pub(crate) fn delegation(launches: Vec<Call>, steps: Vec<Call>, delay: Duration) -> Script {
    let parent = || When::always().contains(PARENT);
    let after = |reply: Reply| reply.delay(delay);
    let mut script = Script::new().rule(When::always().tools(false), Reply::text("A title"));
    let all = launches
        .into_iter()
        .fold(Reply::text("They will look."), |reply, call| {
            reply.and_call(call.tool, call.arguments)
        });
    script = script.rule(parent().turn_is(0), after(all));
    script = script.rule(parent(), after(Reply::text("Noted.")));
    let done = When::turn(steps.len()).capture("number", "CHILD-([0-9]+)");
    script = script.rule(done, after(Reply::text("RESULT-{{number}}-IS-FINE")));
    let turns = steps.into_iter().enumerate();
    turns.fold(script, |script, (turn, call)| {
        let reply = Reply::call(call.tool, call.arguments);
        script.rule(When::turn(turn), after(reply))
    })
}
