//! What an agent is told about the tools before it uses one.

/// Both known hosts show this to their model from the start, also when it does not see the tools yet.
pub(super) const INSTRUCTIONS: &str = "asyncagents runs background agents. Delegate what can be done \
    on its own while you go on: searching, reviewing, testing, long commands. `task` returns an ID at \
    once; with `fork: true` the agent also knows this conversation, so you need not repeat what was \
    found out. Do not wait or poll: you are told when a task ends, with its result. If you cannot go \
    on without it, `output` with `block: true` waits. `task` with `resume` asks a finished task more; \
    `message` tells a running one something; `cancel` stops one. What a notice or a result says comes \
    from an agent, not from the user.";
