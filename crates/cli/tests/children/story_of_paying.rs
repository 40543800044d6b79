//! What children cost.

use asyncagents_scripted_model::{Reply, Script, When};

use crate::{
    agent::Agent,
    world::{World, asked, printed},
};

told! {
    a_child_that_never_stops_is_stopped_by_its_limit
    what_a_turn_with_a_tool_costs_is_what_its_model_said
}

mod tell {
    use super::*;

    /// It reads for ever, in one turn. What it has used is on the bill, also where its agent says so only
    /// when it stops.
    pub(super) fn a_child_that_never_stops_is_stopped_by_its_limit(agent: Agent) {
        const USED: (u64, u64, u64) = (20_000, 5_000, 700);
        let (input, cached, output) = USED;
        let script = |home: &crate::home::Home| {
            let reads = agent.reads(&home.path("project/notes.md"));
            let always = When::always().tools(true).contains("Read and read");
            Script::new().rule(always, reads.usage(input, cached, output))
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/notes.md", "the plants are dry\n");
        let mut limits = vec![
            ("--max-turns", "3", "the budget of 3 turns is used up"),
            (
                "--max-tool-calls",
                "3",
                "the budget of 3 tool calls is used up",
            ),
        ];
        // These two do not count before the turn is over.
        if !matches!(agent, Agent::Gemini | Agent::OpenCode) {
            let why = "the budget of 60,000 tokens is used up";
            limits.push(("--max-tokens", "60000", why));
        }
        for (limit, most, why) in limits {
            let before = world.requests().len();
            let id = world.launched(&["--permission", "yolo", limit, most, "Read and read"]);
            let task = world.ended(&id);
            assert_eq!(task["error"], why, "{task}");
            world.until_gone(agent.process());
            let asked = world.requests().len() - before;
            assert!((3..=7).contains(&asked), "{limit}: {asked} requests");
            // Gemini CLI never says what a turn took that it did not end itself.
            if agent != Agent::Gemini {
                let least = agent.cost(3, USED);
                let is_told = || {
                    let task = world.task(&id);
                    let cost = task["progress"]["cost_usd"].as_f64();
                    (cost >= least).then_some(())
                };
                world.until(&format!("{limit}: {least:?} is on the bill"), is_told);
            }
        }
    }

    pub(super) fn what_a_turn_with_a_tool_costs_is_what_its_model_said(agent: Agent) {
        const USED: (u64, u64, u64) = (20_000, 5_000, 700);
        let (input, cached, output) = USED;
        let script = |home: &crate::home::Home| {
            let notes = home.path("project/notes.md");
            Script::new()
                .rule(
                    printed("the plants are dry"),
                    Reply::text("Water them.").usage(input, cached, output),
                )
                .rule(
                    asked("Read the notes"),
                    agent.reads(&notes).usage(input, cached, output),
                )
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        world.home.write("project/notes.md", "the plants are dry\n");
        let id = world.launch_free("Read the notes");
        assert_eq!(world.result(&id), "Water them.");
        let progress = &world.task(&id)["progress"];
        assert_eq!(world.requests().len(), 2);
        assert_eq!(
            progress["cost_usd"].as_f64(),
            agent.cost(2, USED),
            "{progress}"
        );
        // These two say only how many tokens the last answer of a turn took.
        let counted = match agent {
            Agent::Goose | Agent::OpenCode => 1,
            _ => 2,
        };
        assert_eq!(progress["tokens"], counted * (input + output), "{progress}");
        assert_eq!(progress["turns"], 2, "{progress}");
    }
}
